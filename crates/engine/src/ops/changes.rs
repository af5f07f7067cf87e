//! `changes` returns the changes recorded in the journal after a cursor, by page. A cursor of another journal fails
//! with `history_lost`, so that a client notices missing changes. The type [`ChangesFollower`] returns the pages of
//! `changes` to a protocol's change stream without recording journal entries.

use serde::{Deserialize, Serialize};

use crate::{
    call_context::CallContext,
    call_options::CallOptions,
    caller::Caller,
    control::CallControl,
    engine::{CallMetadata, Engine},
    errors::Error,
    limits,
    operation::{CallDurationFactor, OperationPlanningResult, PathlessOperation, PlanResult},
    ops::{
        changed_lines::ChangedLineFinder,
        journal_feed::{self, EventRowJournalEntryFields, JournalCursor, JournalCursorArgument, JournalFeedPage},
        visible_change::VisibleChange,
    },
    outcome::{Completeness, OperationOutcome},
    workspace::StoredJournalEntry,
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesArgs {
    pub since: JournalCursorArgument,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangesOutcome {
    pub events: Vec<ChangeEventRow>,
    pub cursor: JournalCursor,
    #[serde(flatten)]
    pub completeness: Completeness<ChangesArgs>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ChangeEventRow {
    #[serde(flatten)]
    pub entry: EventRowJournalEntryFields,
    #[serde(flatten)]
    pub change: VisibleChange,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// The first and the last line of each changed range; `None` if the changed lines are unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<[usize; 2]>>,
}

impl ChangeEventRow {
    pub fn render_line(&self) -> String {
        let EventRowJournalEntryFields { entry, principal, operation, .. } = &self.entry;
        let lines = self.lines.as_deref().map(render_line_ranges).unwrap_or_default();
        format!("r{entry} {principal} {operation}: {}{lines}\n", self.change.render_line())
    }
}

pub fn render_line_ranges(lines: &[[usize; 2]]) -> String {
    let spans: Vec<String> = lines.iter().map(|[first, last]| format!("{first}-{last}")).collect();
    format!(" lines {}", spans.join(","))
}

impl From<JournalFeedPage<ChangeEventRow>> for ChangesOutcome {
    fn from(page: JournalFeedPage<ChangeEventRow>) -> Self {
        let completeness = page.completeness(|since| ChangesArgs { since, wait_ms: None });
        Self { events: page.events, cursor: page.position, completeness }
    }
}

impl OperationOutcome for ChangesOutcome {}

impl PathlessOperation for ChangesArgs {
    type Outcome = ChangesOutcome;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::WaitMs(self.wait_ms)
    }

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let start = JournalCursor::resolve(context.workspace(), &self.since)?;
        let page = journal_feed::wait_for_page(context, self.wait_ms, start, &mut |position| {
            collect_changes(context, position)
        })?;
        Ok(OperationPlanningResult::Read { outcome: page.into(), bytes: 0 })
    }
}

fn collect_changes(context: &CallContext<'_>, start: JournalCursor) -> Result<JournalFeedPage<ChangeEventRow>, Error> {
    let (mut ranges, mut chars) = (ChangedLineFinder::new(context.workspace()), 0);
    journal_feed::scan_entries(
        context,
        start,
        &|after| journal_feed::changed_entries(context, after),
        &mut |stored, page| add_changes(context, stored, page, &mut ranges, &mut chars),
    )
}

fn add_changes(
    context: &CallContext<'_>,
    stored: &StoredJournalEntry,
    page: &mut JournalFeedPage<ChangeEventRow>,
    ranges: &mut ChangedLineFinder<'_>,
    chars: &mut usize,
) -> Result<(), Error> {
    let entry = &stored.entry;
    let skipped = page.position.delivered_within(entry.number);
    for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
        let Some(visible) = VisibleChange::visible_to(context, change) else { continue };
        let rev = visible.result.map(|_| format!("r{}", entry.number));
        let lines = ranges.changed_ranges(change)?;
        let event = ChangeEventRow { entry: stored.into(), change: visible, rev, lines };
        *chars += event.render_line().chars().count();
        if page.events.len() == limits::CHANGES_PAGE_EVENTS {
            page.end_at(JournalCursor::within_entry(stored, index), "CHANGES_PAGE_EVENTS");
            return Ok(());
        }
        if *chars > limits::OUTCOME_PAGE_CHARS && !page.events.is_empty() {
            page.end_at(JournalCursor::within_entry(stored, index), "OUTCOME_PAGE_CHARS");
            return Ok(());
        }
        page.events.push(event);
    }
    page.position = JournalCursor::after_entry(stored);
    Ok(())
}

/// Reads recorded changes from a journal cursor, each change once and in the order of the journal.
pub struct ChangesFollower {
    engine: Engine,
    caller: Caller,
    position: JournalCursor,
}

impl ChangesFollower {
    /// Creates a follower that returns the changes after the given journal cursor.
    pub fn from_cursor(engine: Engine, caller: Caller, cursor: &str) -> Result<Self, Error> {
        let position = JournalCursor::resolve(&engine.reader(), &JournalCursorArgument::Text(cursor.to_owned()))?;
        Ok(Self { engine, caller, position })
    }

    /// Returns the next page of changes, as the operation `changes` would return it.
    pub fn next_page(&mut self) -> Result<ChangesOutcome, Error> {
        let (options, control) = (CallOptions::default(), CallControl::default());
        let call = CallMetadata { caller: &self.caller, idempotency_key: None, options: &options, control: &control };
        let policy = self.engine.reader().active_policy()?;
        let context = CallContext::new(self.engine.reader(), &call, "changes", &policy);
        let page = context.release_reply(collect_changes(&context, self.position)?)?;
        self.position = page.position;
        Ok(page.into())
    }
}
