//! `undo` reverts one journal entry with all of its files. Without an argument, `undo` reverts the newest entry that is
//! not undone; repeated calls go further back. `redo` applies an undone entry again, and fails if one of the files
//! changed since the undo. A person can undo any journal entry, an agent only its own entries.

mod inverse;

use serde::{Deserialize, Serialize};
use stead_journal::{JournalEntry, JournalEntryRelation};
use stead_path::RelPath;

use self::inverse::{ChangedFileRevertPolicy, InversePlan, RecordedChangeToRevert, RevertSkipReason};
use super::visible_change::{JournalEntryArgument, VisibleChange};
use crate::{
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedPaths, ResolvedTarget},
    ops::HistoryArgs,
    outcome::{OperationOutcome, RecordedEntryFields, is_default},
    plan::{CommitExpectation, Plan, PlannedChange},
    workspace::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<JournalEntryArgument>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedoArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<JournalEntryArgument>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct UndoOrRedoOutcome {
    #[serde(flatten)]
    pub entry: UndoneOrRedoneEntry,
    pub changed: Vec<VisibleChange>,
    #[serde(skip_serializing_if = "is_default")]
    pub changed_omitted: usize,
    pub kept: Vec<UnrevertedFileRow>,
    #[serde(skip_serializing_if = "is_default")]
    pub kept_omitted: usize,
    pub merged: Vec<RelPath>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
}

/// The entry that a call of `undo` or `redo` undid or redid; undoing an undo redoes the original entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UndoneOrRedoneEntry {
    Undone(u64),
    Redone(u64),
}

/// A file that an undo, a redo or a rejection could not revert.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct UnrevertedFileRow {
    pub path: RelPath,
    pub reason: &'static str,
}

impl OperationOutcome for UndoOrRedoOutcome {}

type UndoOrRedoTargets<'t> = (PlannedUndoOrRedo, &'t [ResolvedTarget]);

impl Operation for UndoArgs {
    type Paths = PlannedUndoOrRedo;
    type Outcome = UndoOrRedoOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        match &self.entry {
            Some(entry) => undo_by_number(context, entry.entry_number()?),
            None => undo_newest(context),
        }
    }

    fn plan(&self, context: &CallContext<'_>, (reversal, targets): UndoOrRedoTargets<'_>) -> PlanResult<Self> {
        let (plan, outcome) = reversal.plan(context, targets)?;
        Ok(preview_or_commit(plan, UndoOrRedoOutcome { dry_run: self.dry_run, ..outcome }))
    }
}

impl Operation for RedoArgs {
    type Paths = PlannedUndoOrRedo;
    type Outcome = UndoOrRedoOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        match &self.entry {
            Some(entry) => redo_by_number(context, entry.entry_number()?),
            None => redo_newest(context),
        }
    }

    fn plan(&self, context: &CallContext<'_>, (reversal, targets): UndoOrRedoTargets<'_>) -> PlanResult<Self> {
        let (plan, outcome) = reversal.plan(context, targets)?;
        Ok(preview_or_commit(plan, UndoOrRedoOutcome { dry_run: self.dry_run, ..outcome }))
    }
}

fn preview_or_commit(plan: Plan, outcome: UndoOrRedoOutcome) -> OperationPlanningResult<UndoOrRedoOutcome> {
    if outcome.dry_run {
        return OperationPlanningResult::Preview(outcome);
    }
    OperationPlanningResult::Files {
        plan,
        build_outcome: Box::new(move |receipt| UndoOrRedoOutcome { recorded: Some(receipt.into()), ..outcome }),
    }
}

fn nothing_to_undo_error() -> Error {
    Error::new(ErrorKind::NothingToDo, "nothing to undo")
        .with_next_step(NextStep::call(HistoryArgs::default(), "see the entries"))
}

