//! What is noted of the calls that one request makes, for whoever keeps a log. Holds names of operations, kinds of failures
//! and numbers of entries: nothing that a client wrote. Follows a request through its task; whoever starts another task for
//! it carries the notes along.

use std::sync::{Arc, Mutex, PoisonError};

use engine::{Answer, Failure};
use serde_json::Value;

use crate::run::Broken;

/// Calls of one request that are noted one by one; the rest is counted.
const CALLS_NOTED_MAX: usize = 16;
/// What a call is named that no operation has the name of.
const UNKNOWN: &str = "unknown";

tokio::task_local! {
    static CURRENT: Arc<Notes>;
}

/// One call that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called {
    /// The operation.
    pub operation: &'static str,
    /// Why it failed, if it did: a kind.
    pub failed: Option<&'static str>,
    /// The entry it made, if its answer tells.
    pub entry: Option<u64>,
}

/// The calls of one request so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// The first of them.
    pub first: Vec<Called>,
    /// How many there are.
    pub count: usize,
}

/// What is done with the notes in the end.
type AtEnd = Box<dyn FnOnce(Calls) + Send>;

/// Notes that are being taken.
#[derive(Default)]
pub(crate) struct Notes {
    calls: Mutex<Calls>,
    at_end: Mutex<Option<AtEnd>>,
}

impl Notes {
    /// Notes that are handed over when the last who takes them is done.
    pub(crate) fn handed_over(at_end: impl FnOnce(Calls) + Send + 'static) -> Arc<Self> {
        Arc::new(Self { calls: Mutex::default(), at_end: Mutex::new(Some(Box::new(at_end))) })
    }

    /// What has been noted.
    pub(crate) fn calls(&self) -> Calls {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        let at_end = self.at_end.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(at_end) = at_end {
            at_end(std::mem::take(self.calls.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}

/// The notes of the request that this task works on.
pub(crate) fn current() -> Option<Arc<Notes>> {
    CURRENT.try_with(Arc::clone).ok()
}

/// Takes these notes while something runs, here or in another task.
pub(crate) async fn taking<T>(notes: Option<Arc<Notes>>, work: impl Future<Output = T>) -> T {
    match notes {
        Some(notes) => CURRENT.scope(notes, work).await,
        None => work.await,
    }
}

/// The name under which a call is noted.
pub(crate) fn named(operation: &str) -> &'static str {
    engine::row(operation).map_or(UNKNOWN, |row| row.name)
}

/// Notes a call that was made, if anybody takes notes.
pub(crate) fn note(operation: &'static str, outcome: &Result<Result<Answer, Failure>, Broken>) {
    let Some(notes) = current() else { return };
    let (failed, entry) = match outcome {
        Ok(Ok(answer)) => (None, answer.json.get("entry").and_then(Value::as_u64)),
        Ok(Err(failure)) => (Some(failure.kind.code()), None),
        Err(Broken::Off) => (Some("broken_off"), None),
        Err(Broken::Closing) => (Some("closing"), None),
    };
    let mut calls = notes.calls.lock().unwrap_or_else(PoisonError::into_inner);
    calls.count += 1;
    if calls.first.len() < CALLS_NOTED_MAX {
        calls.first.push(Called { operation, failed, entry });
    }
}
