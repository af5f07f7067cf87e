//! The totals of a session, counted from the journal, and the storage that the workspace uses.

use std::collections::{HashMap, VecDeque};

use rusqlite::{Connection, Row, params};
use stead_engine::{Error, FilesystemTrashAndHistorySizes, SessionTotals, SessionTotalsQuery};
use stead_path::RelPath;

use crate::{
    errors,
    open::LocalWorkspace,
    store::{lock_ignoring_poison, number_at, to_sql_integer},
};

impl LocalWorkspace {
    pub(crate) fn count_session(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error> {
        self.flush_if_possible();
        let key = (query.principal.to_string(), query.session.to_owned(), query.from_entry);
        let cached = lock_ignoring_poison(&self.session_counts).cached_counts(&key);
        let updated = self.store.run_query(|connection| update_counts(connection, query, cached))?;
        lock_ignoring_poison(&self.session_counts).insert_counts(key, updated);
        Ok(updated.counts)
    }

    pub(crate) fn measure_storage(&self) -> Result<FilesystemTrashAndHistorySizes, Error> {
        let space = self.root.disk_space().map_err(errors::at_path(&RelPath::root()))?;
        let sql = "SELECT (SELECT COUNT(*) FROM trash WHERE state = 0),
                   (SELECT COALESCE(SUM(size), 0) FROM trash WHERE state = 0),
                   (SELECT COALESCE(SUM(size), 0) FROM kept)";
        let read = |row: &Row<'_>| Ok((number_at(row, 0)?, number_at(row, 1)?, number_at(row, 2)?));
        let (trash_items, trash_bytes, history_bytes) =
            self.store.run_query(|connection| connection.prepare_cached(sql)?.query_row([], read))?;
        Ok(FilesystemTrashAndHistorySizes {
            total_bytes: space.total_bytes,
            free_bytes: space.free_bytes,
            trash_items,
            trash_bytes,
            history_bytes,
            history_bytes_max: self.retained_bytes_max,
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CachedSessionCounts {
    counts: SessionTotals,
    up_to_entry: u64,
}

type SessionCountsKey = (String, String, u64);

const CACHED_COUNTS_MAX: usize = 256;

/// A repeated query for session totals reads only new entries; the oldest cached totals are evicted first.
#[derive(Default)]
pub(crate) struct SessionCountsCache {
    cached: HashMap<SessionCountsKey, CachedSessionCounts>,
    order: VecDeque<SessionCountsKey>,
}

impl SessionCountsCache {
    fn cached_counts(&self, key: &SessionCountsKey) -> CachedSessionCounts {
        self.cached.get(key).copied().unwrap_or_default()
    }

    fn insert_counts(&mut self, key: SessionCountsKey, counts: CachedSessionCounts) {
        if self.cached.insert(key.clone(), counts).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > CACHED_COUNTS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.cached.remove(&oldest);
        }
    }
}

fn update_counts(
    connection: &Connection,
    query: &SessionTotalsQuery<'_>,
    mut cached: CachedSessionCounts,
) -> rusqlite::Result<CachedSessionCounts> {
    let mut statement = connection.prepare_cached(
        "SELECT number, bytes, principal FROM entries WHERE number >= ?1 AND number > ?2 ORDER BY number",
    )?;
    let mut rows = statement.query(params![to_sql_integer(query.from_entry), to_sql_integer(cached.up_to_entry)])?;
    let principal = query.principal.to_string();
    while let Some(row) = rows.next()? {
        cached.up_to_entry = number_at(row, 0)?;
        if row.get_ref(2)?.as_str()? != principal {
            continue;
        }
        if let Ok(entry) = stead_journal::decode_entry(row.get_ref(1)?.as_blob()?)
            && entry.caller.session == query.session
        {
            cached.counts.add_entry(&entry);
        }
    }
    Ok(cached)
}
