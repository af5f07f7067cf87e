//! How a running call is bounded and stopped: its deadline, its cancellation, and where its progress goes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use crate::{
    failure::{Failure, Kind},
    limits,
};

/// A switch that stops a call at its next step. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Stops the call.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// How far a long call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Entries done so far.
    pub done: u64,
}

/// What bounds one call.
pub struct Control<'a> {
    deadline: Instant,
    cancel: Cancel,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Default for Control<'_> {
    fn default() -> Self {
        Self { deadline: Instant::now() + limits::CALL_DEADLINE, cancel: Cancel::default(), progress: None }
    }
}

impl<'a> Control<'a> {
    /// Bounds with this switch and this listener.
    pub fn new(deadline: Instant, cancel: Cancel, progress: Option<&'a (dyn Fn(Progress) + Sync)>) -> Self {
        Self { deadline, cancel, progress }
    }

    /// When the call must have ended.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Fails once the call was cancelled or its deadline passed. Called in every loop of unknown length.
    pub fn check(&self) -> Result<(), Failure> {
        if self.cancel.is_set() {
            return Err(Failure::new(Kind::Cancelled, "the caller cancelled; nothing was changed"));
        }
        if Instant::now() > self.deadline {
            return Err(Failure::new(Kind::Deadline, "the call took too long; nothing was changed")
                .hint("ask for less at once: a smaller subtree, a range, a page"));
        }
        Ok(())
    }

    /// Tells whoever listens how far the call has come.
    pub fn report(&self, done: u64) {
        if let Some(listen) = self.progress {
            listen(Progress { done });
        }
    }
}
