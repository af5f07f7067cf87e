//! Where time comes from. Injected, so that tests move it and nothing sleeps.

/// One reading of the clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    /// Wall clock, in unix milliseconds. May jump.
    pub wall_ms: i64,
    /// Milliseconds since the machine started. Never jumps.
    pub uptime_ms: i64,
    /// Which start of the machine that was.
    pub boot: String,
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// What time it is.
    fn now(&self) -> Moment;
}

/// The machine's own clocks.
pub(crate) struct System(disk::SystemClock);

impl Default for System {
    fn default() -> Self {
        Self(disk::SystemClock::new())
    }
}

impl Clock for System {
    fn now(&self) -> Moment {
        let signed = |milliseconds: u64| i64::try_from(milliseconds).unwrap_or(i64::MAX);
        Moment {
            wall_ms: signed(self.0.now_ms()),
            uptime_ms: signed(self.0.monotonic_ms()),
            boot: self.0.boot_id(),
        }
    }
}
