//! Wraps the system calls on names and handles. Every wrapped system call can get an injected fault, is repeated after
//! `EINTR`, and opens handles that close on exec. A wrapper follows a symbolic link in the last path component only if
//! the name of the wrapper says so.

pub(crate) mod file_io;
pub(crate) mod inotify_calls;

use std::{
    ffi::OsStr,
    fmt::Write as _,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, RawDir, RenameFlags, ResolveFlags, StatxFlags},
    io::Errno,
};

use crate::{
    DiskError, DiskSpace, FileType,
    faults::{SystemCall, gate},
    stat::StatWithMount,
};

/// The most tries of a path resolution that a concurrent rename or mount disturbs.
const RESOLVE_TRIES_MAX: u32 = 64;
const LISTING_BUFFER_BYTES: usize = 64 * 1024;
const STATX_FIELDS: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME).union(StatxFlags::MNT_ID);
/// An `O_PATH` handle identifies a file but cannot read it.
pub(crate) const PATH_HANDLE_FLAGS: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW);
/// The flags for reading keep a FIFO from blocking and a terminal from becoming the controlling terminal.
pub(crate) const READ_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOCTTY).union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW);
pub(crate) const LIST_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);
pub(crate) const CREATE_FLAGS: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY);

pub(crate) fn run_system_call<T>(
    call: SystemCall,
    mut step: impl FnMut() -> rustix::io::Result<T>,
) -> Result<T, DiskError> {
    loop {
        match gate(call).and_then(|()| step().map_err(|errno| DiskError::from_errno(call.as_str(), errno))) {
            Err(error) if error.is_errno(Errno::INTR) => {}
            other => return other,
        }
    }
}

pub(crate) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, DiskError> {
    let path = if path.is_empty() { b"." } else { path };
    let mut tries = 0;
    run_system_call(SystemCall::Openat2, || {
        loop {
            let opened = rustix::fs::openat2(directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
            tries += 1;
            match opened {
                Err(Errno::AGAIN) if tries < RESOLVE_TRIES_MAX => {}
                other => return other,
            }
        }
    })
}

pub(crate) fn open_name(
    directory: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    mode: u32,
) -> Result<OwnedFd, DiskError> {
    let mode = Mode::from_raw_mode(mode);
    run_system_call(SystemCall::Open, || rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, mode))
}

/// Opens a path that the operator gave, and follows symbolic links unless the flags forbid it.
pub(crate) fn open_trusted(path: &Path, flags: OFlags) -> Result<OwnedFd, DiskError> {
    run_system_call(SystemCall::Open, || rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty()))
}

