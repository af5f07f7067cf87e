//! The SQLite database of a workspace: its connections, its tables, and the end of the journal's hash chain.
//!
//! If a commit fails and may or may not be on disk, the store stays read-only until the next open, because a retry
//! could acknowledge lost data.

use std::{
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rusqlite::{
    Connection, OptionalExtension, Params, Row, RowIndex, Transaction, TransactionBehavior, config::DbConfig, params,
};
use stead_disk::MultiSlotLockFile;
use stead_engine::{Error, ErrorKind, NextStep};
use stead_journal::{Digest, JournalEntry, JournalWorkspaceId, MerkleFrontier, MerkleLeafHash};
use stead_path::RelPath;

use crate::{entry_index, errors, group_commit::TransactionError, migration, options::Durability};

#[derive(Clone)]
pub(crate) struct ChainTip {
    pub(crate) number: u64,
    pub(crate) hash: Digest,
    pub(crate) frontier: MerkleFrontier,
    /// The time of the last entry that the transaction appended; zero if the transaction appended none.
    pub(crate) time_ms: i64,
}

pub(crate) struct SqliteStore {
    file: PathBuf,
    pub(crate) writer: Mutex<Connection>,
    /// The current value of `PRAGMA synchronous` on the writing connection, kept to avoid setting the same value again.
    synchronous_level: Mutex<&'static str>,
    readers: Mutex<Vec<Connection>>,
    is_broken: AtomicBool,
    /// A write to the lock file after every commit wakes waiting callers in other processes. Changes of the database
    /// files cannot wake callers, because the database files change before the commit.
    lock_file: MultiSlotLockFile,
    pub(crate) origin: JournalWorkspaceId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TransactionSyncPolicy {
    /// The transaction is synced to disk with the next change, which suffices for reads and refused calls.
    Later,
    Now,
}

const POOLED_READERS_MAX: usize = 8;

/// A poisoned mutex is locked anyway, because transactions, not mutexes, keep the data consistent.
pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SqliteStore {
    /// A new database gets `fresh_id` as its workspace id. The caller of `open` holds the lock
    /// [`PathLocks::lock_database_open`](crate::path_locks::PathLocks::lock_database_open).
    pub(crate) fn open(file: PathBuf, lock_file: MultiSlotLockFile, fresh_id: &str) -> Result<Self, Error> {
        let writer = open_connection(&file)
            .and_then(|writer| writer.execute_batch(FILE_PRAGMAS).map(|()| writer))
            .map_err(errors::store_error)?;
        let id = prepare_schema(&writer, fresh_id)?;
        let origin = JournalWorkspaceId::new(&id)
            .map_err(|_| errors::damaged_database_error("the workspace id cannot be read"))?;
        Ok(Self {
            file,
            writer: Mutex::new(writer),
            synchronous_level: Mutex::new(""),
            readers: Mutex::new(Vec::new()),
            is_broken: AtomicBool::new(false),
            lock_file,
            origin,
        })
    }

    pub(crate) fn run_query<T>(&self, query: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Error> {
        let pooled = lock_ignoring_poison(&self.readers).pop();
        let connection = match pooled {
            Some(connection) => connection,
            None => open_connection(&self.file).map_err(errors::store_error)?,
        };
        let found = query(&connection).map_err(errors::store_error);
        let mut readers = lock_ignoring_poison(&self.readers);
        if readers.len() < POOLED_READERS_MAX {
            readers.push(connection);
        }
        found
    }

    pub(crate) fn query_rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, Error> {
        self.run_query(|connection| query_rows(connection, sql, values, read))
    }

    pub(crate) fn query_optional<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Error> {
        self.run_query(|connection| query_optional(connection, sql, values, read))
    }

    pub(crate) fn query_number(&self, sql: &str, values: impl Params) -> Result<Option<u64>, Error> {
        self.run_query(|connection| query_number(connection, sql, values))
    }

    pub(crate) fn has_row(&self, sql: &str, values: impl Params) -> Result<bool, Error> {
        self.run_query(|connection| connection.prepare_cached(sql)?.exists(values))
    }

    pub(crate) fn run_transaction<T>(
        &self,
        sync: TransactionSyncPolicy,
        durability: Durability,
        body: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        let mut writer = lock_ignoring_poison(&self.writer);
        self.ensure_writable()?;
        let level = match (sync, durability) {
            (TransactionSyncPolicy::Now, Durability::Full) => "PRAGMA synchronous = FULL",
            (TransactionSyncPolicy::Later, _) | (_, Durability::Fast) => "PRAGMA synchronous = NORMAL",
        };
        let mut current_level = lock_ignoring_poison(&self.synchronous_level);
        if *current_level != level {
            writer.execute_batch(level).map_err(errors::store_error)?;
            *current_level = level;
        }
        drop(current_level);
        let transaction =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).map_err(errors::store_error)?;
        let value = body(&transaction).map_err(errors::store_error)?;
        transaction.commit().map_err(|error| match error.sqlite_error_code() {
            // The last page did not fit, or another process holds the lock: the transaction had no effect.
            Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::DatabaseBusy) => errors::store_error(error),
            // A failed sync is final: the pages may be lost although a second sync would report success.
            _ => {
                self.mark_read_only();
                errors::commit_uncertain_error(error)
            }
        })?;
        self.lock_file.notify_watchers();
        Ok(value)
    }

    pub(crate) fn ensure_writable(&self) -> Result<(), Error> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(Error::new(
                ErrorKind::AuditUnavailable,
                "the journal could not be synced to disk; the workspace is read-only",
            )
            .with_next_step(NextStep::ask_person("repair the disk and to restart the server")));
        }
        Ok(())
    }

    /// After a failed sync, the workspace is read-only until the next open.
    pub(crate) fn mark_read_only(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
    }
}

