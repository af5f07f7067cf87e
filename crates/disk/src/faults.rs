//! Lets tests inject faults into system calls. With the `faults` feature, a test can let the n-th system call fail, or
//! abort the process before that call. Without the `faults` feature, the hook before every system call does nothing.

macro_rules! system_calls {
    ($($call:ident $name:literal),+ $(,)?) => {
        /// A system call that the fault injection of tests can let fail.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum SystemCall { $($call),+ }

        impl SystemCall {
            /// The name of the system call in error messages.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$call => $name),+ }
            }
        }
    };
}

system_calls! {
    Open "open", Openat2 "openat2", Statx "statx", Readlink "readlink", Getdents "getdents",
    Read "read", Write "write", Clone "clone", CopyRange "copy_file_range",
    Mkdir "mkdir", Symlink "symlink", Link "link", Unlink "unlink", Rename "rename",
    Chmod "chmod", Chown "chown", Xattr "xattr",
    Sync "sync", SyncFileSystem "syncfs", Statfs "statfs", Lock "lock", Watch "inotify", Poll "poll",
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
    FaultFilter, FaultPlan, FaultPlanSystemCallReport, FaultPlanThreadFilter, InjectedFaultEffect, arm_fault,
    disarm_fault,
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

    /// How an injected fault affects the chosen system call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum InjectedFaultEffect {
        /// The chosen system call is skipped and returns this error number; later calls succeed.
        FailOnce(i32),
        /// The chosen system call and all later ones are skipped and return this error number, as on a dead disk.
        FailFromNowOn(i32),
        /// The process aborts before the chosen system call, without flushing or unwinding.
        Abort,
    }

    /// The threads whose system calls a fault plan counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FaultPlanThreadFilter {
        ThisThread,
        AllThreads,
    }

    /// The kinds of system calls that a fault plan counts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum FaultFilter {
        All,
        Only(SystemCall),
    }

    /// A test's plan for injected faults: which system call fails, and how.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct FaultPlan {
        /// Which of the counted system calls fails, counted from 1; with 0, no system call fails.
        pub call_number: u64,
        pub action: InjectedFaultEffect,
        pub scope: FaultPlanThreadFilter,
        pub calls: FaultFilter,
    }

    /// The report of a fault plan: how many system calls were counted, and which one failed first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct FaultPlanSystemCallReport {
        pub counted_calls: u64,
        pub hit_call: Option<SystemCall>,
    }

    struct ArmedFault {
        plan: FaultPlan,
        thread: ThreadId,
        report: FaultPlanSystemCallReport,
    }

    static IS_ARMED: AtomicBool = AtomicBool::new(false);
    static ARMED: Mutex<Option<ArmedFault>> = Mutex::new(None);

    fn armed_fault() -> MutexGuard<'static, Option<ArmedFault>> {
        ARMED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Activates a fault plan and replaces the previous fault plan.
    pub fn arm_fault(plan: FaultPlan) {
        let thread = std::thread::current().id();
        *armed_fault() = Some(ArmedFault { plan, thread, report: FaultPlanSystemCallReport::default() });
        IS_ARMED.store(true, Ordering::SeqCst);
    }

    /// Deactivates the fault plan and returns its report.
    pub fn disarm_fault() -> FaultPlanSystemCallReport {
        IS_ARMED.store(false, Ordering::SeqCst);
        armed_fault().take().map(|armed| armed.report).unwrap_or_default()
    }

    pub(crate) fn gate(call: SystemCall) -> Result<(), DiskError> {
        if !IS_ARMED.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut slot = armed_fault();
        let Some(armed) = slot.as_mut() else { return Ok(()) };
        if armed.plan.scope == FaultPlanThreadFilter::ThisThread && armed.thread != std::thread::current().id() {
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