/// Opens the file of an `O_PATH` handle with other flags; the caller must check that the inode is still the same.
pub(crate) fn reopen_path_handle(path_handle: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, DiskError> {
    let flags = (flags - OFlags::NOFOLLOW) | OFlags::CLOEXEC;
    let link = proc_fd_path(path_handle);
    run_system_call(SystemCall::Open, || rustix::fs::openat(CWD, link.as_str(), flags, Mode::empty()))
}

fn proc_fd_path(handle: BorrowedFd<'_>) -> String {
    let mut link = String::with_capacity(24);
    link.push_str("/proc/self/fd/");
    // Writing to a string cannot fail.
    write!(link, "{}", handle.as_raw_fd()).unwrap_or_default();
    link
}

pub(crate) fn stat_handle(handle: BorrowedFd<'_>) -> Result<StatWithMount, DiskError> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let meta: StatWithMount =
        run_system_call(SystemCall::Statx, || rustix::fs::statx(handle, c"", flags, STATX_FIELDS))?.into();
    match meta.mount_id {
        Some(_) => Ok(meta),
        None => Ok(StatWithMount { mount_id: mount_id_from_proc(handle), ..meta }),
    }
}

pub(crate) fn stat_name(directory: BorrowedFd<'_>, name: &[u8]) -> Result<StatWithMount, DiskError> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let meta: StatWithMount =
        run_system_call(SystemCall::Statx, || rustix::fs::statx(directory, name, flags, STATX_FIELDS))?.into();
    match meta.mount_id {
        Some(_) => Ok(meta),
        None => stat_handle(open_name(directory, name, PATH_HANDLE_FLAGS, 0)?.as_fd()),
    }
}

/// Kernels before 5.8 do not return the mount id from `statx`, so it is read from `/proc`.
fn mount_id_from_proc(handle: BorrowedFd<'_>) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:")).and_then(|id| id.trim().parse().ok())
}

pub(crate) fn read_link(link: BorrowedFd<'_>) -> Result<Vec<u8>, DiskError> {
    run_system_call(SystemCall::Readlink, || rustix::fs::readlinkat(link, c"", Vec::new()))
        .map(|target| target.into_bytes())
}

pub(crate) fn list_directory(
    listing: BorrowedFd<'_>,
    mut entry: impl FnMut(&[u8], FileType, u64) -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    let mut buffer: Vec<u8> = Vec::with_capacity(LISTING_BUFFER_BYTES);
    let mut raw = RawDir::new(listing, buffer.spare_capacity_mut());
    loop {
        if raw.is_buffer_empty() {
            run_system_call(SystemCall::Getdents, || Ok(()))?;
        }
        match raw.next() {
            None => return Ok(()),
            Some(Err(Errno::INTR)) => {}
            Some(Err(errno)) => return Err(DiskError::from_errno(SystemCall::Getdents.as_str(), errno)),
            Some(Ok(found)) => match found.file_name().to_bytes() {
                b"." | b".." => {}
                name => entry(name, found.file_type(), found.ino())?,
            },
        }
    }
}

pub(crate) fn create_directory(directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> Result<(), DiskError> {
    let mode = Mode::from_raw_mode(mode);
    run_system_call(SystemCall::Mkdir, || rustix::fs::mkdirat(directory, name, mode))
}

pub(crate) fn create_symlink(directory: BorrowedFd<'_>, name: &[u8], target: &[u8]) -> Result<(), DiskError> {
    let target = OsStr::from_bytes(target);
    run_system_call(SystemCall::Symlink, || rustix::fs::symlinkat(target, directory, name))
}

/// Creating a hard link fails if the new name already exists.
pub(crate) fn hard_link(
    from: BorrowedFd<'_>,
    from_name: &[u8],
    to: BorrowedFd<'_>,
    to_name: &[u8],
) -> Result<(), DiskError> {
    run_system_call(SystemCall::Link, || rustix::fs::linkat(from, from_name, to, to_name, AtFlags::empty()))
}

pub(crate) fn unlink(directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), DiskError> {
    run_system_call(SystemCall::Unlink, || rustix::fs::unlinkat(directory, name, AtFlags::empty()))
}

pub(crate) fn remove_directory(directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), DiskError> {
    run_system_call(SystemCall::Unlink, || rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR))
}

pub(crate) fn rename(
    from: BorrowedFd<'_>,
    from_name: &[u8],
    to: BorrowedFd<'_>,
    to_name: &[u8],
    flags: RenameFlags,
) -> Result<(), DiskError> {
    run_system_call(SystemCall::Rename, || {
        if flags.is_empty() {
            rustix::fs::renameat(from, from_name, to, to_name)
        } else {
            rustix::fs::renameat_with(from, from_name, to, to_name, flags)
        }
    })
}

pub(crate) fn set_mode_by_path_handle(path_handle: BorrowedFd<'_>, mode: u32) -> Result<(), DiskError> {
    let link = proc_fd_path(path_handle);
    let mode = Mode::from_raw_mode(mode);
    run_system_call(SystemCall::Chmod, || rustix::fs::chmodat(CWD, link.as_str(), mode, AtFlags::empty()))
}

pub(crate) fn disk_space(handle: BorrowedFd<'_>) -> Result<DiskSpace, DiskError> {
    let raw = run_system_call(SystemCall::Statfs, || rustix::fs::fstatvfs(handle))?;
    Ok(DiskSpace {
        free_bytes: raw.f_bavail.saturating_mul(raw.f_frsize),
        total_bytes: raw.f_blocks.saturating_mul(raw.f_frsize),
    })
}

pub(crate) fn file_system_magic(handle: BorrowedFd<'_>) -> Result<i64, DiskError> {
    let raw = run_system_call(SystemCall::Statfs, || rustix::fs::fstatfs(handle))?;
    // The field `f_type` is a C long or an unsigned int, depending on the platform.
    #[expect(clippy::unnecessary_cast, reason = "the width differs between machines")]
    Ok(raw.f_type as i64)
}
