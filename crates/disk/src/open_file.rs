//! A regular file open for reading. Owns the two-step opening (check first, then open) and reading with limits.
//! Promises: a FIFO, socket or device is never opened; reads are by position, so a shared handle has no cursor.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::{DiskError, DiskErrorKind, DiskStat, confinement::PathHandle, sys, sys::file_io};

/// Bytes per read while hashing or copying.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes that are read before `continue_after` is called.
const FIRST_READ_BYTES: usize = 64 * 1024;

/// A regular file open for reading.
#[derive(Debug)]
pub struct OpenFile {
    file: OwnedFd,
    stat: DiskStat,
}

impl OpenFile {
    /// Opens the file of a path handle for reading. `again` opens it by name, for systems without `/proc`.
    pub(crate) fn from_path_handle(
        path_handle: PathHandle,
        again: impl FnOnce() -> Result<OwnedFd, DiskError>,
    ) -> Result<Self, DiskError> {
        let path_handle = path_handle.ensure_file()?;
        let file = match sys::reopen_path_handle(path_handle.handle.as_fd(), sys::READ_FLAGS) {
            Err(error) if error.is_errno(Errno::NOENT) => again()?,
            other => other?,
        };
        let stat = sys::stat_handle(file.as_fd())?.stat;
        if stat.fingerprint.id != path_handle.meta.id() {
            return Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "open file"));
        }
        Ok(Self { file, stat })
    }

    /// The file of a handle that is already open for reading.
    pub(crate) fn from_open_handle(path_handle: PathHandle) -> Result<Self, DiskError> {
        let path_handle = path_handle.ensure_file()?;
        Ok(Self { file: path_handle.handle, stat: path_handle.meta.stat })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The stat when it was opened.
    pub fn stat(&self) -> DiskStat {
        self.stat
    }

    /// The current stat.
    pub fn restat(&self) -> Result<DiskStat, DiskError> {
        Ok(sys::stat_handle(self.file.as_fd())?.stat)
    }

    /// The whole content; `TooLarge` if it exceeds `limit_bytes`.
    pub fn read_all(&self, limit_bytes: u64) -> Result<Vec<u8>, DiskError> {
        let too_large = DiskError::new(DiskErrorKind::TooLarge, "read");
        if self.stat.size > limit_bytes {
            return Err(too_large);
        }
        let mut bytes: Vec<u8> = Vec::new();
        // One byte more than expected, so that the end is detected without growing.
        reserve_buffer(&mut bytes, self.stat.size.saturating_add(1))?;
        while file_io::read_next(self.file.as_fd(), &mut bytes)? > 0 {
            if bytes.len() as u64 > limit_bytes {
                return Err(too_large);
            }
            if bytes.len() == bytes.capacity() {
                reserve_buffer(&mut bytes, CHUNK_BYTES as u64)?;
            }
        }
        Ok(bytes)
    }

    /// Reads the whole content into `bytes`, which is cleared first, or only the first bytes if `continue_after` returns
    /// false for them. `TooLarge` if the content exceeds `limit_bytes`.
    pub fn read_into(
        &self,
        bytes: &mut Vec<u8>,
        limit_bytes: u64,
        continue_after: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), DiskError> {
        bytes.clear();
        if self.stat.size > limit_bytes {
            return Err(DiskError::new(DiskErrorKind::TooLarge, "read"));
        }
        if self.stat.size > FIRST_READ_BYTES as u64 {
            bytes.resize(FIRST_READ_BYTES, 0);
            let count = file_io::read_at(self.file.as_fd(), bytes, 0)?;
            bytes.truncate(count);
            if !continue_after(bytes) {
                return Ok(());
            }
        }
        loop {
            // One byte more than expected, so that a short read detects the end.
            let expected = self.stat.size.saturating_sub(bytes.len() as u64);
            reserve_buffer(bytes, expected.saturating_add(1))?;
            let room = bytes.capacity() - bytes.len();
            let count = file_io::read_next(self.file.as_fd(), bytes)?;
            if bytes.len() as u64 > limit_bytes {
                return Err(DiskError::new(DiskErrorKind::TooLarge, "read"));
            }
            if count == 0 || (count < room && bytes.len() as u64 >= self.stat.size) {
                return Ok(());
            }
        }
    }

    /// Reads from `offset` with one system call; 0 at the end of the file.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        file_io::read_at(self.file.as_fd(), buffer, offset)
    }

    /// Up to `length` bytes from `offset`; fewer only at the end of the file.
    pub fn read_range(&self, offset: u64, length: usize) -> Result<Vec<u8>, DiskError> {
        let there = self.restat()?.size.saturating_sub(offset);
        let length = usize::try_from(there).unwrap_or(usize::MAX).min(length);
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            let count = file_io::read_at(self.file.as_fd(), &mut bytes[filled..], offset + filled as u64)?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The SHA-256 of the content and its length. Stops at the size seen when the file was opened, so that a growing
    /// file terminates.
    pub fn hash(&self) -> Result<([u8; 32], u64), DiskError> {
        hash_first_bytes(self.file.as_fd(), self.stat.size)
    }

    /// The whole content with its SHA-256; `TooLarge` if it exceeds `limit_bytes`.
    pub fn read_and_hash(&self, limit_bytes: u64) -> Result<(Vec<u8>, [u8; 32]), DiskError> {
        let bytes = self.read_all(limit_bytes)?;
        let digest = Sha256::digest(&bytes).into();
        Ok((bytes, digest))
    }
}

/// The SHA-256 of at most `size` bytes from the start.
pub(crate) fn hash_first_bytes(file: BorrowedFd<'_>, size: u64) -> Result<([u8; 32], u64), DiskError> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES.min(usize::try_from(size).unwrap_or(CHUNK_BYTES))];
    let mut offset = 0;
    while offset < size {
        let chunk_size = usize::try_from(size - offset).unwrap_or(CHUNK_BYTES).min(buffer.len());
        let count = file_io::read_at(file, &mut buffer[..chunk_size], offset)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        offset += count as u64;
    }
    Ok((hasher.finalize().into(), offset))
}

/// Reserves capacity; `TooLarge` if the memory is not available.
fn reserve_buffer(bytes: &mut Vec<u8>, more: u64) -> Result<(), DiskError> {
    let too_large = DiskError::new(DiskErrorKind::TooLarge, "read");
    let more = usize::try_from(more).map_err(|_| too_large)?;
    bytes.try_reserve(more).map_err(|_| too_large)
}
