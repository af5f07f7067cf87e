//! `watched` returns the events of the caller's watches since a cursor, without paths that the caller may not read.
//! `watched` reads events from the journal, so no event is lost between calls. The type [`CallerWatchEventReader`]
//! reads watch events for protocols that push events, without recording journal entries.

pub(crate) mod events;

use std::{collections::HashMap, time::Instant};

use self::events::{WatchEventRow, WatchMatcher};
use serde::{Deserialize, Serialize};

use crate::{
    call_context::CallContext,
    call_options::CallOptions,
    caller::Caller,
    control::{CallControl, CancelToken},
    engine::{CallMetadata, Engine},
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{CallDurationFactor, OperationPlanningResult, PathlessOperation, PlanResult},
    ops::{
        WatchArgs,
        changed_lines::ChangedLineFinder,
        journal_feed::{self, JournalCursor, JournalCursorArgument, JournalFeedPage},
        text_pages::shorten_for_error,
    },
    outcome::{Completeness, OperationOutcome},
    watches::Watch,
    workspace::StoredJournalEntry,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PollWatchEventsArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<JournalCursorArgument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct WatchEventsOutcome {
    pub events: Vec<WatchEventRow>,
    pub cursor: JournalCursor,
    pub watches: usize,
    #[serde(flatten)]
    pub completeness: Completeness<PollWatchEventsArgs>,
}

impl OperationOutcome for WatchEventsOutcome {}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerOwnChangesInclusion {
    Include,
    Exclude,
}

impl PathlessOperation for PollWatchEventsArgs {
    type Outcome = WatchEventsOutcome;

    fn duration_factor(&self) -> CallDurationFactor<'_> {
        CallDurationFactor::WaitMs(self.wait_ms)
    }

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let watches = self.selected_watches(context)?;
        let start = match &self.cursor {
            Some(cursor) => JournalCursor::resolve(context.workspace(), cursor)?,
            // Without a cursor, the events start at the oldest watch.
            None => match watches.iter().map(|watch| watch.started_at_entry).min() {
                Some(number) => JournalCursor::resolve(context.workspace(), &JournalCursorArgument::Number(number))?,
                None => JournalCursor::at_end(context.workspace())?,
            },
        };
        let watchers: Vec<WatchMatcher<'_>> = watches.iter().map(WatchMatcher::new).collect();
        let own = if self.own { CallerOwnChangesInclusion::Include } else { CallerOwnChangesInclusion::Exclude };
        let page = journal_feed::wait_for_page(context, self.wait_ms, start, &mut |position| {
            collect_events(context, &watchers, own, position)
        })?;
        let next = |cursor| PollWatchEventsArgs { cursor: Some(cursor), wait_ms: None, ..self.clone() };
        let completeness = page.completeness(next);
        let (events, cursor) = (page.events, page.position);
        let outcome = WatchEventsOutcome { events, cursor, watches: watches.len(), completeness };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

impl PollWatchEventsArgs {
    fn selected_watches(&self, context: &CallContext<'_>) -> Result<Vec<Watch>, Error> {
        let mut watches = context.workspace().watches(&context.caller.principal)?;
        if let Some(wanted) = &self.watch {
            watches.retain(|watch| watch.id == *wanted);
            if watches.is_empty() {
                return Err(Error::new(
                    ErrorKind::NotFound,
                    format!("you have no watch '{}'", shorten_for_error(wanted)),
                )
                .with_next_step(NextStep::call(WatchArgs::default(), "start one")));
            }
        }
        Ok(watches)
    }
}

pub(crate) fn collect_events(
    context: &CallContext<'_>,
    watchers: &[WatchMatcher<'_>],
    own: CallerOwnChangesInclusion,
    start: JournalCursor,
) -> Result<JournalFeedPage<WatchEventRow>, Error> {
    let mut ranges = ChangedLineFinder::new(context.workspace());
    journal_feed::scan_entries(
        context,
        start,
        &|after| journal_feed::changed_entries(context, after),
        &mut |stored, page| add_watch_events(context, watchers, own, stored, page, &mut ranges),
    )
}

pub(super) fn add_watch_events<E: From<WatchEventRow>>(
    context: &CallContext<'_>,
    watchers: &[WatchMatcher<'_>],
    own: CallerOwnChangesInclusion,
    stored: &StoredJournalEntry,
    page: &mut JournalFeedPage<E>,
    ranges: &mut ChangedLineFinder<'_>,
) -> Result<(), Error> {
    let entry = &stored.entry;
    let is_own = entry.caller.principal == context.caller.principal.to_string()
        && entry.caller.session == context.caller.session;
    if !(is_own && own == CallerOwnChangesInclusion::Exclude) {
        let skipped = page.position.delivered_within(entry.number);
        for (index, change) in entry.changes.iter().enumerate().skip(skipped) {
            if page.events.len() >= limits::CHANGES_PAGE_EVENTS {
                page.end_at(JournalCursor::within_entry(stored, index), "CHANGES_PAGE_EVENTS");
                return Ok(());
            }
            let mut events: Vec<WatchEventRow> = Vec::new();
            for watcher in watchers {
                watcher.collect_events(context, stored, change, &mut events)?;
            }
            if !events.is_empty() {
                let lines = ranges.changed_ranges(change)?;
                events.iter_mut().for_each(|event| event.lines.clone_from(&lines));
            }
            page.events.extend(events.into_iter().map(E::from));
        }
    }
    page.position = JournalCursor::after_entry(stored);
    Ok(())
}

/// Reads the events of a caller's watches, each event once and in the order of the journal.
pub struct CallerWatchEventReader {
    engine: Engine,
    caller: Caller,
    position: Option<JournalCursor>,
    /// The last journal entry whose events were delivered, by watch id. After the reader went back in the journal for a
    /// new watch, older watches skip the delivered entries.
    delivered_up_to: HashMap<String, u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EventReaderNewWatchInclusion {
    All,
    /// New watches wait, because the last page of events ended in the middle of a journal entry.
    Selected,
}

impl CallerWatchEventReader {
    /// Creates a reader of watch events that starts at the journal entry of the oldest watch.
    pub fn new(engine: Engine, caller: Caller) -> Self {
        Self { engine, caller, position: None, delivered_up_to: HashMap::new() }
    }

    /// Moves the reader back in the journal if a new watch started before the current cursor.
    fn choose_start(&mut self, watches: &mut Vec<Watch>) -> Result<EventReaderNewWatchInclusion, Error> {
        self.delivered_up_to.retain(|id, _| watches.iter().any(|watch| watch.id == *id));
        let all = watches.len();
        if self.position.is_some_and(JournalCursor::is_within_entry) {
            watches.retain(|watch| self.delivered_up_to.contains_key(&watch.id));
        }
        let new = watches.iter().filter(|watch| !self.delivered_up_to.contains_key(&watch.id));
        let first = new.map(|watch| watch.started_at_entry).min();
        if let Some(first) =
            first.filter(|first| self.position.is_none_or(|position| *first < position.last_complete_entry()))
        {
            let start = JournalCursor::resolve(&self.engine.reader(), &JournalCursorArgument::Number(first))?;
            if let Some(previous) = self.position.replace(start) {
                self.delivered_up_to
                    .values_mut()
                    .for_each(|floor| *floor = (*floor).max(previous.last_complete_entry()));
            }
        }
        for watch in watches.iter_mut() {
            let floor = *self.delivered_up_to.entry(watch.id.clone()).or_insert(watch.started_at_entry);
            watch.started_at_entry = watch.started_at_entry.max(floor);
        }
        Ok(if watches.len() == all {
            EventReaderNewWatchInclusion::All
        } else {
            EventReaderNewWatchInclusion::Selected
        })
    }

    /// Waits until the time `until` for events of the watches whose ids `ids` returns. The function `ids` is called
    /// again whenever the journal grows, so that new watches are included.
    pub fn wait_for_events(
        &mut self,
        ids: &dyn Fn() -> Vec<String>,
        until: Instant,
        cancel: &CancelToken,
    ) -> Result<Vec<WatchEventRow>, Error> {
        let (engine, caller) = (self.engine.clone(), self.caller.clone());
        let options = CallOptions::default();
        let control = CallControl::new(until + limits::DEFAULT_CALL_DEADLINE, cancel.clone(), None);
        let call = CallMetadata { caller: &caller, idempotency_key: None, options: &options, control: &control };
        let policy = engine.reader().active_policy()?;
        let context = CallContext::new(engine.reader(), &call, "watched", &policy);
        let workspace = context.workspace();
        loop {
            // The head is read before the scan, so that an entry added during the scan ends the wait below.
            let head = workspace.head()?.number;
            let wanted = ids();
            let mut watches = workspace.watches(&caller.principal)?;
            watches.retain(|watch| wanted.contains(&watch.id));
            let followed = self.choose_start(&mut watches)?;
            if let Some(position) = self.position {
                let watchers: Vec<WatchMatcher<'_>> = watches.iter().map(WatchMatcher::new).collect();
                let page = collect_events(&context, &watchers, CallerOwnChangesInclusion::Exclude, position)?;
                self.position = Some(page.position);
                if !page.events.is_empty() {
                    return context.release_reply(page.events);
                }
                if page.limit.is_some() || followed == EventReaderNewWatchInclusion::Selected {
                    continue;
                }
            }
            if Instant::now() >= until {
                return Ok(Vec::new());
            }
            context.control.check()?;
            workspace.wait_for_entry_after(head, until)?;
        }
    }
}
