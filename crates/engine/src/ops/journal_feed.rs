//! Reads the journal forward from a cursor, one page per call, and waits for the first event. The operations `changes`,
//! `events` and `watched` read the journal with this module.

use std::{
    fmt,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize, Serializer};
use stead_journal::Digest;

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    ops::{
        text_pages::shorten_for_error,
        visible_change::{history_lost_error, parse_entry_number},
    },
    outcome::{Completeness, UtcTime},
    workspace::{JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter, StoredJournalEntry},
    workspace_reader::WorkspaceReader,
};

const CURSOR_HASH_DIGITS: usize = 16;
const NOW_CURSOR: &str = "now";

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(with = "String")]
pub enum JournalCursorArgument {
    Number(u64),
    Text(String),
}

impl From<JournalCursor> for JournalCursorArgument {
    fn from(cursor: JournalCursor) -> Self {
        Self::Text(cursor.to_string())
    }
}

/// A journal cursor: a position in the journal, verified by the hash of a journal entry. A journal cursor is written as
/// `12:` and a prefix of the hash of entry 12, so that a lost or replaced journal is detected. A journal cursor inside
/// an entry ends with the number of the entry's changes that are already delivered.
///
/// A journal cursor that the server creates names the start of the journal or an entry with changes. An entry with
/// changes is written durably before its call returns, so a crash cannot invalidate a journal cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct JournalCursor {
    number: u64,
    hash: Option<Digest>,
    /// The number of delivered changes of the journal entry; `None` if all its changes are delivered.
    delivered: Option<usize>,
}

impl JournalCursor {
    const START: JournalCursor = JournalCursor { number: 0, hash: None, delivered: None };

    pub(in crate::ops) fn resolve(
        workspace: &WorkspaceReader<'_>,
        since: &JournalCursorArgument,
    ) -> Result<Self, Error> {
        let text = match since {
            JournalCursorArgument::Number(number) => return Self::verify_entry(workspace, *number, None, None),
            JournalCursorArgument::Text(text) => text.trim(),
        };
        if text == NOW_CURSOR {
            return Self::at_end(workspace);
        }
        let malformed = || {
            Error::new(ErrorKind::BadRequest, format!("'{}' is not a cursor", shorten_for_error(text))).with_next_step(
                "pass a cursor that an earlier call returned, an entry such as \"r12\", 0 for the start, or \"now\"",
            )
        };
        let mut parts = text.splitn(3, ':');
        let number = parts.next().and_then(parse_entry_number).ok_or_else(malformed)?;
        let hash = parts.next();
        let delivered = parts.next().map(|count| count.parse::<usize>().map_err(|_| malformed())).transpose()?;
        let is_hash =
            |hash: &str| hash.len() >= CURSOR_HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hash.is_some_and(|hash| !is_hash(hash)) {
            return Err(malformed());
        }
        Self::verify_entry(workspace, number, hash, delivered)
    }

    fn verify_entry(
        workspace: &WorkspaceReader<'_>,
        number: u64,
        hash: Option<&str>,
        delivered: Option<usize>,
    ) -> Result<Self, Error> {
        if number == 0 {
            return Ok(Self::START);
        }
        let matches_hash = |stored: &StoredJournalEntry| {
            hash.is_none_or(|known| stored.hash.to_string().starts_with(&known.to_ascii_lowercase()))
        };
        match workspace.entry(number)?.filter(matches_hash) {
            Some(stored) => Ok(Self { number, hash: Some(stored.hash), delivered }),
            None => Err(history_lost_error(number, workspace.head()?.number)),
        }
    }

    pub(in crate::ops) fn at_end(workspace: &WorkspaceReader<'_>) -> Result<Self, Error> {
        Self::after_newest(workspace, None)
    }

    /// Returns the cursor directly after the last entry with changes that precedes entry `number`.
    pub(in crate::ops) fn before_entry(workspace: &WorkspaceReader<'_>, number: u64) -> Result<Self, Error> {
        Self::after_newest(workspace, Some(number))
    }

    fn after_newest(workspace: &WorkspaceReader<'_>, before: Option<u64>) -> Result<Self, Error> {
        let filter = JournalEntryQuery { before, ..JournalEntryQuery::changes(JournalEntryOrder::NewestFirst, 1) };
        Ok(workspace.entries(&filter)?.first().map_or(Self::START, Self::after_entry))
    }

    pub(in crate::ops) fn after_entry(stored: &StoredJournalEntry) -> Self {
        Self { number: stored.entry.number, hash: Some(stored.hash), delivered: None }
    }

    pub(in crate::ops) fn within_entry(stored: &StoredJournalEntry, delivered: usize) -> Self {
        Self { delivered: Some(delivered), ..Self::after_entry(stored) }
    }

    pub(in crate::ops) fn last_complete_entry(self) -> u64 {
        match self.delivered {
            Some(_) => self.number.saturating_sub(1),
            None => self.number,
        }
    }

    pub(in crate::ops) fn is_within_entry(self) -> bool {
        self.delivered.is_some()
    }

