//! Records the calls of one request for the request log: operation names, error kinds and entry numbers, never client
//! data. The recorder is task-local; code that spawns another task for a request must pass it on.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use stead_engine::{CallOutcome, Error};

use crate::call_executor::CallAbortError;

/// Calls of one request that are logged individually; the rest is only counted.
const RECORDED_CALLS_MAX: usize = 16;
/// Logged for a call whose name is not an operation.
const UNKNOWN_OPERATION: &str = "unknown";

tokio::task_local! {
    static CURRENT_RECORDER: Arc<CallRecorder>;
}

/// One logged call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedCall {
    /// Name of the operation.
    pub operation: &'static str,
    /// Error kind, if the call failed.
    pub error_kind: Option<&'static str>,
    /// Journal entry that the call wrote, if its result names one.
    pub entry: Option<u64>,
}

/// The calls of one request so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedCalls {
    /// The first calls, individually.
    pub first_calls: Vec<LoggedCall>,
    /// Number of all calls.
    pub count: usize,
}

type RecorderCallback = Box<dyn FnOnce(LoggedCalls) + Send>;

/// Collects the calls of a request.
#[derive(Default)]
pub(crate) struct CallRecorder {
    calls: Mutex<LoggedCalls>,
    on_end: Mutex<Option<RecorderCallback>>,
}

impl CallRecorder {
    /// A recorder that calls `on_end` when its last owner drops it.
    pub(crate) fn with_callback(on_end: impl FnOnce(LoggedCalls) + Send + 'static) -> Arc<Self> {
        Arc::new(Self { calls: Mutex::default(), on_end: Mutex::new(Some(Box::new(on_end))) })
    }

    pub(crate) fn calls(&self) -> LoggedCalls {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for CallRecorder {
    fn drop(&mut self) {
        let on_end = self.on_end.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(on_end) = on_end {
            on_end(std::mem::take(self.calls.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

/// The recorder of the request that this task serves.
pub(crate) fn current_recorder() -> Option<Arc<CallRecorder>> {
    CURRENT_RECORDER.try_with(Arc::clone).ok()
}

/// Runs `work` with this recorder as the current one.
pub(crate) async fn record_during<T>(recorder: Option<Arc<CallRecorder>>, work: impl Future<Output = T>) -> T {
    match recorder {
        Some(recorder) => CURRENT_RECORDER.scope(recorder, work).await,
        None => work.await,
    }
}

pub(crate) fn operation_name(operation: &str) -> &'static str {
    stead_engine::find_operation(operation).map_or(UNKNOWN_OPERATION, |row| row.name)
}

/// Records a call, if the task has a recorder.
pub(crate) fn record_call(operation: &'static str, result: &Result<Result<CallOutcome, Error>, CallAbortError>) {
    let Some(recorder) = current_recorder() else { return };
    let (error_kind, entry) = match result {
        Ok(Ok(outcome)) => (None, outcome.json.get("entry").and_then(Value::as_u64)),
        Ok(Err(error)) => (Some(error.kind.code()), None),
        Err(CallAbortError::Panicked) => (Some("broken_off"), None),
        Err(CallAbortError::ShuttingDown) => (Some("closing"), None),
    };
    let mut calls = recorder.calls.lock().unwrap_or_else(PoisonError::into_inner);
    calls.count += 1;
    if calls.first_calls.len() < RECORDED_CALLS_MAX {
        calls.first_calls.push(LoggedCall { operation, error_kind, entry });
    }
}
