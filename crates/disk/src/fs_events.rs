//! Reports changes in open directories of a workspace with the kernel's inotify. A change is queued before the system
//! call that made the change returns, and an overflow of the queue is reported. inotify misses writes through a hard
//! link in another directory. Writes through a shared memory mapping are reported late.
//!
//! The crate `notify` is not used, because it watches paths, which another program can exchange for a symbolic link.

use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use rustix::fs::inotify::{self, ReadFlags, WatchFlags};
use stead_path::FileName;

use crate::{DirectoryHandle, DiskError, MultiSlotLockFile, mounts, sys::inotify_calls};

/// The most events that one call of [`FsEventQueue::drain`] returns.
pub const EVENTS_PER_DRAIN_MAX: usize = 65_536;
/// The limit on inotify watches per user on old kernels.
const WATCH_LIMIT_DEFAULT: usize = 8_192;
const WATCH_LIMIT_FILE: &str = "/proc/sys/fs/inotify/max_user_watches";
const WATCH_FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK);

/// The id of a watched directory or file in one event queue; watching the same file again gives the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InotifyWatchId(i32);

/// The kind of change that an inotify event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FsEventKind {
    Created,
    /// The content of a file in the watched directory changed.
    Modified,
    /// A program closed a file of the watched directory that it had opened for writing.
    WriterClosed,
    /// The mode, owner, times, hard-link count or extended attributes of a file in the watched directory changed.
    AttributesChanged,
    /// A name was moved out of the watched directory; the `MovedTo` event of the same rename has the same cookie.
    MovedFrom(u32),
    /// A name was moved into the watched directory; the `MovedFrom` event of the same rename has the same cookie.
    MovedTo(u32),
    Deleted,
    SelfMoved,
    SelfDeleted,
    /// The inotify watch ended and reports no more events.
    WatchRemoved,
    /// The event queue overflowed and lost events, so any watched file may have changed.
    Overflow,
}

/// Whether a file change event is about a directory or about another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FsEventFileType {
    Directory,
    Other,
}

/// One file change event that inotify reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsEvent {
    /// The watch that reported the event; `None` if the event reports an overflow of the queue.
    pub watch: Option<InotifyWatchId>,
    /// The changed name in the watched directory; `None` if the event names no directory entry.
    pub name: Option<FileName>,
    pub subject: FsEventFileType,
    pub kind: FsEventKind,
}

/// An inotify queue of file change events.
#[derive(Debug)]
pub struct FsEventQueue {
    queue: OwnedFd,
}

impl FsEventQueue {
    /// Creates an event queue for the file system of `directory`; fails with `Unsupported` on network and FUSE file
    /// systems. Creating an event queue fails with `TooManyOpenFiles` if this user has too many inotify queues.
    pub fn new(directory: &DirectoryHandle) -> Result<Self, DiskError> {
        mounts::refuse_unwatchable(directory.path_handle())?;
        Ok(Self { queue: inotify_calls::create_queue()? })
    }

    /// Watches a directory. A watch reports only changes after its start, so callers watch a directory before they list
    /// its entries. Watching a directory fails with `NoSpace` if this user has reached the limit on inotify watches.
    pub fn watch_directory(&self, directory: &DirectoryHandle) -> Result<InotifyWatchId, DiskError> {
        inotify_calls::watch_directory(self.queue.as_fd(), directory.path_handle(), WATCH_FLAGS).map(InotifyWatchId)
    }

    /// Watches the lock file of a state directory, to notice when locks are released or watchers are notified.
    pub fn watch_lock_file(&self, file: &MultiSlotLockFile) -> Result<InotifyWatchId, DiskError> {
        let flags = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE);
        inotify_calls::watch_file(self.queue.as_fd(), file.handle(), flags).map(InotifyWatchId)
    }

    /// Removes a watch, if the watch still exists. Events of the removed watch that are already queued are still
    /// delivered.
    pub fn remove_watch(&self, watch: InotifyWatchId) -> Result<(), DiskError> {
        match inotify_calls::remove_watch(self.queue.as_fd(), watch.0) {
            Err(error) if error.is_errno(rustix::io::Errno::INVAL) => Ok(()),
            other => other,
        }
    }

    /// Appends the queued events to `events`, in order and without waiting, and returns whether the queue is now empty.
    pub fn drain(&self, events: &mut Vec<FsEvent>) -> Result<FsEventDrainEndReason, DiskError> {
        let is_empty = inotify_calls::read_events(self.queue.as_fd(), EVENTS_PER_DRAIN_MAX, &mut |raw| {
            events.extend(parse_event(raw))
        })?;
        Ok(if is_empty { FsEventDrainEndReason::Complete } else { FsEventDrainEndReason::Partial })
    }

    /// Waits at most `timeout` for a file change event and returns whether one is queued.
    pub fn wait(&self, timeout: Duration) -> Result<bool, DiskError> {
        inotify_calls::wait_readable(&[self.queue.as_fd()], timeout)
    }

    /// Waits until a file change event is queued, `waker` ends the wait, or `timeout` has passed.
    pub fn wait_with_waker(&self, waker: &FsEventQueueWaker, timeout: Duration) -> Result<(), DiskError> {
        inotify_calls::wait_readable(&[self.queue.as_fd(), waker.counter.as_fd()], timeout)?;
        inotify_calls::clear_signal(waker.counter.as_fd());
        Ok(())
    }
}

/// A waker, which ends the wait of a thread for file change events. If a waker is woken while no thread waits, the next
/// wait ends at once.
#[derive(Debug, Clone)]
pub struct FsEventQueueWaker {
    counter: Arc<OwnedFd>,
}

impl FsEventQueueWaker {
    /// Creates a waker that has not been woken yet.
    pub fn new() -> Result<Self, DiskError> {
        Ok(Self { counter: Arc::new(inotify_calls::create_eventfd()?) })
    }

    /// Ends the current wait of a thread, or the next wait if no thread is waiting.
    pub fn wake(&self) {
        inotify_calls::signal(self.counter.as_fd());
    }
}

/// Whether [`FsEventQueue::drain`] emptied the event queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FsEventDrainEndReason {
    Complete,
    /// [`FsEventQueue::drain`] returned [`EVENTS_PER_DRAIN_MAX`] events, and the event queue may have more.
    Partial,
}

/// The system's limit on inotify watches per user, for all processes together.
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
