//! Counts the bytes and files of the workspace, for quotas. A walk over the tree counts files and bytes while no call
//! changes anything. After the walk, the transaction of every change updates the count.
//!
//! Concurrent threads and processes together never exceed a quota; without a quota nothing is counted or written. A
//! change by another program is counted by the next walk, which happens every few minutes and before a quota refuses a
//! call.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use rusqlite::{Connection, Row, params};
use stead_engine::{
    CallLockGuard, DirectoryEntry, Error, ErrorKind, FileKind, PathLockRequest, Plan, PlannedChange, Principal,
    PrincipalUsage, QuotaCharge, RequiredUsageFreshness, StorageQuotaLimits, Tree, Workspace, WorkspaceUsage,
    usage_not_counted,
};
use stead_journal::{RecordedUsage, decode_entry};
use stead_path::RelPath;

use crate::{
    entry_query,
    group_commit::TransactionError,
    open::LocalWorkspace,
    store::{execute_cached, number_at, query_number, query_optional, to_sql_integer},
};

/// The age in milliseconds at which the workspace's files and bytes are counted again.
const COUNT_AGE_MAX_MS: i64 = 5 * 60 * 1000;
/// The age in milliseconds at which a usage count that may have missed changes is repeated.
const DOUBTED_COUNT_AGE_MAX_MS: i64 = 30 * 1000;
/// The age in milliseconds at which a usage count is repeated before a quota refuses a call.
const REFUSAL_COUNT_AGE_MAX_MS: i64 = 1000;
/// A usage count is repeated only after this many times the duration of its walk, so that counting takes little time.
const COUNTING_TIME_DIVISOR: i64 = 20;
const IDLE_WAIT_MAX: Duration = Duration::from_secs(10);
/// The number of recent journal entries for which the usage before the entry is stored, for the quota check of an undo.
const REMEMBERED_CHANGES: u64 = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CountedWorkspaceUsage {
    usage: WorkspaceUsage,
    /// The number of the last journal entry that the counted usage includes.
    last_change: u64,
    counted_ms: i64,
    took_ms: i64,
    trust: UsageCountAccuracy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UsageCountAccuracy {
    Exact,
    InDoubt,
}

impl LocalWorkspace {
    /// Returns `None` if the usage of the workspace was never counted.
    pub(crate) fn usage_of(
        &self,
        principal: &Principal,
        freshness: RequiredUsageFreshness,
    ) -> Result<Option<PrincipalUsage>, Error> {
        match freshness {
            RequiredUsageFreshness::Cached => {}
            RequiredUsageFreshness::RecountIfStale => self.recount_if(|count| self.is_recount_due(count))?,
            RequiredUsageFreshness::Recount => {
                self.recount_if(|count| self.is_count_older(count, REFUSAL_COUNT_AGE_MAX_MS))?;
                self.empty_all_expired()?;
            }
        }
        let owner = principal.to_string();
        self.store.run_query(|connection| {
            let Some(count) = current_count(connection)? else { return Ok(None) };
            Ok(Some(PrincipalUsage { workspace: count.usage, trash_bytes: trash_bytes_of(connection, &owner)? }))
        })
    }

    /// If the usage count is in doubt, the next call under a quota counts the workspace again.
    pub(crate) fn mark_count_in_doubt(&self) {
        self.is_recount_needed.store(true, Ordering::Relaxed);
    }

    fn is_recount_due(&self, count: &CountedWorkspaceUsage) -> bool {
        let most = match count.trust {
            UsageCountAccuracy::Exact => COUNT_AGE_MAX_MS,
            UsageCountAccuracy::InDoubt => DOUBTED_COUNT_AGE_MAX_MS,
        };
        self.is_recount_needed.load(Ordering::Relaxed) || self.is_count_older(count, most)
    }

    fn is_count_older(&self, count: &CountedWorkspaceUsage, most_ms: i64) -> bool {
        let age_ms = self.clock.now().wall_ms.saturating_sub(count.counted_ms);
        // A negative age means that the wall clock was set back, so the age is unknown.
        age_ms < 0 || age_ms >= most_ms.max(count.took_ms.saturating_mul(COUNTING_TIME_DIVISOR))
    }

    fn recount_if(&self, is_outdated: impl Fn(&CountedWorkspaceUsage) -> bool) -> Result<(), Error> {
        let known = self.store.run_query(current_count)?;
        if known.as_ref().is_some_and(|count| !is_outdated(count)) {
            return Ok(());
        }
        let root = [PathLockRequest { path: RelPath::root() }];
        let guard: Box<dyn CallLockGuard> = match self.lock(&root, Instant::now() + IDLE_WAIT_MAX) {
            Ok(guard) => guard,
            // Calls changed files during the whole wait, so the old count is used.
            Err(error) if error.kind == ErrorKind::Busy && known.is_some() => return Ok(()),
            Err(error) => return Err(error),
        };
        // Another thread may have counted the workspace while this thread waited.
        if self.store.run_query(current_count)?.is_some_and(|count| !is_outdated(&count)) {
            return Ok(());
        }
        let started = Instant::now();
        let usage = self.measure_usage();
        let took_ms = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        let counted_ms = self.clock.now().wall_ms;
        self.write_rows(|connection| {
            // No call has changed files since the lock was taken, but external changes may have been recorded.
            let last_change = entry_query::last_change_number(connection)?;
            let trust = UsageCountAccuracy::Exact;
            store_count(connection, &CountedWorkspaceUsage { usage, last_change, counted_ms, took_ms, trust })
        })?;
        self.is_recount_needed.store(false, Ordering::Relaxed);
        drop(guard);
        Ok(())
    }

    /// The usage count leaves out the contents of unreadable directories.
    fn measure_usage(&self) -> WorkspaceUsage {
        let mut usage = WorkspaceUsage::default();
        let mut waiting = vec![RelPath::root()];
        while let Some(directory) = waiting.pop() {
            let Ok(reader) = self.entry_at(&directory).and_then(|entry| entry.open_directory()) else { continue };
            let Ok(entries) = reader.list() else { continue };
            for DirectoryEntry { name, .. } in &entries {
                let Ok(Some(node)) = reader.stat(name) else { continue };
                usage.files += 1;
                match node.kind {
                    FileKind::Directory => waiting.extend(directory.join(name)),
                    FileKind::File | FileKind::Link | FileKind::Special => {
                        usage.bytes = usage.bytes.saturating_add(node.size);
                    }
                }
            }
        }
        usage
    }

    fn empty_all_expired(&self) -> Result<(), Error> {
        while self.delete_expired_trash()? > 0 {}
        Ok(())
    }
}

pub(crate) struct CommitQuotaCharge {
    charge: QuotaCharge,
    owner: String,
    created_directories: Vec<String>,
}

impl CommitQuotaCharge {
    pub(crate) fn new(plan: &Plan, quota: StorageQuotaLimits, owner: &Principal) -> Self {
        let created = plan.changes.iter().filter_map(|change| {
            let PlannedChange::MakeDirectory { path, .. } = change else { return None };
            Some(path.to_string())
        });
        let created_directories = created.collect();
        Self { charge: QuotaCharge::for_plan(plan, quota), owner: owner.to_string(), created_directories }
    }

    /// Counts the new directories of a plan that a concurrent call has already created and counted.
    fn created_before(&self, connection: &Connection, number: u64) -> rusqlite::Result<u64> {
        let mut count = 0;
        for path in &self.created_directories {
            let sql = "SELECT bytes FROM touched JOIN entries USING (number)
                       WHERE path = ?1 AND number < ?2 AND changed = 1 ORDER BY number DESC LIMIT 1";
            let last: Option<Vec<u8>> =
                query_optional(connection, sql, params![path, to_sql_integer(number)], |row| row.get(0))?;
            count += u64::from(last.is_some_and(|entry| entry_query::only_creates(&entry, path)));
        }
        Ok(count)
    }

    /// Returns the number of the last journal entry with a change, and the usage after it.
    pub(crate) fn check_quota(&self, connection: &Connection) -> Result<(u64, RecordedUsage), TransactionError> {
        let count = current_count(connection)?.ok_or_else(usage_not_counted)?;
        let before = match self.charge.undone_entry() {
            Some(number) => stored_usage_before(connection, number)?,
            None => None,
        };
        let usage = PrincipalUsage { workspace: count.usage, trash_bytes: trash_bytes_of(connection, &self.owner)? };
        self.charge.check(&usage, before)?;
        let WorkspaceUsage { bytes, files } = count.usage;
        Ok((entry_query::last_change_number(connection)?, RecordedUsage { bytes, files }))
    }

    /// The parameter `last` is the number of the last journal entry with a change before the entry `number`.
    pub(crate) fn advance_count(&self, connection: &Connection, last: u64, number: u64) -> rusqlite::Result<()> {
        let Some(mut count) = stored_count(connection)? else { return Ok(()) };
        if count.last_change != last {
            count.trust = UsageCountAccuracy::InDoubt;
        }
        let (before, mut after) = (count.usage, self.charge.usage_after(count.usage));
        after.files = after.files.saturating_sub(self.created_before(connection, number)?);
        let growth = |after: u64, before: u64| to_sql_integer(after).saturating_sub(to_sql_integer(before));
        let values = params![
            to_sql_integer(number),
            to_sql_integer(before.bytes),
            to_sql_integer(before.files),
            growth(after.bytes, before.bytes),
            growth(after.files, before.files)
        ];
        execute_cached(connection, "INSERT OR REPLACE INTO held VALUES (?1, ?2, ?3, ?4, ?5)", values)?;
        let forgotten = params![to_sql_integer(number.saturating_sub(REMEMBERED_CHANGES))];
        execute_cached(connection, "DELETE FROM held WHERE number < ?1", forgotten)?;
        store_count(connection, &CountedWorkspaceUsage { usage: after, last_change: number, ..count })
    }
}

pub(crate) fn subtract_rolled_back_usage(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE holding SET doubted = 1,
         bytes = max(0, bytes - coalesce((SELECT more_bytes FROM held WHERE number = ?1), 0)),
         files = max(0, files - coalesce((SELECT more_files FROM held WHERE number = ?1), 0))",
        params![number],
    )?;
    execute_cached(connection, "DELETE FROM held WHERE number = ?1", params![number])
}

