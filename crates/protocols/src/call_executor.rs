//! Runs the calls of all protocols. A long call runs on its own thread so that the connection stays responsive, and is
//! cancelled when no one waits for it any more. All protocols share these limits.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use stead_engine::{
    Call, CallControl, CallOptions, CallOutcome, CallProgress, Caller, CancelToken, CostClass, Engine, Error,
    SessionSwitch,
};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::{
    call_recorder,
    limits::{CALLS_WAITING_MAX, CALLS_WORKING_MAX},
    progress::ProgressSender,
};

/// Unit in which the memory of calls is counted.
const MEMORY_UNIT_BYTES: usize = 1 << 10;

fn call_deadline(cost_class: CostClass) -> Duration {
    match cost_class {
        CostClass::Inline | CostClass::Short | CostClass::Long => stead_engine::limits::DEFAULT_CALL_DEADLINE,
        CostClass::Waiting => {
            stead_engine::limits::DEFAULT_CALL_DEADLINE
                + Duration::from_millis(stead_engine::limits::CHANGES_WAIT_MS_MAX)
        }
    }
}

/// A call as the client made it, before execution.
pub(crate) struct CallRequest {
    pub(crate) caller: Caller,
    pub(crate) operation: String,
    pub(crate) arguments: Map<String, Value>,
    pub(crate) options: CallOptions,
    pub(crate) idempotency_key: Option<String>,
    /// How long the call may wait for an approval.
    pub(crate) approval_wait_ms: u64,
}

/// The session of a connection: the one it started with, or one that was begun or resumed later.
#[derive(Debug, Default)]
pub(crate) struct ConversationSession(Mutex<Option<String>>);

impl ConversationSession {
    pub(crate) fn with_session(session: Option<String>) -> Self {
        Self(Mutex::new(session))
    }

    pub(crate) fn apply_to(&self, mut caller: Caller) -> Caller {
        if let Some(session) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            caller.session.clone_from(session);
        }
        caller
    }

    /// Updates the session after a call that began or ended one.
    pub(crate) fn track_session_switch(&self, result: &Result<CallOutcome, Error>) {
        let session = match result.as_ref().ok().and_then(|outcome| outcome.session_switch.as_ref()) {
            None => return,
            Some(SessionSwitch::Enter(session)) => Some(session.clone()),
            Some(SessionSwitch::Leave) => None,
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }
}

/// Whether other requests of the client are pending beside a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherRequests {
    None,
    Waiting,
}

/// Why a call ended without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallAbortError {
    #[error("internal error: the call panicked; committed changes are in the history")]
    Panicked,
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// Limits shared by all clients of one workspace.
#[derive(Clone)]
pub(crate) struct WorkspaceCallLimit {
    working_calls: Arc<Semaphore>,
    waiting_calls: Arc<Semaphore>,
}

impl WorkspaceCallLimit {
    /// Allows `calls_max` working calls, and as many waiting ones.
    pub(crate) fn new(calls_max: usize) -> Self {
        Self { working_calls: Arc::new(Semaphore::new(calls_max)), waiting_calls: Arc::new(Semaphore::new(calls_max)) }
    }

    /// Whether a client still shares this limit.
    pub(crate) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.working_calls) > 1
    }

    fn semaphore_for(&self, cost_class: CostClass) -> &Arc<Semaphore> {
        match cost_class {
            CostClass::Inline | CostClass::Short | CostClass::Long => &self.working_calls,
            CostClass::Waiting => &self.waiting_calls,
        }
    }
}

/// The calls that one client may run at once.
#[derive(Debug, Clone)]
pub(crate) struct ClientCallSlots {
    working_calls: Arc<Semaphore>,
    waiting_calls: Arc<Semaphore>,
    /// Limits shared with the other clients, if there are any.
    shared: Option<SharedCallLimits>,
}

#[derive(Debug, Clone)]
struct SharedCallLimits {
    /// Waiting calls of all clients. Each occupies a thread.
    waiting_calls: Arc<Semaphore>,
    /// Memory that running calls use, of this client and of all clients, in units.
    memory: [Arc<Semaphore>; 2],
    client_memory_units: u32,
}

