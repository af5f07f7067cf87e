//! Queries on the journal.

use rusqlite::{OptionalExtension, ToSql, params};
use stead_engine::{Error, ErrorKind, JournalEntryOrder, JournalEntryQuery, JournalEntrySelection, StoredJournalEntry};
use stead_path::RelPath;

use crate::{
    open::LocalWorkspace,
    store::{self, to_sql_integer},
};

const ENTRIES_PER_QUERY_MAX: usize = 10_000;

type EntryRow = (Vec<u8>, Vec<u8>);

impl LocalWorkspace {
    pub(crate) fn entry_by_number(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error> {
        let row: Option<EntryRow> = self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT bytes, hash FROM entries WHERE number = ?1")?
                .query_row(params![to_sql_integer(number)], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
        })?;
        row.map(stored_entry_from_row).transpose()
    }

    pub(crate) fn find_entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error> {
        let mut query = EntryQueryBuilder::default();
        match filter.selection {
            JournalEntrySelection::All => {}
            JournalEntrySelection::WithChanges => query.text.push_str(" AND changed = 1"),
        }
        query.push_number("number >", filter.after);
        query.push_number("number <", filter.before);
        query.push_time("time_ms >=", filter.since_ms);
        query.push_time("time_ms <=", filter.until_ms);
        query.push_text("principal =", filter.principal.as_deref());
        query.push_text("operation =", filter.operation.as_deref());
        if let Some(path) = &filter.path {
            query.path(path);
        }
        let order = match filter.order {
            JournalEntryOrder::NewestFirst => "DESC",
            JournalEntryOrder::OldestFirst => "ASC",
        };
        let limit = filter.limit.min(ENTRIES_PER_QUERY_MAX);
        let text =
            format!("SELECT bytes, hash FROM entries WHERE 1 = 1{} ORDER BY number {order} LIMIT {limit}", query.text);
        let rows: Vec<EntryRow> = self.store.run_query(|connection| {
            connection
                .prepare_cached(&text)?
                .query_map(&*query.values.iter().map(|value| &**value as &dyn ToSql).collect::<Vec<_>>(), |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })?
                .collect()
        })?;
        rows.into_iter().map(stored_entry_from_row).collect()
    }

    /// Whether a later call changed one of these paths, their parents or their children. External changes do not count,
    /// because they take no locks, nor does creating a parent directory.
    pub(crate) fn changed_after(&self, number: u64, paths: &[RelPath]) -> Result<bool, Error> {
        let outside = stead_engine::Principal::External.to_string();
        self.store.run_query(|connection| {
            let mut exact = connection.prepare_cached(
                "SELECT 1 FROM touched JOIN entries USING (number)
                 WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
            )?;
            let mut after = connection.prepare_cached(
                "SELECT bytes FROM touched JOIN entries USING (number)
                 WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
            )?;
            let mut below = connection.prepare_cached(
                "SELECT 1 FROM touched JOIN entries USING (number)
                 WHERE path >= ?1 AND path < ?2 AND number > ?3 AND changed = 1 AND principal <> ?4",
            )?;
            for path in paths {
                let wire = path.to_string();
                if below.exists(params![format!("{wire}/"), format!("{wire}0"), to_sql_integer(number), outside])? {
                    return Ok(true);
                }
                if exact.exists(params![wire, to_sql_integer(number), outside])? {
                    return Ok(true);
                }
                for above in path.ancestors().map(|above| above.to_string()) {
                    let mut rows = after.query(params![above, to_sql_integer(number), outside])?;
                    while let Some(row) = rows.next()? {
                        if !only_creates(row.get_ref(0)?.as_blob()?, &above) {
                            return Ok(true);
                        }
                    }
                }
            }
            Ok(false)
        })
    }

    /// Whether a later call removed one of these directories or a parent. A removal waits for the call that created the
    /// directory; a concurrent creation does not.
    pub(crate) fn directory_removed_after(&self, number: u64, directories: &[RelPath]) -> Result<bool, Error> {
        let outside = stead_engine::Principal::External.to_string();
        self.store.run_query(|connection| {
            let mut after = connection.prepare_cached(
                "SELECT bytes FROM touched JOIN entries USING (number)
                 WHERE path = ?1 AND number > ?2 AND changed = 1 AND principal <> ?3",
            )?;
            for directory in directories {
                for path in
                    std::iter::once(directory.to_string()).chain(directory.ancestors().map(|above| above.to_string()))
                {
                    let mut rows = after.query(params![path, to_sql_integer(number), outside])?;
                    while let Some(row) = rows.next()? {
                        if !only_creates(row.get_ref(0)?.as_blob()?, &path) {
                            return Ok(true);
                        }
                    }
                }
            }
            Ok(false)
        })
    }

    /// Whether changes at this path or below are not synced to disk yet.
    pub(crate) fn has_unsynced_changes(&self, path: &RelPath) -> Result<bool, Error> {
        let wire = path.to_string();
        self.store.run_query(|connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM touched WHERE (path = ?1 OR (path >= ?2 AND path < ?3))
                     AND number IN (SELECT number FROM pending)",
                )?
                .exists(params![wire, format!("{wire}/"), format!("{wire}0")])
        })
    }

    pub(crate) fn entry_with_key(&self, principal: &str, key: &str) -> Result<Option<u64>, Error> {
        self.store.run_query(|connection| {
            connection
                .prepare_cached("SELECT number FROM keys WHERE principal = ?1 AND key = ?2")?
                .query_row(params![principal, key], |row| row.get::<_, i64>(0))
                .optional()
                .map(|found| found.map(i64::unsigned_abs))
        })
    }
}

