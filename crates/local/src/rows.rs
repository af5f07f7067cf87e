//! The rows of a workspace in SQLite: one table for all families, so that a new kind of row changes no SQL.

use rusqlite::{Connection, Row, ToSql, params, types::ValueRef};
use stead_engine::{
    ClockReading, Error, Expectation, FailedExpectation, RowBody, RowBodySelection, RowChange, RowFamily, RowQuery,
    RowSelection, RowSet, RowStamp, RowWrite, StoredRow, compensation_owner, keep_compensation, kept_compensation,
};

use crate::{
    group_commit::TransactionError,
    store::{execute_cached, number_at, query_number, query_rows, to_sql_integer},
};

/// The generation and the rows are read by one statement, so that they belong together. Without rows, the statement
/// returns the generation with an empty row.
const ROW_QUERY: &str = "SELECT families.generation, id, owner, subject, revision, first_entry, first_ms, last_entry,
        last_ms, value
    FROM (SELECT ?1 AS family) AS asked LEFT JOIN row_families AS families USING (family)
        LEFT JOIN state_rows AS stored ON stored.family = asked.family";

pub(crate) fn load_rows(connection: &Connection, query: &RowQuery) -> rusqlite::Result<RowSet> {
    let family = query.family.as_str();
    let (condition, values): (&str, Vec<&dyn ToSql>) = match &query.selection {
        RowSelection::All => ("", vec![&family]),
        RowSelection::Id(id) => ("AND id = ?2", vec![&family, id]),
        RowSelection::Owner(owner) => ("AND owner = ?2", vec![&family, owner]),
        RowSelection::OwnerAndSubject(owner, subject) => {
            ("AND owner = ?2 AND subject = ?3", vec![&family, owner, subject])
        }
    };
    let mut generation = 0;
    let found =
        query_rows(connection, &format!("{ROW_QUERY} {condition} ORDER BY position"), values.as_slice(), |row| {
            generation = row.get::<_, Option<i64>>(0)?.unwrap_or(0).unsigned_abs();
            let has_row = row.get_ref(1)? != ValueRef::Null;
            if has_row { row_from_sql(row).map(Some) } else { Ok(None) }
        })?;
    let mut rows: Vec<StoredRow> = found.into_iter().flatten().collect();
    if query.bodies == RowBodySelection::All {
        for row in &mut rows {
            let sql = "SELECT slot, bytes FROM row_bodies WHERE family = ?1 AND id = ?2 ORDER BY slot";
            row.bodies = query_rows(connection, sql, params![family, row.id], |body| {
                Ok(RowBody { slot: body.get(0)?, bytes: body.get(1)? })
            })?;
        }
    }
    Ok(RowSet { generation, rows })
}

fn row_from_sql(row: &Row<'_>) -> rusqlite::Result<StoredRow> {
    let stamp = |entry: usize| -> rusqlite::Result<Option<RowStamp>> {
        let number: Option<i64> = row.get(entry)?;
        let time_ms: Option<i64> = row.get(entry + 1)?;
        Ok(number.zip(time_ms).map(|(number, time_ms)| RowStamp { entry: number.unsigned_abs(), time_ms }))
    };
    Ok(StoredRow {
        id: row.get(1)?,
        owner: row.get(2)?,
        subject: row.get(3)?,
        revision: number_at(row, 4)?,
        first: stamp(5)?,
        last: stamp(7)?,
        value: row.get(9)?,
        bodies: Vec::new(),
    })
}

pub(crate) fn load_generation(connection: &Connection, family: RowFamily) -> rusqlite::Result<u64> {
    let sql = "SELECT generation FROM row_families WHERE family = ?1";
    Ok(query_number(connection, sql, params![family.as_str()])?.unwrap_or(0))
}

/// The first expectation that does not hold.
pub(crate) fn find_failed_expectation(
    connection: &Connection,
    expect: &[Expectation],
    now: &ClockReading,
) -> rusqlite::Result<Option<FailedExpectation>> {
    for expectation in expect {
        let failed = match expectation {
            Expectation::Family { family, generation } => {
                (load_generation(connection, *family)? != *generation).then_some(FailedExpectation::Family(*family))
            }
            Expectation::Row { family, id, revision } => {
                let sql = "SELECT revision FROM state_rows WHERE family = ?1 AND id = ?2";
                let found = query_number(connection, sql, params![family.as_str(), id])?.unwrap_or(0);
                (found != *revision).then(|| FailedExpectation::Row(*family, id.clone()))
            }
            Expectation::Running(deadline, set_back) => {
                (!deadline.is_running(now, *set_back)).then_some(FailedExpectation::Running)
            }
        };
        if failed.is_some() {
            return Ok(failed);
        }
    }
    Ok(None)
}

