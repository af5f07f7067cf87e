//! `approvals`: lists approval requests and their answers. An agent sees only its own requests.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::outcome_builder::{OutcomeBuilder, format_iso_utc};
use crate::{
    approval::{Approval, ApprovalFilter, ApprovalState, summarize_plan},
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApprovalsArgs {
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

impl Operation for ApprovalsArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        Ok(Vec::new())
    }

    fn plan(&self, context: &CallContext<'_>, _targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let answer = match &self.id {
            Some(id) => {
                let approval = find_visible_approval(context, id)?;
                let text = render_approval_line(&approval);
                OutcomeBuilder::new().with_fields(approval_json(&approval, PlanInclusion::Include)).build(text)
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
                let text = if lines.is_empty() { "no pending approvals".to_owned() } else { lines.join("\n") };
                let rows: Vec<Value> =
                    found.iter().map(|approval| approval_json(approval, PlanInclusion::Omit).into()).collect();
                OutcomeBuilder::new()
                    .with_field("approvals", rows)
                    .with_field("truncated", found.len() >= limits::APPROVALS_LISTED_MAX)
                    .build(text)
            }
        };
        Ok(PlannedEffect::Read { outcome: answer, bytes: 0 })
    }
}

/// The principal whose approvals the caller may see; `None` means all.
fn visible_principal(context: &CallContext<'_>) -> Option<String> {
    match &context.caller.principal {
        Principal::Agent(_) => Some(context.caller.principal.to_string()),
        Principal::User(_) | Principal::System | Principal::External => None,
    }
}

pub(super) fn find_visible_approval(context: &CallContext<'_>, id: &str) -> Result<Approval, Error> {
    let found = context.workspace().approval(id)?;
    let own = visible_principal(context);
    let seen = found.filter(|approval| own.as_ref().is_none_or(|own| approval.request.principal == *own));
    seen.ok_or_else(|| {
        let shown: String = id.chars().take(64).collect();
        Error::new(ErrorKind::NotFound, format!("there is no approval '{shown}'"))
            .with_next_step("call approvals to list them; an approval belongs to the workspace of its call")
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanInclusion {
    Include,
    Omit,
}

pub(super) fn approval_json(approval: &Approval, whole: PlanInclusion) -> Map<String, Value> {
    let plan = match whole {
        PlanInclusion::Include => serde_json::from_str::<Value>(&approval.request.plan_preview).ok(),
        PlanInclusion::Omit => None,
    };
    let requested = &approval.request;
    let answered = approval.resolution.as_ref();
    OutcomeBuilder::new()
        .with_field("id", approval.id.clone())
        .with_field("state", approval.state.as_str())
        .with_field("principal", requested.principal.clone())
        .with_field("session", requested.session.clone())
        .with_field("operation", requested.operation.clone())
        .with_some("tool", requested.tool.clone())
        .with_field("why", requested.reason.clone())
        .with_field("created", format_iso_utc(approval.created_ms))
        .with_field("expires", format_iso_utc(approval.expires_ms))
        .with_field("digest", requested.plan_digest.to_string())
        .with_some("answered_by", answered.map(|answered| answered.resolved_by.clone()))
        .with_some("reason", answered.and_then(|answered| answered.reason.clone()))
        .with_some("used", approval.used_by_entry)
        .with_some("plan", plan)
        .into_json()
}

/// One line: the principal, the call, its effect and its expiry.
pub(super) fn render_approval_line(approval: &Approval) -> String {
    let shown: Value = serde_json::from_str(&approval.request.plan_preview).unwrap_or_default();
    format!(
        "{} {}: {} wants {}, to {}, until {}",
        approval.id,
        approval.state.as_str(),
        approval.request.principal,
        approval.tool_or_operation(),
        summarize_plan(&shown),
        format_iso_utc(approval.expires_ms)
    )
}
