//! The watches as the store keeps them. A row is first asked for, then attached or refused by whoever records, then begun
//! by the entry that tells of it: so no watch is ever acknowledged that nobody listens for.

use engine::{Depth, Failure, Happening, Kind, Lasting, Watch, WatchAsk, limits};
use path::RelPath;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::store::sql;

/// Between this and that the words of a list stand.
const SEPARATOR: &str = ",";

/// How far a watch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Somebody wants it; nobody listens yet.
    Asked,
    /// The recorder listens.
    Attached,
    /// The kernel allows no more watches.
    Full,
    /// Changes cannot be heard there.
    Deaf,
}

impl Stage {
    fn number(self) -> i64 {
        match self {
            Stage::Asked => 0,
            Stage::Attached => 1,
            Stage::Full => 2,
            Stage::Deaf => 3,
        }
    }

    fn of(number: i64) -> Self {
        match number {
            1 => Stage::Attached,
            2 => Stage::Full,
            3 => Stage::Deaf,
            _ => Stage::Asked,
        }
    }
}

/// One row.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    pub(crate) watch: Watch,
    pub(crate) stage: Stage,
}

const COLUMNS: &str = "id, owner, session, path, deep, happenings, glob, started, stage";

fn kept(row: &Row<'_>) -> rusqlite::Result<Kept> {
    let (path, words): (String, String) = (row.get(3)?, row.get(5)?);
    let watch = Watch {
        id: row.get(0)?,
        owner: row.get(1)?,
        session: row.get(2)?,
        path: RelPath::from_wire(&path).map_err(|_| rusqlite::Error::InvalidQuery)?,
        depth: if row.get(4)? { Depth::Deep } else { Depth::Shallow },
        happenings: words.split(SEPARATOR).filter_map(Happening::chosen).collect(),
        glob: row.get(6)?,
        started: row.get::<_, Option<i64>>(7)?.unwrap_or(0).unsigned_abs(),
    };
    Ok(Kept { watch, stage: Stage::of(row.get(8)?) })
}

/// Every row.
pub(crate) fn all(connection: &Connection) -> rusqlite::Result<Vec<Kept>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM watches ORDER BY created_ms, id"))?
        .query_map([], kept)?
        .collect()
}

/// The running watches of one principal.
pub(crate) fn of(connection: &Connection, owner: &str) -> rusqlite::Result<Vec<Watch>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM watches WHERE owner = ?1 AND started IS NOT NULL ORDER BY created_ms, id"
        ))?
        .query_map(params![owner], |row| Ok(kept(row)?.watch))?
        .collect()
}

/// One row.
pub(crate) fn one(connection: &Connection, id: &str) -> rusqlite::Result<Option<Kept>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM watches WHERE id = ?1"))?
        .query_row(params![id], kept)
        .optional()
}

/// Whether there is any row.
pub(crate) fn any(connection: &Connection) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM watches LIMIT 1")?.exists([])
}

/// Who asks for a watch, through which process.
pub(crate) struct By<'a> {
    pub(crate) owner: &'a str,
    pub(crate) session: &'a str,
    pub(crate) process: &'a str,
}

/// Asks for a watch, unless its owner has too many.
pub(crate) fn ask(
    connection: &Connection,
    id: &str,
    by: &By<'_>,
    ask: &WatchAsk,
    now_ms: i64,
) -> rusqlite::Result<Result<(), Failure>> {
    let WatchAsk::Begin { path, depth, happenings, glob, lasting } = ask else { return Ok(Ok(())) };
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM watches WHERE owner = ?1")?
        .query_row(params![by.owner], |row| row.get(0))?;
    if count.unsigned_abs() >= limits::WATCHES_PER_PRINCIPAL_MAX as u64 {
        let oldest: String = connection
            .prepare_cached("SELECT id FROM watches WHERE owner = ?1 ORDER BY created_ms, id LIMIT 1")?
            .query_row(params![by.owner], |row| row.get(0))?;
        return Ok(Err(Failure::new(
            Kind::TooMany,
            format!("you have {count} watches, which is all you may have"),
        )
        .hint("call unwatch on one of them, or watch a directory above several")
        .fact("oldest", oldest)));
    }
    let words: Vec<&str> = happenings.iter().map(|happening| happening.word()).collect();
    connection
        .prepare_cached("INSERT INTO watches VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, NULL, ?8, ?9, ?9)")?
        .execute(params![
        id,
        by.owner,
        by.session,
        path.to_string(),
        *depth == Depth::Deep,
        words.join(SEPARATOR),
        glob,
        Stage::Asked.number(),
        now_ms
    ])?;
    match lasting {
        Lasting::Kept => {}
        Lasting::Process => {
            connection
                .prepare_cached("INSERT INTO bound_watches VALUES (?1, ?2)")?
                .execute(params![id, by.process])?;
        }
    }
    bump(connection)?;
    Ok(Ok(()))
}

