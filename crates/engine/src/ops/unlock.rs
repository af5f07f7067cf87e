//! `unlock`: releases a lease before it expires.

use serde::Deserialize;

use super::lock::{display_path, lease_outcome, trim_trailing_slashes};
use crate::{
    call_context::CallContext,
    errors::Error,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    workspace::{CommitReceipt, Lease, LeaseRequest},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnlockArgs {
    path: String,
}

impl Operation for UnlockArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        Ok(vec![RequestedPath::write(trim_trailing_slashes(&self.path))])
    }

    fn plan(&self, _context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let path = targets[0].path.clone();
        let build_outcome = Box::new(|lease: &Lease, receipt: &CommitReceipt| {
            lease_outcome(lease, receipt, format!("unlocked {}", display_path(&lease.path)))
        });
        Ok(PlannedEffect::Lease { request: LeaseRequest::Release { path }, build_outcome })
    }
}
