//! Every system call of every change fails once, and the process dies at every one of them. Afterwards the workspace is
//! wholly old or wholly new, as the caller was told; the journal verifies and tells what is on the disk; and the change
//! can be made, or taken back.

mod dying;
mod rig;
mod scenario;
pub(crate) mod snapshot;
mod store;

pub(crate) use self::rig::{check_journal, place as rig_place};

use std::sync::{Mutex, MutexGuard, PoisonError};

use disk::faults::{Action, Call, Calls, FaultPlan, Fired, Scope, arm, disarm};

use self::{
    rig::{Heard, Litter, Rig, check_litter, close, open},
    scenario::{BASES, Base, Way},
};

/// The plan is one for the whole process, so whoever arms one is alone.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const INTERRUPTED: i32 = 4;
const BROKEN: i32 = 5;
const FULL: i32 = 28;

/// Whether a full disk can be the answer to this call.
fn may_need_space(call: Call) -> bool {
    match call {
        Call::Open
        | Call::Write
        | Call::Clone
        | Call::CopyRange
        | Call::Mkdir
        | Call::Symlink
        | Call::Link
        | Call::Rename
        | Call::Xattr
        | Call::Sync
        | Call::SyncFileSystem => true,
        Call::Openat2
        | Call::Statx
        | Call::Readlink
        | Call::Getdents
        | Call::Read
        | Call::Unlink
        | Call::Chmod
        | Call::Chown
        | Call::Statfs
        | Call::Lock
        | Call::Watch
        | Call::Poll => false,
    }
}

/// Runs the scenario with one fault. Answers what was hit.
fn disturbed(rig: &Rig, at: u64, errno: i32, context: &str) -> Fired {
    let place = rig.copy();
    let fixture = open(&place);
    arm(FaultPlan { at, action: Action::Errno(errno), scope: Scope::ThisThread, calls: Calls::All });
    let answer = fixture.call(rig.operation, rig.arguments.clone());
    let fired = disarm();
    let context =
        format!("{context}: call {at} ({:?}) answered {errno}: {:?}", fired.fired, answer.as_ref().err());
    let heard = if answer.is_ok() { Heard::Success } else { Heard::Failure };
    if fired.fired.is_none() || errno == INTERRUPTED {
        assert_eq!(heard, Heard::Success, "{context}");
    }
    rig.check_whole(&fixture.path(""), heard, &format!("{context}, still open"));
    close(fixture);
    let fixture = open(&place);
    // A fault that did not fail the call hit the tidying; one that did leaves the tidying alone.
    let expected = if heard == Heard::Success { Litter::Possible } else { Litter::None };
    check_litter(&fixture, expected, &context);
    rig.check_opened(&fixture, heard, &context);
    close(fixture);
    fired
}

fn fail_everywhere(base: &Base, way: Way) {
    let _alone = alone();
    let rig = Rig::new(base, way);
    let context = format!("{} {way:?}", base.name);
    let mut at = 0;
    loop {
        at += 1;
        let Some(call) = disturbed(&rig, at, BROKEN, &context).fired else { break };
        if may_need_space(call) {
            disturbed(&rig, at, FULL, &context);
        }
        // Undo and redo are made of the same calls; once is enough in the ordinary run.
        if way == Way::Do || std::env::var_os("STEAD_LONG").is_some() {
            disturbed(&rig, at, INTERRUPTED, &context);
        }
    }
    assert!(at > 10, "{context}: only {at} calls were seen");
}

/// The device dies at a call and comes back later, with the workspace open all the time or opened again.
fn die_and_come_back(base: &Base) {
    let _alone = alone();
    let rig = Rig::new(base, Way::Do);
    for at in 1.. {
        let context = format!("{}: the device was dead from call {at} on", base.name);
        let place = rig.copy();
        let fixture = open(&place);
        arm(FaultPlan { at, action: Action::Dead(BROKEN), scope: Scope::ThisThread, calls: Calls::All });
        let answer = fixture.call(rig.operation, rig.arguments.clone());
        let fired = disarm();
        let context = format!("{context}: {:?}", answer.as_ref().err());
        if answer.is_ok() {
            rig.check_whole(&fixture.path(""), Heard::Success, &context);
        }
        // Asking again finishes what was begun, unless a failed sync has closed the workspace for changes.
        let again = fixture.call(rig.operation, rig.arguments.clone()).map(|answer| answer.json);
        if !matches!(&again, Err(failure) if failure.kind == engine::Kind::AuditUnavailable) {
            rig.check_whole(&fixture.path(""), Heard::Success, &format!("{context}, again {again:?}"));
        }
        check_journal(&fixture, &context);
        close(fixture);
        let fixture = open(&place);
        rig.check_whole(&fixture.path(""), Heard::Nothing, &context);
        check_journal(&fixture, &context);
        close(fixture);
        if fired.fired.is_none() {
            break;
        }
    }
}

#[test]
fn the_device_may_die_and_come_back() {
    for base in BASES.iter().filter(|base| !matches!(base.name, "append" | "restore")) {
        die_and_come_back(base);
    }
}

fn all(way: Way) {
    for base in BASES {
        fail_everywhere(base, way);
    }
}

#[test]
fn every_call_of_a_change_may_fail() {
    all(Way::Do);
}

#[test]
fn every_call_of_an_undo_may_fail() {
    all(Way::Undo);
}

#[test]
fn every_call_of_a_redo_may_fail() {
    all(Way::Redo);
}
