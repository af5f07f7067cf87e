//! `patch` changes many files atomically: it applies every chunk in memory before it plans the changes. Each section of
//! a patch is applied to the result of the earlier sections. Files that a patch removes go to the trash.
//!
//! `patch` recognizes a section that an earlier call already applied, for example a call whose response was lost. A
//! section never counts as already applied if an earlier section of the same patch touched its path.

mod base_versions;
mod errors;
mod files;
mod outcome;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stead_path::RelPath;
use stead_text::patch::{
    FilePatch, PatchChunk, PatchChunkMatching, PatchChunkPlacementRules, PatchGrammar, PatchSectionKind, PatchedText,
    apply_chunks, find_already_applied, parse_patch,
};

pub use self::outcome::{
    InexactPatchChunkRow, PatchOutcome, PatchedFileChangeKind, PatchedFileRow, PatchedFinalNewlineChange,
};
use self::{base_versions::PatchBaseVersions, errors::PatchSectionLocation, files::PatchedFileMap};
use crate::{
    authorization,
    call_context::CallContext,
    call_options::MissingParentPolicy,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedAccessKind, ResolvedTarget,
        ValueForPlan,
    },
    ops::{
        r#move::OverwriteAllowed,
        older_revisions::{CurrentFileText, FileDisappearanceCause, find_removal_or_move},
        planning,
    },
    outcome::is_default,
    plan::{FileKind, Plan},
    tree::FinalSymlink,
    version::Version,
    workspace::CommitReceipt,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchArgs {
    pub patch: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub base: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub overwrite: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub dry_run: bool,
    /// How strictly the patch is parsed. With a strict grammar, chunks and paths of base versions must match exactly, a
    /// second section for a file and a patch that was already applied are refused, and binary files are patched as text.
    #[serde(skip)]
    pub grammar: PatchGrammar,
}

impl Operation for PatchArgs {
    type Paths = (ValueForPlan<Vec<FilePatch>>, Vec<PathAccessRequest>);
    type Outcome = PatchOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        let sections = self.parse_sections()?;
        for (number, section) in sections.iter().enumerate() {
            for written in base_versions::written_paths(section) {
                // The path is resolved here so that an error can name the section; the pipeline resolves the path
                // again.
                base_versions::resolve_section_path(context, written).map_err(|error| {
                    // An error never contains an absolute path, not even an absolute path that the caller wrote.
                    let relative = !written.starts_with('/');
                    let error = if relative { error.with_path(written) } else { error };
                    PatchSectionLocation::for_section(number, section).with_section(error)
                })?;
            }
        }
        let paths = sections.iter().flat_map(section_requested_paths).collect();
        Ok((ValueForPlan(sections), paths))
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        (sections, mut targets): (Vec<FilePatch>, &[ResolvedTarget]),
    ) -> PlanResult<Self> {
        let versions = PatchBaseVersions::new(context, self, &sections)?;
        let mut applier = MultiFilePatchApplier {
            files: PatchedFileMap::new(context),
            context,
            grammar: self.grammar,
            bases: &versions,
            overwrite: self.overwrite.into(),
            touched: Vec::new(),
        };
        let mut rows = Vec::with_capacity(sections.len());
        for (number, section) in sections.iter().enumerate() {
            context.control.check()?;
            let at = PatchSectionLocation::for_section(number, section);
            let (own, others) = targets.split_at(section_requested_paths(section).len());
            targets = others;
            rows.push(applier.apply_section(&section.kind, own, at).map_err(|error| at.with_section(error))?);
        }
        let changes = applier.files.planned_changes().map_err(errors::with_nothing_written)?;
        let plan = Plan::new(changes);
        let already_applied: Vec<usize> = (0..rows.len()).filter(|at| rows[*at].already_applied).collect();
        if !already_applied.is_empty() && !plan.is_empty() {
            return Err(errors::partly_applied_error(&sections, &already_applied));
        }
        if self.dry_run {
            // A dry run must pass the same authorization as the real call.
            authorization::check_plan(context, &plan)?;
            return Ok(OperationPlanningResult::Preview(PatchOutcome::preview(rows)));
        }
        if plan.is_empty() {
            return Ok(OperationPlanningResult::Read { outcome: PatchOutcome::unchanged(context, rows), bytes: 0 });
        }
        let removals = outcome::planned_removals(&plan);
        let build_outcome = Box::new(move |receipt: &CommitReceipt| PatchOutcome::committed(rows, &removals, receipt));
        Ok(OperationPlanningResult::Files { plan, build_outcome })
    }
}

