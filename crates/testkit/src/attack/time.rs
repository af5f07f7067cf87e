//! How long a reply took, without the time in which the machine had no core for somebody: a busy machine must not look like
//! a server that hangs.

use std::time::{Duration, Instant};

/// Where the kernel counts the microseconds in which a process waited for a core.
const PRESSURE: &str = "/proc/pressure/cpu";

/// A request that runs.
pub(super) struct Watch {
    begun: Instant,
    waited: Duration,
}

impl Watch {
    pub(super) fn start() -> Self {
        Self { begun: Instant::now(), waited: waited() }
    }

    /// What it took, at the least.
    pub(super) fn took(&self) -> Duration {
        self.begun.elapsed().saturating_sub(waited().saturating_sub(self.waited))
    }
}

/// How long processes waited for a core since the machine runs; nothing where the kernel does not count it.
fn waited() -> Duration {
    let text = std::fs::read_to_string(PRESSURE).unwrap_or_default();
    Duration::from_micros(micros(&text).unwrap_or_default())
}

fn micros(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|word| word.strip_prefix("total="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_words_are_understood() {
        let text = "some avg10=1.00 avg60=0.50 avg300=0.10 total=1234567\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=9\n";
        assert_eq!(micros(text), Some(1_234_567));
        assert_eq!(micros(""), None);
        assert_eq!(micros("some total=x"), None);
    }
}
