//! The pipeline step that checks whether a call is approved. A call holds no lock while it waits for a person.

use std::time::Instant;

use super::{
    Approval, ApprovalBindingDigests, ApprovalFilter, ApprovalMode, ApprovalPlanPreview, ApprovalRequest, ApprovalState,
};
use crate::{
    call_context::CallContext,
    engine::BeforeAfterBytes,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    policy::PolicyVerdict,
    workspace::Workspace,
};

pub(crate) enum ApprovalCheckResult {
    /// The call has an approval with this id, and its commit uses up the approval.
    Approved(String),
    AllowedByOperator,
    /// No person has approved the call yet; the pipeline releases the call's locks and calls [`request_and_wait`].
    Missing(MissingApproval),
}

pub(crate) struct MissingApproval {
    binding: ApprovalBindingDigests,
    verdict: PolicyVerdict,
    plan_preview: ApprovalPlanPreview,
    pub(crate) before_after: Option<Box<BeforeAfterBytes>>,
}

impl ApprovalCheckResult {
    pub(crate) fn check_approval(
        context: &CallContext<'_>,
        mode: ApprovalMode,
        binding: ApprovalBindingDigests,
        verdict: PolicyVerdict,
        preview: impl FnOnce() -> ApprovalPlanPreview,
    ) -> Result<Self, Error> {
        match mode {
            ApprovalMode::AllowAll => return Ok(ApprovalCheckResult::AllowedByOperator),
            ApprovalMode::DenyAll => {
                return Err(Error::new(
                    ErrorKind::ApprovalDenied,
                    format!(
                        "this call needs approval, and this server denies such calls: {}",
                        approval_reason(context, verdict)
                    ),
                )
                .with_next_step(NextStep::ask_person("make this change")));
            }
            ApprovalMode::AskPerson | ApprovalMode::TrustClient => {}
        }
        let usable = |approval: &Approval| {
            approval.request.plan_digest == binding.plan_digest && approval.state == ApprovalState::Approved
        };
        Ok(match existing_approvals(context, &binding)?.into_iter().find(usable) {
            Some(approval) => ApprovalCheckResult::Approved(approval.id),
            None => {
                let plan_preview = preview();
                ApprovalCheckResult::Missing(MissingApproval { binding, verdict, plan_preview, before_after: None })
            }
        })
    }
}

fn existing_approvals(context: &CallContext<'_>, binding: &ApprovalBindingDigests) -> Result<Vec<Approval>, Error> {
    context.workspace().approvals(&ApprovalFilter {
        principal: Some(context.caller.principal.to_string()),
        call_digest: Some(binding.call_digest),
        state: None,
        limit: limits::APPROVALS_PER_CALL_MAX,
    })
}

fn approval_reason(context: &CallContext<'_>, verdict: PolicyVerdict) -> String {
    verdict.reason.describe(&context.policy.policy)
}

pub(crate) enum ApprovalWaitResult {
    /// The state of the approval request changed while the call waited, so the call must be planned again.
    Retry,
    /// The call fails with the error; the string is the id of the call's approval request.
    Refused(Error, Option<String>),
}

/// Requests approval for a call, unless the same request is pending, and waits for a person's answer.
pub(crate) fn request_and_wait(
    context: &CallContext<'_>,
    workspace: &dyn Workspace,
    missing: MissingApproval,
) -> Result<ApprovalWaitResult, Error> {
    let MissingApproval { binding, verdict, plan_preview, before_after: _ } = missing;
    let existing = existing_approvals(context, &binding)?;
    let same_plan = existing.iter().find(|approval| approval.request.plan_digest == binding.plan_digest);
    let pending = match same_plan.map(|approval| (approval, approval.state)) {
        Some((_, ApprovalState::Approved)) => return Ok(ApprovalWaitResult::Retry),
        Some((approval, ApprovalState::Denied)) => return Ok(refused(approval, approval_denied_error(approval))),
        Some((approval, ApprovalState::Pending)) => Some(approval.clone()),
        Some((_, ApprovalState::Used | ApprovalState::Stale | ApprovalState::Expired)) | None => None,
    };
    let approval = match pending {
        Some(approval) => approval,
        None => workspace.request_approval(&build_request(context, binding, verdict, plan_preview))?,
    };
    match existing.iter().find(|approval| approval.state == ApprovalState::Approved) {
        Some(outdated) => Ok(refused(&approval, approval_stale_error(context, outdated, &approval))),
        None => wait_for_answer(context, approval, verdict),
    }
}

