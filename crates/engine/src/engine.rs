//! The engine, with the request, outcome and expected cost of a call.

use std::sync::Arc;

use serde::Serialize;
use stead_path::{RelPath, parse_path};

use crate::{
    administration::{self, AdministrationStore},
    approval::{ApprovalAnswer, ApprovalDecision, ApprovalMode},
    call_options::CallOptions,
    caller::Caller,
    control::CallControl,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{CallDurationFactor, OperationRun},
    ops::{self, OperationWithDefinition, ReplayedCallOutcome, StaleReadNotice},
    pipeline::{self, PipelineCall},
    plan::FileKind,
    recorded_arguments::UnredactedCallArguments,
    seen_files::SeenFileCache,
    unsaved::{FileLocatedAhead, UnsavedAndDraftNotices},
    workspace::Workspace,
    workspace_reader::WorkspaceReader,
};

/// The data of a call apart from its operation.
#[derive(Clone, Copy)]
pub struct CallMetadata<'a> {
    pub caller: &'a Caller,
    /// The caller's idempotency key; a call that repeats a key returns the first outcome and changes nothing.
    pub idempotency_key: Option<&'a str>,
    pub options: &'a CallOptions,
    pub control: &'a CallControl<'a>,
}

/// The reply of the engine to a call that succeeded.
#[derive(Debug)]
pub struct CallReply<T> {
    pub result: SuccessfulCallResult<T>,
    /// The number of the journal entry with the change of the call, if the call made a change.
    pub entry: Option<u64>,
    /// The content of the affected files before and after the call, if the options of the call request it.
    pub before_after: Vec<BeforeAfterBytes>,
    /// Later calls of the conversation belong to this session, if the call switched to it.
    pub session_switch: Option<ConversationSessionSwitch>,
    pub unsaved: UnsavedAndDraftNotices,
    pub changed_since_read: Vec<StaleReadNotice>,
}

impl<T> CallReply<T> {
    /// The outcome of the operation. A call without an idempotency key, whose change the engine applies itself, always
    /// has an outcome.
    pub fn into_outcome(self) -> Result<T, Error> {
        match self.result {
            SuccessfulCallResult::Done(outcome) => Ok(outcome),
            SuccessfulCallResult::AlreadyDone(_) | SuccessfulCallResult::LeftToEditor => Err(Error::no_outcome()),
        }
    }
}

/// The outcome of a call that succeeded.
#[derive(Debug)]
pub enum SuccessfulCallResult<T> {
    /// The call did what it asked for.
    Done(T),
    /// An earlier call with the same idempotency key did it.
    AlreadyDone(Box<ReplayedCallOutcome>),
    /// The call is allowed and recorded; the editor applies the change.
    LeftToEditor,
}

/// The session to which later calls of a conversation belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationSessionSwitch {
    /// Later calls of the conversation belong to this newly created session.
    Enter(String),
    /// Later calls of the conversation belong to its original session again.
    Leave,
}

/// The content of one file before and after a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeAfterBytes {
    pub path: RelPath,
    /// The file content before the call, or the content that the call read.
    pub before: Option<Vec<u8>>,
    /// The file content after the call; `None` if the call only read the file or removed it.
    pub after: Option<Vec<u8>>,
}

/// The engine, which runs calls on one workspace.
#[derive(Clone)]
pub struct Engine {
    workspace: Arc<dyn Workspace>,
    approval_mode: ApprovalMode,
    administration: Option<Arc<dyn AdministrationStore>>,
    stale_reads: Arc<ops::StaleReadNotifier>,
    seen_files: Arc<SeenFileCache>,
}

impl Engine {
    /// Creates an engine that requests approval from a person where the policy requires it.
    pub fn new(workspace: Arc<dyn Workspace>) -> Self {
        Self {
            workspace,
            approval_mode: ApprovalMode::AskPerson,
            administration: None,
            stale_reads: Arc::default(),
            seen_files: Arc::default(),
        }
    }

    /// Sets how the engine handles calls that need approval.
    #[must_use]
    pub fn with_approval_mode(mut self, mode: ApprovalMode) -> Self {
        self.approval_mode = mode;
        self
    }

    /// Sets the storage of the operations that administer; without one, these operations are unknown.
    #[must_use]
    pub fn with_administration(mut self, store: Arc<dyn AdministrationStore>) -> Self {
        self.administration = Some(store);
        self
    }

    /// How the engine handles calls that need approval.
    pub fn approval_mode(&self) -> ApprovalMode {
        self.approval_mode
    }

    /// The workspace on which the engine runs calls.
    pub fn workspace(&self) -> &dyn Workspace {
        &*self.workspace
    }

