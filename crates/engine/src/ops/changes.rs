//! `changes` returns the changes recorded in the journal after a cursor, by page. A cursor that does not belong to this
//! journal fails with `history_lost`, so that no gap stays hidden. [`ChangesFollower`] returns the same pages for a
//! change stream of a protocol, but leaves no journal entries.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    call_context::CallContext,
    caller::Caller,
    engine::{Call, CallOutcome, Engine},
    errors::Error,
    limits,
    operation::{Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedTargets},
    ops::{
        changed_lines::ChangedLineFinder,
        journal_feed::{self, EventJsonAndText, JournalCursor, JournalCursorArgument, JournalFeedPage},
        outcome_builder::{OutcomeBuilder, format_iso_utc},
        visible_change::VisibleChange,
    },
    workspace::StoredJournalEntry,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesArgs {
    since: JournalCursorArgument,
    wait_ms: Option<u64>,
}

impl Operation for ChangesArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let start = JournalCursor::resolve(context.workspace(), &self.since)?;
        let page = journal_feed::wait_for_page(context, self.wait_ms, start, &mut |position| {
            collect_changes(context, position)
        })?;
        Ok(OperationPlanningResult::Read {
            outcome: page.into_outcome(context.options.call_notation, "no changes", "changes"),
            bytes: 0,
        })
    }
}

fn collect_changes(
    context: &CallContext<'_>,
    start: JournalCursor,
) -> Result<JournalFeedPage<EventJsonAndText>, Error> {
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
    page: &mut JournalFeedPage<EventJsonAndText>,
    ranges: &mut ChangedLineFinder<'_>,
    chars: &mut usize,
) -> Result<(), Error> {
    let entry = &stored.entry;
    let skipped = page.position.delivered_within(entry.number);
    for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
        let Some(visible) = VisibleChange::visible_to(context, change) else { continue };
        let lines = ranges.changed_ranges(change)?;
        let mut line =
            format!("r{} {} {}: {}", entry.number, entry.caller.principal, entry.operation, visible.render_line());
        if let Some(lines) = &lines {
            let spans: Vec<String> = lines.iter().map(|[from, to]| format!("{from}-{to}")).collect();
            line.push_str(&format!(" lines {}", spans.join(",")));
        }
        line.push('\n');
        *chars += line.chars().count();
        let page_full = page.events.len() == limits::CHANGES_PAGE_EVENTS || *chars > limits::OUTCOME_PAGE_CHARS;
        if page_full && !page.events.is_empty() {
            page.set_end(JournalCursor::within_entry(stored, index));
            return Ok(());
        }
        let rev = visible.result.map(|_| format!("r{}", entry.number));
        let event = OutcomeBuilder::new()
            .with_field("entry", entry.number)
            .with_field("time", format_iso_utc(entry.time_ms))
            .with_field("principal", entry.caller.principal.clone())
            .with_field("operation", entry.operation.clone())
            .with_fields(visible.into_json())
            .with_some("rev", rev)
            .with_some("lines", lines.map(|lines| lines.into_iter().map(Vec::from).collect::<Vec<_>>()));
        page.events.push((Value::Object(event.into_json()), line));
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
    /// Creates a follower that continues after the journal cursor of an earlier outcome.
    pub fn from_cursor(engine: Engine, caller: Caller, cursor: &str) -> Result<Self, Error> {
        let position = JournalCursor::resolve(engine.workspace(), &JournalCursorArgument::Text(cursor.to_owned()))?;
        Ok(Self { engine, caller, position })
    }

    /// Returns the next page of changes, as the operation `changes` would return it.
    pub fn next_page(&mut self) -> Result<CallOutcome, Error> {
        let workspace = self.engine.workspace();
        let call = Call::new(&self.caller, "changes", Map::new());
        let policy = workspace.active_policy()?;
        let page = collect_changes(&CallContext::new(workspace, &call, &policy), self.position)?;
        self.position = page.position;
        Ok(page.into_outcome(call.options.call_notation, "no changes", "changes"))
    }
}
