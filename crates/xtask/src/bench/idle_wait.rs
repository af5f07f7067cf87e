//! Waits for an idle machine before each measurement. The total wait of a run is limited, and the report gives the
//! number of measurements that started on a busy machine.

use std::{fs, thread, time::Duration};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum number of samples of a whole run: half a minute.
const SAMPLES_MAX: usize = 1_500;
/// Minimum idle share of all cores.
const IDLE_SHARE_MIN: f64 = 0.8;
const CPU_STAT_FILE: &str = "/proc/stat";
/// The columns idle and iowait.
const IDLE_COLUMNS: std::ops::Range<usize> = 3..5;
/// The columns before guest times, which are already included in others.
const CPU_COLUMNS: usize = 8;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BenchIdleMachineWaiter {
    pub(super) turns: usize,
    pub(super) busy_turns: usize,
    samples: usize,
}

impl BenchIdleMachineWaiter {
    /// Waits for an idle machine until the budget of the run is used up.
    pub(super) fn wait_until_idle(&mut self) {
        self.turns += 1;
        while self.samples < SAMPLES_MAX {
            self.samples += 1;
            let before = cpu_ticks();
            thread::sleep(SAMPLE_INTERVAL);
            if is_idle(before, cpu_ticks()) {
                return;
            }
        }
        self.busy_turns += 1;
    }
}

/// Ticks of all cores since boot: idle and total.
fn cpu_ticks() -> Option<(u64, u64)> {
    parse_cpu_ticks(&fs::read_to_string(CPU_STAT_FILE).ok()?)
}

fn parse_cpu_ticks(text: &str) -> Option<(u64, u64)> {
    let counts: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    let idle = counts.get(IDLE_COLUMNS)?.iter().sum();
    Some((idle, counts.iter().take(CPU_COLUMNS).sum()))
}

/// Without data from the kernel, the machine counts as idle.
fn is_idle(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> bool {
    let (Some(before), Some(after)) = (before, after) else { return true };
    let (idle, all) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1));
    #[expect(clippy::cast_precision_loss, reason = "a share of a few ticks")]
    let share = idle as f64 / all as f64;
    all == 0 || share >= IDLE_SHARE_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_are_parsed_from_the_first_line() {
        let text = "cpu  10 1 5 80 4 0 0 0 99 99\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(parse_cpu_ticks(text), Some((84, 100)));
        assert_eq!(parse_cpu_ticks("cpu 1 2\n"), None);
    }

    #[test]
    fn idle_means_mostly_idle_ticks() {
        assert!(is_idle(Some((0, 0)), Some((9, 10))));
        assert!(!is_idle(Some((0, 0)), Some((5, 10))));
        assert!(is_idle(Some((0, 0)), Some((0, 0))), "no tick passed");
        assert!(is_idle(None, Some((0, 9))));
    }
}
