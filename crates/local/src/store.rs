//! The embedded database: connections and the head of the chain. One connection writes, under a mutex; a few read.
//!
//! Promises: after a failed write of unknown outcome nothing is written until the workspace is opened again, because
//! a retry could acknowledge what was lost.

use std::{
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use disk::LockFile;
use engine::{Failure, Kind};
use journal::{Digest, Frontier, Leaf, Origin};
use rusqlite::{Connection, OptionalExtension, Transaction, config::DbConfig, params};

use crate::{failure, options::Durability, schema};

/// The end of the chain as the writer knows it.
#[derive(Clone)]
pub(crate) struct Tip {
    pub(crate) number: u64,
    pub(crate) hash: Digest,
    pub(crate) frontier: Frontier,
    /// When the last entry of this transaction was made.
    pub(crate) time_ms: i64,
}

/// The database.
pub(crate) struct Store {
    file: PathBuf,
    pub(crate) writer: Mutex<Connection>,
    /// What was last said to the writing connection about syncing; saying it again is not free.
    level: Mutex<&'static str>,
    readers: Mutex<Vec<Connection>>,
    broken: AtomicBool,
    /// Rung when a transaction has become true, for those who wait in other processes. The database writes its bytes
    /// earlier, so its own files tell too soon.
    bell: LockFile,
    pub(crate) origin: Origin,
}

/// Whether a transaction must be on the device before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sync {
    /// Reads and refusals: with the next one that must.
    Later,
    /// Changes.
    Now,
}

/// Reading connections that are kept open.
const READERS_KEPT: usize = 8;

/// Takes a mutex whose holder may have panicked: what it guards is checked by the database, not by us.
pub(crate) fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Opens or makes the database. `fresh_id` names the workspace if it is new.
    pub(crate) fn open(file: PathBuf, bell: LockFile, fresh_id: &str) -> Result<Self, Failure> {
        let writer = connect(&file).map_err(|error| failure::store(&error))?;
        let id = prepare(&writer, fresh_id)?;
        let origin = Origin::new(&id).map_err(|_| {
            Failure::new(Kind::AuditUnavailable, "the database holds a malformed workspace id")
        })?;
        Ok(Self {
            file,
            writer: Mutex::new(writer),
            level: Mutex::new(""),
            readers: Mutex::new(Vec::new()),
            broken: AtomicBool::new(false),
            bell,
            origin,
        })
    }

    /// Runs a query on a reading connection.
    pub(crate) fn look<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        let kept = hold(&self.readers).pop();
        let connection = match kept {
            Some(connection) => connection,
            None => connect(&self.file).map_err(|error| failure::store(&error))?,
        };
        let found = query(&connection).map_err(|error| failure::store(&error));
        let mut readers = hold(&self.readers);
        if readers.len() < READERS_KEPT {
            readers.push(connection);
        }
        found
    }

    /// Runs one transaction on the writing connection. `None` from the body rolls it back.
    pub(crate) fn transact<T>(
        &self,
        sync: Sync,
        durability: Durability,
        body: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut writer = hold(&self.writer);
        self.usable()?;
        let level = match (sync, durability) {
            (Sync::Now, Durability::Full) => "PRAGMA synchronous = FULL",
            (Sync::Later, _) | (_, Durability::Fast) => "PRAGMA synchronous = NORMAL",
        };
        let mut said = hold(&self.level);
        if *said != level {
            writer.execute_batch(level).map_err(|error| failure::store(&error))?;
            *said = level;
        }
        drop(said);
        let transaction = writer
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(|error| failure::store(&error))?;
        let value = body(&transaction)?;
        transaction.commit().map_err(|error| match error.sqlite_error_code() {
            // The last page of a transaction did not fit, or another one is in the way: it did not happen.
            Some(rusqlite::ErrorCode::DiskFull | rusqlite::ErrorCode::DatabaseBusy) => failure::store(&error),
            // A failed sync is final: the pages may be lost although a second try would report success.
            _ => {
                self.condemn();
                failure::uncertain(&error)
            }
        })?;
        self.bell.ring();
        Ok(value)
    }

    /// Fails once a write has failed in a way that cannot be trusted again.
    pub(crate) fn usable(&self) -> Result<(), Failure> {
        if self.broken.load(Ordering::SeqCst) {
            return Err(Failure::new(
                Kind::AuditUnavailable,
                "the journal failed to reach the device; the workspace is read-only",
            )
            .hint("repair the storage and start the server again"));
        }
        Ok(())
    }

    /// Turns the workspace read-only until it is opened again: something failed to reach the device.
    pub(crate) fn condemn(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }
}

