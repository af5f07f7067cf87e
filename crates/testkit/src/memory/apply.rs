//! Applies a plan to a copy of the memory tree. The copy replaces the tree only if every change of the plan succeeds.

use stead_engine::{
    CommitError, CommitExpectation, Error, ErrorKind, FailedExpectation, FileModeSource, NEW_FILE_MODE, Plan,
    PlannedChange, PlannedContent, TrashItem, TreeSummary as Amount, Version,
};
use stead_journal::{ChangeKind, PathState as Recorded};
use stead_path::RelPath;

use super::{
    MemoryWorkspaceState,
    tree::{InMemoryTreeNodeContent, InMemoryWorkspaceSubtree, MemoryNode, MemoryTree},
};

const MODE_BITS: u32 = 0o777;

#[derive(Clone)]
pub(super) struct MemoryTrashItem {
    pub(super) item: TrashItem,
    subtree: InMemoryWorkspaceSubtree,
}

pub(super) struct MemoryPlanApplyResult {
    pub(super) tree: MemoryTree,
    pub(super) changes: Vec<stead_journal::RecordedChange>,
    pub(super) retained: Vec<(Version, Vec<u8>)>,
    pub(super) trashed: Vec<MemoryTrashItem>,
    pub(super) restored: Vec<String>,
    pub(super) notices: Vec<String>,
    pub(super) written_bytes: u64,
}

pub(super) fn apply_plan(
    state: &MemoryWorkspaceState,
    plan: &Plan,
    owner: &str,
) -> Result<MemoryPlanApplyResult, CommitError> {
    let mut applying = MemoryPlanApplication {
        state,
        owner,
        result: MemoryPlanApplyResult {
            tree: state.tree.clone(),
            changes: Vec::new(),
            retained: Vec::new(),
            trashed: Vec::new(),
            restored: Vec::new(),
            notices: Vec::new(),
            written_bytes: 0,
        },
    };
    plan.changes.iter().try_for_each(|change| applying.apply_change(change))?;
    Ok(applying.result)
}

struct MemoryPlanApplication<'a> {
    state: &'a MemoryWorkspaceState,
    owner: &'a str,
    result: MemoryPlanApplyResult,
}

