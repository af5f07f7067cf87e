//! Prepares a plan: checks its expectations again, stages new content under temporary names beside the target, and
//! collects the steps. Changes nothing visible in the workspace; the steps are applied after the journal has them.

use std::collections::HashSet;

use stead_disk::{AttributeSource, ContentSource, DirectoryHandle, DiskErrorKind, DiskStat, OpenFile};
use stead_engine::{
    CommitError, CommitExpectation, Error, ErrorKind, FileKind, FileModeSource, NEW_FILE_MODE, ObservedVersion, Plan,
    PlannedChange, PlannedContent, TreeSummary, Version,
};
use stead_journal::{ChangeKind, PathState};
use stead_path::{FileName, RelPath};

use crate::{
    errors,
    file_steps::{FileStep, ReplacedFile, RetainedIn, StagedFileRef, StoredInodeId, StoredPath, to_stored_ns},
    lookup,
    open::LocalWorkspace,
    trash,
};

/// Largest content stored in the database, where it needs no sync of its own.
pub(crate) const INLINE_BYTES_MAX: u64 = 64 << 10;

#[derive(Default)]
pub(crate) struct PreparedPlan {
    pub(crate) steps: Vec<FileStep>,
    pub(crate) changes: Vec<stead_journal::RecordedChange>,
    /// Bytes to retain, by version; `None` if they are stored in a file.
    pub(crate) retained: Vec<(Version, u64, Option<Vec<u8>>)>,
    pub(crate) trashed: Vec<PendingTrashItem>,
    pub(crate) restored: Vec<String>,
    pub(crate) notices: Vec<String>,
    pub(crate) bytes: u64,
    /// Staged files, removed unless they are used.
    staged: Vec<(DirectoryHandle, FileName)>,
    overlay: PlanOverlay,
}

pub(crate) struct PendingTrashItem {
    pub(crate) id: String,
    pub(crate) path: RelPath,
    pub(crate) tree: TreeSummary,
    pub(crate) keep_until_ms: i64,
}

/// Effects of earlier changes of the same plan on the tree.
#[derive(Default)]
struct PlanOverlay {
    freed_paths: HashSet<RelPath>,
    created_paths: HashSet<RelPath>,
}

impl PlanOverlay {
    /// Whether this plan itself decides the content of the path, so that the disk cannot.
    fn covers(&self, path: &RelPath) -> bool {
        let decided =
            |candidate: &RelPath| self.freed_paths.contains(candidate) || self.created_paths.contains(candidate);
        decided(path) || path.ancestors().any(|above| decided(&above))
    }
}

