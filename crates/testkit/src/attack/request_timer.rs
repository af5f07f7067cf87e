//! Measures how long a reply takes, without the time in which processes waited for a CPU, so that a busy machine does
//! not look like a hanging server.

use std::time::{Duration, Instant};

/// The file in which the kernel counts the time that processes waited for a CPU.
const CPU_PRESSURE_FILE: &str = "/proc/pressure/cpu";

pub(super) struct CpuWaitAdjustedTimer {
    started: Instant,
    cpu_wait_before: Duration,
}

impl CpuWaitAdjustedTimer {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), cpu_wait_before: total_cpu_wait() }
    }

    /// The time since the start, less the time in which processes waited for a CPU.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(total_cpu_wait().saturating_sub(self.cpu_wait_before))
    }
}

/// How long processes have waited for a CPU since boot; zero if the kernel does not count it.
fn total_cpu_wait() -> Duration {
    let text = std::fs::read_to_string(CPU_PRESSURE_FILE).unwrap_or_default();
    Duration::from_micros(parse_micros(&text).unwrap_or_default())
}

fn parse_micros(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_pressure_file_is_parsed() {
        let text =
            "some avg10=1.00 avg60=0.50 avg300=0.10 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(parse_micros(text), Some(1_234_567));
        assert_eq!(parse_micros(""), None);
        assert_eq!(parse_micros("some total=x"), None);
    }
}
