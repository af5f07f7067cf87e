//! `lock` acquires a lease on a path, with a fencing token and an expiry; `unlock` releases the lease before it
//! expires. The lease is visible to other callers, and the leased path need not exist.

use serde::Deserialize;

use crate::{
    call_context::CallContext,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PathSlot, PlanResult, RequestedPath, RequestedPaths, ResolvedTargets,
    },
    ops::outcome_builder::{OutcomeBuilder, format_iso_utc},
    workspace::{CommitReceipt, Lease, LeaseRequest},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LockArgs {
    path: String,
    seconds: Option<u64>,
}

impl LockArgs {
    fn seconds(&self) -> Result<u64, Error> {
        let seconds = self.seconds.unwrap_or(limits::LEASE_SECONDS_DEFAULT);
        if (1..=limits::LEASE_SECONDS_MAX).contains(&seconds) {
            return Ok(seconds);
        }
        Err(Error::new(ErrorKind::BadRequest, format!("a lease cannot last {seconds} seconds"))
            .with_next_step(format!("pass seconds from 1 to {}", limits::LEASE_SECONDS_MAX)))
    }
}

impl Operation for LockArgs {
    type Resolved = PathSlot;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        self.seconds()?;
        Ok(paths.add(RequestedPath::write(trim_trailing_slashes(&self.path))))
    }

    fn plan(&self, context: &CallContext<'_>, path: PathSlot, targets: &ResolvedTargets) -> PlanResult<Self> {
        let path = targets[path].path.clone();
        let duration_ms = i64::try_from(self.seconds()?.saturating_mul(1000)).unwrap_or(i64::MAX);
        let ends_ms = context.workspace().now_ms().saturating_add(duration_ms);
        let build_outcome = Box::new(|lease: &Lease, receipt: &CommitReceipt| {
            let ends = format_iso_utc(lease.ends_ms);
            let text = format!("locked {} until {ends}, fence {}", lease.path, lease.fencing_token);
            lease_outcome(lease, receipt, text)
        });
        Ok(OperationPlanningResult::Lease { request: LeaseRequest::Acquire { path, ends_ms }, build_outcome })
    }
}

/// Removes trailing slashes, so that a lease on `src/` is the same as a lease on `src`.
fn trim_trailing_slashes(spelling: &str) -> &str {
    let trimmed = spelling.trim_end_matches('/');
    if trimmed.is_empty() { spelling } else { trimmed }
}

fn lease_outcome(lease: &Lease, receipt: &CommitReceipt, text: String) -> CallOutcome {
    OutcomeBuilder::new()
        .with_field("path", lease.path.to_string())
        .with_field("holder", lease.holder.clone())
        .with_field("fence", lease.fencing_token)
        .with_field("ends", format_iso_utc(lease.ends_ms))
        .with_receipt(receipt)
        .build_one_line(text)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnlockArgs {
    path: String,
}

impl Operation for UnlockArgs {
    type Resolved = PathSlot;
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        Ok(paths.add(RequestedPath::write(trim_trailing_slashes(&self.path))))
    }

    fn plan(&self, _context: &CallContext<'_>, path: PathSlot, targets: &ResolvedTargets) -> PlanResult<Self> {
        let path = targets[path].path.clone();
        let build_outcome = Box::new(|lease: &Lease, receipt: &CommitReceipt| {
            lease_outcome(lease, receipt, format!("unlocked {}", lease.path))
        });
        Ok(OperationPlanningResult::Lease { request: LeaseRequest::Release { path }, build_outcome })
    }
}
