//! Fault injection. Every system call passes a gate first. With the `faults` feature, a test can make the gate fail the
//! n-th system call or abort the process before that call. Without the feature the gate is empty and costs nothing.

/// A system call that passes the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the system call of that name")]
pub enum SystemCall {
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

impl SystemCall {
    /// The name of the call in error messages.
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
pub(crate) fn gate(_call: SystemCall) -> Result<(), crate::DiskError> {
    Ok(())
}

#[cfg(feature = "faults")]
pub(crate) use armed::gate;
#[cfg(feature = "faults")]
pub use armed::{
    FaultFilter, FaultInjectionReport, FaultPlan, FaultThreadScope, InjectedFaultEffect, arm_fault, disarm_fault,
};

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

    use super::SystemCall;
    use crate::DiskError;

    /// The effect on the chosen system call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum InjectedFaultEffect {
        /// The call is skipped and returns this error number.
        FailOnce(i32),
        /// The chosen call and all later calls are skipped and return this error number, as on a dead disk.
        FailFromNowOn(i32),
        /// The process ends before the call, without flushing or unwinding.
        Abort,
    }

    /// Which threads' system calls are counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FaultThreadScope {
        /// Only calls of the thread that armed the plan are counted.
        ThisThread,
        /// The calls of every thread are counted.
        AllThreads,
    }

    /// Which system calls are counted.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FaultFilter {
        /// Every system call is counted.
        All,
        /// Only this system call is counted.
        Only(SystemCall),
    }

    /// Which system call fails, and how.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FaultPlan {
        /// The 1-based position, among the counted calls, of the call that fails. If the position is 0, no call fails.
        pub call_number: u64,
        /// The effect on the call that fails.
        pub action: InjectedFaultEffect,
        /// Which threads' calls are counted.
        pub scope: FaultThreadScope,
        /// Which system calls are counted.
        pub calls: FaultFilter,
    }

    /// The report of a fault plan: the number of counted calls, and the first call that failed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct FaultInjectionReport {
        /// The number of counted calls.
        pub counted_calls: u64,
        /// The first call that failed, if any.
        pub hit_call: Option<SystemCall>,
    }

    struct ArmedFault {
        plan: FaultPlan,
        thread: ThreadId,
        report: FaultInjectionReport,
    }

    static IS_ARMED: AtomicBool = AtomicBool::new(false);
    static ARMED: Mutex<Option<ArmedFault>> = Mutex::new(None);

    fn armed_fault() -> MutexGuard<'static, Option<ArmedFault>> {
        ARMED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Activates a fault plan, which replaces the previous plan.
    pub fn arm_fault(plan: FaultPlan) {
        let thread = std::thread::current().id();
        *armed_fault() = Some(ArmedFault { plan, thread, report: FaultInjectionReport::default() });
        IS_ARMED.store(true, Ordering::SeqCst);
    }

    /// Deactivates the fault plan and returns its report.
    pub fn disarm_fault() -> FaultInjectionReport {
        IS_ARMED.store(false, Ordering::SeqCst);
        armed_fault().take().map(|armed| armed.report).unwrap_or_default()
    }

    pub(crate) fn gate(call: SystemCall) -> Result<(), DiskError> {
        if !IS_ARMED.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut slot = armed_fault();
        let Some(armed) = slot.as_mut() else { return Ok(()) };
        if armed.plan.scope == FaultThreadScope::ThisThread && armed.thread != std::thread::current().id() {
            return Ok(());
        }
        match armed.plan.calls {
            FaultFilter::All => {}
            FaultFilter::Only(only) if only == call => {}
            FaultFilter::Only(_) => return Ok(()),
        }
        armed.report.counted_calls += 1;
        let hit = match armed.plan.action {
            InjectedFaultEffect::FailFromNowOn(_) => {
                armed.plan.call_number > 0 && armed.report.counted_calls >= armed.plan.call_number
            }
            InjectedFaultEffect::FailOnce(_) | InjectedFaultEffect::Abort => {
                armed.report.counted_calls == armed.plan.call_number
            }
        };
        if !hit {
            return Ok(());
        }
        armed.report.hit_call.get_or_insert(call);
        match armed.plan.action {
            InjectedFaultEffect::FailOnce(number) | InjectedFaultEffect::FailFromNowOn(number) => {
                Err(DiskError::from_errno(call.as_str(), Errno::from_raw_os_error(number)))
            }
            InjectedFaultEffect::Abort => std::process::abort(),
        }
    }
}
