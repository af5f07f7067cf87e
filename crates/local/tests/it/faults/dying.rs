//! Tests a process that dies at every system call of a change, and then at every system call of the recovery.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use serde_json::{Value, json};
use stead_disk::faults::{FaultFilter, FaultPlan, FaultPlanThreadFilter, InjectedFaultEffect, arm_fault, disarm_fault};
use tempfile::TempDir;

use super::{
    lock_fault_tests,
    rig::{FaultScenarioFixture, FaultTestReply, LeftoverFilesExpectation, check_leftovers, close, open},
    scenario::{CallUnderFaultInjection, FaultTestDoUndoRedo, SCENARIOS},
    snapshot::find_leftovers,
};
use crate::support::{open_engine, test_options_at};

const CHILD_TASK_ENV: &str = "STEAD_TEST_DYING";
const ACKNOWLEDGED: &str = "acknowledged";
const SURVIVED: &str = "lived";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CrashDuringCallOrOpen {
    Call,
    Open,
}

struct CrashTestChildOutcome {
    reply: FaultTestReply,
    survived: bool,
    counted_calls: u64,
}

#[expect(clippy::disallowed_methods, reason = "the test needs a process that dies")]
fn run_child(
    directory: &TempDir,
    rig: &FaultScenarioFixture,
    during: CrashDuringCallOrOpen,
    at: u64,
) -> CrashTestChildOutcome {
    let task = json!({
        "place": directory.path(),
        "operation": rig.operation,
        "arguments": rig.arguments,
        "open": during == CrashDuringCallOrOpen::Open,
        "at": at,
    });
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::dying::child_process", "--nocapture", "--test-threads=1"])
        .env(CHILD_TASK_ENV, task.to_string())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // The test runner begins the first line.
    let calls = said.lines().find_map(|line| line.strip_prefix("calls ")?.parse().ok()).unwrap_or(0);
    let reply = if said.contains(ACKNOWLEDGED) { FaultTestReply::Success } else { FaultTestReply::NoReply };
    CrashTestChildOutcome { reply, survived: said.contains(SURVIVED), counted_calls: calls }
}

/// The test `child_process` does nothing unless an environment variable marks the process as a child.
#[test]
fn child_process() {
    let Ok(task) = std::env::var(CHILD_TASK_ENV) else { return };
    let task: Value = serde_json::from_str(&task).unwrap();
    let directory = PathBuf::from(task["place"].as_str().unwrap());
    let plan = FaultPlan {
        call_number: task["at"].as_u64().unwrap(),
        action: InjectedFaultEffect::Abort,
        scope: FaultPlanThreadFilter::ThisThread,
        calls: FaultFilter::All,
    };
    let opening = task["open"].as_bool().unwrap();
    if opening {
        arm_fault(plan);
    }
    let fixture = open_engine(test_options_at(&directory)).unwrap();
    if opening {
        println!("\ncalls {}", disarm_fault().counted_calls);
    } else {
        arm_fault(plan);
        let answer = fixture.call(task["operation"].as_str().unwrap(), task["arguments"].clone());
        println!("\ncalls {}", disarm_fault().counted_calls);
        if answer.is_ok() {
            println!("{ACKNOWLEDGED}");
        }
    }
    println!("{SURVIVED}");
    std::process::exit(0);
}

fn die_at_every_call(base: &CallUnderFaultInjection, direction: FaultTestDoUndoRedo) {
    let _alone = lock_fault_tests();
    let rig = FaultScenarioFixture::new(base, direction);
    let mut at = 0;
    loop {
        at += 1;
        let context = format!("{} {direction:?}: died at call {at}", base.name);
        let directory = rig.copy_template();
        let ended = run_child(&directory, &rig, CrashDuringCallOrOpen::Call, at);
        check_reopened(&rig, &directory, ended.reply, &context);
        if ended.survived {
            assert_eq!(ended.reply, FaultTestReply::Success, "{context}");
            break;
        }
    }
    assert!(at > 10, "{}: only {at} calls were seen", base.name);
}

