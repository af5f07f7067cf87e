//! Records the calls of one HTTP request for the request log: operation names, error kinds and entry numbers, but no
//! client data. The recorder is a task-local variable, so code that spawns a task for a request must pass the recorder
//! to that task.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{
    call_executor::{CallPanicOrShutdownError, CallResultOrAbortError},
    limits::LOGGED_CALLS_PER_REQUEST_MAX,
};

const UNKNOWN_OPERATION: &str = "unknown";

tokio::task_local! {
    static CURRENT_RECORDER: Arc<RequestLogCallRecorder>;
}

/// One engine call in the request log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLogCall {
    pub operation: &'static str,
    pub error_kind: Option<&'static str>,
    /// The number of the logged call's journal entry, if the result of the call contains an entry number.
    pub entry: Option<u64>,
}

/// The engine calls that one HTTP request has made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoggedCallsOfHttpRequest {
    /// The first calls of the HTTP request, up to a limit.
    pub first_calls: Vec<RequestLogCall>,
    /// The number of all calls of the HTTP request.
    pub count: usize,
}

type RequestEndRecordedCallsCallback = Box<dyn FnOnce(LoggedCallsOfHttpRequest) + Send>;

#[derive(Default)]
pub(crate) struct RequestLogCallRecorder {
    calls: Mutex<LoggedCallsOfHttpRequest>,
    on_end: Mutex<Option<RequestEndRecordedCallsCallback>>,
}

impl RequestLogCallRecorder {
    /// The callback `on_end` receives the recorded calls when the last reference to the recorder is dropped.
    pub(crate) fn with_callback(on_end: impl FnOnce(LoggedCallsOfHttpRequest) + Send + 'static) -> Arc<Self> {
        Arc::new(Self { calls: Mutex::default(), on_end: Mutex::new(Some(Box::new(on_end))) })
    }

    pub(crate) fn calls(&self) -> LoggedCallsOfHttpRequest {
        crate::lock(&self.calls).clone()
    }
}

impl Drop for RequestLogCallRecorder {
    fn drop(&mut self) {
        let on_end = self.on_end.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(on_end) = on_end {
            on_end(std::mem::take(self.calls.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

pub(crate) fn current_recorder() -> Option<Arc<RequestLogCallRecorder>> {
    CURRENT_RECORDER.try_with(Arc::clone).ok()
}

pub(crate) async fn record_during<T>(
    recorder: Option<Arc<RequestLogCallRecorder>>,
    work: impl Future<Output = T>,
) -> T {
    match recorder {
        Some(recorder) => CURRENT_RECORDER.scope(recorder, work).await,
        None => work.await,
    }
}

pub(crate) fn operation_name(operation: &str) -> &'static str {
    stead_engine::find_operation(operation).map_or(UNKNOWN_OPERATION, |row| row.name)
}

pub(crate) fn record_call<T>(operation: &'static str, result: &CallResultOrAbortError<T>) {
    let Some(recorder) = current_recorder() else { return };
    let (error_kind, entry) = match result {
        Ok(finished) => (finished.error.as_ref().map(|error| error.kind.code()), finished.entry),
        Err(CallPanicOrShutdownError::Panicked) => (Some("broken_off"), None),
        Err(CallPanicOrShutdownError::ShuttingDown) => (Some("closing"), None),
    };
    let mut calls = crate::lock(&recorder.calls);
    calls.count += 1;
    if calls.first_calls.len() < LOGGED_CALLS_PER_REQUEST_MAX {
        calls.first_calls.push(RequestLogCall { operation, error_kind, entry });
    }
}
