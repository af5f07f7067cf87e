//! `policy` returns the rules that apply to a caller, or the verdict for one call with the reason. `policy` does not
//! run the call for which it returns a verdict.

use std::{collections::BTreeMap, fmt, sync::Arc};

use serde::{Deserialize, Serialize, de::IgnoredAny};

use super::{OperationDefinition, OperationWithDefinition};
use crate::{
    authorization,
    call_context::CallContext,
    call_options::{CallOptions, OfferedToolAndOperation},
    caller::{Caller, Principal},
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{
        OperationPlanningResult, OperationRun, PathlessOperation, PlanResult, RequestedPathsAndPlanFn,
        TypeErasedOperation,
    },
    outcome::OperationOutcome,
    policy::{PathAccessRight, Policy, PolicyVerdict, SupervisionTier},
    quota::{self, QuotaReport},
    resolve, unsaved,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InspectPolicyArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The arguments of the inspected call, which only `inspected` holds in their decoded form.
    #[serde(default, skip_serializing)]
    #[schemars(with = "()", extend("type" = "object"))]
    pub arguments: BTreeMap<String, IgnoredAny>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// The call that `operation` and `arguments` describe.
    #[serde(skip)]
    pub inspected: Option<InspectedCall>,
    /// All tools that the dialect of the caller offers; the outcome lists the blocked ones.
    #[serde(skip)]
    pub offered_tools: Vec<OfferedToolAndOperation>,
}

/// A call for which `policy` returns a verdict without running the call.
#[derive(Clone)]
pub struct InspectedCall {
    definition: &'static OperationDefinition,
    start: Arc<dyn Fn() -> Result<Box<dyn TypeErasedOperation>, Error> + Send + Sync>,
    options: Arc<CallOptions>,
}

impl InspectedCall {
    pub fn new<O: OperationWithDefinition>(operation: O, options: CallOptions) -> Self {
        let start = Arc::new(move || -> Result<Box<dyn TypeErasedOperation>, Error> {
            Ok(Box::new(OperationRun::new(operation.clone())))
        });
        Self { definition: &O::DEFINITION, start, options: Arc::new(options) }
    }

    /// A call whose arguments a dialect rejects with this error.
    pub fn rejected(definition: &'static OperationDefinition, error: Error, options: CallOptions) -> Self {
        Self { definition, start: Arc::new(move || Err(error.clone())), options: Arc::new(options) }
    }
}

impl fmt::Debug for InspectedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.definition.name)
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum InspectPolicyOutcome {
    Rules(InspectedPolicyRuleList),
    Call(ExplainedCall),
}

