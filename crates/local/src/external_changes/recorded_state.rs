//! Looks up the state of a path in the journal. Entries about a directory do not list its contents. If a call moved or
//! restored a directory above the path later, the state is looked up under the earlier path of the file. After any other
//! change of a directory above the path, the state of the path is unknown.

use std::{
    collections::{HashMap, HashSet},
    ops::ControlFlow,
    rc::Rc,
};

use rusqlite::{Connection, params};
use stead_engine::{Error, ErrorKind, NextStep, Principal};
use stead_journal::{ChangeKind, JournalEntry, PathState, RecordedChange};
use stead_path::RelPath;

use super::event_batch::ExternalMove;
use crate::store::{SqliteStore, query_number, to_sql_integer};

const CACHED_ENTRIES_MAX: usize = 64;

/// The search for the state of one path reads at most this many journal entries.
const LOOKBACK_ENTRIES_MAX: usize = 16;

const RECENT_CHANGES_MAX: u64 = 10_000;

/// A rescan entry is a journal entry which reports that changes may have been missed.
pub(crate) const RESCAN_OPERATION: &str = "rescan";

#[derive(Debug, Clone)]
pub(crate) struct LastRecordedPathState {
    /// The number of the last journal entry about the path; zero if there is none.
    pub(crate) last_entry: u64,
    /// The state of the path after `last_entry`; `None` if the state is unknown.
    pub(crate) state: Option<PathState>,
    pub(crate) last_parent_entry: u64,
    /// Whether the path became absent with a directory above it. Other programs may have created the path since.
    pub(crate) parent_removed: bool,
    /// Whether the last journal entry about the path or a directory above it may not be applied to the disk yet.
    pub(crate) is_pending: bool,
}

/// The states of paths after classified moves that are not in the journal yet.
#[derive(Default)]
struct UnrecordedPathStates {
    states: HashMap<RelPath, PathState>,
    /// The old and new paths of classified moves; the state of every path below them is unknown.
    moved_roots: HashSet<RelPath>,
}

pub(crate) struct JournalPathStateReader<'a> {
    store: &'a SqliteStore,
    entries: HashMap<u64, Rc<JournalEntry>>,
    last_parent_entries: HashMap<RelPath, u64>,
    unrecorded: UnrecordedPathStates,
}

impl<'a> JournalPathStateReader<'a> {
    pub(crate) fn new(store: &'a SqliteStore) -> Self {
        Self {
            store,
            entries: HashMap::new(),
            last_parent_entries: HashMap::new(),
            unrecorded: UnrecordedPathStates::default(),
        }
    }

    /// Callers clear the cached journal entries when the journal may have newer entries.
    pub(crate) fn clear_cache(&mut self) {
        self.entries.clear();
        self.last_parent_entries.clear();
    }

    pub(crate) fn lookup(&mut self, path: &RelPath) -> Result<LastRecordedPathState, Error> {
        let wire = path.to_string();
        let looked_up = &mut self.last_parent_entries;
        let (number, above, pending) = self.store.run_query(|connection| {
            let number = last_change_of(connection, &wire)?;
            let above = last_parent_change(connection, path, looked_up)?;
            let pending =
                (number > 0 && is_pending(connection, number)?) || (above > number && is_pending(connection, above)?);
            Ok((number, above, pending))
        })?;
        let found = match self.unrecorded.state_of(path) {
            Some(state) => state.map_or(PathStateSearchResult::Unknown, PathStateSearchResult::Known),
            None => self.search_state(&wire, number.max(above))?,
        };
        let parent_removed = matches!(found, PathStateSearchResult::ParentRemoved);
        let state = if let PathStateSearchResult::Known(state) = found { Some(state) } else { None };
        Ok(LastRecordedPathState {
            last_entry: number,
            state,
            last_parent_entry: above,
            parent_removed,
            is_pending: pending,
        })
    }

    /// A classified move affects later lookups of path states before the journal contains the move.
    pub(crate) fn note_move(&mut self, from: &RelPath, to: Option<(&RelPath, PathState)>) {
        self.unrecorded.states.retain(|path, _| !path.is_within(from));
        self.unrecorded.states.insert(from.clone(), PathState::Absent);
        self.unrecorded.moved_roots.insert(from.clone());
        if let Some((to, state)) = to {
            self.unrecorded.states.retain(|path, _| !path.is_within(to));
            self.unrecorded.states.insert(to.clone(), state);
            self.unrecorded.moved_roots.insert(to.clone());
        }
    }

