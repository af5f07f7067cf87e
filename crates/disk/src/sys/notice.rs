//! System calls for watching directories. Same promises as `sys`.

use std::{
    mem::MaybeUninit,
    os::fd::{BorrowedFd, OwnedFd},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec},
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};

use super::{process_link, run};
use crate::{
    DiskError,
    faults::{Call, gate},
};

/// Bytes of events fetched by one call.
const BUFFER_BYTES: usize = 64 * 1024;

/// A queue of events, with nothing watched yet.
pub(crate) fn queue() -> Result<OwnedFd, DiskError> {
    run(Call::Watch, || inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK))
}

/// Watches the directory behind a handle, by the kernel's own name for the handle: no path is resolved.
pub(crate) fn add(
    queue: BorrowedFd<'_>,
    directory: BorrowedFd<'_>,
    wanted: WatchFlags,
) -> Result<i32, DiskError> {
    let link = process_link(directory);
    run(Call::Watch, || inotify::add_watch(queue, link.as_str(), wanted | WatchFlags::ONLYDIR))
}

/// Watches the one file behind a handle.
pub(crate) fn add_file(
    queue: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    wanted: WatchFlags,
) -> Result<i32, DiskError> {
    let link = process_link(file);
    run(Call::Watch, || inotify::add_watch(queue, link.as_str(), wanted))
}

/// Writes a byte that means nothing, for whoever watches the file. Passes no gate: nothing depends on it.
pub(crate) fn touch(file: BorrowedFd<'_>) {
    rustix::io::pwrite(file, &[0], 0).unwrap_or_default();
}

/// Ends one watch.
pub(crate) fn remove(queue: BorrowedFd<'_>, watch: i32) -> Result<(), DiskError> {
    run(Call::Watch, || inotify::remove_watch(queue, watch))
}

/// Reads every event that is queued, at most so many. False when some may be left.
pub(crate) fn read(
    queue: BorrowedFd<'_>,
    events_max: usize,
    event: &mut dyn FnMut(&inotify::Event<'_>),
) -> Result<bool, DiskError> {
    let mut buffer = vec![MaybeUninit::uninit(); BUFFER_BYTES];
    let mut reader = Reader::new(queue, &mut buffer);
    let mut count = 0;
    loop {
        if reader.is_buffer_empty() {
            if count >= events_max {
                return Ok(false);
            }
            match gate(Call::Read) {
                Err(error) if error.is_errno(Errno::INTR) => continue,
                passed => passed?,
            }
        }
        match reader.next() {
            Ok(read) => event(&read),
            Err(Errno::AGAIN) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(DiskError::from_errno(Call::Read.as_str(), errno)),
        }
        count += 1;
    }
}

/// A counter that wakes whoever waits for it.
pub(crate) fn counter() -> Result<OwnedFd, DiskError> {
    run(Call::Watch, || {
        rustix::event::eventfd(
            0,
            rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK,
        )
    })
}

/// Counts one. A counter that is full wakes as well.
pub(crate) fn count(counter: BorrowedFd<'_>) {
    rustix::io::write(counter, &1_u64.to_ne_bytes()).unwrap_or_default();
}

/// Sets the counter back. One that is zero already says so, and that is as good.
pub(crate) fn uncount(counter: BorrowedFd<'_>) {
    rustix::io::read(counter, &mut [0; size_of::<u64>()]).unwrap_or_default();
}

/// Waits until one of these has something to read; false when the time is over first, or a signal came.
pub(crate) fn wait(handles: &[BorrowedFd<'_>], most: Duration) -> Result<bool, DiskError> {
    let seconds = i64::try_from(most.as_secs()).unwrap_or(i64::MAX);
    let most = Timespec { tv_sec: seconds, tv_nsec: i64::from(most.subsec_nanos()) };
    gate(Call::Poll)?;
    let mut polled: Vec<PollFd<'_>> =
        handles.iter().map(|handle| PollFd::from_borrowed_fd(*handle, PollFlags::IN)).collect();
    match rustix::event::poll(&mut polled, Some(&most)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(DiskError::from_errno(Call::Poll.as_str(), errno)),
    }
}
