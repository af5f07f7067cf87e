//! Measures how long a reply takes, without the time in which processes waited for a CPU or a disk. A slow reply on a
//! busy machine must not look like a hanging server.

use std::time::{Duration, Instant};

/// The kernel files that tell how long processes waited for a CPU and for a disk.
const PRESSURE_FILES: [&str; 2] = ["/proc/pressure/cpu", "/proc/pressure/io"];

pub(super) struct BusyMachineAdjustedTimer {
    started: Instant,
    wait_before: Duration,
}

impl BusyMachineAdjustedTimer {
    pub(super) fn start() -> Self {
        Self { started: Instant::now(), wait_before: total_wait() }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed().saturating_sub(total_wait().saturating_sub(self.wait_before))
    }
}

/// Returns how long processes have waited since boot, or zero if the kernel does not count that time.
fn total_wait() -> Duration {
    let wait = |file| std::fs::read_to_string(file).ok().and_then(|text| parse_micros(&text)).unwrap_or_default();
    Duration::from_micros(PRESSURE_FILES.into_iter().map(wait).sum())
}

fn parse_micros(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pressure_file_is_parsed() {
        let text =
            "some avg10=1.00 avg60=0.50 avg300=0.10 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(parse_micros(text), Some(1_234_567));
        assert_eq!(parse_micros(""), None);
        assert_eq!(parse_micros("some total=x"), None);
    }
}
