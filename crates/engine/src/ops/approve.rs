//! `approve` and `deny`: a person answers an approval request. Requires a user who has proved the approver secret; no
//! protocol grants that.

use serde::Deserialize;

use super::{
    approvals::{PlanInclusion, approval_json, find_visible_approval, render_approval_line},
    outcome_builder::OutcomeBuilder,
};
use crate::{
    approval::{Approval, ApprovalAnswer, ApprovalDecision},
    call_context::CallContext,
    caller::{ApproverProof, Principal},
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApproveArgs {
    id: String,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DenyArgs {
    id: String,
    reason: Option<String>,
}

impl Operation for ApproveArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_approver(context).map(|()| Vec::new())
    }

    fn plan(&self, context: &CallContext<'_>, _targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        plan_approval_answer(context, &self.id, ApprovalDecision::Approve, self.reason.as_deref())
    }
}

impl Operation for DenyArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_approver(context).map(|()| Vec::new())
    }

    fn plan(&self, context: &CallContext<'_>, _targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        plan_approval_answer(context, &self.id, ApprovalDecision::Deny, self.reason.as_deref())
    }
}

fn require_approver(context: &CallContext<'_>) -> Result<(), Error> {
    match (&context.caller.principal, context.caller.grants.approver) {
        (Principal::User(_), ApproverProof::SecretVerified) => Ok(()),
        (Principal::User(_) | Principal::Agent(_) | Principal::System | Principal::External, _) => {
            Err(Error::new(ErrorKind::PolicyDenied, "only a person with the approver secret can answer an approval")
                .with_next_step("ask a person to run `stead approvals`"))
        }
    }
}

fn plan_approval_answer(
    context: &CallContext<'_>,
    id: &str,
    say: ApprovalDecision,
    reason: Option<&str>,
) -> Result<PlannedEffect, Error> {
    let approval = find_visible_approval(context, id)?;
    let reason = reason.map(|reason| reason.chars().take(limits::APPROVAL_REASON_CHARS_MAX).collect());
    let build_outcome = Box::new(|approval: &Approval, receipt: &CommitReceipt| {
        OutcomeBuilder::new()
            .with_fields(approval_json(approval, PlanInclusion::Omit))
            .with_receipt(receipt)
            .build_one_line(render_approval_line(approval))
    });
    Ok(PlannedEffect::Approval { answer: ApprovalAnswer { id: approval.id, decision: say, reason }, build_outcome })
}