fn open_connection(file: &std::path::Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_millis(BUSY_TIMEOUT_MS))?;
    connection.execute_batch(CONNECTION_PRAGMAS)?;
    // Without this setting SQLite would recompile a statement for new bound values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn prepare_schema(connection: &Connection, fresh_id: &str) -> Result<String, Error> {
    let format = stored_format(connection);
    if format.is_some_and(|format| !(FORMAT_OLDEST..=FORMAT).contains(&format)) {
        let newer = "the state directory was written by a newer version of stead, which this version cannot read";
        return Err(Error::new(ErrorKind::AuditUnavailable, newer)
            .with_next_step(NextStep::ask_person("update stead on this machine")));
    }
    upgrade_schema(connection, format, fresh_id).map_err(|error| match error {
        TransactionError::Refused(error) => error,
        TransactionError::Database(error) => errors::store_error(error),
    })
}

fn upgrade_schema(connection: &Connection, format: Option<i64>, fresh_id: &str) -> Result<String, TransactionError> {
    // A database of this format can lack tables that a later version with the same format added.
    if format != Some(FORMAT) || !has_every_table(connection)? {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        transaction.execute_batch(TABLES)?;
        if format.is_some_and(|format| format < FIRST_FORMAT_WITH_ROWS) {
            migration::move_old_tables(&transaction)?;
        }
        let sql = "INSERT INTO meta VALUES ('format', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1";
        transaction.execute(sql, params![FORMAT])?;
        transaction.commit()?;
    }
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('workspace', ?1)", params![fresh_id])?;
    Ok(connection.query_row("SELECT value FROM meta WHERE name = 'workspace'", [], |row| row.get(0))?)
}

fn has_every_table(connection: &Connection) -> rusqlite::Result<bool> {
    let existing: i64 =
        connection.query_row("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'", [], |row| row.get(0))?;
    let declared = TABLES.matches("CREATE TABLE").count();
    Ok(usize::try_from(existing).is_ok_and(|existing| existing >= declared))
}

