//! Approvals: a person's consent to one exact plan. Owns the approval types, their binding to a plan, and the step
//! that runs, delays or refuses a call that needs one.
//!
//! An approval is valid for one principal, one call and one plan, and the commit uses it up. No caller of a protocol
//! can answer a request: only a person with the approver's grant can.

mod digest;
mod gate;
mod preview;
mod preview_text;

use stead_journal::Digest;

pub(crate) use digest::{ApprovalBinding, digest_call, digest_plan, digest_targets};
pub(crate) use gate::{ApprovalCheck, ApprovalWaitResult, MissingApproval, request_and_wait};
pub(crate) use preview::preview_plan;
pub use preview_text::{render_plan_lines, summarize_plan};

/// An approval request and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The id of the approval.
    pub id: String,
    /// The request for approval.
    pub request: ApprovalRequest,
    /// When it was requested, in unix milliseconds.
    pub created_ms: i64,
    /// When it expires, in unix milliseconds.
    pub expires_ms: i64,
    /// The current state.
    pub state: ApprovalState,
    /// The person's answer, if any.
    pub resolution: Option<ApprovalResolution>,
    /// The journal entry that used it.
    pub used_by_entry: Option<u64>,
}

impl Approval {
    /// The name by which the caller knows the call: the dialect's tool, or the operation.
    pub fn tool_or_operation(&self) -> &str {
        self.request.tool.as_deref().unwrap_or(&self.request.operation)
    }
}

/// Who answered a request, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalResolution {
    /// The principal who answered.
    pub resolved_by: String,
    /// The reason given.
    pub reason: Option<String>,
}

/// The state of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// Not answered yet.
    Pending,
    /// Approved; the call may run once.
    Approved,
    /// Denied.
    Denied,
    /// The call ran.
    Used,
    /// The files or the policy changed, and a newer request replaced this one.
    Stale,
    /// Past its expiry time.
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

    /// The state's name on the wire.
    pub fn as_str(self) -> &'static str {
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

/// A request for approval. A pending or approved request for the same principal and call with a different plan becomes
/// stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    /// The principal of the call.
    pub principal: String,
    /// The session of the call.
    pub session: String,
    /// The operation's name.
    pub operation: String,
    /// The dialect's tool name.
    pub tool: Option<String>,
    /// Digest of the call: operation, tool and arguments.
    pub call_digest: Digest,
    /// Digest of the plan: the call, every change with its expectation, and the policy.
    pub plan_digest: Digest,
    /// The plan preview, as JSON.
    pub plan_preview: String,
    /// The rule that requires approval.
    pub reason: String,
    /// Version of the policy.
    pub policy_version: u64,
    /// How long the request stays valid.
    pub valid_for_ms: i64,
}

/// A person's answer.
#[derive(Debug, Clone)]
pub struct ApprovalAnswer {
    /// The id of the approval.
    pub id: String,
    /// The decision.
    pub decision: ApprovalDecision,
    /// The reason, if given.
    pub reason: Option<String>,
}

/// The decision on an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The call may run once, as planned.
    Approve,
    /// The call may not run.
    Deny,
}

/// Selects approvals; newest first.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Only requests of this principal.
    pub principal: Option<String>,
    /// Only requests for this call.
    pub call_digest: Option<Digest>,
    /// Only approvals in this state.
    pub state: Option<ApprovalState>,
    /// Most approvals to return.
    pub limit: usize,
}

/// How calls that need approval are handled. Chosen by the operator when the server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// Requests approval; the call waits or is refused until it is answered.
    #[default]
    AskPerson,
    /// Refuses the call without a request.
    DenyAll,
    /// Runs the call as if approved, and records that in the journal.
    AllowAll,
    /// Requests approval, and accepts the client's reply as the person's answer.
    TrustClient,
}

/// Recorded in place of an approval id when the operator allows all calls.
pub const ALLOWED_BY_OPERATOR: &str = "operator";