impl OperationOutcome for InspectPolicyOutcome {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectedPolicyRuleList {
    pub principal: String,
    pub version: String,
    pub rules: Vec<InspectedPolicyRuleRow>,
    /// The tools of the dialect that the policy always blocks; `None` if the dialect lists no tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaReport>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct InspectedPolicyRuleRow {
    pub layer: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    pub tier: SupervisionTier,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<String>>,
    pub rights: Vec<PathAccessRight>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<String>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub built_in: bool,
}

/// The verdict on a call that was not run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExplainedCall {
    pub principal: String,
    pub operation: String,
    pub version: String,
    #[serde(flatten)]
    pub verdict: ExplainedVerdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota: Option<QuotaReport>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ExplainedVerdict {
    Tier {
        tier: SupervisionTier,
        rule: String,
        why: String,
    },
    Error {
        #[serde(skip_serializing_if = "Option::is_none")]
        tier: Option<SupervisionTier>,
        kind: &'static str,
        why: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        #[serde(skip)]
        next_step: Option<Box<NextStep>>,
    },
}

impl PathlessOperation for InspectPolicyArgs {
    type Outcome = InspectPolicyOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let mut caller = context.caller.clone();
        if let Some(text) = &self.principal {
            let principal = Principal::parse(text)?;
            if matches!(context.caller.principal, Principal::Agent(_)) && principal != context.caller.principal {
                return Err(Error::new(ErrorKind::OutOfScope, "an agent can inspect only its own policy")
                    .with_next_step(NextStep::repeat_without("principal")));
            }
            caller.principal = principal;
        }
        let outcome = match &self.inspected {
            Some(call) => InspectPolicyOutcome::Call(explain_call(context, &caller, call)?),
            None => InspectPolicyOutcome::Rules(self.list_rules(context, &caller.principal)?),
        };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

impl InspectPolicyArgs {
    fn list_rules(&self, context: &CallContext<'_>, principal: &Principal) -> Result<InspectedPolicyRuleList, Error> {
        let policy = &context.policy.policy;
        let rules = policy.rules_for(principal).map(|(layer, rule)| InspectedPolicyRuleRow {
            layer: layer.to_owned(),
            name: rule.name.clone(),
            line: Some(rule.line),
            tier: rule.tier,
            operations: Some(rule.operations().to_vec()),
            rights: rule.rights().to_vec(),
            paths: Some(rule.paths().to_vec()),
            built_in: false,
        });
        let built_in = matches!(principal, Principal::Agent(_)).then(|| InspectedPolicyRuleRow {
            layer: "system".to_owned(),
            name: "protected places".to_owned(),
            line: None,
            tier: SupervisionTier::ApprovalRequired,
            operations: None,
            rights: vec![PathAccessRight::Create, PathAccessRight::Modify, PathAccessRight::Delete],
            paths: None,
            built_in: true,
        });
        let rules = rules.chain(built_in).collect();
        let offers = &self.offered_tools;
        let is_blocked =
            |offer: &&OfferedToolAndOperation| policy.always_blocks(principal, &offer.operation, offer.tool.as_deref());
        let blocked = offers.iter().filter(is_blocked).filter_map(|offer| offer.tool.clone());
        Ok(InspectedPolicyRuleList {
            principal: principal.to_string(),
            version: format_version(policy),
            rules,
            blocked: (!offers.is_empty()).then(|| blocked.collect()),
            quota: quota::report_quota(context, principal)?,
        })
    }
}

fn format_version(policy: &Policy) -> String {
    format!("{:016x}", policy.version())
}

fn explain_call(context: &CallContext<'_>, caller: &Caller, call: &InspectedCall) -> Result<ExplainedCall, Error> {
    let InspectedCall { definition: row, start, options } = call;
    let inner = context.for_other_caller(caller, row.name, options);
    let quota = quota::report_quota(&inner, &caller.principal)?;
    // If the dialect rejects the arguments of its tool, the verdict is the error of the dialect.
    let verdict = start().and_then(|operation| {
        let RequestedPathsAndPlanFn { paths: requests, plan } = operation.resolve_call(&inner)?;
        let mut targets = resolve::resolve_targets(context.workspace(), &requests, &options.path_spelling)?;
        let verdicts = authorization::check_targets(&inner, row.effect, &requests, &targets)?;
        resolve::check_bases(&inner, &mut targets)?;
        let verdict = verdicts.reads.stricter_of(verdicts.writes);
        Ok(match plan(&inner, &targets)? {
            OperationPlanningResult::Files { mut plan, .. } => {
                unsaved::rebase_plan_onto_disk(&inner, &mut plan)?;
                verdict.stricter_of(authorization::check_plan(&inner, &plan)?)
            }
            OperationPlanningResult::Read { .. }
            | OperationPlanningResult::Preview(_)
            | OperationPlanningResult::Lease { .. }
            | OperationPlanningResult::Session { .. }
            | OperationPlanningResult::Watch { .. }
            | OperationPlanningResult::Buffer { .. }
            | OperationPlanningResult::Approval { .. }
            | OperationPlanningResult::Administration(_) => verdict,
        })
    });
    let policy = &context.policy.policy;
    Ok(ExplainedCall {
        principal: caller.principal.to_string(),
        operation: options.tool.as_deref().unwrap_or(row.name).to_owned(),
        version: format_version(policy),
        verdict: explain_verdict(policy, verdict),
        quota,
    })
}

fn explain_verdict(policy: &Policy, verdict: Result<PolicyVerdict, Error>) -> ExplainedVerdict {
    match verdict {
        Ok(PolicyVerdict { tier, reason }) => {
            ExplainedVerdict::Tier { tier, rule: reason.short_name(policy), why: reason.describe(policy) }
        }
        Err(error) => ExplainedVerdict::Error {
            tier: (error.kind == ErrorKind::PolicyDenied).then_some(SupervisionTier::Blocked),
            kind: error.kind.code(),
            rule: error.details.rule.clone(),
            why: error.message,
            next_step: error.next_step,
        },
    }
}
