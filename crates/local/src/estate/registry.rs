//! Which workspaces an estate has, and what is to become of each. The rows are the truth; directories follow them.
//!
//! A workspace is being made, then ready, then either in the trash or ending. A row that is not settled says that the disk
//! may not be as the row wants it yet.

use engine::{Failure, Kind};
use rusqlite::{Connection, OptionalExtension, Row as Record, params};

use crate::store::{Store, hold};

/// The tables of an estate, beside those of every store.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS workspaces (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, stage INTEGER NOT NULL, lasting INTEGER NOT NULL, label TEXT NOT NULL,
    maker TEXT NOT NULL, created_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL, ends_ms INTEGER, settled INTEGER NOT NULL,
    origin TEXT) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS live_names ON workspaces (name) WHERE stage < 2;
CREATE INDEX IF NOT EXISTS all_names ON workspaces (name);
CREATE INDEX IF NOT EXISTS unsettled ON workspaces (id) WHERE settled = 0;
CREATE TABLE IF NOT EXISTS token_places (token TEXT PRIMARY KEY, workspace TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tokens_of_places ON token_places (workspace);
";

const ROW: &str = "SELECT id, name, stage, lasting, label, maker, created_ms, used_ms, ends_ms, settled, origin FROM workspaces";

/// Where a workspace stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its name is taken and its directory may be half there.
    Making,
    /// It can be opened.
    Ready,
    /// It waits in the trash.
    Trashed,
    /// It is gone for everybody, and its directory goes.
    Ending,
}

impl Stage {
    /// As it is kept.
    pub(crate) fn number(self) -> i64 {
        match self {
            Stage::Making => 0,
            Stage::Ready => 1,
            Stage::Trashed => 2,
            Stage::Ending => 3,
        }
    }

    fn read(number: i64) -> Option<Self> {
        [Stage::Making, Stage::Ready, Stage::Trashed, Stage::Ending]
            .into_iter()
            .find(|stage| stage.number() == number)
    }
}

/// What becomes of a workspace that is destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lasting {
    /// It goes to the trash of the estate.
    #[default]
    Kept,
    /// It is gone at once.
    Ephemeral,
}

/// Whether the disk is as the row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    Yes,
    No,
}

/// One workspace as the estate knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) stage: Stage,
    pub(crate) lasting: Lasting,
    pub(crate) label: String,
    /// Who made it.
    pub(crate) maker: String,
    pub(crate) created_ms: i64,
    pub(crate) used_ms: i64,
    /// When it leaves the trash.
    pub(crate) ends_ms: Option<i64>,
    pub(crate) settled: Settled,
    /// What it was made from.
    pub(crate) origin: Option<String>,
}

/// Makes the tables, unless they are there.
pub(crate) fn prepare(store: &Store) -> Result<(), Failure> {
    let there = store.look(|connection| {
        connection
            .prepare("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'tokens_of_places'")?
            .exists([])
    })?;
    if there {
        return Ok(());
    }
    hold(&store.writer)
        .execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} COMMIT;"))
        .map_err(|error| crate::failure::store(&error))
}

fn read(record: &Record<'_>) -> rusqlite::Result<Row> {
    let stage = Stage::read(record.get(2)?).ok_or(rusqlite::Error::InvalidQuery)?;
    let lasting = if record.get::<_, i64>(3)? == 0 { Lasting::Kept } else { Lasting::Ephemeral };
    let settled = if record.get::<_, i64>(9)? == 0 { Settled::No } else { Settled::Yes };
    Ok(Row {
        id: record.get(0)?,
        name: record.get(1)?,
        stage,
        lasting,
        label: record.get(4)?,
        maker: record.get(5)?,
        created_ms: record.get(6)?,
        used_ms: record.get(7)?,
        ends_ms: record.get(8)?,
        settled,
        origin: record.get(10)?,
    })
}

/// The workspace with this id.
pub(crate) fn by_id(connection: &Connection, id: &str) -> rusqlite::Result<Option<Row>> {
    connection.prepare_cached(&format!("{ROW} WHERE id = ?1"))?.query_row(params![id], read).optional()
}

