//! Where a reader of the journal stands: `12:` and the start of that entry's hash, so that a journal that was lost,
//! cut or replaced is noticed, and, inside an entry with many changes, how many of them were delivered.
//!
//! A position always names an entry that changed something (or nothing at all): those are on the disk before they are
//! answered, so a crash never makes an honest reader look like one from another history.

use std::fmt;

use journal::Digest;
use serde::Deserialize;

use crate::{
    failure::{Failure, Kind},
    ops::{
        answer::excerpt,
        recorded::{entry_number, history_lost},
    },
    workspace::{EntryFilter, Order, Stored, Which, Workspace},
};

/// Hex digits of a hash in a cursor.
const HASH_DIGITS: usize = 16;
/// From here on.
const NOW: &str = "now";

/// A cursor as callers write it.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(in crate::ops) enum Since {
    /// A bare entry number.
    Number(u64),
    /// `now`, `r12`, or the cursor of an earlier answer.
    Text(String),
}

/// A checked place in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::ops) struct Position {
    number: u64,
    /// The entry's hash; nothing at the very start.
    hash: Option<Digest>,
    /// How many of the entry's changes were delivered; nothing means all.
    delivered: Option<usize>,
}

impl Position {
    const START: Position = Position { number: 0, hash: None, delivered: None };

    /// Reads a cursor and holds it against the journal.
    pub(in crate::ops) fn start(workspace: &dyn Workspace, since: &Since) -> Result<Self, Failure> {
        let text = match since {
            Since::Number(number) => return Self::checked(workspace, *number, None, None),
            Since::Text(text) => text.trim(),
        };
        if text == NOW {
            return Self::now(workspace);
        }
        let malformed = || {
            Failure::new(Kind::BadRequest, format!("'{}' is not a cursor", excerpt(text))).hint(
                "since is the cursor of the last answer, an entry like \"r12\", 0 for the start, or \"now\"",
            )
        };
        let mut parts = text.splitn(3, ':');
        let number = parts.next().and_then(entry_number).ok_or_else(malformed)?;
        let hash = parts.next();
        let delivered =
            parts.next().map(|count| count.parse::<usize>().map_err(|_| malformed())).transpose()?;
        let is_hash =
            |hash: &str| hash.len() >= HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        if hash.is_some_and(|hash| !is_hash(hash)) {
            return Err(malformed());
        }
        Self::checked(workspace, number, hash, delivered)
    }

    fn checked(
        workspace: &dyn Workspace,
        number: u64,
        hash: Option<&str>,
        delivered: Option<usize>,
    ) -> Result<Self, Failure> {
        if number == 0 {
            return Ok(Self::START);
        }
        let lost = || workspace.head().map(|head| history_lost(number, head.number));
        let Some(stored) = workspace.entry(number)? else { return Err(lost()?) };
        let same = hash.is_none_or(|known| stored.hash.to_string().starts_with(&known.to_ascii_lowercase()));
        if !same {
            return Err(lost()?);
        }
        Ok(Self { number, hash: Some(stored.hash), delivered })
    }

    /// After the last change there is.
    pub(in crate::ops) fn now(workspace: &dyn Workspace) -> Result<Self, Failure> {
        let filter = EntryFilter {
            what: Which::Changes,
            order: Order::NewestFirst,
            limit: 1,
            ..EntryFilter::default()
        };
        Ok(workspace.entries(&filter)?.first().map_or(Self::START, Self::past))
    }

    /// After the last change before this entry.
    pub(in crate::ops) fn before(workspace: &dyn Workspace, number: u64) -> Result<Self, Failure> {
        let filter = EntryFilter {
            what: Which::Changes,
            order: Order::NewestFirst,
            before: Some(number),
            limit: 1,
            ..EntryFilter::default()
        };
        Ok(workspace.entries(&filter)?.first().map_or(Self::START, Self::past))
    }

    /// After an entry.
    pub(in crate::ops) fn past(stored: &Stored) -> Self {
        Self { number: stored.entry.number, hash: Some(stored.hash), delivered: None }
    }

    /// Inside an entry, of which this many changes were delivered.
    pub(in crate::ops) fn inside(stored: &Stored, delivered: usize) -> Self {
        Self { delivered: Some(delivered), ..Self::past(stored) }
    }

    /// The number after which entries are still to be delivered.
    pub(in crate::ops) fn after(self) -> u64 {
        match self.delivered {
            Some(_) => self.number.saturating_sub(1),
            None => self.number,
        }
    }

    /// Whether an entry was delivered in part.
    pub(in crate::ops) fn is_inside(self) -> bool {
        self.delivered.is_some()
    }

    /// How many changes of this entry were delivered.
    pub(in crate::ops) fn delivered_of(self, number: u64) -> usize {
        self.delivered.filter(|_| number == self.number).unwrap_or(0)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number)?;
        if let Some(hash) = &self.hash {
            write!(f, ":{}", &hash.to_string()[..HASH_DIGITS])?;
        }
        match self.delivered {
            Some(delivered) => write!(f, ":{delivered}"),
            None => Ok(()),
        }
    }
}