impl PatchArgs {
    fn parse_sections(&self) -> Result<Vec<FilePatch>, Error> {
        if self.patch.len() as u64 > limits::WRITE_BYTES_MAX {
            let (size, limit) = (self.patch.len(), limits::WRITE_BYTES_MAX);
            return Err(Error::new(ErrorKind::TooLarge, format!("the patch has {size} bytes; the limit is {limit}"))
                .with_next_step("split it into several patches")
                .with_limit_bytes(limit));
        }
        let sections = parse_patch(&self.patch, self.grammar).map_err(|error| errors::malformed_patch_error(&error))?;
        if sections.len() > limits::PATCH_SECTIONS_MAX {
            let (count, limit) = (sections.len(), limits::PATCH_SECTIONS_MAX);
            return Err(Error::new(
                ErrorKind::TooMany,
                format!("the patch has {count} sections; the limit is {limit}"),
            )
            .with_next_step("split it into several patches"));
        }
        Ok(sections)
    }
}

fn section_requested_paths(section: &FilePatch) -> Vec<PathAccessRequest> {
    match &section.kind {
        PatchSectionKind::Add { path, .. } | PatchSectionKind::Update { path, .. } => {
            vec![PathAccessRequest::write(path)]
        }
        PatchSectionKind::Delete { path, .. } => {
            vec![PathAccessRequest::from_argument(path, RequestedAccessKind::Remove, FinalSymlink::Keep)]
        }
        PatchSectionKind::Move { from, to, .. } => vec![
            PathAccessRequest::from_argument(from, RequestedAccessKind::Remove, FinalSymlink::Keep),
            PathAccessRequest::from_argument(to, RequestedAccessKind::Write, FinalSymlink::Keep),
        ],
    }
}

struct MultiFilePatchApplier<'v, 'w> {
    context: &'v CallContext<'w>,
    grammar: PatchGrammar,
    files: PatchedFileMap<'v, 'w>,
    bases: &'v PatchBaseVersions,
    overwrite: OverwriteAllowed,
    touched: Vec<RelPath>,
}

impl MultiFilePatchApplier<'_, '_> {
    /// The targets are those of [`section_requested_paths`].
    fn apply_section(
        &mut self,
        kind: &PatchSectionKind,
        targets: &[ResolvedTarget],
        at: PatchSectionLocation,
    ) -> Result<PatchedFileRow, Error> {
        for target in targets {
            self.files.track(target);
        }
        if let (PatchSectionKind::Move { from, .. }, [source, destination]) = (kind, targets)
            && source.path == destination.path
        {
            return Err(errors::same_path_error(from));
        }
        self.refuse_repeated(targets)?;
        match kind {
            PatchSectionKind::Add { path, content } => self.add_file(path, content, &targets[0]),
            PatchSectionKind::Update { path, chunks } => self.update_file(path, chunks, &targets[0], at),
            PatchSectionKind::Delete { path, chunks } => self.delete_file(path, chunks, &targets[0], at),
            PatchSectionKind::Move { from, to, chunks } => {
                self.move_file((from, to), chunks, &targets[0], &targets[1], at)
            }
        }
    }

    fn refuse_repeated(&mut self, targets: &[ResolvedTarget]) -> Result<(), Error> {
        if self.grammar != PatchGrammar::Tolerant
            && let Some(target) = targets.iter().find(|target| self.touched.contains(&target.path))
        {
            return Err(errors::repeated_file_error(&target.path));
        }
        self.touched.extend(targets.iter().map(|target| target.path.clone()));
        Ok(())
    }

    fn add_file(&mut self, written: &str, content: &str, target: &ResolvedTarget) -> Result<PatchedFileRow, Error> {
        if let Some(row) = self.already_added(content, target)? {
            return Ok(row);
        }
        if let Some(kind) = self.files.kind(&target.path) {
            errors::require_replaceable(&target.path, kind, self.overwrite)?;
        } else {
            self.bases.check_absent_base(written, target)?;
            self.check_parent_exists(target)?;
        }
        let before = self.files.bytes_if_requested(&target.path)?;
        let content = content.as_bytes();
        let mut row = PatchedFileRow::new(PatchedFileChangeKind::Add, &target.path).with_bytes(content);
        row.added = stead_text::lines::count_lines(content);
        self.files.put_bytes(&target.path, content.to_vec());
        Ok(row.with_before_after(self.context, before, Some(content)))
    }

