//! The database rows of the registry, and the names and ids of workspaces. A row says in which state a workspace should
//! be: being created, ready, in the trash, or being deleted.
//!
//! People choose the name of a workspace; its id is random. Only ids become directory names, so a name cannot refer to
//! a path outside the registry.

use std::fmt;

use rusqlite::{Connection, Row as Record, params};
use stead_engine::{Error, ErrorKind, NextStep, ops::DestroyedWorkspaceTrashPolicy};
use stead_path::FileName;

use crate::{
    errors,
    limits::WORKSPACE_NAME_BYTES_MAX,
    store::{SqliteStore, execute_cached, lock_ignoring_poison, query_optional, query_rows},
    token::random_bytes,
};

/// The tables of a registry supplement the tables of every workspace store.
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

const ROW_COLUMNS: &str =
    "SELECT id, name, stage, lasting, label, maker, created_ms, used_ms, ends_ms, settled, origin FROM workspaces";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkspaceRowLifecycleState {
    /// The name of the workspace is reserved, and its directory may be incomplete.
    Creating,
    Ready,
    Trashed,
    /// The workspace can no longer be used, and its directory is being removed.
    Deleting,
}

impl WorkspaceRowLifecycleState {
    pub(crate) fn to_number(self) -> i64 {
        match self {
            Self::Creating => 0,
            Self::Ready => 1,
            Self::Trashed => 2,
            Self::Deleting => 3,
        }
    }

    fn from_number(number: i64) -> Option<Self> {
        let all = [Self::Creating, Self::Ready, Self::Trashed, Self::Deleting];
        all.into_iter().find(|stage| stage.to_number() == number)
    }
}

/// Whether the directory of a workspace has been made to match the workspace's database row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkspaceRowReconciliationStatus {
    Done,
    Pending,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkspaceDatabaseRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) lifecycle: WorkspaceRowLifecycleState,
    pub(crate) destroy_policy: DestroyedWorkspaceTrashPolicy,
    pub(crate) label: String,
    pub(crate) created_by: String,
    pub(crate) created_ms: i64,
    pub(crate) last_used_ms: i64,
    /// The time in Unix milliseconds at which the workspace is deleted from the trash.
    pub(crate) expires_ms: Option<i64>,
    pub(crate) reconciliation: WorkspaceRowReconciliationStatus,
    /// The workspace or archive from which this workspace was created, as JSON.
    pub(crate) origin: Option<String>,
}

pub(crate) fn create_tables(store: &SqliteStore) -> Result<(), Error> {
    if store.has_row("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = 'tokens_of_places'", [])? {
        return Ok(());
    }
    lock_ignoring_poison(&store.writer)
        .execute_batch(&format!("BEGIN IMMEDIATE; {TABLES} COMMIT;"))
        .map_err(errors::store_error)
}

fn row_from_record(record: &Record<'_>) -> rusqlite::Result<WorkspaceDatabaseRow> {
    let stage = WorkspaceRowLifecycleState::from_number(record.get(2)?).ok_or(rusqlite::Error::InvalidQuery)?;
    let lasting = if record.get::<_, i64>(3)? == 0 {
        DestroyedWorkspaceTrashPolicy::MoveToTrash
    } else {
        DestroyedWorkspaceTrashPolicy::DeleteAtOnce
    };
    let settled = if record.get::<_, i64>(9)? == 0 {
        WorkspaceRowReconciliationStatus::Pending
    } else {
        WorkspaceRowReconciliationStatus::Done
    };
    Ok(WorkspaceDatabaseRow {
        id: record.get(0)?,
        name: record.get(1)?,
        lifecycle: stage,
        destroy_policy: lasting,
        label: record.get(4)?,
        created_by: record.get(5)?,
        created_ms: record.get(6)?,
        last_used_ms: record.get(7)?,
        expires_ms: record.get(8)?,
        reconciliation: settled,
        origin: record.get(10)?,
    })
}

pub(crate) fn find_by_id(connection: &Connection, id: &str) -> rusqlite::Result<Option<WorkspaceDatabaseRow>> {
    query_optional(connection, &format!("{ROW_COLUMNS} WHERE id = ?1"), params![id], row_from_record)
}

