//! `lock` acquires a lease on a path, with a fencing token and an expiry; `unlock` releases the lease before it
//! expires. Other callers can see a lease, and the leased path need not exist.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{LeaseToOutcomeFn, Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    outcome::{OperationOutcome, RecordedEntryFields, UtcTime},
    workspace::LeaseAcquireOrReleaseRequest,
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockArgs {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
}

impl LockArgs {
    fn seconds(&self) -> Result<u64, Error> {
        let seconds = self.seconds.unwrap_or(limits::LEASE_SECONDS_DEFAULT);
        if (1..=limits::LEASE_SECONDS_MAX).contains(&seconds) {
            return Ok(seconds);
        }
        Err(Error::new(ErrorKind::BadRequest, format!("a lease cannot last {seconds} seconds"))
            .with_next_step(NextStep::repeat_with_such("seconds", format!("from 1 to {}", limits::LEASE_SECONDS_MAX))))
    }
}

impl Operation for LockArgs {
    type Paths = PathAccessRequest;
    type Outcome = LeaseOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        self.seconds()?;
        Ok(PathAccessRequest::write(trim_trailing_slashes(&self.path)))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let path = target.path.clone();
        let duration_ms = i64::try_from(self.seconds()?.saturating_mul(1000)).unwrap_or(i64::MAX);
        let ends_ms = context.workspace().now_ms().saturating_add(duration_ms);
        let request = LeaseAcquireOrReleaseRequest::Acquire { path, ends_ms };
        let build_outcome = build_lease_outcome(AcquiredOrReleasedLease::Acquired);
        Ok(OperationPlanningResult::Lease { request, build_outcome })
    }
}

/// Removes trailing slashes, so that a lease on `src/` is the same as a lease on `src`.
fn trim_trailing_slashes(spelling: &str) -> &str {
    let trimmed = spelling.trim_end_matches('/');
    if trimmed.is_empty() { spelling } else { trimmed }
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct LeaseOutcome {
    pub path: RelPath,
    pub holder: String,
    pub fence: u64,
    pub ends: UtcTime,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
    #[serde(skip)]
    pub change: AcquiredOrReleasedLease,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcquiredOrReleasedLease {
    Acquired,
    Released,
}

impl OperationOutcome for LeaseOutcome {}

fn build_lease_outcome(change: AcquiredOrReleasedLease) -> LeaseToOutcomeFn<LeaseOutcome> {
    Box::new(move |lease, receipt| LeaseOutcome {
        path: lease.path.clone(),
        holder: lease.holder.clone(),
        fence: lease.fencing_token,
        ends: UtcTime { unix_ms: lease.ends_ms },
        recorded: receipt.into(),
        change,
    })
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnlockArgs {
    pub path: String,
}

impl Operation for UnlockArgs {
    type Paths = PathAccessRequest;
    type Outcome = LeaseOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        Ok(PathAccessRequest::write(trim_trailing_slashes(&self.path)))
    }

    fn plan(&self, _context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let path = target.path.clone();
        let build_outcome = build_lease_outcome(AcquiredOrReleasedLease::Released);
        Ok(OperationPlanningResult::Lease { request: LeaseAcquireOrReleaseRequest::Release { path }, build_outcome })
    }
}
