//! Prints the progress of a long call on one line of standard error, which is cleared when the call ends.

use std::{
    io::{self, IsTerminal, Stderr, Write},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use stead_engine::CallProgress;

const QUIET_PERIOD: Duration = Duration::from_secs(1);
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);
/// The terminal codes that move the cursor to the start of the line and erase the line.
const CLEAR_LINE: &str = "\r\x1b[K";

pub(crate) struct ProgressLinePrinter<W: Write> {
    started: Instant,
    state: Mutex<ProgressLineState<W>>,
}

struct ProgressLineState<W> {
    output: W,
    last_update: Option<Instant>,
}

impl ProgressLinePrinter<Stderr> {
    pub(crate) fn for_person() -> Option<Self> {
        let out = io::stderr();
        out.is_terminal().then(|| Self::new(out, Instant::now()))
    }
}

impl<W: Write> ProgressLinePrinter<W> {
    fn new(out: W, started: Instant) -> Self {
        Self { started, state: Mutex::new(ProgressLineState { output: out, last_update: None }) }
    }

    pub(crate) fn update(&self, progress: CallProgress) {
        self.update_at(progress, Instant::now());
    }

    fn update_at(&self, progress: CallProgress, now: Instant) {
        if now.duration_since(self.started) < QUIET_PERIOD {
            return;
        }
        let mut line = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if line.last_update.is_some_and(|last| now.duration_since(last) < UPDATE_INTERVAL) {
            return;
        }
        line.last_update = Some(now);
        line.write_text(&format!("{CLEAR_LINE}{progress}"));
    }
}

impl<W: Write> ProgressLineState<W> {
    /// Writes to standard error and ignores errors, because standard error may be closed.
    fn write_text(&mut self, text: &str) {
        drop(self.output.write_all(text.as_bytes()).and_then(|()| self.output.flush()));
    }
}

impl<W: Write> Drop for ProgressLinePrinter<W> {
    fn drop(&mut self) {
        let line = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if line.last_update.is_some() {
            line.write_text(CLEAR_LINE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_after_updates(at_ms: &[u64]) -> String {
        let mut out = Vec::new();
        let started = Instant::now();
        let line = ProgressLinePrinter::new(&mut out, started);
        for (done, ms) in (1..).zip(at_ms) {
            line.update_at(CallProgress { entries_done: done, found: Some(0) }, started + Duration::from_millis(*ms));
        }
        drop(line);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn quick_call_prints_no_progress() {
        assert_eq!(output_after_updates(&[0, 500, 999]), "");
    }

    #[test]
    fn long_call_updates_one_line_and_clears_it() {
        let expected = "\r\x1b[K2 entries, 0 found\r\x1b[K4 entries, 0 found\r\x1b[K";
        assert_eq!(output_after_updates(&[900, 1000, 1099, 1100]), expected);
    }
}
