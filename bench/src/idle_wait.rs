//! Waits for an idle machine before each measurement. The total waiting time of a benchmark is limited, and the report
//! gives the number of measurements that started on a busy machine.

use std::{fs, thread, time::Duration};

const SAMPLE_INTERVAL: Duration = Duration::from_millis(20);
/// The most checks for an idle machine in a whole benchmark, which take half a minute together.
const SAMPLES_MAX: usize = 1_500;
/// The machine counts as idle if at least this share of the CPU time is idle.
const IDLE_SHARE_MIN: f64 = 0.8;
const CPU_STAT_FILE: &str = "/proc/stat";
/// The columns of `/proc/stat` with idle time (idle and iowait).
const IDLE_COLUMNS: std::ops::Range<usize> = 3..5;
/// The number of columns of `/proc/stat` to add up; later columns (guest times) are included in earlier ones.
const CPU_COLUMNS: usize = 8;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BenchIdleMachineWaiter {
    pub(crate) turns: usize,
    pub(crate) busy_turns: usize,
    samples: usize,
}

impl BenchIdleMachineWaiter {
    /// Waits until the machine is idle, or until the checks of the whole benchmark are used up.
    pub(crate) fn wait_until_idle(&mut self) {
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

/// The idle and total CPU time of all cores since boot, in clock ticks.
fn cpu_ticks() -> Option<(u64, u64)> {
    parse_cpu_ticks(&fs::read_to_string(CPU_STAT_FILE).ok()?)
}

fn parse_cpu_ticks(text: &str) -> Option<(u64, u64)> {
    let counts: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    let idle = counts.get(IDLE_COLUMNS)?.iter().sum();
    Some((idle, counts.iter().take(CPU_COLUMNS).sum()))
}

/// Whether the machine was idle between two readings of the CPU time; true if a reading is missing.
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