/// Number of the last entry with changes; zero if there is none.
pub(crate) fn last_change_number(connection: &rusqlite::Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT coalesce(max(number), 0) FROM entries WHERE changed = 1")?
        .query_row([], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
}

/// Whether the entry only created a directory at this path.
pub(crate) fn only_creates(entry: &[u8], path: &str) -> bool {
    stead_journal::decode_entry(entry).is_ok_and(|entry| {
        let there = |change: &&stead_journal::RecordedChange| change.path == path || change.to.as_deref() == Some(path);
        entry.changes.iter().filter(there).all(|change| change.kind == stead_journal::ChangeKind::MakeDir)
    })
}

/// An SQL condition under construction, with its values.
#[derive(Default)]
struct EntryQueryBuilder {
    text: String,
    values: Vec<Box<dyn ToSql>>,
}

impl EntryQueryBuilder {
    fn push(&mut self, condition: &str, value: impl ToSql + 'static) {
        self.values.push(Box::new(value));
        self.text.push_str(&format!(" AND {condition} ?{}", self.values.len()));
    }

    fn push_number(&mut self, condition: &str, value: Option<u64>) {
        if let Some(value) = value {
            self.push(condition, to_sql_integer(value));
        }
    }

    fn push_time(&mut self, condition: &str, value: Option<i64>) {
        if let Some(value) = value {
            self.push(condition, value);
        }
    }

    fn push_text(&mut self, condition: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.push(condition, value.to_owned());
        }
    }

    /// The path itself and everything below it: from `p/` up to the character after the slash.
    fn path(&mut self, path: &RelPath) {
        if path.is_root() {
            return;
        }
        let wire = path.to_string();
        self.values.push(Box::new(wire.clone()));
        let own = self.values.len();
        self.values.push(Box::new(format!("{wire}/")));
        self.values.push(Box::new(format!("{wire}0")));
        self.text.push_str(&format!(
            " AND number IN (SELECT number FROM touched WHERE path = ?{own} OR (path >= ?{} AND path < ?{}))",
            own + 1,
            own + 2
        ));
    }
}

fn stored_entry_from_row(row: EntryRow) -> Result<StoredJournalEntry, Error> {
    let malformed = || {
        Error::new(ErrorKind::CorruptHistory, "an entry in the journal cannot be read")
            .with_next_step("run stead log verify")
    };
    let entry = stead_journal::decode_entry(&row.0).map_err(|_| malformed())?;
    Ok(StoredJournalEntry { entry, hash: store::digest_from_bytes(&row.1).ok_or_else(malformed)? })
}
