//! The engine and the types of a call. Owns a workspace; knows no protocol.

use std::sync::Arc;

use serde_json::{Map, Value};
use stead_path::RelPath;

use crate::{
    approval::{ApprovalAnswer, ApprovalDecision, ApprovalMode},
    call_options::CallOptions,
    caller::Caller,
    control::CallControl,
    cost::{self, CostClass, CostModel},
    errors::{Error, ErrorKind},
    ops, pipeline,
    seen_files::SeenFileCache,
    workspace::Workspace,
};

/// One request from a protocol.
pub struct Call<'a> {
    /// The authenticated caller and its grants.
    pub caller: &'a Caller,
    /// The operation's name on the wire.
    pub operation: &'a str,
    /// The operation's arguments.
    pub arguments: Map<String, Value>,
    /// The caller's idempotency key. A repeated key never changes anything twice.
    pub idempotency_key: Option<&'a str>,
    /// Options set by the caller's dialect.
    pub options: CallOptions,
    /// Deadline, cancellation, progress.
    pub control: CallControl<'a>,
}

impl<'a> Call<'a> {
    /// A call with default options, deadline and no idempotency key.
    pub fn new(caller: &'a Caller, operation: &'a str, arguments: Map<String, Value>) -> Self {
        Self {
            caller,
            operation,
            arguments,
            idempotency_key: None,
            options: CallOptions::default(),
            control: CallControl::default(),
        }
    }
}

/// The result of a call: JSON for programs and a compact text for models and people.
#[derive(Debug, Clone, PartialEq)]
pub struct CallOutcome {
    /// The result as a JSON object.
    pub json: Map<String, Value>,
    /// The result as text.
    pub text: String,
    /// File contents before and after, if the options request them.
    pub before_after: Vec<BeforeAfterBytes>,
    /// The session that the conversation continues in, if the call changed it.
    pub session_switch: Option<SessionSwitch>,
}

/// The session that a conversation continues in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionSwitch {
    /// A newly created session.
    Enter(String),
    /// The conversation's original session.
    Leave,
}

impl CallOutcome {
    #[must_use]
    pub(crate) fn with_before_after(mut self, before_after: impl IntoIterator<Item = BeforeAfterBytes>) -> Self {
        self.before_after.extend(before_after);
        self
    }
}

/// The content of one file before and after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeAfterBytes {
    /// The file's path.
    pub path: RelPath,
    /// The content before the call, or the content that was read.
    pub before: Option<Vec<u8>>,
    /// The content after the call, if the call changed it.
    pub after: Option<Vec<u8>>,
}

/// Runs calls on one workspace.
#[derive(Clone)]
pub struct Engine {
    workspace: Arc<dyn Workspace>,
    approval_mode: ApprovalMode,
    stale_reads: Arc<ops::StaleReadTracker>,
    seen_files: Arc<SeenFileCache>,
}

impl Engine {
    /// An engine that asks a person wherever the policy requires approval.
    pub fn new(workspace: Arc<dyn Workspace>) -> Self {
        Self {
            workspace,
            approval_mode: ApprovalMode::AskPerson,
            stale_reads: Arc::default(),
            seen_files: Arc::default(),
        }
    }

    /// Sets how calls that need approval are handled.
    #[must_use]
    pub fn with_approval_mode(mut self, mode: ApprovalMode) -> Self {
        self.approval_mode = mode;
        self
    }

    /// How calls that need approval are handled.
    pub fn approval_mode(&self) -> ApprovalMode {
        self.approval_mode
    }

    /// The workspace that the calls run on.
    pub fn workspace(&self) -> &dyn Workspace {
        &*self.workspace
    }

    /// Whether the policy blocks a tool for this caller on every path, so that it need not be offered. An invalid
    /// policy hides no tool; it refuses the call instead.
    pub fn is_tool_always_blocked(&self, caller: &Caller, operation: &str, tool: Option<&str>) -> bool {
        let active = self.workspace.active_policy();
        active.is_ok_and(|active| active.policy.always_blocks(&caller.principal, operation, tool))
    }

    /// The expected duration of a call, for choosing a thread.
    pub fn cost_class(&self, operation: &str, arguments: &Map<String, Value>, options: &CallOptions) -> CostClass {
        let cost_model = ops::find_operation(operation).map_or(CostModel::AlwaysLong, |row| row.cost_model);
        cost::classify_cost(&*self.workspace, cost_model, arguments, &options.path_spelling)
    }

    /// The number of bytes a call is likely to load, for bounding memory use.
    pub fn estimate_bytes(&self, operation: &str, arguments: &Map<String, Value>, options: &CallOptions) -> u64 {
        let cost_model = ops::find_operation(operation).map_or(CostModel::AlwaysLong, |row| row.cost_model);
        cost::estimate_bytes(&*self.workspace, cost_model, arguments, &options.path_spelling)
    }

    /// Accepts a client's answer to an approval that its own caller requested. Refused unless the operator chose
    /// [`ApprovalMode::TrustClient`].
    pub fn answer_approval_as_client(
        &self,
        caller: &Caller,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<(), Error> {
        let own = self.workspace.approval(id)?;
        let is_own = own.is_some_and(|approval| approval.request.principal == caller.principal.to_string());
        if self.approval_mode != ApprovalMode::TrustClient || !is_own {
            return Err(Error::new(ErrorKind::PolicyDenied, "the client cannot answer this approval"));
        }
        let answer = ApprovalAnswer { id: id.to_owned(), decision, reason: Some("answered by the client".to_owned()) };
        pipeline::record_client_answer(&*self.workspace, caller, &answer)
    }

    /// Runs one call through the pipeline. Every call leaves exactly one journal entry.
    pub fn call(&self, call: &Call<'_>) -> Result<CallOutcome, Error> {
        self.stale_reads.before_call(&*self.workspace, call);
        pipeline::run_call(&*self.workspace, self.approval_mode, &self.seen_files, call)
            .map(|outcome| self.stale_reads.after_call(&*self.workspace, call, outcome))
    }
}
