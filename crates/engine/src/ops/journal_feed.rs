//! Reads the journal forward from a cursor, by page, and waits for the first event. Owns the wait time and the number
//! of entries scanned per call; `changes`, `events` and `watched` turn entries into events.
//!
//! An entry added during the scan ends the wait, and a truncated page says so.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{journal_cursor::JournalCursor, outcome_builder::OutcomeBuilder};
use crate::{
    call_context::CallContext,
    errors::Error,
    limits,
    workspace::{JournalEntryOrder, JournalEntryQuery, JournalEntrySelection, StoredJournalEntry},
};

pub(super) const FEED_BATCH_ENTRIES: usize = 200;
/// Interval at which a wait checks for cancellation.
const WAIT_SLICE: Duration = Duration::from_millis(250);
/// A wait ends this long before the call's deadline, so that the outcome arrives in time.
const RESPONSE_MARGIN: Duration = Duration::from_millis(250);

/// Events in order, and the position of the next page.
pub(crate) struct FeedPage<E> {
    pub(crate) events: Vec<E>,
    pub(crate) position: JournalCursor,
    pub(crate) has_more: bool,
}

impl<E> FeedPage<E> {
    /// Ends the page at this position; later events belong to the next page.
    pub(super) fn set_end(&mut self, position: JournalCursor) {
        self.position = position;
        self.has_more = true;
    }

    /// The last line of the text: the cursor, and the call that returns more.
    pub(super) fn render_end(&self, call: &str, argument: &str) -> String {
        let cursor = &self.position;
        if self.has_more {
            format!("… more: call {call} with {argument} \"{cursor}\"")
        } else {
            format!("[cursor {cursor}]")
        }
    }
}

/// One event as JSON and as text.
pub(super) type RenderedEvent = (Value, String);

impl FeedPage<RenderedEvent> {
    /// Builds the outcome of a page: its events, or `nothing`, and the cursor.
    pub(super) fn into_outcome(self, nothing: &str, call: &str) -> crate::CallOutcome {
        let end = self.render_end(call, "since");
        let (events, lines): (Vec<Value>, Vec<String>) = self.events.into_iter().unzip();
        let text = if lines.is_empty() { format!("{nothing}\n") } else { lines.concat() };
        OutcomeBuilder::new()
            .with_field("events", events)
            .with_field("cursor", self.position.to_string())
            .with_field("truncated", self.has_more)
            .build(text + &end)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoreJournalEntries {
    No,
    Yes,
}

pub(super) type JournalEntryBatch = (Vec<StoredJournalEntry>, MoreJournalEntries);

/// Adds the events of one entry to a page, as many as fit.
pub(super) type AddJournalEntryFn<'a, E> = dyn FnMut(&StoredJournalEntry, &mut FeedPage<E>) -> Result<(), Error> + 'a;

/// The first page with events, or an empty one after the wait.
pub(super) fn wait_for_page<E>(
    context: &CallContext<'_>,
    wait_ms: Option<u64>,
    start: JournalCursor,
    gather: &mut dyn FnMut(JournalCursor) -> Result<FeedPage<E>, Error>,
) -> Result<FeedPage<E>, Error> {
    let wait_ms = wait_ms.unwrap_or(0).min(limits::CHANGES_WAIT_MS_MAX);
    let started = Instant::now();
    let left = context.control.deadline().saturating_duration_since(started).saturating_sub(RESPONSE_MARGIN);
    let until = started + Duration::from_millis(wait_ms).min(left);
    let mut position = start;
    loop {
        // Read before the scan, so that an entry added meanwhile ends the wait below.
        let head = context.workspace().head()?.number;
        let page = gather(position)?;
        let now = Instant::now();
        if !page.events.is_empty() || page.has_more || now >= until {
            return Ok(page);
        }
        position = page.position;
        context.control.check()?;
        context.workspace().wait_for_entry_after(head, until.min(now + WAIT_SLICE))?;
    }
}

/// Scans entries from a position, batch by batch, until the page is full or the journal ends.
pub(super) fn scan_entries<E>(
    context: &CallContext<'_>,
    start: JournalCursor,
    batch: &dyn Fn(u64) -> Result<JournalEntryBatch, Error>,
    add: &mut AddJournalEntryFn<'_, E>,
) -> Result<FeedPage<E>, Error> {
    let mut page = FeedPage { events: Vec::new(), position: start, has_more: false };
    let mut scanned = 0;
    while scanned < limits::ENTRIES_SCANNED_MAX {
        context.control.check()?;
        let (entries, rest) = batch(page.position.last_complete_entry())?;
        scanned += entries.len();
        for stored in &entries {
            add(stored, &mut page)?;
            if page.has_more {
                return Ok(page);
            }
        }
        if rest == MoreJournalEntries::No {
            return Ok(page);
        }
    }
    page.has_more = true;
    Ok(page)
}

/// The next entries with changes.
pub(super) fn changed_entries(context: &CallContext<'_>, after: u64) -> Result<JournalEntryBatch, Error> {
    let entries = context
        .workspace()
        .entries(&JournalEntryQuery { selection: JournalEntrySelection::WithChanges, ..batch_query(after) })?;
    let rest = if entries.len() < FEED_BATCH_ENTRIES { MoreJournalEntries::No } else { MoreJournalEntries::Yes };
    Ok((entries, rest))
}

pub(super) fn batch_query(after: u64) -> JournalEntryQuery {
    JournalEntryQuery {
        after: Some(after),
        order: JournalEntryOrder::OldestFirst,
        limit: FEED_BATCH_ENTRIES,
        ..JournalEntryQuery::default()
    }
}
