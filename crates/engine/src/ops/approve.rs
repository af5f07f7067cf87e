//! `approve` and `deny`: a person answers what somebody asked. Only a user who has shown the approver's secret can; no
//! face gives that grant.

use serde::Deserialize;

use super::{
    answer::Facts,
    approvals::{Whole, line, object, one},
};
use crate::{
    approval::{Approval, ApprovalAnswer, Say},
    caller::{Approver, Principal},
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::Committed,
};

/// The arguments of `approve`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Approve {
    id: String,
    reason: Option<String>,
}

/// The arguments of `deny`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deny {
    id: String,
    reason: Option<String>,
}

impl Operation for Approve {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view).map(|()| Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        answered(view, &self.id, Say::Yes, self.reason.as_deref())
    }
}

impl Operation for Deny {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        refuse_others(view).map(|()| Vec::new())
    }

    fn plan(&self, view: &View<'_>, _targets: &[Target]) -> Result<Planned, Failure> {
        answered(view, &self.id, Say::No, self.reason.as_deref())
    }
}

/// Only a person with the approver's grant answers.
fn refuse_others(view: &View<'_>) -> Result<(), Failure> {
    match (&view.caller.principal, view.caller.grants.approver) {
        (Principal::User(_), Approver::Shown) => Ok(()),
        (Principal::User(_) | Principal::Agent(_) | Principal::System | Principal::Outside, _) => {
            Err(Failure::new(Kind::PolicyDenied, "only a person who shows the approver's secret can answer")
                .hint("ask the person you work for to run `stead approvals`"))
        }
    }
}

fn answered(view: &View<'_>, id: &str, say: Say, reason: Option<&str>) -> Result<Planned, Failure> {
    let approval = one(view, id)?;
    let reason = reason.map(|reason| reason.chars().take(limits::APPROVAL_REASON_CHARS_MAX).collect());
    let finish = Box::new(|approval: &Approval, committed: &Committed| {
        Facts::new().extended(object(approval, Whole::No)).committed(committed).line(line(approval))
    });
    Ok(Planned::Answer { answer: ApprovalAnswer { id: approval.id, say, reason }, finish })
}
