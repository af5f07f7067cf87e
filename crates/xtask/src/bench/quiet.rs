//! Whether the machine is busy with other things. A turn waits a little for a quiet moment; the run as a whole waits
//! only so long, and the report says how many turns began on a busy machine all the same.

use std::{fs, thread, time::Duration};

/// How long the load is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Most looks of a whole run: half a minute.
const LOOKS_MAX: usize = 1_500;
/// Idle share of all cores that counts as quiet.
const IDLE_SHARE_MIN: f64 = 0.8;
/// Where the kernel counts ticks.
const TICKS: &str = "/proc/stat";
/// Columns of the kernel's line that are idle: idle and waiting for a device.
const IDLE_COLUMNS: std::ops::Range<usize> = 3..5;
/// Columns of the kernel's line before those that are counted twice.
const COLUMNS: usize = 8;

/// Turns so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Quiet {
    pub(super) turns: usize,
    pub(super) busy: usize,
    looks: usize,
}

impl Quiet {
    /// Waits for a quiet moment, while there is patience left.
    pub(super) fn wait(&mut self) {
        self.turns += 1;
        while self.looks < LOOKS_MAX {
            self.looks += 1;
            let before = ticks();
            thread::sleep(LOOK);
            if is_quiet(before, ticks()) {
                return;
            }
        }
        self.busy += 1;
    }
}

/// Ticks of all cores since the start: idle, and altogether.
fn ticks() -> Option<(u64, u64)> {
    parse(&fs::read_to_string(TICKS).ok()?)
}

fn parse(text: &str) -> Option<(u64, u64)> {
    let counts: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    let idle = counts.get(IDLE_COLUMNS)?.iter().sum();
    Some((idle, counts.iter().take(COLUMNS).sum()))
}

/// A machine that does not say is taken as quiet: there is nothing to wait for.
fn is_quiet(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> bool {
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
    fn ticks_are_read_from_the_first_line() {
        let text = "cpu  10 1 5 80 4 0 0 0 99 99\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(parse(text), Some((84, 100)));
        assert_eq!(parse("cpu 1 2\n"), None);
    }

    #[test]
    fn quiet_means_mostly_idle() {
        assert!(is_quiet(Some((0, 0)), Some((9, 10))));
        assert!(!is_quiet(Some((0, 0)), Some((5, 10))));
        assert!(is_quiet(Some((0, 0)), Some((0, 0))), "no tick passed");
        assert!(is_quiet(None, Some((0, 9))));
    }
}
