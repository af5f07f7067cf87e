//! Leases are locks that agents take on paths. Each lease has an expiry and a number above the numbers of all earlier
//! leases. The monotonic clock decides when a lease expires, so setting the wall clock neither ends nor prolongs a
//! lease.

use rusqlite::{Connection, Row, params};
use stead_engine::{
    CommitReceipt, Error, ErrorKind, JournalCallRecord, Lease, LeaseAcquireOrReleaseRequest, NextStep, limits,
    ops::UnlockArgs,
};

use crate::{
    group_commit::TransactionError,
    open::LocalWorkspace,
    options::ClockReading,
    recovery::overlaps,
    store::{TransactionSyncPolicy, execute_cached, number_at, path_at, query_rows, to_sql_integer},
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
            approval.check_usable(transaction)?;
            delete_expired(transaction, &now)?;
            let lease = check_lease_request(transaction, &request, &holder, &now)?;
            let number = append()?;
            write_lease(transaction, &request, &lease, &now)?;
            approval.consume(transaction, number)?;
            Ok(Some(lease))
        })
    }
}

const LEASE_COLUMNS: &str = "SELECT path, holder, fence, ends_ms, lasting_ms, taken_uptime_ms, boot
                      FROM leases LEFT JOIN lease_times USING (path) ORDER BY path";

pub(crate) fn active_leases(connection: &Connection, now: &ClockReading) -> rusqlite::Result<Vec<Lease>> {
    let read = |row: &Row<'_>| Ok(is_active(row, now)?.then(|| lease_from_row(row)));
    query_rows(connection, LEASE_COLUMNS, [], read)?.into_iter().flatten().collect()
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
    let read = |row: &Row<'_>| Ok((!is_active(row, now)?).then(|| row.get::<_, String>(0)));
    let expired = query_rows(connection, LEASE_COLUMNS, [], read)?;
    expired.into_iter().flatten().try_for_each(|path| delete_lease(connection, &path?))
}

fn delete_lease(connection: &Connection, path: &str) -> rusqlite::Result<()> {
    execute_cached(connection, "DELETE FROM leases WHERE path = ?1", params![path])?;
    execute_cached(connection, "DELETE FROM lease_times WHERE path = ?1", params![path])
}

fn lease_from_row(row: &Row<'_>) -> rusqlite::Result<Lease> {
    Ok(Lease { path: path_at(row, 0)?, holder: row.get(1)?, fencing_token: number_at(row, 2)?, ends_ms: row.get(3)? })
}

/// A lease request is checked inside the transaction, so that no other lease is granted between check and write.
fn check_lease_request(
    connection: &Connection,
    request: &LeaseAcquireOrReleaseRequest,
    holder: &str,
    now: &ClockReading,
) -> Result<Lease, TransactionError> {
    let leases = active_leases(connection, now)?;
    let refused = match request {
        LeaseAcquireOrReleaseRequest::Acquire { path, ends_ms } => {
            if let Some(other) = leases.iter().find(|lease| lease.holder != holder && overlaps(&lease.path, path)) {
                Error::new(ErrorKind::Locked, format!("{} is locked by {}", other.path, other.holder))
                    .with_next_step("wait until the lock ends, or work on another file")
                    .with_holder(other.holder.clone())
                    .with_ends_ms(other.ends_ms)
            } else if leases.iter().filter(|lease| lease.holder == holder).count() >= limits::LEASES_PER_PRINCIPAL_MAX {
                Error::new(ErrorKind::TooMany, "you hold too many locks").with_next_step(NextStep::call(
                    UnlockArgs { path: "PATH".to_owned() },
                    "release a lock that you no longer need",
                ))
            } else {
                let (holder, fencing_token) = (holder.to_owned(), next_fence(connection)?);
                return Ok(Lease { path: path.clone(), holder, fencing_token, ends_ms: *ends_ms });
            }
        }
        LeaseAcquireOrReleaseRequest::Release { path } => match leases.into_iter().find(|lease| lease.path == *path) {
            None => Error::new(ErrorKind::NotFound, format!("{path} is not locked"))
                .with_next_step("continue: there is nothing to unlock"),
            Some(lease) if lease.holder != holder => {
                let locked = format!("{path} is locked by {}, so you cannot unlock it", lease.holder);
                Error::new(ErrorKind::NotOwner, locked)
                    .with_next_step("wait until the lock ends, or ask its holder to unlock the path")
            }
            Some(lease) => return Ok(lease),
        },
    };
    Err(refused.into())
}

fn next_fence(connection: &Connection) -> rusqlite::Result<u64> {
    let sql = "INSERT INTO meta VALUES ('fence', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value";
    connection.query_row(sql, [], |row| number_at(row, 0))
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
            let values = params![path, lease.holder, to_sql_integer(lease.fencing_token), lease.ends_ms];
            execute_cached(connection, "INSERT OR REPLACE INTO leases VALUES (?1, ?2, ?3, ?4)", values)?;
            let values = params![path, lease.ends_ms.saturating_sub(now.wall_ms), now.uptime_ms, now.boot_id];
            execute_cached(connection, "INSERT OR REPLACE INTO lease_times VALUES (?1, ?2, ?3, ?4)", values)
        }
        LeaseAcquireOrReleaseRequest::Release { path } => delete_lease(connection, &path.to_string()),
    }
}
