//! `approvals`: what was asked of people, and what they said. An agent sees what it asked itself.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::{Facts, iso_utc};
use crate::{
    approval::{Approval, ApprovalFilter, ApprovalState, plan_brief},
    caller::Principal,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
};

/// The arguments of `approvals`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approvals {
    id: Option<String>,
    #[serde(default)]
    state: Wanted,
}

/// Which of them.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    #[default]
    Pending,
    All,
}

impl Operation for Approvals {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        Ok(Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        let answer = match &self.id {
            Some(id) => {
                let approval = one(view, id)?;
                let text = line(&approval);
                Facts::new().extended(object(&approval, Whole::Yes)).answer(text)
            }
            None => {
                let state = match self.state {
                    Wanted::Pending => Some(ApprovalState::Pending),
                    Wanted::All => None,
                };
                let filter = ApprovalFilter {
                    principal: seen_by(view),
                    state,
                    limit: limits::APPROVALS_PAGE,
                    call: None,
                };
                let found = view.workspace().approvals(&filter)?;
                let lines: Vec<String> = found.iter().map(line).collect();
                let text =
                    if lines.is_empty() { "nothing waits for a person".to_owned() } else { lines.join("\n") };
                let rows: Vec<Value> =
                    found.iter().map(|approval| object(approval, Whole::No).into()).collect();
                Facts::new()
                    .with("approvals", rows)
                    .with("truncated", found.len() >= limits::APPROVALS_PAGE)
                    .answer(text)
            }
        };
        Ok(Planned::Read { answer, bytes: 0 })
    }
}

/// Whose approvals a caller sees; nothing means everybody's.
fn seen_by(view: &View<'_>) -> Option<String> {
    match &view.caller.principal {
        Principal::Agent(_) => Some(view.caller.principal.to_string()),
        Principal::User(_) | Principal::System | Principal::Outside => None,
    }
}

/// One approval that the caller may see.
pub(super) fn one(view: &View<'_>, id: &str) -> Result<Approval, Failure> {
    let found = view.workspace().approval(id)?;
    let own = seen_by(view);
    let seen = found.filter(|approval| own.as_ref().is_none_or(|own| approval.asked.principal == *own));
    seen.ok_or_else(|| {
        let shown: String = id.chars().take(64).collect();
        Failure::new(Kind::NotFound, format!("there is no approval '{shown}'"))
            .hint("call approvals to see what waits; a question is kept with the workspace it was asked in")
    })
}

/// Whether the plan is shown as well.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    /// With its differences.
    Yes,
    /// No.
    No,
}

/// One approval for machines.
pub(super) fn object(approval: &Approval, whole: Whole) -> Map<String, Value> {
    let plan = match whole {
        Whole::Yes => serde_json::from_str::<Value>(&approval.asked.shown).ok(),
        Whole::No => None,
    };
    let asked = &approval.asked;
    let answered = approval.answered.as_ref();
    Facts::new()
        .with("id", approval.id.clone())
        .with("state", approval.state.word())
        .with("principal", asked.principal.clone())
        .with("session", asked.session.clone())
        .with("operation", asked.operation.clone())
        .maybe("tool", asked.tool.clone())
        .with("why", asked.why.clone())
        .with("created", iso_utc(approval.created_ms))
        .with("expires", iso_utc(approval.expires_ms))
        .with("digest", asked.plan.to_string())
        .maybe("answered_by", answered.map(|answered| answered.by.clone()))
        .maybe("reason", answered.and_then(|answered| answered.reason.clone()))
        .maybe("used", approval.used)
        .maybe("plan", plan)
        .object()
}

/// One approval in one line: who wants what, and what that would do.
pub(super) fn line(approval: &Approval) -> String {
    let shown: Value = serde_json::from_str(&approval.asked.shown).unwrap_or_default();
    format!(
        "{} {}: {} wants {}, to {}, until {}",
        approval.id,
        approval.state.word(),
        approval.asked.principal,
        approval.wanted(),
        plan_brief(&shown),
        iso_utc(approval.expires_ms)
    )
}
