//! `policy`: the rules that bind a caller, and what a call would get by them and why. Nothing is changed, and the call
//! that is asked about does not run.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer::Facts;
use crate::{
    authorise,
    caller::{Caller, Principal},
    failure::{Failure, Kind},
    operation::{Ask, Operation, Planned, Target, nearest},
    policy::{Tier, Verdict},
    quota, resolve,
    terms::Offer,
    unsaved,
    view::View,
};

/// The arguments of `policy`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policy {
    operation: Option<String>,
    #[serde(default)]
    arguments: Map<String, Value>,
    principal: Option<String>,
}

impl Operation for Policy {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let mut caller = view.caller.clone();
        if let Some(text) = &self.principal {
            let principal = Principal::parse(text)?;
            if matches!(view.caller.principal, Principal::Agent(_)) && principal != view.caller.principal {
                return Err(Failure::new(Kind::OutOfScope, "an agent may ask about itself")
                    .hint("leave principal out"));
            }
            caller.principal = principal;
        }
        let answer = match &self.operation {
            Some(operation) => explained(view, &caller, operation, &self.arguments)?,
            None => listed(view, &caller.principal)?,
        };
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

/// The rules that could bind a principal.
fn listed(view: &View<'_>, principal: &Principal) -> Result<crate::engine::Answer, Failure> {
    let policy = &view.in_force.policy;
    let mut rules: Vec<Value> = policy
        .rules_for(principal)
        .map(|(layer, rule)| {
            let rights: Vec<&str> = rule.rights().iter().map(|right| right.word()).collect();
            json!({
                "layer": layer, "name": rule.name, "line": rule.line, "tier": rule.tier,
                "operations": rule.operations(), "rights": rights, "paths": rule.paths(),
            })
        })
        .collect();
    if matches!(principal, Principal::Agent(_)) {
        rules.push(json!({
            "layer": "system", "name": "protected places", "tier": Tier::ApprovalRequired,
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
    let quota = quota::told(view, principal)?;
    let shown = quota::lines(quota.as_ref());
    let text = format!("policy {:016x} for {principal}\n{}{shown}", policy.version(), lines.join("\n"));
    let offers = &view.terms.offers;
    let never = |offer: &&Offer| policy.never(principal, &offer.operation, offer.tool.as_deref());
    let blocked: Vec<String> = offers.iter().filter(never).filter_map(|offer| offer.tool.clone()).collect();
    Ok(Facts::new()
        .with("principal", principal.to_string())
        .with("version", format!("{:016x}", policy.version()))
        .with("rules", rules)
        .maybe("blocked", (!offers.is_empty()).then_some(blocked))
        .maybe("quota", quota)
        .answer(text))
}

/// What a call would get, and why.
fn explained(
    view: &View<'_>,
    caller: &Caller,
    name: &str,
    arguments: &Map<String, Value>,
) -> Result<crate::engine::Answer, Failure> {
    let Some(row) = super::row(name) else {
        let known = super::OPERATIONS.iter().map(|row| row.name);
        let failure = Failure::new(Kind::BadRequest, format!("there is no operation '{name}'"));
        return Err(match nearest(name, known) {
            Some(meant) => failure.hint(format!("did you mean {meant}?")),
            None => failure,
        });
    };
    let terms = view.terms.about.as_deref().unwrap_or(view.terms);
    let operation = (row.decode)(arguments);
    let inner = view.of(caller, row.name, terms);
    let quota = quota::told(&inner, &caller.principal)?;
    // What is wrong with the arguments of a tool is the dialect's to say.
    let operation = match (&terms.objection, operation) {
        (Some(objection), _) => Err(objection.clone()),
        (None, operation) => Ok(operation?),
    };
    let outcome = operation.and_then(|operation| {
        let asks = operation.asks(&inner)?;
        let mut targets = resolve::targets(view.workspace(), &asks, &terms.reading)?;
        let judged = authorise::judge(&inner, row.effect, &asks, &targets)?;
        resolve::check(&inner, &mut targets)?;
        let verdict = judged.looks.stricter(judged.changes);
        Ok(match operation.plan(&inner, &targets)? {
            Planned::Change { mut plan, .. } => {
                unsaved::settle(&inner, &mut plan)?;
                verdict.stricter(authorise::judge_plan(&inner, &plan)?)
            }
            Planned::Read { .. }
            | Planned::Preview(_)
            | Planned::Lease { .. }
            | Planned::Keep { .. }
            | Planned::Watch { .. }
            | Planned::Buffer { .. }
            | Planned::Answer { .. } => verdict,
        })
    });
    let mut answer = told(view, caller, terms.tool.as_deref().unwrap_or(name), outcome);
    answer.text.push_str(&quota::lines(quota.as_ref()));
    if let Some(quota) = quota {
        answer.json.insert("quota".to_owned(), quota);
    }
    Ok(answer)
}

fn told(
    view: &View<'_>,
    caller: &Caller,
    name: &str,
    outcome: Result<Verdict, Failure>,
) -> crate::engine::Answer {
    let policy = &view.in_force.policy;
    let facts = Facts::new()
        .with("principal", caller.principal.to_string())
        .with("operation", name.to_owned())
        .with("version", format!("{:016x}", policy.version()));
    match outcome {
        Ok(verdict) => {
            let why = verdict.why.sentence(policy);
            let text = format!("{} {name}: {} ({why})", caller.principal, verdict.tier);
            facts
                .with("tier", verdict.tier.word())
                .with("rule", verdict.why.name(policy))
                .with("why", why)
                .answer(text)
        }
        Err(failure) => {
            let tier = if failure.kind == Kind::PolicyDenied { Some(Tier::Blocked.word()) } else { None };
            let text = format!("{} {name}: {failure}", caller.principal);
            facts
                .maybe("tier", tier)
                .with("kind", failure.kind.code())
                .with("why", failure.detail.clone())
                .maybe("rule", failure.facts.get("rule").cloned())
                .answer(text)
        }
    }
}
