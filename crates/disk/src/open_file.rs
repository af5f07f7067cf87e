//! Opens regular files for reading; a FIFO, socket or device is never read. Every read has a size limit and gets its
//! file position as an argument, so threads can share one open file.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use sha2::{Digest, Sha256};

use crate::{DiskError, DiskErrorKind, DiskStat, confinement::OPathFdWithStat, sys, sys::file_io};

pub(crate) const CHUNK_BYTES: usize = 256 * 1024;

const FIRST_READ_BYTES: usize = 64 * 1024;

/// A regular file that is open for reading.
#[derive(Debug)]
pub struct OpenFile {
    file: OwnedFd,
    stat: DiskStat,
}

impl OpenFile {
    /// Opens the file of an `O_PATH` handle for reading; without `/proc`, the closure `open_by_name` opens the file.
    pub(crate) fn from_path_handle(
        path_handle: &OPathFdWithStat,
        open_by_name: impl FnOnce() -> Result<OwnedFd, DiskError>,
    ) -> Result<Self, DiskError> {
        path_handle.require_file()?;
        let file = match sys::reopen_path_handle(path_handle.handle.as_fd(), sys::READ_FLAGS) {
            Err(error) if error.is_errno(Errno::NOENT) => open_by_name()?,
            other => other?,
        };
        let stat = sys::stat_handle(file.as_fd())?.stat;
        if stat.fingerprint.id != path_handle.meta.id() {
            return Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "open file"));
        }
        Ok(Self { file, stat })
    }

    pub(crate) fn from_open_handle(path_handle: OPathFdWithStat) -> Result<Self, DiskError> {
        let path_handle = path_handle.ensure_file()?;
        Ok(Self { file: path_handle.handle, stat: path_handle.meta.stat })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The metadata that the file had when it was opened.
    pub fn stat(&self) -> DiskStat {
        self.stat
    }

    /// The current metadata of the file.
    pub fn restat(&self) -> Result<DiskStat, DiskError> {
        Ok(sys::stat_handle(self.file.as_fd())?.stat)
    }

    /// Reads the whole file; fails with `TooLarge` if the file content exceeds `limit_bytes`.
    pub fn read_all(&self, limit_bytes: u64) -> Result<Vec<u8>, DiskError> {
        let mut bytes = Vec::new();
        self.read_rest(&mut bytes, limit_bytes)?;
        Ok(bytes)
    }

    /// Reads the file into the buffer `bytes`; fails with `TooLarge` if the file content exceeds `limit_bytes`. The
    /// closure `continue_after` sees the first bytes of a large file and decides whether the rest is read.
    pub fn read_into(
        &self,
        bytes: &mut Vec<u8>,
        limit_bytes: u64,
        continue_after: &dyn Fn(&[u8]) -> bool,
    ) -> Result<(), DiskError> {
        bytes.clear();
        if (FIRST_READ_BYTES as u64 + 1..=limit_bytes).contains(&self.stat.size) {
            bytes.resize(FIRST_READ_BYTES, 0);
            let count = file_io::read_at(self.file.as_fd(), bytes, 0)?;
            bytes.truncate(count);
            if !continue_after(bytes) {
                return Ok(());
            }
        }
        self.read_rest(bytes, limit_bytes)
    }

    /// Appends the content of the file after its first `bytes.len()` bytes.
    fn read_rest(&self, bytes: &mut Vec<u8>, limit_bytes: u64) -> Result<(), DiskError> {
        let too_large = DiskError::new(DiskErrorKind::TooLarge, "read");
        if self.stat.size > limit_bytes {
            return Err(too_large);
        }
        loop {
            // The buffer has room for one byte more than the expected size. So a read that does not fill the buffer has
            // reached the end of the file.
            let expected = self.stat.size.saturating_sub(bytes.len() as u64);
            let more = usize::try_from(expected.saturating_add(1)).map_err(|_| too_large)?;
            bytes.try_reserve(more).map_err(|_| too_large)?;
            let room = bytes.capacity() - bytes.len();
            let count = file_io::read_next(self.file.as_fd(), bytes)?;
            if bytes.len() as u64 > limit_bytes {
                return Err(too_large);
            }
            if count == 0 || (count < room && bytes.len() as u64 >= self.stat.size) {
                return Ok(());
            }
        }
    }

    /// Reads bytes of the file from `offset` with one system call. Returns the number of bytes read, which is 0 at the
    /// end of the file.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError> {
        file_io::read_at(self.file.as_fd(), buffer, offset)
    }

    /// Reads `length` bytes of the file from `offset`, or fewer if the file ends earlier.
    pub fn read_range(&self, offset: u64, length: usize) -> Result<Vec<u8>, DiskError> {
        let available = self.restat()?.size.saturating_sub(offset);
        let length = usize::try_from(available).unwrap_or(usize::MAX).min(length);
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

    /// Returns the SHA-256 of the file content and the number of hashed bytes. Bytes beyond the size at opening are not
    /// hashed, so hashing ends even if the file keeps growing.
    pub fn hash(&self) -> Result<([u8; 32], u64), DiskError> {
        hash_first_bytes(self.file.as_fd(), self.stat.size)
    }

    /// Reads the whole file and computes its SHA-256; fails with `TooLarge` if the content exceeds `limit_bytes`.
    pub fn read_and_hash(&self, limit_bytes: u64) -> Result<(Vec<u8>, [u8; 32]), DiskError> {
        let bytes = self.read_all(limit_bytes)?;
        let digest = Sha256::digest(&bytes).into();
        Ok((bytes, digest))
    }
}

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