fn undo_newest(context: &CallContext<'_>) -> Result<PlannedUndoOrRedo, Error> {
    let found = find_newest(context, newest_visible_changes(context), |stored| match stored.entry.relation {
        _ if is_external(&stored.entry) => Ok(None),
        // `undo` skips the entries of undo and redo, so that repeated calls go further back in the history.
        JournalEntryRelation::Undoes(_) | JournalEntryRelation::Redoes(_) | JournalEntryRelation::Amends(_) => Ok(None),
        JournalEntryRelation::None | JournalEntryRelation::Restores(_) => {
            let undone = context.workspace().undone_by(stored.entry.number)?;
            Ok(undone.is_none().then_some(stored.entry))
        }
    })?;
    undo_entry(context, &found.ok_or_else(nothing_to_undo_error)?)
}

fn undo_by_number(context: &CallContext<'_>, number: u64) -> Result<PlannedUndoOrRedo, Error> {
    let entry = find_entry(context, number)?.entry;
    match entry.relation {
        JournalEntryRelation::Undoes(undone) => {
            require_owner(context, &entry)?;
            if context.workspace().undone_by(undone)? != Some(number) {
                return Err(Error::new(
                    ErrorKind::NothingToDo,
                    format!("r{number} undid r{undone}, but r{undone} was redone since"),
                )
                .with_next_step(NextStep::call(UndoArgs::of_entry(undone), "undo it again")));
            }
            PlannedUndoOrRedo::new(context, UndoneOrRedoneEntry::Redone(undone), &entry)
        }
        JournalEntryRelation::Redoes(redone) => undo_entry(context, &find_entry(context, redone)?.entry),
        JournalEntryRelation::None | JournalEntryRelation::Restores(_) | JournalEntryRelation::Amends(_) => {
            undo_entry(context, &entry)
        }
    }
}

fn undo_entry(context: &CallContext<'_>, entry: &JournalEntry) -> Result<PlannedUndoOrRedo, Error> {
    let number = entry.number;
    require_owner(context, entry)?;
    if let Some(by) = context.workspace().undone_by(number)? {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{number} is already undone by r{by}"))
            .with_next_step(NextStep::call(RedoArgs::of_entry(number), "redo it")));
    }
    if entry.changes.is_empty() {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{number} changed nothing"))
            .with_next_step(NextStep::call(HistoryArgs::default(), "see the entries")));
    }
    match latest_redo(context, number)? {
        Some(redo) => PlannedUndoOrRedo::new(context, UndoneOrRedoneEntry::Undone(number), &redo),
        None => PlannedUndoOrRedo::new(context, UndoneOrRedoneEntry::Undone(number), entry),
    }
}

fn redo_newest(context: &CallContext<'_>) -> Result<PlannedUndoOrRedo, Error> {
    let operation = Some("undo".to_owned());
    let filter = JournalEntryQuery { operation, ..newest_visible_changes(context) };
    let found = find_newest(context, filter, |stored| match stored.entry.relation {
        JournalEntryRelation::Undoes(number) => {
            let undone_by = context.workspace().undone_by(number)?;
            Ok((undone_by == Some(stored.entry.number)).then_some((number, stored.entry)))
        }
        JournalEntryRelation::None
        | JournalEntryRelation::Redoes(_)
        | JournalEntryRelation::Restores(_)
        | JournalEntryRelation::Amends(_) => Ok(None),
    })?;
    let (number, undoing) = found.ok_or_else(|| {
        Error::new(ErrorKind::NothingToDo, "nothing to redo: no change is undone")
            .with_next_step("continue: redo only repeats a change that undo reverted")
    })?;
    PlannedUndoOrRedo::new(context, UndoneOrRedoneEntry::Redone(number), &undoing)
}

/// Plans the redo of the entry that `number` names: the undone entry, its undo or an earlier redo.
fn redo_by_number(context: &CallContext<'_>, number: u64) -> Result<PlannedUndoOrRedo, Error> {
    let entry = find_entry(context, number)?.entry;
    let undone = match entry.relation {
        JournalEntryRelation::Undoes(undone) => undone,
        JournalEntryRelation::Redoes(redone) => redone,
        JournalEntryRelation::None | JournalEntryRelation::Restores(_) | JournalEntryRelation::Amends(_) => number,
    };
    let Some(by) = context.workspace().undone_by(undone)? else {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{undone} is not undone"))
            .with_next_step(NextStep::call(HistoryArgs::default(), "see which entries are undone")));
    };
    let undoing = find_entry(context, by)?.entry;
    require_owner(context, &undoing)?;
    PlannedUndoOrRedo::new(context, UndoneOrRedoneEntry::Redone(undone), &undoing)
}

