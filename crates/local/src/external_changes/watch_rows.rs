//! Stores watches in the database. A call inserts a watch with the stage `Requested`. The recorder thread then watches
//! the directories of the watch, or refuses the watch. A journal entry starts a watch after all directories of the
//! watch are watched.

use rusqlite::{Connection, OptionalExtension, Row, params};
use stead_engine::{
    Error, ErrorKind, NextStep, Watch, WatchBeginOrEndRequest, WatchDepth, WatchEventKind, WatchLifetimeKind, limits,
    ops::UnwatchArgs,
};
use stead_path::RelPath;

use crate::store::to_sql_integer;

const SEPARATOR: &str = ",";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientWatchRequestStatus {
    Requested,
    Attached,
    LimitReached,
    /// The watch is refused, because the file system does not report changes.
    Unsupported,
}

impl ClientWatchRequestStatus {
    fn to_number(self) -> i64 {
        match self {
            ClientWatchRequestStatus::Requested => 0,
            ClientWatchRequestStatus::Attached => 1,
            ClientWatchRequestStatus::LimitReached => 2,
            ClientWatchRequestStatus::Unsupported => 3,
        }
    }

    fn from_number(number: i64) -> Self {
        match number {
            1 => ClientWatchRequestStatus::Attached,
            2 => ClientWatchRequestStatus::LimitReached,
            3 => ClientWatchRequestStatus::Unsupported,
            _ => ClientWatchRequestStatus::Requested,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct WatchDatabaseRow {
    pub(crate) watch: Watch,
    pub(crate) stage: ClientWatchRequestStatus,
}

const WATCH_COLUMNS: &str = "id, owner, session, path, deep, happenings, glob, started, stage";

fn watch_from_row(row: &Row<'_>) -> rusqlite::Result<WatchDatabaseRow> {
    let (path, words): (String, String) = (row.get(3)?, row.get(5)?);
    let watch = Watch {
        id: row.get(0)?,
        owner: row.get(1)?,
        session: row.get(2)?,
        path: RelPath::from_wire(&path).map_err(|_| rusqlite::Error::InvalidQuery)?,
        depth: if row.get(4)? { WatchDepth::Deep } else { WatchDepth::Shallow },
        event_kinds: words.split(SEPARATOR).filter_map(WatchEventKind::parse).collect(),
        glob: row.get(6)?,
        started_at_entry: row.get::<_, Option<i64>>(7)?.unwrap_or(0).unsigned_abs(),
    };
    Ok(WatchDatabaseRow { watch, stage: ClientWatchRequestStatus::from_number(row.get(8)?) })
}

pub(crate) fn load_all(connection: &Connection) -> rusqlite::Result<Vec<WatchDatabaseRow>> {
    connection
        .prepare_cached(&format!("SELECT {WATCH_COLUMNS} FROM watches ORDER BY created_ms, id"))?
        .query_map([], watch_from_row)?
        .collect()
}

pub(crate) fn watches_of_owner(connection: &Connection, owner: &str) -> rusqlite::Result<Vec<Watch>> {
    connection
        .prepare_cached(&format!(
            "SELECT {WATCH_COLUMNS} FROM watches WHERE owner = ?1 AND started IS NOT NULL ORDER BY started"
        ))?
        .query_map(params![owner], |row| Ok(watch_from_row(row)?.watch))?
        .collect()
}

pub(crate) fn load_watch(connection: &Connection, id: &str) -> rusqlite::Result<Option<WatchDatabaseRow>> {
    connection
        .prepare_cached(&format!("SELECT {WATCH_COLUMNS} FROM watches WHERE id = ?1"))?
        .query_row(params![id], watch_from_row)
        .optional()
}

pub(crate) fn has_watches(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM watches LIMIT 1")?.exists([])
}

pub(crate) struct WatchRequester<'a> {
    pub(crate) owner: &'a str,
    pub(crate) session: &'a str,
    pub(crate) process: &'a str,
}

pub(crate) fn insert_watch(
    connection: &Connection,
    id: &str,
    by: &WatchRequester<'_>,
    request: &WatchBeginOrEndRequest,
    now_ms: i64,
) -> rusqlite::Result<Result<(), Error>> {
    let WatchBeginOrEndRequest::Begin { path, depth, event_kinds, glob, lifetime } = request else {
        return Ok(Ok(()));
    };
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM watches WHERE owner = ?1")?
        .query_row(params![by.owner], |row| row.get(0))?;
    if count.unsigned_abs() >= limits::WATCHES_PER_PRINCIPAL_MAX as u64 {
        let oldest: String = connection
            .prepare_cached("SELECT id FROM watches WHERE owner = ?1 ORDER BY started IS NULL, started LIMIT 1")?
            .query_row(params![by.owner], |row| row.get(0))?;
        return Ok(Err(Error::new(ErrorKind::TooMany, format!("you have {count} watches, which is the limit"))
            .with_next_step(
                NextStep::call(UnwatchArgs { watch: oldest.clone() }, "end the oldest one")
                    .or("watch a common parent directory"),
            )
            .with_oldest(oldest)));
    }
    let words: Vec<&str> = event_kinds.iter().map(|happening| happening.as_str()).collect();
    connection.prepare_cached("INSERT INTO watches VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8, ?9, ?9)")?.execute(
        params![
            id,
            by.owner,
            by.session,
            path.to_string(),
            *depth == WatchDepth::Deep,
            words.join(SEPARATOR),
            glob,
            ClientWatchRequestStatus::Requested.to_number(),
            now_ms
        ],
    )?;
    match lifetime {
        WatchLifetimeKind::Persistent => {}
        WatchLifetimeKind::Process => {
            connection.prepare_cached("INSERT INTO bound_watches VALUES (?1, ?2)")?.execute(params![id, by.process])?;
        }
    }
    increment_generation(connection)?;
    Ok(Ok(()))
}

/// A watch in `bound_watches` ends when its process ends.
pub(crate) fn processes_with_watches(connection: &Connection, process: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached("SELECT DISTINCT process FROM bound_watches WHERE process <> ?1")?
        .query_map(params![process], |row| row.get(0))?
        .collect()
}

pub(crate) fn delete_watches_of_process(connection: &Connection, process: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM watches WHERE id IN (SELECT id FROM bound_watches WHERE process = ?1)")?
        .execute(params![process])?;
    connection.prepare_cached("DELETE FROM bound_watches WHERE process = ?1")?.execute(params![process])?;
    increment_generation(connection)
}

pub(crate) fn set_stage(connection: &Connection, id: &str, stage: ClientWatchRequestStatus) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE watches SET stage = ?2 WHERE id = ?1")?
        .execute(params![id, stage.to_number()])?;
    Ok(())
}

pub(crate) fn set_first_entry(connection: &Connection, id: &str, number: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE watches SET started = ?2 WHERE id = ?1")?
        .execute(params![id, to_sql_integer(number)])?;
    Ok(())
}

pub(crate) fn record_last_poll(connection: &Connection, owner: &str, now_ms: i64) -> rusqlite::Result<()> {
    connection.prepare_cached("UPDATE watches SET heard_ms = ?2 WHERE owner = ?1")?.execute(params![owner, now_ms])?;
    Ok(())
}

pub(crate) fn not_polled_since(connection: &Connection, owner: &str, since_ms: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM watches WHERE owner = ?1 AND heard_ms < ?2 LIMIT 1")?
        .exists(params![owner, since_ms])
}

pub(crate) fn delete_watch(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM watches WHERE id = ?1")?.execute(params![id])?;
    connection.prepare_cached("DELETE FROM bound_watches WHERE id = ?1")?.execute(params![id])?;
    increment_generation(connection)
}

/// Deletes watches that no client has polled for long, and watches that have not started in time.
pub(crate) fn delete_expired(connection: &Connection, now_ms: i64) -> rusqlite::Result<usize> {
    let swept = connection
        .prepare_cached("DELETE FROM watches WHERE heard_ms < ?1 OR (started IS NULL AND created_ms < ?2)")?
        .execute(params![now_ms - limits::WATCH_IDLE_MS_MAX, now_ms - UNSTARTED_WATCH_MS_MAX])?;
    if swept > 0 {
        connection.prepare_cached("DELETE FROM bound_watches WHERE id NOT IN (SELECT id FROM watches)")?.execute([])?;
        increment_generation(connection)?;
    }
    Ok(swept)
}

const UNSTARTED_WATCH_MS_MAX: i64 = 60_000;

/// The watch generation, a counter in the database, increases when a watch is added or deleted.
pub(crate) fn watch_generation(connection: &Connection) -> rusqlite::Result<i64> {
    Ok(connection
        .prepare_cached("SELECT value FROM meta WHERE name = 'watches'")?
        .query_row([], |row| row.get(0))
        .optional()?
        .unwrap_or(0))
}

fn increment_generation(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO meta VALUES ('watches', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1")?
        .execute([])?;
    Ok(())
}
