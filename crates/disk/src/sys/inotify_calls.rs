//! System calls for inotify and for waiting.

use std::{
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec},
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};

use super::{proc_fd_path, run_system_call};
use crate::{
    DiskError,
    faults::{SystemCall, gate},
};

const EVENT_BUFFER_BYTES: usize = 64 * 1024;

pub(crate) fn create_queue() -> Result<OwnedFd, DiskError> {
    run_system_call(SystemCall::Watch, || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK))
}

pub(crate) fn watch_directory(
    queue: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    flags: WatchFlags,
) -> Result<i32, DiskError> {
    let link = proc_fd_path(directory);
    run_system_call(SystemCall::Watch, || inotify::add_watch(queue, link.as_str(), flags | WatchFlags::ONLYDIR))
}

pub(crate) fn watch_file(queue: BorrowedFd<'_>, file: BorrowedFd<'_>, flags: WatchFlags) -> Result<i32, DiskError> {
    let link = proc_fd_path(file);
    run_system_call(SystemCall::Watch, || inotify::add_watch(queue, link.as_str(), flags))
}

/// Writes a meaningless byte to a file, so that processes that watch the file are notified. Tests inject no fault into
/// the write, because nothing depends on its success.
pub(crate) fn update_timestamps(file: BorrowedFd<'_>) {
    rustix::io::pwrite(file, &[0], 0).unwrap_or_default();
}

pub(crate) fn remove_watch(queue: BorrowedFd<'_>, watch: i32) -> Result<(), DiskError> {
    run_system_call(SystemCall::Watch, || inotify::remove_watch(queue, watch))
}

pub(crate) fn read_events(
    queue: BorrowedFd<'_>,
    events_max: usize,
    event: &mut dyn FnMut(&inotify::Event<'_>),
) -> Result<bool, DiskError> {
    let mut buffer = vec![MaybeUninit::uninit(); EVENT_BUFFER_BYTES];
    let mut reader = Reader::new(queue, &mut buffer);
    let mut count = 0;
    loop {
        if reader.is_buffer_empty() {
            if count >= events_max {
                return Ok(false);
            }
            run_system_call(SystemCall::Read, || Ok(()))?;
        }
        match reader.next() {
            Ok(read) => event(&read),
            Err(Errno::AGAIN) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(DiskError::from_errno(SystemCall::Read.as_str(), errno)),
        }
        count += 1;
    }
}

pub(crate) fn create_eventfd() -> Result<OwnedFd, DiskError> {
    run_system_call(SystemCall::Watch, || rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))
}

/// An error of the write is ignored, because an eventfd with a full counter wakes the thread anyway.
pub(crate) fn signal(counter: BorrowedFd<'_>) {
    rustix::io::write(counter, &1_u64.to_ne_bytes()).unwrap_or_default();
}

/// An error of the read is ignored, because the counter of the eventfd is already zero if reading fails.
pub(crate) fn clear_signal(counter: BorrowedFd<'_>) {
    rustix::io::read(counter, &mut [0; size_of::<u64>()]).unwrap_or_default();
}

pub(crate) fn wait_readable(handles: &[BorrowedFd<'_>], timeout: Duration) -> Result<bool, DiskError> {
    let seconds = i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX);
    let timeout = Timespec { tv_sec: seconds, tv_nsec: i64::from(timeout.subsec_nanos()) };
    gate(SystemCall::Poll)?;
    let mut polled: Vec<PollFd<'_>> =
        handles.iter().map(|handle| PollFd::from_borrowed_fd(*handle, PollFlags::IN)).collect();
    match rustix::event::poll(&mut polled, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(DiskError::from_errno(SystemCall::Poll.as_str(), errno)),
    }
}
