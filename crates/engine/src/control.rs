//! The deadline, cancellation and progress of a running call.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    administration::CallByteStream,
    engine::CallForecast,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    unsaved::FileLocatedAhead,
};

/// A cancel token, which cancels a running call at its next [`CallControl::check`]. All clones of a cancel token cancel
/// the same call.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// Cancels the call that uses this cancel token.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The progress of a long call, displayed as `12,000 entries, 3 found`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct CallProgress {
    /// The number of entries that the call has processed so far, which never decreases.
    pub entries_done: u64,
    /// The number of matches that the call has found so far; `None` if the call has not reported any.
    pub found: Option<u64>,
}

impl fmt::Display for CallProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", format_with_separators(self.entries_done))?;
        self.found.map_or(Ok(()), |found| write!(f, ", {} found", format_with_separators(found)))
    }
}

fn format_with_separators(number: u64) -> String {
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

/// The deadline, cancel token and progress listener of one call.
pub struct CallControl<'a> {
    deadline: Instant,
    cancel: CancelToken,
    progress: Option<&'a (dyn Fn(CallProgress) + Sync)>,
    entries_done: AtomicU64,
    found: OnceLock<AtomicU64>,
    approval_wait: Duration,
    stream: Option<&'a dyn CallByteStream>,
    file_located_ahead: Mutex<Option<FileLocatedAhead>>,
}

impl Default for CallControl<'_> {
    fn default() -> Self {
        Self::new(Instant::now() + limits::DEFAULT_CALL_DEADLINE, CancelToken::default(), None)
    }
}

impl<'a> CallControl<'a> {
    /// Creates the control of a call with this deadline, cancel token and progress listener.
    pub fn new(deadline: Instant, cancel: CancelToken, progress: Option<&'a (dyn Fn(CallProgress) + Sync)>) -> Self {
        Self {
            deadline,
            cancel,
            progress,
            entries_done: AtomicU64::new(0),
            found: OnceLock::new(),
            approval_wait: Duration::ZERO,
            stream: None,
            file_located_ahead: Mutex::default(),
        }
    }

    /// Allows the call to wait `wait_ms` milliseconds for approval, and extends the call's deadline by the same time.
    #[must_use]
    pub fn with_approval_wait(mut self, wait_ms: u64) -> Self {
        self.approval_wait = Duration::from_millis(wait_ms.min(limits::APPROVAL_WAIT_MS_MAX));
        self.deadline += self.approval_wait;
        self
    }

    /// Gives the call the stream of bytes that an export writes or an import reads.
    #[must_use]
    pub fn with_stream(mut self, stream: &'a dyn CallByteStream) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Gives the call what the engine has found out about it with [`Engine::forecast`](crate::Engine::forecast).
    #[must_use]
    pub fn with_forecast(mut self, forecast: CallForecast) -> Self {
        self.file_located_ahead = Mutex::new(forecast.file);
        self
    }

    pub(crate) fn take_file_located_ahead(&self) -> Option<FileLocatedAhead> {
        self.file_located_ahead.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn stream(&self) -> Option<&'a dyn CallByteStream> {
        self.stream
    }

    pub(crate) fn approval_wait(&self) -> Duration {
        self.approval_wait
    }

    /// The time at which the call fails if it has not finished.
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Fails if the call was cancelled or has passed its deadline. Every loop of unknown length in an operation must
    /// call `check`.
    pub fn check(&self) -> Result<(), Error> {
        if self.cancel.is_cancelled() {
            return Err(Error::new(ErrorKind::Cancelled, "the caller cancelled this call; nothing was changed")
                .with_next_step(NextStep::repeat()));
        }
        if Instant::now() > self.deadline {
            return Err(Error::new(ErrorKind::Deadline, "the call exceeded its deadline; nothing was changed")
                .with_next_step("request less at once, for example a smaller subtree or a range of lines"));
        }
        Ok(())
    }

    /// Adds `entries` to the number of processed entries and calls the progress listener. The progress listener must
    /// limit its own messages, because it is called often.
    pub fn report_entries(&self, entries: u64) {
        let Some(listener) = self.progress.filter(|_| entries > 0) else { return };
        let done = self.entries_done.fetch_add(entries, Ordering::Relaxed) + entries;
        let found = self.found.get().map(|found| found.load(Ordering::Relaxed));
        listener(CallProgress { entries_done: done, found });
    }

    /// Adds `found` to the number of matches that the call has found.
    pub fn report_found(&self, found: u64) {
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
    fn progress_adds_up_reported_counts() {
        let reports = Mutex::new(Vec::new());
        let listen = |progress: CallProgress| reports.lock().unwrap().push(progress.to_string());
        let control = CallControl::new(Instant::now(), CancelToken::default(), Some(&listen));
        control.report_entries(999);
        control.report_entries(0);
        control.report_found(3);
        control.report_entries(1_233_568);
        assert_eq!(*reports.lock().unwrap(), ["999 entries", "1,234,567 entries, 3 found"]);
    }
}