    pub(crate) fn reader(&self) -> WorkspaceReader<'_> {
        WorkspaceReader::new(&*self.workspace)
    }

    /// Whether the policy or a missing right blocks a tool for this caller on every path, so that the tool need not be
    /// offered. The result is `false` if the policy is invalid, because every call then fails with an error about the
    /// policy.
    pub fn is_tool_always_blocked(&self, caller: &Caller, operation: &str, tool: Option<&str>) -> bool {
        if ops::find_operation(operation).is_some_and(|row| administration::is_always_refused(row, caller)) {
            return true;
        }
        let active = self.workspace.active_policy();
        active.is_ok_and(|active| active.policy.always_blocks(&caller.principal, operation, tool))
    }

    /// Finds out how long a call will take. The forecast does not affect what the call does or returns.
    pub fn forecast(&self, factor: CallDurationFactor<'_>, options: &CallOptions) -> CallForecast {
        let is_small = |size: u64| size <= limits::INLINE_FILE_BYTES_MAX;
        let duration = match factor {
            CallDurationFactor::FileSize { path, bytes } => {
                let Some((file, size)) = self.locate_file(path, options) else { return CallForecast::LONG };
                if is_small(size) {
                    return CallForecast { duration: CallDurationClass::Inline, loaded_bytes: 0, file: Some(file) };
                }
                let loaded_bytes = bytes.and_then(requested_length).map_or(size, |length| length.min(size));
                return CallForecast { loaded_bytes, ..CallForecast::LONG };
            }
            CallDurationFactor::ContentBytes(length) if is_small(length as u64) => CallDurationClass::Short,
            CallDurationFactor::WaitMs(Some(1..)) => CallDurationClass::Waiting,
            CallDurationFactor::ContentBytes(_) | CallDurationFactor::WaitMs(_) | CallDurationFactor::Unknown => {
                CallDurationClass::Long
            }
        };
        CallForecast { duration, ..CallForecast::LONG }
    }

    fn locate_file(&self, path: &str, options: &CallOptions) -> Option<(FileLocatedAhead, u64)> {
        let parsed = parse_path(path, &self.workspace.profile().root_spellings, &options.path_spelling).ok()?;
        let file = FileLocatedAhead::locate(&self.reader(), parsed.path).ok()?;
        let stat = file.located.stat().filter(|stat| stat.kind == FileKind::File)?;
        Some((file, stat.size))
    }

    /// Records the answer of a client to an approval request for the client's own call. The answer of a client is
    /// refused unless the approval mode is [`ApprovalMode::TrustClient`].
    pub fn answer_approval_as_client(
        &self,
        caller: &Caller,
        id: &str,
        decision: ApprovalDecision,
    ) -> Result<(), Error> {
        let approval = self.workspace.approval(id)?;
        let is_own = approval.is_some_and(|approval| approval.request.principal == caller.principal.to_string());
        if self.approval_mode != ApprovalMode::TrustClient || !is_own {
            return Err(Error::new(
                ErrorKind::PolicyDenied,
                format!("this client cannot answer approval request {id}"),
            )
            .with_next_step(NextStep::person_command("approvals show", "see and answer it").with_word(id)));
        }
        let answer = ApprovalAnswer { id: id.to_owned(), decision, reason: Some("answered by the client".to_owned()) };
        pipeline::record_client_answer(&*self.workspace, caller, &answer)
    }

    /// Runs one call through the pipeline: authorization, planning, approval, commit and journal. Every call leaves
    /// exactly one journal entry.
    pub fn run<O: OperationWithDefinition>(
        &self,
        operation: O,
        call: &CallMetadata<'_>,
    ) -> Result<CallReply<O::Result>, Error> {
        let name = O::DEFINITION.name;
        let reader = self.reader();
        self.stale_reads.before_call(&reader, name, call);
        let arguments = UnredactedCallArguments::of_operation(&operation);
        let run = OperationRun::new(operation);
        let pipeline_call =
            PipelineCall { metadata: call, definition: &O::DEFINITION, operation: &run, arguments: &arguments };
        let ended = pipeline::run_call(
            &*self.workspace,
            self.administration.as_deref(),
            self.approval_mode,
            &self.seen_files,
            &pipeline_call,
        )?;
        let mut reply = CallReply::new(ended, run.into_outcome())?;
        reply.changed_since_read = self.stale_reads.after_call(&reader, name, call, reply.shown_file());
        Ok(reply)
    }

    /// Records a call that cannot run, because its operation is unknown or its arguments are invalid, and returns its
    /// error.
    pub fn refuse(&self, operation: &str, arguments: &impl Serialize, error: Error, call: &CallMetadata<'_>) -> Error {
        let definition = ops::find_operation(operation);
        let arguments = UnredactedCallArguments::of_operation(arguments);
        let recorded = match (&call.options.tool, definition) {
            (Some(_), _) => arguments.redacted_untranslated(),
            (None, definition) => arguments.redacted(definition.map_or(&[][..], |row| row.content_arguments)),
        };
        pipeline::refuse_call(&*self.workspace, call, definition.map_or("unknown", |row| row.name), recorded, error)
    }
}

/// What the engine finds out about a call before it runs.
pub struct CallForecast {
    /// The expected duration of the call, by which a host chooses a thread for it.
    pub duration: CallDurationClass,
    /// An estimate of the bytes that a long call loads into memory, by which a host can bound its memory use; zero if
    /// unknown.
    pub loaded_bytes: u64,
    /// The file that the call reads, so that a call that runs at once need not look it up again.
    pub(crate) file: Option<FileLocatedAhead>,
}

impl CallForecast {
    const LONG: Self = Self { duration: CallDurationClass::Long, loaded_bytes: 0, file: None };

    /// The forecast for a call that waits for an event or a person.
    pub const WAITING: Self = Self { duration: CallDurationClass::Waiting, ..Self::LONG };
}

/// The expected duration of a call, by which a host chooses a thread for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallDurationClass {
    /// The call reads one small file, which takes less time than a thread switch.
    Inline,
    /// The call changes one small file; a host should move it to another thread only under load.
    Short,
    /// The call may take long and therefore needs another thread.
    Long,
    /// The call spends most of its time waiting for an event.
    Waiting,
}

fn requested_length(bytes: &str) -> Option<u64> {
    let (first, last) = bytes.split_once('-')?;
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    Some(last.saturating_sub(first).saturating_add(1))
}
