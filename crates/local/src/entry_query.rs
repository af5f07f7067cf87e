//! Queries the entries of the journal.

use rusqlite::{Connection, ToSql, params};
use stead_engine::{
    Error, ErrorKind, JournalEntryOrder, JournalEntryQuery, JournalNoChangeEntryFilter, NextStep, Principal,
    StoredJournalEntry,
};
use stead_journal::{ChangeKind, RecordedChange};
use stead_path::RelPath;

use crate::{
    limits::ENTRIES_PER_QUERY_MAX,
    open::LocalWorkspace,
    store::{self, query_number, to_sql_integer},
};

impl LocalWorkspace {
    pub(crate) fn find_entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error> {
        let mut query = JournalEntryQueryBuilder::default();
        match filter.selection {
            JournalNoChangeEntryFilter::All => {}
            JournalNoChangeEntryFilter::WithChanges => query.text.push_str(" AND changed = 1"),
        }
        query.push("number >", filter.after.map(to_sql_integer));
        query.push("number <", filter.before.map(to_sql_integer));
        query.push("time_ms >=", filter.since_ms);
        query.push("time_ms <=", filter.until_ms);
        query.push("principal =", filter.principal.clone());
        query.push("operation =", filter.operation.clone());
        if let Some(path) = &filter.path {
            query.push_path(path);
        }
        let order = match filter.order {
            JournalEntryOrder::NewestFirst => "DESC",
            JournalEntryOrder::OldestFirst => "ASC",
        };
        let limit = filter.limit.min(ENTRIES_PER_QUERY_MAX);
        let text =
            format!("SELECT bytes, hash FROM entries WHERE 1 = 1{} ORDER BY number {order} LIMIT {limit}", query.text);
        let values = rusqlite::params_from_iter(query.values);
        let rows = self.store.query_rows(&text, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.into_iter().map(stored_entry_from_row).collect()
    }

    /// Whether a call after the journal entry `number` changed one of the paths, or a path above or below one of them.
    /// A call that only creates a directory above a path does not count as a change of the path. Changes by other
    /// programs are ignored, because other programs take no path locks.
    pub(crate) fn changed_after(&self, number: u64, paths: &[RelPath]) -> Result<bool, Error> {
        let external = Principal::External.to_string();
        self.store.run_query(|connection| {
            let mut exact = connection.prepare_cached(
                "SELECT 1 FROM touched JOIN entries USING (number)
                 WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
            )?;
            let mut below = connection.prepare_cached(
                "SELECT 1 FROM touched JOIN entries USING (number)
                 WHERE path >= ?1 AND path < ?2 AND number > ?3 AND changed = 1 AND principal <> ?4",
            )?;
            for path in paths {
                let wire = path.to_string();
                if below.exists(params![format!("{wire}/"), format!("{wire}0"), to_sql_integer(number), external])?
                    || exact.exists(params![wire, to_sql_integer(number), external])?
                {
                    return Ok(true);
                }
                if any_moved_or_removed_after(connection, number, path.ancestors())? {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// Whether a call after the journal entry `number` moved or removed one of `directories` or a directory above one
    /// of them.
    pub(crate) fn directory_removed_after(&self, number: u64, directories: &[RelPath]) -> Result<bool, Error> {
        self.store.run_query(|connection| {
            let above = directories.iter().flat_map(RelPath::ancestors);
            any_moved_or_removed_after(connection, number, directories.iter().cloned().chain(above))
        })
    }

    pub(crate) fn has_unsynced_changes(&self, path: &RelPath) -> Result<bool, Error> {
        let wire = path.to_string();
        let sql = "SELECT 1 FROM touched WHERE (path = ?1 OR (path >= ?2 AND path < ?3))
                   AND number IN (SELECT number FROM pending)";
        self.store.has_row(sql, params![wire, format!("{wire}/"), format!("{wire}0")])
    }
}

fn any_moved_or_removed_after(
    connection: &Connection,
    number: u64,
    directories: impl Iterator<Item = RelPath>,
) -> rusqlite::Result<bool> {
    let external = Principal::External.to_string();
    let mut after = connection.prepare_cached(
        "SELECT bytes FROM touched JOIN entries USING (number)
         WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
    )?;
    for path in directories.map(|directory| directory.to_string()) {
        let mut rows = after.query(params![path, to_sql_integer(number), external])?;
        while let Some(row) = rows.next()? {
            if !only_creates(row.get_ref(0)?.as_blob()?, &path) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

pub(crate) fn entry_with_key(connection: &Connection, principal: &str, key: &str) -> rusqlite::Result<Option<u64>> {
    query_number(connection, "SELECT number FROM keys WHERE principal = ?1 AND key = ?2", params![principal, key])
}

pub(crate) fn last_change_number(connection: &Connection) -> rusqlite::Result<u64> {
    let number = query_number(connection, "SELECT coalesce(max(number), 0) FROM entries WHERE changed = 1", [])?;
    Ok(number.unwrap_or_default())
}

/// Whether a journal entry changes a path only by creating a directory at the path.
pub(crate) fn only_creates(entry: &[u8], path: &str) -> bool {
    stead_journal::decode_entry(entry).is_ok_and(|entry| {
        let at_path = |change: &&RecordedChange| change.path == path || change.to.as_deref() == Some(path);
        entry.changes.iter().filter(at_path).all(|change| change.kind == ChangeKind::MakeDir)
    })
}

#[derive(Default)]
struct JournalEntryQueryBuilder {
    text: String,
    values: Vec<Box<dyn ToSql>>,
}

impl JournalEntryQueryBuilder {
    fn push(&mut self, condition: &str, value: Option<impl ToSql + 'static>) {
        if let Some(value) = value {
            self.values.push(Box::new(value));
            self.text.push_str(&format!(" AND {condition} ?{}", self.values.len()));
        }
    }

    /// In byte order, the paths below `p` are those from `p/` (included) to `p0` (excluded), because `0` is the
    /// character after the slash.
    fn push_path(&mut self, path: &RelPath) {
        if path.is_root() {
            return;
        }
        let (wire, first) = (path.to_string(), self.values.len() + 1);
        self.text.push_str(&format!(
            " AND number IN (SELECT number FROM touched WHERE path = ?{first} OR (path >= ?{} AND path < ?{}))",
            first + 1,
            first + 2
        ));
        for suffix in ["", "/", "0"] {
            self.values.push(Box::new(format!("{wire}{suffix}")));
        }
    }
}

pub(crate) fn stored_entry_from_row((bytes, hash): (Vec<u8>, Vec<u8>)) -> Result<StoredJournalEntry, Error> {
    let malformed = || {
        Error::new(ErrorKind::CorruptHistory, "an entry in the journal cannot be read")
            .with_next_step(NextStep::person_command("log verify", "check the journal"))
    };
    let entry = stead_journal::decode_entry(&bytes).map_err(|_| malformed())?;
    Ok(StoredJournalEntry { entry, hash: store::digest_from_bytes(&hash).ok_or_else(malformed)? })
}