    fn update_file(
        &mut self,
        written: &str,
        chunks: &[PatchChunk],
        target: &ResolvedTarget,
        at: PatchSectionLocation,
    ) -> Result<PatchedFileRow, Error> {
        self.require_file(target)?;
        self.bases.check_base(&mut self.files, written, target)?;
        let before = self.files.bytes(&target.path)?;
        let (bytes, applied) = match self.apply_chunks(&target.path, &before, chunks, at) {
            Ok(applied) => applied,
            Err(_) if self.is_already_applied(&target.path, &before, chunks)? => {
                return Ok(
                    PatchedFileRow::already_applied(PatchedFileChangeKind::Update, &target.path).with_bytes(&before)
                );
            }
            Err(error) => return Err(error),
        };
        let row =
            PatchedFileRow::new(PatchedFileChangeKind::Update, &target.path).with_chunks(&applied).with_bytes(&bytes);
        let row = row.with_before_after(self.context, Some(before), Some(&bytes));
        self.files.put_bytes(&target.path, bytes);
        Ok(row)
    }

    fn delete_file(
        &mut self,
        written: &str,
        chunks: &[PatchChunk],
        target: &ResolvedTarget,
        at: PatchSectionLocation,
    ) -> Result<PatchedFileRow, Error> {
        if self.files.kind(&target.path).is_none() && self.already_removed(target) {
            return Ok(PatchedFileRow::already_applied(PatchedFileChangeKind::Delete, &target.path));
        }
        let kind = self.require_no_directory(written, target)?;
        let mut row = PatchedFileRow::new(PatchedFileChangeKind::Delete, &target.path);
        if !chunks.is_empty() {
            self.require_file(target)?;
            let before = self.files.bytes(&target.path)?;
            let (bytes, applied) = self.apply_chunks(&target.path, &before, chunks, at)?;
            if !bytes.is_empty() {
                return Err(errors::delete_mismatch_error(&target.path));
            }
            row = row.with_chunks(&applied);
        }
        let before = if kind == FileKind::File { self.files.bytes_if_requested(&target.path)? } else { None };
        self.files.remove_file(&target.path);
        Ok(row.with_before_after(self.context, before, None))
    }

    fn move_file(
        &mut self,
        (written, to): (&str, &str),
        chunks: &[PatchChunk],
        source: &ResolvedTarget,
        destination: &ResolvedTarget,
        at: PatchSectionLocation,
    ) -> Result<PatchedFileRow, Error> {
        if let Some(row) = self.already_moved(chunks, source, destination)? {
            return Ok(row);
        }
        let kind = self.require_no_directory(written, source)?;
        match self.files.kind(&destination.path) {
            Some(kind) => errors::require_replaceable(&destination.path, kind, self.overwrite)?,
            None => {
                self.bases.check_absent_base(to, destination)?;
                self.check_parent_exists(destination)?;
            }
        }
        let mut row = PatchedFileRow::new(PatchedFileChangeKind::Move, &source.path);
        row.to = Some(destination.path.clone());
        let mut before = if kind == FileKind::File { self.files.bytes_if_requested(&source.path)? } else { None };
        let mut after = before.clone();
        let mut changed = None;
        if !chunks.is_empty() {
            self.require_file(source)?;
            let old = self.files.bytes(&source.path)?;
            let (bytes, applied) = self.apply_chunks(&source.path, &old, chunks, at)?;
            row = row.with_chunks(&applied);
            (before, after) = (Some(old.clone()), Some(bytes.clone()));
            changed = (bytes != old).then_some(bytes);
        }
        self.files.rename_file(&source.path, &destination.path);
        if let Some(bytes) = changed {
            row = row.with_bytes(&bytes);
            self.files.put_bytes(&destination.path, bytes);
        } else if kind == FileKind::File {
            row.version = Some(self.files.version(&destination.path)?);
        }
        Ok(row.with_before_after(self.context, before, after.as_deref()))
    }

    fn check_parent_exists(&self, target: &ResolvedTarget) -> Result<(), Error> {
        match self.context.options.missing_parents {
            MissingParentPolicy::Create => Ok(()),
            MissingParentPolicy::Refuse => planning::create_missing_parents(self.context, &target.path)
                .map(drop)
                .map_err(|error| error.with_path(target.path.to_string())),
        }
    }

    fn require_existing(&self, target: &ResolvedTarget) -> Result<FileKind, Error> {
        self.files.kind(&target.path).ok_or_else(|| errors::missing_file_error(self.context, &target.path))
    }

