//! Plans the inverse of a journal entry against the current files, change by change in reverse order. An undo merges
//! later changes of other lines in a text file, and skips and reports all other changed files. An undo never overwrites
//! a later change and never restores set-id bits.
//!
//! The changes of an undo plan are applied in order, so a change may use a path that an earlier change freed.

mod file_content;
mod projected_tree;
mod trash_lookup;

use std::collections::HashSet;

use stead_journal::{ChangeKind, JournalEntry, PathState};
use stead_path::RelPath;

use self::{
    file_content::RecordedFileMetadata,
    projected_tree::{EntryAfterPlan, TreeAfterPlan},
    trash_lookup::TrashIdAndJournalEntry,
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::{PathAccessRequest, RequestedAccessKind, ResolvedTarget},
    ops::planning::{self, PERMISSION_BITS},
    plan::{CommitExpectation, FileKind, FileModeSource, PlannedChange, PlannedContent},
    tree::{FileStat, FinalSymlink},
    version::Version,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangedFileRevertPolicy {
    /// The undo is merged with later changes of the file that do not overlap.
    Merge,
    Leave,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RevertSkipReason {
    AlreadyGone,
    AlreadyReverted,
    Changed,
    SameLinesChanged,
    PathOccupied,
    OriginOccupied,
    DifferentKind,
    NotEmpty,
    VersionNotRetained,
    NotInTrash,
    /// A parent of the path is now a symbolic link, so the path of the undone change leads elsewhere.
    PathRedirected,
    ParentNotDirectory,
    /// Another change of the undo plan already uses the path.
    ChangedTwice,
}

impl RevertSkipReason {
    pub(crate) fn blocks_redo(self) -> bool {
        match self {
            RevertSkipReason::AlreadyGone | RevertSkipReason::AlreadyReverted | RevertSkipReason::NotEmpty => false,
            RevertSkipReason::Changed
            | RevertSkipReason::SameLinesChanged
            | RevertSkipReason::PathOccupied
            | RevertSkipReason::OriginOccupied
            | RevertSkipReason::DifferentKind
            | RevertSkipReason::VersionNotRetained
            | RevertSkipReason::NotInTrash
            | RevertSkipReason::PathRedirected
            | RevertSkipReason::ParentNotDirectory
            | RevertSkipReason::ChangedTwice => true,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RevertSkipReason::AlreadyGone => "it is already gone",
            RevertSkipReason::AlreadyReverted => "it is already in that state",
            RevertSkipReason::Changed => "it was changed since",
            RevertSkipReason::SameLinesChanged => "it was changed since, in the same lines",
            RevertSkipReason::PathOccupied => "something else is there now",
            RevertSkipReason::OriginOccupied => "its old path is occupied",
            RevertSkipReason::DifferentKind => "its type changed",
            RevertSkipReason::NotEmpty => "it is not empty",
            RevertSkipReason::VersionNotRetained => "its old content is no longer stored",
            RevertSkipReason::NotInTrash => "it is no longer in the trash",
            RevertSkipReason::PathRedirected => "its path now leads elsewhere through a link",
            RevertSkipReason::ParentNotDirectory => "a parent is no longer a directory",
            RevertSkipReason::ChangedTwice => "the same entry changed it more than once",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SkippedRevert {
    pub(crate) path: RelPath,
    pub(crate) reason: RevertSkipReason,
}

#[derive(Debug, Default)]
pub(crate) struct InversePlan {
    pub(crate) changes: Vec<PlannedChange>,
    pub(crate) skipped: Vec<SkippedRevert>,
    pub(crate) merged: Vec<RelPath>,
}

/// A recorded change that an undo reverts, checked before its paths are locked and again during planning.
#[derive(Debug)]
pub(crate) struct RecordedChangeToRevert {
    path: RelPath,
    to: Option<RelPath>,
    kind: ChangeKind,
    before: PathState,
    after: PathState,
    entry: u64,
    skip_reason: Option<RevertSkipReason>,
}

pub(crate) fn revert_steps(
    context: &CallContext<'_>,
    entry: &JournalEntry,
) -> Result<Vec<RecordedChangeToRevert>, Error> {
    entry.changes.iter().rev().map(|change| revert_step(context, change, entry.number)).collect()
}

fn revert_step(
    context: &CallContext<'_>,
    change: &stead_journal::RecordedChange,
    entry: u64,
) -> Result<RecordedChangeToRevert, Error> {
    context.control.check()?;
    let path = RelPath::from_wire(&change.path)?;
    let to = change.to.as_deref().map(RelPath::from_wire).transpose()?;
    let mut skip_reason = None;
    let source = match change.kind {
        // Reverting a copy does not touch the source.
        ChangeKind::Copy => None,
        ChangeKind::Create
        | ChangeKind::Modify
        | ChangeKind::Remove
        | ChangeKind::Rename
        | ChangeKind::MakeDir
        | ChangeKind::MakeLink
        | ChangeKind::SetMode
        | ChangeKind::Rescan => Some(&path),
    };
    for path in source.into_iter().chain(&to) {
        match context.workspace().locate(path, FinalSymlink::Keep) {
            Ok(located) if located.path == *path => {}
            Ok(_) => skip_reason = Some(RevertSkipReason::PathRedirected),
            Err(error) if error.kind == ErrorKind::NotDirectory => {
                skip_reason = Some(RevertSkipReason::ParentNotDirectory)
            }
            Err(error) => return Err(error),
        }
    }
    let (kind, before, after) = (change.kind, change.before.clone(), change.after.clone());
    Ok(RecordedChangeToRevert { path, to, kind, before, after, entry, skip_reason })
}

pub(crate) fn requested_paths(steps: &[RecordedChangeToRevert]) -> Vec<PathAccessRequest> {
    let remove = |path: &RelPath| {
        PathAccessRequest::from_recorded_path(path.clone(), RequestedAccessKind::Remove).including_subtree()
    };
    let write = |path: &RelPath| PathAccessRequest::from_recorded_path(path.clone(), RequestedAccessKind::Write);
    let step_requests = |step: &RecordedChangeToRevert| match step.kind {
        ChangeKind::Create | ChangeKind::MakeDir | ChangeKind::MakeLink => vec![remove(&step.path)],
        ChangeKind::Modify | ChangeKind::SetMode | ChangeKind::Remove | ChangeKind::Rescan => vec![write(&step.path)],
        ChangeKind::Rename => vec![remove(step.current_path()), write(&step.path)],
        ChangeKind::Copy => vec![remove(step.current_path())],
    };
    steps.iter().filter(|step| step.skip_reason.is_none()).flat_map(step_requests).collect()
}

pub(crate) fn plan_inverse(
    context: &CallContext<'_>,
    steps: &[RecordedChangeToRevert],
    targets: &[ResolvedTarget],
    policy: ChangedFileRevertPolicy,
) -> Result<InversePlan, Error> {
    let mut planner = InversePlanner {
        context,
        policy,
        projected_tree: TreeAfterPlan::new(context),
        inverse: InversePlan::default(),
    };
    let resolved: HashSet<&RelPath> = targets.iter().map(|target| &target.path).collect();
    for step in steps {
        context.control.check()?;
        let reason = match step.skip_reason {
            Some(reason) => Some(reason),
            None if !step.paths().all(|path| resolved.contains(path)) => Some(RevertSkipReason::PathRedirected),
            None => planner.revert(step)?,
        };
        if let Some(reason) = reason {
            planner.inverse.skipped.push(SkippedRevert { path: step.current_path().clone(), reason });
        }
    }
    Ok(planner.inverse)
}

impl RecordedChangeToRevert {
    fn current_path(&self) -> &RelPath {
        self.to.as_ref().unwrap_or(&self.path)
    }

    fn paths(&self) -> impl Iterator<Item = &RelPath> {
        let origin = (self.kind == ChangeKind::Rename).then_some(&self.path);
        std::iter::once(self.current_path()).chain(origin)
    }
}

/// The result of planning one undo step: the reason for skipping the step, or `None` if the step is planned.
type RevertStepPlanningResult = Result<Option<RevertSkipReason>, Error>;

struct InversePlanner<'a> {
    context: &'a CallContext<'a>,
    policy: ChangedFileRevertPolicy,
    projected_tree: TreeAfterPlan<'a>,
    inverse: InversePlan,
}

impl InversePlanner<'_> {
    fn revert(&mut self, step: &RecordedChangeToRevert) -> RevertStepPlanningResult {
        if step.kind == ChangeKind::Rename {
            return self.revert_move(&step.path, step.current_path(), &step.after);
        }
        let path = step.current_path();
        match (&step.before, &step.after) {
            (PathState::Absent, PathState::Absent) => Ok(None),
            (PathState::Absent, PathState::Directory { .. }) => self.revert_directory_creation(path),
            (PathState::Absent, after) => self.revert_creation(path, after),
            (before, PathState::Absent) => self.revert_removal(path, before, step.entry),
            (PathState::File { version, size, mode }, PathState::File { version: new_version, mode: new_mode, .. }) => {
                let before = RecordedFileMetadata { version: Version(*version), size: *size, mode: *mode };
                let after = RecordedFileMetadata { version: Version(*new_version), size: *size, mode: *new_mode };
                self.revert_modification(path, before, after)
            }
            (
                PathState::File { .. }
                | PathState::Directory { .. }
                | PathState::Link { .. }
                | PathState::Tree { .. }
                | PathState::Unknown { .. },
                PathState::File { .. }
                | PathState::Directory { .. }
                | PathState::Link { .. }
                | PathState::Tree { .. }
                | PathState::Unknown { .. },
            ) => Ok(Some(RevertSkipReason::DifferentKind)),
        }
    }

    fn revert_creation(&mut self, path: &RelPath, after: &PathState) -> RevertStepPlanningResult {
        let stat = match self.projected_tree.entry_at(path)? {
            EntryAfterPlan::Existing(stat) => stat,
            EntryAfterPlan::Absent => return Ok(Some(RevertSkipReason::AlreadyGone)),
            EntryAfterPlan::Planned(_) => return Ok(Some(RevertSkipReason::ChangedTwice)),
        };
        let expectation = planning::expectation_at(self.context, path, stat, None)?;
        let tree = planning::count_tree(self.context, path, stat)?;
        let unchanged = match (after, stat.kind) {
            (PathState::File { version, .. }, FileKind::File) => {
                planning::expected_version(&expectation).is_some_and(|seen| seen.version == Version(*version))
            }
            (PathState::Link { target }, FileKind::Link) => {
                self.context.workspace().read_link(path)? == target.as_bytes()
            }
            (PathState::Tree { files, bytes, .. }, _) => (tree.files, tree.bytes) == (*files, *bytes),
            (
                PathState::File { .. }
                | PathState::Link { .. }
                | PathState::Directory { .. }
                | PathState::Absent
                | PathState::Unknown { .. },
                _,
            ) => return Ok(Some(RevertSkipReason::DifferentKind)),
        };
        if !unchanged {
            return Ok(Some(RevertSkipReason::Changed));
        }
        let retain_until_ms = planning::trash_deadline_ms(self.context);
        self.projected_tree.mark_removed(path);
        self.inverse.changes.push(PlannedChange::Remove { path: path.clone(), expectation, retain_until_ms, tree });
        Ok(None)
    }

    fn revert_directory_creation(&mut self, path: &RelPath) -> RevertStepPlanningResult {
        Ok(match self.projected_tree.entry_at(path)? {
            EntryAfterPlan::Absent => Some(RevertSkipReason::AlreadyGone),
            EntryAfterPlan::Planned(_) => Some(RevertSkipReason::ChangedTwice),
            EntryAfterPlan::Existing(stat) if stat.kind != FileKind::Directory => Some(RevertSkipReason::DifferentKind),
            EntryAfterPlan::Existing(_) if !self.projected_tree.is_empty(path)? => Some(RevertSkipReason::NotEmpty),
            EntryAfterPlan::Existing(_) => {
                self.projected_tree.mark_removed(path);
                self.inverse.changes.push(PlannedChange::RemoveDirectory { path: path.clone() });
                None
            }
        })
    }

    fn revert_removal(&mut self, path: &RelPath, before: &PathState, entry: u64) -> RevertStepPlanningResult {
        match (self.projected_tree.entry_at(path)?, before) {
            (EntryAfterPlan::Absent, _) => {}
            (EntryAfterPlan::Existing(FileStat { kind: FileKind::Directory, .. }), PathState::Directory { .. }) => {
                return Ok(Some(RevertSkipReason::AlreadyReverted));
            }
            (EntryAfterPlan::Existing(_) | EntryAfterPlan::Planned(_), _) => {
                return Ok(Some(RevertSkipReason::PathOccupied));
            }
        }
        let (change, kind) = match before {
            PathState::Tree { trash: id, .. } => {
                let item = match id {
                    Some(id) => {
                        trash_lookup::find_trash_item(self.context, TrashIdAndJournalEntry { id: id.clone(), entry })?
                    }
                    None => None,
                };
                let Some(item) = item else { return Ok(Some(RevertSkipReason::NotInTrash)) };
                (PlannedChange::Restore { trash: item.id, path: path.clone(), tree: item.summary }, item.summary.kind)
            }
            PathState::File { version, size, mode } => {
                let version = Version(*version);
                if self.context.workspace().retained_bytes(path, &version)?.is_none() {
                    return Ok(Some(RevertSkipReason::VersionNotRetained));
                }
                let content = PlannedContent::Retained(version);
                let mode = FileModeSource::Set(mode & PERMISSION_BITS);
                let (path, expectation) = (path.clone(), CommitExpectation::Absent);
                (PlannedChange::Put { path, expectation, content, version, size: *size, mode }, FileKind::File)
            }
            PathState::Directory { mode } => {
                (PlannedChange::MakeDirectory { path: path.clone(), mode: mode & PERMISSION_BITS }, FileKind::Directory)
            }
            // A replacement character means that the journal does not have the original bytes of the target.
            PathState::Link { target } if target.contains(char::REPLACEMENT_CHARACTER) => {
                return Ok(Some(RevertSkipReason::VersionNotRetained));
            }
            PathState::Link { target } => {
                (PlannedChange::MakeLink { path: path.clone(), target: target.clone().into_bytes() }, FileKind::Link)
            }
            PathState::Absent => return Ok(None),
            PathState::Unknown { .. } => return Ok(Some(RevertSkipReason::VersionNotRetained)),
        };
        if let Some(reason) = self.create_parents(path)? {
            return Ok(Some(reason));
        }
        self.projected_tree.mark_created(path, kind);
        self.inverse.changes.push(change);
        Ok(None)
    }

    fn revert_move(&mut self, from: &RelPath, to: &RelPath, after: &PathState) -> RevertStepPlanningResult {
        let stat = match self.projected_tree.entry_at(to)? {
            EntryAfterPlan::Existing(stat) => stat,
            EntryAfterPlan::Absent => return Ok(Some(RevertSkipReason::AlreadyGone)),
            EntryAfterPlan::Planned(_) => return Ok(Some(RevertSkipReason::ChangedTwice)),
        };
        if self.projected_tree.entry_at(from)? != EntryAfterPlan::Absent {
            return Ok(Some(RevertSkipReason::OriginOccupied));
        }
        let expectation = planning::expectation_at(self.context, to, stat, None)?;
        let problem = match (after, stat.kind) {
            (PathState::File { version, .. }, FileKind::File) => {
                let same =
                    planning::expected_version(&expectation).is_some_and(|seen| seen.version == Version(*version));
                (!same && self.policy == ChangedFileRevertPolicy::Leave).then_some(RevertSkipReason::Changed)
            }
            (PathState::Directory { .. }, FileKind::Directory)
            | (PathState::Link { .. }, FileKind::Link)
            | (PathState::Tree { .. }, _) => None,
            (
                PathState::File { .. }
                | PathState::Directory { .. }
                | PathState::Link { .. }
                | PathState::Absent
                | PathState::Unknown { .. },
                _,
            ) => Some(RevertSkipReason::DifferentKind),
        };
        if let Some(reason) = problem {
            return Ok(Some(reason));
        }
        let tree = planning::count_tree(self.context, to, stat)?;
        if let Some(reason) = self.create_parents(from)? {
            return Ok(Some(reason));
        }
        self.projected_tree.mark_moved(to, from, stat.kind);
        let (from, to, replaced) = (to.clone(), from.clone(), CommitExpectation::Absent);
        self.inverse.changes.push(PlannedChange::Move { from, to, expectation, replaced, tree });
        Ok(None)
    }

    fn create_parents(&mut self, path: &RelPath) -> RevertStepPlanningResult {
        let tree = &self.projected_tree;
        match planning::missing_parents(path, |above| Ok(tree.entry_at(above)?.kind())) {
            Ok(missing) => {
                for change in &missing {
                    change.paths().for_each(|above| self.projected_tree.mark_created(above, FileKind::Directory));
                }
                self.inverse.changes.extend(missing);
                Ok(None)
            }
            Err(error) if error.kind == ErrorKind::NotDirectory => Ok(Some(RevertSkipReason::ParentNotDirectory)),
            Err(error) => Err(error),
        }
    }
}