#[derive(Debug)]
pub(crate) struct PlannedUndoOrRedo {
    entry: UndoneOrRedoneEntry,
    /// The number of the journal entry whose changes the plan reverts; `redo` reverts an undo.
    source_entry: u64,
    steps: Vec<RecordedChangeToRevert>,
}

impl RequestedPaths for PlannedUndoOrRedo {
    type Targets<'t> = UndoOrRedoTargets<'t>;

    fn requests(&self) -> Vec<PathAccessRequest> {
        inverse::requested_paths(&self.steps)
    }

    fn take_targets<'t>(self, resolved: &mut &'t [ResolvedTarget]) -> UndoOrRedoTargets<'t> {
        (self, std::mem::take(resolved))
    }
}

impl PlannedUndoOrRedo {
    fn new(context: &CallContext<'_>, entry: UndoneOrRedoneEntry, source: &JournalEntry) -> Result<Self, Error> {
        Ok(Self { entry, source_entry: source.number, steps: inverse::revert_steps(context, source)? })
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<(Plan, UndoOrRedoOutcome), Error> {
        self.require_still_pending(context)?;
        let (policy, relation) = match self.entry {
            UndoneOrRedoneEntry::Undone(number) => {
                (ChangedFileRevertPolicy::Merge, JournalEntryRelation::Undoes(number))
            }
            UndoneOrRedoneEntry::Redone(number) => {
                (ChangedFileRevertPolicy::Leave, JournalEntryRelation::Redoes(number))
            }
        };
        let inverse = inverse::plan_inverse(context, &self.steps, targets, policy)?;
        let blocked =
            policy == ChangedFileRevertPolicy::Leave && inverse.skipped.iter().any(|skip| skip.reason.blocks_redo());
        if inverse.changes.is_empty() || blocked {
            return Err(self.refused_error(&inverse));
        }
        let max = limits::REPORTED_PATHS_MAX;
        let outcome = UndoOrRedoOutcome {
            entry: self.entry,
            changed: inverse.changes.iter().take(max).filter_map(planned_change_row).collect(),
            changed_omitted: inverse.changes.len().saturating_sub(max),
            kept: unreverted_files(&inverse),
            kept_omitted: inverse.skipped.len().saturating_sub(max),
            merged: inverse.merged.into_iter().take(max).collect(),
            dry_run: false,
            recorded: None,
        };
        Ok((Plan::with_link(inverse.changes, relation), outcome))
    }

    /// Fails if a concurrent call has already undone or redone the journal entry.
    fn require_still_pending(&self, context: &CallContext<'_>) -> Result<(), Error> {
        let (number, expected) = match self.entry {
            UndoneOrRedoneEntry::Undone(number) => (number, None),
            UndoneOrRedoneEntry::Redone(number) => (number, Some(self.source_entry)),
        };
        if context.workspace().undone_by(number)? == expected {
            return Ok(());
        }
        let message = format!("another call undid or redid r{number} while this one waited");
        Err(Error::new(ErrorKind::Conflict, message)
            .with_next_step(NextStep::call(HistoryArgs::default(), "see what happened")))
    }

    fn refused_error(&self, inverse: &InversePlan) -> Error {
        let expired = |reason: RevertSkipReason| {
            reason == RevertSkipReason::NotInTrash || reason == RevertSkipReason::VersionNotRetained
        };
        let kind = if !inverse.skipped.is_empty() && inverse.skipped.iter().all(|skip| expired(skip.reason)) {
            ErrorKind::Expired
        } else {
            ErrorKind::Conflict
        };
        let (number, detail, next_step) = match self.entry {
            UndoneOrRedoneEntry::Undone(number) => (
                number,
                format!("no change of r{number} can be undone; nothing was changed"),
                "inspect the files in kept, or undo another entry",
            ),
            UndoneOrRedoneEntry::Redone(number) => (
                number,
                format!("r{number} cannot be redone because of later changes; nothing was changed"),
                "inspect the files in kept, and make the change by hand",
            ),
        };
        Error::new(kind, detail).with_next_step(next_step).with_of(number).with_kept(unreverted_files(inverse))
    }
}

fn unreverted_files(inverse: &InversePlan) -> Vec<UnrevertedFileRow> {
    let reported = inverse.skipped.iter().take(limits::REPORTED_PATHS_MAX);
    reported.map(|skip| UnrevertedFileRow { path: skip.path.clone(), reason: skip.reason.as_str() }).collect()
}

fn change_kind_name(change: &PlannedChange) -> &'static str {
    match change {
        PlannedChange::Put { expectation: CommitExpectation::Absent, .. } | PlannedChange::Restore { .. } => "create",
        PlannedChange::Put { .. } => "modify",
        PlannedChange::MakeDirectory { .. } => "make_dir",
        PlannedChange::MakeLink { .. } => "make_link",
        PlannedChange::Move { .. } => "rename",
        PlannedChange::Remove { .. } | PlannedChange::RemoveDirectory { .. } => "remove",
    }
}

