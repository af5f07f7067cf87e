//! Runs the engine calls of all protocols, enforces the limits that all protocols share, and reports the progress of
//! calls. A long call runs on its own thread, so that the connection stays responsive. A call is cancelled when its
//! client no longer waits for the result.

use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use stead_engine::{
    CallControl, CallDurationClass, CallForecast, CallProgress, Caller, CancelToken, ConversationSessionSwitch, Engine,
    limits::{CHANGES_WAIT_MS_MAX, DEFAULT_CALL_DEADLINE},
};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, oneshot, watch};

use crate::{
    call_recorder,
    limits::{CALLS_WAITING_MAX, CALLS_WORKING_MAX, PROGRESS_INTERVAL},
    prepared_call::{FinishedCall, PreparedCall},
};

/// The number of bytes of memory that one semaphore permit represents.
const MEMORY_UNIT_BYTES: usize = 1 << 10;

/// The deadline of a call that waits for an event is extended by the longest allowed wait.
fn call_deadline(cost_class: CallDurationClass) -> Duration {
    match cost_class {
        CallDurationClass::Inline | CallDurationClass::Short | CallDurationClass::Long => DEFAULT_CALL_DEADLINE,
        CallDurationClass::Waiting => DEFAULT_CALL_DEADLINE + Duration::from_millis(CHANGES_WAIT_MS_MAX),
    }
}

pub(crate) type CallResultOrAbortError<T> = Result<FinishedCall<T>, CallPanicOrShutdownError>;

pub(crate) struct CallRequest<T> {
    pub(crate) caller: Caller,
    pub(crate) call: PreparedCall<T>,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) approval_wait_ms: u64,
}

