//! The process dies at every system call of a change, and again at every one of the recovery.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use disk::faults::{Action, Calls, FaultPlan, Scope, arm, disarm};
use engine::{Call, Caller, Engine, Principal};
use local::LocalWorkspace;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    alone,
    rig::{Heard, Litter, Rig, check_litter, close, open},
    scenario::{BASES, Base, Way},
    snapshot::litter,
};
use crate::support::options_at;

/// Tells the child what to do.
const TASK: &str = "STEAD_TEST_DYING";
/// What the child says when the change was acknowledged.
const ACKNOWLEDGED: &str = "acknowledged";
/// What the child says when it lived on.
const LIVED: &str = "lived";

/// Where the child dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum During {
    Call,
    Open,
}

/// How the child ended.
struct Ended {
    heard: Heard,
    lived: bool,
    calls: u64,
}

#[expect(clippy::disallowed_methods, reason = "the test needs a process that dies")]
fn child(place: &TempDir, rig: &Rig, during: During, at: u64) -> Ended {
    let task = json!({
        "place": place.path(),
        "operation": rig.operation,
        "arguments": rig.arguments,
        "open": during == During::Open,
        "at": at,
    });
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "faults::dying::child_process", "--nocapture", "--test-threads=1"])
        .env(TASK, task.to_string())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    // The test runner begins the first line.
    let calls = said.lines().find_map(|line| line.strip_prefix("calls ")?.parse().ok()).unwrap_or(0);
    let heard = if said.contains(ACKNOWLEDGED) { Heard::Success } else { Heard::Nothing };
    Ended { heard, lived: said.contains(LIVED), calls }
}

/// Runs in the child only.
#[test]
fn child_process() {
    let Ok(task) = std::env::var(TASK) else { return };
    let task: Value = serde_json::from_str(&task).unwrap();
    let place = PathBuf::from(task["place"].as_str().unwrap());
    let plan = FaultPlan {
        at: task["at"].as_u64().unwrap(),
        action: Action::Abort,
        scope: Scope::ThisThread,
        calls: Calls::All,
    };
    let opening = task["open"].as_bool().unwrap();
    if opening {
        arm(plan);
    }
    let engine = Engine::new(LocalWorkspace::open(options_at(&place)).unwrap());
    if opening {
        println!("\ncalls {}", disarm().calls);
    } else {
        arm(plan);
        let caller = Caller::new(Principal::Agent("tester".into()), "s1", "library");
        let Value::Object(arguments) = task["arguments"].clone() else { panic!("arguments are an object") };
        let answer = engine.call(&Call::new(&caller, task["operation"].as_str().unwrap(), arguments));
        println!("\ncalls {}", disarm().calls);
        if answer.is_ok() {
            println!("{ACKNOWLEDGED}");
        }
    }
    println!("{LIVED}");
    // Nothing is tidied: the process just goes.
    std::process::exit(0);
}

fn die_everywhere(base: &Base, way: Way) {
    let _alone = alone();
    let rig = Rig::new(base, way);
    let mut at = 0;
    loop {
        at += 1;
        let context = format!("{} {way:?}: died at call {at}", base.name);
        let place = rig.copy();
        let ended = child(&place, &rig, During::Call, at);
        reopened(&rig, &place, ended.heard, &context);
        if ended.lived {
            assert_eq!(ended.heard, Heard::Success, "{context}");
            break;
        }
    }
    assert!(at > 10, "{}: only {at} calls were seen", base.name);
}

/// Opens what a dead process left, and looks at everything.
fn reopened(rig: &Rig, place: &Arc<TempDir>, heard: Heard, context: &str) {
    let before = litter(&place.path().join("ws"));
    let fixture = open(place);
    let recovery = fixture.workspace.recovery();
    let context = format!("{context} {recovery:?}");
    assert_eq!(recovery.conflicts, 0, "{context}");
    // Half-made files that the journal knows of are used or taken away; the others wait for the sweep.
    let unknown = if recovery.entries == 0 && !before.is_empty() { Litter::Possible } else { Litter::None };
    let heard = rig.check_whole(&fixture.path(""), heard, &context);
    check_litter(&fixture, unknown, &context);
    close(fixture);
    let fixture = open(place);
    assert_eq!(fixture.workspace.recovery().replayed, 0, "{context}: recovery is not finished");
    rig.check_opened(&fixture, heard, &context);
    close(fixture);
}

/// Dies at a call, then again and again while the workspace is opened, one call later each time.
fn die_in_recovery(base: &Base, way: Way) {
    let _alone = alone();
    let rig = Rig::new(base, way);
    let quiet = child(&rig.copy(), &rig, During::Open, 0).calls;
    let whole = child(&rig.copy(), &rig, During::Call, 0).calls;
    let mut recovered = 0;
    for at in 1..=whole {
        let place = rig.copy();
        let mut heard = child(&place, &rig, During::Call, at).heard;
        let mut later = quiet;
        loop {
            later += 1;
            let ended = child(&place, &rig, During::Open, later);
            if ended.lived {
                break;
            }
            recovered += 1;
        }
        let context =
            format!("{} {way:?}: died at call {at}, then {} times in recovery", base.name, later - quiet - 1);
        if heard == Heard::Failure {
            heard = Heard::Nothing;
        }
        reopened(&rig, &place, heard, &context);
    }
    assert!(recovered > 0, "{}: recovery had nothing to do", base.name);
}

/// A process that has the workspace open all the time asks for the same change after another one died in it.
fn outlive(base: &Base) {
    let _alone = alone();
    let rig = Rig::new(base, Way::Do);
    let whole = child(&rig.copy(), &rig, During::Call, 0).calls;
    for at in 1..=whole {
        let context = format!("{}: another process died at call {at}", base.name);
        let place = rig.copy();
        let fixture = open(&place);
        child(&place, &rig, During::Call, at);
        // It finishes what the other one began, and then has nothing to do; or it does it all.
        let answer = fixture.call(rig.operation, rig.arguments.clone()).map(|answer| answer.json);
        rig.check_whole(&fixture.path(""), Heard::Success, &format!("{context}, then {answer:?}"));
        super::rig::check_journal(&fixture, &context);
        close(fixture);
    }
}

fn named(name: &str) -> &'static Base {
    BASES.iter().find(|base| base.name == name).unwrap()
}

fn all(way: Way) {
    for base in BASES {
        die_everywhere(base, way);
    }
}

#[test]
fn the_process_may_die_at_every_call_of_a_change() {
    all(Way::Do);
}

#[test]
fn the_process_may_die_at_every_call_of_an_undo() {
    all(Way::Undo);
}

#[test]
fn the_process_may_die_at_every_call_of_a_redo() {
    all(Way::Redo);
}

#[test]
fn the_process_may_die_in_recovery() {
    for name in ["replace", "replace_large", "copy_tree", "move_over_large", "remove_tree", "restore"] {
        die_in_recovery(named(name), Way::Do);
    }
    die_in_recovery(named("create_parents"), Way::Undo);
    die_in_recovery(named("move_over"), Way::Undo);
}

#[test]
fn a_living_process_finishes_what_a_dead_one_left() {
    for name in
        ["create_parents", "replace", "replace_large", "copy_tree", "move_over", "move_tree", "remove_tree"]
    {
        outlive(named(name));
    }
}
