//! Leases: locks that agents can see, with an end and a number that rises with every grant. A lease lasts as long as was
//! said by the clock that never jumps; setting the wall clock neither ends nor prolongs it.

use engine::{Committed, Failure, Kind, Lease, LeaseAsk, Record, limits};
use journal::Link;
use path::RelPath;
use rusqlite::{Connection, Row, params};

use crate::{
    clock::Moment,
    group::{Outcome, Work},
    open::LocalWorkspace,
    recover::overlaps,
    store::{self, Sync, sql},
};

impl LocalWorkspace {
    pub(crate) fn change_lease(
        &self,
        ask: &LeaseAsk,
        record: &Record<'_>,
    ) -> Result<(Lease, Committed), Failure> {
        let holder = record.caller.principal.to_string();
        let now = self.clock.now();
        let mut draft = self.draft(record, Vec::new(), Link::None, 0);
        let answer = std::sync::Arc::new(std::sync::Mutex::new(None));
        let filled = std::sync::Arc::clone(&answer);
        let ask = ask.clone();
        let ticket = self.ticket(record);
        let work: Work = Box::new(move |transaction, tip| {
            if let Some(failure) =
                ticket.as_ref().map(|ticket| ticket.check(transaction)).transpose()?.flatten()
            {
                return Ok(Outcome::Refused(failure));
            }
            drop_ended(transaction, &now)?;
            let lease = match judge(transaction, &ask, &holder, &now)? {
                Ok(lease) => lease,
                Err(failure) => return Ok(Outcome::Refused(failure)),
            };
            store::append(transaction, tip, &mut draft)?;
            write(transaction, &ask, &lease, &now)?;
            if let Some(ticket) = &ticket {
                ticket.consume(transaction, draft.entry.number)?;
            }
            *store::hold(&filled) = Some(lease);
            Ok(crate::commit::recorded(&draft, tip))
        });
        let outcome = self.group.submit(&self.store, self.durability, Sync::Now, work)?;
        let lease = store::hold(&answer).take();
        match (outcome, lease) {
            (Outcome::Recorded(number, hash), Some(lease)) => {
                self.announce();
                Ok((lease, Committed { number, hash, trash: Vec::new(), notices: Vec::new() }))
            }
            (Outcome::Refused(failure), _) => Err(failure),
            (Outcome::Recorded(..) | Outcome::Replayed(_), _) => {
                Err(Failure::new(Kind::AuditUnavailable, "the lease was not recorded"))
            }
        }
    }

