//! The leases of the memory workspace. Nobody else can lease a leased path, its parents or its children.

use stead_engine::{Error, ErrorKind, Lease, LeaseAcquireOrReleaseRequest, limits};
use stead_path::RelPath;

use super::MemoryWorkspaceState;

pub(super) fn running_leases(state: &MemoryWorkspaceState) -> impl Iterator<Item = &Lease> {
    state.leases.iter().filter(|lease| lease.ends_ms > state.now_ms)
}

pub(super) fn is_overlapping(one: &RelPath, other: &RelPath) -> bool {
    one.is_within(other) || other.is_within(one)
}

pub(super) fn check_lease(
    state: &MemoryWorkspaceState,
    ask: &LeaseAcquireOrReleaseRequest,
    holder: &str,
) -> Result<Lease, Error> {
    match ask {
        LeaseAcquireOrReleaseRequest::Acquire { path, ends_ms } => {
            if let Some(other) =
                running_leases(state).find(|lease| lease.holder != holder && is_overlapping(&lease.path, path))
            {
                let detail = format!("{} is held by {}", other.path, other.holder);
                return Err(Error::new(ErrorKind::Locked, detail).with_holder(other.holder.clone()));
            }
            if running_leases(state).filter(|lease| lease.holder == holder).count() >= limits::LEASES_PER_PRINCIPAL_MAX
            {
                return Err(Error::new(ErrorKind::TooMany, "you hold too many leases"));
            }
            Ok(Lease {
                path: path.clone(),
                holder: holder.to_owned(),
                fencing_token: state.last_fencing_number + 1,
                ends_ms: *ends_ms,
            })
        }
        LeaseAcquireOrReleaseRequest::Release { path } => match running_leases(state).find(|lease| lease.path == *path)
        {
            None => Err(Error::new(ErrorKind::NotFound, format!("there is no lease on {path}"))),
            Some(lease) if lease.holder != holder => {
                Err(Error::new(ErrorKind::NotOwner, format!("{path} is held by {}", lease.holder)))
            }
            Some(lease) => Ok(lease.clone()),
        },
    }
}

pub(super) fn apply_lease(state: &mut MemoryWorkspaceState, ask: &LeaseAcquireOrReleaseRequest, lease: &Lease) {
    state.leases.retain(|other| other.path != lease.path);
    match ask {
        LeaseAcquireOrReleaseRequest::Acquire { .. } => {
            state.last_fencing_number = lease.fencing_token;
            state.leases.push(lease.clone());
        }
        LeaseAcquireOrReleaseRequest::Release { .. } => {}
    }
}
