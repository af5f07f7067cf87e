//! Runs the attack corpus on the engine, with both path resolution methods, and on the unsafe control servers.

use std::io;

use stead_disk::PathResolutionMethod;
use testkit::attack::{
    AttackCase, AttackCaseProcessIsolation, AttackSubject, AttackSuiteRunner, AttackTestCaseGroup,
    AttackTestSuiteReport, AttackVerdict, EngineAttackSubject, ExpectedAttackResult, NaiveServer, SubjectOptions,
    TestMountNamespaceOutcome, UnsafeControlServerKind, case_requirements, load_groups, load_matrix, run_case,
    run_in_mount_namespace,
};

use crate::sandbox::enter_sandbox;

const BOTH_RESOLVERS: &[PathResolutionMethod] = &[PathResolutionMethod::Kernel, PathResolutionMethod::Walker];
/// The path-joining control server must fail at least this percentage of the cases that must be refused.
const DETECTED_PERCENT_MIN: usize = 95;

fn find_group(name: &str) -> AttackTestCaseGroup {
    load_groups().unwrap().into_iter().find(|group| group.group == name).unwrap()
}

fn open_engine(opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
    EngineAttackSubject::open(opening)
}

const ENGINE_SUITE: AttackSuiteRunner<'_> =
    AttackSuiteRunner { subject: "engine", opener: &open_engine, resolvers: BOTH_RESOLVERS };

fn runnable_cases(group: &AttackTestCaseGroup) -> Vec<AttackCase> {
    ENGINE_SUITE
        .runnable_cases(group, AttackCaseProcessIsolation::ThisProcess, &mut AttackTestSuiteReport::default())
        .unwrap()
}

fn assert_group_passes(group: &AttackTestCaseGroup, place: AttackCaseProcessIsolation) {
    let AttackTestSuiteReport { ran, skipped: not_run, failures: wrong } =
        ENGINE_SUITE.run_group(group, place).unwrap();
    for line in not_run {
        eprintln!("NOT RUN: {line}");
    }
    println!("{}: {ran} cases, {} resolvers", group.group, BOTH_RESOLVERS.len());
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! test_groups {
    ($($test:ident = $name:literal;)+) => {
        $(#[test] fn $test() {
            if !enter_sandbox(concat!("attacks::", stringify!($test))) {
                return;
            }
            assert_group_passes(&find_group($name), AttackCaseProcessIsolation::ThisProcess);
        })+

        #[test]
        fn every_attack_group_has_a_test() {
            let tested = [$($name),+];
            let found: Vec<String> = load_groups().unwrap().into_iter().map(|group| group.group).collect();
            assert_eq!(found, tested);
        }
    };
}

test_groups! {
    traversal = "traversal";
    absolute = "absolute";
    encoding = "encoding";
    nul_and_length = "nul-length";
    symlink = "symlink";
    dangling = "dangling";
    trailing = "trailing";
    magic = "magic";
    special = "special";
    hardlink = "hardlink";
    mount = "mount";
    names = "names";
    protected = "protected";
    moves = "moves";
    race = "race";
    output = "output";
    locks = "locks";
    quota = "quota";
    audit = "audit";
    undo = "undo";
}

#[test]
fn every_operation_refuses_every_escape() {
    if !enter_sandbox("attacks::every_operation_refuses_every_escape") {
        return;
    }
    assert_group_passes(&load_matrix().unwrap(), AttackCaseProcessIsolation::ThisProcess);
}

#[test]
fn mount_cases_pass() {
    match run_in_mount_namespace("attacks::mount_cases_pass").unwrap() {
        TestMountNamespaceOutcome::Inside => {
            for group in load_groups().unwrap() {
                assert_group_passes(&group, AttackCaseProcessIsolation::MountNamespace);
            }
        }
        TestMountNamespaceOutcome::Child(output) => {
            let stdout = String::from_utf8_lossy(&output.stdout);
            let stderr = String::from_utf8_lossy(&output.stderr);
            println!("{stdout}");
            assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
        }
        TestMountNamespaceOutcome::Unavailable => {
            for group in load_groups().unwrap() {
                for case in ENGINE_SUITE
                    .runnable_cases(
                        &group,
                        AttackCaseProcessIsolation::MountNamespace,
                        &mut AttackTestSuiteReport::default(),
                    )
                    .unwrap()
                {
                    eprintln!("NOT RUN: {}: this machine gives us no mount namespace", case.id);
                }
            }
        }
    }
}

