//! Leases are locks that agents take on paths. Each lease has an expiry and a number above the numbers of all earlier
//! leases. The monotonic clock decides when a lease expires, so setting the wall clock neither ends nor prolongs a
//! lease.

use rusqlite::{Connection, Row, params};
use stead_engine::{CommitReceipt, Error, ErrorKind, JournalCallRecord, Lease, LeaseAcquireOrReleaseRequest, limits};
use stead_path::RelPath;

use crate::{
    open::LocalWorkspace,
    options::ClockReading,
    recovery::overlaps,
    store::{TransactionSyncPolicy, to_sql_integer},
};

impl LocalWorkspace {
    pub(crate) fn change_lease(
        &self,
        request: &LeaseAcquireOrReleaseRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Lease, CommitReceipt), Error> {
        let holder = record.caller.principal.to_string();
        let now = self.clock.now();
        let (draft, request) = (self.pending_entry_without_changes(record), request.clone());
        let approval = self.approval_use(record);
        self.append_with_result(draft, TransactionSyncPolicy::Now, move |transaction, append| {
            if let Some(error) = approval.check_usable(transaction)? {
                return Ok(Err(error));
            }
            delete_expired(transaction, &now)?;
            let lease = match check_lease_request(transaction, &request, &holder, &now)? {
                Ok(lease) => lease,
                Err(error) => return Ok(Err(error)),
            };
            let number = append()?;
            write_lease(transaction, &request, &lease, &now)?;
            approval.consume(transaction, number)?;
            Ok(Ok(Some(lease)))
        })
    }

    pub(crate) fn leases_overlapping(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Error> {
        let now = self.clock.now();
        let active = self.store.run_query(|connection| active_leases(connection, &now))?;
        Ok(active.into_iter().filter(|lease| paths.iter().any(|path| overlaps(&lease.path, path))).collect())
    }
}

const LEASE_COLUMNS: &str = "SELECT path, holder, fence, ends_ms, lasting_ms, taken_uptime_ms, boot
                      FROM leases LEFT JOIN lease_times USING (path) ORDER BY path";

fn active_leases(connection: &Connection, now: &ClockReading) -> rusqlite::Result<Vec<Lease>> {
    let all = connection
        .prepare_cached(LEASE_COLUMNS)?
        .query_map([], |row| Ok(is_active(row, now)?.then(|| lease_from_row(row))))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    all.into_iter().flatten().collect()
}

/// Until the machine reboots, the monotonic clock decides whether a lease is active. After a reboot, the wall clock
/// decides whether a lease is active. For leases that an older version of the server stored, the wall clock decides as
/// well.
fn is_active(row: &Row<'_>, now: &ClockReading) -> rusqlite::Result<bool> {
    let ends_ms: i64 = row.get(3)?;
    let boot: Option<String> = row.get(6)?;
    if boot.as_deref() != Some(now.boot_id.as_str()) {
        return Ok(ends_ms > now.wall_ms);
    }
    let (lasting_ms, taken_ms): (i64, i64) = (row.get(4)?, row.get(5)?);
    Ok(now.uptime_ms.saturating_sub(taken_ms) < lasting_ms)
}

fn delete_expired(connection: &Connection, now: &ClockReading) -> rusqlite::Result<()> {
    let expired = connection
        .prepare_cached(LEASE_COLUMNS)?
        .query_map([], |row| Ok((!is_active(row, now)?).then(|| row.get::<_, String>(0))))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for path in expired.into_iter().flatten() {
        delete_lease(connection, &path?)?;
    }
    Ok(())
}

fn delete_lease(connection: &Connection, path: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM leases WHERE path = ?1")?.execute(params![path])?;
    connection.prepare_cached("DELETE FROM lease_times WHERE path = ?1")?.execute(params![path])?;
    Ok(())
}

fn lease_from_row(row: &Row<'_>) -> rusqlite::Result<Lease> {
    let path: String = row.get(0)?;
    Ok(Lease {
        path: RelPath::from_wire(&path).map_err(|_| rusqlite::Error::InvalidQuery)?,
        holder: row.get(1)?,
        fencing_token: row.get::<_, i64>(2)?.unsigned_abs(),
        ends_ms: row.get(3)?,
    })
}

/// A lease request is checked inside the transaction, so that no other lease is granted between check and write.
fn check_lease_request(
    connection: &Connection,
    request: &LeaseAcquireOrReleaseRequest,
    holder: &str,
    now: &ClockReading,
) -> rusqlite::Result<Result<Lease, Error>> {
    let leases = active_leases(connection, now)?;
    match request {
        LeaseAcquireOrReleaseRequest::Acquire { path, ends_ms } => {
            if let Some(other) = leases.iter().find(|lease| lease.holder != holder && overlaps(&lease.path, path)) {
                return Ok(Err(Error::new(ErrorKind::Locked, format!("{} is locked by {}", other.path, other.holder))
                    .with_next_step("wait until the lock ends, or work on another file")
                    .with_detail("holder", other.holder.clone())
                    .with_detail("ends_ms", other.ends_ms)));
            }
            if leases.iter().filter(|lease| lease.holder == holder).count() >= limits::LEASES_PER_PRINCIPAL_MAX {
                return Ok(Err(Error::new(ErrorKind::TooMany, "you hold too many locks")
                    .with_next_step("call unlock on a path that you no longer need")));
            }
            let fence = next_fence(connection)?;
            Ok(Ok(Lease { path: path.clone(), holder: holder.to_owned(), fencing_token: fence, ends_ms: *ends_ms }))
        }
        LeaseAcquireOrReleaseRequest::Release { path } => match leases.into_iter().find(|lease| lease.path == *path) {
            None => Ok(Err(Error::new(ErrorKind::NotFound, format!("{path} is not locked"))
                .with_next_step("continue: there is nothing to unlock"))),
            Some(lease) if lease.holder != holder => Ok(Err(Error::new(
                ErrorKind::NotOwner,
                format!("{path} is locked by {}, so you cannot unlock it", lease.holder),
            )
            .with_next_step("wait until the lock ends, or ask its holder to unlock the path"))),
            Some(lease) => Ok(Ok(lease)),
        },
    }
}

fn next_fence(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .execute("INSERT INTO meta VALUES ('fence', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1", [])?;
    connection
        .query_row("SELECT value FROM meta WHERE name = 'fence'", [], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
}

fn write_lease(
    connection: &Connection,
    request: &LeaseAcquireOrReleaseRequest,
    lease: &Lease,
    now: &ClockReading,
) -> rusqlite::Result<()> {
    match request {
        LeaseAcquireOrReleaseRequest::Acquire { .. } => {
            let path = lease.path.to_string();
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?1, ?2, ?3, ?4)",
                params![path, lease.holder, to_sql_integer(lease.fencing_token), lease.ends_ms],
            )?;
            connection.execute(
                "INSERT OR REPLACE INTO lease_times VALUES (?1, ?2, ?3, ?4)",
                params![path, lease.ends_ms.saturating_sub(now.wall_ms), now.uptime_ms, now.boot_id],
            )?;
            Ok(())
        }
        LeaseAcquireOrReleaseRequest::Release { path } => delete_lease(connection, &path.to_string()),
    }
}
