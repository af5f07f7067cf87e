//! Leases: one holder for a path and everything around it, until the lease ends. A lease has a fencing token, which is
//! the number of the journal entry that granted it.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use super::approval;
use crate::{
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    ops::UnlockArgs,
    rows::{RowBodySelection, RowFamily, RowKey, RowSelection, RowValue, RowWrite, TypedRow},
    transaction::{ClockReading, ClockSetBack, Deadline, Transaction, TransactionDurability},
    workspace::{CommitReceipt, JournalCallRecord, Lease, LeaseAcquireOrReleaseRequest, Workspace},
};

/// A stored lease; its id is its path.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseRow {
    pub path: RelPath,
    pub holder: String,
    pub deadline: Deadline,
}

impl RowValue for LeaseRow {
    const FAMILY: RowFamily = RowFamily::Lease;

    fn owner(&self) -> &str {
        &self.holder
    }
}

impl TypedRow<LeaseRow> {
    fn is_active(&self, now: &ClockReading) -> bool {
        self.value.deadline.is_running(now, ClockSetBack::Continues)
    }

    fn to_lease(&self) -> Lease {
        let LeaseRow { path, holder, deadline } = &self.value;
        let fencing_token = self.last.map_or(0, |stamp| stamp.entry);
        Lease { path: path.clone(), holder: holder.clone(), fencing_token, ends_ms: deadline.ends_ms }
    }
}

/// The leases that overlap some paths, and the generation of all leases.
#[derive(Debug)]
pub(crate) struct LeasesAtGeneration {
    pub(crate) leases: Vec<Lease>,
    pub(crate) generation: u64,
}

impl dyn Workspace + '_ {
    /// The current leases that overlap these paths.
    pub fn leases(&self, paths: &[RelPath]) -> Result<Vec<Lease>, Error> {
        Ok(self.leases_at_generation(paths)?.leases)
    }

    pub(crate) fn leases_at_generation(&self, paths: &[RelPath]) -> Result<LeasesAtGeneration, Error> {
        let stored = self.typed_rows::<LeaseRow>(RowSelection::All, RowBodySelection::None)?;
        let now = self.now();
        let overlapping =
            |row: &&TypedRow<LeaseRow>| row.is_active(&now) && paths.iter().any(|path| row.value.path.overlaps(path));
        let leases = stored.rows.iter().filter(overlapping).map(TypedRow::to_lease).collect();
        Ok(LeasesAtGeneration { leases, generation: stored.generation })
    }

    /// Acquires or releases a lease and records the call. The request fails if another principal holds an overlapping
    /// lease.
    pub fn execute_lease_request(
        &self,
        request: &LeaseAcquireOrReleaseRequest,
        record: &JournalCallRecord<'_>,
    ) -> Result<(Lease, CommitReceipt), Error> {
        let holder = record.caller.principal.to_string();
        let (mut lease, receipt) = self.commit_recorded(record, || {
            let (now, stored) = (self.now(), self.typed_rows(RowSelection::All, RowBodySelection::None)?);
            let mut transaction = Transaction::of_rows(TransactionDurability::Now);
            transaction.expect_family(RowFamily::Lease, stored.generation);
            let (active, ended): (Vec<_>, Vec<_>) = stored.rows.into_iter().partition(|row| row.is_active(&now));
            transaction.rows.extend(ended.iter().map(|row| RowWrite::delete::<LeaseRow>(&row.id)));
            let lease = match request {
                LeaseAcquireOrReleaseRequest::Acquire { path, ends_ms } => {
                    check_acquirable(&active, path, &holder)?;
                    let deadline = Deadline::until(&now, *ends_ms);
                    let row = LeaseRow { path: path.clone(), holder: holder.clone(), deadline };
                    transaction.rows.push(RowWrite::put(RowKey::Named(path.to_string()), &row, Vec::new())?);
                    Lease { path: row.path, holder: row.holder, fencing_token: 0, ends_ms: *ends_ms }
                }
                LeaseAcquireOrReleaseRequest::Release { path } => {
                    let row = find_releasable(&active, path, &holder)?;
                    transaction.rows.push(RowWrite::delete::<LeaseRow>(&row.id));
                    row.to_lease()
                }
            };
            approval::use_approval(self, record, &mut transaction)?;
            Ok((lease, transaction))
        })?;
        if let LeaseAcquireOrReleaseRequest::Acquire { .. } = request {
            lease.fencing_token = receipt.entry;
        }
        Ok((lease, receipt))
    }
}

fn check_acquirable(active: &[TypedRow<LeaseRow>], path: &RelPath, holder: &str) -> Result<(), Error> {
    if let Some(other) = active.iter().find(|row| row.value.holder != holder && row.value.path.overlaps(path)) {
        let LeaseRow { path, holder, deadline } = &other.value;
        return Err(Error::new(ErrorKind::Locked, format!("{path} is locked by {holder}"))
            .with_next_step("wait until the lock ends, or work on another file")
            .with_holder(holder.clone())
            .with_ends_ms(deadline.ends_ms));
    }
    if active.iter().filter(|row| row.value.holder == holder).count() >= limits::LEASES_PER_PRINCIPAL_MAX {
        let step = NextStep::call(UnlockArgs { path: "PATH".to_owned() }, "release a lock that you no longer need");
        return Err(Error::new(ErrorKind::TooMany, "you hold too many locks").with_next_step(step));
    }
    Ok(())
}

fn find_releasable<'a>(
    active: &'a [TypedRow<LeaseRow>],
    path: &RelPath,
    holder: &str,
) -> Result<&'a TypedRow<LeaseRow>, Error> {
    match active.iter().find(|row| row.value.path == *path) {
        None => Err(Error::new(ErrorKind::NotFound, format!("{path} is not locked"))
            .with_next_step("continue: there is nothing to unlock")),
        Some(row) if row.value.holder != holder => {
            let locked = format!("{path} is locked by {}, so you cannot unlock it", row.value.holder);
            Err(Error::new(ErrorKind::NotOwner, locked)
                .with_next_step("wait until the lock ends, or ask its holder to unlock the path"))
        }
        Some(row) => Ok(row),
    }
}
