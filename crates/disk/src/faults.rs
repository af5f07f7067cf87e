//! Faults on demand. Owns the one gate that every system call passes; with the `faults` feature a test can make the
//! n-th call fail or end the process there. Without the feature the gate is empty and costs nothing.

/// The system calls that pass the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the system call of that name")]
pub enum Call {
    Open,
    Openat2,
    Statx,
    Readlink,
    Getdents,
    Read,
    Write,
    Clone,
    CopyRange,
    Mkdir,
    Symlink,
    Link,
    Unlink,
    Rename,
    Chmod,
    Chown,
    Xattr,
    Sync,
    SyncFileSystem,
    Statfs,
    Lock,
    Watch,
    Poll,
}

impl Call {
    /// The name that errors show.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Openat2 => "openat2",
            Self::Statx => "statx",
            Self::Readlink => "readlink",
            Self::Getdents => "getdents",
            Self::Read => "read",
            Self::Write => "write",
            Self::Clone => "clone",
            Self::CopyRange => "copy_file_range",
            Self::Mkdir => "mkdir",
            Self::Symlink => "symlink",
            Self::Link => "link",
            Self::Unlink => "unlink",
            Self::Rename => "rename",
            Self::Chmod => "chmod",
            Self::Chown => "chown",
            Self::Xattr => "xattr",
            Self::Sync => "sync",
            Self::SyncFileSystem => "syncfs",
            Self::Statfs => "statfs",
            Self::Lock => "lock",
            Self::Watch => "inotify",
            Self::Poll => "poll",
        }
    }
}

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub(crate) fn gate(_call: Call) -> Result<(), crate::DiskError> {
    Ok(())
}

#[cfg(feature = "faults")]
pub(crate) use armed::gate;
#[cfg(feature = "faults")]
pub use armed::{Action, Calls, FaultPlan, Fired, Scope, arm, disarm};

#[cfg(feature = "faults")]
mod armed {
    use std::{
        sync::{
            Mutex, MutexGuard,
            atomic::{AtomicBool, Ordering},
        },
        thread::ThreadId,
    };

    use rustix::io::Errno;

    use super::Call;
    use crate::DiskError;

    /// What happens at the chosen call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Action {
        /// The call is not made and answers this number.
        Errno(i32),
        /// The call and every one after it is not made and answers this number: the device has died.
        Dead(i32),
        /// The process ends before the call, with nothing flushed and nothing unwound.
        Abort,
    }

    /// Whose calls count.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Scope {
        /// Those of the thread that armed the plan.
        ThisThread,
        /// Those of every thread.
        AllThreads,
    }

    /// Which calls count.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Calls {
        /// Every one.
        All,
        /// Only these.
        Only(Call),
    }

    /// When to fail, and how.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FaultPlan {
        /// The number of the call that is hit, counted from 1; 0 only counts.
        pub at: u64,
        /// What happens there.
        pub action: Action,
        /// Whose calls count.
        pub scope: Scope,
        /// Which calls count.
        pub calls: Calls,
    }

    /// What a plan saw.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Fired {
        /// How many calls were counted.
        pub calls: u64,
        /// The call that was hit, if any.
        pub fired: Option<Call>,
    }

    struct Armed {
        plan: FaultPlan,
        thread: ThreadId,
        seen: Fired,
    }

    static IS_ARMED: AtomicBool = AtomicBool::new(false);
    static ARMED: Mutex<Option<Armed>> = Mutex::new(None);

    fn armed() -> MutexGuard<'static, Option<Armed>> {
        ARMED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Puts a plan in force, in the place of the one before.
    pub fn arm(plan: FaultPlan) {
        let thread = std::thread::current().id();
        *armed() = Some(Armed { plan, thread, seen: Fired::default() });
        IS_ARMED.store(true, Ordering::SeqCst);
    }

    /// Ends the plan and tells what it saw.
    pub fn disarm() -> Fired {
        IS_ARMED.store(false, Ordering::SeqCst);
        armed().take().map(|armed| armed.seen).unwrap_or_default()
    }

    pub(crate) fn gate(call: Call) -> Result<(), DiskError> {
        if !IS_ARMED.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut slot = armed();
        let Some(armed) = slot.as_mut() else { return Ok(()) };
        if armed.plan.scope == Scope::ThisThread && armed.thread != std::thread::current().id() {
            return Ok(());
        }
        match armed.plan.calls {
            Calls::All => {}
            Calls::Only(only) if only == call => {}
            Calls::Only(_) => return Ok(()),
        }
        armed.seen.calls += 1;
        let hit = match armed.plan.action {
            Action::Dead(_) => armed.plan.at > 0 && armed.seen.calls >= armed.plan.at,
            Action::Errno(_) | Action::Abort => armed.seen.calls == armed.plan.at,
        };
        if !hit {
            return Ok(());
        }
        armed.seen.fired.get_or_insert(call);
        match armed.plan.action {
            Action::Errno(number) | Action::Dead(number) => {
                Err(DiskError::from_errno(call.as_str(), Errno::from_raw_os_error(number)))
            }
            Action::Abort => std::process::abort(),
        }
    }
}
