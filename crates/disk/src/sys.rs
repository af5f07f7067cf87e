//! The only module that calls the operating system for names and handles. Promises: every call passes the fault gate,
//! `EINTR` is retried, every handle closes on exec, and no call follows a link in its last component unless its name
//! says so. Never looks at policy: what may be opened is decided by `confines`.

pub(crate) mod content;
pub(crate) mod notice;

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
    DiskError, FileType, Space,
    faults::{Call, gate},
    stat::Meta,
};

/// How often a resolution that raced with a rename or a mount is tried again.
const RESOLVE_TRIES_MAX: u32 = 64;
/// Bytes of directory entries fetched by one call.
const LISTING_BUFFER_BYTES: usize = 64 * 1024;
/// What every `statx` asks for.
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME).union(StatxFlags::MNT_ID);
/// A handle that names a place and reads nothing.
pub(crate) const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW);
/// How a regular file is opened for reading: never a terminal of ours, never blocking.
pub(crate) const READING: OFlags =
    OFlags::RDONLY.union(OFlags::NOCTTY).union(OFlags::NONBLOCK).union(OFlags::NOFOLLOW);
/// How a directory is opened for listing and syncing.
pub(crate) const LISTING: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW);
/// How a new file is made: exclusively.
pub(crate) const MAKING: OFlags =
    OFlags::RDWR.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::NOCTTY);

/// Passes the gate, calls, retries what a signal interrupted.
pub(crate) fn run<T>(call: Call, mut step: impl FnMut() -> rustix::io::Result<T>) -> Result<T, DiskError> {
    loop {
        let done =
            gate(call).and_then(|()| step().map_err(|errno| DiskError::from_errno(call.as_str(), errno)));
        match done {
            Err(error) if error.is_errno(Errno::INTR) => {}
            other => return other,
        }
    }
}