    /// Finds the oldest journal entry after the entry `after` in which a call made the move `moved`. If the target of
    /// an observed move is unknown, any move or removal of its source by a call matches.
    pub(crate) fn find_own_move(
        &mut self,
        moved: &ExternalMove,
        after: u64,
    ) -> Result<Option<(u64, Option<RelPath>)>, Error> {
        let (wire, to) = (moved.from.to_string(), moved.to.as_ref().map(RelPath::to_string));
        let (mut number, mut found) = (u64::MAX, None);
        for _ in 0..LOOKBACK_ENTRIES_MAX {
            let Some(entry) = self.own_change_before(&wire, number)?.filter(|entry| entry.number > after) else {
                break;
            };
            number = entry.number;
            let fits = |change: &RecordedChange| {
                change.path == wire
                    && match &to {
                        Some(_) => change.kind == ChangeKind::Rename && change.to == to,
                        None => matches!(change.kind, ChangeKind::Rename | ChangeKind::Remove),
                    }
            };
            if let Some(change) = entry.changes.iter().find(|change| fits(change)) {
                let to = change.to.as_deref().and_then(|to| RelPath::from_wire(to).ok());
                found = Some((number, to));
            }
        }
        Ok(found)
    }

    /// The time in Unix milliseconds at which a call last moved or restored the directory to its path. Later calls that
    /// move or remove the directory are skipped, because they may not have happened yet when the directory was listed.
    /// Moves by other programs are ignored, because the journal records them later than they happen.
    pub(crate) fn arrival_time_ms(&mut self, directory: &RelPath) -> Result<Option<i64>, Error> {
        let (wire, mut number) = (directory.to_string(), u64::MAX);
        for _ in 0..LOOKBACK_ENTRIES_MAX {
            let Some(entry) = self.own_change_before(&wire, number)? else { break };
            if creates_path(&entry, &wire) {
                return Ok(Some(entry.time_ms));
            }
            let left = entry.changes.iter().rev().find_map(|change| state_left_by_change(change, &wire));
            if left != Some(PathState::Absent) {
                break;
            }
            number = entry.number;
        }
        Ok(None)
    }

    /// The last journal entry about the path before the entry `number`; `None` if another program made that change.
    fn own_change_before(&mut self, wire: &str, number: u64) -> Result<Option<Rc<JournalEntry>>, Error> {
        let number = self.store.run_query(|connection| last_change_before(connection, wire, number))?;
        let entry = if number > 0 { Some(self.load_entry(number)?) } else { None };
        Ok(entry.filter(|entry| !is_external(entry)))
    }

    /// Searches the journal for the state of a path, from the journal entry `newest` back to older ones.
    fn search_state(&mut self, wire: &str, newest: u64) -> Result<PathStateSearchResult, Error> {
        let (mut search, mut number) = (PathStateSearch::new(wire), newest);
        for _ in 0..LOOKBACK_ENTRIES_MAX {
            if number == 0 {
                break;
            }
            if let ControlFlow::Break(found) = search.continue_in_entry(&*self.load_entry(number)?) {
                return Ok(found);
            }
            let Ok(path) = RelPath::from_wire(&search.wire) else { break };
            number = self.store.run_query(|connection| {
                path.ancestors().chain([path.clone()]).try_fold(0, |newest: u64, path| {
                    Ok(newest.max(last_entry_before(connection, &path.to_string(), number)?))
                })
            })?;
        }
        Ok(PathStateSearchResult::Unknown)
    }

    fn load_entry(&mut self, number: u64) -> Result<Rc<JournalEntry>, Error> {
        if let Some(entry) = self.entries.get(&number) {
            return Ok(Rc::clone(entry));
        }
        let bytes: Vec<u8> = self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT bytes FROM entries WHERE number = ?1")?
                .query_row(params![to_sql_integer(number)], |row| row.get(0))
        })?;
        let entry = stead_journal::decode_entry(&bytes).map_err(|_| {
            Error::new(ErrorKind::CorruptHistory, "an entry in the journal cannot be read")
                .with_next_step(NextStep::person_command("log verify", "check the journal"))
        })?;
        if self.entries.len() >= CACHED_ENTRIES_MAX {
            self.entries.clear();
        }
        let entry = Rc::new(entry);
        self.entries.insert(number, Rc::clone(&entry));
        Ok(entry)
    }
}

