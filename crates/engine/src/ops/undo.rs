//! `undo` reverts one journal entry with all of its files. Without an argument, `undo` reverts the newest entry that is
//! not undone yet, so repeated calls go further back. `redo` applies an undone entry again, and fails if one of the
//! files changed since the undo. A person can undo any journal entry, an agent only its own entries.

mod inverse;

use serde::Deserialize;
use serde_json::{Value, json};
use stead_journal::{JournalEntry, JournalEntryRelation};
use stead_text::visible::escape_deceptive_line;

use self::inverse::{ChangedFileRevertPolicy, InversePlan, RecordedChangeToRevert, RevertSkipReason};
use super::{outcome_builder::OutcomeBuilder, visible_change::JournalEntryArgument};
use crate::{
    call_context::CallContext,
    caller::Principal,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedTarget, ResolvedTargets},
    plan::{CommitExpectation, Plan, PlannedChange},
    workspace::{CommitReceipt, JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter, StoredJournalEntry},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UndoOrRedoArgs {
    entry: Option<JournalEntryArgument>,
    #[serde(default)]
    dry_run: bool,
}

impl UndoOrRedoArgs {
    fn entry_number(&self) -> Result<Option<u64>, Error> {
        self.entry.as_ref().map(JournalEntryArgument::entry_number).transpose()
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        reversal: &PlannedUndoOrRedo,
        targets: &[ResolvedTarget],
    ) -> Result<OperationPlanningResult, Error> {
        let (plan, report) = reversal.plan(context, targets)?;
        if self.dry_run {
            let outcome = report.outcome_fields().with_field("dry_run", true);
            return Ok(OperationPlanningResult::Preview(
                outcome.build(report.render_text(report.words().conditional, "")),
            ));
        }
        let build_outcome = Box::new(move |receipt: &CommitReceipt| {
            let text = report.render_text(report.words().past, &format!(", recorded as r{}", receipt.entry));
            report.outcome_fields().with_receipt(receipt).build(text)
        });
        Ok(OperationPlanningResult::Files { plan, build_outcome })
    }
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct UndoArgs(UndoOrRedoArgs);

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct RedoArgs(UndoOrRedoArgs);

impl Operation for UndoArgs {
    type Resolved = PlannedUndoOrRedo;
    type Outcome = CallOutcome;

    fn resolve(&self, context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        let reversal = match self.0.entry_number()? {
            Some(number) => undo_by_number(context, number)?,
            None => undo_newest(context)?,
        };
        paths.add_all(inverse::requested_paths(&reversal.steps));
        Ok(reversal)
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        reversal: PlannedUndoOrRedo,
        targets: &ResolvedTargets,
    ) -> PlanResult<Self> {
        self.0.plan(context, &reversal, targets)
    }
}

impl Operation for RedoArgs {
    type Resolved = PlannedUndoOrRedo;
    type Outcome = CallOutcome;

    fn resolve(&self, context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        let reversal = match self.0.entry_number()? {
            Some(number) => redo_by_number(context, number)?,
            None => redo_newest(context)?,
        };
        paths.add_all(inverse::requested_paths(&reversal.steps));
        Ok(reversal)
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        reversal: PlannedUndoOrRedo,
        targets: &ResolvedTargets,
    ) -> PlanResult<Self> {
        self.0.plan(context, &reversal, targets)
    }
}

fn nothing_left_error(verb: &str) -> Error {
    Error::new(ErrorKind::NothingToDo, format!("nothing to {verb}")).with_next_step("call history to see entries")
}

fn undo_newest(context: &CallContext<'_>) -> Result<PlannedUndoOrRedo, Error> {
    let filter = JournalEntryQuery { principal: principal_filter(context), ..JournalEntryQuery::default() };
    let found = find_newest(context, filter, |stored| match stored.entry.relation {
        _ if is_external(&stored.entry) => Ok(None),
        // `undo` skips the entries of undo and redo, so that repeated calls go further back in the history.
        JournalEntryRelation::Undoes(_) | JournalEntryRelation::Redoes(_) | JournalEntryRelation::Amends(_) => Ok(None),
        JournalEntryRelation::None | JournalEntryRelation::Restores(_) => {
            let undone = context.workspace().undone_by(stored.entry.number)?;
            Ok(undone.is_none().then_some(stored.entry))
        }
    })?;
    undo_entry(context, &found.ok_or_else(|| nothing_left_error("undo"))?)
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
                .with_next_step(format!("call undo with entry r{undone} to undo it again")));
            }
            PlannedUndoOrRedo::new(context, UndoOrRedo::Redo, undone, &entry)
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
            .with_next_step(format!("call redo with entry r{number} to redo it")));
    }
    if entry.changes.is_empty() {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{number} changed nothing"))
            .with_next_step("call history to see entries"));
    }
    match latest_redo(context, number)? {
        Some(redo) => PlannedUndoOrRedo::new(context, UndoOrRedo::Undo, number, &redo),
        None => PlannedUndoOrRedo::new(context, UndoOrRedo::Undo, number, entry),
    }
}

