//! Locks that calls hold on paths, and liveness locks of processes and connections. The locks between processes are
//! byte ranges of a lock file; the kernel frees them when a process dies, so no lock is ever stale.
//!
//! A path that a call changes is locked exclusively; the directories above the path are locked shared, so that they
//! cannot be moved. The position of a path's byte in the lock file is a hash of the path; two paths with the same hash
//! merely wait for each other.
//!
//! The name of a liveness lock is stored in the database rows that belong to the process or connection.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

use stead_disk::{LockMode, MultiSlotLockFile};
use stead_engine::{CallLockGuard, CallerResourceLifetime, Error, ErrorKind, HolderPresence, NextStep};
use stead_path::RelPath;

use crate::{
    errors,
    store::{BUSY_TIMEOUT_MS, lock_ignoring_poison},
};

const RETRY_PAUSE_FIRST: Duration = Duration::from_micros(100);
const RETRY_PAUSE_MAX: Duration = Duration::from_millis(5);

#[derive(Default)]
struct PathLockState {
    shared_count: usize,
    is_exclusive: bool,
}

pub(crate) struct PathLocks {
    table: Mutex<HashMap<u64, PathLockState>>,
    released: Condvar,
    file: MultiSlotLockFile,
}

pub(crate) struct PathLockGuard {
    locks: Arc<PathLocks>,
    slots: Vec<(u64, LockMode)>,
}

impl CallLockGuard for PathLockGuard {}

/// The name of a liveness lock is hashed with a leading zero byte, so that the name differs from every path.
fn liveness_slot(name: &str) -> u64 {
    hash_slot(format!("\0{name}").as_bytes())
}

fn database_open_slot() -> u64 {
    hash_slot(b"\0database")
}

/// The FNV-1a hash must never change, because processes of different versions must lock the same positions.
fn hash_slot(bytes: &[u8]) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    // Two bits are dropped: file offsets are signed, and the end of the locked range must also be a valid offset.
    hash >> 2
}

/// The positions in the lock file are sorted, so that concurrent calls cannot deadlock.
pub(crate) fn path_slots(paths: &[RelPath]) -> Vec<(u64, LockMode)> {
    let mut wanted: BTreeMap<u64, LockMode> = BTreeMap::new();
    for path in paths {
        for above in path.ancestors() {
            wanted.entry(hash_slot(above.as_bytes())).or_insert(LockMode::Shared);
        }
    }
    for path in paths {
        wanted.insert(hash_slot(path.as_bytes()), LockMode::Exclusive);
    }
    wanted.into_iter().collect()
}

impl PathLocks {
    pub(crate) fn new(file: MultiSlotLockFile) -> Self {
        Self { table: Mutex::new(HashMap::new()), released: Condvar::new(), file }
    }

    pub(crate) fn lock(
        self: &Arc<Self>,
        wanted: Vec<(u64, LockMode)>,
        deadline: Instant,
    ) -> Result<PathLockGuard, Error> {
        let mut guard = PathLockGuard { locks: Arc::clone(self), slots: Vec::with_capacity(wanted.len()) };
        for (slot, mode) in wanted {
            self.lock_in_process(slot, mode, deadline)?;
            // If the next step fails, dropping `guard` releases the slot.
            guard.slots.push((slot, mode));
            self.lock_between_processes(slot, mode, deadline)?;
        }
        Ok(guard)
    }

    pub(crate) fn try_lock(self: &Arc<Self>, wanted: Vec<(u64, LockMode)>) -> Result<Option<PathLockGuard>, Error> {
        match self.lock(wanted, Instant::now()) {
            Err(error) if error.kind == ErrorKind::Busy => Ok(None),
            other => other.map(Some),
        }
    }

