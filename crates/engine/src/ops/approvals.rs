//! `approvals` lists approval requests and their answers; an agent sees only its own requests. With `approve` and
//! `deny`, a user who presented the approver secret answers an approval request.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    approval::{Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalState, summarize_plan},
    call_context::CallContext,
    caller::{CallerApproverStatus, Principal},
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedTargets},
    ops::outcome_builder::{OutcomeBuilder, format_iso_utc, shorten_for_error},
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListApprovalsArgs {
    id: Option<String>,
    #[serde(default)]
    state: ApprovalStateFilter,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ApprovalStateFilter {
    #[default]
    Pending,
    All,
}

impl Operation for ListApprovalsArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let outcome = match &self.id {
            Some(id) => {
                let approval = find_visible_approval(context, id)?;
                let text = render_approval_line(&approval);
                OutcomeBuilder::new()
                    .with_fields(approval_json(&approval, ApprovalPlanPreviewInclusion::Include))
                    .build(text)
            }
            None => {
                let state = match self.state {
                    ApprovalStateFilter::Pending => Some(ApprovalState::Pending),
                    ApprovalStateFilter::All => None,
                };
                let filter = ApprovalFilter {
                    principal: visible_principal(context),
                    state,
                    limit: limits::APPROVALS_LISTED_MAX,
                    call_digest: None,
                };
                let found = context.workspace().approvals(&filter)?;
                let lines: Vec<String> = found.iter().map(render_approval_line).collect();
                let text = if lines.is_empty() { "no pending approval requests".to_owned() } else { lines.join("\n") };
                let rows: Vec<_> =
                    found.iter().map(|found| approval_json(found, ApprovalPlanPreviewInclusion::Omit)).collect();
                OutcomeBuilder::new()
                    .with_field("approvals", rows)
                    .with_field("truncated", found.len() >= limits::APPROVALS_LISTED_MAX)
                    .build(text)
            }
        };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

/// An agent may see only its own approvals; `None` means that the caller may see all approvals.
fn visible_principal(context: &CallContext<'_>) -> Option<String> {
    match &context.caller.principal {
        Principal::Agent(_) => Some(context.caller.principal.to_string()),
        Principal::User(_) | Principal::System | Principal::External => None,
    }
}

fn find_visible_approval(context: &CallContext<'_>, id: &str) -> Result<Approval, Error> {
    let found = context.workspace().approval(id)?;
    let principal = visible_principal(context);
    let visible = found.filter(|approval| principal.as_ref().is_none_or(|own| approval.request.principal == *own));
    visible.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("this workspace has no approval request '{}'", shorten_for_error(id)))
            .with_next_step("call approvals to list the requests of this workspace")
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ApprovalPlanPreviewInclusion {
    Include,
    Omit,
}

fn approval_json(approval: &Approval, plan: ApprovalPlanPreviewInclusion) -> Map<String, Value> {
    let plan = match plan {
        ApprovalPlanPreviewInclusion::Include => serde_json::from_str::<Value>(&approval.request.plan_preview).ok(),
        ApprovalPlanPreviewInclusion::Omit => None,
    };
    let request = &approval.request;
    let resolution = approval.resolution.as_ref();
    OutcomeBuilder::new()
        .with_field("id", approval.id.clone())
        .with_field("state", approval.state.as_str())
        .with_field("principal", request.principal.clone())
        .with_field("session", request.session.clone())
        .with_field("operation", request.operation.clone())
        .with_some("tool", request.tool.clone())
        .with_field("why", request.reason.clone())
        .with_field("created", format_iso_utc(approval.created_ms))
        .with_field("expires", format_iso_utc(approval.expires_ms))
        .with_field("digest", request.plan_digest.to_string())
        .with_some("answered_by", resolution.map(|resolution| resolution.resolved_by.clone()))
        .with_some("reason", resolution.and_then(|resolution| resolution.reason.clone()))
        .with_some("used", approval.used_by_entry)
        .with_some("plan", plan)
        .into_json()
}

fn render_approval_line(approval: &Approval) -> String {
    let plan: Value = serde_json::from_str(&approval.request.plan_preview).unwrap_or_default();
    format!(
        "{} {}: {} wants {}, to {}, until {}",
        approval.id,
        approval.state.as_str(),
        approval.request.principal,
        approval.tool_or_operation(),
        summarize_plan(&plan),
        format_iso_utc(approval.expires_ms)
    )
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalAnswerArgs {
    id: String,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct ApproveArgs(ApprovalAnswerArgs);

#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(crate) struct DenyArgs(ApprovalAnswerArgs);

impl Operation for ApproveArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        require_approver(context)
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        self.0.plan_answer(context, ApprovalDecision::Approve)
    }
}

impl Operation for DenyArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        require_approver(context)
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        self.0.plan_answer(context, ApprovalDecision::Deny)
    }
}

fn require_approver(context: &CallContext<'_>) -> Result<(), Error> {
    match (&context.caller.principal, context.caller.grants.approver) {
        (Principal::User(_), CallerApproverStatus::SecretVerified) => Ok(()),
        (Principal::User(_) | Principal::Agent(_) | Principal::System | Principal::External, _) => Err(Error::new(
            ErrorKind::PolicyDenied,
            "only a person with the approver secret can answer an approval request",
        )
        .with_next_step("ask a person to run `stead approvals`")),
    }
}

impl ApprovalAnswerArgs {
    fn plan_answer(
        &self,
        context: &CallContext<'_>,
        decision: ApprovalDecision,
    ) -> Result<OperationPlanningResult, Error> {
        let id = find_visible_approval(context, &self.id)?.id;
        let shorten = |reason: &String| reason.chars().take(limits::APPROVAL_REASON_CHARS_MAX).collect();
        let answer = ApprovalAnswer { id, decision, reason: self.reason.as_ref().map(shorten) };
        let build_outcome = Box::new(|approval: &Approval, receipt: &CommitReceipt| {
            OutcomeBuilder::new()
                .with_fields(approval_json(approval, ApprovalPlanPreviewInclusion::Omit))
                .with_receipt(receipt)
                .build_one_line(render_approval_line(approval))
        });
        Ok(OperationPlanningResult::Approval { answer, build_outcome })
    }
}
