//! A person's yes to one exact plan. Owns what an approval is, what it is bound to, and how a call that needs one goes
//! on: it runs with it, waits for it, or is refused with the question asked.
//!
//! Promises: an approval fits one principal, one call and one plan, and is used once, by the commit itself. No caller
//! that came through a face can answer: that takes a person with the approver's grant.

mod digest;
mod gate;
mod shown;
mod told;

use journal::Digest;

pub(crate) use digest::{Binding, of_call, of_plan, of_targets};
pub(crate) use gate::{Gate, Question, Settled, settle};
pub(crate) use shown::shown;
pub use told::{plan_brief, plan_lines};

/// One question to a person, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// Its id.
    pub id: String,
    /// What was asked.
    pub asked: ApprovalAsk,
    /// When it was asked, in unix milliseconds.
    pub created_ms: i64,
    /// When it ends, in unix milliseconds.
    pub expires_ms: i64,
    /// Where it stands now.
    pub state: ApprovalState,
    /// Who answered, and what they said.
    pub answered: Option<Answered>,
    /// The entry that used it.
    pub used: Option<u64>,
}

impl Approval {
    /// What the caller calls what it wants: the dialect's name, or the operation.
    pub fn wanted(&self) -> &str {
        self.asked.tool.as_deref().unwrap_or(&self.asked.operation)
    }
}

/// Who answered a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The principal.
    pub by: String,
    /// What they said.
    pub reason: Option<String>,
}

/// Where an approval stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// Nobody has answered.
    Pending,
    /// A person said yes; the call may run once.
    Approved,
    /// A person said no.
    Denied,
    /// The call ran.
    Used,
    /// The world or the policy moved, and another question took its place.
    Stale,
    /// Its time is over.
    Expired,
}

impl ApprovalState {
    /// Every state.
    pub const ALL: &[ApprovalState] = &[
        ApprovalState::Pending,
        ApprovalState::Approved,
        ApprovalState::Denied,
        ApprovalState::Used,
        ApprovalState::Stale,
        ApprovalState::Expired,
    ];

    /// The stable word.
    pub fn word(self) -> &'static str {
        match self {
            ApprovalState::Pending => "pending",
            ApprovalState::Approved => "approved",
            ApprovalState::Denied => "denied",
            ApprovalState::Used => "used",
            ApprovalState::Stale => "stale",
            ApprovalState::Expired => "expired",
        }
    }
}

/// A question to be kept. One that stands for the same principal and call and another plan becomes stale by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalAsk {
    /// Who asks.
    pub principal: String,
    /// The session it came through.
    pub session: String,
    /// The operation.
    pub operation: String,
    /// The dialect's name for it.
    pub tool: Option<String>,
    /// The call it is for: operation, tool and arguments.
    pub call: Digest,
    /// The plan it is for: the call, every change with what it expects, and the policy.
    pub plan: Digest,
    /// The plan as people see it, as JSON.
    pub shown: String,
    /// Why it is asked: the rule.
    pub why: String,
    /// Version of the policy that asks.
    pub policy: u64,
    /// How long it stands.
    pub lasting_ms: i64,
}

/// A person's answer.
#[derive(Debug, Clone)]
pub struct ApprovalAnswer {
    /// To which question.
    pub id: String,
    /// What was said.
    pub say: Say,
    /// Why.
    pub reason: Option<String>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// The call may run, once, as it was planned.
    Yes,
    /// It may not.
    No,
}

/// Which approvals are wanted; newest first.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Only of this principal.
    pub principal: Option<String>,
    /// Only for this call.
    pub call: Option<Digest>,
    /// Only in this state.
    pub state: Option<ApprovalState>,
    /// At most this many.
    pub limit: usize,
}

/// What is done about a call that needs a person's yes. The operator's choice when the server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asking {
    /// The question is asked and the call waits or is refused until it is answered.
    #[default]
    Ask,
    /// It is refused; nobody is asked.
    Deny,
    /// It runs as if approved, and the journal says so.
    Allow,
    /// It is asked, and what the client sends back counts as a person's answer.
    Client,
}

/// What the journal holds in the place of an approval when the operator allowed everything.
pub const ALLOWED_BY_OPERATOR: &str = "operator";