fn planned_change_row(change: &PlannedChange) -> Option<VisibleChange> {
    let mut paths = change.paths().cloned();
    Some(VisibleChange { path: paths.next()?, kind: change_kind_name(change), to: paths.next(), result: None })
}

fn find_entry(context: &CallContext<'_>, number: u64) -> Result<StoredJournalEntry, Error> {
    context.workspace().entry(number)?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no entry r{number}"))
            .with_next_step(NextStep::call(HistoryArgs::default(), "find one"))
    })
}

fn require_owner(context: &CallContext<'_>, entry: &JournalEntry) -> Result<(), Error> {
    if is_external(entry) {
        return Err(Error::new(
            ErrorKind::NotOwner,
            format!("r{} records a change that another program made, which cannot be undone", entry.number),
        )
        .with_next_step("read the file, then write the intended content"));
    }
    if context.caller.principal.may_see_items_of(&entry.caller.principal) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::NotOwner, format!("r{} was made by {}", entry.number, entry.caller.principal))
        .with_next_step("undo your own entries; a person can undo any"))
}

/// Whether a journal entry records changes by other programs, which cannot be undone.
fn is_external(entry: &JournalEntry) -> bool {
    entry.caller.principal == Principal::External.to_string()
}

const PAGE_ENTRIES: usize = 64;

fn newest_changes() -> JournalEntryQuery {
    JournalEntryQuery::changes(JournalEntryOrder::NewestFirst, PAGE_ENTRIES)
}

fn newest_visible_changes(context: &CallContext<'_>) -> JournalEntryQuery {
    let principal = context.caller.principal.only_visible_owner().map(ToString::to_string);
    JournalEntryQuery { principal, ..newest_changes() }
}

/// Calls `pick` on the journal entries that the filter selects, page by page, until `pick` returns a value.
fn find_newest<T>(
    context: &CallContext<'_>,
    mut filter: JournalEntryQuery,
    mut pick: impl FnMut(StoredJournalEntry) -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    loop {
        context.control.check()?;
        let page = context.workspace().entries(&filter)?;
        let Some(last) = page.last() else { return Ok(None) };
        filter.before = Some(last.entry.number);
        for stored in page {
            if let Some(picked) = pick(stored)? {
                return Ok(Some(picked));
            }
        }
    }
}

/// Finds the latest redo of a journal entry, which has the current trash ids of removed items.
fn latest_redo(context: &CallContext<'_>, number: u64) -> Result<Option<JournalEntry>, Error> {
    let mut latest: Option<JournalEntry> = None;
    for operation in ["redo", "undo"] {
        let after = latest.as_ref().map_or(number, |entry| entry.number);
        let operation = Some(operation.to_owned());
        let filter = JournalEntryQuery { operation, after: Some(after), ..newest_changes() };
        let found = find_newest(context, filter, |stored| {
            Ok((stored.entry.relation == JournalEntryRelation::Redoes(number)).then_some(stored.entry))
        })?;
        latest = found.or(latest);
    }
    Ok(latest)
}
