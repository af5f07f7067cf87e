//! Tests that a file has its complete old or complete new content, whichever system call of its replacement fails.

use std::sync::{Mutex, PoisonError};

use stead_disk::{
    FileAttributeSource, StagedContentSource,
    faults::{
        FaultFilter, FaultPlan, FaultPlanSystemCallReport, FaultPlanThreadFilter, InjectedFaultEffect, SystemCall,
        arm_fault, disarm_fault,
    },
};

use crate::{
    child_process::{is_child, run_test_in_child},
    fixture::{DiskFixture, kind, name},
};

const CHILD_DIRECTORY_ENV: &str = "DISK_TEST_FAULTS";
/// The fault plan is global to the process, so the fault tests must not run at the same time.
static FAULT_TEST_LOCK: Mutex<()> = Mutex::new(());

fn run_with_fault<T>(plan: FaultPlan, step: impl FnOnce() -> T) -> (T, FaultPlanSystemCallReport) {
    let _guard = FAULT_TEST_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    arm_fault(plan);
    let result = step();
    (result, disarm_fault())
}

const IO_ERROR: i32 = 5;

fn fault_plan(at: u64, action: InjectedFaultEffect) -> FaultPlan {
    FaultPlan { call_number: at, action, scope: FaultPlanThreadFilter::ThisThread, calls: FaultFilter::All }
}

fn replace_file(f: &DiskFixture) -> Result<(), stead_disk::DiskError> {
    let root = stead_disk::RootDirectory::open(&f.workspace, stead_disk::RootDirectoryOptions::default())?;
    let top = root.open_directory(&stead_path::RelPath::root())?;
    let old = top.open_file(&name("file"))?;
    let staged = top.stage_file(StagedContentSource::Bytes(b"new"), FileAttributeSource::CopyFrom(&old))?;
    let placed = staged.sync().and_then(|()| top.replace_with_staged(&staged, &name("file")));
    if placed.is_err() {
        staged.discard(&top)?;
    }
    placed
}

#[test]
fn replacement_survives_a_failure_of_any_call() {
    let f = DiskFixture::new();
    f.file("file", "old");
    let (done, whole) = run_with_fault(fault_plan(0, InjectedFaultEffect::FailOnce(IO_ERROR)), || replace_file(&f));
    done.unwrap();
    assert!(whole.counted_calls > 10 && whole.hit_call.is_none(), "{whole:?}");
    for at in 1..=whole.counted_calls {
        f.file("file", "old");
        let (done, fired) =
            run_with_fault(fault_plan(at, InjectedFaultEffect::FailOnce(IO_ERROR)), || replace_file(&f));
        assert!(fired.hit_call.is_some(), "{at}");
        if done.is_err() {
            assert_eq!(f.read("file"), "old", "{fired:?}");
            assert_eq!(kind(done), stead_disk::DiskErrorKind::Io);
        }
        assert_eq!(std::fs::read_dir(&f.workspace).unwrap().count(), 1, "{fired:?} left something behind");
    }
}

fn open_with_openat2_error(f: &DiskFixture, errno: i32) -> Result<stead_disk::RootDirectory, stead_disk::DiskError> {
    let mut at = 1;
    loop {
        let open = || stead_disk::RootDirectory::open(&f.workspace, stead_disk::RootDirectoryOptions::default());
        let (opened, FaultPlanSystemCallReport { hit_call: fired, .. }) =
            run_with_fault(fault_plan(at, InjectedFaultEffect::FailOnce(errno)), open);
        assert!(fired.is_some(), "no openat2 in an opening");
        if fired == Some(SystemCall::Openat2) {
            return opened;
        }
        at += 1;
    }
}

#[test]
fn only_enosys_disables_openat2() {
    let f = DiskFixture::new();
    const NOT_PERMITTED: i32 = 1;
    const AGAIN: i32 = 11;
    const NO_SUCH_CALL: i32 = 38;
    let walker = open_with_openat2_error(&f, NO_SUCH_CALL).unwrap();
    assert_eq!(walker.resolver(), stead_disk::PathResolutionMethod::Walker);
    assert_eq!(kind(open_with_openat2_error(&f, NOT_PERMITTED)), stead_disk::DiskErrorKind::PermissionDenied);
    assert_eq!(kind(open_with_openat2_error(&f, AGAIN)), stead_disk::DiskErrorKind::Busy);
    let again = stead_disk::RootDirectory::open(&f.workspace, stead_disk::RootDirectoryOptions::default()).unwrap();
    assert_eq!(again.resolver(), stead_disk::PathResolutionMethod::Kernel);
}

#[test]
fn files_open_without_procfs() {
    let f = DiskFixture::new();
    f.file("a/file", "abc");
    for resolver in crate::fixture::BOTH_RESOLVERS {
        let root = f.root(resolver);
        let mut fell_back = 0;
        for at in 1..20 {
            const NO_SUCH_FILE: i32 = 2;
            let open = || root.open_file(&crate::fixture::rel_path("a/file"));
            let (opened, FaultPlanSystemCallReport { hit_call: fired, .. }) =
                run_with_fault(fault_plan(at, InjectedFaultEffect::FailOnce(NO_SUCH_FILE)), open);
            if fired == Some(SystemCall::Open)
                && let Ok(file) = opened
            {
                assert_eq!(file.read_all(9).unwrap(), b"abc");
                fell_back += 1;
            }
        }
        assert_eq!(fell_back, 1, "{resolver:?}");
    }
}

#[test]
fn calls_of_other_threads_are_not_counted() {
    let f = DiskFixture::new();
    f.file("file", "old");
    let elsewhere = || std::thread::scope(|scope| scope.spawn(|| replace_file(&f)).join().unwrap());
    let (done, fired) = run_with_fault(fault_plan(1, InjectedFaultEffect::FailOnce(IO_ERROR)), elsewhere);
    done.unwrap();
    assert_eq!(fired.counted_calls, 0);
}

#[test]
fn a_process_can_end_at_a_call() {
    if !is_child() {
        let f = DiskFixture::new();
        let variable = format!("{CHILD_DIRECTORY_ENV}={}", f.workspace.display());
        let output = run_test_in_child(&["env", &variable], "faults::a_process_can_end_at_a_call");
        assert!(!output.status.success() && output.status.code().is_none(), "{output:?}");
        return;
    }
    let ws = std::env::var(CHILD_DIRECTORY_ENV).unwrap();
    run_with_fault(fault_plan(2, InjectedFaultEffect::Abort), || {
        stead_disk::RootDirectory::open(ws.as_ref(), stead_disk::RootDirectoryOptions::default()).unwrap()
    });
}