    pub(in crate::ops) fn delivered_within(self, number: u64) -> usize {
        self.delivered.filter(|_| number == self.number).unwrap_or(0)
    }
}

impl fmt::Display for JournalCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        if let Some(hash) = &self.hash {
            write!(f, ":{}", &hash.to_string()[..CURSOR_HASH_DIGITS])?;
        }
        match self.delivered {
            Some(delivered) => write!(f, ":{delivered}"),
            None => Ok(()),
        }
    }
}

impl Serialize for JournalCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct EventRowJournalEntryFields {
    pub entry: u64,
    pub time: UtcTime,
    pub principal: String,
    pub operation: String,
}

impl From<&StoredJournalEntry> for EventRowJournalEntryFields {
    fn from(stored: &StoredJournalEntry) -> Self {
        let entry = &stored.entry;
        Self {
            entry: entry.number,
            time: UtcTime { unix_ms: entry.time_ms },
            principal: entry.caller.principal.clone(),
            operation: entry.operation.clone(),
        }
    }
}

pub(super) const FEED_BATCH_ENTRIES: usize = 200;
/// The interval at which a call that waits for events checks whether it was cancelled.
const WAIT_SLICE: Duration = Duration::from_millis(250);
/// The time that a call waiting for events reserves before its deadline for sending the outcome.
const RESPONSE_MARGIN: Duration = Duration::from_millis(250);

pub(crate) struct JournalFeedPage<E> {
    pub(crate) events: Vec<E>,
    pub(crate) position: JournalCursor,
    /// The name of the limit at which the page ended; `None` if the page reaches the end of the journal.
    pub(crate) limit: Option<&'static str>,
}

impl<E> JournalFeedPage<E> {
    pub(super) fn end_at(&mut self, position: JournalCursor, limit: &'static str) {
        self.position = position;
        self.limit = Some(limit);
    }

    pub(super) fn completeness<A>(&self, next: impl FnOnce(JournalCursorArgument) -> A) -> Completeness<A> {
        self.limit.map_or(Completeness::Complete, |limit| Completeness::continued_by(next(self.position.into()), limit))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MoreJournalEntriesFlag {
    No,
    Yes,
}

pub(super) type JournalEntryPage = (Vec<StoredJournalEntry>, MoreJournalEntriesFlag);

pub(super) type AddEntryToFeedPageFn<'a, E> =
    dyn FnMut(&StoredJournalEntry, &mut JournalFeedPage<E>) -> Result<(), Error> + 'a;

pub(super) fn wait_for_page<E>(
    context: &CallContext<'_>,
    wait_ms: Option<u64>,
    start: JournalCursor,
    collect: &mut dyn FnMut(JournalCursor) -> Result<JournalFeedPage<E>, Error>,
) -> Result<JournalFeedPage<E>, Error> {
    let wait_ms = wait_ms.unwrap_or(0).min(limits::CHANGES_WAIT_MS_MAX);
    let started = Instant::now();
    let remaining = context.control.deadline().saturating_duration_since(started).saturating_sub(RESPONSE_MARGIN);
    let until = started + Duration::from_millis(wait_ms).min(remaining);
    let mut position = start;
    loop {
        // The head is read before the scan, so that an entry added during the scan ends the wait below.
        let head = context.workspace().head()?.number;
        let page = collect(position)?;
        let now = Instant::now();
        if !page.events.is_empty() || page.limit.is_some() || now >= until {
            return Ok(page);
        }
        position = page.position;
        context.control.check()?;
        context.workspace().wait_for_entry_after(head, until.min(now + WAIT_SLICE))?;
    }
}

pub(super) fn scan_entries<E>(
    context: &CallContext<'_>,
    start: JournalCursor,
    batch: &dyn Fn(u64) -> Result<JournalEntryPage, Error>,
    add: &mut AddEntryToFeedPageFn<'_, E>,
) -> Result<JournalFeedPage<E>, Error> {
    let mut page = JournalFeedPage { events: Vec::new(), position: start, limit: None };
    let mut scanned = 0;
    while scanned < limits::ENTRIES_SCANNED_MAX {
        context.control.check()?;
        let (entries, rest) = batch(page.position.last_complete_entry())?;
        scanned += entries.len();
        for stored in &entries {
            add(stored, &mut page)?;
            if page.limit.is_some() {
                return Ok(page);
            }
        }
        if rest == MoreJournalEntriesFlag::No {
            return Ok(page);
        }
    }
    page.limit = Some("ENTRIES_SCANNED_MAX");
    Ok(page)
}

pub(super) fn changed_entries(context: &CallContext<'_>, after: u64) -> Result<JournalEntryPage, Error> {
    let entries = context
        .workspace()
        .entries(&JournalEntryQuery { selection: JournalNoChangeEntryFilter::WithChanges, ..batch_query(after) })?;
    let rest =
        if entries.len() < FEED_BATCH_ENTRIES { MoreJournalEntriesFlag::No } else { MoreJournalEntriesFlag::Yes };
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