    pub(crate) fn leases_on(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Failure> {
        let now = self.clock.now();
        let running = self.store.look(|connection| running(connection, &now))?;
        Ok(running.into_iter().filter(|lease| paths.iter().any(|path| overlaps(&lease.path, path))).collect())
    }
}

const LEASES: &str = "SELECT path, holder, fence, ends_ms, lasting_ms, taken_uptime_ms, boot
                      FROM leases LEFT JOIN lease_times USING (path) ORDER BY path";

fn running(connection: &Connection, now: &Moment) -> rusqlite::Result<Vec<Lease>> {
    let all = connection
        .prepare_cached(LEASES)?
        .query_map([], |row| Ok(is_running(row, now)?.then(|| lease(row))))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    all.into_iter().flatten().collect()
}

/// Whether a lease has not ended. Within one start of the machine the clock that never jumps decides, after another start,
/// and for leases of older versions, the wall clock.
fn is_running(row: &Row<'_>, now: &Moment) -> rusqlite::Result<bool> {
    let ends_ms: i64 = row.get(3)?;
    let boot: Option<String> = row.get(6)?;
    if boot.as_deref() != Some(now.boot.as_str()) {
        return Ok(ends_ms > now.wall_ms);
    }
    let (lasting_ms, taken_ms): (i64, i64) = (row.get(4)?, row.get(5)?);
    Ok(now.uptime_ms.saturating_sub(taken_ms) < lasting_ms)
}

fn drop_ended(connection: &Connection, now: &Moment) -> rusqlite::Result<()> {
    let ended = connection
        .prepare_cached(LEASES)?
        .query_map([], |row| Ok((!is_running(row, now)?).then(|| row.get::<_, String>(0))))?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for path in ended.into_iter().flatten() {
        drop_one(connection, &path?)?;
    }
    Ok(())
}

fn drop_one(connection: &Connection, path: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM leases WHERE path = ?1")?.execute(params![path])?;
    connection.prepare_cached("DELETE FROM lease_times WHERE path = ?1")?.execute(params![path])?;
    Ok(())
}

fn lease(row: &Row<'_>) -> rusqlite::Result<Lease> {
    let path: String = row.get(0)?;
    Ok(Lease {
        path: RelPath::from_wire(&path).map_err(|_| rusqlite::Error::InvalidQuery)?,
        holder: row.get(1)?,
        fence: row.get::<_, i64>(2)?.unsigned_abs(),
        ends_ms: row.get(3)?,
    })
}

/// Judges a lease inside the transaction, where no other grant can come between.
fn judge(
    connection: &Connection,
    ask: &LeaseAsk,
    holder: &str,
    now: &Moment,
) -> rusqlite::Result<Result<Lease, Failure>> {
    let leases = running(connection, now)?;
    match ask {
        LeaseAsk::Take { path, ends_ms } => {
            if let Some(other) =
                leases.iter().find(|lease| lease.holder != holder && overlaps(&lease.path, path))
            {
                return Ok(Err(Failure::new(
                    Kind::Locked,
                    format!("{} is held by {}", other.path, other.holder),
                )
                .hint("wait until the lease ends, or work on something else")
                .fact("holder", other.holder.clone())
                .fact("ends_ms", other.ends_ms)));
            }
            if leases.iter().filter(|lease| lease.holder == holder).count()
                >= limits::LEASES_PER_PRINCIPAL_MAX
            {
                return Ok(Err(
                    Failure::new(Kind::TooMany, "you hold too many leases").hint("unlock some first")
                ));
            }
            let fence = next_fence(connection)?;
            Ok(Ok(Lease { path: path.clone(), holder: holder.to_owned(), fence, ends_ms: *ends_ms }))
        }
        LeaseAsk::Release { path } => match leases.into_iter().find(|lease| lease.path == *path) {
            None => Ok(Err(Failure::new(Kind::NotFound, format!("there is no lease on {path}")))),
            Some(lease) if lease.holder != holder => {
                Ok(Err(Failure::new(Kind::NotOwner, format!("{path} is held by {}", lease.holder))))
            }
            Some(lease) => Ok(Ok(lease)),
        },
    }
}

fn next_fence(connection: &Connection) -> rusqlite::Result<u64> {
    connection.execute(
        "INSERT INTO meta VALUES ('fence', 1) ON CONFLICT (name) DO UPDATE SET value = value + 1",
        [],
    )?;
    connection
        .query_row("SELECT value FROM meta WHERE name = 'fence'", [], |row| row.get::<_, i64>(0))
        .map(i64::unsigned_abs)
}

fn write(connection: &Connection, ask: &LeaseAsk, lease: &Lease, now: &Moment) -> rusqlite::Result<()> {
    match ask {
        LeaseAsk::Take { .. } => {
            let path = lease.path.to_string();
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES (?1, ?2, ?3, ?4)",
                params![path, lease.holder, sql(lease.fence), lease.ends_ms],
            )?;
            connection.execute(
                "INSERT OR REPLACE INTO lease_times VALUES (?1, ?2, ?3, ?4)",
                params![path, lease.ends_ms.saturating_sub(now.wall_ms), now.uptime_ms, now.boot],
            )?;
            Ok(())
        }
        LeaseAsk::Release { path } => drop_one(connection, &path.to_string()),
    }
}