fn build_request(
    context: &CallContext<'_>,
    binding: ApprovalBindingDigests,
    verdict: PolicyVerdict,
    preview: ApprovalPlanPreview,
) -> ApprovalRequest {
    ApprovalRequest {
        principal: context.caller.principal.to_string(),
        session: context.caller.session.clone(),
        operation: context.operation.to_owned(),
        tool: context.options.tool.clone(),
        call_digest: binding.call_digest,
        plan_digest: binding.plan_digest,
        plan_preview: preview.with_cause(verdict.reason, &context.policy.policy),
        reason: approval_reason(context, verdict),
        policy_version: context.policy.policy.version(),
        valid_for_ms: limits::APPROVAL_VALID_MS,
    }
}

fn refused(approval: &Approval, error: Error) -> ApprovalWaitResult {
    ApprovalWaitResult::Refused(error, Some(approval.id.clone()))
}

fn wait_for_answer(
    context: &CallContext<'_>,
    mut approval: Approval,
    verdict: PolicyVerdict,
) -> Result<ApprovalWaitResult, Error> {
    let until = Instant::now() + context.control.approval_wait();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(refused(&approval, approval_pending_error(context, &approval, verdict)));
        }
        context.control.check()?;
        let head = context.workspace().head()?;
        if let Some(updated) = context.workspace().approval(&approval.id)? {
            approval = updated;
        }
        match approval.state {
            ApprovalState::Denied => return Ok(refused(&approval, approval_denied_error(&approval))),
            ApprovalState::Pending => {
                let slice = left.min(limits::APPROVAL_POLL_INTERVAL);
                context.workspace().wait_for_entry_after(head.number, Instant::now() + slice)?;
            }
            // Another call may have used up or replaced the approval. The next round of planning looks for the approval
            // again.
            ApprovalState::Approved | ApprovalState::Used | ApprovalState::Stale | ApprovalState::Expired => {
                return Ok(ApprovalWaitResult::Retry);
            }
        }
    }
}

fn approve_command(id: &str) -> String {
    format!("stead approvals approve {id}")
}

fn approve_then_repeat(id: &str) -> NextStep {
    NextStep::person_command("approvals approve", "approve it").with_word(id).then(NextStep::repeat())
}

fn approval_pending_error(context: &CallContext<'_>, approval: &Approval, verdict: PolicyVerdict) -> Error {
    let (id, why) = (&approval.id, approval_reason(context, verdict));
    Error::new(ErrorKind::ApprovalPending, format!("approval {id} is required: {why}"))
        .with_next_step(approve_then_repeat(id))
        .with_approval(id.clone())
        .with_expires_ms(approval.expires_ms)
        .with_command(approve_command(id))
        .with_rule(verdict.reason.short_name(&context.policy.policy))
}

fn approval_denied_error(approval: &Approval) -> Error {
    let (by, reason) = match &approval.resolution {
        Some(resolution) => (resolution.resolved_by.as_str(), resolution.reason.as_deref()),
        None => ("a person", None),
    };
    let suffix = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    Error::new(ErrorKind::ApprovalDenied, format!("{by} denied this call (approval {}){suffix}", approval.id))
        .with_next_step("do not repeat this call; do something else, or ask why it was denied")
        .with_approval(approval.id.clone())
        .with_expires_ms(approval.expires_ms)
}

fn approval_stale_error(context: &CallContext<'_>, outdated: &Approval, approval: &Approval) -> Error {
    let changed =
        if outdated.request.policy_version == context.policy.policy.version() { "the files" } else { "the policy" };
    Error::new(
        ErrorKind::ApprovalStale,
        format!("approval {} no longer applies: {changed} changed since it was given", outdated.id),
    )
    .with_next_step(approve_then_repeat(&approval.id))
    .with_approval(approval.id.clone())
    .with_outdated(outdated.id.clone())
    .with_expires_ms(approval.expires_ms)
    .with_command(approve_command(&approval.id))
}