#[test]
fn corpus_data_is_consistent() {
    let mut groups = load_groups().unwrap();
    groups.push(load_matrix().unwrap());
    let mut ids = std::collections::BTreeSet::new();
    let mut count = 0;
    for group in &groups {
        for case in &group.cases {
            assert!(ids.insert(case.id.clone()), "{} is there twice", case.id);
            case_requirements(group, case).unwrap();
            count += 1;
            for code in case.expect.kind.as_list() {
                let kind = stead_engine::ErrorKind::ALL.iter().find(|kind| kind.code() == code);
                let Some(kind) = kind else {
                    assert_eq!((code, case.only.is_some()), ("protocol", true), "{}: {code}", case.id);
                    continue;
                };
                let fits = match case.expect.result {
                    ExpectedAttackResult::Deny => kind.class() == stead_engine::ErrorClass::Refused,
                    ExpectedAttackResult::Error => kind.class() != stead_engine::ErrorClass::Refused,
                    ExpectedAttackResult::Ok => false,
                    ExpectedAttackResult::Safe => true,
                };
                assert!(fits, "{}: {code} does not fit {:?}", case.id, case.expect.result);
            }
        }
        for waiting in &group.waiting {
            assert!(ids.insert(waiting.id.clone()), "{} is there twice", waiting.id);
            println!("WAITS for {}: {}: {}", waiting.until, waiting.id, waiting.about);
        }
    }
    assert!(count >= 250, "{count} cases");
    println!("{count} cases, {} waiting", ids.len() - count);
}

/// A server that only joins paths must fail every case that must be refused, except the cases marked as exceptions.
#[test]
fn naive_server_fails_the_corpus() {
    if !enter_sandbox("attacks::naive_server_fails_the_corpus") {
        return;
    }
    let mut groups = load_groups().unwrap();
    groups.push(load_matrix().unwrap());
    let (mut denied, mut bitten, mut harmed) = (0, 0, 0);
    let mut toothless = Vec::new();
    for group in &groups {
        for case in runnable_cases(group).iter().filter(|case| case.expect.result == ExpectedAttackResult::Deny) {
            let verdict = run_control(group, case, UnsafeControlServerKind::Join);
            denied += 1;
            bitten += usize::from(!verdict.has_passed());
            harmed += usize::from(verdict.did_harm());
            match (&case.cannot_bite, verdict.has_passed()) {
                (Some(why), true) => println!("CANNOT BITE: {}: {why}", case.id),
                (Some(_), false) => toothless.push(format!("{} bites after all", case.id)),
                (None, true) => toothless.push(format!("{} does not bite", case.id)),
                (None, false) => {}
            }
        }
    }
    println!("{denied} cases must be refused; {bitten} fail on plain path joining, {harmed} of them with harm done");
    assert!(bitten * 100 >= denied * DETECTED_PERCENT_MIN, "{bitten} of {denied}");
    assert!(toothless.is_empty(), "{}", toothless.join("\n"));
}

/// A server that only joins paths must fail at least half of the race cases, so that the attackers are effective.
#[test]
fn naive_server_loses_the_races() {
    if !enter_sandbox("attacks::naive_server_loses_the_races") {
        return;
    }
    let group = find_group("race");
    let cases = runnable_cases(&group);
    let safe: Vec<&AttackCase> = cases.iter().filter(|case| case.expect.result == ExpectedAttackResult::Safe).collect();
    let unasked = ["undo", "redo", "history", "stat", "lock"];
    let askable = |case: &&&AttackCase| !unasked.contains(&case.operation.as_str());
    // If the control server creates a directory at an attacker's path, the attacker stops and the run is not counted.
    let lost = |case: &&&AttackCase| {
        let open = |opening: &SubjectOptions| NaiveServer::open(opening, UnsafeControlServerKind::Join);
        run_case(&group, case, &open, PathResolutionMethod::Auto).is_ok_and(|verdict| verdict.did_harm())
    };
    let bitten = safe.iter().filter(askable).filter(lost).count();
    println!("{bitten} of {} races are lost by plain path joining", safe.len());
    assert!(bitten * 2 >= safe.len(), "{bitten} of {}", safe.len());
}

#[test]
fn decoding_server_fails_the_corpus() {
    if !enter_sandbox("attacks::decoding_server_fails_the_corpus") {
        return;
    }
    let mut toothless = Vec::new();
    let mut count = 0;
    for group in load_groups().unwrap() {
        for case in runnable_cases(&group).iter().filter(|case| case.control == UnsafeControlServerKind::Decode) {
            let verdict = run_control(&group, case, UnsafeControlServerKind::Decode);
            count += 1;
            if verdict.has_passed() != case.cannot_bite.is_some() {
                toothless.push(format!("{}: passed: {}", case.id, verdict.has_passed()));
            }
        }
    }
    assert!(count > 20 && toothless.is_empty(), "{count} cases\n{}", toothless.join("\n"));
}

fn run_control(group: &AttackTestCaseGroup, case: &AttackCase, control: UnsafeControlServerKind) -> AttackVerdict {
    let open = |opening: &SubjectOptions| NaiveServer::open(opening, control);
    match run_case(group, case, &open, PathResolutionMethod::Auto) {
        Ok(verdict) => verdict,
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            AttackVerdict { id: case.id.clone(), faults: Vec::new() }
        }
        Err(error) => panic!("{}: {error}", case.id),
    }
}
