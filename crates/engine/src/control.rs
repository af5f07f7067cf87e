//! How a running call is bounded and stopped: its deadline, its cancellation, and where its progress goes.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
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

/// How far a long call has come. Reads as a person would say it: `12,000 entries, 3 found`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Entries done so far, over every pass of the call. Only grows.
    pub done: u64,
    /// What was found in them, when the call looks for something.
    pub found: Option<u64>,
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", grouped(self.done))?;
        self.found.map_or(Ok(()), |found| write!(f, ", {} found", grouped(found)))
    }
}

/// A number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// What bounds one call.
pub struct Control<'a> {
    deadline: Instant,
    cancel: Cancel,
    progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    done: AtomicU64,
    found: OnceLock<AtomicU64>,
    hold: Duration,
}

impl Default for Control<'_> {
    fn default() -> Self {
        Self::new(Instant::now() + limits::CALL_DEADLINE, Cancel::default(), None)
    }
}

impl<'a> Control<'a> {
    /// Bounds with this switch and this listener.
    pub fn new(deadline: Instant, cancel: Cancel, progress: Option<&'a (dyn Fn(Progress) + Sync)>) -> Self {
        Self {
            deadline,
            cancel,
            progress,
            done: AtomicU64::new(0),
            found: OnceLock::new(),
            hold: Duration::ZERO,
        }
    }

    /// The same for a call that waits so long for a person's answer, if it needs one. The deadline does not count that
    /// time.
    #[must_use]
    pub fn holding(mut self, hold_ms: u64) -> Self {
        self.hold = Duration::from_millis(hold_ms.min(limits::APPROVAL_HOLD_MS_MAX));
        self.deadline += self.hold;
        self
    }

    /// How long the call waits for a person's answer.
    pub(crate) fn hold(&self) -> Duration {
        self.hold
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

    /// Counts entries that are done, and tells whoever listens how far the call has come. Listeners bound how often
    /// they pass it on.
    pub fn advance(&self, entries: u64) {
        let Some(listen) = self.progress.filter(|_| entries > 0) else { return };
        let done = self.done.fetch_add(entries, Ordering::Relaxed) + entries;
        let found = self.found.get().map(|found| found.load(Ordering::Relaxed));
        listen(Progress { done, found });
    }

    /// Counts what is found.
    pub fn count_found(&self, found: u64) {
        if self.progress.is_some() {
            self.found.get_or_init(AtomicU64::default).fetch_add(found, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn progress_grows_over_passes_and_reads_well() {
        let heard = Mutex::new(Vec::new());
        let listen = |progress: Progress| heard.lock().unwrap().push(progress.to_string());
        let control = Control::new(Instant::now(), Cancel::default(), Some(&listen));
        control.advance(999);
        control.advance(0);
        control.count_found(3);
        control.advance(1_233_568);
        assert_eq!(*heard.lock().unwrap(), ["999 entries", "1,234,567 entries, 3 found"]);
    }
}
