//! The files that a patch touches, with their state before and after the patch. The plan gets at most one change for
//! each path of the patch.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use stead_path::RelPath;
use stead_text::encoding::{self, Encoding};

use crate::{
    call_context::CallContext,
    call_options::{BeforeAfterContentInclusion, PatchGrammar},
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::ResolvedTarget,
    ops::{WriteArgs, planning, planning::too_large_to_change_error},
    plan::{
        CommitExpectation, FileKind, FileModeSource, PlanTimeFileVersion, PlannedChange, PlannedContent, TreeSummary,
    },
    tree::{BytesToRead, FileNamePolicy, FileStat},
    version::Version,
};

pub(super) struct PatchedFileMap<'v, 'w> {
    context: &'v CallContext<'w>,
    files: BTreeMap<RelPath, PatchedFileState>,
}

struct PatchedFileState {
    before: Option<FileStat>,
    read_bytes: Option<Vec<u8>>,
    /// The file's version before the patch; the commit fails if the file has another version.
    observed: Option<PlanTimeFileVersion>,
    after: Option<PatchedFileContent>,
}

struct PatchedFileContent {
    kind: FileKind,
    /// The path of the file before the patch; `None` if the patch adds the file.
    origin: Option<RelPath>,
    /// The file's new content; `None` if the patch leaves the content of `origin` unchanged.
    bytes: Option<Vec<u8>>,
}

impl<'v, 'w> PatchedFileMap<'v, 'w> {
    pub(super) fn new(context: &'v CallContext<'w>) -> Self {
        Self { context, files: BTreeMap::new() }
    }

    pub(super) fn context(&self) -> &'v CallContext<'w> {
        self.context
    }

    /// Records the state of a path before the patch, unless an earlier section already recorded it.
    pub(super) fn track(&mut self, target: &ResolvedTarget) {
        let origin = Some(target.path.clone());
        let after = target.stat.map(|stat| PatchedFileContent { kind: stat.kind, origin, bytes: None });
        let file = PatchedFileState { before: target.stat, read_bytes: None, observed: None, after };
        self.files.entry(target.path.clone()).or_insert(file);
    }

    pub(super) fn kind(&self, path: &RelPath) -> Option<FileKind> {
        Some(self.files.get(path)?.after.as_ref()?.kind)
    }

    pub(super) fn is_untouched(&self, path: &RelPath) -> bool {
        self.files.get(path).is_some_and(|file| match &file.after {
            Some(content) => content.origin.as_ref() == Some(path) && content.bytes.is_none(),
            None => file.before.is_none(),
        })
    }

    pub(super) fn version_before(&mut self, path: &RelPath) -> Result<Option<Version>, Error> {
        match self.files.get(path).and_then(|file| file.before) {
            Some(stat) if stat.kind == FileKind::File => Ok(Some(self.observed_version(path)?.version)),
            Some(_) | None => Ok(None),
        }
    }

    pub(super) fn version(&mut self, path: &RelPath) -> Result<Version, Error> {
        match self.content(path)? {
            Ok(bytes) => Ok(Version::hash_bytes(bytes)),
            Err(origin) => Ok(self.observed_version(&origin)?.version),
        }
    }

    pub(super) fn bytes(&mut self, path: &RelPath) -> Result<Vec<u8>, Error> {
        match self.content(path)? {
            Ok(bytes) => Ok(bytes.to_vec()),
            Err(origin) => self.read(&origin),
        }
    }

    /// `Ok` has the new bytes of a file, and `Err` has the path to read unchanged content from.
    fn content(&self, path: &RelPath) -> Result<Result<&[u8], RelPath>, Error> {
        match self.files.get(path).and_then(|file| file.after.as_ref()) {
            Some(PatchedFileContent { bytes: Some(bytes), .. }) => Ok(Ok(bytes)),
            Some(PatchedFileContent { origin: Some(origin), bytes: None, .. }) => Ok(Err(origin.clone())),
            Some(PatchedFileContent { origin: None, bytes: None, .. }) | None => Err(file_missing_error(path)),
        }
    }

    pub(super) fn bytes_if_requested(&mut self, path: &RelPath) -> Result<Option<Vec<u8>>, Error> {
        match (self.context.options.before_after, self.kind(path)) {
            (BeforeAfterContentInclusion::Include, Some(FileKind::File)) => self.bytes(path).map(Some),
            (BeforeAfterContentInclusion::Omit | BeforeAfterContentInclusion::Include, _) => Ok(None),
        }
    }

