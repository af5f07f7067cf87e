//! `approvals` lists approval requests and their answers; an agent sees only its own requests. With `approve` and
//! `deny`, a user who presented the approver secret answers an approval request.

use serde::{Deserialize, Serialize};
use stead_journal::Digest;

use super::text_pages::shorten_for_error;
use crate::{
    approval::{Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalPlanPreview, ApprovalState},
    call_context::CallContext,
    caller::{CallerApproverStatus, Principal},
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{
        BuildApprovalAnswerOutcomeFn, Operation, OperationPlanningResult, PathlessOperation, PlanResult, ValueForPlan,
    },
    outcome::{Completeness, OperationOutcome, RecordedEntryFields, UtcTime},
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListApprovalsArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(default, skip_serializing_if = "ApprovalStateFilter::is_default")]
    pub state: ApprovalStateFilter,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalStateFilter {
    #[default]
    Pending,
    All,
}

impl ApprovalStateFilter {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl PathlessOperation for ListApprovalsArgs {
    type Outcome = ListApprovalsOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let outcome = match &self.id {
            Some(id) => {
                let approval = find_visible_approval(context, id)?;
                let plan = Some(ApprovalPlanPreview::parse(&approval.request.plan_preview));
                ListApprovalsOutcome::One(Box::new(ApprovalFields { plan, ..ApprovalFields::from(&approval) }))
            }
            None => ListApprovalsOutcome::List(self.list_approvals(context)?),
        };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

impl ListApprovalsArgs {
    fn list_approvals(&self, context: &CallContext<'_>) -> Result<ListedApprovalsPage, Error> {
        let (state, narrowed_by) = match self.state {
            ApprovalStateFilter::Pending => (Some(ApprovalState::Pending), "id"),
            ApprovalStateFilter::All => (None, "state"),
        };
        let limit = limits::APPROVALS_LISTED_MAX;
        let principal = context.caller.principal.only_visible_owner().map(ToString::to_string);
        let filter = ApprovalFilter { principal, state, limit, call_digest: None };
        let found = context.workspace().approvals(&filter)?;
        let completeness = if found.len() < limit {
            Completeness::Complete
        } else {
            Completeness::narrowed_by(narrowed_by, "APPROVALS_LISTED_MAX")
        };
        Ok(ListedApprovalsPage { approvals: found.iter().map(ApprovalFields::from).collect(), completeness })
    }
}

fn find_visible_approval(context: &CallContext<'_>, id: &str) -> Result<Approval, Error> {
    let found = context.workspace().approval(id)?;
    found.filter(|approval| context.caller.principal.may_see_items_of(&approval.request.principal)).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, format!("this workspace has no approval request '{}'", shorten_for_error(id)))
            .with_next_step(NextStep::call(
                ListApprovalsArgs { id: None, state: ApprovalStateFilter::All },
                "list the requests of this workspace",
            ))
    })
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ListApprovalsOutcome {
    One(Box<ApprovalFields>),
    List(ListedApprovalsPage),
}

impl OperationOutcome for ListApprovalsOutcome {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ListedApprovalsPage {
    pub approvals: Vec<ApprovalFields>,
    #[serde(flatten)]
    pub completeness: Completeness<ListApprovalsArgs>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalFields {
    pub id: String,
    pub state: &'static str,
    pub principal: String,
    pub session: String,
    pub operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub why: String,
    pub created: UtcTime,
    pub expires: UtcTime,
    pub digest: Digest,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// The stored plan preview; `None` unless the call named the id of the approval request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<ApprovalPlanPreview>,
    #[serde(skip)]
    pub plan_summary: String,
}

impl From<&Approval> for ApprovalFields {
    fn from(approval: &Approval) -> Self {
        let (request, resolution) = (&approval.request, approval.resolution.as_ref());
        Self {
            id: approval.id.clone(),
            state: approval.state.as_str(),
            principal: request.principal.clone(),
            session: request.session.clone(),
            operation: request.operation.clone(),
            tool: request.tool.clone(),
            why: request.reason.clone(),
            created: UtcTime { unix_ms: approval.created_ms },
            expires: UtcTime { unix_ms: approval.expires_ms },
            digest: request.plan_digest,
            answered_by: resolution.map(|resolution| resolution.resolved_by.clone()),
            reason: resolution.and_then(|resolution| resolution.reason.clone()),
            used: approval.used_by_entry,
            plan: None,
            plan_summary: ApprovalPlanPreview::parse(&request.plan_preview).summarize(),
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalAnswerArgs {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ApproveArgs(pub ApprovalAnswerArgs);

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct DenyArgs(pub ApprovalAnswerArgs);

#[derive(Debug, Serialize, JsonSchema)]
pub struct AnswerApprovalOutcome {
    #[serde(flatten)]
    pub approval: ApprovalFields,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

impl OperationOutcome for AnswerApprovalOutcome {}

impl Operation for ApproveArgs {
    type Paths = ValueForPlan<()>;
    type Outcome = AnswerApprovalOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_approver(context).map(ValueForPlan)
    }

    fn plan(&self, context: &CallContext<'_>, (): ()) -> PlanResult<Self> {
        self.0.plan_answer(context, ApprovalDecision::Approve)
    }
}

impl Operation for DenyArgs {
    type Paths = ValueForPlan<()>;
    type Outcome = AnswerApprovalOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_approver(context).map(ValueForPlan)
    }

    fn plan(&self, context: &CallContext<'_>, (): ()) -> PlanResult<Self> {
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
        .with_next_step(NextStep::person_command("approvals list", "answer it"))),
    }
}

impl ApprovalAnswerArgs {
    fn plan_answer(
        &self,
        context: &CallContext<'_>,
        decision: ApprovalDecision,
    ) -> Result<OperationPlanningResult<AnswerApprovalOutcome>, Error> {
        let id = find_visible_approval(context, &self.id)?.id;
        let shorten = |reason: &String| reason.chars().take(limits::APPROVAL_REASON_CHARS_MAX).collect();
        let answer = ApprovalAnswer { id, decision, reason: self.reason.as_ref().map(shorten) };
        let build_outcome: BuildApprovalAnswerOutcomeFn<_> =
            Box::new(|approval, receipt| AnswerApprovalOutcome { approval: approval.into(), recorded: receipt.into() });
        Ok(OperationPlanningResult::Approval { answer, build_outcome })
    }
}
