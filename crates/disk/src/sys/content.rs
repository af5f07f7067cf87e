//! System calls on open files: bytes, attributes, locks and durability. Same promises as `sys`.

use std::os::fd::BorrowedFd;

use nix::{fcntl::FcntlArg, libc};
use rustix::{
    fs::{Gid, Mode, Uid, XattrFlags},
    io::Errno,
};

use super::run;
use crate::{
    DiskError,
    faults::{Call, gate},
};

/// Largest value of an extended attribute (the kernel's own limit).
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Reads on where `buffer`, which holds the file from its start, ends; 0 at the end of the file.
pub(crate) fn read_on(file: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, DiskError> {
    let offset = buffer.len() as u64;
    run(Call::Read, || rustix::io::pread(file, rustix::buffer::spare_capacity(buffer), offset))
}

/// Reads at `offset`; 0 at the end of the file.
pub(crate) fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
    run(Call::Read, || rustix::io::pread(file, &mut *buffer, offset))
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all_at(file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        let count = run(Call::Write, || rustix::io::pwrite(file, rest, offset + written as u64))?;
        if count == 0 {
            return Err(DiskError::from_errno(Call::Write.as_str(), Errno::IO));
        }
        written += count;
    }
    Ok(())
}

/// Shares the blocks of `from` with the empty file `to`.
pub(crate) fn clone_whole(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), DiskError> {
    run(Call::Clone, || rustix::fs::ioctl_ficlone(to, from))
}

/// Copies inside the kernel; returns how much.
pub(crate) fn copy_range(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    offset: u64,
    length: usize,
) -> Result<usize, DiskError> {
    run(Call::CopyRange, || {
        let (mut at, mut put) = (offset, offset);
        rustix::fs::copy_file_range(from, Some(&mut at), to, Some(&mut put), length)
    })
}

/// Sets the mode of an open file.
pub(crate) fn set_mode(file: BorrowedFd<'_>, mode: u32) -> Result<(), DiskError> {
    run(Call::Chmod, || rustix::fs::fchmod(file, Mode::from_raw_mode(mode)))
}

/// Sets owner or group of an open file.
pub(crate) fn set_owner(file: BorrowedFd<'_>, uid: Option<u32>, gid: Option<u32>) -> Result<(), DiskError> {
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    run(Call::Chown, || rustix::fs::fchown(file, uid, gid))
}

/// The names of all extended attributes; empty where the file system has none.
pub(crate) fn attribute_names(file: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, DiskError> {
    let mut buffer = vec![0_u8; ATTRIBUTE_BYTES_MAX];
    match run(Call::Xattr, || rustix::fs::flistxattr(file, &mut buffer[..])) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(buffer.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
        }
        Err(error) if error.is_errno(Errno::OPNOTSUPP) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The value of one extended attribute; nothing when it is not there.
pub(crate) fn attribute(file: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
    let mut buffer = vec![0_u8; ATTRIBUTE_BYTES_MAX];
    match run(Call::Xattr, || rustix::fs::fgetxattr(file, name, &mut buffer[..])) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
        Err(error) if error.is_errno(Errno::NODATA) || error.is_errno(Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Sets one extended attribute.
pub(crate) fn set_attribute(file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), DiskError> {
    run(Call::Xattr, || rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()))
}

/// Takes one extended attribute away; nothing happens when it is not there.
pub(crate) fn remove_attribute(file: BorrowedFd<'_>, name: &[u8]) -> Result<(), DiskError> {
    match run(Call::Xattr, || rustix::fs::fremovexattr(file, name)) {
        Err(error) if error.is_errno(Errno::NODATA) || error.is_errno(Errno::OPNOTSUPP) => Ok(()),
        other => other,
    }
}

/// Makes content and size durable.
pub(crate) fn sync_content(file: BorrowedFd<'_>) -> Result<(), DiskError> {
    run(Call::Sync, || rustix::fs::fdatasync(file))
}

/// Makes everything about a file or directory durable.
pub(crate) fn sync_all(file: BorrowedFd<'_>) -> Result<(), DiskError> {
    run(Call::Sync, || rustix::fs::fsync(file))
}

/// Makes the whole file system durable.
pub(crate) fn sync_file_system(file: BorrowedFd<'_>) -> Result<(), DiskError> {
    run(Call::SyncFileSystem, || rustix::fs::syncfs(file))
}

/// What to do with a byte range.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RangeLock {
    Shared,
    Exclusive,
    Free,
}

/// Locks or frees `length` bytes from `start` for the open file description; a length of 0 goes on to the end. False
/// when another one holds some of them.
pub(crate) fn lock_range(
    file: BorrowedFd<'_>,
    start: u64,
    length: i64,
    lock: RangeLock,
) -> Result<bool, DiskError> {
    let refused = |errno: i32| DiskError::from_errno(Call::Lock.as_str(), Errno::from_raw_os_error(errno));
    let l_type = match lock {
        RangeLock::Shared => libc::F_RDLCK,
        RangeLock::Exclusive => libc::F_WRLCK,
        RangeLock::Free => libc::F_UNLCK,
    };
    let Ok(l_start) = libc::off_t::try_from(start) else { return Err(refused(libc::EINVAL)) };
    let range =
        libc::flock { l_type: l_type as _, l_whence: libc::SEEK_SET as _, l_start, l_len: length, l_pid: 0 };
    loop {
        match gate(Call::Lock) {
            Err(error) if error.is_errno(Errno::INTR) => continue,
            passed => passed?,
        }
        return match nix::fcntl::fcntl(file, FcntlArg::F_OFD_SETLK(&range)) {
            Ok(_) => Ok(true),
            Err(nix::Error::EINTR) => continue,
            Err(nix::Error::EAGAIN | nix::Error::EACCES) => Ok(false),
            Err(errno) => Err(refused(errno as i32)),
        };
    }
}
