//! Path locks for the duration of one call: a table within the process, byte ranges of a lock file between processes.
//! The kernel frees the locks of a dead process, so no lock is ever stale.
//!
//! A changed path is locked exclusively and its parents are shared, so that a tree cannot move while something in it
//! changes. Slots are path hashes: a collision costs waiting time, never safety.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use stead_disk::{LockFile, LockMode};
use stead_engine::{CallLockGuard, Error, ErrorKind};
use stead_path::RelPath;

use crate::{errors, schema::BUSY_TIMEOUT_MS, store::lock_ignoring_poison};

/// First and longest pause between attempts to get a lock held by another process.
const RETRY_PAUSE_FIRST: Duration = Duration::from_micros(100);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(5);

#[derive(Default)]
struct LockHolders {
    shared_count: usize,
    is_exclusive: bool,
}

/// All locks that this process holds or waits for.
pub(crate) struct PathLocks {
    table: Mutex<HashMap<u64, LockHolders>>,
    released: Condvar,
    file: LockFile,
}

pub(crate) struct PathLockGuard {
    locks: Arc<PathLocks>,
    slots: Vec<(u64, LockMode)>,
}

impl CallLockGuard for PathLockGuard {}

/// The slot of a path: FNV-1a. It never changes, because processes of different builds must agree on it.
pub(crate) fn path_slot(path: &RelPath) -> u64 {
    hash_slot(path.as_bytes())
}

/// The slot that a live process or connection holds. Paths contain no zero byte, so it cannot be a path's.
fn liveness_slot(process: &str) -> u64 {
    hash_slot(format!("\0{process}").as_bytes())
}

/// The slot that a process holds while it opens the database.
fn database_open_slot() -> u64 {
    hash_slot(b"\0database")
}

fn hash_slot(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    // Two bits less: file offsets are signed, and the end of the range must fit too.
    hash >> 2
}

/// The slots needed to change these paths, in locking order.
pub(crate) fn path_slots(paths: &[RelPath]) -> Vec<(u64, LockMode)> {
    let mut wanted: BTreeMap<u64, LockMode> = BTreeMap::new();
    for path in paths {
        for above in path.ancestors() {
            wanted.entry(path_slot(&above)).or_insert(LockMode::Shared);
        }
    }
    for path in paths {
        wanted.insert(path_slot(path), LockMode::Exclusive);
    }
    wanted.into_iter().collect()
}

impl PathLocks {
    pub(crate) fn new(file: LockFile) -> Self {
        Self { table: Mutex::new(HashMap::new()), released: Condvar::new(), file }
    }

    /// Locks every slot, waiting until the deadline.
    pub(crate) fn lock(
        self: &Arc<Self>,
        wanted: Vec<(u64, LockMode)>,
        deadline: Instant,
    ) -> Result<PathLockGuard, Error> {
        let mut guard = PathLockGuard { locks: Arc::clone(self), slots: Vec::with_capacity(wanted.len()) };
        for (slot, mode) in wanted {
            self.lock_in_process(slot, mode, deadline)?;
            // From here on dropping `guard` releases the slot.
            guard.slots.push((slot, mode));
            self.lock_between_processes(slot, mode, deadline)?;
        }
        Ok(guard)
    }

    /// Locks every slot if all are free now; otherwise returns `None`.
    pub(crate) fn try_lock(self: &Arc<Self>, wanted: Vec<(u64, LockMode)>) -> Result<Option<PathLockGuard>, Error> {
        match self.lock(wanted, Instant::now()) {
            Err(error) if error.kind == ErrorKind::Busy => Ok(None),
            other => other.map(Some),
        }
    }

    /// Waits until no other process is opening the database. SQLite itself does not wait while two connections switch a
    /// new file to a write-ahead log: one of them would fail.
    pub(crate) fn lock_database_open(self: &Arc<Self>) -> Result<PathLockGuard, Error> {
        let deadline = Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS);
        let locked = self.lock(vec![(database_open_slot(), LockMode::Exclusive)], deadline);
        locked.map_err(|mut error| {
            if error.kind == ErrorKind::Busy {
                error.message = "another process is opening the workspace".to_owned();
            }
            error
        })
    }

    fn lock_in_process(&self, slot: u64, mode: LockMode, deadline: Instant) -> Result<(), Error> {
        let mut table = lock_ignoring_poison(&self.table);
        loop {
            let holders = table.entry(slot).or_default();
            match mode {
                LockMode::Shared if !holders.is_exclusive => {
                    holders.shared_count += 1;
                    return Ok(());
                }
                LockMode::Exclusive if !holders.is_exclusive && holders.shared_count == 0 => {
                    holders.is_exclusive = true;
                    return Ok(());
                }
                LockMode::Shared | LockMode::Exclusive => {}
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(lock_timeout_error());
            }
            table = self.released.wait_timeout(table, left).unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }

    fn lock_between_processes(&self, slot: u64, mode: LockMode, deadline: Instant) -> Result<(), Error> {
        let mut pause = RETRY_PAUSE_FIRST;
        loop {
            if self.file.try_lock(slot, mode).map_err(|error| errors::state_directory_error(&error))? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(lock_timeout_error());
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
        }
    }

    fn unlock(&self, slot: u64, mode: LockMode) {
        let mut table = lock_ignoring_poison(&self.table);
        let Some(holders) = table.get_mut(&slot) else { return };
        match mode {
            LockMode::Shared => holders.shared_count -= 1,
            LockMode::Exclusive => holders.is_exclusive = false,
        }
        if holders.shared_count == 0 && !holders.is_exclusive {
            table.remove(&slot);
            // While the table is locked, no other thread can have taken the slot again.
            match self.file.unlock(slot) {
                Ok(()) | Err(_) => {}
            }
        }
        drop(table);
        self.released.notify_all();
    }
}

impl PathLocks {
    /// Holds the liveness lock of this name until it is released or the process ends.
    pub(crate) fn hold_liveness(&self, process: &str) -> Result<(), Error> {
        self.file
            .try_lock(liveness_slot(process), LockMode::Exclusive)
            .map(|_| ())
            .map_err(|error| errors::state_directory_error(&error))
    }

    pub(crate) fn release_liveness(&self, process: &str) {
        // On failure the lock is freed when the process ends.
        match self.file.unlock(liveness_slot(process)) {
            Ok(()) | Err(_) => {}
        }
    }

    /// Whether another process holds the liveness lock of this name.
    pub(crate) fn is_alive(&self, process: &str) -> Result<bool, Error> {
        let own = |error: stead_disk::StateError| errors::state_directory_error(&error);
        let free = self.file.try_lock(liveness_slot(process), LockMode::Shared).map_err(own)?;
        if free {
            self.file.unlock(liveness_slot(process)).map_err(own)?;
        }
        Ok(!free)
    }
}

impl Drop for PathLockGuard {
    fn drop(&mut self) {
        for (slot, mode) in self.slots.drain(..) {
            self.locks.unlock(slot, mode);
        }
    }
}

fn lock_timeout_error() -> Error {
    Error::new(ErrorKind::Busy, "another call is changing the same path").with_next_step("call again")
}
