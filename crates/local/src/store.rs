//! The SQLite database: connections and the tip of the chain. One connection writes, under a mutex; a few read.
//!
//! Promises: after a write error of unknown outcome the store stays read-only until the next open, because a retry could
//! acknowledge lost data.

use std::{
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rusqlite::{Connection, OptionalExtension, Transaction, config::DbConfig, params};
use stead_disk::LockFile;
use stead_engine::{Error, ErrorKind};
use stead_journal::{Digest, JournalOrigin, MerkleFrontier, MerkleLeaf};

use crate::{errors, options::Durability, schema};

/// The end of the chain, as seen by a writing transaction.
#[derive(Clone)]
pub(crate) struct ChainTip {
    pub(crate) number: u64,
    pub(crate) hash: Digest,
    pub(crate) frontier: MerkleFrontier,
    /// Time of the last entry of this transaction.
    pub(crate) time_ms: i64,
}

pub(crate) struct SqliteStore {
    file: PathBuf,
    pub(crate) writer: Mutex<Connection>,
    /// The `synchronous` level last set on the writing connection; setting it again is not free.
    synchronous_level: Mutex<&'static str>,
    readers: Mutex<Vec<Connection>>,
    is_broken: AtomicBool,
    /// Signalled after a transaction commits, for waiters in other processes. The database files change earlier, before
    /// the commit, and cannot serve as the signal.
    lock_file: LockFile,
    pub(crate) origin: JournalOrigin,
}

/// Whether a transaction must be on disk before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SyncRequirement {
    /// Reads and refusals: synced with the next change.
    Later,
    Now,
}

const POOLED_READERS_MAX: usize = 8;

/// Locks a mutex whose holder may have panicked: the database, not the mutex, protects consistency.
pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SqliteStore {
    /// Opens or creates the database. `fresh_id` becomes the workspace id of a new one. The caller holds the lock of
    /// [`PathLocks::lock_database_open`](crate::path_locks::PathLocks::lock_database_open).
    pub(crate) fn open(file: PathBuf, lock_file: LockFile, fresh_id: &str) -> Result<Self, Error> {
        let writer = open_connection(&file)
            .and_then(|writer| writer.execute_batch(schema::FILE_PRAGMAS).map(|()| writer))
            .map_err(|error| errors::store_error(&error))?;
        let id = prepare_schema(&writer, fresh_id)?;
        let origin = JournalOrigin::new(&id)
            .map_err(|_| Error::new(ErrorKind::AuditUnavailable, "malformed workspace id in the database"))?;
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
            None => open_connection(&self.file).map_err(|error| errors::store_error(&error))?,
        };
        let found = query(&connection).map_err(|error| errors::store_error(&error));
        let mut readers = lock_ignoring_poison(&self.readers);
        if readers.len() < POOLED_READERS_MAX {
            readers.push(connection);
        }
        found
    }

    /// Runs one transaction on the writing connection. An error from the body rolls it back.
    pub(crate) fn run_transaction<T>(
        &self,
        sync: SyncRequirement,
        durability: Durability,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut writer = lock_ignoring_poison(&self.writer);
        self.ensure_writable()?;
        let level = match (sync, durability) {
            (SyncRequirement::Now, Durability::Full) => "PRAGMA synchronous = FULL",
            (SyncRequirement::Later, _) | (_, Durability::Fast) => "PRAGMA synchronous = NORMAL",
        };
        let mut current_level = lock_ignoring_poison(&self.synchronous_level);
        if *current_level != level {
            writer.execute_batch(level).map_err(|error| errors::store_error(&error))?;
            *current_level = level;
        }
        drop(current_level);
        let transaction = writer
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(|error| errors::store_error(&error))?;
        let value = body(&transaction)?;
        transaction.commit().map_err(|error| match error.sqlite_error_code() {
            // The last page did not fit, or another process holds the lock: the transaction did not happen.
            Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::DatabaseBusy) => errors::store_error(&error),
            // A failed sync is final: the pages may be lost although a second sync would report success.
            _ => {
                self.mark_read_only();
                errors::commit_uncertain_error(&error)
            }
        })?;
        self.lock_file.notify_watchers();
        Ok(value)
    }

    /// Fails after a write error of unknown outcome.
    pub(crate) fn ensure_writable(&self) -> Result<(), Error> {
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(Error::new(
                ErrorKind::AuditUnavailable,
                "the journal could not be synced to disk; the workspace is read-only",
            )
            .with_next_step("repair the storage and restart the server"));
        }
        Ok(())
    }

    /// Makes the workspace read-only until the next open, after a failed sync.
    pub(crate) fn mark_read_only(&self) {
        self.is_broken.store(true, Ordering::SeqCst);
    }
}

fn open_connection(file: &std::path::Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_millis(schema::BUSY_TIMEOUT_MS))?;
    connection.execute_batch(schema::CONNECTION_PRAGMAS)?;
    // Query plans must not depend on bound values, or each new value recompiles the statement.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Creates missing tables and stores the workspace id of a new database.
