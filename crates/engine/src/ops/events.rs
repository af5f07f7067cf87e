//! `events` returns the events of a session since a cursor: changes that its watches report, and answers from people.
//! `events` omits the session's own changes and detects a lost journal in the same way as `changes`.

use serde::{Deserialize, Serialize};

use super::{
    changed_lines::ChangedLineFinder,
    journal_feed::{
        self, EventRowJournalEntryFields, FEED_BATCH_ENTRIES, JournalCursor, JournalCursorArgument, JournalEntryPage,
        JournalFeedPage, MoreJournalEntriesFlag,
    },
    watched::{
        self, CallerOwnChangesInclusion,
        events::{WatchEventRow, WatchMatcher},
    },
};
use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    operation::{CallDurationFactor, OperationPlanningResult, PathlessOperation, PlanResult},
    outcome::{Completeness, OperationOutcome},
    session_store::SessionTotalsQuery,
    workspace::{JournalEntryQuery, StoredJournalEntry},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollSessionEventsArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<JournalCursorArgument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionEventsOutcome {
    pub events: Vec<SessionEventRow>,
    pub cursor: JournalCursor,
    #[serde(flatten)]
    pub completeness: Completeness<PollSessionEventsArgs>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum SessionEventRow {
    FileChanged(WatchEventRow),
    AlertAnswered(AlertAnsweredEvent),
    ApprovalResolved(ApprovalResolvedEvent),
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct AlertAnsweredEvent {
    #[serde(flatten)]
    pub entry: EventRowJournalEntryFields,
    pub alert: String,
    pub by: String,
    pub text: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalResolvedEvent {
    #[serde(flatten)]
    pub entry: EventRowJournalEntryFields,
    pub approval: String,
    pub answer: &'static str,
    pub by: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl From<WatchEventRow> for SessionEventRow {
    fn from(event: WatchEventRow) -> Self {
        Self::FileChanged(event)
    }
}

impl OperationOutcome for SessionEventsOutcome {}

const ANSWER_OPERATIONS: &[&str] = &["respond", "approve", "deny"];

impl PathlessOperation for PollSessionEventsArgs {
    type Outcome = SessionEventsOutcome;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::WaitMs(self.wait_ms)
    }

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
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
        let completeness = page.completeness(|since| PollSessionEventsArgs { since: Some(since), wait_ms: None });
        let outcome = SessionEventsOutcome { events: page.events, cursor: page.position, completeness };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

/// Returns the default cursor of `events`, which is before the first journal entry of the session.
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
    page: &mut JournalFeedPage<SessionEventRow>,
    ranges: &mut ChangedLineFinder<'_>,
) -> Result<(), Error> {
    if let Some(event) = answer_event(context, stored)? {
        if page.events.len() == limits::CHANGES_PAGE_EVENTS {
            page.end_at(page.position, "CHANGES_PAGE_EVENTS");
            return Ok(());
        }
        page.events.push(event);
    }
    watched::add_watch_events(context, watchers, CallerOwnChangesInclusion::Exclude, stored, page, ranges)
}

/// The recorded arguments of `respond`, `approve` and `deny`: the alert or the approval request that a person answered.
#[derive(Default, Deserialize)]
struct AnsweredAlertOrApprovalId {
    alert: Option<String>,
    id: Option<String>,
}

fn answer_event(context: &CallContext<'_>, stored: &StoredJournalEntry) -> Result<Option<SessionEventRow>, Error> {
    let entry = &stored.entry;
    if !ANSWER_OPERATIONS.contains(&entry.operation.as_str())
        || entry.decision != stead_journal::JournaledCallOutcomeStatus::Allowed
    {
        return Ok(None);
    }
    let target: AnsweredAlertOrApprovalId = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let (workspace, requester) = (context.workspace(), context.caller.principal.to_string());
    if let Some(id) = &target.alert {
        let alert = workspace.alert(id)?.filter(|alert| alert.sender == requester);
        return Ok(alert.and_then(|alert| {
            let response = alert.response?;
            let (by, text) = (response.responder, response.text);
            Some(SessionEventRow::AlertAnswered(AlertAnsweredEvent { entry: stored.into(), alert: alert.id, by, text }))
        }));
    }
    let Some(id) = &target.id else { return Ok(None) };
    let approval = workspace.approval(id)?.filter(|approval| approval.request.principal == requester);
    Ok(approval.map(|approval| {
        SessionEventRow::ApprovalResolved(ApprovalResolvedEvent {
            entry: stored.into(),
            approval: approval.id,
            answer: if entry.operation == "approve" { "approved" } else { "rejected" },
            by: entry.caller.principal.clone(),
            reason: approval.resolution.and_then(|resolution| resolution.reason),
        })
    }))
}
