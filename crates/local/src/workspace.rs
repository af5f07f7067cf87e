//! Implements the engine's `Workspace` trait for a local workspace.

use std::time::Instant;

use rusqlite::params;
use stead_engine::{
    ActivePolicy, CallLockGuard, CallerResourceLifetime, ClockReading, CommitError, CommitReceipt, Error,
    ExternalChangeListening, FilesystemTrashAndHistorySizes, HolderPresence, JournalCallRecord, JournalEntryQuery,
    JournalHead, PathLockRequest, Principal, PrincipalUsage, RequiredUsageFreshness, RowFamily, RowQuery, RowSet,
    SessionTotals, SessionTotalsQuery, StoredJournalEntry, Transaction, TrashItem, Version, Workspace, WorkspaceUsage,
};
use stead_path::RelPath;

use crate::{
    entry_query,
    open::LocalWorkspace,
    path_locks, rows,
    store::{self, lock_ignoring_poison, to_sql_integer},
    usage::stored_usage_before,
};

impl Workspace for LocalWorkspace {
    fn now(&self) -> ClockReading {
        self.clock.now()
    }

    fn lock(&self, requests: &[PathLockRequest], deadline: Instant) -> Result<Box<dyn CallLockGuard>, Error> {
        self.store.ensure_writable()?;
        let paths: Vec<RelPath> = requests.iter().map(|request| request.path.clone()).collect();
        loop {
            let guard = self.locks.lock(path_locks::path_slots(&paths), deadline)?;
            let unfinished = self.unfinished_near(&paths)?;
            if unfinished.is_empty() {
                return Ok(Box::new(guard));
            }
            // An unfinished entry may concern more paths than `paths`, so all paths of the entry are locked to finish
            // it.
            drop(guard);
            self.finish_entries(&unfinished, deadline)?;
        }
    }

    fn commit_transaction(
        &self,
        transaction: &Transaction<'_>,
        record: Option<&JournalCallRecord<'_>>,
    ) -> Result<Option<CommitReceipt>, CommitError> {
        match (transaction.files, record) {
            (Some(plan), Some(record)) => self.commit_files(plan, transaction, record).map(Some),
            (None, _) | (_, None) => self.commit_rows(transaction, record),
        }
    }

    fn rows(&self, query: &RowQuery) -> Result<RowSet, Error> {
        self.store.run_query(|connection| rows::load_rows(connection, query))
    }

    fn wait_for_rows(&self, family: RowFamily, generation: u64, deadline: Instant) -> Result<(), Error> {
        let announced = *lock_ignoring_poison(&self.new_entries.0);
        if self.store.run_query(|connection| rows::load_generation(connection, family))? == generation {
            let count = lock_ignoring_poison(&self.new_entries.0);
            let left = deadline.saturating_duration_since(Instant::now());
            drop(self.new_entries.1.wait_timeout_while(count, left, |count| *count == announced));
        }
        Ok(())
    }

    fn hold_presence(&self, lifetime: &CallerResourceLifetime) -> Result<String, Error> {
        self.liveness.register(lifetime)
    }

    fn presence(&self, holder: &str) -> Result<HolderPresence, Error> {
        self.liveness.presence_of(holder)
    }

    fn listen_for_external_changes(&self, request: ExternalChangeListening) -> Result<(), Error> {
        match request {
            ExternalChangeListening::Start => self.start_listening(),
            ExternalChangeListening::IfAlreadyWatched => self.listen_if_watched(),
            ExternalChangeListening::Reconsider => {
                self.wake_recorder();
                Ok(())
            }
        }
    }

    fn head(&self) -> Result<JournalHead, Error> {
        self.flush_if_possible();
        let tip = self.store.run_query(|connection| store::load_tip(connection, &self.store.origin))?;
        Ok(JournalHead { number: tip.number, hash: tip.hash })
    }

    fn entry(&self, number: u64) -> Result<Option<StoredJournalEntry>, Error> {
        let sql = "SELECT bytes, hash FROM entries WHERE number = ?1";
        let values = params![to_sql_integer(number)];
        let row = self.store.query_optional(sql, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
        row.map(entry_query::stored_entry_from_row).transpose()
    }

    fn entries(&self, filter: &JournalEntryQuery) -> Result<Vec<StoredJournalEntry>, Error> {
        self.find_entries(filter)
    }

    fn wait_for_entry_after(&self, number: u64, deadline: Instant) -> Result<(), Error> {
        self.wait_for_new_entry(number, deadline)
    }

    fn change_counter(&self) -> Result<u64, Error> {
        self.announcement_count()
    }

    fn entry_of_version(&self, path: &RelPath, version: &Version) -> Result<Option<u64>, Error> {
        let sql = "SELECT number FROM touched WHERE path = ?1 AND version = ?2 ORDER BY number DESC LIMIT 1";
        self.store.query_number(sql, params![path.to_wire(), version.0.as_bytes().as_slice()])
    }

    fn entry_for_idempotency_key(&self, principal: &Principal, key: &str) -> Result<Option<u64>, Error> {
        self.store.run_query(|connection| entry_query::entry_with_key(connection, &principal.to_string(), key))
    }

    fn retained_bytes(&self, version: &Version) -> Result<Option<Vec<u8>>, Error> {
        self.load_retained_bytes(version)
    }

    fn trash_item(&self, id: &str) -> Result<Option<TrashItem>, Error> {
        self.load_trash_item(id)
    }

    fn trash(&self, owner: Option<&Principal>) -> Result<Vec<TrashItem>, Error> {
        self.trash_items(owner)
    }

    fn active_policy(&self) -> Result<ActivePolicy, Error> {
        self.current_policy()
    }

    fn undone_by(&self, number: u64) -> Result<Option<u64>, Error> {
        // An entry whose undo was itself undone does not count as undone.
        let sql = "SELECT by FROM undone WHERE number = ?1 AND redone IS NULL";
        self.store.query_number(sql, params![to_sql_integer(number)])
    }

    fn session_totals(&self, query: &SessionTotalsQuery<'_>) -> Result<SessionTotals, Error> {
        self.count_session(query)
    }

    fn storage_usage(&self) -> Result<FilesystemTrashAndHistorySizes, Error> {
        self.measure_storage()
    }

    fn principal_usage(
        &self,
        principal: &Principal,
        freshness: RequiredUsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error> {
        self.usage_of(principal, freshness)
    }

    fn usage_before_entry(&self, number: u64) -> Result<Option<WorkspaceUsage>, Error> {
        self.store.run_query(|connection| stored_usage_before(connection, number))
    }

    fn history_bytes(&self, principal: &Principal) -> Result<u64, Error> {
        self.history_bytes_of(principal)
    }
}
