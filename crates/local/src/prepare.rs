//! Prepares a plan: checks its expectations again, stages new file content under temporary names, and collects the
//! steps. Preparing changes nothing visible in the workspace; the steps are applied after the journal records them.

use std::collections::HashSet;

use stead_disk::{
    DirectoryHandle, DiskError, DiskErrorKind, DiskStat, FileAttributeSource, FileType, OpenFile, StagedContentSource,
    StagedFile,
};
use stead_engine::{
    CommitError, CommitExpectation, Error, ErrorKind, FailedExpectation, FileKind, FileModeSource, NEW_FILE_MODE,
    NextStep, Plan, PlanTimeFileVersion, PlannedChange, PlannedContent, TreeSummary, Version, ops::HistoryArgs,
};
use stead_journal::{ChangeKind, PathState, RecordedChange};
use stead_path::{FileName, RelPath};

use crate::{
    errors,
    file_steps::{
        FileApplyStep, FileWriteStep, ReplacedFileRecord, RetainedVersionLocation, StagedFileRecord, StoredInodeId,
        to_stored_ns,
    },
    limits::INLINE_BYTES_MAX,
    open::LocalWorkspace,
    options::Durability,
    trash,
    tree::{to_engine_file_type, to_engine_identity, to_engine_stamp},
};

#[derive(Default)]
pub(crate) struct PreparedPlan {
    pub(crate) steps: Vec<FileApplyStep>,
    pub(crate) changes: Vec<RecordedChange>,
    /// The file versions to retain, each with its size, and with its content unless a file stores the content.
    pub(crate) retained: Vec<(Version, u64, Option<Vec<u8>>)>,
    pub(crate) trashed: Vec<PendingTrashItem>,
    pub(crate) restored: Vec<String>,
    pub(crate) notices: Vec<String>,
    pub(crate) bytes: u64,
    /// The staged files are deleted if the plan is not recorded.
    staged: Vec<(DirectoryHandle, FileName)>,
    overlay: PlanOverlay,
}

#[derive(Clone)]
pub(crate) struct PendingTrashItem {
    pub(crate) id: String,
    pub(crate) path: RelPath,
    pub(crate) tree: TreeSummary,
    pub(crate) keep_until_ms: i64,
}

/// The paths that earlier changes of a plan free or create, because the disk does not show these changes yet.
#[derive(Default)]
struct PlanOverlay {
    freed_paths: HashSet<RelPath>,
    created_paths: HashSet<RelPath>,
}

impl PlanOverlay {
    fn covers(&self, path: &RelPath) -> bool {
        let decided =
            |candidate: &RelPath| self.freed_paths.contains(candidate) || self.created_paths.contains(candidate);
        decided(path) || path.ancestors().any(|above| decided(&above))
    }
}

impl PreparedPlan {
    pub(crate) fn discard_staged(&mut self) {
        for (directory, name) in self.staged.drain(..) {
            // A staged file that cannot be deleted is hidden from listings and is deleted later.
            directory.remove_file(&name).unwrap_or_default();
        }
    }

    /// The staged files of a recorded plan are kept, because the journal refers to them.
    pub(crate) fn keep_staged(&mut self) {
        self.staged.clear();
    }

    fn push_change(&mut self, path: &RelPath, kind: ChangeKind, before: PathState, after: PathState) {
        self.changes.push(RecordedChange { path: path.to_string(), kind, to: None, before, after });
    }

    fn push_creation(&mut self, path: &RelPath, step: FileApplyStep, kind: ChangeKind, after: PathState) {
        self.steps.push(step);
        self.push_change(path, kind, PathState::Absent, after);
        self.overlay.created_paths.insert(path.clone());
    }

