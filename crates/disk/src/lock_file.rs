//! Locks between processes: one byte of a file per slot, held by an open file description. The kernel frees the locks
//! of a process that dies. Two threads that share one [`LockFile`] share its locks; open one each to exclude each other.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::{
    DiskError,
    sys::{
        content::{RangeLock, lock_range},
        notice,
    },
};

/// How a slot is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Together with others who hold it shared.
    Shared,
    /// Alone.
    Exclusive,
}

/// An open lock file. Dropping it frees everything it holds.
#[derive(Debug)]
pub struct LockFile {
    file: OwnedFd,
}

impl LockFile {
    pub(crate) fn new(file: OwnedFd) -> Self {
        Self { file }
    }

    /// Takes a slot, or changes how it is held; false when somebody else holds it. Never waits. Slots go up to
    /// `i64::MAX - 1`.
    pub fn try_lock(&self, slot: u64, mode: Mode) -> Result<bool, DiskError> {
        let lock = match mode {
            Mode::Shared => RangeLock::Shared,
            Mode::Exclusive => RangeLock::Exclusive,
        };
        lock_range(self.file.as_fd(), slot, 1, lock)
    }

    /// Frees a slot; nothing happens when it is not held.
    pub fn unlock(&self, slot: u64) -> Result<(), DiskError> {
        lock_range(self.file.as_fd(), slot, 1, RangeLock::Free).map(|_| ())
    }

    /// Wakes every process that watches this file. One that is not woken looks by itself, only later.
    pub fn ring(&self) {
        notice::touch(self.file.as_fd());
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // Closing is not enough while a process that is just being started still shares the handle.
        lock_range(self.file.as_fd(), 0, 0, RangeLock::Free).unwrap_or_default();
    }
}