fn stored_format(connection: &Connection) -> Option<i64> {
    // A missing table and a missing row both mean a new database.
    connection.query_row("SELECT value FROM meta WHERE name = 'format'", [], |row| row.get(0)).ok()
}

pub(crate) fn load_tip(transaction: &Connection, origin: &JournalWorkspaceId) -> rusqlite::Result<ChainTip> {
    let sql = "SELECT value, (SELECT value FROM meta WHERE name = 'head_hash'),
               (SELECT value FROM meta WHERE name = 'frontier') FROM meta WHERE name = 'head'";
    let read = |row: &Row<'_>| Ok((number_at(row, 0)?, row.get(1)?, row.get(2)?));
    let stored: Option<(u64, Vec<u8>, Vec<u8>)> = query_optional(transaction, sql, [], read)?;
    let Some((number, hash, frontier)) = stored else {
        return Ok(ChainTip {
            number: 0,
            hash: stead_journal::genesis_hash(origin),
            frontier: MerkleFrontier::new(),
            time_ms: 0,
        });
    };
    let malformed = || rusqlite::Error::InvalidQuery;
    Ok(ChainTip {
        number,
        hash: digest_from_bytes(&hash).ok_or_else(malformed)?,
        frontier: MerkleFrontier::from_bytes(&frontier).map_err(|_| malformed())?,
        time_ms: 0,
    })
}

pub(crate) fn store_tip(transaction: &Connection, tip: &ChainTip) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?;
    statement.execute(params!["head", to_sql_integer(tip.number)])?;
    statement.execute(params!["head_hash", tip.hash.as_bytes().as_slice()])?;
    statement.execute(params!["frontier", tip.frontier.to_bytes()])?;
    Ok(())
}

pub(crate) fn append_entry(
    transaction: &Connection,
    tip: &mut ChainTip,
    draft: &mut UnnumberedJournalEntry,
) -> rusqlite::Result<()> {
    draft.entry.number = tip.number + 1;
    let bytes = stead_journal::encode_entry(&draft.entry);
    let hash = stead_journal::chain_hash(&tip.hash, &bytes);
    entry_index::insert_entry(transaction, draft, &bytes, &hash)?;
    tip.frontier.append(MerkleLeafHash::from_entry_hash(&hash));
    tip.number = draft.entry.number;
    tip.hash = hash;
    tip.time_ms = draft.entry.time_ms;
    Ok(())
}

pub(crate) struct UnnumberedJournalEntry {
    pub(crate) entry: JournalEntry,
    /// If an entry has no changes, queries find the entry by the paths that the caller requested.
    pub(crate) requested_paths: Vec<RelPath>,
}

/// Runs a statement that the connection keeps prepared.
pub(crate) fn execute_cached(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute(values).map(drop)
}

pub(crate) fn query_rows<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, read)?.collect()
}

pub(crate) fn query_optional<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query_row(values, read).optional()
}

pub(crate) fn query_number(connection: &Connection, sql: &str, values: impl Params) -> rusqlite::Result<Option<u64>> {
    query_optional(connection, sql, values, |row| number_at(row, 0))
}