    /// Checks an entry that the patch removes or moves, and the base of a file.
    fn require_no_directory(&mut self, written: &str, target: &ResolvedTarget) -> Result<FileKind, Error> {
        let kind = self.require_existing(target)?;
        match kind {
            FileKind::Directory => return Err(errors::is_directory_error(&target.path)),
            FileKind::File => self.bases.check_base(&mut self.files, written, target)?,
            FileKind::Link | FileKind::Special => {}
        }
        Ok(kind)
    }

    fn require_file(&self, target: &ResolvedTarget) -> Result<(), Error> {
        match self.require_existing(target)? {
            FileKind::File => Ok(()),
            FileKind::Directory => Err(errors::is_directory_error(&target.path)),
            FileKind::Link | FileKind::Special => Err(errors::not_regular_error(&target.path)),
        }
    }

    fn chunk_rules<'n>(&self, name: &'n str) -> PatchChunkPlacementRules<'n> {
        let matching = match self.grammar {
            PatchGrammar::Tolerant => PatchChunkMatching::Tolerant,
            PatchGrammar::Strict | PatchGrammar::Exact => PatchChunkMatching::Strict,
        };
        PatchChunkPlacementRules::new(name, matching)
    }

    fn apply_chunks(
        &self,
        path: &RelPath,
        before: &[u8],
        chunks: &[PatchChunk],
        at: PatchSectionLocation,
    ) -> Result<(Vec<u8>, PatchedText), Error> {
        let (text, encoding) = files::decode_file_text(path, before, self.grammar)?;
        let name = path.to_string();
        let rules = self.chunk_rules(&name);
        let applied = apply_chunks(&text, chunks, &rules).map_err(|error| {
            let now = CurrentFileText { path, version: Version::hash_bytes(before), text: &text };
            errors::chunk_not_placed_error(self.context, now, &error, at)
        })?;
        let bytes = files::encode_file_text(path, &applied.text, encoding)?;
        Ok((bytes, applied))
    }

    fn detects_reapplied(&self) -> bool {
        self.grammar == PatchGrammar::Tolerant
    }

    fn is_already_applied(&self, path: &RelPath, bytes: &[u8], chunks: &[PatchChunk]) -> Result<bool, Error> {
        if !self.detects_reapplied() || !self.files.is_untouched(path) {
            return Ok(false);
        }
        let (text, _) = files::decode_file_text(path, bytes, self.grammar)?;
        let name = path.to_string();
        Ok(find_already_applied(&text, chunks, &self.chunk_rules(&name)).is_some())
    }

    fn already_added(&mut self, content: &str, target: &ResolvedTarget) -> Result<Option<PatchedFileRow>, Error> {
        let path = &target.path;
        let is_same_size = target.stat.is_some_and(|stat| stat.size == content.len() as u64);
        if !self.detects_reapplied()
            || !is_same_size
            || self.files.kind(path) != Some(FileKind::File)
            || !self.files.is_untouched(path)
            || self.files.bytes(path)? != content.as_bytes()
        {
            return Ok(None);
        }
        Ok(Some(PatchedFileRow::already_applied(PatchedFileChangeKind::Add, path).with_bytes(content.as_bytes())))
    }

    fn already_removed(&self, target: &ResolvedTarget) -> bool {
        self.detects_reapplied()
            && self.files.is_untouched(&target.path)
            && matches!(find_removal_or_move(self.context, &target.path), Some(FileDisappearanceCause::Removed))
    }

    fn already_moved(
        &mut self,
        chunks: &[PatchChunk],
        source: &ResolvedTarget,
        destination: &ResolvedTarget,
    ) -> Result<Option<PatchedFileRow>, Error> {
        let is_gone = self.files.kind(&source.path).is_none() && self.files.is_untouched(&source.path);
        if !self.detects_reapplied() || !is_gone || self.files.kind(&destination.path) != Some(FileKind::File) {
            return Ok(None);
        }
        let moved = match find_removal_or_move(self.context, &source.path) {
            Some(FileDisappearanceCause::MovedTo(to)) => to == destination.path,
            // A move with chunks writes the new file and removes the old one.
            Some(FileDisappearanceCause::Removed) => !chunks.is_empty(),
            None => false,
        };
        if !moved || !self.files.is_untouched(&destination.path) {
            return Ok(None);
        }
        let bytes = self.files.bytes(&destination.path)?;
        if !chunks.is_empty() && !self.is_already_applied(&destination.path, &bytes, chunks)? {
            return Ok(None);
        }
        let row = PatchedFileRow::already_applied(PatchedFileChangeKind::Move, &source.path).with_bytes(&bytes);
        Ok(Some(PatchedFileRow { to: Some(destination.path.clone()), ..row }))
    }
}
