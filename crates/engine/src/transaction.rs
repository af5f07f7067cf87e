//! The transaction: everything that one commit checks and writes, over files and rows alike.
//!
//! A transaction is plain data. Its expectations are checked inside the commit, so nothing is decided between two
//! writes; if one of them no longer holds, the commit writes nothing and the call is planned again.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::{
    plan::Plan,
    rows::{RowFamily, RowWrite},
};

/// What a commit checks and writes.
#[derive(Debug, Clone, Default)]
pub struct Transaction<'a> {
    /// The changes of files, with the expected state of every path.
    pub files: Option<&'a Plan>,
    pub expect: Vec<Expectation>,
    pub rows: Vec<RowWrite>,
    /// Writes that take the rows back if the journal recorded the transaction but the files could not be changed. Each
    /// is skipped if a later entry has written its row.
    pub compensation: Vec<RowWrite>,
    pub durability: TransactionDurability,
}

impl<'a> Transaction<'a> {
    pub(crate) fn of_files(plan: &'a Plan) -> Self {
        let (files, expect) = (Some(plan), plan.expect.clone());
        Self { files, expect, durability: TransactionDurability::Now, ..Self::default() }
    }

    pub(crate) fn of_rows(durability: TransactionDurability) -> Self {
        Self { durability, ..Self::default() }
    }

    pub(crate) fn expect_family(&mut self, family: RowFamily, generation: u64) {
        self.expect.push(Expectation::Family { family, generation });
    }
}

/// A condition about rows that must hold when a transaction commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expectation {
    /// No row of the family was written since this generation.
    Family { family: RowFamily, generation: u64 },
    /// The row was not written since this revision; a row that must be absent has the revision 0.
    Row { family: RowFamily, id: String, revision: u64 },
    /// The deadline has not passed by the clock of the storage.
    Running(Deadline, ClockSetBack),
}

/// The condition that did not hold, so that a transaction was not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FailedExpectation {
    Path(RelPath),
    Family(RowFamily),
    Row(RowFamily, String),
    Running,
}

/// When a transaction reaches the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TransactionDurability {
    /// The journal entry waits in memory for the next transaction. If the storage cannot be written for long, the oldest
    /// waiting entries are dropped, and an entry records their number.
    #[default]
    RideAlong,
    /// Readers see the transaction at once; it is synced to disk with the next transaction that is.
    Later,
    Now,
}

/// One reading of the wall clock and the monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClockReading {
    /// The wall clock in Unix milliseconds, which may jump.
    pub wall_ms: i64,
    /// The uptime of the machine in milliseconds, which never jumps.
    pub uptime_ms: i64,
    /// A random id that changes with every boot of the machine.
    pub boot_id: String,
}

/// The start and the end of a time span. The monotonic clock decides whether the span has ended until the machine
/// reboots, and the wall clock afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deadline {
    pub starts_ms: i64,
    pub ends_ms: i64,
    pub starts_uptime_ms: i64,
    /// Empty if the uptime is unknown; then the wall clock decides.
    pub boot_id: String,
}

/// Whether a time span ends if, after a reboot, the wall clock is before its start, so that its age is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSetBack {
    Continues,
    Ends,
}

impl Deadline {
    /// The time span from now until `ends_ms` of the wall clock.
    pub fn until(now: &ClockReading, ends_ms: i64) -> Self {
        let ClockReading { wall_ms, uptime_ms, boot_id } = now.clone();
        Self { starts_ms: wall_ms, ends_ms, starts_uptime_ms: uptime_ms, boot_id }
    }

    /// Whether the time span has not ended yet.
    pub fn is_running(&self, now: &ClockReading, set_back: ClockSetBack) -> bool {
        if self.boot_id == now.boot_id {
            let passed_ms = now.uptime_ms.saturating_sub(self.starts_uptime_ms);
            return passed_ms < self.ends_ms.saturating_sub(self.starts_ms);
        }
        now.wall_ms < self.ends_ms && (set_back == ClockSetBack::Continues || now.wall_ms >= self.starts_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_clock_decides_until_a_reboot() {
        let at = |wall_ms, uptime_ms, boot: &str| ClockReading { wall_ms, uptime_ms, boot_id: boot.to_owned() };
        // The span begins at wall clock 1000 and uptime 50, and lasts for 100 milliseconds.
        let deadline = Deadline::until(&at(1000, 50, "a"), 1100);
        for (now, expected) in [
            (at(1050, 100, "a"), true),
            (at(9999, 100, "a"), true), // the wall clock jumped ahead
            (at(0, 149, "a"), true),    // the wall clock was set back
            (at(0, 150, "a"), false),   // 100 milliseconds have passed
            (at(1050, 5, "b"), true),
            (at(1100, 5, "b"), false),
        ] {
            for set_back in [ClockSetBack::Continues, ClockSetBack::Ends] {
                assert_eq!(deadline.is_running(&now, set_back), expected, "{now:?} {set_back:?}");
            }
        }
        let set_back_before_reboot = at(999, 5, "b");
        assert!(deadline.is_running(&set_back_before_reboot, ClockSetBack::Continues));
        assert!(!deadline.is_running(&set_back_before_reboot, ClockSetBack::Ends));
    }
}