/// An active workspace is ready or being created.
pub(crate) fn find_active_by_name(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<Option<WorkspaceDatabaseRow>> {
    query_optional(connection, &format!("{ROW_COLUMNS} WHERE name = ?1 AND stage < 2"), params![name], row_from_record)
}

/// A trashed workspace is found by its name or id. If several trashed workspaces have the same name, the search finds
/// the workspace that was destroyed last.
pub(crate) fn find_trashed_by_name(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<Option<WorkspaceDatabaseRow>> {
    let sql = format!("{ROW_COLUMNS} WHERE name = ?1 AND stage = 2 ORDER BY ends_ms DESC, id LIMIT 1");
    match query_optional(connection, &sql, params![name], row_from_record)? {
        Some(row) => Ok(Some(row)),
        None => Ok(find_by_id(connection, name)?.filter(|row| row.lifecycle == WorkspaceRowLifecycleState::Trashed)),
    }
}

pub(crate) fn load_page(
    connection: &Connection,
    stage: WorkspaceRowLifecycleState,
    after: (&str, &str),
    limit: usize,
) -> rusqlite::Result<Vec<WorkspaceDatabaseRow>> {
    let sql =
        format!("{ROW_COLUMNS} WHERE stage = ?1 AND name >= ?2 AND (name, id) > (?2, ?3) ORDER BY name, id LIMIT ?4");
    query_rows(connection, &sql, params![stage.to_number(), after.0, after.1, limit as i64], row_from_record)
}

pub(crate) fn unreconciled_ids(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    query_rows(connection, "SELECT id FROM workspaces WHERE settled = 0", [], |record| record.get(0))
}

pub(crate) fn expired_ids(connection: &Connection, now_ms: i64) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT id FROM workspaces WHERE stage = 2 AND ends_ms <= ?1";
    query_rows(connection, sql, params![now_ms], |record| record.get(0))
}

pub(crate) fn count_workspaces(connection: &Connection) -> rusqlite::Result<usize> {
    let count: i64 =
        connection.prepare_cached("SELECT count(*) FROM workspaces")?.query_row([], |record| record.get(0))?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

pub(crate) fn upsert_row(connection: &Connection, row: &WorkspaceDatabaseRow) -> rusqlite::Result<()> {
    let sql = "INSERT INTO workspaces VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) ON CONFLICT (id) DO UPDATE
               SET name = ?2, stage = ?3, lasting = ?4, label = ?5, used_ms = ?8, ends_ms = ?9, settled = ?10,
               origin = ?11";
    let values = params![
        row.id,
        row.name,
        row.lifecycle.to_number(),
        row.destroy_policy == DestroyedWorkspaceTrashPolicy::DeleteAtOnce,
        row.label,
        row.created_by,
        row.created_ms,
        row.last_used_ms,
        row.expires_ms,
        row.reconciliation == WorkspaceRowReconciliationStatus::Done,
        row.origin
    ];
    execute_cached(connection, sql, values)
}

pub(crate) fn delete_row(connection: &Connection, id: &str) -> rusqlite::Result<()> {
    connection
        .execute("DELETE FROM tokens WHERE id IN (SELECT token FROM token_places WHERE workspace = ?1)", params![id])?;
    connection.execute("DELETE FROM token_places WHERE workspace = ?1", params![id])?;
    execute_cached(connection, "DELETE FROM workspaces WHERE id = ?1", params![id])
}

pub(crate) fn revoke_workspace_tokens(connection: &Connection, id: &str, now_ms: i64) -> rusqlite::Result<()> {
    let sql = "UPDATE tokens SET ends_ms = ?2 WHERE id IN (SELECT token FROM token_places WHERE workspace = ?1)
               AND (ends_ms IS NULL OR ends_ms > ?2)";
    execute_cached(connection, sql, params![id, now_ms])
}

pub(crate) fn workspace_not_found(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no workspace {name}"))
        .with_next_step(NextStep::person_command("workspace list", "list the workspaces"))
}

const ID_BYTES: usize = 8;

/// The name of a workspace: lowercase letters, digits and dashes, not beginning or ending with a dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkspaceName(String);

impl WorkspaceName {
    /// Checks a workspace name; the error for an invalid name states the rule for names.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = text.as_bytes();
        let ends = bytes.first().is_some_and(|byte| plain(*byte)) && bytes.last().is_some_and(|byte| plain(*byte));
        if ends && bytes.len() <= WORKSPACE_NAME_BYTES_MAX && bytes.iter().all(|byte| plain(*byte) || *byte == b'-') {
            return Ok(Self(text.to_owned()));
        }
        let rule = format!(
            "a workspace name has 1 to {WORKSPACE_NAME_BYTES_MAX} characters of a-z, 0-9 and -, and neither begins nor ends with -"
        );
        Err(Error::new(ErrorKind::InvalidName, rule).with_next_step("choose such a name, for example team-1"))
    }

    /// Returns the workspace name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of a workspace is also the name of the workspace's directory.
pub(crate) fn generate_id() -> Result<String, Error> {
    let bytes: [u8; ID_BYTES] = random_bytes()?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

pub(crate) fn directory_name_of_id(id: &str) -> Result<FileName, Error> {
    let digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let malformed = || {
        Error::new(
            ErrorKind::AuditUnavailable,
            "the registry of hosted workspaces is damaged: a workspace id cannot be read",
        )
        .with_next_step("restore the directory of hosted workspaces from a backup")
    };
    if id.len() != 2 * ID_BYTES || !id.bytes().all(digits) {
        return Err(malformed());
    }
    FileName::new(id.as_bytes()).map_err(|_| malformed())
}

pub(crate) fn lock_slot(id: &str) -> u64 {
    // Two bits are dropped: file offsets are signed, and the end of the locked range must also be a valid offset.
    u64::from_str_radix(id, 16).unwrap_or_default() >> 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_only_short_plain_names() {
        let long = "a".repeat(WORKSPACE_NAME_BYTES_MAX);
        for good in ["a", "7", "agent-17", "a--b", long.as_str()] {
            assert_eq!(WorkspaceName::parse(good).unwrap().as_str(), good);
        }
        let longer = "a".repeat(WORKSPACE_NAME_BYTES_MAX + 1);
        for bad in ["", "-a", "a-", ".", "..", "a/b", "a.b", "A", "ä", "a b", "a\0", "a_b", "%2e", longer.as_str()] {
            assert_eq!(WorkspaceName::parse(bad).unwrap_err().kind, ErrorKind::InvalidName, "{bad:?}");
        }
    }

    #[test]
    fn only_ids_become_directory_names() {
        let id = generate_id().unwrap();
        assert_eq!(directory_name_of_id(&id).unwrap().as_bytes(), id.as_bytes());
        for bad in ["", "..", "0123", "0123456789abcdeF", "0123456789abcde/"] {
            assert!(directory_name_of_id(bad).is_err(), "{bad:?}");
        }
    }
}
