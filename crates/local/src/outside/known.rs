//! What the journal says stands at a place. Only as far as nothing above the place was changed later: what came or went
//! with a directory was not told of name by name.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use engine::{Failure, Kind, Principal};
use journal::{Change, ChangeKind, Entry, State};
use path::RelPath;
use rusqlite::{Connection, OptionalExtension, params};

use super::batch::Move;
use crate::store::{Store, sql};

/// Entries that are kept decoded while a batch is judged.
const ENTRIES_KEPT: usize = 64;

/// Entries that are looked through for one that says what stands at a place.
const LOOKS_BACK_MAX: usize = 16;

/// Most entries that are looked through for what was done through here while others moved something.
const RECENT_MAX: u64 = 10_000;

/// The operation of an entry that says only that something may have changed.
pub(crate) const RESCAN: &str = "rescan";

/// The last word of the journal about a place.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    /// The entry that said it; zero when none did.
    pub(crate) number: u64,
    /// What it left there; nothing when that is not known.
    pub(crate) state: Option<State>,
    /// The last entry that changed something above the place.
    pub(crate) above: u64,
    /// Whether something above the place went away after that entry, and the place with it.
    pub(crate) went: bool,
    /// Whether an entry about the place or something above it may not be true yet.
    pub(crate) pending: bool,
}

/// What was judged and is not in the journal yet, later than everything that is.
#[derive(Default)]
struct Ahead {
    states: HashMap<RelPath, State>,
    /// Names that something left or took, and with them everything below.
    tops: HashSet<RelPath>,
}

/// Looks places up, remembering what places of one batch share.
pub(crate) struct Knowledge<'a> {
    store: &'a Store,
    entries: HashMap<u64, Rc<Entry>>,
    above: HashMap<RelPath, u64>,
    ahead: Ahead,
}

impl<'a> Knowledge<'a> {
    pub(crate) fn new(store: &'a Store) -> Self {
        Self { store, entries: HashMap::new(), above: HashMap::new(), ahead: Ahead::default() }
    }

    /// Forgets what was read, not what was judged: somebody may have written meanwhile.
    pub(crate) fn refresh(&mut self) {
        self.entries.clear();
        self.above.clear();
    }

    pub(crate) fn of(&mut self, path: &RelPath) -> Result<Known, Failure> {
        let wire = path.to_string();
        let looked_up = &mut self.above;
        let (number, above, pending) = self.store.look(|connection| {
            let number = last(connection, &wire)?;
            let above = last_above(connection, path, looked_up)?;
            let pending = (number > 0 && is_pending(connection, number)?)
                || (above > number && is_pending(connection, above)?);
            Ok((number, above, pending))
        })?;
        let ahead = self.ahead.of(path);
        let went = ahead.is_none() && above > number && self.went(path, number)?;
        let state = match ahead {
            Some(state) => state,
            None if above > number || (above == number && self.overtaken(number, path)?) => None,
            None => self.state(number, above, &wire)?,
        };
        Ok(Known { number, state, above, went, pending })
    }

    /// Something was judged to have another name, or to be gone.
    pub(crate) fn moved(&mut self, from: &RelPath, to: Option<(&RelPath, State)>) {
        self.ahead.states.retain(|path, _| !path.is_within(from));
        self.ahead.states.insert(from.clone(), State::Absent);
        self.ahead.tops.insert(from.clone());
        if let Some((to, state)) = to {
            self.ahead.states.retain(|path, _| !path.is_within(to));
            self.ahead.states.insert(to.clone(), state);
            self.ahead.tops.insert(to.clone());
        }
    }