    fn read(&mut self, path: &RelPath) -> Result<Vec<u8>, Error> {
        let context = self.context;
        let tracked = self.files.get_mut(path).ok_or_else(|| file_missing_error(path))?;
        if let Some(bytes) = &tracked.read_bytes {
            return Ok(bytes.clone());
        }
        let file = context
            .read(path, BytesToRead::Whole { limit_bytes: limits::WRITE_BYTES_MAX })
            .map_err(|error| too_large_to_change_error(path, error))?;
        tracked.observed.get_or_insert(file.observed());
        tracked.read_bytes = Some(file.bytes.clone());
        Ok(file.bytes)
    }

    fn observed_version(&mut self, path: &RelPath) -> Result<PlanTimeFileVersion, Error> {
        let context = self.context;
        let file = self.files.get_mut(path).ok_or_else(|| file_missing_error(path))?;
        match file.observed {
            Some(observed) => Ok(observed),
            None => Ok(*file.observed.insert(context.observe_version(path)?)),
        }
    }

    pub(super) fn put_bytes(&mut self, path: &RelPath, bytes: Vec<u8>) {
        if let Some(file) = self.files.get_mut(path) {
            let origin = file.after.take().and_then(|content| content.origin);
            file.after = Some(PatchedFileContent { kind: FileKind::File, origin, bytes: Some(bytes) });
        }
    }

    pub(super) fn remove_file(&mut self, path: &RelPath) {
        if let Some(file) = self.files.get_mut(path) {
            file.after = None;
        }
    }

    pub(super) fn rename_file(&mut self, from: &RelPath, to: &RelPath) {
        let content = self.files.get_mut(from).and_then(|file| file.after.take());
        if let Some(file) = self.files.get_mut(to) {
            file.after = content;
        }
    }

    /// A moved file with new content becomes a write of the new path and a removal of the old path, because a commit
    /// allows only one change per path.
    pub(super) fn planned_changes(&mut self) -> Result<Vec<PlannedChange>, Error> {
        self.refuse_nested()?;
        let paths: Vec<RelPath> = self.files.keys().cloned().collect();
        let mut directories: BTreeMap<RelPath, PlannedChange> = BTreeMap::new();
        let mut changes = Vec::new();
        let mut moved = BTreeSet::new();
        for path in &paths {
            let Some(change) = self.change_at(path)? else { continue };
            if self.files.get(path).is_some_and(|file| file.before.is_none()) {
                for directory in planning::create_missing_parents(self.context, path)? {
                    let path = directory.paths().next().cloned();
                    directories.extend(path.map(|path| (path, directory)));
                }
            }
            if let PlannedChange::Move { from, .. } = &change {
                moved.insert(from.clone());
            }
            changes.push(change);
        }
        for path in paths.iter().filter(|path| !moved.contains(path)) {
            changes.extend(self.removal_at(path)?);
        }
        Ok(directories.into_values().chain(changes).collect())
    }

    fn change_at(&mut self, path: &RelPath) -> Result<Option<PlannedChange>, Error> {
        let Some(file) = self.files.get(path) else { return Ok(None) };
        let (Some(content), before) = (&file.after, file.before) else { return Ok(None) };
        let (origin, new_bytes) = (content.origin.clone(), content.bytes.clone());
        let stays = origin.as_ref() == Some(path);
        if let (Some(from), None) = (&origin, &new_bytes) {
            if stays {
                return Ok(None);
            }
            if self.kind(from).is_none() {
                return self.planned_move(from, path).map(Some);
            }
        }
        let bytes = match (new_bytes, &origin) {
            (Some(bytes), _) => bytes,
            (None, Some(from)) => self.read(&from.clone())?,
            (None, None) => return Err(file_missing_error(path)),
        };
        let version = Version::hash_bytes(&bytes);
        let expectation = match before {
            None => CommitExpectation::Absent,
            Some(_) => CommitExpectation::File(self.observed_version(path)?),
        };
        if let (CommitExpectation::File(observed), true) = (expectation, stays)
            && observed.version == version
        {
            return Ok(None);
        }
        let mode = match origin.filter(|_| !stays) {
            Some(from) => FileModeSource::CopyFrom(from.clone(), self.observed_version(&from)?),
            None => FileModeSource::KeepExisting,
        };
        let size = bytes.len() as u64;
        let (path, content) = (path.clone(), PlannedContent::Bytes(bytes));
        Ok(Some(PlannedChange::Put { path, expectation, content, version, size, mode }))
    }

