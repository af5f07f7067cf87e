//! Fault tests: every system call of a change fails once, and the process dies at every system call. After the fault,
//! the workspace has either the old or the new content, as the reply said.

mod dying;
mod rig;
mod scenario;
pub(crate) mod snapshot;
#[cfg(feature = "tool-tests")]
mod store;

pub(crate) use self::rig::{check_journal, fast_temporary_directory as rig_place};

use std::sync::{Mutex, MutexGuard, PoisonError};

use stead_disk::faults::{
    FaultFilter, FaultPlan, FaultPlanSystemCallReport, FaultPlanThreadFilter, InjectedFaultEffect, SystemCall,
    arm_fault, disarm_fault,
};

use self::{
    rig::{FaultScenarioFixture, FaultTestReply, LeftoverFilesExpectation, check_leftovers, close, open},
    scenario::{CallUnderFaultInjection, FaultTestDoUndoRedo, SCENARIOS},
};

/// Fault tests run one at a time, because the injected faults are global to the process.
static FAULT_TEST_LOCK: Mutex<()> = Mutex::new(());

pub(crate) fn lock_fault_tests() -> MutexGuard<'static, ()> {
    FAULT_TEST_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

const INTERRUPTED: i32 = 4;
const IO_ERROR: i32 = 5;
const NO_SPACE: i32 = 28;

fn may_need_space(call: SystemCall) -> bool {
    match call {
        SystemCall::Open
        | SystemCall::Write
        | SystemCall::Clone
        | SystemCall::CopyRange
        | SystemCall::Mkdir
        | SystemCall::Symlink
        | SystemCall::Link
        | SystemCall::Rename
        | SystemCall::Xattr
        | SystemCall::Sync
        | SystemCall::SyncFileSystem => true,
        SystemCall::Openat2
        | SystemCall::Statx
        | SystemCall::Readlink
        | SystemCall::Getdents
        | SystemCall::Read
        | SystemCall::Unlink
        | SystemCall::Chmod
        | SystemCall::Chown
        | SystemCall::Statfs
        | SystemCall::Lock
        | SystemCall::Watch
        | SystemCall::Poll => false,
    }
}

fn run_with_fault(rig: &FaultScenarioFixture, at: u64, errno: i32, context: &str) -> FaultPlanSystemCallReport {
    let directory = rig.copy_template();
    let fixture = open(&directory);
    arm_fault(FaultPlan {
        call_number: at,
        action: InjectedFaultEffect::FailOnce(errno),
        scope: FaultPlanThreadFilter::ThisThread,
        calls: FaultFilter::All,
    });
    let answer = fixture.call(rig.operation, rig.arguments.clone());
    let fired = disarm_fault();
    let context = format!("{context}: call {at} ({:?}) answered {errno}: {:?}", fired.hit_call, answer.as_ref().err());
    let reply = if answer.is_ok() { FaultTestReply::Success } else { FaultTestReply::Failure };
    if fired.hit_call.is_none() || errno == INTERRUPTED {
        assert_eq!(reply, FaultTestReply::Success, "{context}");
    }
    rig.check_before_or_after(&fixture.path(""), reply, &format!("{context}, still open"));
    close(fixture);
    let fixture = open(&directory);
    // If the call succeeded despite the fault, the fault hit the cleanup.
    let expected = if reply == FaultTestReply::Success {
        LeftoverFilesExpectation::Possible
    } else {
        LeftoverFilesExpectation::None
    };
    check_leftovers(&fixture, expected, &context);
    rig.check_opened(&fixture, reply, &context);
    close(fixture);
    fired
}

fn fail_at_every_call(base: &CallUnderFaultInjection, direction: FaultTestDoUndoRedo) {
    let _alone = lock_fault_tests();
    let rig = FaultScenarioFixture::new(base, direction);
    let context = format!("{} {direction:?}", base.name);
    let mut at = 0;
    loop {
        at += 1;
        let Some(call) = run_with_fault(&rig, at, IO_ERROR, &context).hit_call else { break };
        if may_need_space(call) {
            run_with_fault(&rig, at, NO_SPACE, &context);
        }
        // Undo and redo use the same calls; one direction is enough in the ordinary run.
        if direction == FaultTestDoUndoRedo::Do || std::env::var_os("STEAD_LONG").is_some() {
            run_with_fault(&rig, at, INTERRUPTED, &context);
        }
    }
    assert!(at > 10, "{context}: only {at} calls were seen");
}

fn fail_then_recover(base: &CallUnderFaultInjection) {
    let _alone = lock_fault_tests();
    let rig = FaultScenarioFixture::new(base, FaultTestDoUndoRedo::Do);
    for at in 1.. {
        let context = format!("{}: the device was dead from call {at} on", base.name);
        let directory = rig.copy_template();
        let fixture = open(&directory);
        arm_fault(FaultPlan {
            call_number: at,
            action: InjectedFaultEffect::FailFromNowOn(IO_ERROR),
            scope: FaultPlanThreadFilter::ThisThread,
            calls: FaultFilter::All,
        });
        let answer = fixture.call(rig.operation, rig.arguments.clone());
        let fired = disarm_fault();
        let context = format!("{context}: {:?}", answer.as_ref().err());
        if answer.is_ok() {
            rig.check_before_or_after(&fixture.path(""), FaultTestReply::Success, &context);
        }
        // Repeating the call finishes it, unless a failed sync has made the workspace read-only.
        let again = fixture.call(rig.operation, rig.arguments.clone()).map(|answer| answer.json);
        if !matches!(&again, Err(error) if error.kind == stead_engine::ErrorKind::AuditUnavailable) {
            rig.check_before_or_after(
                &fixture.path(""),
                FaultTestReply::Success,
                &format!("{context}, again {again:?}"),
            );
        }
        check_journal(&fixture, &context);
        close(fixture);
        let fixture = open(&directory);
        rig.check_before_or_after(&fixture.path(""), FaultTestReply::NoReply, &context);
        check_journal(&fixture, &context);
        close(fixture);
        if fired.hit_call.is_none() {
            break;
        }
    }
}

#[test]
fn workspace_recovers_after_the_disk_failed() {
    for base in SCENARIOS.iter().filter(|base| !matches!(base.name, "append" | "restore")) {
        fail_then_recover(base);
    }
}

fn for_every_scenario(direction: FaultTestDoUndoRedo) {
    for base in SCENARIOS {
        fail_at_every_call(base, direction);
    }
}

#[test]
fn changes_survive_a_failure_of_any_call() {
    for_every_scenario(FaultTestDoUndoRedo::Do);
}

#[test]
fn undo_survives_a_failure_of_any_call() {
    for_every_scenario(FaultTestDoUndoRedo::Undo);
}

#[test]
fn redo_survives_a_failure_of_any_call() {
    for_every_scenario(FaultTestDoUndoRedo::Redo);
}