pub(crate) fn path_at(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<RelPath> {
    RelPath::from_wire(&row.get::<_, String>(column)?).map_err(|_| rusqlite::Error::InvalidQuery)
}

pub(crate) fn digest_at(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Digest> {
    digest_from_bytes(row.get_ref(column)?.as_blob()?).ok_or(rusqlite::Error::InvalidQuery)
}

/// Numbers of entries, sizes and counts are stored as signed integers.
pub(crate) fn number_at(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<u64> {
    row.get::<_, i64>(column).map(i64::unsigned_abs)
}

pub(crate) fn to_sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn digest_from_bytes(bytes: &[u8]) -> Option<Digest> {
    <[u8; 32]>::try_from(bytes).ok().map(Digest)
}

/// A database with a higher format version is rejected. Since format 4, the journal has entries with details, which
/// version 0.1.0 cannot decode.
pub(crate) const FORMAT: i64 = 4;
const FIRST_FORMAT_WITH_ROWS: i64 = 4;
/// An upgrade from an older format creates the missing tables.
pub(crate) const FORMAT_OLDEST: i64 = 1;

pub(crate) const TABLES: &str = "
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, bytes BLOB NOT NULL, hash BLOB NOT NULL,
    time_ms INTEGER NOT NULL, principal TEXT NOT NULL, operation TEXT NOT NULL, changed INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS touched (
    path TEXT NOT NULL, number INTEGER NOT NULL, version BLOB, PRIMARY KEY (path, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS left_versions ON touched (path, version, number) WHERE version IS NOT NULL;
CREATE INDEX IF NOT EXISTS changed_entries ON entries (number) WHERE changed = 1;
CREATE TABLE IF NOT EXISTS pending (
    number INTEGER NOT NULL, step INTEGER NOT NULL, process TEXT NOT NULL, boot TEXT NOT NULL,
    intent TEXT NOT NULL, PRIMARY KEY (number, step)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS pending_processes ON pending (process);
CREATE TABLE IF NOT EXISTS kept (
    version BLOB PRIMARY KEY, size INTEGER NOT NULL, bytes BLOB, number INTEGER NOT NULL, agent INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS trash (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, path TEXT NOT NULL, top INTEGER NOT NULL, files INTEGER NOT NULL,
    directories INTEGER NOT NULL, size INTEGER NOT NULL, removed_ms INTEGER NOT NULL, keep_until_ms INTEGER NOT NULL,
    number INTEGER NOT NULL, state INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS trash_of_owners ON trash (owner, state, size);
CREATE TABLE IF NOT EXISTS holding (
    one INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, files INTEGER NOT NULL, number INTEGER NOT NULL,
    counted_ms INTEGER NOT NULL, took_ms INTEGER NOT NULL, doubted INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS held (
    number INTEGER PRIMARY KEY, bytes INTEGER NOT NULL, files INTEGER NOT NULL, more_bytes INTEGER NOT NULL,
    more_files INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    principal TEXT NOT NULL, key TEXT NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (principal, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS undone (
    number INTEGER NOT NULL, by INTEGER NOT NULL, redone INTEGER, PRIMARY KEY (number, by)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state_rows (
    position INTEGER PRIMARY KEY, family TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, subject TEXT NOT NULL,
    revision INTEGER NOT NULL, first_entry INTEGER, first_ms INTEGER, last_entry INTEGER, last_ms INTEGER,
    value TEXT NOT NULL, UNIQUE (family, id));
CREATE INDEX IF NOT EXISTS rows_of_owners ON state_rows (family, owner, subject);
CREATE TABLE IF NOT EXISTS row_bodies (
    family TEXT NOT NULL, id TEXT NOT NULL, slot TEXT NOT NULL, bytes BLOB NOT NULL,
    PRIMARY KEY (family, id, slot)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS row_families (family TEXT PRIMARY KEY, generation INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tokens (
    id TEXT PRIMARY KEY, hash BLOB NOT NULL, principal TEXT NOT NULL, reach TEXT NOT NULL, label TEXT NOT NULL,
    created_ms INTEGER NOT NULL, ends_ms INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tickets (
    hash BLOB PRIMARY KEY, principal TEXT NOT NULL, session TEXT, created_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checkpoints (size INTEGER PRIMARY KEY, note TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS signers (from_entry INTEGER PRIMARY KEY, record TEXT NOT NULL);
";

/// The settings that SQLite stores in the database file.
pub(crate) const FILE_PRAGMAS: &str = "PRAGMA journal_mode = WAL;";

/// The SQLite settings that must be made again on every connection.
pub(crate) const CONNECTION_PRAGMAS: &str = "
PRAGMA wal_autocheckpoint = 2000;
PRAGMA temp_store = MEMORY;
PRAGMA cache_size = -8000;
PRAGMA secure_delete = FAST;
";

pub(crate) const BUSY_TIMEOUT_MS: u64 = 10_000;
