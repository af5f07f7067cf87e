//! Approvals: a person's consent to one exact plan of a call. An approval permits one principal to run one call with
//! one plan, once. Only a person who presented the approver secret can answer an approval request. The operator can
//! also let clients answer approval requests.

mod digest;
mod gate;
mod preview;

use serde::{Deserialize, Serialize};
use stead_journal::Digest;

pub(crate) use digest::{ApprovalBindingDigests, ApprovalDigestWriter, digest_call, digest_plan, digest_targets};
pub(crate) use gate::{ApprovalCheckResult, ApprovalWaitResult, MissingApproval, request_and_wait};
pub use preview::ApprovalPlanPreview;
pub(crate) use preview::{preview_plan, preview_reads};

use crate::enum_words::enum_words;

/// A stored approval request with its state and answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    pub id: String,
    pub request: ApprovalRequest,
    pub created_ms: i64,
    pub expires_ms: i64,
    pub state: ApprovalState,
    pub resolution: Option<ApproverAndReason>,
    pub used_by_entry: Option<u64>,
}

impl Approval {
    /// The name of the tool that the client called, or of the operation if the client called no tool.
    pub fn tool_or_operation(&self) -> &str {
        self.request.tool.as_deref().unwrap_or(&self.request.operation)
    }
}

/// The principal who answered an approval request, and the reason for the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApproverAndReason {
    pub resolved_by: String,
    pub reason: Option<String>,
}

/// The state of an approval request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    Pending,
    Approved,
    Denied,
    Used,
    /// The approval request was replaced by a newer request, because the files or the policy changed.
    Stale,
    /// The approval request expired before it was answered or used.
    Expired,
}

enum_words! {
    ApprovalState:
    Pending "pending", Approved "approved", Denied "denied", Used "used", Stale "stale", Expired "expired",
}

/// The approval request of a call. If a call is repeated with a changed plan, its earlier open approval requests become
/// stale.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRequest {
    pub principal: String,
    pub session: String,
    pub operation: String,
    pub tool: Option<String>,
    pub call_digest: Digest,
    /// The digest of the call, its planned changes, the expected versions of the changed files, and the policy version.
    pub plan_digest: Digest,
    /// The preview of the planned changes, as JSON, that a person sees before answering the approval request.
    pub plan_preview: String,
    /// The description of the policy rule that requires approval.
    pub reason: String,
    pub policy_version: u64,
    pub valid_for_ms: i64,
}

/// A person's answer to an approval request.
#[derive(Debug, Clone)]
pub struct ApprovalAnswer {
    pub id: String,
    pub decision: ApprovalDecision,
    pub reason: Option<String>,
}

/// The decision on an approval request: approve or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalDecision {
    /// The person approves the call, which may run once with exactly the approved plan.
    Approve,
    /// The call is denied and must not run.
    Deny,
}

/// A filter for stored approvals, which are returned from the newest to the oldest.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    pub principal: Option<String>,
    pub call_digest: Option<Digest>,
    pub state: Option<ApprovalState>,
    pub limit: usize,
}

/// The server's treatment of calls that need approval, which the operator chooses at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalMode {
    /// The server asks a person for approval; until the person approves, the call waits or is refused.
    #[default]
    AskPerson,
    /// A call that needs approval is refused, and nobody is asked.
    DenyAll,
    /// A call that needs approval runs without one, and the journal records [`ALLOWED_BY_OPERATOR`] as its approval.
    AllowAll,
    /// The server requests approval, and the client may answer the request in place of a person.
    TrustClient,
}

/// The word that the journal records as approval id if the operator allows every call.
pub const ALLOWED_BY_OPERATOR: &str = "operator";