fn prepare_schema(connection: &Connection, fresh_id: &str) -> Result<String, Error> {
    let error = |error: rusqlite::Error| errors::store_error(&error);
    let known = stored_format(connection);
    match known {
        Some(schema::FORMAT) if has_every_table(connection).map_err(error)? => {}
        // Written before a later version added tables; existing rows stay.
        Some(schema::FORMAT) => {
            connection.execute_batch(&format!("BEGIN IMMEDIATE; {} COMMIT;", schema::TABLES)).map_err(error)?
        }
        Some(format) if !(schema::FORMAT_OLDEST..schema::FORMAT).contains(&format) => {
            return Err(Error::new(ErrorKind::AuditUnavailable, "the state directory was written by a newer version"));
        }
        Some(_) | None => {
            connection.execute_batch(&format!("BEGIN IMMEDIATE; {} COMMIT;", schema::TABLES)).map_err(error)?;
            connection
                .execute_batch(&format!(
                    "INSERT INTO meta VALUES ('format', {0}) ON CONFLICT (name) DO UPDATE SET value = {0};",
                    schema::FORMAT
                ))
                .map_err(error)?;
        }
    }
    connection.execute("INSERT OR IGNORE INTO meta VALUES ('workspace', ?1)", params![fresh_id]).map_err(error)?;
    connection.query_row("SELECT value FROM meta WHERE name = 'workspace'", [], |row| row.get(0)).map_err(error)
}

/// Whether the database has all declared tables.
fn has_every_table(connection: &Connection) -> rusqlite::Result<bool> {
    let there: i64 =
        connection.query_row("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'", [], |row| row.get(0))?;
    let declared = schema::TABLES.matches("CREATE TABLE").count();
    Ok(usize::try_from(there).is_ok_and(|there| there >= declared))
}

fn stored_format(connection: &Connection) -> Option<i64> {
    // A missing table and a missing row both mean a new database.
    connection.query_row("SELECT value FROM meta WHERE name = 'format'", [], |row| row.get(0)).ok()
}

/// Reads the end of the chain inside a transaction.
pub(crate) fn load_tip(transaction: &Connection, origin: &JournalOrigin) -> rusqlite::Result<ChainTip> {
    let stored: Option<(u64, Vec<u8>, Vec<u8>)> = transaction
        .prepare_cached("SELECT value, (SELECT value FROM meta WHERE name = 'head_hash'), (SELECT value FROM meta WHERE name = 'frontier') FROM meta WHERE name = 'head'")?
        .query_row([], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?, row.get(2)?)))
        .optional()?;
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

/// Appends one entry to the chain and assigns its number and hash.
pub(crate) fn append_entry(
    transaction: &Connection,
    tip: &mut ChainTip,
    draft: &mut PendingJournalEntry,
) -> rusqlite::Result<()> {
    let entry = &mut draft.entry;
    entry.number = tip.number + 1;
    let bytes = stead_journal::encode_entry(entry);
    let hash = stead_journal::chain_hash(&tip.hash, &bytes);
    transaction.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(params![
        to_sql_integer(entry.number),
        bytes,
        hash.as_bytes().as_slice(),
        entry.time_ms,
        entry.caller.principal,
        entry.operation,
        i64::from(!entry.changes.is_empty()),
    ])?;
    let mut touch = transaction.prepare_cached("INSERT OR REPLACE INTO touched VALUES (?1, ?2, ?3)")?;
    for (path, version) in &draft.touched {
        touch.execute(params![
            path,
            to_sql_integer(entry.number),
            version.map(|version| version.as_bytes().to_vec())
        ])?;
    }
    tip.frontier.append(MerkleLeaf::from_entry_hash(&hash));
    tip.number = entry.number;
    tip.hash = hash;
    tip.time_ms = entry.time_ms;
    Ok(())
}

/// An entry without a number, with the paths it is indexed by.
pub(crate) struct PendingJournalEntry {
    pub(crate) entry: stead_journal::JournalEntry,
    pub(crate) touched: Vec<(String, Option<Digest>)>,
}

/// The paths of a change, each with the version left there if it is a single file.
pub(crate) fn touched_paths(change: &stead_journal::RecordedChange) -> impl Iterator<Item = (String, Option<Digest>)> {
    let left = match &change.after {
        stead_journal::PathState::File { version, .. } => Some(*version),
        stead_journal::PathState::Absent
        | stead_journal::PathState::Directory { .. }
        | stead_journal::PathState::Link { .. }
        | stead_journal::PathState::Tree { .. }
        | stead_journal::PathState::Unknown { .. } => None,
    };
    let (first, second) = match &change.to {
        Some(to) => ((change.path.clone(), None), Some((to.clone(), left))),
        None => ((change.path.clone(), left), None),
    };
    std::iter::once(first).chain(second)
}

/// SQLite integers are signed.
pub(crate) fn to_sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(crate) fn digest_from_bytes(bytes: &[u8]) -> Option<Digest> {
    <[u8; 32]>::try_from(bytes).ok().map(Digest)
}
