//! Helpers for tests that wait. A test polls a state and fails after [`WAIT_TIMEOUT`], instead of sleeping for a fixed
//! time. Only the helper [`kill_after`] waits for a given time.

use std::{
    io,
    process::Child,
    thread,
    time::{Duration, Instant},
};

/// The time after which a waiting test fails. The timeout is long, because the machine may be busy.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Calls `look` until `look` returns a value.
///
/// # Panics
///
/// Panics with `what` if `look` returns no value within [`WAIT_TIMEOUT`].
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < WAIT_TIMEOUT, "{what}: timed out");
        thread::yield_now();
    }
}

/// Calls `holds` until `holds` returns true.
///
/// # Panics
///
/// Panics with `what` if `holds` does not return true within [`WAIT_TIMEOUT`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Kills a process after the delay and waits for its exit; a process that exits by itself ends the delay early.
pub fn kill_after(child: &mut Child, delay: Duration) -> io::Result<()> {
    let end = Instant::now() + delay;
    // The delay is a busy loop, because a sleep is not precise enough.
    while Instant::now() < end && child.try_wait()?.is_none() {
        thread::yield_now();
    }
    child.kill()?;
    child.wait().map(drop)
}
