//! A position in the journal, written as `12:` and a prefix of that entry's hash, so that a lost, truncated or
//! replaced journal is detected. Inside an entry with many changes it also holds the number of delivered changes.
//!
//! A cursor always names an entry with changes (or the start). Such entries are durable before the call returns, so a
//! crash never invalidates a valid cursor.

use std::fmt;

use serde::Deserialize;
use stead_journal::Digest;

use crate::{
    errors::{Error, ErrorKind},
    ops::{
        outcome_builder::shorten_for_error,
        visible_change::{history_lost_error, parse_entry_number},
    },
    workspace::{JournalEntryOrder, JournalEntryQuery, JournalEntrySelection, StoredJournalEntry, Workspace},
};

const CURSOR_HASH_DIGITS: usize = 16;
const NOW_CURSOR: &str = "now";

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::ops) enum JournalCursorArgument {
    Number(u64),
    /// `now`, `r12`, or the cursor of an earlier outcome.
    Text(String),
}

/// A verified position in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct JournalCursor {
    number: u64,
    /// The entry's hash; `None` at the start of the journal.
    hash: Option<Digest>,
    /// Number of delivered changes of the entry; `None` means all.
    delivered: Option<usize>,
}

impl JournalCursor {
    const START: JournalCursor = JournalCursor { number: 0, hash: None, delivered: None };

    /// Parses a cursor and verifies it against the journal.
    pub(in crate::ops) fn resolve(workspace: &dyn Workspace, since: &JournalCursorArgument) -> Result<Self, Error> {
        let text = match since {
            JournalCursorArgument::Number(number) => {
                return Self::verify_entry(workspace, *number, None, None);
            }
            JournalCursorArgument::Text(text) => text.trim(),
        };
        if text == NOW_CURSOR {
            return Self::at_end(workspace);
        }
        let malformed = || {
            Error::new(ErrorKind::BadRequest, format!("'{}' is not a cursor", shorten_for_error(text))).with_next_step(
                "since is the cursor of the last answer, an entry like \"r12\", 0 for the start, or \"now\"",
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
        workspace: &dyn Workspace,
        number: u64,
        hash: Option<&str>,
        delivered: Option<usize>,
    ) -> Result<Self, Error> {
        if number == 0 {
            return Ok(Self::START);
        }
        let lost = || workspace.head().map(|head| history_lost_error(number, head.number));
        let Some(stored) = workspace.entry(number)? else { return Err(lost()?) };
        let same = hash.is_none_or(|known| stored.hash.to_string().starts_with(&known.to_ascii_lowercase()));
        if !same {
            return Err(lost()?);
        }
        Ok(Self { number, hash: Some(stored.hash), delivered })
    }

    /// After the last change.
    pub(in crate::ops) fn at_end(workspace: &dyn Workspace) -> Result<Self, Error> {
        let filter = JournalEntryQuery {
            selection: JournalEntrySelection::WithChanges,
            order: JournalEntryOrder::NewestFirst,
            limit: 1,
            ..JournalEntryQuery::default()
        };
        Ok(workspace.entries(&filter)?.first().map_or(Self::START, Self::after_entry))
    }

    /// After the last change before this entry.
    pub(in crate::ops) fn before_entry(workspace: &dyn Workspace, number: u64) -> Result<Self, Error> {
        let filter = JournalEntryQuery {
            selection: JournalEntrySelection::WithChanges,
            order: JournalEntryOrder::NewestFirst,
            before: Some(number),
            limit: 1,
            ..JournalEntryQuery::default()
        };
        Ok(workspace.entries(&filter)?.first().map_or(Self::START, Self::after_entry))
    }

    pub(in crate::ops) fn after_entry(stored: &StoredJournalEntry) -> Self {
        Self { number: stored.entry.number, hash: Some(stored.hash), delivered: None }
    }

    pub(in crate::ops) fn within_entry(stored: &StoredJournalEntry, delivered: usize) -> Self {
        Self { delivered: Some(delivered), ..Self::after_entry(stored) }
    }

    /// Entries after this number are not delivered yet.
    pub(in crate::ops) fn last_complete_entry(self) -> u64 {
        match self.delivered {
            Some(_) => self.number.saturating_sub(1),
            None => self.number,
        }
    }

    /// Whether the entry was delivered in part.
    pub(in crate::ops) fn is_within_entry(self) -> bool {
        self.delivered.is_some()
    }

    /// The number of delivered changes of this entry.
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