fn store_count(connection: &Connection, count: &CountedWorkspaceUsage) -> rusqlite::Result<()> {
    let values = params![
        to_sql_integer(count.usage.bytes),
        to_sql_integer(count.usage.files),
        to_sql_integer(count.last_change),
        count.counted_ms,
        count.took_ms,
        count.trust == UsageCountAccuracy::InDoubt
    ];
    execute_cached(connection, "INSERT OR REPLACE INTO holding VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)", values)
}

/// The usage count is in doubt after a rollback, or if the journal has a change that did not update the count.
fn current_count(connection: &Connection) -> rusqlite::Result<Option<CountedWorkspaceUsage>> {
    let Some(mut count) = stored_count(connection)? else { return Ok(None) };
    if entry_query::last_change_number(connection)? != count.last_change {
        count.trust = UsageCountAccuracy::InDoubt;
    }
    Ok(Some(count))
}

fn stored_count(connection: &Connection) -> rusqlite::Result<Option<CountedWorkspaceUsage>> {
    let sql = "SELECT bytes, files, number, counted_ms, took_ms, doubted FROM holding";
    query_optional(connection, sql, [], |row| {
        Ok(CountedWorkspaceUsage {
            usage: WorkspaceUsage { bytes: number_at(row, 0)?, files: number_at(row, 1)? },
            last_change: number_at(row, 2)?,
            counted_ms: row.get(3)?,
            took_ms: row.get(4)?,
            trust: if row.get(5)? { UsageCountAccuracy::InDoubt } else { UsageCountAccuracy::Exact },
        })
    })
}

