//! The rows by which queries find journal entries, written from [`stead_journal::index_entry`] alone. No hash covers
//! these rows, so the verification of the journal derives them again.

use rusqlite::{Connection, params};
use stead_journal::Digest;

use crate::store::{UnnumberedJournalEntry, execute_cached, to_sql_integer};

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