    /// The oldest entry after this one with which a caller moved something away from a place, to the one that is named or
    /// else anywhere; and where to, unless it was removed.
    pub(crate) fn moved_through_here(
        &mut self,
        moved: &Move,
        after: u64,
    ) -> Result<Option<(u64, Option<RelPath>)>, Failure> {
        let (wire, to) = (moved.from.to_string(), moved.to.as_ref().map(RelPath::to_string));
        let (mut number, mut found) = (u64::MAX, None);
        for _ in 0..LOOKS_BACK_MAX {
            number = self.store.look(|connection| last_before(connection, &wire, number))?;
            if number <= after {
                break;
            }
            let entry = self.entry(number)?;
            if is_by_others(&entry) {
                break;
            }
            let fits = |change: &Change| {
                change.path == wire
                    && match (&to, change.kind) {
                        (Some(_), ChangeKind::Rename) => change.to == to,
                        (None, ChangeKind::Rename | ChangeKind::Remove) => true,
                        (
                            _,
                            ChangeKind::Create
                            | ChangeKind::Modify
                            | ChangeKind::Remove
                            | ChangeKind::Copy
                            | ChangeKind::MakeDir
                            | ChangeKind::MakeLink
                            | ChangeKind::SetMode
                            | ChangeKind::Rescan,
                        ) => false,
                    }
            };
            if let Some(change) = entry.changes.iter().find(|change| fits(change)) {
                let to = change.to.as_deref().and_then(|to| RelPath::from_wire(to).ok());
                found = Some((number, to));
            }
        }
        Ok(found)
    }

    /// Whether an entry says something of a place, and later on of something above it.
    fn overtaken(&mut self, number: u64, path: &RelPath) -> Result<bool, Failure> {
        if number == 0 {
            return Ok(false);
        }
        let entry = self.entry(number)?;
        let wire = path.to_string();
        let above: HashSet<String> = path.ancestors().map(|above| above.to_string()).collect();
        let says = |change: &Change, names: &dyn Fn(&str) -> bool| {
            names(&change.path) || change.to.as_deref().is_some_and(names)
        };
        let last = entry.changes.iter().rposition(|change| says(change, &|name| name == wire));
        Ok(entry.changes.iter().skip(last.map_or(0, |last| last + 1)).any(|change| {
            matches!(change.kind, ChangeKind::Rename | ChangeKind::Remove)
                && says(change, &|name| above.contains(name))
        }))
    }

    /// Whether something above a place went away after an entry, and nothing was brought back there whole since.
    fn went(&mut self, path: &RelPath, after: u64) -> Result<bool, Failure> {
        // Who looked around knows what was there.
        let (mut gone, mut brought) = (0, self.store.look(|connection| rescanned(connection, path))?);
        for directory in path.ancestors() {
            let wire = directory.to_string();
            let mut number = self.store.look(|connection| last(connection, &wire))?;
            for _ in 0..LOOKS_BACK_MAX {
                if number <= after.max(gone).max(brought) {
                    break;
                }
                if self.left(number, &wire)? == Some(State::Absent) {
                    gone = number;
                } else if brings(&*self.entry(number)?, &wire) {
                    brought = number;
                }
                number = self.store.look(|connection| last_before(connection, &wire, number))?;
            }
        }
        Ok(gone > brought)
    }

