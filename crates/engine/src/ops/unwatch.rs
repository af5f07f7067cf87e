//! `unwatch`: ends one of the caller's own watches. Its recorded events stay in the journal.

use serde::Deserialize;

use super::{lock::display_path, watch::watch_outcome};
use crate::{
    call_context::CallContext,
    errors::Error,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    watches::{Watch, WatchRequest},
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnwatchArgs {
    watch: String,
}

impl Operation for UnwatchArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        Ok(Vec::new())
    }

    fn plan(&self, _context: &CallContext<'_>, _targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let build_outcome = Box::new(|watch: &Watch, receipt: &CommitReceipt| {
            let text = format!("stopped watching {} as {}", display_path(&watch.path), watch.id);
            watch_outcome(watch, receipt, text)
        });
        Ok(PlannedEffect::Watch { request: WatchRequest::End { id: self.watch.clone() }, build_outcome })
    }
}