    fn push_removal(&mut self, path: &RelPath, step: FileApplyStep, before: PathState) {
        self.steps.push(step);
        self.push_change(path, ChangeKind::Remove, before, PathState::Absent);
        self.overlay.freed_paths.insert(path.clone());
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
                self.prepare_put(&PlannedFileWrite { path, expect, content, version, size: *size, mode }, prepared)
            }
            PlannedChange::MakeDirectory { path, mode } => {
                self.check_expectation(path, &CommitExpectation::Absent, prepared)?;
                let step = FileApplyStep::MakeDirectory { path: path.into(), mode: *mode };
                prepared.push_creation(path, step, ChangeKind::MakeDir, PathState::Directory { mode: *mode });
                Ok(())
            }
            PlannedChange::MakeLink { path, target } => {
                self.check_expectation(path, &CommitExpectation::Absent, prepared)?;
                let state = PathState::Link { target: String::from_utf8_lossy(target).into_owned() };
                let step = FileApplyStep::MakeLink { path: path.into(), target: target.clone() };
                prepared.push_creation(path, step, ChangeKind::MakeLink, state);
                Ok(())
            }
            PlannedChange::Move { from, to, expectation: expect, replaced: over, tree } => {
                self.prepare_move(from, to, expect, over, tree, prepared)
            }
            PlannedChange::Remove { path, expectation: expect, retain_until_ms, tree } => {
                let stat = self.expect_tree(path, expect, tree, prepared)?;
                self.refuse_other_mount_than_trash(path)?;
                self.sync_before_move(path)?;
                let trash = trash::new_trash_id()?;
                let id = StoredInodeId::from_stat(&stat);
                let step = FileApplyStep::Remove { path: path.into(), id, trash: trash.clone() };
                let version = match expect {
                    CommitExpectation::File(seen) => Some(seen.version.0),
                    CommitExpectation::Absent | CommitExpectation::SameEntry(_) => None,
                };
                let (files, bytes) = (tree.files, tree.bytes);
                let before = PathState::Tree { trash: Some(trash.clone()), files, bytes, version };
                prepared.push_removal(path, step, before);
                let (path, keep_until_ms) = (path.clone(), *retain_until_ms);
                prepared.trashed.push(PendingTrashItem { id: trash, path, tree: *tree, keep_until_ms });
                Ok(())
            }
            PlannedChange::RemoveDirectory { path } => {
                let stat = self.stat_for_plan(path)?.ok_or_else(|| changed(path))?;
                let (mode, id) = (stat.mode, StoredInodeId::from_stat(&stat));
                let step = FileApplyStep::RemoveDirectory { path: path.into(), id, mode };
                prepared.push_removal(path, step, PathState::Directory { mode });
                Ok(())
            }
            PlannedChange::Restore { trash, path, tree } => self.prepare_restore(trash, path, tree, prepared),
        }
    }

    fn prepare_put(&self, put: &PlannedFileWrite<'_>, prepared: &mut PreparedPlan) -> Result<(), CommitError> {
        let current = self.check_expectation(put.path, put.expect, prepared)?;
        let old = match (put.expect, current) {
            (CommitExpectation::File(seen), Some(_)) => Some((self.open_current(put.path)?, *seen)),
            (CommitExpectation::File(_) | CommitExpectation::Absent | CommitExpectation::SameEntry(_), _) => None,
        };
        let (directory_path, directory) = self.nearest_existing_directory(put.path, prepared)?;
        let source = self.load_new_content(put)?;
        let model = match put.mode {
            FileModeSource::CopyFrom(from, seen) => Some(self.open_expected(from, seen)?),
            FileModeSource::Set(_) | FileModeSource::KeepExisting => None,
        };
        let like = model.as_ref().or(old.as_ref().map(|(file, _)| file));
        let copied = match &source {
            NewContentBytesOrOpenFile::InFile(file) => Some(file),
            NewContentBytesOrOpenFile::InMemory(_) => None,
        };
        let mode = match put.mode {
            FileModeSource::Set(mode) => mode & 0o777,
            FileModeSource::KeepExisting | FileModeSource::CopyFrom(..) => {
                like.or(copied).map_or(NEW_FILE_MODE, |file| file.stat().mode & 0o777)
            }
        };
        let attributes = like.map_or(FileAttributeSource::New { mode }, FileAttributeSource::CopyFrom);
        let at = errors::at_path(put.path);
        let handle = directory.try_clone().map_err(at)?;
        let content = match &source {
            NewContentBytesOrOpenFile::InMemory(bytes) => StagedContentSource::Bytes(bytes),
            NewContentBytesOrOpenFile::InFile(file) => StagedContentSource::File(file),
        };
        let staged = directory.stage_file(content, attributes).map_err(at)?;
        prepared.staged.push((handle, staged.name().clone()));
        if let (FileModeSource::Set(_), Some(_)) = (put.mode, &old) {
            directory.set_mode(staged.name(), mode).map_err(at)?;
        }
        if !staged.lost_attributes().is_empty() {
            let lost: Vec<_> = staged.lost_attributes().iter().map(ToString::to_string).collect();
            prepared.notices.push(format!("{}: some attributes could not be copied: [{}]", put.path, lost.join(", ")));
        }
        let after = self.make_content_durable(put, source, &directory, &staged, prepared)?;
        let over = old.map(|(file, seen)| self.replaced_file(put.path, &file, &seen, prepared)).transpose()?;
        let before = over.as_ref().map_or(PathState::Absent, |(_, state)| state.clone());
        let kind = if over.is_some() { ChangeKind::Modify } else { ChangeKind::Create };
        prepared.push_change(put.path, kind, before, PathState::File { version: put.version.0, size: put.size, mode });
        prepared.steps.push(FileApplyStep::Put(FileWriteStep {
            path: put.path.into(),
            staged: StagedFileRecord {
                directory: (&directory_path).into(),
                name: (&RelPath::root().join(staged.name()).map_err(Error::from)?).into(),
                id: StoredInodeId::from_stat(staged.stat()),
                modified_ns: to_stored_ns(staged.stat().modified_ns),
            },
            over: over.map(|(replaced, _)| replaced),
            version: put.version.0,
            mode,
            after,
        }));
        prepared.bytes += put.size;
        prepared.overlay.created_paths.insert(put.path.clone());
        Ok(())
    }

    fn open_expected(&self, path: &RelPath, seen: &PlanTimeFileVersion) -> Result<OpenFile, CommitError> {
        let file = self.open_current(path)?;
        if to_engine_stamp(&file.stat().fingerprint) == seen.stamp { Ok(file) } else { Err(changed(path)) }
    }

    /// Small new content goes into the database; large new content is in a staged file, which is synced now.
    fn make_content_durable(
        &self,
        put: &PlannedFileWrite<'_>,
        source: NewContentBytesOrOpenFile,
        directory: &DirectoryHandle,
        staged: &StagedFile,
        prepared: &mut PreparedPlan,
    ) -> Result<RetainedVersionLocation, CommitError> {
        if put.size <= INLINE_BYTES_MAX {
            let bytes = match source {
                NewContentBytesOrOpenFile::InMemory(bytes) => bytes,
                NewContentBytesOrOpenFile::InFile(file) => {
                    file.read_all(INLINE_BYTES_MAX).map_err(errors::at_path(put.path))?
                }
            };
            if Version::hash_bytes(&bytes) != *put.version {
                return Err(changed(put.path));
            }
            prepared.retained.push((*put.version, put.size, Some(bytes)));
            return Ok(RetainedVersionLocation::Database);
        }
        if let NewContentBytesOrOpenFile::InFile(_) = source {
            // Another program may have changed the source during the copy, so the hash of the copy is checked.
            let (hash, _) = staged.hash().map_err(errors::at_path(put.path))?;
            if hash != *put.version.0.as_bytes() {
                return Err(changed(put.path));
            }
        }
        if self.durability == Durability::Full {
            let synced = staged.sync().and_then(|()| directory.sync());
            if let Err(error) = synced {
                self.store.mark_read_only();
                return Err(errors::error_at_path(put.path, error).into());
            }
        }
        Ok(RetainedVersionLocation::File)
    }

    fn load_new_content(&self, put: &PlannedFileWrite<'_>) -> Result<NewContentBytesOrOpenFile, CommitError> {
        match put.content {
            PlannedContent::Bytes(bytes) => Ok(NewContentBytesOrOpenFile::InMemory(bytes.clone())),
            PlannedContent::Retained(version) => {
                let dropped = || {
                    let gone =
                        format!("the requested version of {} is no longer stored; nothing was changed", put.path);
                    Error::new(ErrorKind::Expired, gone)
                        .with_next_step(NextStep::call(HistoryArgs::default(), "see which changes are still stored"))
                };
                let bytes = self.load_retained_bytes(version)?.ok_or_else(dropped)?;
                Ok(NewContentBytesOrOpenFile::InMemory(bytes))
            }
            PlannedContent::CopyOf(from, seen) => self.open_expected(from, seen).map(NewContentBytesOrOpenFile::InFile),
        }
    }

    fn replaced_file(
        &self,
        path: &RelPath,
        file: &OpenFile,
        seen: &PlanTimeFileVersion,
        prepared: &mut PreparedPlan,
    ) -> Result<(ReplacedFileRecord, PathState), CommitError> {
        let stat = file.stat();
        let retained_in = if stat.size <= INLINE_BYTES_MAX {
            let bytes = file.read_all(INLINE_BYTES_MAX).map_err(errors::at_path(path))?;
            if Version::hash_bytes(&bytes) != seen.version {
                return Err(changed(path));
            }
            prepared.retained.push((seen.version, stat.size, Some(bytes)));
            RetainedVersionLocation::Database
        } else {
            prepared.retained.push((seen.version, stat.size, None));
            RetainedVersionLocation::File
        };
        if stat.hard_links > 1 {
            let notice = format!("{path} had {} hard links; the other links keep the old content", stat.hard_links);
            prepared.notices.push(notice);
        }
        let state = PathState::File { version: seen.version.0, size: stat.size, mode: stat.mode };
        let replaced = ReplacedFileRecord {
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
        let target = self.check_expectation(to, over, prepared)?;
        self.refuse_rename_across_mounts(from, to)?;
        self.sync_before_move(from)?;
        self.sync_before_move(to)?;
        let mut step_over = None;
        if let (CommitExpectation::File(seen), Some(_)) = (over, target) {
            let file = self.open_current(to)?;
            let (replaced, state) = self.replaced_file(to, &file, seen, prepared)?;
            prepared.push_change(to, ChangeKind::Remove, state, PathState::Absent);
            step_over = Some(replaced);
        }
        let id = StoredInodeId::from_stat(&stat);
        prepared.steps.push(FileApplyStep::Move { from: from.into(), to: to.into(), id, over: step_over });
        let state = self.path_state(from, &stat, expect, tree)?;
        prepared.changes.push(RecordedChange {
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

    /// Recent changes of a path are synced before the path is moved or replaced by a move. Without the sync, recovery
    /// after a power cut could create a moved file a second time at its old path.
    fn sync_before_move(&self, path: &RelPath) -> Result<(), Error> {
        if self.durability == Durability::Fast || !self.has_unsynced_changes(path)? {
            return Ok(());
        }
        self.mark_synced_entries()?;
        // The remaining unsynced entries belong to other processes, but their data must also be on disk.
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
        let gone = || {
            Error::new(ErrorKind::NotFound, format!("{id} is no longer in the trash; nothing was changed"))
                .with_next_step(NextStep::call(HistoryArgs::default(), "see whether it was restored"))
        };
        let name = FileName::new(id.as_bytes()).map_err(|_| gone())?;
        let found = self.trash_directory.with(|trash| trash::find_item(trash, &name, id, tree));
        let (stat, after) = found.map_err(|error| trash::moved_or_failed(path, error))?.ok_or_else(gone)?;
        let inode = StoredInodeId::from_stat(&stat);
        let step = FileApplyStep::Restore { path: path.into(), id: inode, trash: id.to_owned() };
        prepared.push_creation(path, step, ChangeKind::Create, after);
        prepared.restored.push(id.to_owned());
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
                let target = self.root.read_link(path).map_err(|error| changed_or_failed(path, error))?;
                PathState::Link { target: String::from_utf8_lossy(&target).into_owned() }
            }
            (FileKind::File | FileKind::Directory | FileKind::Special, _) => {
                PathState::Tree { trash: None, files: tree.files, bytes: tree.bytes, version: None }
            }
        })
    }

    fn check_expectation(
        &self,
        path: &RelPath,
        expect: &CommitExpectation,
        prepared: &PreparedPlan,
    ) -> Result<Option<DiskStat>, CommitError> {
        if prepared.overlay.covers(path) {
            // The plan itself creates or removes the path, so no file that was seen before can be expected there.
            return match expect {
                CommitExpectation::Absent => Ok(None),
                CommitExpectation::File(_) | CommitExpectation::SameEntry(_) => Err(changed(path)),
            };
        }
        let stat = self.stat_for_plan(path)?;
        match (expect, stat) {
            (CommitExpectation::Absent, None) => Ok(None),
            (CommitExpectation::File(seen), Some(stat)) => {
                let is_same = to_engine_stamp(&stat.fingerprint) == seen.stamp
                    || (stat.file_type == FileType::RegularFile && self.has_version(path, &seen.version)?);
                if is_same { Ok(Some(stat)) } else { Err(changed(path)) }
            }
            (CommitExpectation::SameEntry(identity), Some(stat))
                if to_engine_identity(stat.fingerprint.id) == *identity =>
            {
                Ok(Some(stat))
            }
            (CommitExpectation::Absent, Some(_))
            | (CommitExpectation::File(_), None)
            | (CommitExpectation::SameEntry(_), _) => Err(changed(path)),
        }
    }

    fn has_version(&self, path: &RelPath, version: &Version) -> Result<bool, CommitError> {
        let (hash, _) = self.open_current(path)?.hash().map_err(errors::at_path(path))?;
        Ok(hash == *version.0.as_bytes())
    }

    /// A plan identifies a symlink or directory only by its inode number, which another type of file may have reused.
    fn expect_tree(
        &self,
        path: &RelPath,
        expect: &CommitExpectation,
        tree: &TreeSummary,
        prepared: &PreparedPlan,
    ) -> Result<DiskStat, CommitError> {
        match self.check_expectation(path, expect, prepared)? {
            Some(stat) if to_engine_file_type(stat.file_type) == tree.kind => Ok(stat),
            Some(_) | None => Err(changed(path)),
        }
    }

    fn stat_for_plan(&self, path: &RelPath) -> Result<Option<DiskStat>, CommitError> {
        self.root.stat(path).map_err(|error| changed_or_failed(path, error))
    }

    fn open_current(&self, path: &RelPath) -> Result<OpenFile, CommitError> {
        self.root.open_file(path).map_err(|error| changed_or_failed(path, error))
    }

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
                Err(error) => return Err(changed_or_failed(&candidate, error)),
            }
        }
        Err(changed(path))
    }
}