/// For entries of older versions, only a table of recent changes has the usage before the entry.
pub(crate) fn stored_usage_before(connection: &Connection, number: u64) -> rusqlite::Result<Option<WorkspaceUsage>> {
    let read = |row: &Row<'_>| Ok(decode_entry(row.get_ref(0)?.as_blob()?).ok());
    let sql = "SELECT bytes FROM entries WHERE number = ?1";
    let entry = query_optional(connection, sql, params![to_sql_integer(number)], read)?.flatten();
    if let Some(RecordedUsage { bytes, files }) = entry.and_then(|entry| entry.details.usage_before) {
        return Ok(Some(WorkspaceUsage { bytes, files }));
    }
    let read = |row: &Row<'_>| Ok(WorkspaceUsage { bytes: number_at(row, 0)?, files: number_at(row, 1)? });
    let sql = "SELECT bytes, files FROM held WHERE number = ?1";
    query_optional(connection, sql, params![to_sql_integer(number)], read)
}

fn trash_bytes_of(connection: &Connection, owner: &str) -> rusqlite::Result<u64> {
    let sql = "SELECT coalesce(sum(size), 0) FROM trash WHERE owner = ?1 AND state = 0";
    Ok(query_number(connection, sql, params![owner])?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::TABLES;

    fn directory_change(name: &str) -> PlannedChange {
        PlannedChange::MakeDirectory { path: RelPath::from_wire(name).expect("a path"), mode: 0o755 }
    }

    fn reservation(changes: Vec<PlannedChange>) -> CommitQuotaCharge {
        CommitQuotaCharge::new(&Plan::new(changes), StorageQuotaLimits::default(), &Principal::System)
    }

    fn files(connection: &Connection) -> (u64, UsageCountAccuracy) {
        let count = current_count(connection).expect("readable").expect("counted");
        (count.usage.files, count.trust)
    }

    fn insert_entry(connection: &Connection, number: u64) {
        connection
            .execute("INSERT INTO entries VALUES (?1, x'', x'', 0, '', '', 1)", params![to_sql_integer(number)])
            .expect("an entry");
    }

    #[test]
    fn rollback_subtracts_usage_and_gaps_mark_the_count_in_doubt() {
        let connection = Connection::open_in_memory().expect("a database");
        connection.execute_batch(TABLES).expect("tables");
        let uncounted = reservation(Vec::new()).check_quota(&connection);
        let kind = ErrorKind::QuotaExceeded;
        assert!(matches!(uncounted, Err(TransactionError::Refused(error)) if error.kind == kind), "no count yet");
        let usage = WorkspaceUsage { bytes: 0, files: 7 };
        let trust = UsageCountAccuracy::Exact;
        let counted = CountedWorkspaceUsage { usage, last_change: 0, counted_ms: 0, took_ms: 0, trust };
        store_count(&connection, &counted).expect("written");
        for (number, name) in [(1, "a"), (2, "b")] {
            let last = entry_query::last_change_number(&connection).expect("readable");
            insert_entry(&connection, number);
            reservation(vec![directory_change(name)]).advance_count(&connection, last, number).expect("updated");
        }
        assert_eq!(files(&connection), (9, UsageCountAccuracy::Exact));
        assert_eq!(stored_usage_before(&connection, 2).expect("readable"), Some(WorkspaceUsage { bytes: 0, files: 8 }));
        subtract_rolled_back_usage(&connection, 1).expect("subtracted");
        assert_eq!(files(&connection), (8, UsageCountAccuracy::InDoubt));
        store_count(&connection, &CountedWorkspaceUsage { last_change: 2, ..counted }).expect("counted again");
        assert_eq!(files(&connection), (7, UsageCountAccuracy::Exact));
        insert_entry(&connection, 3);
        assert_eq!(files(&connection), (7, UsageCountAccuracy::InDoubt), "a change did not update the count");
        insert_entry(&connection, 4);
        reservation(vec![directory_change("c")]).advance_count(&connection, 3, 4).expect("updated");
        assert_eq!(files(&connection), (8, UsageCountAccuracy::InDoubt), "the count is still in doubt");
    }
}
