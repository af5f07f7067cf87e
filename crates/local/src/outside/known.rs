//! What the journal says stands at a place. Only as far as nothing above the place was changed later: what came or went
//! with a directory was not told of name by name.

use std::{collections::HashMap, rc::Rc};

use engine::{Failure, Kind};
use journal::{Entry, State};
use path::RelPath;
use rusqlite::{Connection, OptionalExtension, params};

use crate::store::{Store, sql};

/// Entries that are kept decoded while a batch is judged.
const ENTRIES_KEPT: usize = 64;

/// Entries that are looked through for one that says what stands at a place.
const LOOKS_BACK_MAX: usize = 16;

/// The operation of an entry that says only that something may have changed.
pub(crate) const RESCAN: &str = "rescan";

/// The last word of the journal about a place.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The entry that said it; zero when none did.
    pub(crate) number: u64,
    /// What it left there; nothing when that is not known.
    pub(crate) state: Option<State>,
    /// Whether a later entry moved, removed or brought back something above the place.
    pub(crate) moved_above: bool,
    /// Whether the entry may not be true yet.
    pub(crate) pending: bool,
}

/// Looks places up, remembering what places of one batch share.
pub(crate) struct Knowledge<'a> {
    store: &'a Store,
    entries: HashMap<u64, Rc<Entry>>,
    above: HashMap<RelPath, u64>,
}

impl<'a> Knowledge<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store, entries: HashMap::new(), above: HashMap::new() }
    }

    pub(crate) fn of(&mut self, path: &RelPath) -> Result<Known, Failure> {
        let wire = path.to_string();
        let (number, pending) = self.store.look(|connection| {
            let number = last(connection, &wire)?;
            let pending = number > 0 && is_pending(connection, number)?;
            Ok((number, pending))
        })?;
        let mut above = 0;
        for directory in path.ancestors() {
            above = above.max(self.last_of_directory(&directory)?);
        }
        let moved_above = above > number;
        let state = if moved_above { None } else { self.state(number, above, &wire)? };
        Ok(Known { number, state, moved_above, pending })
    }

    /// When the last entry about a directory brought it there whole, with everything in it, in unix milliseconds; nothing
    /// when it did something else.
    pub(crate) fn brought_ms(&mut self, directory: &RelPath) -> Result<Option<i64>, Failure> {
        let wire = directory.to_string();
        let number = self.store.look(|connection| last(connection, &wire))?;
        if number == 0 {
            return Ok(None);
        }
        let entry = self.entry(number)?;
        let brought = entry.changes.iter().any(|change| match &change.to {
            Some(to) => change.kind == journal::ChangeKind::Rename && *to == wire,
            None => change.path == wire && matches!(change.after, State::Tree { .. }),
        });
        Ok(brought.then_some(entry.time_ms))
    }

    /// What stands at a place by the last entry that says so. One that only copied it away does not.
    fn state(&mut self, newest: u64, oldest: u64, wire: &str) -> Result<Option<State>, Failure> {
        let mut number = newest;
        for _ in 0..LOOKS_BACK_MAX {
            if number == 0 || number < oldest {
                return Ok(None);
            }
            if let Some(state) = self.left(number, wire)? {
                return Ok(Some(state));
            }
            number = self.store.look(|connection| last_before(connection, wire, number))?;
        }
        Ok(None)
    }

    fn last_of_directory(&mut self, directory: &RelPath) -> Result<u64, Failure> {
        if let Some(number) = self.above.get(directory) {
            return Ok(*number);
        }
        let number = self.store.look(|connection| last(connection, &directory.to_string()))?;
        self.above.insert(directory.clone(), number);
        Ok(number)
    }

    /// What an entry left at a place.
    fn left(&mut self, number: u64, wire: &str) -> Result<Option<State>, Failure> {
        let entry = self.entry(number)?;
        Ok(entry.changes.iter().rev().find_map(|change| match &change.to {
            Some(to) if to == wire => Some(change.after.clone()),
            // A copy leaves its source as it was, and that is told elsewhere.
            Some(_) if change.path == wire && change.kind == journal::ChangeKind::Rename => {
                Some(State::Absent)
            }
            None if change.path == wire => Some(change.after.clone()),
            Some(_) | None => None,
        }))
    }

    fn entry(&mut self, number: u64) -> Result<Rc<Entry>, Failure> {
        if let Some(entry) = self.entries.get(&number) {
            return Ok(Rc::clone(entry));
        }
        let bytes: Vec<u8> = self.store.look(|connection| {
            connection
                .prepare_cached("SELECT bytes FROM entries WHERE number = ?1")?
                .query_row(params![sql(number)], |row| row.get(0))
        })?;
        let entry = journal::decode(&bytes).map_err(|_| {
            Failure::new(Kind::CorruptHistory, "an entry in the journal cannot be read")
                .hint("run stead log verify")
        })?;
        if self.entries.len() >= ENTRIES_KEPT {
            self.entries.clear();
        }
        let entry = Rc::new(entry);
        self.entries.insert(number, Rc::clone(&entry));
        Ok(entry)
    }
}

/// The last entry that changed a place by itself; zero when there is none.
pub(crate) fn last(connection: &Connection, wire: &str) -> rusqlite::Result<u64> {
    last_before(connection, wire, u64::MAX)
}

fn last_before(connection: &Connection, wire: &str, number: u64) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT number FROM touched CROSS JOIN entries USING (number)
             WHERE path = ?1 AND touched.number < ?3 AND changed = 1 AND operation <> ?2
             ORDER BY touched.number DESC LIMIT 1",
        )?
        .query_row(params![wire, RESCAN, sql(number)], |row| row.get::<_, i64>(0))
        .optional()
        .map(|found| found.map_or(0, i64::unsigned_abs))
}

fn is_pending(connection: &Connection, number: u64) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM pending WHERE number = ?1 LIMIT 1")?.exists(params![sql(number)])
}
