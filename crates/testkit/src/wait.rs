//! Waiting in tests. A test never sleeps for a fixed time: it polls a state until the state is reached, and fails after
//! [`WAIT_TIMEOUT`]. The exception is [`kill_after`], which lets a chosen time pass before it kills a process.

use std::{
    io,
    process::Child,
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for a state before it fails. The timeout is long, because the machine may be busy.
pub const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Calls `look` until it returns a value.
///
/// # Panics
///
/// Panics with `what` if there is no value within [`WAIT_TIMEOUT`].
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

/// Calls `holds` until it returns true.
///
/// # Panics
///
/// Panics with `what` if the state is not reached within [`WAIT_TIMEOUT`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    wait_for(what, || holds().then_some(()));
}

/// Kills a process after the delay and waits for its exit; returns early if the process exits by itself.
pub fn kill_after(child: &mut Child, delay: Duration) -> io::Result<()> {
    let end = Instant::now() + delay;
    // A busy loop, because a sleep is not precise enough.
    while Instant::now() < end && child.try_wait()?.is_none() {
        thread::yield_now();
    }
    child.kill()?;
    child.wait().map(drop)
}
