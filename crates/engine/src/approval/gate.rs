//! The step of the pipeline where a person is asked. No lock is held while anybody waits.

use std::time::Instant;

use serde_json::Value;

use super::{Approval, ApprovalAsk, ApprovalFilter, ApprovalState, Asking, Binding};
use crate::{
    engine::{Call, Held},
    failure::{Failure, Kind},
    limits,
    policy::Verdict,
    view::View,
};

/// How a call that needs approval goes on.
pub(crate) enum Gate {
    /// It runs with this approval, which the commit uses up.
    Open(String),
    /// It runs because the operator lets everything run.
    OperatorOpened,
    /// It cannot run now. The locks go first, then [`settle`] asks.
    Closed(Question),
}

/// What must be settled before a call can run.
pub(crate) struct Question {
    binding: Binding,
    verdict: Verdict,
    shown: Value,
    /// What a file holds and would hold, where the terms want the bytes.
    pub(crate) evidence: Option<Box<Held>>,
}

impl Gate {
    /// Looks whether a person has said yes to exactly this.
    pub(crate) fn check(
        view: &View<'_>,
        asking: Asking,
        binding: Binding,
        verdict: Verdict,
        shown: impl FnOnce() -> Value,
    ) -> Result<Self, Failure> {
        match asking {
            Asking::Allow => return Ok(Gate::OperatorOpened),
            Asking::Deny => {
                return Err(Failure::new(
                    Kind::ApprovalDenied,
                    format!(
                        "this needs a person's approval, and this server asks nobody: {}",
                        why(view, verdict)
                    ),
                )
                .hint("ask the person you work for to make this change"));
            }
            Asking::Ask | Asking::Client => {}
        }
        let known = known(view, &binding)?;
        let fitting = |approval: &&Approval| {
            approval.asked.plan == binding.plan && approval.state == ApprovalState::Approved
        };
        match known.iter().find(fitting) {
            Some(approval) => Ok(Gate::Open(approval.id.clone())),
            None => Ok(Gate::Closed(Question { binding, verdict, shown: shown(), evidence: None })),
        }
    }
}

fn known(view: &View<'_>, binding: &Binding) -> Result<Vec<Approval>, Failure> {
    view.workspace().approvals(&ApprovalFilter {
        principal: Some(view.caller.principal.to_string()),
        call: Some(binding.call),
        state: None,
        limit: limits::APPROVALS_PER_CALL_MAX,
    })
}

fn why(view: &View<'_>, verdict: Verdict) -> String {
    verdict.why.sentence(&view.in_force.policy)
}

/// How a question was settled.
pub(crate) enum Settled {
    /// Somebody said yes while the call waited: it is planned again and runs.
    GoOn,
    /// It does not run now; the failure says what stands, the id names it.
    Refused(Failure, Option<String>),
}

/// Asks, if nobody has yet, and waits as long as the call allows. Holds no lock.
pub(crate) fn settle(view: &View<'_>, call: &Call<'_>, question: Question) -> Result<Settled, Failure> {
    let Question { binding, verdict, shown, evidence: _ } = question;
    let known = known(view, &binding)?;
    let same = known.iter().find(|approval| approval.asked.plan == binding.plan);
    let standing = match same.map(|approval| (approval, approval.state)) {
        Some((_, ApprovalState::Approved)) => return Ok(Settled::GoOn),
        Some((approval, ApprovalState::Denied)) => {
            return Ok(Settled::Refused(denied(approval), Some(approval.id.clone())));
        }
        Some((approval, ApprovalState::Pending)) => Some(approval.clone()),
        Some((_, ApprovalState::Used | ApprovalState::Stale | ApprovalState::Expired)) | None => None,
    };
    let outdated = known.iter().find(|approval| approval.state == ApprovalState::Approved).cloned();
    let approval = match standing {
        Some(approval) => approval,
        None => view.workspace().ask(&asked(view, call, binding, verdict, &shown))?,
    };
    if let Some(outdated) = outdated {
        let id = approval.id.clone();
        return Ok(Settled::Refused(stale(view, &outdated, &approval), Some(id)));
    }
    wait(view, call, approval, verdict)
}