fn redo_newest(context: &CallContext<'_>) -> Result<PlannedUndoOrRedo, Error> {
    let operation = Some("undo".to_owned());
    let filter = JournalEntryQuery { principal: principal_filter(context), operation, ..JournalEntryQuery::default() };
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
    let (number, undoing) = found.ok_or_else(|| nothing_left_error("redo"))?;
    PlannedUndoOrRedo::new(context, UndoOrRedo::Redo, number, &undoing)
}

/// The argument `number` names the undone entry, the undo of that entry, or an earlier redo of it.
fn redo_by_number(context: &CallContext<'_>, number: u64) -> Result<PlannedUndoOrRedo, Error> {
    let entry = find_entry(context, number)?.entry;
    let undone = match entry.relation {
        JournalEntryRelation::Undoes(undone) => undone,
        JournalEntryRelation::Redoes(redone) => redone,
        JournalEntryRelation::None | JournalEntryRelation::Restores(_) | JournalEntryRelation::Amends(_) => number,
    };
    let Some(by) = context.workspace().undone_by(undone)? else {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{undone} is not undone"))
            .with_next_step("call history to see which entries are undone"));
    };
    let undoing = find_entry(context, by)?.entry;
    require_owner(context, &undoing)?;
    PlannedUndoOrRedo::new(context, UndoOrRedo::Redo, undone, &undoing)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UndoOrRedo {
    Undo,
    Redo,
}

#[derive(Debug)]
pub(crate) struct PlannedUndoOrRedo {
    direction: UndoOrRedo,
    entry_number: u64,
    /// The entry whose changes are reverted: `redo` reverts the undo, `undo` the given entry or its latest redo.
    source_entry: u64,
    steps: Vec<RecordedChangeToRevert>,
}

impl PlannedUndoOrRedo {
    fn new(
        context: &CallContext<'_>,
        direction: UndoOrRedo,
        entry_number: u64,
        source: &JournalEntry,
    ) -> Result<Self, Error> {
        let steps = inverse::revert_steps(context, source)?;
        Ok(Self { direction, entry_number, source_entry: source.number, steps })
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<(Plan, UndoOrRedoReport), Error> {
        self.require_still_pending(context)?;
        let (policy, relation) = match self.direction {
            UndoOrRedo::Undo => (ChangedFileRevertPolicy::Merge, JournalEntryRelation::Undoes(self.entry_number)),
            UndoOrRedo::Redo => (ChangedFileRevertPolicy::Leave, JournalEntryRelation::Redoes(self.entry_number)),
        };
        let inverse = inverse::plan_inverse(context, &self.steps, targets, policy)?;
        let blocked =
            self.direction == UndoOrRedo::Redo && inverse.skipped.iter().any(|skip| skip.reason.blocks_redo());
        if inverse.changes.is_empty() || blocked {
            return Err(self.refused_error(&inverse));
        }
        let report = UndoOrRedoReport::for_inverse(self.direction, self.entry_number, &inverse);
        Ok((Plan::with_link(inverse.changes, relation), report))
    }

    /// Fails if another call undid or redid the entry while this call waited for its locks.
    fn require_still_pending(&self, context: &CallContext<'_>) -> Result<(), Error> {
        let undone = context.workspace().undone_by(self.entry_number)?;
        let pending = match self.direction {
            UndoOrRedo::Undo => undone.is_none(),
            UndoOrRedo::Redo => undone == Some(self.source_entry),
        };
        if pending {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("another call undid or redid r{} while this one waited", self.entry_number),
        )
        .with_next_step("call history to see what happened"))
    }