impl<T> CallRequest<T> {
    pub(crate) fn new(caller: Caller, call: PreparedCall<T>) -> Self {
        Self { caller, call, idempotency_key: None, approval_wait_ms: 0 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct ConnectionCurrentSession(Mutex<Option<String>>);

impl ConnectionCurrentSession {
    pub(crate) fn with_session(session: Option<String>) -> Self {
        Self(Mutex::new(session))
    }

    pub(crate) fn apply_to(&self, mut caller: Caller) -> Caller {
        if let Some(session) = &*crate::lock(&self.0) {
            caller.session.clone_from(session);
        }
        caller
    }

    pub(crate) fn track_session_switch<T>(&self, finished: &FinishedCall<T>) {
        let session = match &finished.session_switch {
            None => return,
            Some(ConversationSessionSwitch::Enter(session)) => Some(session.clone()),
            Some(ConversationSessionSwitch::Leave) => None,
        };
        *crate::lock(&self.0) = session;
    }
}

/// The calls of a client with several pending requests run on threads, so that these calls can share one commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherRequestsPending {
    None,
    Waiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallPanicOrShutdownError {
    #[error("internal error: the call panicked; call history to see whether it changed files")]
    Panicked,
    #[error("the server is shutting down; call again when it runs again")]
    ShuttingDown,
}

/// Calls that work on files and calls that wait for an event have separate semaphores.
#[derive(Debug, Clone)]
struct CallSemaphores {
    working: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl CallSemaphores {
    fn new(working_max: usize, waiting_max: usize) -> Self {
        Self { working: Arc::new(Semaphore::new(working_max)), waiting: Arc::new(Semaphore::new(waiting_max)) }
    }

    async fn acquire(&self, cost_class: CallDurationClass) -> Result<OwnedSemaphorePermit, AcquireError> {
        let semaphore = match cost_class {
            CallDurationClass::Inline | CallDurationClass::Short | CallDurationClass::Long => &self.working,
            CallDurationClass::Waiting => &self.waiting,
        };
        semaphore.clone().acquire_owned().await
    }
}

#[derive(Clone)]
pub(crate) struct WorkspaceConcurrentCallLimiter(CallSemaphores);

impl WorkspaceConcurrentCallLimiter {
    /// Allows `calls_max` concurrent calls that work on files, and equally many calls that wait for an event.
    pub(crate) fn new(calls_max: usize) -> Self {
        Self(CallSemaphores::new(calls_max, calls_max))
    }

    pub(crate) fn is_in_use(&self) -> bool {
        Arc::strong_count(&self.0.working) > 1
    }
}

#[derive(Debug, Clone)]
pub(crate) struct ClientCallSlots {
    client: CallSemaphores,
    /// The limits that all clients of a server share, or `None` if the server has a single client.
    shared: Option<CallLimitsSharedByClients>,
}

#[derive(Debug, Clone)]
struct CallLimitsSharedByClients {
    /// The waiting calls of all clients share a limit, because a call that waits for an event occupies a thread.
    waiting_calls: Arc<Semaphore>,
    /// One semaphore limits the memory of one client's calls; the other limits the memory of all clients' calls.
    memory: [Arc<Semaphore>; 2],
    client_memory_units: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct GlobalCallLimits {
    waiting_calls: Arc<Semaphore>,
    memory: Arc<Semaphore>,
}

impl GlobalCallLimits {
    pub(crate) fn new(waiting_max: usize, memory_bytes: usize) -> Self {
        let semaphore = |count| Arc::new(Semaphore::new(count));
        Self { waiting_calls: semaphore(waiting_max), memory: semaphore(memory_bytes / MEMORY_UNIT_BYTES) }
    }
}

impl ClientCallSlots {
    pub(crate) fn for_client(global: &GlobalCallLimits, memory_bytes: usize) -> Self {
        let units = memory_bytes / MEMORY_UNIT_BYTES;
        let shared = CallLimitsSharedByClients {
            waiting_calls: global.waiting_calls.clone(),
            memory: [Arc::new(Semaphore::new(units)), global.memory.clone()],
            client_memory_units: u32::try_from(units).unwrap_or(u32::MAX),
        };
        Self { shared: Some(shared), ..Self::default() }
    }

    /// Acquires the permits of a call: first from the client's limit, then from the workspace's limit, then from the
    /// server's limit. A call that waits for the limit of its client holds no permit that another client could use. The
    /// parameter `memory_bytes` is the estimated number of bytes of memory that a long call needs.
    async fn acquire(
        &self,
        cost_class: CallDurationClass,
        workspace_limit: Option<&WorkspaceConcurrentCallLimiter>,
        memory_bytes: u64,
    ) -> Result<Vec<OwnedSemaphorePermit>, AcquireError> {
        let mut permits = vec![self.client.acquire(cost_class).await?];
        if let Some(WorkspaceConcurrentCallLimiter(workspace)) = workspace_limit {
            permits.push(workspace.acquire(cost_class).await?);
        }
        let Some(shared) = &self.shared else { return Ok(permits) };
        match cost_class {
            CallDurationClass::Inline | CallDurationClass::Short => {}
            CallDurationClass::Waiting => permits.push(shared.waiting_calls.clone().acquire_owned().await?),
            CallDurationClass::Long => {
                let units = usize::try_from(memory_bytes).unwrap_or(usize::MAX).div_ceil(MEMORY_UNIT_BYTES);
                // A call that needs more memory than the limit acquires all permits of the limit, so that the call can
                // still run.
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
        Self { client: CallSemaphores::new(CALLS_WORKING_MAX, CALLS_WAITING_MAX), shared: None }
    }
}

pub(crate) struct CallExecutor {
    engine: Engine,
    slots: ClientCallSlots,
    workspace_limit: Option<WorkspaceConcurrentCallLimiter>,
}

impl CallExecutor {
    pub(crate) fn new(engine: Engine) -> Self {
        Self::with_slots(engine, ClientCallSlots::default())
    }

    pub(crate) fn with_slots(engine: Engine, slots: ClientCallSlots) -> Self {
        Self { engine, slots, workspace_limit: None }
    }

    pub(crate) fn with_workspace_limit(mut self, workspace_limit: WorkspaceConcurrentCallLimiter) -> Self {
        self.workspace_limit = Some(workspace_limit);
        self
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Runs one call to completion and records it for the request log. The engine call is cancelled when the future
    /// that `until_cancelled` returns is ready.
    pub(crate) async fn run<T: Send + 'static, F: Future<Output = ()> + Send>(
        &self,
        request: CallRequest<T>,
        other_requests: OtherRequestsPending,
        progress: Option<CallProgressSender>,
        until_cancelled: impl FnOnce(CallDurationClass) -> F,
    ) -> CallResultOrAbortError<T> {
        let operation = call_recorder::operation_name(request.call.operation());
        let forecast = match request.approval_wait_ms {
            0 => request.call.forecast(&self.engine),
            _ => CallForecast::WAITING,
        };
        let (cost_class, memory_bytes) = (forecast.duration, forecast.loaded_bytes);
        let cancel = CancelToken::default();
        // Dropping this future cancels the call.
        let _cancel_on_drop = CancelOnDrop(cancel.clone());
        // Short calls run inline, because a thread switch costs more than the call. If other requests are pending,
        // calls run on threads, so that the workspace can commit several of them in one transaction.
        let runs_inline = cost_class == CallDurationClass::Inline
            || (cost_class == CallDurationClass::Short && other_requests == OtherRequestsPending::None);
        let job = BlockingCall { engine: self.engine.clone(), request, cancel: cancel.clone(), forecast, progress };
        let finished = if runs_inline {
            std::panic::catch_unwind(AssertUnwindSafe(|| job.run())).map_err(|_| CallPanicOrShutdownError::Panicked)
        } else {
            let (sender, receiver) = oneshot::channel();
            let run = Box::new(move || drop(sender.send(job.run())));
            let cancelled = pin!(until_cancelled(cost_class));
            match self.run_on_thread(run, cost_class, memory_bytes, &cancel, cancelled).await {
                // A result occupies memory until it is sent, so the permits are kept until the result is taken.
                Ok(_permits) => receiver.await.map_err(|_| CallPanicOrShutdownError::Panicked),
                Err(aborted) => Err(aborted),
            }
        };
        call_recorder::record_call(operation, &finished);
        finished
    }

    /// Runs a job on another thread. The job and the future are passed as trait objects, so that this function is
    /// compiled only once.
    async fn run_on_thread(
        &self,
        job: Box<dyn FnOnce() + Send>,
        cost_class: CallDurationClass,
        memory_bytes: u64,
        cancel: &CancelToken,
        cancelled: Pin<&mut (dyn Future<Output = ()> + Send)>,
    ) -> Result<Vec<OwnedSemaphorePermit>, CallPanicOrShutdownError> {
        let permits = self
            .slots
            .acquire(cost_class, self.workspace_limit.as_ref(), memory_bytes)
            .await
            .map_err(|_| CallPanicOrShutdownError::ShuttingDown)?;
        let mut task = tokio::task::spawn_blocking(job);
        let ended = tokio::select! {
            biased;
            ended = &mut task => ended,
            () = cancelled => {
                cancel.cancel();
                task.await
            }
        };
        ended.map(|()| permits).map_err(|_| CallPanicOrShutdownError::Panicked)
    }
}

/// A call that waits for an event is cancelled when its client disconnects. A call that does not wait for an event runs
/// to completion even if its client disconnects.
pub(crate) async fn until_disconnected(cost_class: CallDurationClass, mut closed: watch::Receiver<bool>) {
    match cost_class {
        CallDurationClass::Inline | CallDurationClass::Short | CallDurationClass::Long => std::future::pending().await,
        CallDurationClass::Waiting => drop(closed.wait_for(|closed| *closed).await),
    }
}

struct CancelOnDrop(CancelToken);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

struct BlockingCall<T> {
    engine: Engine,
    request: CallRequest<T>,
    cancel: CancelToken,
    forecast: CallForecast,
    progress: Option<CallProgressSender>,
}

impl<T: 'static> BlockingCall<T> {
    fn run(self) -> FinishedCall<T> {
        let report = |progress: CallProgress| {
            if let Some(sender) = &self.progress {
                sender.send_replace(progress);
            }
        };
        let listener: Option<&(dyn Fn(CallProgress) + Sync)> = self.progress.is_some().then_some(&report);
        let CallRequest { caller, call, idempotency_key, approval_wait_ms } = self.request;
        let deadline = Instant::now() + call_deadline(self.forecast.duration);
        let control = CallControl::new(deadline, self.cancel, listener)
            .with_approval_wait(approval_wait_ms)
            .with_forecast(self.forecast);
        call.run(&self.engine, &caller, idempotency_key.as_deref(), &control)
    }
}

pub(crate) type CallProgressSender = watch::Sender<CallProgress>;

pub(crate) struct CallProgressReceiver(watch::Receiver<CallProgress>);

pub(crate) struct ClientDisconnectedError;

pub(crate) fn progress_channel() -> (CallProgressSender, CallProgressReceiver) {
    let (sender, receiver) = watch::channel(CallProgress::default());
    (sender, CallProgressReceiver(receiver))
}

impl CallProgressReceiver {
    /// Reports the progress of a call with `notify`, at most once per interval. All progress notifications of a call
    /// are sent before the result of the call.
    pub(crate) async fn report_until_done<F: Future<Output = Result<(), ClientDisconnectedError>>>(
        mut self,
        notify: impl Fn(CallProgress) -> F,
    ) {
        let mut reported = 0;
        // When a call ends, it closes the sender, and `changed` or `has_changed` returns an error.
        while self.0.changed().await.is_ok() && self.0.has_changed().is_ok() {
            let progress = *self.0.borrow_and_update();
            if progress.entries_done <= reported {
                continue;
            }
            reported = progress.entries_done;
            if notify(progress).await.is_err() || self.wait_interval().await.is_err() {
                return;
            }
        }
    }

    /// Waits until the next progress notification is due, or returns an error if the call ends earlier.
    async fn wait_interval(&mut self) -> Result<(), watch::error::RecvError> {
        let interval = tokio::time::sleep(PROGRESS_INTERVAL);
        tokio::pin!(interval);
        loop {
            tokio::select! {
                () = &mut interval => break,
                changed = self.0.changed() => changed?,
            }
        }
        self.0.mark_changed();
        Ok(())
    }
}