enum PathStateSearchResult {
    Known(PathState),
    Unknown,
    ParentRemoved,
}

/// A search for the state of a path, which goes back in the journal. If a call moved or restored a directory above the
/// path, the search continues with the path that the file had before.
struct PathStateSearch {
    wire: String,
    is_moved: bool,
    /// The id of the trash item that contained the file at this point of the search.
    trash_id: Option<String>,
    /// Whether a directory above the path changed in a way that makes older states of the path unreliable.
    is_uncertain: bool,
}

impl PathStateSearch {
    fn new(wire: &str) -> Self {
        Self { wire: wire.to_owned(), is_moved: false, trash_id: None, is_uncertain: false }
    }

    /// Breaks if a change in the journal entry determines the state of the path or makes it unknown.
    fn continue_in_entry(&mut self, entry: &JournalEntry) -> ControlFlow<PathStateSearchResult> {
        if entry.operation == RESCAN_OPERATION {
            return ControlFlow::Break(PathStateSearchResult::Unknown);
        }
        let mut parent_changed = false;
        for change in entry.changes.iter().rev() {
            if self.trash_id.is_some() {
                self.trash_id.take_if(|id| change.kind == ChangeKind::Remove && trash_id(&change.before) == Some(id));
                continue;
            }
            if let Some(state) = state_left_by_change(change, &self.wire) {
                return ControlFlow::Break(self.result(state));
            }
            let path_below = |directory: &str| self.wire.strip_prefix(directory)?.strip_prefix('/');
            let is_above = path_below(&change.path).is_some();
            match (change.kind, change.to.as_deref().and_then(path_below)) {
                // The journal records moves by other programs late, perhaps after newer changes below the directory.
                (ChangeKind::Rename, Some(_)) if is_external(entry) => {
                    return ControlFlow::Break(PathStateSearchResult::Unknown);
                }
                (ChangeKind::Rename, Some(below)) => {
                    (self.wire, self.is_moved) = (format!("{}/{below}", change.path), true);
                }
                (ChangeKind::Rename | ChangeKind::Remove, None) if is_above => {
                    return ControlFlow::Break(PathStateSearchResult::ParentRemoved);
                }
                (_, below) if is_above || below.is_some() => {
                    self.trash_id = trash_id(&change.after).cloned();
                    parent_changed |= self.trash_id.is_none();
                }
                (_, _) => {}
            }
        }
        self.is_uncertain |= parent_changed;
        ControlFlow::Continue(())
    }

    fn result(&self, state: PathState) -> PathStateSearchResult {
        if self.is_uncertain {
            PathStateSearchResult::Unknown
        } else if self.is_moved && state == PathState::Absent {
            PathStateSearchResult::ParentRemoved
        } else {
            PathStateSearchResult::Known(state)
        }
    }
}

fn trash_id(state: &PathState) -> Option<&String> {
    if let PathState::Tree { trash, .. } = state { trash.as_ref() } else { None }
}

fn state_left_by_change(change: &RecordedChange, wire: &str) -> Option<PathState> {
    match &change.to {
        Some(to) if to == wire => Some(change.after.clone()),
        // A copy leaves its source unchanged.
        Some(_) if change.path == wire && change.kind == ChangeKind::Rename => Some(PathState::Absent),
        None if change.path == wire => Some(change.after.clone()),
        Some(_) | None => None,
    }
}

fn is_external(entry: &JournalEntry) -> bool {
    entry.caller.principal == Principal::External.to_string()
}

/// Whether the last change of a path in a journal entry moved or restored something to the path.
fn creates_path(entry: &JournalEntry, wire: &str) -> bool {
    let last = entry.changes.iter().rev().find(|change| change.path == wire || change.to.as_deref() == Some(wire));
    last.is_some_and(|change| match &change.to {
        Some(to) => change.kind == ChangeKind::Rename && to == wire,
        None => matches!(change.after, PathState::Tree { .. }),
    })
}