/// Limits over all clients: waiting calls, and the memory of working calls.
#[derive(Debug, Clone)]
pub(crate) struct GlobalCallLimits {
    waiting_calls: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl GlobalCallLimits {
    pub(crate) fn new(waiting: usize, bulk_bytes: usize) -> Self {
        let semaphore = |count| Arc::new(Semaphore::new(count));
        Self { waiting_calls: semaphore(waiting), memory: semaphore(bulk_bytes / MEMORY_UNIT_BYTES) }
    }
}

/// Held while a call runs.
type CallPermits = Vec<OwnedSemaphorePermit>;

impl ClientCallSlots {
    /// Slots for one of many clients, bounded by its own memory limit and the global limits.
    pub(crate) fn for_client(global: &GlobalCallLimits, bulk_bytes: usize) -> Self {
        let units = bulk_bytes / MEMORY_UNIT_BYTES;
        let memory = [Arc::new(Semaphore::new(units)), global.memory.clone()];
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Self {
            shared: Some(SharedCallLimits {
                waiting_calls: global.waiting_calls.clone(),
                memory,
                client_memory_units: units,
            }),
            ..Self::default()
        }
    }
}

impl ClientCallSlots {
    /// Acquires permits for a call, the client's own first, so that a waiting client holds no shared permit.
    async fn acquire(
        &self,
        cost_class: CostClass,
        workspace_limit: Option<&WorkspaceCallLimit>,
        weight: impl FnOnce() -> u64,
    ) -> Result<CallPermits, AcquireError> {
        let own = match cost_class {
            CostClass::Inline | CostClass::Short | CostClass::Long => &self.working_calls,
            CostClass::Waiting => &self.waiting_calls,
        };
        let mut permits = vec![own.clone().acquire_owned().await?];
        if let Some(workspace_limit) = workspace_limit {
            permits.push(workspace_limit.semaphore_for(cost_class).clone().acquire_owned().await?);
        }
        let Some(shared) = &self.shared else { return Ok(permits) };
        match cost_class {
            CostClass::Inline | CostClass::Short => {}
            CostClass::Waiting => permits.push(shared.waiting_calls.clone().acquire_owned().await?),
            CostClass::Long => {
                let units = usize::try_from(weight()).unwrap_or(usize::MAX).div_ceil(MEMORY_UNIT_BYTES);
                // A call larger than the whole limit takes all of it.
                let units = u32::try_from(units).unwrap_or(u32::MAX).min(shared.client_memory_units);
                for semaphore in shared.memory.iter().filter(|_| units > 0) {
                    permits.push(semaphore.clone().acquire_many_owned(units).await?);
                }
            }
        }
        Ok(permits)
    }
}

impl Default for ClientCallSlots {
    fn default() -> Self {
        Self {
            working_calls: Arc::new(Semaphore::new(CALLS_WORKING_MAX)),
            waiting_calls: Arc::new(Semaphore::new(CALLS_WAITING_MAX)),
            shared: None,
        }
    }
}

/// Runs calls, a bounded number at once.
pub(crate) struct CallExecutor {
    engine: Engine,
    slots: ClientCallSlots,
    workspace_limit: Option<WorkspaceCallLimit>,
}

impl CallExecutor {
    pub(crate) fn new(engine: Engine) -> Self {
        Self::with_slots(engine, ClientCallSlots::default())
    }

    pub(crate) fn with_slots(engine: Engine, slots: ClientCallSlots) -> Self {
        Self { engine, slots, workspace_limit: None }
    }

    pub(crate) fn with_workspace_limit(mut self, workspace_limit: WorkspaceCallLimit) -> Self {
        self.workspace_limit = Some(workspace_limit);
        self
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn cost_class(&self, request: &CallRequest) -> CostClass {
        if request.approval_wait_ms > 0 {
            return CostClass::Waiting;
        }
        self.engine.cost_class(&request.operation, &request.arguments, &request.options)
    }

    /// Runs one call to completion and records it. The call is cancelled when `unwanted` resolves; progress goes to
    /// `progress`.
    pub(crate) async fn run(
        &self,
        request: CallRequest,
        cost_class: CostClass,
        other_requests: OtherRequests,
        progress: Option<ProgressSender>,
        unwanted: impl Future<Output = ()>,
    ) -> Result<Result<CallOutcome, Error>, CallAbortError> {
        let operation = call_recorder::operation_name(&request.operation);
        let outcome = self.run_to_completion(request, cost_class, other_requests, progress, unwanted).await;
        call_recorder::record_call(operation, &outcome);
        outcome
    }

    async fn run_to_completion(
        &self,
        request: CallRequest,
        cost_class: CostClass,
        other_requests: OtherRequests,
        progress: Option<ProgressSender>,
        unwanted: impl Future<Output = ()>,
    ) -> Result<Result<CallOutcome, Error>, CallAbortError> {
        let cancel = CancelToken::default();
        // A dropped future cancels its call.
        let _dropped = CancelOnDrop(cancel.clone());
        let job = BlockingCall { engine: self.engine.clone(), request, cancel: cancel.clone(), cost_class, progress };
        // Short calls run inline because a thread switch costs more. With other requests pending, threads allow group
        // commit.
        let here = cost_class == CostClass::Inline
            || (cost_class == CostClass::Short && other_requests == OtherRequests::None);
        if here {
            return std::panic::catch_unwind(AssertUnwindSafe(|| job.run())).map_err(|_| CallAbortError::Panicked);
        }
        let weight = || job.engine.estimate_bytes(&job.request.operation, &job.request.arguments, &job.request.options);
        let permit = self
            .slots
            .acquire(cost_class, self.workspace_limit.as_ref(), weight)
            .await
            .map_err(|_| CallAbortError::ShuttingDown)?;
        // The permit is returned together with the result, because results that wait to be sent occupy memory too.
        let mut task = tokio::task::spawn_blocking(move || (job.run(), permit));
        let outcome = tokio::select! {
            biased;
            outcome = &mut task => outcome,
            () = unwanted => {
                cancel.cancel();
                task.await
            }
        };
        outcome.map(|(outcome, _permit)| outcome).map_err(|_| CallAbortError::Panicked)
    }
}

/// Cancels a call when dropped. Has no effect on a call that has ended.
struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// A call with everything it needs to run on another thread.
struct BlockingCall {
    engine: Engine,
    request: CallRequest,
    cancel: CancelToken,
    cost_class: CostClass,
    progress: Option<ProgressSender>,
}

impl BlockingCall {
    fn run(self) -> Result<CallOutcome, Error> {
        let report = |progress: CallProgress| {
            if let Some(sender) = &self.progress {
                sender.send_replace(progress);
            }
        };
        let listener: Option<&(dyn Fn(CallProgress) + Sync)> = self.progress.is_some().then_some(&report);
        let request = self.request;
        self.engine.call(&Call {
            caller: &request.caller,
            operation: &request.operation,
            arguments: request.arguments,
            idempotency_key: request.idempotency_key.as_deref(),
            options: request.options,
            control: CallControl::new(Instant::now() + call_deadline(self.cost_class), self.cancel, listener)
                .with_approval_wait(request.approval_wait_ms),
        })
    }
}