    fn refused_error(&self, inverse: &InversePlan) -> Error {
        let number = self.entry_number;
        let expired = |reason: RevertSkipReason| {
            reason == RevertSkipReason::NotInTrash || reason == RevertSkipReason::VersionNotRetained
        };
        let kind = if !inverse.skipped.is_empty() && inverse.skipped.iter().all(|skip| expired(skip.reason)) {
            ErrorKind::Expired
        } else {
            ErrorKind::Conflict
        };
        let (detail, next_step) = match self.direction {
            UndoOrRedo::Undo => (
                format!("no change of r{number} can be undone; nothing was changed"),
                "inspect the paths in kept with read or diff, or pass entry to undo another one",
            ),
            UndoOrRedo::Redo => (
                format!("r{number} cannot be redone because of later changes; nothing was changed"),
                "inspect the paths in kept with read or diff, and make the change by hand",
            ),
        };
        Error::new(kind, detail)
            .with_next_step(next_step)
            .with_detail("of", number)
            .with_detail("kept", skipped_json(inverse))
    }
}

fn skipped_json(inverse: &InversePlan) -> Vec<Value> {
    let reported = inverse.skipped.iter().take(limits::REPORTED_PATHS_MAX);
    reported.map(|skip| json!({ "path": skip.path.to_string(), "reason": skip.reason.to_string() })).collect()
}

/// The data for the outcome of `undo` or `redo`, copied from the plan because the commit consumes the plan.
struct UndoOrRedoReport {
    direction: UndoOrRedo,
    entry_number: u64,
    changed: Vec<Value>,
    changed_total: usize,
    skipped: Vec<Value>,
    skipped_total: usize,
    merged: Vec<String>,
    lines: Vec<String>,
}

impl UndoOrRedoReport {
    fn for_inverse(direction: UndoOrRedo, entry_number: u64, inverse: &InversePlan) -> Self {
        let max = limits::REPORTED_PATHS_MAX;
        let changed = inverse.changes.iter().take(max);
        let mut lines: Vec<String> = changed.clone().map(render_change_line).collect();
        lines.extend(inverse.merged.iter().take(max).map(|path| format!("merged {path} with later changes")));
        lines.extend(inverse.skipped.iter().take(max).map(|skip| format!("skipped {}: {}", skip.path, skip.reason)));
        Self {
            direction,
            entry_number,
            changed: changed.map(change_json).collect(),
            changed_total: inverse.changes.len(),
            skipped: skipped_json(inverse),
            skipped_total: inverse.skipped.len(),
            merged: inverse.merged.iter().take(max).map(ToString::to_string).collect(),
            lines: lines.iter().map(|line| escape_deceptive_line(line).into_owned()).collect(),
        }
    }

    fn words(&self) -> UndoOrRedoWording {
        match self.direction {
            UndoOrRedo::Undo => {
                UndoOrRedoWording { past: "reverted", conditional: "would revert", entry_field: "undone" }
            }
            UndoOrRedo::Redo => UndoOrRedoWording { past: "redid", conditional: "would redo", entry_field: "redone" },
        }
    }

    fn outcome_fields(&self) -> OutcomeBuilder {
        let changed_omitted = self.changed_total - self.changed.len();
        let kept_omitted = self.skipped_total - self.skipped.len();
        OutcomeBuilder::new()
            .with_field(self.words().entry_field, self.entry_number)
            .with_field("changed", self.changed.clone())
            .with_some("changed_omitted", (changed_omitted > 0).then_some(changed_omitted))
            .with_field("kept", self.skipped.clone())
            .with_some("kept_omitted", (kept_omitted > 0).then_some(kept_omitted))
            .with_field("merged", self.merged.clone())
    }