    fn planned_move(&mut self, from: &RelPath, to: &RelPath) -> Result<PlannedChange, Error> {
        let stat = self.files.get(from).and_then(|file| file.before).ok_or_else(|| file_missing_error(from))?;
        let replaced = match self.files.get(to).and_then(|file| file.before) {
            None => CommitExpectation::Absent,
            Some(_) => CommitExpectation::File(self.observed_version(to)?),
        };
        let (expectation, tree) = (self.expectation(from, stat)?, single_entry_summary(stat));
        Ok(PlannedChange::Move { from: from.clone(), to: to.clone(), expectation, replaced, tree })
    }

    fn removal_at(&mut self, path: &RelPath) -> Result<Option<PlannedChange>, Error> {
        let Some(&PatchedFileState { before: Some(stat), after: None, .. }) = self.files.get(path) else {
            return Ok(None);
        };
        let retain_until_ms = planning::trash_deadline_ms(self.context);
        let (expectation, tree) = (self.expectation(path, stat)?, single_entry_summary(stat));
        Ok(Some(PlannedChange::Remove { path: path.clone(), expectation, retain_until_ms, tree }))
    }

    fn expectation(&mut self, path: &RelPath, stat: FileStat) -> Result<CommitExpectation, Error> {
        match stat.kind {
            FileKind::File => Ok(CommitExpectation::File(self.observed_version(path)?)),
            FileKind::Directory | FileKind::Link | FileKind::Special => Ok(CommitExpectation::SameEntry(stat.identity)),
        }
    }

    /// Rejects a path below a file, and two paths whose names some file systems cannot distinguish.
    fn refuse_nested(&self) -> Result<(), Error> {
        let will_exist = |path: &RelPath| self.files.get(path).is_some_and(|file| file.after.is_some());
        let mut names = BTreeMap::new();
        for path in self.files.keys().filter(|path| will_exist(path)) {
            if let Some(above) = path.ancestors().find(|above| !above.is_root() && will_exist(above)) {
                return Err(planning::parent_not_directory_error(&above));
            }
            let Some((parent, name)) = path.split() else { continue };
            let twin = names.insert((parent, stead_path::fold_name(name.as_bytes())), path);
            if let (Some(twin), FileNamePolicy::Portable) = (twin, self.context.workspace().profile().name_policy) {
                return Err(Error::new(
                    ErrorKind::NameCollision,
                    format!("{twin} and {path} differ only in case or look-alike characters"),
                )
                .with_next_step("choose a name that differs in more than case")
                .with_path(path.to_string()));
            }
        }
        Ok(())
    }
}

fn single_entry_summary(stat: FileStat) -> TreeSummary {
    TreeSummary { kind: stat.kind, files: 1, directories: 0, bytes: stat.size }
}

fn file_missing_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::NotFound, format!("{path} does not exist"))
        .with_next_step(format!("write *** Add File: to create {path}, or correct its path"))
}

pub(super) fn decode_file_text<'b>(
    path: &RelPath,
    bytes: &'b [u8],
    grammar: PatchGrammar,
) -> Result<(Cow<'b, str>, Encoding), Error> {
    let not_text = || {
        Error::new(ErrorKind::NotText, format!("{path} is not text"))
            .with_next_step(
                NextStep::call(WriteArgs::of_new_content(path), "replace the whole file").or("omit it from the patch"),
            )
            .with_path(path.to_string())
    };
    let encoding = match (encoding::detect_encoding(bytes), grammar) {
        (Some(encoding), _) => encoding,
        (None, PatchGrammar::Strict | PatchGrammar::Exact) => Encoding::Utf8,
        (None, PatchGrammar::Tolerant) => return Err(not_text()),
    };
    let text = encoding::decode(bytes, encoding).map_err(|_| not_text())?;
    Ok((text, encoding))
}

pub(super) fn encode_file_text(path: &RelPath, text: &str, encoding: Encoding) -> Result<Vec<u8>, Error> {
    let bytes = encoding::encode(text, encoding).map_err(|error| {
        Error::new(ErrorKind::NotText, format!("{path}: {error}"))
            .with_next_step("remove that character from the patch, or write the whole file with encoding \"utf-8\"")
            .with_path(path.to_string())
            .with_encoding(encoding.name())
    })?;
    if bytes.len() as u64 > limits::WRITE_BYTES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("{path} would have {} bytes; the limit is {}", bytes.len(), limits::WRITE_BYTES_MAX),
        )
        .with_next_step("split the content over several files")
        .with_limit_bytes(limits::WRITE_BYTES_MAX));
    }
    Ok(bytes)
}
