//! Locks on places for the duration of one call: a table inside the process, byte ranges of a lock file between
//! processes. The kernel drops those of a dead process, so nothing ever has to be broken by hand.
//!
//! A changed place is held alone, everything above it is shared, so a tree cannot move while something in it changes.
//! Slots are hashes of paths: two places may share one, which costs waiting and never safety.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use disk::{LockFile, Mode};
use engine::{Failure, Guard, Kind};
use path::RelPath;

use crate::{failure, store::hold};

/// First and longest pause between two tries for a lock that another process holds.
const PAUSE_FIRST: Duration = Duration::from_micros(100);
const PAUSE_LONGEST: Duration = Duration::from_millis(5);

#[derive(Default)]
struct Holders {
    shared: usize,
    alone: bool,
}

/// Every lock this process holds or waits for.
pub(crate) struct Locks {
    table: Mutex<HashMap<u64, Holders>>,
    freed: Condvar,
    file: LockFile,
}

/// Locks held by one call.
pub(crate) struct Held {
    locks: Arc<Locks>,
    slots: Vec<(u64, Mode)>,
}

impl Guard for Held {}

/// The slot of a place: FNV-1a, fixed for ever, because processes of different builds must agree on it.
pub(crate) fn slot(path: &RelPath) -> u64 {
    hashed(path.as_bytes())
}

/// The slot that a process, or a connection to one, holds while it lives. No path holds a zero byte.
fn life(process: &str) -> u64 {
    hashed(format!("\0{process}").as_bytes())
}

fn hashed(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    // Two bits less: the kernel counts offsets signed, and the end of the range must fit as well.
    hash >> 2
}

/// The slots that changing these places needs, in the order everybody takes them.
pub(crate) fn slots(paths: &[RelPath]) -> Vec<(u64, Mode)> {
    let mut wanted: BTreeMap<u64, Mode> = BTreeMap::new();
    for path in paths {
        for above in path.ancestors() {
            wanted.entry(slot(&above)).or_insert(Mode::Shared);
        }
    }
    for path in paths {
        wanted.insert(slot(path), Mode::Exclusive);
    }
    wanted.into_iter().collect()
}

impl Locks {
    pub(crate) fn new(file: LockFile) -> Self {
        Self { table: Mutex::new(HashMap::new()), freed: Condvar::new(), file }
    }

    /// Takes every slot, waiting until the deadline.
    pub(crate) fn take(
        self: &Arc<Self>,
        wanted: Vec<(u64, Mode)>,
        deadline: Instant,
    ) -> Result<Held, Failure> {
        let mut held = Held { locks: Arc::clone(self), slots: Vec::with_capacity(wanted.len()) };
        for (slot, mode) in wanted {
            self.take_inside(slot, mode, deadline)?;
            // From here on dropping `held` gives the slot back.
            held.slots.push((slot, mode));
            self.take_between(slot, mode, deadline)?;
        }
        Ok(held)
    }

    /// Takes every slot if all of them are free now; nothing when somebody holds one.
    pub(crate) fn try_take(self: &Arc<Self>, wanted: Vec<(u64, Mode)>) -> Result<Option<Held>, Failure> {
        match self.take(wanted, Instant::now()) {
            Err(failure) if failure.kind == Kind::Busy => Ok(None),
            other => other.map(Some),
        }
    }

    fn take_inside(&self, slot: u64, mode: Mode, deadline: Instant) -> Result<(), Failure> {
        let mut table = hold(&self.table);
        loop {
            let holders = table.entry(slot).or_default();
            match mode {
                Mode::Shared if !holders.alone => {
                    holders.shared += 1;
                    return Ok(());
                }
                Mode::Exclusive if !holders.alone && holders.shared == 0 => {
                    holders.alone = true;
                    return Ok(());
                }
                Mode::Shared | Mode::Exclusive => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(busy());
            }
            table = self.freed.wait_timeout(table, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn take_between(&self, slot: u64, mode: Mode, deadline: Instant) -> Result<(), Failure> {
        let mut pause = PAUSE_FIRST;
        loop {
            if self.file.try_lock(slot, mode).map_err(|error| failure::own(&error))? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(busy());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_LONGEST);
        }
    }

    fn give_back(&self, slot: u64, mode: Mode) {
        let mut table = hold(&self.table);
        let Some(holders) = table.get_mut(&slot) else { return };
        match mode {
            Mode::Shared => holders.shared -= 1,
            Mode::Exclusive => holders.alone = false,
        }
        if holders.shared == 0 && !holders.alone {
            table.remove(&slot);
            // While the table is held nobody in this process can have taken the slot again.
            match self.file.unlock(slot) {
                Ok(()) | Err(_) => {}
            }
        }
        drop(table);
        self.freed.notify_all();
    }
}

impl Locks {
    /// Shows other processes that whoever has this name lives, until this process ends or says otherwise.
    pub(crate) fn live(&self, process: &str) -> Result<(), Failure> {
        self.file.try_lock(life(process), Mode::Exclusive).map(|_| ()).map_err(|error| failure::own(&error))
    }

    /// Shows that whoever has this name is gone.
    pub(crate) fn die(&self, process: &str) {
        // Where it cannot be shown it is when the process ends.
        match self.file.unlock(life(process)) {
            Ok(()) | Err(_) => {}
        }
    }

    /// Whether somebody of another process lives who showed it.
    pub(crate) fn is_alive(&self, process: &str) -> Result<bool, Failure> {
        let own = |error: disk::DiskError| failure::own(&error);
        let free = self.file.try_lock(life(process), Mode::Shared).map_err(own)?;
        if free {
            self.file.unlock(life(process)).map_err(own)?;
        }
        Ok(!free)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        for (slot, mode) in self.slots.drain(..) {
            self.locks.give_back(slot, mode);
        }
    }
}

fn busy() -> Failure {
    Failure::new(Kind::Busy, "another call is changing the same place").hint("call again")
}