impl PreparedPlan {
    pub(crate) fn discard_staged(&mut self) {
        for (directory, name) in self.staged.drain(..) {
            // A leftover is hidden from every listing and removed later; the original error matters more.
            match directory.remove_file(&name) {
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Hands the staged files over to the journal.
    pub(crate) fn keep_staged(&mut self) {
        self.staged.clear();
    }
}

pub(crate) fn prepare_plan(workspace: &LocalWorkspace, plan: &Plan) -> Result<PreparedPlan, CommitError> {
    let mut prepared = PreparedPlan::default();
    for change in &plan.changes {
        if let Err(error) = workspace.prepare_change(change, &mut prepared) {
            prepared.discard_staged();
            return Err(error);
        }
    }
    Ok(prepared)
}

impl LocalWorkspace {
    fn prepare_change(&self, change: &PlannedChange, prepared: &mut PreparedPlan) -> Result<(), CommitError> {
        match change {
            PlannedChange::Put { path, expectation: expect, content, version, size, mode } => {
                self.prepare_put(&FilePut { path, expect, content, version, size: *size, mode }, prepared)
            }
            PlannedChange::MakeDirectory { path, mode } => {
                self.check_expectation(path, &CommitExpectation::Absent, prepared)?;
                prepared.overlay.created_paths.insert(path.clone());
                prepared.steps.push(FileStep::MakeDirectory { path: StoredPath(path.clone()), mode: *mode });
                push_change(
                    prepared,
                    path,
                    ChangeKind::MakeDir,
                    PathState::Absent,
                    PathState::Directory { mode: *mode },
                );
                Ok(())
            }
            PlannedChange::MakeLink { path, target } => {
                self.check_expectation(path, &CommitExpectation::Absent, prepared)?;
                prepared.overlay.created_paths.insert(path.clone());
                let state = PathState::Link { target: String::from_utf8_lossy(target).into_owned() };
                prepared.steps.push(FileStep::MakeLink { path: StoredPath(path.clone()), target: target.clone() });
                push_change(prepared, path, ChangeKind::MakeLink, PathState::Absent, state);
                Ok(())
            }
            PlannedChange::Move { from, to, expectation: expect, replaced: over, tree } => {
                self.prepare_move(from, to, expect, over, tree, prepared)
            }
            PlannedChange::Remove { path, expectation: expect, retain_until_ms: keep_until_ms, tree } => {
                let stat = self.expect_tree(path, expect, tree, prepared)?;
                self.refuse_other_mount_than_trash(path)?;
                self.sync_before_move(path)?;
                let id = trash::new_trash_id()?;
                prepared.steps.push(FileStep::Remove {
                    path: StoredPath(path.clone()),
                    id: StoredInodeId::from_stat(&stat),
                    trash: id.clone(),
                });
                let version = match expect {
                    CommitExpectation::File(seen) => Some(seen.version.0),
                    CommitExpectation::Absent | CommitExpectation::SameEntry(_) => None,
                };
                let (files, bytes) = (tree.files, tree.bytes);
                let before = PathState::Tree { trash: Some(id.clone()), files, bytes, version };
                push_change(prepared, path, ChangeKind::Remove, before, PathState::Absent);
                prepared.trashed.push(PendingTrashItem {
                    id,
                    path: path.clone(),
                    tree: *tree,
                    keep_until_ms: *keep_until_ms,
                });
                prepared.overlay.freed_paths.insert(path.clone());
                Ok(())
            }
            PlannedChange::RemoveDirectory { path } => {
                let stat = self.stat_for_plan(path)?.ok_or_else(|| CommitError::ExpectationFailed(path.clone()))?;
                let (mode, id) = (stat.mode, StoredInodeId::from_stat(&stat));
                prepared.steps.push(FileStep::RemoveDirectory { path: StoredPath(path.clone()), id, mode });
                push_change(prepared, path, ChangeKind::Remove, PathState::Directory { mode }, PathState::Absent);
                prepared.overlay.freed_paths.insert(path.clone());
                Ok(())
            }
            PlannedChange::Restore { trash, path, tree } => self.prepare_restore(trash, path, tree, prepared),
        }
    }

    fn prepare_put(&self, put: &FilePut<'_>, prepared: &mut PreparedPlan) -> Result<(), CommitError> {
        let current = self.check_expectation(put.path, put.expect, prepared)?;
        let old = match (put.expect, current) {
            (CommitExpectation::File(seen), Some(_)) => Some((self.open_current(put.path)?, *seen)),
            (CommitExpectation::File(_) | CommitExpectation::Absent | CommitExpectation::SameEntry(_), _) => None,
        };
        let (directory_path, directory) = self.nearest_existing_directory(put.path, prepared)?;
        let source = self.load_new_content(put)?;
        let model = self.open_attribute_source(put)?;
        let mode = match (put.mode, &model, &old, &source) {
            (FileModeSource::Set(mode), ..) => mode & 0o777,
            (FileModeSource::CopyFrom(..), Some(file), ..) | (_, _, Some((file, _)), _) => file.stat().mode & 0o777,
            (FileModeSource::KeepExisting | FileModeSource::CopyFrom(..), _, None, NewContent::InFile(file)) => {
                file.stat().mode & 0o777
            }
            (FileModeSource::KeepExisting | FileModeSource::CopyFrom(..), _, None, NewContent::InMemory(_)) => {
                NEW_FILE_MODE
            }
        };
        let like = model.as_ref().or(old.as_ref().map(|(file, _)| file));
        let attributes = like.map_or(AttributeSource::New { mode }, AttributeSource::CopyFrom);
        let handle = directory.try_clone().map_err(|error| errors::error_at_path(put.path, &error))?;
        let staged = match &source {
            NewContent::InMemory(bytes) => directory.stage_file(ContentSource::Bytes(bytes), attributes),
            NewContent::InFile(file) => directory.stage_file(ContentSource::File(file), attributes),
        }
        .map_err(|error| errors::error_at_path(put.path, &error))?;
        prepared.staged.push((handle, staged.name().clone()));
        if let (FileModeSource::Set(_), Some(_)) = (put.mode, &old) {
            directory.set_mode(staged.name(), mode).map_err(|error| errors::error_at_path(put.path, &error))?;
        }
        if !staged.lost_attributes().is_empty() {
            let lost: Vec<_> = staged.lost_attributes().iter().map(|attribute| attribute.as_str()).collect();
            prepared.notices.push(format!("{}: some attributes could not be copied: [{}]", put.path, lost.join(", ")));
        }
        let stamp = staged.fingerprint().map_err(|error| errors::error_at_path(put.path, &error))?;
        let after = self.make_content_durable(put, source, &directory, &staged, prepared)?;
        let over = old.map(|(file, seen)| self.replaced_file(put.path, &file, &seen, prepared)).transpose()?;
        let before = over.as_ref().map_or(PathState::Absent, |(_, state)| state.clone());
        let kind = if over.is_some() { ChangeKind::Modify } else { ChangeKind::Create };
        push_change(prepared, put.path, kind, before, PathState::File { version: put.version.0, size: put.size, mode });
        prepared.steps.push(FileStep::Put {
            path: StoredPath(put.path.clone()),
            staged: StagedFileRef {
                directory: StoredPath(directory_path),
                name: StoredPath(RelPath::root().join(staged.name()).map_err(Error::from)?),
                id: StoredInodeId::from_staged(&staged),
                modified_ns: to_stored_ns(stamp.modified_ns),
            },
            over: over.map(|(replaced, _)| replaced),
            version: put.version.0,
            mode,
            after,
        });
        prepared.bytes += put.size;
        prepared.overlay.created_paths.insert(put.path.clone());
        Ok(())
    }

    /// Opens the file whose attributes are copied, if it is still the expected one.
    fn open_attribute_source(&self, put: &FilePut<'_>) -> Result<Option<OpenFile>, CommitError> {
        let FileModeSource::CopyFrom(from, seen) = put.mode else { return Ok(None) };
        let file = self.root.open_file(from).map_err(|error| self.changed_concurrently_or(from, &error))?;
        if lookup::to_engine_fingerprint(&file.stat().fingerprint) != seen.identity {
            return Err(CommitError::ExpectationFailed(from.clone()));
        }
        Ok(Some(file))
    }

    /// Makes the new content recoverable after a crash: in the database, or in the staged file, synced now.
    fn make_content_durable(
        &self,
        put: &FilePut<'_>,
        source: NewContent,
        directory: &DirectoryHandle,
        staged: &stead_disk::StagedFile,
        prepared: &mut PreparedPlan,
    ) -> Result<RetainedIn, CommitError> {
        if put.size <= INLINE_BYTES_MAX {
            let bytes = match source {
                NewContent::InMemory(bytes) => bytes,
                NewContent::InFile(file) => {
                    file.read_all(INLINE_BYTES_MAX).map_err(|error| errors::error_at_path(put.path, &error))?
                }
            };
            if Version::hash_bytes(&bytes) != *put.version {
                return Err(CommitError::ExpectationFailed(put.path.clone()));
            }
            prepared.retained.push((*put.version, put.size, Some(bytes)));
            return Ok(RetainedIn::Database);
        }
        if let NewContent::InFile(_) = source {
            // Another program may have changed the source during the copy: the staged bytes count.
            let copy = directory.open_file(staged.name()).map_err(|error| errors::error_at_path(put.path, &error))?;
            let (hash, _) = copy.hash().map_err(|error| errors::error_at_path(put.path, &error))?;
            if hash != *put.version.0.as_bytes() {
                return Err(CommitError::ExpectationFailed(put.path.clone()));
            }
        }
        if self.is_fully_durable() {
            let synced = staged.sync().and_then(|()| directory.sync());
            if let Err(error) = synced {
                self.store.mark_read_only();
                return Err(errors::error_at_path(put.path, &error).into());
            }
        }
        Ok(RetainedIn::File)
    }

    fn load_new_content(&self, put: &FilePut<'_>) -> Result<NewContent, CommitError> {
        match put.content {
            PlannedContent::Bytes(bytes) => Ok(NewContent::InMemory(bytes.clone())),
            PlannedContent::Retained(version) => match self.load_retained_bytes(version)? {
                Some(bytes) => Ok(NewContent::InMemory(bytes)),
                None => Err(Error::new(
                    ErrorKind::Expired,
                    format!("the requested version of {} is no longer retained", put.path),
                )
                .into()),
            },
            PlannedContent::CopyOf(from, seen) => {
                let file = self.root.open_file(from).map_err(|error| self.changed_concurrently_or(from, &error))?;
                if lookup::to_engine_fingerprint(&file.stat().fingerprint) != seen.identity {
                    return Err(CommitError::ExpectationFailed(from.clone()));
                }
                Ok(NewContent::InFile(file))
            }
        }
    }

    /// Describes the file to be replaced, and retains its bytes if they are small.
    fn replaced_file(
        &self,
        path: &RelPath,
        file: &OpenFile,
        seen: &ObservedVersion,
        prepared: &mut PreparedPlan,
    ) -> Result<(ReplacedFile, PathState), CommitError> {
        let stat = file.stat();
        let retained_in = if stat.size <= INLINE_BYTES_MAX {
            let bytes = file.read_all(INLINE_BYTES_MAX).map_err(|error| errors::error_at_path(path, &error))?;
            if Version::hash_bytes(&bytes) != seen.version {
                return Err(CommitError::ExpectationFailed(path.clone()));
            }
            prepared.retained.push((seen.version, stat.size, Some(bytes)));
            RetainedIn::Database
        } else {
            prepared.retained.push((seen.version, stat.size, None));
            RetainedIn::File
        };
        if stat.hard_links > 1 {
            prepared
                .notices
                .push(format!("{path} had {} hard links; the other links keep the old content", stat.hard_links));
        }
        let state = PathState::File { version: seen.version.0, size: stat.size, mode: stat.mode };
        let replaced = ReplacedFile {
            version: seen.version.0,
            id: StoredInodeId::from_stat(&stat),
            size: stat.size,
            modified_ns: to_stored_ns(stat.modified_ns),
            mode: stat.mode & 0o777,
            retained_in,
        };
        Ok((replaced, state))
    }

    fn prepare_move(
        &self,
        from: &RelPath,
        to: &RelPath,
        expect: &CommitExpectation,
        over: &CommitExpectation,
        tree: &TreeSummary,
        prepared: &mut PreparedPlan,
    ) -> Result<(), CommitError> {
        let stat = self.expect_tree(from, expect, tree, prepared)?;
        let under = self.check_expectation(to, over, prepared)?;
        self.refuse_rename_across_mounts(from, to)?;
        self.sync_before_move(from)?;
        self.sync_before_move(to)?;
        if let (CommitExpectation::File(seen), Some(_)) = (over, under) {
            let file = self.open_current(to)?;
            let (replaced, state) = self.replaced_file(to, &file, seen, prepared)?;
            push_change(prepared, to, ChangeKind::Remove, state, PathState::Absent);
            prepared.steps.push(new_move_step(from, to, &stat, Some(replaced)));
        } else {
            prepared.steps.push(new_move_step(from, to, &stat, None));
        }
        let state = self.path_state(from, &stat, expect, tree)?;
        prepared.changes.push(stead_journal::RecordedChange {
            path: from.to_string(),
            kind: ChangeKind::Rename,
            to: Some(to.to_string()),
            before: state.clone(),
            after: state,
        });
        prepared.overlay.freed_paths.insert(from.clone());
        prepared.overlay.created_paths.insert(to.clone());
        Ok(())
    }

    /// Syncs a recent file before it is moved or moved over: recovery after a power cut would otherwise look for it at its
    /// old path and create it again there as another file.
    fn sync_before_move(&self, path: &RelPath) -> Result<(), Error> {
        if !self.is_fully_durable() || !self.has_unsynced_changes(path)? {
            return Ok(());
        }
        self.mark_synced_entries()?;
        // Another process owns the remaining entries, but their bytes must be on disk too.
        if self.has_unsynced_changes(path)? { self.sync_file_system() } else { Ok(()) }
    }

    fn prepare_restore(
        &self,
        id: &str,
        path: &RelPath,
        tree: &TreeSummary,
        prepared: &mut PreparedPlan,
    ) -> Result<(), CommitError> {
        self.check_expectation(path, &CommitExpectation::Absent, prepared)?;
        self.refuse_other_mount_than_trash(path)?;
        let gone = || Error::new(ErrorKind::NotFound, format!("{id} is not in the trash"));
        let name = FileName::new(id.as_bytes()).map_err(|_| gone())?;
        let found = self.trash_directory.with(|trash| trash::find_item(trash, &name, id, tree));
        let (stat, after) = found.map_err(|error| trash::moved_or_failed(path, &error))?.ok_or_else(gone)?;
        prepared.steps.push(FileStep::Restore {
            path: StoredPath(path.clone()),
            id: StoredInodeId::from_stat(&stat),
            trash: id.to_owned(),
        });
        push_change(prepared, path, ChangeKind::Create, PathState::Absent, after);
        prepared.restored.push(id.to_owned());
        prepared.overlay.created_paths.insert(path.clone());
        Ok(())
    }

    fn path_state(
        &self,
        path: &RelPath,
        stat: &DiskStat,
        expect: &CommitExpectation,
        tree: &TreeSummary,
    ) -> Result<PathState, CommitError> {
        Ok(match (tree.kind, expect) {
            (FileKind::File, CommitExpectation::File(seen)) => {
                PathState::File { version: seen.version.0, size: stat.size, mode: stat.mode }
            }
            (FileKind::Link, _) => {
                let target = self.root.read_link(path).map_err(|error| self.changed_concurrently_or(path, &error))?;
                PathState::Link { target: String::from_utf8_lossy(&target).into_owned() }
            }
            (FileKind::File | FileKind::Directory | FileKind::Special, _) => {
                PathState::Tree { trash: None, files: tree.files, bytes: tree.bytes, version: None }
            }
        })
    }

    /// Checks that a path still matches the plan's expectation.
    fn check_expectation(
        &self,
        path: &RelPath,
        expect: &CommitExpectation,
        prepared: &PreparedPlan,
    ) -> Result<Option<DiskStat>, CommitError> {
        if prepared.overlay.covers(path) {
            // An expectation at a path whose parents this plan creates or removes comes from another tree.
            return match expect {
                CommitExpectation::Absent => Ok(None),
                CommitExpectation::File(_) | CommitExpectation::SameEntry(_) => {
                    Err(CommitError::ExpectationFailed(path.clone()))
                }
            };
        }
        let stat = self.stat_for_plan(path)?;
        match (expect, stat) {
            (CommitExpectation::Absent, None) => Ok(None),
            (CommitExpectation::File(seen), Some(stat))
                if lookup::to_engine_fingerprint(&stat.fingerprint) == seen.identity =>
            {
                Ok(Some(stat))
            }
            (CommitExpectation::File(_), Some(stat)) if stat.file_type != stead_disk::FileType::File => {
                Err(CommitError::ExpectationFailed(path.clone()))
            }
            (CommitExpectation::File(seen), Some(stat)) => {
                let file = self.open_current(path)?;
                let (hash, _) = file.hash().map_err(|error| errors::error_at_path(path, &error))?;
                if hash == *seen.version.0.as_bytes() {
                    Ok(Some(stat))
                } else {
                    Err(CommitError::ExpectationFailed(path.clone()))
                }
            }
            (CommitExpectation::SameEntry(stamp), Some(stat))
                if lookup::to_engine_fingerprint(&stat.fingerprint).device_and_inode == stamp.device_and_inode =>
            {
                Ok(Some(stat))
            }
            (CommitExpectation::Absent, Some(_))
            | (CommitExpectation::File(_), None)
            | (CommitExpectation::SameEntry(_), _) => Err(CommitError::ExpectationFailed(path.clone())),
        }
    }

    /// Checks that a path exists and has the planned type. A symlink or directory is only recognised by its inode, whose
    /// number may have been reused.
    fn expect_tree(
        &self,
        path: &RelPath,
        expect: &CommitExpectation,
        tree: &TreeSummary,
        prepared: &PreparedPlan,
    ) -> Result<DiskStat, CommitError> {
        match self.check_expectation(path, expect, prepared)? {
            Some(stat) if lookup::to_engine_file_type(stat.file_type) == tree.kind => Ok(stat),
            Some(_) | None => Err(CommitError::ExpectationFailed(path.clone())),
        }
    }

    fn stat_for_plan(&self, path: &RelPath) -> Result<Option<DiskStat>, CommitError> {
        self.root.stat(path).map_err(|error| self.changed_concurrently_or(path, &error))
    }

    fn open_current(&self, path: &RelPath) -> Result<OpenFile, CommitError> {
        self.root.open_file(path).map_err(|error| self.changed_concurrently_or(path, &error))
    }

    /// A path that vanished or became a symlink changed concurrently; other errors pass through.
    fn changed_concurrently_or(&self, path: &RelPath, error: &stead_disk::DiskError) -> CommitError {
        if matches!(error.kind, DiskErrorKind::ChangedConcurrently | DiskErrorKind::IsSymlink | DiskErrorKind::NotFound)
        {
            return CommitError::ExpectationFailed(path.clone());
        }
        CommitError::Failed(errors::error_at_path(path, error))
    }

    /// The nearest existing parent directory, where new content is staged.
    fn nearest_existing_directory(
        &self,
        path: &RelPath,
        prepared: &PreparedPlan,
    ) -> Result<(RelPath, DirectoryHandle), CommitError> {
        let mut above: Vec<RelPath> = path.ancestors().collect();
        while let Some(candidate) = above.pop() {
            if prepared.overlay.covers(&candidate) && !candidate.is_root() {
                continue;
            }
            match self.root.open_directory(&candidate) {
                Ok(directory) => return Ok((candidate, directory)),
                Err(error) if error.kind == DiskErrorKind::NotFound => {}
                Err(error) => return Err(self.changed_concurrently_or(&candidate, &error)),
            }
        }
        Err(CommitError::ExpectationFailed(path.clone()))
    }
}

struct FilePut<'a> {
    path: &'a RelPath,
    expect: &'a CommitExpectation,
    content: &'a PlannedContent,
    version: &'a Version,
    size: u64,
    mode: &'a FileModeSource,
}

enum NewContent {
    InMemory(Vec<u8>),
    InFile(OpenFile),
}

fn new_move_step(from: &RelPath, to: &RelPath, stat: &DiskStat, over: Option<ReplacedFile>) -> FileStep {
    FileStep::Move {
        from: StoredPath(from.clone()),
        to: StoredPath(to.clone()),
        id: StoredInodeId::from_stat(stat),
        over,
    }
}

fn push_change(prepared: &mut PreparedPlan, path: &RelPath, kind: ChangeKind, before: PathState, after: PathState) {
    prepared.changes.push(stead_journal::RecordedChange { path: path.to_string(), kind, to: None, before, after });
}

#[cfg(test)]
mod tests;
