//! Approvals: a person's consent to one exact plan. Owns the approval types, the digests that bind an approval to its
//! plan, and the pipeline step that runs, delays or refuses a call that needs approval.
//!
//! An approval is valid for one principal, one call and one plan, and for a single commit. Only a person who presented
//! the approver secret can answer a request. If the operator allows it, the client that made the call can also answer.

mod digest;
mod gate;
mod preview;

use stead_journal::Digest;

pub(crate) use digest::{ApprovalBindingDigests, digest_call, digest_plan, digest_targets};
pub(crate) use gate::{ApprovalCheckResult, ApprovalWaitResult, MissingApproval, request_and_wait};
pub(crate) use preview::preview_plan;
pub use preview::{render_plan_lines, summarize_plan};

/// A stored approval request with its state and answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The id of the approval.
    pub id: String,
    /// The request as the call made it.
    pub request: ApprovalRequest,
    /// When approval was requested, in unix milliseconds.
    pub created_ms: i64,
    /// When the approval expires, in unix milliseconds.
    pub expires_ms: i64,
    /// Whether the request is answered, and whether the call has run.
    pub state: ApprovalState,
    /// The person's answer, if a person has answered.
    pub resolution: Option<ApproverAndReason>,
    /// The number of the journal entry whose call used the approval.
    pub used_by_entry: Option<u64>,
}

impl Approval {
    /// The name that the caller used for the call: the dialect's tool, or else the operation.
    pub fn tool_or_operation(&self) -> &str {
        self.request.tool.as_deref().unwrap_or(&self.request.operation)
    }
}

/// The principal who answered a request, and the reason for the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApproverAndReason {
    /// The principal who answered.
    pub resolved_by: String,
    /// The reason that the principal gave.
    pub reason: Option<String>,
}

/// The state of an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// The request is not answered yet.
    Pending,
    /// A person approved the plan, and the call may run once.
    Approved,
    /// A person denied the call.
    Denied,
    /// The call ran and used up the approval.
    Used,
    /// The files or the policy changed, and a newer request replaced this one.
    Stale,
    /// The request expired before it was answered or used.
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

    /// The word for the state in stored rows and results.
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

/// A request for approval. If earlier requests of the same principal for the same call but with a different plan are
/// pending or approved, the new request makes them stale.
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
    /// The digest of operation, tool and arguments.
    pub call_digest: Digest,
    /// The digest of the call, of every planned change with its expectation, and of the policy version.
    pub plan_digest: Digest,
    /// The plan preview that a person sees, as JSON.
    pub plan_preview: String,
    /// A description of the rule that requires approval.
    pub reason: String,
    /// The version of the policy that requires approval.
    pub policy_version: u64,
    /// How long the request can be answered and its approval can be used, in milliseconds.
    pub valid_for_ms: i64,
}

/// A person's answer to an approval request.
#[derive(Debug, Clone)]
pub struct ApprovalAnswer {
    /// The id of the approval.
    pub id: String,
    /// Whether the call may run.
    pub decision: ApprovalDecision,
    /// The reason for the decision, if given.
    pub reason: Option<String>,
}

/// The decision on an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The call may run once, with exactly the approved plan.
    Approve,
    /// The call may not run.
    Deny,
}

/// Selects approvals. The result is sorted from the newest to the oldest.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// Selects only requests of this principal.
    pub principal: Option<String>,
    /// Selects only requests for the call with this digest.
    pub call_digest: Option<Digest>,
    /// Selects only approvals in this state.
    pub state: Option<ApprovalState>,
    /// The largest number of approvals to return.
    pub limit: usize,
}

/// How calls that need approval are handled. The operator chooses the mode when the server starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// Approval is requested from a person. Until the person approves, the call waits or is refused.
    #[default]
    AskPerson,
    /// The call is refused, and no approval is requested.
    DenyAll,
    /// The call runs as if approved, and the journal records [`ALLOWED_BY_OPERATOR`] as its approval.
    AllowAll,
    /// Approval is requested, and the client may answer the request in place of a person.
    TrustClient,
}

/// The journal records this word in place of an approval id if the operator allows all calls.
pub const ALLOWED_BY_OPERATOR: &str = "operator";