fn check_reopened(rig: &FaultScenarioFixture, directory: &Arc<TempDir>, reply: FaultTestReply, context: &str) {
    let before = find_leftovers(&directory.path().join("ws"));
    let fixture = open(directory);
    let recovery = fixture.workspace.recovery();
    let context = format!("{context} {recovery:?}");
    assert_eq!(recovery.conflicts, 0, "{context}");
    // Staged files in the journal are used or removed; the others wait for the cleanup.
    let unknown = if recovery.entries == 0 && !before.is_empty() {
        LeftoverFilesExpectation::Possible
    } else {
        LeftoverFilesExpectation::None
    };
    let reply = rig.check_before_or_after(&fixture.path(""), reply, &context);
    check_leftovers(&fixture, unknown, &context);
    close(fixture);
    let fixture = open(directory);
    assert_eq!(fixture.workspace.recovery().redone_steps, 0, "{context}: recovery is not finished");
    rig.check_opened(&fixture, reply, &context);
    close(fixture);
}

fn die_in_recovery(base: &CallUnderFaultInjection, direction: FaultTestDoUndoRedo) {
    let _alone = lock_fault_tests();
    let rig = FaultScenarioFixture::new(base, direction);
    let quiet = run_child(&rig.copy_template(), &rig, CrashDuringCallOrOpen::Open, 0).counted_calls;
    let whole = run_child(&rig.copy_template(), &rig, CrashDuringCallOrOpen::Call, 0).counted_calls;
    let mut recovered = 0;
    for at in 1..=whole {
        let directory = rig.copy_template();
        let mut reply = run_child(&directory, &rig, CrashDuringCallOrOpen::Call, at).reply;
        let mut later = quiet;
        loop {
            later += 1;
            let ended = run_child(&directory, &rig, CrashDuringCallOrOpen::Open, later);
            if ended.survived {
                break;
            }
            recovered += 1;
        }
        let context =
            format!("{} {direction:?}: died at call {at}, then {} times in recovery", base.name, later - quiet - 1);
        if reply == FaultTestReply::Failure {
            reply = FaultTestReply::NoReply;
        }
        check_reopened(&rig, &directory, reply, &context);
    }
    assert!(recovered > 0, "{}: recovery had nothing to do", base.name);
}

fn check_living_process(base: &CallUnderFaultInjection) {
    let _alone = lock_fault_tests();
    let rig = FaultScenarioFixture::new(base, FaultTestDoUndoRedo::Do);
    let whole = run_child(&rig.copy_template(), &rig, CrashDuringCallOrOpen::Call, 0).counted_calls;
    for at in 1..=whole {
        let context = format!("{}: another process died at call {at}", base.name);
        let directory = rig.copy_template();
        let fixture = open(&directory);
        run_child(&directory, &rig, CrashDuringCallOrOpen::Call, at);
        // The process finishes the entry of the dead one and then has nothing to change, or it makes the whole change.
        let answer = fixture.call(rig.operation, rig.arguments.clone()).map(|answer| answer.json);
        rig.check_before_or_after(&fixture.path(""), FaultTestReply::Success, &format!("{context}, then {answer:?}"));
        super::rig::check_journal(&fixture, &context);
        close(fixture);
    }
}

fn scenario_by_name(name: &str) -> &'static CallUnderFaultInjection {
    SCENARIOS.iter().find(|base| base.name == name).unwrap()
}

fn for_every_scenario(direction: FaultTestDoUndoRedo) {
    for base in SCENARIOS {
        die_at_every_call(base, direction);
    }
}

#[test]
fn changes_survive_process_death_at_any_call() {
    for_every_scenario(FaultTestDoUndoRedo::Do);
}

#[test]
fn undo_survives_process_death_at_any_call() {
    for_every_scenario(FaultTestDoUndoRedo::Undo);
}

#[test]
fn redo_survives_process_death_at_any_call() {
    for_every_scenario(FaultTestDoUndoRedo::Redo);
}

#[test]
fn recovery_survives_process_death() {
    for name in ["replace", "replace_large", "copy_tree", "move_over_large", "remove_tree", "restore"] {
        die_in_recovery(scenario_by_name(name), FaultTestDoUndoRedo::Do);
    }
    die_in_recovery(scenario_by_name("create_parents"), FaultTestDoUndoRedo::Undo);
    die_in_recovery(scenario_by_name("move_over"), FaultTestDoUndoRedo::Undo);
}

#[test]
fn live_process_finishes_entries_of_a_dead_one() {
    for name in ["create_parents", "replace", "replace_large", "copy_tree", "move_over", "move_tree", "remove_tree"] {
        check_living_process(scenario_by_name(name));
    }
}
