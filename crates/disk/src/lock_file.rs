//! Locks between processes: one byte of a file per slot, held by an open file description. The kernel releases the
//! locks of a process that dies. Two threads that share one [`LockFile`] share its locks; to exclude each other, each
//! opens its own.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    StateError,
    sys::{
        file_io::{RangeLock, lock_range},
        inotify_calls,
    },
};

/// The mode of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Shared with other shared locks.
    Shared,
    /// Excludes all other locks.
    Exclusive,
}

/// An open lock file. Dropping it releases its locks.
#[derive(Debug)]
pub struct LockFile {
    file: OwnedFd,
}

impl LockFile {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self { file }
    }

    /// Locks a slot or changes its mode; `false` if another process holds it. Never waits. Slots go up to `i64::MAX -
    /// 1`.
    pub fn try_lock(&self, slot: u64, mode: LockMode) -> Result<bool, StateError> {
        let lock = match mode {
            LockMode::Shared => RangeLock::Shared,
            LockMode::Exclusive => RangeLock::Exclusive,
        };
        lock_range(self.file.as_fd(), slot, 1, lock).map_err(StateError::new)
    }

    /// Releases a slot, if it is locked.
    pub fn unlock(&self, slot: u64) -> Result<(), StateError> {
        lock_range(self.file.as_fd(), slot, 1, RangeLock::Unlock).map(|_| ()).map_err(StateError::new)
    }

    /// Wakes every process that watches this file. A process that misses it polls later.
    pub fn notify_watchers(&self) {
        inotify_calls::update_timestamps(self.file.as_fd());
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Closing is not enough: a process that is just being started may still share the handle.
        lock_range(self.file.as_fd(), 0, 0, RangeLock::Unlock).unwrap_or_default();
    }
}
