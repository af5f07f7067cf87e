//! Source of time. Injected, so that tests control it without sleeping.

/// One reading of the clocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReading {
    /// Wall clock, in unix milliseconds. May jump.
    pub wall_ms: i64,
    /// Milliseconds since the machine started. Never jumps.
    pub uptime_ms: i64,
    /// Identifies the boot of the machine.
    pub boot_id: String,
}

/// A source of time.
pub trait Clock: Send + Sync {
    /// Reads the clocks.
    fn now(&self) -> ClockReading;
}

pub(crate) struct MachineClock(stead_disk::SystemClock);

impl Default for MachineClock {
    fn default() -> Self {
        Self(stead_disk::SystemClock::new())
    }
}

impl Clock for MachineClock {
    fn now(&self) -> ClockReading {
        let signed = |milliseconds: u64| i64::try_from(milliseconds).unwrap_or(i64::MAX);
        ClockReading {
            wall_ms: signed(self.0.now_ms()),
            uptime_ms: signed(self.0.monotonic_ms()),
            boot_id: self.0.boot_id(),
        }
    }
}
