//! Reverts one entry, or redoes it by reverting its undo. Owns the parts that `undo` and `redo` share: entry lookup,
//! ownership, plan and outcome.

mod inverse;

use serde_json::{Value, json};
use stead_journal::{EntryRelation, JournalEntry};
use stead_text::visible::escape_deceptive_line;

use self::inverse::{ChangedFilePolicy, InversePlan, RevertSkipReason, RevertStep};
use super::outcome_builder::OutcomeBuilder;
use crate::{
    call_context::CallContext,
    caller::Principal,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{PlannedEffect, RequestedPath, ResolvedTarget},
    plan::{CommitExpectation, Plan, PlannedChange},
    workspace::{JournalEntryOrder, JournalEntryQuery, JournalEntrySelection, StoredJournalEntry},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DryRun {
    No,
    Yes,
}

impl From<bool> for DryRun {
    fn from(dry: bool) -> Self {
        if dry { DryRun::Yes } else { DryRun::No }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReversalDirection {
    Undo,
    Redo,
}

#[derive(Debug)]
pub(crate) struct Reversal {
    direction: ReversalDirection,
    /// The entry that is undone or redone.
    entry_number: u64,
    /// The entry whose changes are reverted: the latest one that applied them, or the undo.
    source_entry: u64,
    steps: Vec<RevertStep>,
}

impl Reversal {
    /// Reverts `source`: `number` itself, or its latest redo.
    pub(crate) fn undo(context: &CallContext<'_>, number: u64, source: &JournalEntry) -> Result<Self, Error> {
        let steps = inverse::revert_steps(context, source)?;
        Ok(Self { direction: ReversalDirection::Undo, entry_number: number, source_entry: source.number, steps })
    }

    /// Redoes `number` by reverting `undoing`, the entry that undid it.
    pub(crate) fn redo(context: &CallContext<'_>, number: u64, undoing: &JournalEntry) -> Result<Self, Error> {
        let steps = inverse::revert_steps(context, undoing)?;
        Ok(Self { direction: ReversalDirection::Redo, entry_number: number, source_entry: undoing.number, steps })
    }

    pub(crate) fn requested_paths(&self) -> Vec<RequestedPath> {
        inverse::requested_paths(&self.steps)
    }

    pub(crate) fn plan(
        &self,
        context: &CallContext<'_>,
        targets: &[ResolvedTarget],
        run: DryRun,
    ) -> Result<PlannedEffect, Error> {
        self.require_still_pending(context)?;
        let policy = match self.direction {
            ReversalDirection::Undo => ChangedFilePolicy::Merge,
            ReversalDirection::Redo => ChangedFilePolicy::Leave,
        };
        let inverse = inverse::plan_inverse(context, &self.steps, targets, policy)?;
        let blocked = match self.direction {
            ReversalDirection::Undo => false,
            ReversalDirection::Redo => inverse.skipped.iter().any(|skip| skip.reason.blocks_redo()),
        };
        if inverse.changes.is_empty() || blocked {
            return Err(self.refused_error(&inverse));
        }
        let report = ReversalReport::for_inverse(self.direction, self.entry_number, &inverse);
        let link = match self.direction {
            ReversalDirection::Undo => EntryRelation::Undoes(self.entry_number),
            ReversalDirection::Redo => EntryRelation::Redoes(self.entry_number),
        };
        match run {
            DryRun::Yes => Ok(PlannedEffect::Preview(report.preview_outcome())),
            DryRun::No => Ok(PlannedEffect::Files {
                plan: Plan::with_link(inverse.changes, link),
                build_outcome: Box::new(move |receipt| {
                    let text =
                        report.render_text(report.verb_past_tense(), &format!(", recorded as r{}", receipt.entry));
                    report.outcome_fields().with_receipt(receipt).build(text)
                }),
            }),
        }
    }

    /// Another call may have undone or redone the entry while this one waited for its locks.
    fn require_still_pending(&self, context: &CallContext<'_>) -> Result<(), Error> {
        let undone = context.workspace().undone_by(self.entry_number)?;
        let due = match self.direction {
            ReversalDirection::Undo => undone.is_none(),
            ReversalDirection::Redo => undone == Some(self.source_entry),
        };
        if due {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Conflict,
            format!("r{} was undone or redone by another call meanwhile", self.entry_number),
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
            ReversalDirection::Undo => (
                format!("nothing of r{number} can be undone; nothing was changed"),
                "inspect the paths in kept with read or diff, or pass entry to undo another one",
            ),
            ReversalDirection::Redo => (
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

/// The first skipped paths, with reasons.
fn skipped_json(inverse: &InversePlan) -> Vec<Value> {
    let shown = inverse.skipped.iter().take(limits::REPORTED_PATHS_MAX);
    shown.map(|skip| json!({ "path": skip.path.to_string(), "reason": skip.reason.to_string() })).collect()
}

/// Data of the outcome, copied before the commit consumes the plan.
struct ReversalReport {
    direction: ReversalDirection,
    entry_number: u64,
    changed: Vec<Value>,
    changed_total: usize,
    skipped: Vec<Value>,
    skipped_total: usize,
    merged: Vec<String>,
    lines: Vec<String>,
}

impl ReversalReport {
    fn for_inverse(direction: ReversalDirection, entry_number: u64, inverse: &InversePlan) -> Self {
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

    fn verb_past_tense(&self) -> &'static str {
        match self.direction {
            ReversalDirection::Undo => "reverted",
            ReversalDirection::Redo => "redid",
        }
    }

    fn entry_field(&self) -> &'static str {
        match self.direction {
            ReversalDirection::Undo => "undone",
            ReversalDirection::Redo => "redone",
        }
    }

    fn outcome_fields(&self) -> OutcomeBuilder {
        let changed_omitted = self.changed_total - self.changed.len();
        let kept_omitted = self.skipped_total - self.skipped.len();
        OutcomeBuilder::new()
            .with_field(self.entry_field(), self.entry_number)
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

    fn preview_outcome(&self) -> CallOutcome {
        let verb = match self.direction {
            ReversalDirection::Undo => "would revert",
            ReversalDirection::Redo => "would redo",
        };
        self.outcome_fields().with_field("dry_run", true).build(self.render_text(verb, ""))
    }
}

/// The kind of change, as in `history`.
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

pub(crate) fn find_entry(context: &CallContext<'_>, number: u64) -> Result<StoredJournalEntry, Error> {
    context.workspace().entry(number)?.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("there is no entry r{number}"))
            .with_next_step("call history to find one")
    })
}

/// Agents can revert only their own entries; people can revert any.
pub(crate) fn require_owner(context: &CallContext<'_>, entry: &JournalEntry) -> Result<(), Error> {
    if is_external(entry) {
        return Err(Error::new(
            ErrorKind::NotOwner,
            format!("r{} records a change made outside stead; it cannot be undone", entry.number),
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

/// Whether an entry records changes by other programs. Such entries cannot be undone.
pub(crate) fn is_external(entry: &JournalEntry) -> bool {
    entry.caller.principal == Principal::External.to_string()
}

/// The principal whose entries are searched if the caller names none.
pub(crate) fn principal_filter(context: &CallContext<'_>) -> Option<String> {
    match &context.caller.principal {
        Principal::User(_) | Principal::System | Principal::External => None,
        Principal::Agent(_) => Some(context.caller.principal.to_string()),
    }
}

const PAGE_ENTRIES: usize = 64;

/// The newest entry with changes that `pick` accepts, searched by page.
pub(crate) fn find_newest<T>(
    context: &CallContext<'_>,
    filter: JournalEntryQuery,
    mut pick: impl FnMut(StoredJournalEntry) -> Result<Option<T>, Error>,
) -> Result<Option<T>, Error> {
    let mut filter = JournalEntryQuery {
        selection: JournalEntrySelection::WithChanges,
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

/// The latest redo of an entry, if any; it has the current trash ids.
pub(crate) fn latest_redo(context: &CallContext<'_>, number: u64) -> Result<Option<JournalEntry>, Error> {
    let mut latest: Option<JournalEntry> = None;
    for operation in ["redo", "undo"] {
        let after = latest.as_ref().map_or(number, |entry| entry.number);
        let filter = JournalEntryQuery {
            operation: Some(operation.to_owned()),
            after: Some(after),
            ..JournalEntryQuery::default()
        };
        let found = find_newest(context, filter, |stored| {
            Ok((stored.entry.relation == EntryRelation::Redoes(number)).then_some(stored.entry))
        })?;
        latest = found.or(latest);
    }
    Ok(latest)
}
