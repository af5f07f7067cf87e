//! Directory change events of the kernel (inotify). Owns the queue and its watch ids.
//!
//! Promises: only a directory that is open below a root, or a lock file of the server, is watched; a change is queued
//! before the call that made the change returns; an overflow of the queue is reported. Three kinds of change are not
//! reported: writes through a shared memory mapping before it is unmapped, writes through a hard link in another
//! directory, and changes below directories that are not watched. This module resolves no path and reads no file.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use stead_path::FileName;

use crate::{DirectoryHandle, DiskError, MultiSlotLockFile, mounts, sys::inotify_calls};

/// The most events that one [`FsEventQueue::drain`] returns.
pub const EVENTS_PER_DRAIN_MAX: usize = 65_536;
/// The assumed limit on watches per user, if the system does not state the limit. The value is the default of old
/// kernels.
const WATCH_LIMIT_DEFAULT: usize = 8_192;
const WATCH_LIMIT_FILE: &str = "/proc/sys/fs/inotify/max_user_watches";
/// The events for which a directory is watched.
const WATCH_FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK);

/// The id of a watch in one queue. A directory that is watched again gets the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InotifyWatchId(i32);

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FsEventKind {
    /// A name was created.
    Created,
    /// The content of a file changed.
    Modified,
    /// A file opened for writing was closed.
    WriterClosed,
    /// The mode, owner, times, number of hard links or extended attributes of a file changed.
    AttributesChanged,
    /// A name was moved away from this directory; the `MovedTo` event of the same rename has the same cookie.
    MovedFrom(u32),
    /// A name was moved to this directory; the `MovedFrom` event of the same rename has the same cookie.
    MovedTo(u32),
    /// A name was removed.
    Deleted,
    /// The watched directory was moved.
    SelfMoved,
    /// The watched directory was removed.
    SelfDeleted,
    /// The watch ended: the watch or its directory was removed, or the file system was unmounted.
    WatchRemoved,
    /// The queue overflowed and events were lost. Everything may have changed.
    Overflow,
}

/// The type of the file that an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FsEventFileType {
    /// A directory.
    Directory,
    /// Another file type, or the event is not about a file.
    Other,
}

/// One event of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsEvent {
    /// The watch that reported the event; `None` for an overflow.
    pub watch: Option<InotifyWatchId>,
    /// The name in the watched directory; `None` if the event is about the directory itself.
    pub name: Option<FileName>,
    /// The type of the file that the event is about.
    pub subject: FsEventFileType,
    /// The change that happened.
    pub kind: FsEventKind,
}

/// A queue of change events.
#[derive(Debug)]
pub struct FsEventQueue {
    queue: OwnedFd,
}

impl FsEventQueue {
    /// Creates a queue for directories of one file system. Fails with `Unsupported` if files of that file system can
    /// change without the kernel's knowledge, and with `TooManyOpenFiles` if this user has too many queues.
    pub fn new(directory: &DirectoryHandle) -> Result<Self, DiskError> {
        mounts::refuse_unwatchable(directory.path_handle())?;
        Ok(Self { queue: inotify_calls::create_queue()? })
    }

    /// Watches a directory. Events are queued from this call on, so list the directory after this call, not before.
    /// Fails with `NoSpace` if this user has reached the limit on watches.
    pub fn watch_directory(&self, directory: &DirectoryHandle) -> Result<InotifyWatchId, DiskError> {
        inotify_calls::watch_directory(self.queue.as_fd(), directory.path_handle(), WATCH_FLAGS).map(InotifyWatchId)
    }