impl UnrecordedPathStates {
    /// Returns `None` if no classified move affects the path, and `Some(None)` if a classified move makes its state
    /// unknown.
    fn state_of(&self, path: &RelPath) -> Option<Option<PathState>> {
        if let Some(state) = self.states.get(path) {
            return Some(Some(state.clone()));
        }
        if self.moved_roots.is_empty() {
            return None;
        }
        path.ancestors().any(|above| self.moved_roots.contains(&above)).then_some(None)
    }
}

/// The paths that calls changed after the journal entry `number`; `None` if there are too many journal entries.
pub(crate) fn changed_since(connection: &Connection, number: u64) -> rusqlite::Result<Option<HashSet<RelPath>>> {
    let mut statement = connection
        .prepare_cached("SELECT bytes FROM entries WHERE number > ?1 AND changed = 1 ORDER BY number LIMIT ?2")?;
    let mut rows = statement.query(params![to_sql_integer(number), to_sql_integer(RECENT_CHANGES_MAX + 1)])?;
    let (mut paths, mut entries) = (HashSet::new(), 0);
    while let Some(row) = rows.next()? {
        entries += 1;
        // The paths of an unreadable entry are unknown, so they count as too many.
        let Ok(entry) = stead_journal::decode_entry(&row.get::<_, Vec<u8>>(0)?) else { return Ok(None) };
        if is_external(&entry) {
            continue;
        }
        let names = entry.changes.into_iter().flat_map(|change| [Some(change.path), change.to]);
        paths.extend(names.flatten().filter_map(|name| RelPath::from_wire(&name).ok()));
    }
    Ok((entries <= RECENT_CHANGES_MAX).then_some(paths))
}

/// The number of the last journal entry that makes the state of the path unknown. A change of a directory above a path,
/// or a rescan of the path, makes the state of the path unknown.
pub(crate) fn last_parent_change(
    connection: &Connection,
    path: &RelPath,
    looked_up: &mut HashMap<RelPath, u64>,
) -> rusqlite::Result<u64> {
    let mut newest = last_rescan_of(connection, &path.to_string())?;
    for directory in path.ancestors() {
        let number = match looked_up.get(&directory) {
            Some(number) => *number,
            None => {
                let number = last_entry_before(connection, &directory.to_string(), u64::MAX)?;
                looked_up.insert(directory, number);
                number
            }
        };
        newest = newest.max(number);
    }
    Ok(newest)
}

fn last_rescan_of(connection: &Connection, wire: &str) -> rusqlite::Result<u64> {
    let sql = "SELECT number FROM touched CROSS JOIN entries USING (number)
             WHERE path = ?1 AND changed = 1 AND operation = ?2 ORDER BY touched.number DESC LIMIT 1";
    Ok(query_number(connection, sql, params![wire, RESCAN_OPERATION])?.unwrap_or_default())
}

pub(crate) fn last_change_of(connection: &Connection, wire: &str) -> rusqlite::Result<u64> {
    last_change_before(connection, wire, u64::MAX)
}

fn last_change_before(connection: &Connection, wire: &str, number: u64) -> rusqlite::Result<u64> {
    let sql = "SELECT number FROM touched CROSS JOIN entries USING (number)
             WHERE path = ?1 AND touched.number < ?3 AND changed = 1 AND operation <> ?2
             ORDER BY touched.number DESC LIMIT 1";
    let values = params![wire, RESCAN_OPERATION, to_sql_integer(number)];
    Ok(query_number(connection, sql, values)?.unwrap_or_default())
}

/// The number of the last change or rescan of a path before the journal entry `number`.
fn last_entry_before(connection: &Connection, wire: &str, number: u64) -> rusqlite::Result<u64> {
    let sql = "SELECT number FROM touched CROSS JOIN entries USING (number)
             WHERE path = ?1 AND touched.number < ?2 AND changed = 1 ORDER BY touched.number DESC LIMIT 1";
    Ok(query_number(connection, sql, params![wire, to_sql_integer(number)])?.unwrap_or_default())
}

pub(crate) fn first_pending_entries(connection: &Connection, most: usize) -> rusqlite::Result<Vec<u64>> {
    connection
        .prepare_cached("SELECT DISTINCT number FROM pending ORDER BY number LIMIT ?1")?
        .query_map(params![to_sql_integer(most as u64)], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))?
        .collect()
}

fn is_pending(connection: &Connection, number: u64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM pending WHERE number = ?1 LIMIT 1")?
        .exists(params![to_sql_integer(number)])
}
