//! How far a call has come, for a person who waits at a terminal: one line on standard error that is written over and
//! goes when the call ends. Nothing is shown of a call that is quick, nor where nobody watches.

use std::{
    io::{self, IsTerminal, Stderr, Write},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use engine::Progress;

/// How long a call may take before anything is shown.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line changes.
const INTERVAL: Duration = Duration::from_millis(100);
/// Back to the start of the line, and empty it.
const CLEAR: &str = "\r\x1b[K";

/// The line of one call.
pub(crate) struct Meter<W: Write> {
    started: Instant,
    line: Mutex<Line<W>>,
}

struct Line<W> {
    out: W,
    shown: Option<Instant>,
}

impl Meter<Stderr> {
    /// A line for a person; nothing when standard error is no terminal.
    pub(crate) fn for_person() -> Option<Self> {
        let out = io::stderr();
        out.is_terminal().then(|| Self::new(out, Instant::now()))
    }
}

impl<W: Write> Meter<W> {
    fn new(out: W, started: Instant) -> Self {
        Self { started, line: Mutex::new(Line { out, shown: None }) }
    }

    /// Shows how far the call has come, if it is time.
    pub(crate) fn tell(&self, progress: Progress) {
        self.tell_at(progress, Instant::now());
    }

    fn tell_at(&self, progress: Progress, now: Instant) {
        if now.duration_since(self.started) < PATIENCE {
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.shown.is_some_and(|shown| now.duration_since(shown) < INTERVAL) {
            return;
        }
        line.shown = Some(now);
        line.write(&format!("{CLEAR}{progress}"));
    }
}

impl<W: Write> Line<W> {
    /// Standard error may be closed; there is nobody left to tell.
    fn write(&mut self, text: &str) {
        drop(self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()));
    }
}

impl<W: Write> Drop for Meter<W> {
    fn drop(&mut self) {
        let line = self.line.get_mut().unwrap_or_else(PoisonError::into_inner);
        if line.shown.is_some() {
            line.write(CLEAR);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(at_ms: &[u64]) -> String {
        let mut out = Vec::new();
        let started = Instant::now();
        let meter = Meter::new(&mut out, started);
        for (done, ms) in (1..).zip(at_ms) {
            meter.tell_at(Progress { done, found: Some(0) }, started + Duration::from_millis(*ms));
        }
        drop(meter);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_quick_call_shows_nothing() {
        assert_eq!(shown(&[0, 500, 999]), "");
    }

    #[test]
    fn a_long_call_shows_one_line_now_and_then_and_takes_it_away() {
        let expected = "\r\x1b[K2 entries, 0 found\r\x1b[K4 entries, 0 found\r\x1b[K";
        assert_eq!(shown(&[900, 1000, 1099, 1100]), expected);
    }
}