    /// Watches the lock file of a state directory for notifications and for the release of locks.
    pub fn watch_lock_file(&self, file: &MultiSlotLockFile) -> Result<InotifyWatchId, DiskError> {
        let flags = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE);
        inotify_calls::watch_file(self.queue.as_fd(), file.handle(), flags).map(InotifyWatchId)
    }

    /// Removes a watch, if it still exists. Queued events are still delivered.
    pub fn remove_watch(&self, watch: InotifyWatchId) -> Result<(), DiskError> {
        match inotify_calls::remove_watch(self.queue.as_fd(), watch.0) {
            Err(error) if error.errno == Some(rustix::io::Errno::INVAL.raw_os_error()) => Ok(()),
            other => other,
        }
    }

    /// Appends the queued events to `events`, in order, without waiting. Returns whether the queue is empty.
    pub fn drain(&self, events: &mut Vec<FsEvent>) -> Result<FsEventDrainResult, DiskError> {
        let is_empty = inotify_calls::read_events(self.queue.as_fd(), EVENTS_PER_DRAIN_MAX, &mut |raw| {
            events.extend(parse_event(raw))
        })?;
        Ok(if is_empty { FsEventDrainResult::Complete } else { FsEventDrainResult::Partial })
    }

    /// Waits until an event is queued, at most for `timeout`. Returns whether an event is queued.
    pub fn wait(&self, timeout: Duration) -> Result<bool, DiskError> {
        inotify_calls::wait_readable(&[self.queue.as_fd()], timeout)
    }

    /// The same as [`Self::wait`], but `waker` can also end the wait.
    pub fn wait_with_waker(&self, waker: &FsEventQueueWaker, timeout: Duration) -> Result<(), DiskError> {
        inotify_calls::wait_readable(&[self.queue.as_fd(), waker.counter.as_fd()], timeout)?;
        inotify_calls::clear_signal(waker.counter.as_fd());
        Ok(())
    }
}

/// Wakes a thread that waits for a queue. Any thread can call `wake`. A wake before the wait is not lost.
#[derive(Debug, Clone)]
pub struct FsEventQueueWaker {
    counter: Arc<OwnedFd>,
}

impl FsEventQueueWaker {
    /// A waker without a pending wake.
    pub fn new() -> Result<Self, DiskError> {
        Ok(Self { counter: Arc::new(inotify_calls::create_eventfd()?) })
    }

    /// Ends the current wait with this waker. If no thread is waiting, the next wait ends at once.
    pub fn wake(&self) {
        inotify_calls::signal(self.counter.as_fd());
    }
}

impl AsFd for FsEventQueue {
    /// The handle is readable when an event is queued. So the queue can be polled together with other handles.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// Whether a drain emptied the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsEventDrainResult {
    /// All queued events were taken.
    Complete,
    /// The limit of one call was reached; more events may be queued.
    Partial,
}

/// The system limit on watches per user, over all processes.
pub fn watch_limit() -> usize {
    let text = std::fs::read_to_string(WATCH_LIMIT_FILE).ok();
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(WATCH_LIMIT_DEFAULT)
}

fn parse_event(raw: &inotify::Event<'_>) -> Option<FsEvent> {
    let flags = raw.events();
    let kind = event_kind(flags, raw.cookie())?;
    let subject = if flags.contains(ReadFlags::ISDIR) { FsEventFileType::Directory } else { FsEventFileType::Other };
    let watch = (kind != FsEventKind::Overflow).then_some(InotifyWatchId(raw.wd()));
    let name = raw.file_name().and_then(|name| FileName::new(name.to_bytes()).ok());
    Some(FsEvent { watch, name, subject, kind })
}

fn event_kind(flags: ReadFlags, cookie: u32) -> Option<FsEventKind> {
    let kinds = [
        (ReadFlags::QUEUE_OVERFLOW, FsEventKind::Overflow),
        (ReadFlags::IGNORED | ReadFlags::UNMOUNT, FsEventKind::WatchRemoved),
        (ReadFlags::CREATE, FsEventKind::Created),
        (ReadFlags::MOVED_FROM, FsEventKind::MovedFrom(cookie)),
        (ReadFlags::MOVED_TO, FsEventKind::MovedTo(cookie)),
        (ReadFlags::DELETE, FsEventKind::Deleted),
        (ReadFlags::MODIFY, FsEventKind::Modified),
        (ReadFlags::CLOSE_WRITE, FsEventKind::WriterClosed),
        (ReadFlags::ATTRIB, FsEventKind::AttributesChanged),
        (ReadFlags::DELETE_SELF, FsEventKind::SelfDeleted),
        (ReadFlags::MOVE_SELF, FsEventKind::SelfMoved),
    ];
    kinds.into_iter().find(|(flag, _)| flags.intersects(*flag)).map(|(_, kind)| kind)
}
