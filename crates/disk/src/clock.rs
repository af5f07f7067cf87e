//! The system clock. Owns the only place that reads time; other crates receive it as a value.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

use crate::random_bytes;

const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// The clock of this machine.
#[derive(Debug, Clone)]
pub struct SystemClock {
    boot_id: String,
}

impl SystemClock {
    /// Reads the boot id once. Without one, a random id means "a new boot every time", so that earlier measurements
    /// are never used.
    pub fn new() -> Self {
        let boot_id = std::fs::read_to_string(BOOT_ID_FILE).map(|text| text.trim().to_owned());
        let boot_id = boot_id.ok().filter(|id| !id.is_empty()).unwrap_or_else(|| {
            let bytes = random_bytes::<16>().unwrap_or_default();
            bytes.iter().map(|byte| format!("{byte:02x}")).collect()
        });
        Self { boot_id }
    }

    /// Milliseconds since 1970 by the wall clock.
    pub fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// Milliseconds since the machine started, including sleep; never goes back and is the same for every process.
    pub fn monotonic_ms(&self) -> u64 {
        let time = clock_gettime(ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        seconds * 1000 + u64::try_from(time.tv_nsec / 1_000_000).unwrap_or_default()
    }

    /// The id of the current boot.
    pub fn boot_id(&self) -> String {
        self.boot_id.clone()
    }
}

/// Lowers the priority of this thread, for background work. Does nothing where that is not possible.
pub fn lower_thread_priority() {
    rustix::process::setpriority_process(None, BACKGROUND_PRIORITY).unwrap_or_default();
}

/// As low as possible without starving on a busy machine.
const BACKGROUND_PRIORITY: i32 = 15;

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}
