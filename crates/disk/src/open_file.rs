//! A regular file open for reading. Owns the two-step opening (look first, then open for real) and reading with
//! limits. Promises: a FIFO, socket or device is never opened; reads are by position, so a shared handle has no
//! cursor to fight over.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::{DiskError, ErrorKind, Stat, confines::Held, sys, sys::content};

/// Bytes read at once when a file is hashed or copied.
pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes that are read before it is asked whether to go on.
const FIRST_BYTES: usize = 64 * 1024;

/// A regular file open for reading.
#[derive(Debug)]
pub struct OpenFile {
    file: OwnedFd,
    stat: Stat,
}

impl OpenFile {
    /// Opens the file behind a place handle for reading. `again` opens it by name, for systems without `/proc`.
    pub(crate) fn from_held(
        held: Held,
        again: impl FnOnce() -> Result<OwnedFd, DiskError>,
    ) -> Result<Self, DiskError> {
        let held = held.need_file()?;
        let file = match sys::reopen(held.handle.as_fd(), sys::READING) {
            Err(error) if error.is_errno(Errno::NOENT) => again()?,
            other => other?,
        };
        let stat = sys::stat_handle(file.as_fd())?.stat;
        if stat.stamp.id != held.meta.id() {
            return Err(DiskError::new(ErrorKind::Moved, "open file"));
        }
        Ok(Self { file, stat })
    }

    /// The file behind a handle that is open for reading already.
    pub(crate) fn from_open(held: Held) -> Result<Self, DiskError> {
        let held = held.need_file()?;
        Ok(Self { file: held.handle, stat: held.meta.stat })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// What was known when it was opened.
    pub fn stat(&self) -> Stat {
        self.stat
    }

    /// What is known now.
    pub fn stat_now(&self) -> Result<Stat, DiskError> {
        Ok(sys::stat_handle(self.file.as_fd())?.stat)
    }

    /// The whole content; refused as `TooLarge` when there is more than `limit_bytes`.
    pub fn read_all(&self, limit_bytes: u64) -> Result<Vec<u8>, DiskError> {
        let too_large = DiskError::new(ErrorKind::TooLarge, "read");
        if self.stat.size > limit_bytes {
            return Err(too_large);
        }
        let mut bytes: Vec<u8> = Vec::new();
        // One byte more than expected, so that the end is seen without growing.
        reserve(&mut bytes, self.stat.size.saturating_add(1))?;
        while content::read_on(self.file.as_fd(), &mut bytes)? > 0 {
            if bytes.len() as u64 > limit_bytes {
                return Err(too_large);
            }
            if bytes.len() == bytes.capacity() {
                reserve(&mut bytes, CHUNK_BYTES as u64)?;
            }
        }
        Ok(bytes)
    }

    /// The whole content into `bytes`, which is emptied first, or only its first bytes when `goes_on` says no to them.
    /// Refused as `TooLarge` when there is more than `limit_bytes`.
    pub fn read_into(
        &self,
        bytes: &mut Vec<u8>,
        limit_bytes: u64,
        goes_on: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), DiskError> {
        bytes.clear();
        if self.stat.size > limit_bytes {
            return Err(DiskError::new(ErrorKind::TooLarge, "read"));
        }
        if self.stat.size > FIRST_BYTES as u64 {
            bytes.resize(FIRST_BYTES, 0);
            let count = content::read_at(self.file.as_fd(), bytes, 0)?;
            bytes.truncate(count);
            if !goes_on(bytes) {
                return Ok(());
            }
        }
        loop {
            // One byte more than expected, so that the end is seen by a read that does not fill the room.
            let expected = self.stat.size.saturating_sub(bytes.len() as u64);
            reserve(bytes, expected.saturating_add(1))?;
            let room = bytes.capacity() - bytes.len();
            let count = content::read_on(self.file.as_fd(), bytes)?;
            if bytes.len() as u64 > limit_bytes {
                return Err(DiskError::new(ErrorKind::TooLarge, "read"));
            }
            if count == 0 || (count < room && bytes.len() as u64 >= self.stat.size) {
                return Ok(());
            }
        }
    }

    /// Reads from `offset` as much as one call of the system gives; 0 at the end of the file.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        content::read_at(self.file.as_fd(), buffer, offset)
    }

    /// Up to `length` bytes from `offset`; fewer only at the end of the file.
    pub fn read_range(&self, offset: u64, length: usize) -> Result<Vec<u8>, DiskError> {
        let there = self.stat_now()?.size.saturating_sub(offset);
        let length = usize::try_from(there).unwrap_or(usize::MAX).min(length);
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            let count = content::read_at(self.file.as_fd(), &mut bytes[filled..], offset + filled as u64)?;
            if count == 0 {
                break;
            }
            filled += count;
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// The sha256 of the content and how many bytes went into it. Ends at the size seen when the file was opened, so
    /// that a growing file ends too.
    pub fn hash(&self) -> Result<([u8; 32], u64), DiskError> {
        hash_up_to(self.file.as_fd(), self.stat.size)
    }

    /// The whole content with its sha256; refused as `TooLarge` when there is more than `limit_bytes`.
    pub fn read_and_hash(&self, limit_bytes: u64) -> Result<(Vec<u8>, [u8; 32]), DiskError> {
        let bytes = self.read_all(limit_bytes)?;
        let digest = Sha256::digest(&bytes).into();
        Ok((bytes, digest))
    }
}

/// The sha256 of at most `size` bytes from the start.
pub(crate) fn hash_up_to(file: BorrowedFd<'_>, size: u64) -> Result<([u8; 32], u64), DiskError> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES.min(usize::try_from(size).unwrap_or(CHUNK_BYTES))];
    let mut offset = 0;
    while offset < size {
        let wanted = usize::try_from(size - offset).unwrap_or(CHUNK_BYTES).min(buffer.len());
        let count = content::read_at(file, &mut buffer[..wanted], offset)?;
        if count == 0 {
            break;
        }
        hasher.update(&buffer[..count]);
        offset += count as u64;
    }
    Ok((hasher.finalize().into(), offset))
}

/// Makes room, or says that the content is too large for this machine.
fn reserve(bytes: &mut Vec<u8>, more: u64) -> Result<(), DiskError> {
    let too_large = DiskError::new(ErrorKind::TooLarge, "read");
    let more = usize::try_from(more).map_err(|_| too_large)?;
    bytes.try_reserve(more).map_err(|_| too_large)
}
