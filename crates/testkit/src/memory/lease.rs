//! Leases: at most one holder for a place and everything above and below it.

use engine::{Failure, Kind, Lease, LeaseAsk, limits};
use path::RelPath;

use super::State;

/// Leases that have not ended.
pub(super) fn running(state: &State) -> impl Iterator<Item = &Lease> {
    state.leases.iter().filter(|lease| lease.ends_ms > state.now_ms)
}

/// Whether one place holds the other.
pub(super) fn overlap(one: &RelPath, other: &RelPath) -> bool {
    one.is_within(other) || other.is_within(one)
}

/// The lease that an ask would take or give back, if it may.
pub(super) fn judge(state: &State, ask: &LeaseAsk, holder: &str) -> Result<Lease, Failure> {
    match ask {
        LeaseAsk::Take { path, ends_ms } => {
            if let Some(other) =
                running(state).find(|lease| lease.holder != holder && overlap(&lease.path, path))
            {
                let detail = format!("{} is held by {}", other.path, other.holder);
                return Err(Failure::new(Kind::Locked, detail).fact("holder", other.holder.clone()));
            }
            if running(state).filter(|lease| lease.holder == holder).count()
                >= limits::LEASES_PER_PRINCIPAL_MAX
            {
                return Err(Failure::new(Kind::TooMany, "you hold too many leases"));
            }
            Ok(Lease {
                path: path.clone(),
                holder: holder.to_owned(),
                fence: state.fence + 1,
                ends_ms: *ends_ms,
            })
        }
        LeaseAsk::Release { path } => match running(state).find(|lease| lease.path == *path) {
            None => Err(Failure::new(Kind::NotFound, format!("there is no lease on {path}"))),
            Some(lease) if lease.holder != holder => {
                Err(Failure::new(Kind::NotOwner, format!("{path} is held by {}", lease.holder)))
            }
            Some(lease) => Ok(lease.clone()),
        },
    }
}

/// Makes it so.
pub(super) fn write(state: &mut State, ask: &LeaseAsk, lease: &Lease) {
    state.leases.retain(|other| other.path != lease.path);
    match ask {
        LeaseAsk::Take { .. } => {
            state.fence = lease.fence;
            state.leases.push(lease.clone());
        }
        LeaseAsk::Release { .. } => {}
    }
}