/// The workspace that has this name now, ready or being made.
pub(crate) fn live(connection: &Connection, name: &str) -> rusqlite::Result<Option<Row>> {
    connection
        .prepare_cached(&format!("{ROW} WHERE name = ?1 AND stage < 2"))?
        .query_row(params![name], read)
        .optional()
}

/// The one that was destroyed last of those in the trash with this name or id.
pub(crate) fn trashed(connection: &Connection, name: &str) -> rusqlite::Result<Option<Row>> {
    let found = connection
        .prepare_cached(&format!("{ROW} WHERE name = ?1 AND stage = 2 ORDER BY ends_ms DESC, id LIMIT 1"))?
        .query_row(params![name], read)
        .optional()?;
    match found {
        Some(row) => Ok(Some(row)),
        None => Ok(by_id(connection, name)?.filter(|row| row.stage == Stage::Trashed)),
    }
}

/// Workspaces in the order of their names, those of one stage.
pub(crate) fn page(
    connection: &Connection,
    stage: Stage,
    after: (&str, &str),
    limit: usize,
) -> rusqlite::Result<Vec<Row>> {
    connection
        .prepare_cached(&format!(
            "{ROW} WHERE stage = ?1 AND name >= ?2 AND (name, id) > (?2, ?3) ORDER BY name, id LIMIT ?4"
        ))?
        .query_map(params![stage.number(), after.0, after.1, limit as i64], read)?
        .collect()
}

/// Those whose directories may not be as they should.
pub(crate) fn unsettled(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached("SELECT id FROM workspaces WHERE settled = 0")?
        .query_map([], |record| record.get(0))?
        .collect()
}

/// Those whose time in the trash is over.
pub(crate) fn expired(connection: &Connection, now_ms: i64) -> rusqlite::Result<Vec<String>> {
    connection
        .prepare_cached("SELECT id FROM workspaces WHERE stage = 2 AND ends_ms <= ?1")?
        .query_map(params![now_ms], |record| record.get(0))?
        .collect()
}

/// How many there are, the trash included.
pub(crate) fn count(connection: &Connection) -> rusqlite::Result<usize> {
    let count: i64 = connection
        .prepare_cached("SELECT count(*) FROM workspaces")?
        .query_row([], |record| record.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Writes a row.
pub(crate) fn put(connection: &Connection, row: &Row) -> rusqlite::Result<()> {
    let lasting = match row.lasting {
        Lasting::Kept => 0_i64,
        Lasting::Ephemeral => 1,
    };
    let settled = match row.settled {
        Settled::No => 0_i64,
        Settled::Yes => 1,
    };
    connection
        .prepare_cached(
            "INSERT INTO workspaces VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (id) DO UPDATE SET
             name = ?2, stage = ?3, lasting = ?4, label = ?5, used_ms = ?8, ends_ms = ?9, settled = ?10, origin = ?11",
        )?
        .execute(params![
            row.id,
            row.name,
            row.stage.number(),
            lasting,
            row.label,
            row.maker,
            row.created_ms,
            row.used_ms,
            row.ends_ms,
            settled,
            row.origin
        ])?;
    Ok(())
}

/// Takes a row away, and the tokens that led there.
pub(crate) fn drop_row(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM tokens WHERE id IN (SELECT token FROM token_places WHERE workspace = ?1)",
        params![id],
    )?;
    connection.execute("DELETE FROM token_places WHERE workspace = ?1", params![id])?;
    connection.execute("DELETE FROM workspaces WHERE id = ?1", params![id])?;
    Ok(())
}

/// Ends every token that leads to a workspace.
pub(crate) fn end_tokens(connection: &Connection, id: &str, now_ms: i64) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE tokens SET ends_ms = ?2 WHERE id IN (SELECT token FROM token_places WHERE workspace = ?1)
         AND (ends_ms IS NULL OR ends_ms > ?2)",
        params![id, now_ms],
    )?;
    Ok(())
}

/// What is said when there is no such workspace.
pub(crate) fn unknown(name: &str) -> Failure {
    Failure::new(Kind::NotFound, format!("there is no workspace {name}"))
        .hint("`stead workspace list` shows which there are")
}
