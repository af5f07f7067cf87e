//! `turn`: marks the start of a turn in the journal, so that the changes after it can be reviewed and rejected
//! together.

use serde::Deserialize;

use crate::{
    call_context::CallContext,
    errors::Error,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    ops::outcome_builder::OutcomeBuilder,
    session_store::{SessionStoreReply, SessionStoreRequest},
    workspace::CommitReceipt,
};

/// The arguments of `turn`: it has none.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TurnArgs {}

impl Operation for TurnArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        Ok(Vec::new())
    }

    fn plan(&self, context: &CallContext<'_>, _targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let session = context.caller.session.clone();
        let build_outcome = move |_: &SessionStoreReply, receipt: &CommitReceipt| {
            let text = format!("began a turn of session {session} at r{}", receipt.entry);
            OutcomeBuilder::new().with_field("session", session).with_receipt(receipt).build_one_line(text)
        };
        Ok(PlannedEffect::Session { request: SessionStoreRequest::BeginTurn, build_outcome: Box::new(build_outcome) })
    }
}