/// The processes, other than this one, that watches end with.
pub(crate) fn bound_to(connection: &Connection, process: &str) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached("SELECT DISTINCT process FROM bound_watches WHERE process <> ?1")?
        .query_map(params![process], |row| row.get(0))?
        .collect()
}

/// Ends the watches that were bound to a process.
pub(crate) fn bury(connection: &Connection, process: &str) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM watches WHERE id IN (SELECT id FROM bound_watches WHERE process = ?1)")?
        .execute(params![process])?;
    connection.prepare_cached("DELETE FROM bound_watches WHERE process = ?1")?.execute(params![process])?;
    bump(connection)
}

/// The recorder says how far it came.
pub(crate) fn mark(connection: &Connection, id: &str, stage: Stage) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE watches SET stage = ?2 WHERE id = ?1")?
        .execute(params![id, stage.number()])?;
    Ok(())
}

/// The entry that begins it exists.
pub(crate) fn begin(connection: &Connection, id: &str, number: u64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE watches SET started = ?2 WHERE id = ?1")?
        .execute(params![id, sql(number)])?;
    Ok(())
}

/// Somebody asked for the events of these.
pub(crate) fn heard(connection: &Connection, owner: &str, now_ms: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE watches SET heard_ms = ?2 WHERE owner = ?1")?
        .execute(params![owner, now_ms])?;
    Ok(())
}

/// Whether nobody asked for the events of these since.
pub(crate) fn unheard_since(connection: &Connection, owner: &str, since_ms: i64) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT 1 FROM watches WHERE owner = ?1 AND heard_ms < ?2 LIMIT 1")?
        .exists(params![owner, since_ms])
}

/// Ends one.
pub(crate) fn end(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM watches WHERE id = ?1")?.execute(params![id])?;
    connection.prepare_cached("DELETE FROM bound_watches WHERE id = ?1")?.execute(params![id])?;
    bump(connection)
}

/// Ends those that nobody has asked about for long, and those that never began because who asked for them died.
pub(crate) fn sweep(connection: &Connection, now_ms: i64) -> rusqlite::Result<usize> {
    let swept = connection
        .prepare_cached("DELETE FROM watches WHERE heard_ms < ?1 OR (started IS NULL AND created_ms < ?2)")?
        .execute(params![now_ms - limits::WATCH_UNHEARD_MS, now_ms - UNBEGUN_MS])?;
    if swept > 0 {
        connection
            .prepare_cached("DELETE FROM bound_watches WHERE id NOT IN (SELECT id FROM watches)")?
            .execute([])?;
        bump(connection)?;
    }
    Ok(swept)
}

/// How long a watch may take to begin.
const UNBEGUN_MS: i64 = 60_000;

/// A number that rises whenever a watch comes or goes.
pub(crate) fn generation(connection: &Connection) -> rusqlite::Result<i64> {
    Ok(connection
        .prepare_cached("SELECT value FROM meta WHERE name = 'watches'")?
        .query_row([], |row| row.get(0))
        .optional()?
        .unwrap_or(0))
}

fn bump(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO meta VALUES ('watches', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
        )?
        .execute([])?;
    Ok(())
}
