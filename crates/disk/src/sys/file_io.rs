//! System calls on open files: content, attributes, locks and syncs.

use std::os::fd::BorrowedFd;

use nix::{fcntl::FcntlArg, libc};
use rustix::{
    fs::{Gid, Mode, Uid, XattrFlags},
    io::Errno,
};

use super::run_system_call;
use crate::{DiskError, LockMode, faults::SystemCall};

/// The kernel limits the size of an extended attribute to this number of bytes.
const ATTRIBUTE_BYTES_MAX: usize = 64 * 1024;

/// Appends bytes of the file from the offset `buffer.len()` to `buffer`, and returns how many bytes were read.
pub(crate) fn read_next(file: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> Result<usize, DiskError> {
    let offset = buffer.len() as u64;
    run_system_call(SystemCall::Read, || rustix::io::pread(file, rustix::buffer::spare_capacity(buffer), offset))
}

pub(crate) fn read_at(file: BorrowedFd<'_>, buffer: &mut [u8], offset: u64) -> Result<usize, DiskError> {
    run_system_call(SystemCall::Read, || rustix::io::pread(file, &mut *buffer, offset))
}

pub(crate) fn write_all_at(file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> Result<(), DiskError> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        let count = run_system_call(SystemCall::Write, || rustix::io::pwrite(file, rest, offset + written as u64))?;
        if count == 0 {
            return Err(DiskError::from_errno(SystemCall::Write.as_str(), Errno::IO));
        }
        written += count;
    }
    Ok(())
}

pub(crate) fn clone_file(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), DiskError> {
    run_system_call(SystemCall::Clone, || rustix::fs::ioctl_ficlone(to, from))
}

pub(crate) fn copy_range(
    from: BorrowedFd<'_>,
    to: BorrowedFd<'_>,
    offset: u64,
    length: usize,
) -> Result<usize, DiskError> {
    run_system_call(SystemCall::CopyRange, || {
        let (mut read_at, mut write_at) = (offset, offset);
        rustix::fs::copy_file_range(from, Some(&mut read_at), to, Some(&mut write_at), length)
    })
}

pub(crate) fn set_mode(file: BorrowedFd<'_>, mode: u32) -> Result<(), DiskError> {
    run_system_call(SystemCall::Chmod, || rustix::fs::fchmod(file, Mode::from_raw_mode(mode)))
}

pub(crate) fn set_owner(file: BorrowedFd<'_>, uid: Option<u32>, gid: Option<u32>) -> Result<(), DiskError> {
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    run_system_call(SystemCall::Chown, || rustix::fs::fchown(file, uid, gid))
}

pub(crate) fn attribute_names(file: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, DiskError> {
    let mut buffer = vec![0_u8; ATTRIBUTE_BYTES_MAX];
    match run_system_call(SystemCall::Xattr, || rustix::fs::flistxattr(file, &mut buffer[..])) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(buffer.split(|byte| *byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect())
        }
        Err(error) if error.is_errno(Errno::OPNOTSUPP) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

pub(crate) fn read_attribute(file: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Vec<u8>>, DiskError> {
    let mut buffer = vec![0_u8; ATTRIBUTE_BYTES_MAX];
    match run_system_call(SystemCall::Xattr, || rustix::fs::fgetxattr(file, name, &mut buffer[..])) {
        Ok(length) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
        Err(error) if error.is_errno(Errno::NODATA) || error.is_errno(Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn set_attribute(file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), DiskError> {
    run_system_call(SystemCall::Xattr, || rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()))
}

pub(crate) fn remove_attribute(file: BorrowedFd<'_>, name: &[u8]) -> Result<(), DiskError> {
    match run_system_call(SystemCall::Xattr, || rustix::fs::fremovexattr(file, name)) {
        Err(error) if error.is_errno(Errno::NODATA) || error.is_errno(Errno::OPNOTSUPP) => Ok(()),
        other => other,
    }
}

pub(crate) fn sync_content(file: BorrowedFd<'_>) -> Result<(), DiskError> {
    run_system_call(SystemCall::Sync, || rustix::fs::fdatasync(file))
}

pub(crate) fn sync_all(file: BorrowedFd<'_>) -> Result<(), DiskError> {
    run_system_call(SystemCall::Sync, || rustix::fs::fsync(file))
}

pub(crate) fn sync_file_system(file: BorrowedFd<'_>) -> Result<(), DiskError> {
    run_system_call(SystemCall::SyncFileSystem, || rustix::fs::syncfs(file))
}

/// Locks `length` bytes of a file for its open file description, or unlocks them if `lock` is `None`; the length 0 means
/// up to the end of the file. Locking returns `false` if another file description holds a conflicting lock on the bytes.
pub(crate) fn lock_range(
    file: BorrowedFd<'_>,
    start: u64,
    length: i64,
    lock: Option<LockMode>,
) -> Result<bool, DiskError> {
    let l_type = match lock {
        Some(LockMode::Shared) => libc::F_RDLCK,
        Some(LockMode::Exclusive) => libc::F_WRLCK,
        None => libc::F_UNLCK,
    };
    let Ok(l_start) = libc::off_t::try_from(start) else {
        return Err(DiskError::from_errno(SystemCall::Lock.as_str(), Errno::INVAL));
    };
    let range = libc::flock { l_type: l_type as _, l_whence: libc::SEEK_SET as _, l_start, l_len: length, l_pid: 0 };
    run_system_call(SystemCall::Lock, || match nix::fcntl::fcntl(file, FcntlArg::F_OFD_SETLK(&range)) {
        Ok(_) => Ok(true),
        Err(nix::Error::EAGAIN | nix::Error::EACCES) => Ok(false),
        Err(errno) => Err(Errno::from_raw_os_error(errno as i32)),
    })
}