/// Writes rows in the transaction of the entry `stamp`; `None` means that the transaction has no entry.
pub(crate) fn write_rows(
    connection: &Connection,
    writes: &[RowWrite],
    stamp: Option<RowStamp>,
) -> rusqlite::Result<()> {
    for write in writes {
        let family = write.family.as_str();
        let sql = "INSERT INTO row_families VALUES (?1, 1)
                   ON CONFLICT (family) DO UPDATE SET generation = generation + 1 RETURNING generation";
        let revision = query_number(connection, sql, params![family])?.map(to_sql_integer);
        let id = write.key.id(stamp.map_or(0, |stamp| stamp.entry));
        match &write.change {
            RowChange::Delete => {
                execute_cached(
                    connection,
                    "DELETE FROM state_rows WHERE family = ?1 AND id = ?2",
                    params![family, id],
                )?;
                execute_cached(
                    connection,
                    "DELETE FROM row_bodies WHERE family = ?1 AND id = ?2",
                    params![family, id],
                )?;
            }
            RowChange::Put { owner, subject, value, bodies } => {
                let sql = "INSERT INTO state_rows (family, id, owner, subject, revision, value,
                               first_entry, first_ms, last_entry, last_ms) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?7, ?8)
                           ON CONFLICT (family, id) DO UPDATE SET owner = ?3, subject = ?4, revision = ?5, value = ?6,
                               first_entry = coalesce(first_entry, ?7), first_ms = coalesce(first_ms, ?8),
                               last_entry = coalesce(?7, last_entry), last_ms = coalesce(?8, last_ms)";
                let (entry, time_ms) = stamp.map(|stamp| (to_sql_integer(stamp.entry), stamp.time_ms)).unzip();
                let values = params![family, id, owner, subject, revision, value, entry, time_ms];
                execute_cached(connection, sql, values)?;
                for RowBody { slot, bytes } in bodies {
                    let sql = "INSERT OR REPLACE INTO row_bodies VALUES (?1, ?2, ?3, ?4)";
                    execute_cached(connection, sql, params![family, id, slot, bytes])?;
                }
            }
        }
    }
    Ok(())
}

/// Compensation is written after the journal entry, so its errors must end the whole transaction. A refusal would end
/// only the request and leave the entry.
fn abort_transaction(error: Error) -> TransactionError {
    TransactionError::Database(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Keeps the writes that take back the rows of an entry until the files of the entry are changed.
pub(crate) fn write_compensation(
    connection: &Connection,
    entry: u64,
    compensation: Vec<RowWrite>,
) -> Result<(), TransactionError> {
    let kept = keep_compensation(entry, compensation).map_err(abort_transaction)?;
    Ok(write_rows(connection, &kept, None)?)
}

fn kept_rows(connection: &Connection, entry: u64) -> rusqlite::Result<Vec<StoredRow>> {
    let (family, selection) = (RowFamily::Compensation, RowSelection::Owner(compensation_owner(entry)));
    Ok(load_rows(connection, &RowQuery { family, selection, bodies: RowBodySelection::All })?.rows)
}

pub(crate) fn delete_compensation(connection: &Connection, entry: u64) -> rusqlite::Result<()> {
    for row in kept_rows(connection, entry)? {
        let sql = "DELETE FROM state_rows WHERE family = ?1 AND id = ?2";
        execute_cached(connection, sql, params![RowFamily::Compensation.as_str(), row.id])?;
        let sql = "DELETE FROM row_bodies WHERE family = ?1 AND id = ?2";
        execute_cached(connection, sql, params![RowFamily::Compensation.as_str(), row.id])?;
    }
    Ok(())
}

/// Takes back the rows of an entry, except those that a later entry has written.
pub(crate) fn take_back_rows(connection: &Connection, entry: u64, stamp: RowStamp) -> Result<(), TransactionError> {
    for row in kept_rows(connection, entry)? {
        let write = kept_compensation(row).map_err(abort_transaction)?;
        let sql = "SELECT last_entry FROM state_rows WHERE family = ?1 AND id = ?2";
        if query_number(connection, sql, params![write.family.as_str(), write.key.id(0)])? == Some(entry) {
            write_rows(connection, &[write], Some(stamp))?;
        }
    }
    Ok(delete_compensation(connection, entry)?)
}

#[cfg(test)]
mod tests {
    use stead_engine::RowKey;

    use super::*;

    fn put(value: &str) -> RowWrite {
        let bodies = vec![RowBody { slot: "text".to_owned(), bytes: value.as_bytes().to_vec() }];
        let (owner, subject) = ("user:ann".to_owned(), String::new());
        let change = RowChange::Put { owner, subject, value: format!("\"{value}\""), bodies };
        RowWrite { family: RowFamily::Buffer, key: RowKey::Named("b1".to_owned()), change }
    }

    fn stamp(entry: u64) -> RowStamp {
        RowStamp { entry, time_ms: 0 }
    }

    fn stored(connection: &Connection) -> (String, u64, Vec<u8>) {
        let selection = RowSelection::Id("b1".to_owned());
        let query = RowQuery { family: RowFamily::Buffer, selection, bodies: RowBodySelection::All };
        let row = load_rows(connection, &query).unwrap().rows.pop().unwrap();
        (row.value, row.last.unwrap().entry, row.bodies.into_iter().next().unwrap().bytes)
    }

    #[test]
    fn rollback_takes_back_rows_that_no_later_entry_wrote() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(crate::store::TABLES).unwrap();
        let change = |entry: u64, value: &str| write_rows(&connection, &[put(value)], Some(stamp(entry))).unwrap();
        change(1, "typed");
        change(2, "typed by both");
        write_compensation(&connection, 2, vec![put("typed")]).unwrap();
        take_back_rows(&connection, 2, stamp(3)).unwrap();
        assert_eq!(stored(&connection), ("\"typed\"".to_owned(), 3, b"typed".to_vec()));
        change(4, "again");
        write_compensation(&connection, 4, vec![put("typed")]).unwrap();
        change(5, "again and more");
        take_back_rows(&connection, 4, stamp(6)).unwrap();
        assert_eq!(stored(&connection), ("\"again and more\"".to_owned(), 5, b"again and more".to_vec()));
        for entry in [2, 4] {
            assert_eq!(kept_rows(&connection, entry).unwrap(), Vec::new(), "no compensation of r{entry} is left");
        }
    }
}
