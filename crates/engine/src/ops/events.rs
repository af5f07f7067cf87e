//! `events` returns the events of a session since a cursor: changes that its watches report, and answers from people.
//! `events` omits the session's own changes and reports gaps in the journal as `changes` does.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    changed_lines::ChangedLineFinder,
    journal_feed::{
        self, EventJsonAndText, FEED_BATCH_ENTRIES, JournalCursor, JournalCursorArgument, JournalEntryPage,
        JournalFeedPage, MoreJournalEntriesFlag,
    },
    outcome_builder::{OutcomeBuilder, format_iso_utc},
    watched::{self, CallerOwnChangesInclusion, events::WatchMatcher},
};
use crate::{
    call_context::CallContext,
    engine::CallOutcome,
    errors::Error,
    limits,
    operation::{Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedTargets},
    session_store::SessionTotalsQuery,
    workspace::{JournalEntryQuery, StoredJournalEntry},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PollSessionEventsArgs {
    since: Option<JournalCursorArgument>,
    wait_ms: Option<u64>,
}

const ANSWER_OPERATIONS: &[&str] = &["respond", "approve", "deny"];

impl Operation for PollSessionEventsArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let start = match &self.since {
            Some(since) => JournalCursor::resolve(context.workspace(), since)?,
            None => session_start(context)?,
        };
        let watches = context.workspace().watches(&context.caller.principal)?;
        let watchers: Vec<WatchMatcher<'_>> = watches.iter().map(WatchMatcher::new).collect();
        let page = journal_feed::wait_for_page(context, self.wait_ms, start, &mut |position| {
            let mut ranges = ChangedLineFinder::new(context.workspace());
            journal_feed::scan_entries(context, position, &|after| read_batch(context, after), &mut |stored, page| {
                add_session_events(context, &watchers, stored, page, &mut ranges)
            })
        })?;
        Ok(OperationPlanningResult::Read {
            outcome: page.into_outcome(context.options.call_notation, "no events", "events"),
            bytes: 0,
        })
    }
}

/// Without a cursor, the events start at the first journal entry of the session.
fn session_start(context: &CallContext<'_>) -> Result<JournalCursor, Error> {
    let (workspace, caller) = (context.workspace(), context.caller);
    if let Some(session) = workspace.session(&caller.session)? {
        return JournalCursor::before_entry(workspace, session.first_entry);
    }
    let query = SessionTotalsQuery {
        principal: &caller.principal,
        session: &caller.session,
        from_entry: caller.session_first_entry,
    };
    match workspace.session_totals(&query)?.first_call {
        Some((number, _)) => JournalCursor::before_entry(workspace, number),
        None => JournalCursor::at_end(workspace),
    }
}

fn read_batch(context: &CallContext<'_>, after: u64) -> Result<JournalEntryPage, Error> {
    let (mut found, mut rest) = journal_feed::changed_entries(context, after)?;
    // If a batch is full, the entries after its last entry belong to the next batch.
    let mut until = if rest == MoreJournalEntriesFlag::No { u64::MAX } else { last_entry_number(&found) };
    for operation in ANSWER_OPERATIONS {
        let wanted = JournalEntryQuery { operation: Some((*operation).to_owned()), ..journal_feed::batch_query(after) };
        let answers = context.workspace().entries(&wanted)?;
        if answers.len() == FEED_BATCH_ENTRIES {
            rest = MoreJournalEntriesFlag::Yes;
            until = until.min(last_entry_number(&answers));
        }
        found.extend(answers);
    }
    found.retain(|stored| stored.entry.number <= until);
    found.sort_by_key(|stored| stored.entry.number);
    found.dedup_by_key(|stored| stored.entry.number);
    Ok((found, rest))
}

fn last_entry_number(entries: &[StoredJournalEntry]) -> u64 {
    entries.last().map_or(u64::MAX, |stored| stored.entry.number)
}

fn add_session_events(
    context: &CallContext<'_>,
    watchers: &[WatchMatcher<'_>],
    stored: &StoredJournalEntry,
    page: &mut JournalFeedPage<EventJsonAndText>,
    ranges: &mut ChangedLineFinder<'_>,
) -> Result<(), Error> {
    let entry = &stored.entry;
    if let Some((kind, fields)) = answer_event(context, stored)? {
        if page.events.len() == limits::CHANGES_PAGE_EVENTS {
            page.has_more = true;
            return Ok(());
        }
        let words = kind.replace('_', " ");
        let line = format!("r{} {words} by {}\n", entry.number, entry.caller.principal);
        page.events.push((event_json(stored, kind, fields), line));
    }
    watched::add_watch_events(context, watchers, CallerOwnChangesInclusion::Exclude, stored, page, ranges, &|event| {
        let line = event.render_line();
        let fields = OutcomeBuilder::new().with_field("type", "file_changed").with_fields(event.into_json());
        (Value::Object(fields.into_json()), line)
    })
}

fn event_json(stored: &StoredJournalEntry, kind: &str, fields: Map<String, Value>) -> Value {
    let entry = &stored.entry;
    let event = OutcomeBuilder::new()
        .with_field("type", kind)
        .with_field("entry", entry.number)
        .with_field("time", format_iso_utc(entry.time_ms))
        .with_field("principal", entry.caller.principal.clone())
        .with_field("operation", entry.operation.clone())
        .with_fields(fields);
    Value::Object(event.into_json())
}

type PersonAnswerEventTypeAndFields = (&'static str, Map<String, Value>);

fn answer_event(
    context: &CallContext<'_>,
    stored: &StoredJournalEntry,
) -> Result<Option<PersonAnswerEventTypeAndFields>, Error> {
    let entry = &stored.entry;
    if !ANSWER_OPERATIONS.contains(&entry.operation.as_str())
        || entry.decision != stead_journal::JournaledCallOutcomeStatus::Allowed
    {
        return Ok(None);
    }
    let arguments: Map<String, Value> = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let argument = |name: &str| arguments.get(name).and_then(Value::as_str);
    let (workspace, requester) = (context.workspace(), context.caller.principal.to_string());
    if let Some(id) = argument("alert") {
        let alert = workspace.alert(id)?.filter(|alert| alert.sender == requester);
        return Ok(alert.and_then(|alert| {
            let response = alert.response?;
            let fields = OutcomeBuilder::new()
                .with_field("alert", alert.id)
                .with_field("by", response.responder)
                .with_field("text", response.text);
            Some(("alert_answered", fields.into_json()))
        }));
    }
    let Some(id) = argument("id") else { return Ok(None) };
    let approval = workspace.approval(id)?.filter(|approval| approval.request.principal == requester);
    Ok(approval.map(|approval| {
        let fields = OutcomeBuilder::new()
            .with_field("approval", approval.id)
            .with_field("answer", if entry.operation == "approve" { "approved" } else { "rejected" })
            .with_field("by", entry.caller.principal.clone())
            .with_some("reason", approval.resolution.and_then(|resolution| resolution.reason));
        ("approval_resolved", fields.into_json())
    }))
}
