//! The journal read forward from a cursor, a page at a time, waiting for the first news. Owns how long a call waits and
//! how much of the journal it looks through; what an entry tells is for `changes`, `events` and `watched` to say.
//!
//! Promises: an entry that is made while nobody looks ends the wait, and a page that ends early says that it is full.

use std::time::{Duration, Instant};

use serde_json::Value;

use super::{answer::Facts, changes::cursor::Position};
use crate::{
    failure::Failure,
    limits,
    view::View,
    workspace::{EntryFilter, Order, Stored, Which},
};

/// Entries asked for at a time.
pub(super) const BATCH: usize = 200;
/// How long a wait goes on before cancellation is looked at again.
const WAIT_SLICE: Duration = Duration::from_millis(250);
/// How long before the call's deadline a wait ends, so that there is time to answer.
const ANSWER_TIME: Duration = Duration::from_millis(250);

/// Events in order, and where the next page starts.
pub(crate) struct Page<E> {
    pub(crate) events: Vec<E>,
    pub(crate) position: Position,
    /// Whether more may follow at once.
    pub(crate) full: bool,
}

impl<E> Page<E> {
    /// Ends the page at this position; what comes after it waits for the next one.
    pub(super) fn end_at(&mut self, position: Position) {
        self.position = position;
        self.full = true;
    }

    /// How the text twin ends: where to go on, and with which call when there is more.
    pub(super) fn end(&self, call: &str, argument: &str) -> String {
        let cursor = &self.position;
        if self.full {
            format!("… more: call {call} with {argument} \"{cursor}\"")
        } else {
            format!("[cursor {cursor}]")
        }
    }
}

/// One event, for machines and for models.
pub(super) type Told = (Value, String);

impl Page<Told> {
    /// The answer of a page: what happened, or that nothing did, and how to go on.
    pub(super) fn answer(self, nothing: &str, call: &str) -> crate::Answer {
        let end = self.end(call, "since");
        let (events, lines): (Vec<Value>, Vec<String>) = self.events.into_iter().unzip();
        let text = if lines.is_empty() { format!("{nothing}\n") } else { lines.concat() };
        Facts::new()
            .with("events", events)
            .with("cursor", self.position.to_string())
            .with("truncated", self.full)
            .answer(text + &end)
    }
}

/// Whether a batch of entries is the last one there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    Something,
}

/// Entries in order, and whether more follow them.
pub(super) type Batch = (Vec<Stored>, Rest);

/// Puts what one entry tells on a page, as much as fits.
pub(super) type Add<'a, E> = dyn FnMut(&Stored, &mut Page<E>) -> Result<(), Failure> + 'a;

/// The first page with something in it, or an empty one when the wait is over.
pub(super) fn wait<E>(
    view: &View<'_>,
    wait_ms: Option<u64>,
    start: Position,
    gather: &mut dyn FnMut(Position) -> Result<Page<E>, Failure>,
) -> Result<Page<E>, Failure> {
    let wait_ms = wait_ms.unwrap_or(0).min(limits::CHANGES_WAIT_MS_MAX);
    let started = Instant::now();
    let left = view.control.deadline().saturating_duration_since(started).saturating_sub(ANSWER_TIME);
    let until = started + Duration::from_millis(wait_ms).min(left);
    let mut position = start;
    loop {
        // Taken before looking, so that an entry made meanwhile ends the wait below.
        let head = view.workspace().head()?.number;
        let page = gather(position)?;
        let now = Instant::now();
        if !page.events.is_empty() || page.full || now >= until {
            return Ok(page);
        }
        position = page.position;
        view.control.check()?;
        view.workspace().wait_after(head, until.min(now + WAIT_SLICE))?;
    }
}

/// Goes through entries from a position, batch by batch, until the page is full or nothing is left.
pub(super) fn scan<E>(
    view: &View<'_>,
    start: Position,
    batch: &dyn Fn(u64) -> Result<Batch, Failure>,
    add: &mut Add<'_, E>,
) -> Result<Page<E>, Failure> {
    let mut page = Page { events: Vec::new(), position: start, full: false };
    let mut scanned = 0;
    while scanned < limits::ENTRIES_SCANNED_MAX {
        view.control.check()?;
        let (entries, rest) = batch(page.position.after())?;
        scanned += entries.len();
        for stored in &entries {
            add(stored, &mut page)?;
            if page.full {
                return Ok(page);
            }
        }
        if rest == Rest::Nothing {
            return Ok(page);
        }
    }
    page.full = true;
    Ok(page)
}

/// The next entries that changed something.
pub(super) fn changes(view: &View<'_>, after: u64) -> Result<Batch, Failure> {
    let entries = view.workspace().entries(&EntryFilter { what: Which::Changes, ..filter(after) })?;
    let rest = if entries.len() < BATCH { Rest::Nothing } else { Rest::Something };
    Ok((entries, rest))
}

/// One batch of entries, in order.
pub(super) fn filter(after: u64) -> EntryFilter {
    EntryFilter { after: Some(after), order: Order::OldestFirst, limit: BATCH, ..EntryFilter::default() }
}