/// Resolves beneath `directory` in the kernel, without any link. `.` is the directory itself.
pub(crate) fn open_beneath(
    directory: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, DiskError> {
    let path = if path.is_empty() { b"." } else { path };
    let mut tries = 0;
    run(Call::Openat2, || {
        loop {
            let opened =
                rustix::fs::openat2(directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
            tries += 1;
            match opened {
                Err(Errno::AGAIN) if tries < RESOLVE_TRIES_MAX => {}
                other => return other,
            }
        }
    })
}

/// Opens one name in `directory`.
pub(crate) fn open_name(
    directory: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    mode: u32,
) -> Result<OwnedFd, DiskError> {
    let mode = Mode::from_raw_mode(mode);
    run(Call::Open, || rustix::fs::openat(directory, name, flags | OFlags::CLOEXEC, mode))
}

/// Opens a path given by the person who runs the server. Follows links unless the flags say otherwise.
pub(crate) fn open_trusted(path: &Path, flags: OFlags) -> Result<OwnedFd, DiskError> {
    run(Call::Open, || rustix::fs::openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty()))
}

/// Opens the very file behind a place handle once more. The caller compares identities afterwards.
pub(crate) fn reopen(place: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, DiskError> {
    let flags = (flags - OFlags::NOFOLLOW) | OFlags::CLOEXEC;
    let link = process_link(place);
    run(Call::Open, || rustix::fs::openat(CWD, link.as_str(), flags, Mode::empty()))
}

/// The kernel's own name for an open handle.
fn process_link(handle: BorrowedFd<'_>) -> String {
    let mut link = String::with_capacity(24);
    link.push_str("/proc/self/fd/");
    // Writing a number to a string cannot fail.
    write!(link, "{}", handle.as_raw_fd()).unwrap_or_default();
    link
}

/// What is known about the file behind a handle.
pub(crate) fn stat_handle(handle: BorrowedFd<'_>) -> Result<Meta, DiskError> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let meta: Meta = run(Call::Statx, || rustix::fs::statx(handle, c"", flags, WANTED))?.into();
    match meta.mount {
        Some(_) => Ok(meta),
        None => Ok(Meta { mount: mount_by_process(handle), ..meta }),
    }
}

/// What is known about a name in `directory`; never follows a link in its last component.
pub(crate) fn stat_name(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Meta, DiskError> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let meta: Meta = run(Call::Statx, || rustix::fs::statx(directory, name, flags, WANTED))?.into();
    match meta.mount {
        Some(_) => Ok(meta),
        None => stat_handle(open_name(directory, name, PLACE, 0)?.as_fd()),
    }
}

/// The mount id for kernels whose `statx` does not tell (before 5.8).
fn mount_by_process(handle: BorrowedFd<'_>) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", handle.as_raw_fd())).ok()?;
    text.lines().find_map(|line| line.strip_prefix("mnt_id:")).and_then(|id| id.trim().parse().ok())
}

/// The target of the link behind a place handle.
pub(crate) fn read_link(link: BorrowedFd<'_>) -> Result<Vec<u8>, DiskError> {
    run(Call::Readlink, || rustix::fs::readlinkat(link, c"", Vec::new())).map(|target| target.into_bytes())
}

/// Reads every entry of a listing handle, without `.` and `..`.
pub(crate) fn list(
    listing: BorrowedFd<'_>,
    mut entry: impl FnMut(&[u8], FileType, u64) -> Result<(), DiskError>,
) -> Result<(), DiskError> {
    let mut buffer: Vec<u8> = Vec::with_capacity(LISTING_BUFFER_BYTES);
    let mut raw = RawDir::new(listing, buffer.spare_capacity_mut());
    loop {
        if raw.is_buffer_empty() {
            match gate(Call::Getdents) {
                Err(error) if error.is_errno(Errno::INTR) => continue,
                passed => passed?,
            }
        }
        match raw.next() {
            None => return Ok(()),
            Some(Err(Errno::INTR)) => {}
            Some(Err(errno)) => return Err(DiskError::from_errno(Call::Getdents.as_str(), errno)),
            Some(Ok(found)) => match found.file_name().to_bytes() {
                b"." | b".." => {}
                name => entry(name, found.file_type().into(), found.ino())?,
            },
        }
    }
}

/// Makes one directory.
pub(crate) fn make_directory(directory: BorrowedFd<'_>, name: &[u8], mode: u32) -> Result<(), DiskError> {
    let mode = Mode::from_raw_mode(mode);
    run(Call::Mkdir, || rustix::fs::mkdirat(directory, name, mode))
}

/// Makes one link.
pub(crate) fn make_link(directory: BorrowedFd<'_>, name: &[u8], target: &[u8]) -> Result<(), DiskError> {
    let target = OsStr::from_bytes(target);
    run(Call::Symlink, || rustix::fs::symlinkat(target, directory, name))
}

/// Gives a file a second name; refuses a name that is taken.
pub(crate) fn hard_link(
    from: BorrowedFd<'_>,
    from_name: &[u8],
    to: BorrowedFd<'_>,
    to_name: &[u8],
) -> Result<(), DiskError> {
    run(Call::Link, || rustix::fs::linkat(from, from_name, to, to_name, AtFlags::empty()))
}

/// Removes one name that is not a directory.
pub(crate) fn unlink(directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), DiskError> {
    run(Call::Unlink, || rustix::fs::unlinkat(directory, name, AtFlags::empty()))
}

/// Removes one empty directory.
pub(crate) fn remove_directory(directory: BorrowedFd<'_>, name: &[u8]) -> Result<(), DiskError> {
    run(Call::Unlink, || rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR))
}

/// Renames; `flags` decide what happens to a taken name.
pub(crate) fn rename(
    from: BorrowedFd<'_>,
    from_name: &[u8],
    to: BorrowedFd<'_>,
    to_name: &[u8],
    flags: RenameFlags,
) -> Result<(), DiskError> {
    run(Call::Rename, || {
        if flags.is_empty() {
            rustix::fs::renameat(from, from_name, to, to_name)
        } else {
            rustix::fs::renameat_with(from, from_name, to, to_name, flags)
        }
    })
}

/// Sets the mode of the file behind a place handle.
pub(crate) fn set_mode_of_place(place: BorrowedFd<'_>, mode: u32) -> Result<(), DiskError> {
    let link = process_link(place);
    let mode = Mode::from_raw_mode(mode);
    run(Call::Chmod, || rustix::fs::chmodat(CWD, link.as_str(), mode, AtFlags::empty()))
}

/// The room on the file system behind a handle.
pub(crate) fn space(handle: BorrowedFd<'_>) -> Result<Space, DiskError> {
    let raw = run(Call::Statfs, || rustix::fs::fstatvfs(handle))?;
    Ok(Space {
        free_bytes: raw.f_bavail.saturating_mul(raw.f_frsize),
        total_bytes: raw.f_blocks.saturating_mul(raw.f_frsize),
    })
}

/// The magic number of the file system behind a handle.
pub(crate) fn file_system_magic(handle: BorrowedFd<'_>) -> Result<i64, DiskError> {
    let raw = run(Call::Statfs, || rustix::fs::fstatfs(handle))?;
    // The field is a C long or an unsigned int, depending on the machine.
    #[expect(clippy::unnecessary_cast, reason = "the width differs between machines")]
    Ok(raw.f_type as i64)
}
