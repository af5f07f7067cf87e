//! `policy` returns the rules that apply to a caller, or the verdict for one call with the reason. `policy` never runs
//! the call whose verdict is requested.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::outcome_builder::OutcomeBuilder;
use crate::{
    authorization,
    call_context::CallContext,
    call_options::OfferedToolAndOperation,
    caller::{Caller, Principal},
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    native_text::usage::render_quota_lines,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPaths, ResolvedCall, ResolvedTargets, nearest_name,
    },
    outcome::to_json_object,
    policy::{PolicyVerdict, SupervisionTier},
    quota, resolve, unsaved,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InspectPolicyArgs {
    operation: Option<String>,
    #[serde(default)]
    arguments: Map<String, Value>,
    principal: Option<String>,
}

impl Operation for InspectPolicyArgs {
    type Resolved = ();
    type Outcome = CallOutcome;

    fn resolve(&self, _context: &CallContext<'_>, _paths: &mut RequestedPaths) -> Result<(), Error> {
        Ok(())
    }

    fn plan(&self, context: &CallContext<'_>, (): (), _targets: &ResolvedTargets) -> PlanResult<Self> {
        let mut caller = context.caller.clone();
        if let Some(text) = &self.principal {
            let principal = Principal::parse(text)?;
            if matches!(context.caller.principal, Principal::Agent(_)) && principal != context.caller.principal {
                return Err(Error::new(ErrorKind::OutOfScope, "an agent can inspect only its own policy")
                    .with_next_step("omit principal to see your own policy"));
            }
            caller.principal = principal;
        }
        let outcome = match &self.operation {
            Some(operation) => explain_call(context, &caller, operation, &self.arguments)?,
            None => list_rules(context, &caller.principal)?,
        };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

fn list_rules(context: &CallContext<'_>, principal: &Principal) -> Result<CallOutcome, Error> {
    let policy = &context.policy.policy;
    let mut rules: Vec<Value> = policy
        .rules_for(principal)
        .map(|(layer, rule)| {
            let rights: Vec<&str> = rule.rights().iter().map(|right| right.as_str()).collect();
            json!({
                "layer": layer, "name": rule.name, "line": rule.line, "tier": rule.tier,
                "operations": rule.operations(), "rights": rights, "paths": rule.paths(),
            })
        })
        .collect();
    if matches!(principal, Principal::Agent(_)) {
        rules.push(json!({
            "layer": "system", "name": "protected places", "tier": SupervisionTier::ApprovalRequired,
            "rights": ["create", "modify", "delete"], "built_in": true,
        }));
    }
    let lines: Vec<String> = rules
        .iter()
        .map(|rule| {
            let word = |name: &str| rule[name].as_str().unwrap_or_default().to_owned();
            format!("{}: {} -> {}", word("layer"), word("name"), word("tier"))
        })
        .collect();
    let quota = quota::report_quota(context, principal)?;
    let quota_lines = quota.as_ref().map_or_else(String::new, render_quota_lines);
    let text = format!("policy {:016x} for {principal}\n{}{quota_lines}", policy.version(), lines.join("\n"));
    let offers = &context.options.offered_tools;
    let is_blocked =
        |offer: &&OfferedToolAndOperation| policy.always_blocks(principal, &offer.operation, offer.tool.as_deref());
    let blocked: Vec<String> = offers.iter().filter(is_blocked).filter_map(|offer| offer.tool.clone()).collect();
    Ok(OutcomeBuilder::new()
        .with_field("principal", principal.to_string())
        .with_field("version", format!("{:016x}", policy.version()))
        .with_field("rules", rules)
        .with_some("blocked", (!offers.is_empty()).then_some(blocked))
        .with_some("quota", quota.map(|quota| to_json_object(&quota)))
        .build(text))
}

fn explain_call(
    context: &CallContext<'_>,
    caller: &Caller,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<CallOutcome, Error> {
    let Some(row) = super::find_operation(name) else {
        let names: Vec<&str> = super::OPERATIONS.iter().map(|row| row.name).collect();
        let error = Error::new(ErrorKind::BadRequest, format!("there is no operation '{name}'"));
        return Err(match nearest_name(name, names.iter().copied()) {
            Some(nearest) => error.with_next_step(format!("did you mean {nearest}?")),
            None => error.with_next_step(format!("operations: {}", names.join(", "))),
        });
    };
    let options = context.options.options_of_inspected_call.as_deref().unwrap_or(context.options);
    let operation = (row.decode)(arguments);
    let inner = context.for_other_caller(caller, row.name, options);
    let quota = quota::report_quota(&inner, &caller.principal)?;
    // If the dialect rejects the arguments of its tool, the answer is the error of the dialect.
    let operation = match (&options.argument_error, operation) {
        (Some(error), _) => Err(error.clone()),
        (None, operation) => Ok(operation?),
    };
    let verdict = operation.and_then(|operation| {
        let ResolvedCall { paths: requests, plan } = operation.resolve_call(&inner)?;
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
            | OperationPlanningResult::Approval { .. } => verdict,
        })
    });
    let mut outcome = explanation_outcome(context, caller, options.tool.as_deref().unwrap_or(name), verdict);
    if let Some(quota) = quota {
        outcome.text.push_str(&render_quota_lines(&quota));
        outcome.json.insert("quota".to_owned(), to_json_object(&quota).into());
    }
    Ok(outcome)
}

fn explanation_outcome(
    context: &CallContext<'_>,
    caller: &Caller,
    name: &str,
    verdict: Result<PolicyVerdict, Error>,
) -> CallOutcome {
    let policy = &context.policy.policy;
    let fields = OutcomeBuilder::new()
        .with_field("principal", caller.principal.to_string())
        .with_field("operation", name.to_owned())
        .with_field("version", format!("{:016x}", policy.version()));
    match verdict {
        Ok(verdict) => {
            let why = verdict.reason.describe(policy);
            let text = format!("{} {name}: {} ({why})", caller.principal, verdict.tier);
            fields
                .with_field("tier", verdict.tier.as_str())
                .with_field("rule", verdict.reason.short_name(policy))
                .with_field("why", why)
                .build(text)
        }
        Err(error) => {
            let tier =
                if error.kind == ErrorKind::PolicyDenied { Some(SupervisionTier::Blocked.as_str()) } else { None };
            let text = format!("{} {name}: {error}", caller.principal);
            fields
                .with_some("tier", tier)
                .with_field("kind", error.kind.code())
                .with_field("why", error.message.clone())
                .with_some("rule", error.details.get("rule").cloned())
                .build(text)
        }
    }
}