impl MemoryPlanApplication<'_> {
    fn apply_change(&mut self, change: &PlannedChange) -> Result<(), CommitError> {
        match change {
            PlannedChange::Put { path, expectation: expect, content, version, mode, size: _ } => {
                self.put_file(path, *expect, content, version, mode)
            }
            PlannedChange::MakeDirectory { path, mode } => {
                self.make_item(path, InMemoryTreeNodeContent::Directory, *mode)?;
                self.record_change(path, ChangeKind::MakeDir, Recorded::Absent, Recorded::Directory { mode: *mode });
                Ok(())
            }
            PlannedChange::MakeLink { path, target } => {
                self.make_item(path, InMemoryTreeNodeContent::Link(target.clone()), MODE_BITS)?;
                let after = Recorded::Link { target: String::from_utf8_lossy(target).into_owned() };
                self.record_change(path, ChangeKind::MakeLink, Recorded::Absent, after);
                Ok(())
            }
            PlannedChange::Move { from, to, expectation: expect, replaced: over, tree } => {
                self.check_expected(from, *expect)?;
                self.check_expected(to, *over)?;
                self.move_item(from, to, tree)
            }
            PlannedChange::Remove { path, expectation: expect, retain_until_ms: keep_until_ms, tree } => {
                self.check_expected(path, *expect)?;
                self.remove_item(path, *keep_until_ms, tree);
                Ok(())
            }
            PlannedChange::RemoveDirectory { path } => {
                let Some(mode) = self.result.tree.get(path).map(|placed| placed.mode) else {
                    return Err(changed_error(path));
                };
                if !self.result.tree.list(path)?.is_empty() {
                    return Err(changed_error(path));
                }
                self.result.tree.take_subtree(path);
                self.record_change(path, ChangeKind::Remove, Recorded::Directory { mode }, Recorded::Absent);
                Ok(())
            }
            PlannedChange::Restore { trash, path, tree: _ } => self.restore_item(trash, path),
        }
    }

    fn put_file(
        &mut self,
        path: &RelPath,
        expect: CommitExpectation,
        content: &PlannedContent,
        version: &Version,
        mode: &FileModeSource,
    ) -> Result<(), CommitError> {
        self.check_expected(path, expect)?;
        self.check_parent(path)?;
        let (bytes, source_mode) = self.content_bytes(content)?;
        if Version::hash_bytes(&bytes) != *version {
            return Err(changed_error(path));
        }
        let old = self.result.tree.get(path).cloned();
        let mut before = Recorded::Absent;
        if let Some(old) = &old {
            self.retain_bytes(old);
            if let InMemoryTreeNodeContent::File(bytes) = &old.item {
                before = file_state(bytes, old.mode);
            }
            if old.links > 1 {
                self.result
                    .notices
                    .push(format!("{path} had {} hard links; the other links keep the old content", old.links));
            }
        }
        let kind = if old.is_some() { ChangeKind::Modify } else { ChangeKind::Create };
        let mode = match (mode, old) {
            (FileModeSource::Set(mode), _) => *mode,
            (FileModeSource::CopyFrom(from, seen), _) => {
                // The tree from before the plan is read, because an earlier change of the plan may have replaced the
                // file.
                let model = self.state.tree.get(from).filter(|model| match &model.item {
                    InMemoryTreeNodeContent::File(bytes) => Version::hash_bytes(bytes) == seen.version,
                    InMemoryTreeNodeContent::Directory
                    | InMemoryTreeNodeContent::Link(_)
                    | InMemoryTreeNodeContent::Special => false,
                });
                model.ok_or_else(|| changed_error(from))?.mode
            }
            (FileModeSource::KeepExisting, Some(old)) => old.mode,
            (FileModeSource::KeepExisting, None) => source_mode.unwrap_or(NEW_FILE_MODE),
        };
        let after = file_state(&bytes, mode & MODE_BITS);
        self.result.written_bytes += bytes.len() as u64;
        self.result.retained.push((*version, bytes.clone()));
        self.result.tree.put(path, InMemoryTreeNodeContent::File(bytes), mode & MODE_BITS, self.state.now_ms);
        self.record_change(path, kind, before, after);
        Ok(())
    }

    fn move_item(&mut self, from: &RelPath, to: &RelPath, tree: &Amount) -> Result<(), CommitError> {
        self.check_parent(to)?;
        let before = self.journal_state_at(from, tree, None)?;
        if let Some(replaced) = self.result.tree.get(to).cloned() {
            let lost = self.journal_state_at(to, tree, None)?;
            self.retain_bytes(&replaced);
            self.result.tree.take_subtree(to);
            self.record_change(to, ChangeKind::Remove, lost, Recorded::Absent);
        }
        let branch = self.result.tree.take_subtree(from);
        self.result.tree.insert_subtree(to, branch)?;
        let (path, to, after) = (from.to_string(), Some(to.to_string()), before.clone());
        self.result.changes.push(stead_journal::RecordedChange { path, kind: ChangeKind::Rename, to, before, after });
        Ok(())
    }

    fn remove_item(&mut self, path: &RelPath, keep_until_ms: i64, tree: &Amount) {
        let id = format!("t{}-{}", self.state.journal.head().number + 1, self.result.trashed.len());
        let facts = TrashItem {
            id: id.clone(),
            owner: self.owner.to_owned(),
            path: path.clone(),
            summary: *tree,
            removed_ms: self.state.now_ms,
            retain_until_ms: keep_until_ms,
            entry: 0,
        };
        let version = match self.result.tree.get(path).map(|placed| &placed.item) {
            Some(InMemoryTreeNodeContent::File(bytes)) => Some(Version::hash_bytes(bytes).0),
            Some(
                InMemoryTreeNodeContent::Link(_)
                | InMemoryTreeNodeContent::Directory
                | InMemoryTreeNodeContent::Special,
            )
            | None => None,
        };
        let branch = self.result.tree.take_subtree(path);
        self.result.trashed.push(MemoryTrashItem { item: facts, subtree: branch });
        let before = Recorded::Tree { trash: Some(id), files: tree.files, bytes: tree.bytes, version };
        self.record_change(path, ChangeKind::Remove, before, Recorded::Absent);
    }

    fn restore_item(&mut self, id: &str, path: &RelPath) -> Result<(), CommitError> {
        self.check_expected(path, CommitExpectation::Absent)?;
        self.check_parent(path)?;
        let gone = || Error::new(ErrorKind::NotFound, format!("{id} is not in the trash"));
        let item = self.state.trash.get(id).cloned().ok_or_else(gone)?;
        self.result.tree.insert_subtree(path, item.subtree)?;
        self.result.restored.push(id.to_owned());
        let after = self.journal_state_at(path, &item.item.summary, Some(id))?;
        self.record_change(path, ChangeKind::Create, Recorded::Absent, after);
        Ok(())
    }

    fn make_item(&mut self, path: &RelPath, item: InMemoryTreeNodeContent, mode: u32) -> Result<(), CommitError> {
        self.check_expected(path, CommitExpectation::Absent)?;
        self.check_parent(path)?;
        self.result.tree.put(path, item, mode, self.state.now_ms);
        Ok(())
    }

    fn content_bytes(&self, content: &PlannedContent) -> Result<(Vec<u8>, Option<u32>), CommitError> {
        match content {
            PlannedContent::Bytes(bytes) => Ok((bytes.clone(), None)),
            PlannedContent::Retained(version) => match self.state.retained_versions.get(version) {
                Some(retained) => Ok((retained.bytes.clone(), None)),
                None => Err(Error::new(ErrorKind::Expired, "the content is no longer stored").into()),
            },
            PlannedContent::CopyOf(from, seen) => match self.result.tree.get(from) {
                Some(MemoryNode { item: InMemoryTreeNodeContent::File(bytes), mode, .. })
                    if Version::hash_bytes(bytes) == seen.version =>
                {
                    Ok((bytes.clone(), Some(*mode)))
                }
                Some(_) | None => Err(changed_error(from)),
            },
        }
    }

    /// Checks a plan's expectation about a path, after the earlier changes of the plan were applied.
    fn check_expected(&self, path: &RelPath, expect: CommitExpectation) -> Result<(), CommitError> {
        let fits = match (expect, self.result.tree.get(path)) {
            (CommitExpectation::Absent, None) => true,
            (CommitExpectation::File(seen), Some(MemoryNode { item: InMemoryTreeNodeContent::File(bytes), .. })) => {
                Version::hash_bytes(bytes) == seen.version
            }
            (CommitExpectation::SameEntry(identity), Some(placed)) => placed.node().identity == identity,
            (CommitExpectation::Absent, Some(_))
            | (CommitExpectation::File(_), Some(_) | None)
            | (CommitExpectation::SameEntry(_), None) => false,
        };
        if fits { Ok(()) } else { Err(changed_error(path)) }
    }

    fn check_parent(&self, path: &RelPath) -> Result<(), CommitError> {
        if self.result.tree.has_parent_directory(path) { Ok(()) } else { Err(changed_error(path)) }
    }

    fn journal_state_at(&self, path: &RelPath, tree: &Amount, trash: Option<&str>) -> Result<Recorded, CommitError> {
        let placed = self.result.tree.get(path).ok_or_else(|| changed_error(path))?;
        Ok(match &placed.item {
            InMemoryTreeNodeContent::File(bytes) => file_state(bytes, placed.mode),
            InMemoryTreeNodeContent::Link(target) => {
                Recorded::Link { target: String::from_utf8_lossy(target).into_owned() }
            }
            InMemoryTreeNodeContent::Directory | InMemoryTreeNodeContent::Special => {
                Recorded::Tree { trash: trash.map(str::to_owned), files: tree.files, bytes: tree.bytes, version: None }
            }
        })
    }

    fn retain_bytes(&mut self, placed: &MemoryNode) {
        if let InMemoryTreeNodeContent::File(bytes) = &placed.item {
            self.result.retained.push((Version::hash_bytes(bytes), bytes.clone()));
        }
    }

    fn record_change(&mut self, path: &RelPath, kind: ChangeKind, before: Recorded, after: Recorded) {
        self.result.changes.push(stead_journal::RecordedChange {
            path: path.to_string(),
            kind,
            to: None,
            before,
            after,
        });
    }
}

fn file_state(bytes: &[u8], mode: u32) -> Recorded {
    Recorded::File { version: Version::hash_bytes(bytes).0, size: bytes.len() as u64, mode }
}

fn changed_error(path: &RelPath) -> CommitError {
    CommitError::ExpectationFailed(FailedExpectation::Path(path.clone()))
}