fn asked(view: &View<'_>, call: &Call<'_>, binding: Binding, verdict: Verdict, shown: &Value) -> ApprovalAsk {
    let mut shown = shown.clone();
    shown["cause"] = verdict.why.cause(&view.in_force.policy);
    ApprovalAsk {
        principal: view.caller.principal.to_string(),
        session: view.caller.session.clone(),
        operation: call.operation.to_owned(),
        tool: call.terms.tool.clone(),
        call: binding.call,
        plan: binding.plan,
        shown: shown.to_string(),
        why: why(view, verdict),
        policy: view.in_force.policy.version(),
        lasting_ms: limits::APPROVAL_LASTS_MS,
    }
}

/// Waits for the answer as long as the call holds on.
fn wait(
    view: &View<'_>,
    call: &Call<'_>,
    mut approval: Approval,
    verdict: Verdict,
) -> Result<Settled, Failure> {
    let until = Instant::now() + call.control.hold();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let id = approval.id.clone();
            return Ok(Settled::Refused(pending(view, &approval, verdict), Some(id)));
        }
        call.control.check()?;
        let head = view.workspace().head()?;
        if let Some(now) = view.workspace().approval(&approval.id)? {
            approval = now;
        }
        match approval.state {
            ApprovalState::Approved => return Ok(Settled::GoOn),
            ApprovalState::Denied => {
                let id = approval.id.clone();
                return Ok(Settled::Refused(denied(&approval), Some(id)));
            }
            ApprovalState::Pending => {
                let slice = left.min(limits::APPROVAL_LOOK_EVERY);
                view.workspace().wait_after(head.number, Instant::now() + slice)?;
            }
            // Somebody else used it or asked anew; the call finds out by planning again.
            ApprovalState::Used | ApprovalState::Stale | ApprovalState::Expired => return Ok(Settled::GoOn),
        }
    }
}

/// The command that answers a question.
fn command(id: &str) -> String {
    format!("stead approvals approve {id}")
}

fn pending(view: &View<'_>, approval: &Approval, verdict: Verdict) -> Failure {
    let (id, why) = (&approval.id, why(view, verdict));
    Failure::new(Kind::ApprovalPending, format!("a person must approve this first ({id}): {why}"))
        .hint(format!(
            "ask the person you work for to run `{}` (or `deny`), then make the very same call again",
            command(id)
        ))
        .fact("approval", id.clone())
        .fact("expires_ms", approval.expires_ms)
        .fact("command", command(id))
        .fact("rule", verdict.why.name(&view.in_force.policy))
}

fn denied(approval: &Approval) -> Failure {
    let (by, reason) = match &approval.answered {
        Some(answered) => (answered.by.as_str(), answered.reason.as_deref()),
        None => ("somebody", None),
    };
    let said = reason.map_or_else(String::new, |reason| format!(": {reason}"));
    Failure::new(Kind::ApprovalDenied, format!("{by} refused this call ({}){said}", approval.id))
        .hint("do something else, or ask the person you work for why")
        .fact("approval", approval.id.clone())
        .fact("expires_ms", approval.expires_ms)
}

fn stale(view: &View<'_>, outdated: &Approval, approval: &Approval) -> Failure {
    let moved =
        if outdated.asked.policy == view.in_force.policy.version() { "the files" } else { "the policy" };
    Failure::new(
        Kind::ApprovalStale,
        format!("{} was for this call as it was planned then; {moved} changed since", outdated.id),
    )
    .hint(format!(
        "nothing was changed; a new approval was asked for: `{}`, then make the same call again",
        command(&approval.id)
    ))
    .fact("approval", approval.id.clone())
    .fact("outdated", outdated.id.clone())
    .fact("expires_ms", approval.expires_ms)
    .fact("command", command(&approval.id))
}