    /// When the last entry about a directory brought it there through here, whole, with everything in it, in unix
    /// milliseconds; nothing when it did something else. What others bring is recorded only after it happened.
    pub(crate) fn brought_ms(&mut self, directory: &RelPath) -> Result<Option<i64>, Failure> {
        let wire = directory.to_string();
        let number = self.store.look(|connection| last(connection, &wire))?;
        if number == 0 {
            return Ok(None);
        }
        let entry = self.entry(number)?;
        Ok((!is_by_others(&entry) && brings(&entry, &wire)).then_some(entry.time_ms))
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

    /// What an entry left at a place.
    fn left(&mut self, number: u64, wire: &str) -> Result<Option<State>, Failure> {
        let entry = self.entry(number)?;
        Ok(entry.changes.iter().rev().find_map(|change| match &change.to {
            Some(to) if to == wire => Some(change.after.clone()),
            // A copy leaves its source as it was, and that is told elsewhere.
            Some(_) if change.path == wire && change.kind == ChangeKind::Rename => Some(State::Absent),
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

/// Whether an entry is about what other programs did.
fn is_by_others(entry: &Entry) -> bool {
    entry.caller.principal == Principal::Outside.to_string()
}

/// Whether the last word of an entry about a place is that a directory came there with everything in it.
fn brings(entry: &Entry, wire: &str) -> bool {
    let last =
        entry.changes.iter().rev().find(|change| change.path == wire || change.to.as_deref() == Some(wire));
    last.is_some_and(|change| match &change.to {
        Some(to) => change.kind == ChangeKind::Rename && to == wire,
        None => matches!(change.after, State::Tree { .. }),
    })
}

impl Ahead {
    /// What is known of a place from here; nothing when it is not concerned.
    fn of(&self, path: &RelPath) -> Option<Option<State>> {
        if let Some(state) = self.states.get(path) {
            return Some(Some(state.clone()));
        }
        if self.tops.is_empty() {
            return None;
        }
        path.ancestors().any(|above| self.tops.contains(&above)).then_some(None)
    }
}

/// The places that callers changed after this entry; nothing when those are too many.
pub(crate) fn changed_since(
    connection: &Connection,
    number: u64,
) -> rusqlite::Result<Option<HashSet<RelPath>>> {
    let mut statement = connection.prepare_cached(
        "SELECT bytes FROM entries WHERE number > ?1 AND changed = 1 ORDER BY number LIMIT ?2",
    )?;
    let mut rows = statement.query(params![sql(number), sql(RECENT_MAX + 1)])?;
    let (mut places, mut entries) = (HashSet::new(), 0);
    while let Some(row) = rows.next()? {
        entries += 1;
        // An entry that cannot be read is as good as too many: nobody knows what it says.
        let Ok(entry) = journal::decode(&row.get::<_, Vec<u8>>(0)?) else { return Ok(None) };
        if is_by_others(&entry) {
            continue;
        }
        let names = entry.changes.into_iter().flat_map(|change| [Some(change.path), change.to]);
        places.extend(names.flatten().filter_map(|name| RelPath::from_wire(&name).ok()));
    }
    Ok((entries <= RECENT_MAX).then_some(places))
}

/// The last entry that changed something above a place, or told to look at it or at something above it again; zero when
/// there is none.
pub(crate) fn last_above(
    connection: &Connection,
    path: &RelPath,
    looked_up: &mut HashMap<RelPath, u64>,
) -> rusqlite::Result<u64> {
    let mut newest = last_rescan(connection, &path.to_string())?;
    for directory in path.ancestors() {
        let number = match looked_up.get(&directory) {
            Some(number) => *number,
            None => {
                let wire = directory.to_string();
                let number = last(connection, &wire)?.max(last_rescan(connection, &wire)?);
                looked_up.insert(directory, number);
                number
            }
        };
        newest = newest.max(number);
    }
    Ok(newest)
}

/// The last entry that told to look at a place again.
fn rescanned(connection: &Connection, path: &RelPath) -> rusqlite::Result<u64> {
    let mut newest = last_rescan(connection, &path.to_string())?;
    for directory in path.ancestors() {
        newest = newest.max(last_rescan(connection, &directory.to_string())?);
    }
    Ok(newest)
}

fn last_rescan(connection: &Connection, wire: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached(
            "SELECT number FROM touched CROSS JOIN entries USING (number)
             WHERE path = ?1 AND changed = 1 AND operation = ?2 ORDER BY touched.number DESC LIMIT 1",
        )?
        .query_row(params![wire, RESCAN], |row| row.get::<_, i64>(0))
        .optional()
        .map(|found| found.map_or(0, i64::unsigned_abs))
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

/// The first entries that may not be true yet, at most this many.
pub(crate) fn first_pending(connection: &Connection, most: usize) -> rusqlite::Result<Vec<u64>> {
    connection
        .prepare_cached("SELECT DISTINCT number FROM pending ORDER BY number LIMIT ?1")?
        .query_map(params![sql(most as u64)], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))?
        .collect()
}

fn is_pending(connection: &Connection, number: u64) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM pending WHERE number = ?1 LIMIT 1")?.exists(params![sql(number)])
}