fn changed(path: &RelPath) -> CommitError {
    CommitError::ExpectationFailed(FailedExpectation::Path(path.clone()))
}

/// A path that vanished or became a symlink counts as changed since the plan was made.
fn changed_or_failed(path: &RelPath, error: DiskError) -> CommitError {
    let changed_kinds = [DiskErrorKind::ChangedConcurrently, DiskErrorKind::IsSymlink, DiskErrorKind::NotFound];
    if changed_kinds.contains(&error.kind) {
        return changed(path);
    }
    CommitError::Failed(errors::error_at_path(path, error))
}

struct PlannedFileWrite<'a> {
    path: &'a RelPath,
    expect: &'a CommitExpectation,
    content: &'a PlannedContent,
    version: &'a Version,
    size: u64,
    mode: &'a FileModeSource,
}

enum NewContentBytesOrOpenFile {
    InMemory(Vec<u8>),
    InFile(OpenFile),
}

#[cfg(test)]
mod tests {
    use stead_engine::Tree;

    use super::*;
    use crate::LocalWorkspaceOptions;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test changes the directory from outside")]
    fn file_with_the_inode_number_of_a_planned_link_is_neither_removed_nor_moved() {
        let directory = tempfile::tempdir().unwrap();
        let files = directory.path().join("files");
        std::fs::create_dir(&files).unwrap();
        std::fs::write(files.join("leaf"), "text").unwrap();
        let workspace =
            LocalWorkspace::open(LocalWorkspaceOptions::new(files, directory.path().join("state"))).unwrap();
        let path = |name: &str| RelPath::from_wire(name).unwrap();
        let from = path("leaf");
        let expect = CommitExpectation::SameEntry(workspace.stat(&from).unwrap().unwrap().identity);
        let tree = TreeSummary { kind: FileKind::Link, files: 1, directories: 0, bytes: 4 };
        let to_other = PlannedChange::Move {
            from: from.clone(),
            to: path("other"),
            expectation: expect,
            replaced: CommitExpectation::Absent,
            tree,
        };
        let to_trash =
            PlannedChange::Remove { path: from.clone(), expectation: expect, retain_until_ms: i64::MAX, tree };
        for change in [to_other, to_trash] {
            let prepared = prepare_plan(&workspace, &Plan::new(vec![change]));
            assert!(
                matches!(prepared, Err(CommitError::ExpectationFailed(FailedExpectation::Path(moved))) if moved == from)
            );
        }
    }
}