    fn render_text(&self, verb: &str, tail: &str) -> String {
        let files = if self.changed_total == 1 { "file" } else { "files" };
        let mut text = format!("{verb} r{} ({} {files}", self.entry_number, self.changed_total);
        if self.skipped_total > 0 {
            text.push_str(&format!(", {} skipped", self.skipped_total));
        }
        text.push_str(&format!("){tail}"));
        for line in &self.lines {
            text.push_str("\n  ");
            text.push_str(line);
        }
        text
    }
}

struct UndoOrRedoWording {
    past: &'static str,
    conditional: &'static str,
    entry_field: &'static str,
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

fn change_json(change: &PlannedChange) -> Value {
    let mut paths = change.paths().map(ToString::to_string);
    OutcomeBuilder::new()
        .with_some("path", paths.next())
        .with_field("kind", change_kind_name(change))
        .with_some("to", paths.next())
        .into_json()
        .into()
}

fn render_change_line(change: &PlannedChange) -> String {
    let paths: Vec<String> = change.paths().map(ToString::to_string).collect();
    format!("{} {}", change_kind_name(change), paths.join(" -> "))
}

fn find_entry(context: &CallContext<'_>, number: u64) -> Result<StoredJournalEntry, Error> {
    context.workspace().entry(number)?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no entry r{number}"))
            .with_next_step("call history to find one")
    })
}

fn require_owner(context: &CallContext<'_>, entry: &JournalEntry) -> Result<(), Error> {
    if is_external(entry) {
        return Err(Error::new(
            ErrorKind::NotOwner,
            format!("r{} records a change that another program made, which cannot be undone", entry.number),
        )
        .with_next_step("read the file or diff it against an older entry, then write the intended content"));
    }
    match &context.caller.principal {
        Principal::User(_) | Principal::System | Principal::External => Ok(()),
        Principal::Agent(_) if entry.caller.principal == context.caller.principal.to_string() => Ok(()),
        Principal::Agent(_) => {
            Err(Error::new(ErrorKind::NotOwner, format!("r{} was made by {}", entry.number, entry.caller.principal))
                .with_next_step("undo your own entries; a person can undo any"))
        }
    }
}

/// Whether a journal entry records changes by other programs, which cannot be undone.
fn is_external(entry: &JournalEntry) -> bool {
    entry.caller.principal == Principal::External.to_string()
}

/// The principal whose journal entries `undo` and `redo` consider; `None` means all principals.
fn principal_filter(context: &CallContext<'_>) -> Option<String> {
    match &context.caller.principal {
        Principal::User(_) | Principal::System | Principal::External => None,
        Principal::Agent(_) => Some(context.caller.principal.to_string()),
    }
}

const PAGE_ENTRIES: usize = 64;

/// Calls `pick` on each entry that changed files, newest first, until the result is not `None`.
fn find_newest<T>(
    context: &CallContext<'_>,
    filter: JournalEntryQuery,
    mut pick: impl FnMut(StoredJournalEntry) -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let mut filter = JournalEntryQuery {
        selection: JournalNoChangeEntryFilter::WithChanges,
        order: JournalEntryOrder::NewestFirst,
        limit: PAGE_ENTRIES,
        ..filter
    };
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

/// The latest redo of an entry has the current trash ids of the items that the entry removed.
fn latest_redo(context: &CallContext<'_>, number: u64) -> Result<Option<JournalEntry>, Error> {
    let mut latest: Option<JournalEntry> = None;
    for operation in ["redo", "undo"] {
        let after = latest.as_ref().map_or(number, |entry| entry.number);
        let operation = Some(operation.to_owned());
        let filter = JournalEntryQuery { operation, after: Some(after), ..JournalEntryQuery::default() };
        let found = find_newest(context, filter, |stored| {
            Ok((stored.entry.relation == JournalEntryRelation::Redoes(number)).then_some(stored.entry))
        })?;
        latest = found.or(latest);
    }
    Ok(latest)
}