    /// Only one process at a time opens the database of a workspace. SQLite fails without waiting if two connections
    /// switch a new database to a write-ahead log at the same time.
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
            table = self.released.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock_between_processes(&self, slot: u64, mode: LockMode, deadline: Instant) -> Result<(), Error> {
        let mut pause = RETRY_PAUSE_FIRST;
        loop {
            if self.file.try_lock(slot, mode).map_err(errors::state_directory_error)? {
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
            // The table is still locked, so no other thread can have locked the slot again.
            self.file.unlock(slot).unwrap_or_default();
        }
        drop(table);
        self.released.notify_all();
    }

    pub(crate) fn is_alive(&self, name: &str) -> Result<bool, Error> {
        let slot = liveness_slot(name);
        let is_free = self.file.try_lock(slot, LockMode::Shared).map_err(errors::state_directory_error)?;
        if is_free {
            self.file.unlock(slot).map_err(errors::state_directory_error)?;
        }
        Ok(!is_free)
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
    Error::new(ErrorKind::Busy, "another call is changing the same path").with_next_step(NextStep::repeat())
}

/// The separator of process id and connection number, which process ids never contain.
const CONNECTION_SEPARATOR: char = '.';

pub(crate) struct LivenessLockRegistry {
    process_id: String,
    locks: Arc<PathLocks>,
    registered: Mutex<HashSet<String>>,
}

/// Dropping a `ConnectionLivenessLock` releases the liveness lock of the connection.
struct ConnectionLivenessLock {
    registry: Weak<LivenessLockRegistry>,
    name: String,
}

impl LivenessLockRegistry {
    pub(crate) fn new(process: &str, locks: &Arc<PathLocks>) -> Arc<Self> {
        Arc::new(Self { process_id: process.to_owned(), locks: Arc::clone(locks), registered: Mutex::default() })
    }

    pub(crate) fn register(self: &Arc<Self>, lifetime: &CallerResourceLifetime) -> Result<String, Error> {
        match lifetime {
            CallerResourceLifetime::Process | CallerResourceLifetime::SingleCall => {
                self.hold_lock(&self.process_id)?;
                Ok(self.process_id.clone())
            }
            CallerResourceLifetime::Connection(connection) => {
                let name = format!("{}{CONNECTION_SEPARATOR}{}", self.process_id, connection.number());
                connection.attach_resource(&name, || {
                    self.hold_lock(&name)?;
                    Ok(Box::new(ConnectionLivenessLock { registry: Arc::downgrade(self), name: name.clone() }))
                })?;
                Ok(name)
            }
        }
    }

    pub(crate) fn presence_of(&self, name: &str) -> Result<HolderPresence, Error> {
        // A process cannot test its own locks: the kernel would grant the lock again, and the release would free the
        // lock.
        let process = name.split_once(CONNECTION_SEPARATOR).map_or(name, |(process, _)| process);
        let (is_alive, presence) = if process == self.process_id {
            let is_registered = lock_ignoring_poison(&self.registered).contains(name);
            (name == process || is_registered, HolderPresence::Here)
        } else {
            (self.locks.is_alive(name)?, HolderPresence::Elsewhere)
        };
        Ok(if is_alive { presence } else { HolderPresence::Gone })
    }

    fn hold_lock(&self, name: &str) -> Result<(), Error> {
        let mut registered = lock_ignoring_poison(&self.registered);
        if !registered.contains(name) {
            let locked = self.locks.file.try_lock(liveness_slot(name), LockMode::Exclusive);
            locked.map_err(errors::state_directory_error)?;
            registered.insert(name.to_owned());
        }
        Ok(())
    }
}

impl Drop for ConnectionLivenessLock {
    fn drop(&mut self) {
        // If the registry is gone, the workspace was closed and has released its locks.
        let Some(registry) = self.registry.upgrade() else { return };
        lock_ignoring_poison(&registry.registered).remove(&self.name);
        // A lock that cannot be released is freed when the process ends.
        registry.locks.file.unlock(liveness_slot(&self.name)).unwrap_or_default();
    }
}
