//! The rows by which queries find journal entries, written from [`stead_journal::index_entry`] alone. No hash covers
//! these rows, so the verification of the journal derives them again.

use std::collections::BTreeSet;

use rusqlite::{Connection, Row, params};
use stead_journal::{Digest, JournalEntry, JournalEntryIndex};

use crate::store::{UnnumberedJournalEntry, execute_cached, query_number, to_sql_integer};

/// Inserts a journal entry and its index rows.
pub(crate) fn insert_entry(
    transaction: &Connection,
    draft: &UnnumberedJournalEntry,
    bytes: &[u8],
    hash: &Digest,
) -> rusqlite::Result<()> {
    let entry = &draft.entry;
    let (index, number) = (stead_journal::index_entry(entry), to_sql_integer(entry.number));
    let values = params![
        number,
        bytes,
        hash.as_bytes().as_slice(),
        entry.time_ms,
        index.principal,
        entry.operation,
        index.has_changes
    ];
    execute_cached(transaction, "INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)", values)?;
    let mut touch = transaction.prepare_cached("INSERT OR REPLACE INTO touched VALUES (?1, ?2, ?3)")?;
    for (path, change) in &index.paths {
        touch.execute(params![path, number, change.version.as_ref().map(|version| version.as_bytes().as_slice())])?;
    }
    if !index.has_changes {
        for path in &draft.requested_paths {
            touch.execute(params![path.to_string(), number, None::<&[u8]>])?;
        }
    }
    if let Some(key) = index.idempotency_key {
        execute_cached(transaction, "INSERT INTO keys VALUES (?1, ?2, ?3)", params![index.principal, key, number])?;
    }
    if let Some(undone) = index.undoes {
        let values = params![to_sql_integer(undone), number];
        execute_cached(transaction, "INSERT INTO undone VALUES (?1, ?2, NULL)", values)?;
    }
    if let Some(redone) = index.redoes {
        let sql = "UPDATE undone SET redone = ?2 WHERE number = ?1 AND redone IS NULL";
        execute_cached(transaction, sql, params![to_sql_integer(redone), number])?;
    }
    index.amends.map_or(Ok(()), |amended| retract_changes(transaction, to_sql_integer(amended)))
}

/// An amended entry stays in the journal, but counts as an entry without changes.
fn retract_changes(transaction: &Connection, number: i64) -> rusqlite::Result<()> {
    for statement in [
        "DELETE FROM undone WHERE by = ?1",
        "UPDATE undone SET redone = NULL WHERE redone = ?1",
        "DELETE FROM keys WHERE number = ?1",
        "UPDATE entries SET changed = 0 WHERE number = ?1",
        "DELETE FROM touched WHERE number = ?1 AND version IS NOT NULL",
    ] {
        transaction.execute(statement, params![number])?;
    }
    Ok(())
}

/// Compares the index rows of the journal with those that the verified entries give. The connection is in a read
/// transaction, so that no entry is amended meanwhile.
pub(crate) struct EntryIndexVerifier<'c> {
    connection: &'c Connection,
    after: u64,
    /// The number of paths with a version that the entries so far give.
    versions: u64,
    /// The entries whose rows say that a later entry amends them.
    awaiting_amendment: BTreeSet<u64>,
}

impl<'c> EntryIndexVerifier<'c> {
    pub(crate) fn new(connection: &'c Connection, after: u64) -> Self {
        Self { connection, after, versions: 0, awaiting_amendment: BTreeSet::new() }
    }

    /// Whether the index rows of an entry, and the columns `time_ms`, `principal`, `operation` and `changed` of its own
    /// row, are those that the entry gives.
    pub(crate) fn check_entry(&mut self, entry: &JournalEntry, row: &Row<'_>) -> rusqlite::Result<bool> {
        let index = stead_journal::index_entry(entry);
        let columns = (row.get_ref("time_ms")?.as_i64()?, row.get_ref("principal")?.as_str()?);
        if columns != (entry.time_ms, index.principal) || row.get_ref("operation")?.as_str()? != entry.operation {
            return Ok(false);
        }
        if let Some(amended) = index.amends {
            self.awaiting_amendment.remove(&amended);
            let sql = "SELECT 1 FROM entries WHERE number = ?1 AND changed = 0";
            if !self.connection.prepare_cached(sql)?.exists(params![to_sql_integer(amended)])? {
                return Ok(false);
            }
        }
        match (row.get("changed")?, index.has_changes) {
            (true, true) => self.has_index_rows(entry.number, &index),
            (false, true) => Ok(self.awaiting_amendment.insert(entry.number)),
            (is_changed, false) => Ok(!is_changed),
        }
    }

    fn has_index_rows(&mut self, number: u64, index: &JournalEntryIndex<'_>) -> rusqlite::Result<bool> {
        let row = to_sql_integer(number);
        let mut touched = self
            .connection
            .prepare_cached("SELECT 1 FROM touched WHERE path = ?1 AND number = ?2 AND version IS ?3")?;
        for (path, change) in &index.paths {
            self.versions += u64::from(change.version.is_some());
            if !touched.exists(params![
                path,
                row,
                change.version.as_ref().map(|version| version.as_bytes().as_slice())
            ])? {
                return Ok(false);
            }
        }
        if let Some(key) = index.idempotency_key {
            let sql = "SELECT number FROM keys WHERE principal = ?1 AND key = ?2";
            if query_number(self.connection, sql, params![index.principal, key])? != Some(number) {
                return Ok(false);
            }
        }
        if let Some(undone) = index.undoes {
            let sql = "SELECT 1 FROM undone WHERE number = ?1 AND by = ?2";
            return self.connection.prepare_cached(sql)?.exists(params![to_sql_integer(undone), row]);
        }
        let Some(redone) = index.redoes else { return Ok(true) };
        let sql = "SELECT 1 FROM undone WHERE number = ?1 AND by < ?2 AND redone IS NULL";
        self.connection.prepare_cached(sql)?.exists(params![to_sql_integer(redone), row]).map(|is_undone| !is_undone)
    }

    /// The number of an entry whose index rows the entries do not give, or `None` if there is none.
    pub(crate) fn finish(self) -> rusqlite::Result<Option<u64>> {
        if let Some(number) = self.awaiting_amendment.first() {
            return Ok(Some(*number));
        }
        let sql = "SELECT count(*) FROM touched WHERE version IS NOT NULL AND number > ?1";
        let versions = query_number(self.connection, sql, params![to_sql_integer(self.after)])?.unwrap_or_default();
        Ok((versions != self.versions).then_some(self.after + 1))
    }
}