fn connect(file: &std::path::Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(Duration::from_millis(schema::BUSY_TIMEOUT_MS))?;
    connection.execute_batch(schema::PRAGMAS)?;
    // Plans must not depend on bound values: otherwise every new value of a look-up is compiled again.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// Makes the tables and names the workspace, unless that has been done.
fn prepare(connection: &Connection, fresh_id: &str) -> Result<String, Failure> {
    let error = |error: rusqlite::Error| failure::store(&error);
    let known = format_of(connection);
    match known {
        Some(schema::FORMAT) if has_every_table(connection).map_err(error)? => {}
        // Written before a later version added tables; what is there stays as it is.
        Some(schema::FORMAT) => connection
            .execute_batch(&format!("BEGIN IMMEDIATE; {} COMMIT;", schema::TABLES))
            .map_err(error)?,
        Some(format) if !(schema::FORMAT_OLDEST..schema::FORMAT).contains(&format) => {
            return Err(Failure::new(
                Kind::AuditUnavailable,
                "the state directory was written by a newer version",
            ));
        }
        Some(_) | None => {
            connection
                .execute_batch(&format!("BEGIN IMMEDIATE; {} COMMIT;", schema::TABLES))
                .map_err(error)?;
            connection
                .execute_batch(&format!(
                    "INSERT INTO meta VALUES ('format', {0}) ON CONFLICT (name) DO UPDATE SET value = {0};",
                    schema::FORMAT
                ))
                .map_err(error)?;
        }
    }
    connection
        .execute("INSERT OR IGNORE INTO meta VALUES ('workspace', ?1)", params![fresh_id])
        .map_err(error)?;
    connection
        .query_row("SELECT value FROM meta WHERE name = 'workspace'", [], |row| row.get(0))
        .map_err(error)
}

/// Whether the database has as many tables as there should be.
fn has_every_table(connection: &Connection) -> rusqlite::Result<bool> {
    let there: i64 =
        connection
            .query_row("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'", [], |row| row.get(0))?;
    let declared = schema::TABLES.matches("CREATE TABLE").count();
    Ok(usize::try_from(there).is_ok_and(|there| there >= declared))
}

fn format_of(connection: &Connection) -> Option<i64> {
    // A missing table and a missing row both mean a new database.
    connection.query_row("SELECT value FROM meta WHERE name = 'format'", [], |row| row.get(0)).ok()
}

/// The end of the chain, inside a transaction.
pub(crate) fn tip(transaction: &Connection, origin: &Origin) -> rusqlite::Result<Tip> {
    let stored: Option<(u64, Vec<u8>, Vec<u8>)> = transaction
        .prepare_cached("SELECT value, (SELECT value FROM meta WHERE name = 'head_hash'), (SELECT value FROM meta WHERE name = 'frontier') FROM meta WHERE name = 'head'")?
        .query_row([], |row| Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((number, hash, frontier)) = stored else {
        return Ok(Tip { number: 0, hash: journal::genesis(origin), frontier: Frontier::new(), time_ms: 0 });
    };
    let malformed = || rusqlite::Error::InvalidQuery;
    Ok(Tip {
        number,
        hash: digest(&hash).ok_or_else(malformed)?,
        frontier: Frontier::from_bytes(&frontier).map_err(|_| malformed())?,
        time_ms: 0,
    })
}

/// Writes the end of the chain back.
pub(crate) fn put_tip(transaction: &Connection, tip: &Tip) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare_cached("INSERT OR REPLACE INTO meta VALUES (?1, ?2)")?;
    statement.execute(params!["head", sql(tip.number)])?;
    statement.execute(params!["head_hash", tip.hash.as_bytes().as_slice()])?;
    statement.execute(params!["frontier", tip.frontier.to_bytes()])?;
    Ok(())
}

/// Appends one entry to the chain and gives it its number and hash.
pub(crate) fn append(transaction: &Connection, tip: &mut Tip, draft: &mut Draft) -> rusqlite::Result<()> {
    let entry = &mut draft.entry;
    entry.number = tip.number + 1;
    let bytes = journal::encode(entry);
    let hash = journal::link_hash(&tip.hash, &bytes);
    transaction.prepare_cached("INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?.execute(
        params![
            sql(entry.number),
            bytes,
            hash.as_bytes().as_slice(),
            entry.time_ms,
            entry.caller.principal,
            entry.operation,
            i64::from(!entry.changes.is_empty()),
        ],
    )?;
    let mut touch = transaction.prepare_cached("INSERT OR REPLACE INTO touched VALUES (?1, ?2, ?3)")?;
    for (path, version) in &draft.touched {
        touch.execute(params![
            path,
            sql(entry.number),
            version.map(|version| version.as_bytes().to_vec())
        ])?;
    }
    tip.frontier.append(Leaf::of_entry(&hash));
    tip.number = entry.number;
    tip.hash = hash;
    tip.time_ms = entry.time_ms;
    Ok(())
}

/// An entry that has no number yet, with the places it is found by.
pub(crate) struct Draft {
    pub(crate) entry: journal::Entry,
    pub(crate) touched: Vec<(String, Option<Digest>)>,
}

/// The places that a change is about, each with the version it left there, if that is one file.
pub(crate) fn touched(change: &journal::Change) -> impl Iterator<Item = (String, Option<Digest>)> {
    let left = match &change.after {
        journal::State::File { version, .. } => Some(*version),
        journal::State::Absent
        | journal::State::Directory { .. }
        | journal::State::Link { .. }
        | journal::State::Tree { .. }
        | journal::State::Unknown { .. } => None,
    };
    let (first, second) = match &change.to {
        Some(to) => ((change.path.clone(), None), Some((to.clone(), left))),
        None => ((change.path.clone(), left), None),
    };
    std::iter::once(first).chain(second)
}

/// The database counts signed.
pub(crate) fn sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A digest from the database.
pub(crate) fn digest(bytes: &[u8]) -> Option<Digest> {
    <[u8; 32]>::try_from(bytes).ok().map(Digest)
}
