//! Changes of directories, as the kernel queues them. Owns the queue and the numbers of its watches.
//!
//! Promises: only a directory that is open beneath a root, or a lock file of ours, is ever watched; a change is in the
//! queue before the call that made it returns to whoever made it; a queue that ran over says so. Does not tell: writes
//! through a shared mapping before it is unmapped, writes through another name of a file that lies elsewhere, and what
//! happens below directories that are not watched themselves. Never resolves a path and never looks at a file.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

use path::Name;
use rustix::fs::inotify::{self, ReadFlags, WatchFlags};

use crate::{Directory, DiskError, LockFile, network, sys::notice};

/// Most events that one [`Watch::drain`] brings.
pub const EVENTS_MAX: usize = 65_536;
/// Watches of one user where the machine does not say how many it allows: what it did for years.
const WATCHES_DEFAULT: usize = 8_192;
/// Where it says so.
const WATCHES_FILE: &str = "/proc/sys/fs/inotify/max_user_watches";
/// What is told about a directory.
const WANTED: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK);

/// One watched directory of one queue. The same directory has the same number, whichever way it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchId(i32);

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Happened {
    /// A name was made.
    Created,
    /// The content of a file changed.
    Modified,
    /// A file that was open for writing was closed.
    Written,
    /// Mode, owner, times, links or attributes changed.
    Attributes,
    /// A name left by a rename; the number is that of where it came.
    MovedFrom(u32),
    /// A name came by a rename; the number is that of where it left.
    MovedTo(u32),
    /// A name was removed.
    Deleted,
    /// The watched directory itself was moved.
    SelfMoved,
    /// The watched directory itself was removed.
    SelfDeleted,
    /// The watch is over: it was removed, or its directory was, or the file system was unmounted.
    Ended,
    /// Events were lost: the queue ran over. Everything may have changed.
    Overflow,
}

/// What an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum About {
    /// A directory.
    Directory,
    /// Anything else, or nothing in particular.
    Other,
}

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Of which watch; none when the queue ran over.
    pub watch: Option<WatchId>,
    /// The name in the watched directory; none when it is about the directory itself.
    pub name: Option<Name>,
    /// What kind of thing it is about.
    pub about: About,
    /// What happened.
    pub happened: Happened,
}

/// A queue of changes.
#[derive(Debug)]
pub struct Watch {
    queue: OwnedFd,
}

impl Watch {
    /// A queue for directories of one file system. Refused as `Unsupported` where changes can be made behind the kernel's
    /// back, and as `TooManyOpen` where this user has too many queues.
    pub fn new(top: &Directory) -> Result<Self, DiskError> {
        network::refuse_unseen(top.place())?;
        Ok(Self { queue: notice::queue()? })
    }

    /// Watches a directory. Whatever happens in it from now on is queued, so look at it after this and not before. Refused
    /// as `NoSpace` where this user watches too much.
    pub fn add(&self, directory: &Directory) -> Result<WatchId, DiskError> {
        notice::add(self.queue.as_fd(), directory.place(), WANTED).map(WatchId)
    }

    /// Watches the lock file of a state directory: when it is rung, and when a process lets go of it.
    pub fn add_lock_file(&self, file: &LockFile) -> Result<WatchId, DiskError> {
        let wanted = WatchFlags::MODIFY.union(WatchFlags::CLOSE_WRITE);
        notice::add_file(self.queue.as_fd(), file.handle(), wanted).map(WatchId)
    }

    /// Ends a watch; nothing happens when it is over already. What is queued of it still comes.
    pub fn remove(&self, watch: WatchId) -> Result<(), DiskError> {
        match notice::remove(self.queue.as_fd(), watch.0) {
            Err(error) if error.errno == Some(rustix::io::Errno::INVAL.raw_os_error()) => Ok(()),
            other => other,
        }
    }

    /// Takes what is queued, in the order it happened, without waiting. Says whether that was all.
    pub fn drain(&self, events: &mut Vec<Event>) -> Result<Drained, DiskError> {
        let all = notice::read(self.queue.as_fd(), EVENTS_MAX, &mut |raw| events.extend(event(raw)))?;
        Ok(if all { Drained::All } else { Drained::Some })
    }

    /// Waits until something is queued, but not longer than this. Says whether something is.
    pub fn wait(&self, most: Duration) -> Result<bool, DiskError> {
        notice::wait(&[self.queue.as_fd()], most)
    }

    /// The same, and a ring of this bell ends the wait as well.
    pub fn wait_for(&self, bell: &Bell, most: Duration) -> Result<(), DiskError> {
        notice::wait(&[self.queue.as_fd(), bell.counter.as_fd()], most)?;
        notice::uncount(bell.counter.as_fd());
        Ok(())
    }
}

/// Wakes who waits at a queue, from any thread. A ring before the wait is not lost.
#[derive(Debug, Clone)]
pub struct Bell {
    counter: Arc<OwnedFd>,
}

impl Bell {
    /// A bell that nobody has rung.
    pub fn new() -> Result<Self, DiskError> {
        Ok(Self { counter: Arc::new(notice::counter()?) })
    }

    /// Ends the wait.
    pub fn ring(&self) {
        notice::count(self.counter.as_fd());
    }
}

impl AsFd for Watch {
    /// For waiting in company: readable when something is queued.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// How much was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Everything that had happened.
    All,
    /// As much as one call brings; there may be more.
    Some,
}

/// How many directories one user may watch on this machine, in all its processes.
pub fn watches_max() -> usize {
    let said = std::fs::read_to_string(WATCHES_FILE).ok();
    said.and_then(|said| said.trim().parse().ok()).unwrap_or(WATCHES_DEFAULT)
}

fn event(raw: &inotify::Event<'_>) -> Option<Event> {
    let flags = raw.events();
    let happened = happened(flags, raw.cookie())?;
    let about = if flags.contains(ReadFlags::ISDIR) { About::Directory } else { About::Other };
    let watch = (happened != Happened::Overflow).then_some(WatchId(raw.wd()));
    let name = raw.file_name().and_then(|name| Name::new(name.to_bytes()).ok());
    Some(Event { watch, name, about, happened })
}

fn happened(flags: ReadFlags, cookie: u32) -> Option<Happened> {
    let said = [
        (ReadFlags::QUEUE_OVERFLOW, Happened::Overflow),
        (ReadFlags::IGNORED | ReadFlags::UNMOUNT, Happened::Ended),
        (ReadFlags::CREATE, Happened::Created),
        (ReadFlags::MOVED_FROM, Happened::MovedFrom(cookie)),
        (ReadFlags::MOVED_TO, Happened::MovedTo(cookie)),
        (ReadFlags::DELETE, Happened::Deleted),
        (ReadFlags::MODIFY, Happened::Modified),
        (ReadFlags::CLOSE_WRITE, Happened::Written),
        (ReadFlags::ATTRIB, Happened::Attributes),
        (ReadFlags::DELETE_SELF, Happened::SelfDeleted),
        (ReadFlags::MOVE_SELF, Happened::SelfMoved),
    ];
    said.into_iter().find(|(flag, _)| flags.intersects(*flag)).map(|(_, happened)| happened)
}
