//! Runs the attack corpus over MCP against the binary. Attack cases that advance the clock run only on the engine,
//! whose clock a test can set.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test tells what it counted and what it could not run"
)]

use std::{io, path::Path};

use testkit::attack::{
    AttackCaseProcessIsolation, AttackSubject, AttackSuiteRunner, AttackTestCaseGroup, AttackTestSuiteReport,
    McpAttackSubject, SubjectOptions, TestMountNamespaceOutcome, load_groups, load_matrix, run_in_mount_namespace,
};

fn open_mcp_subject(opening: &SubjectOptions) -> io::Result<Box<dyn AttackSubject>> {
    McpAttackSubject::open(Path::new(env!("CARGO_BIN_EXE_stead")), opening)
}

const MCP_SUITE: AttackSuiteRunner<'_> = AttackSuiteRunner {
    subject: "mcp",
    opener: &open_mcp_subject,
    resolvers: &[stead_disk::PathResolutionMethod::Auto],
};

fn assert_group_passes(group: &AttackTestCaseGroup, place: AttackCaseProcessIsolation) {
    let AttackTestSuiteReport { ran, skipped: not_run, failures: wrong } = MCP_SUITE.run_group(group, place).unwrap();
    for line in not_run {
        eprintln!("NOT RUN: {line}");
    }
    println!("{}: {ran} cases over MCP", group.group);
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! test_groups {
    ($($test:ident = $name:literal;)+) => {
        $(#[test] fn $test() {
            let group = load_groups().unwrap().into_iter().find(|group| group.group == $name).unwrap();
            assert_group_passes(&group, AttackCaseProcessIsolation::ThisProcess);
        })+

        #[test]
        fn every_attack_group_has_a_test() {
            let found: Vec<String> = load_groups().unwrap().into_iter().map(|group| group.group).collect();
            assert_eq!(found, [$($name),+]);
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
            let printed = String::from_utf8_lossy(&output.stdout);
            let stderr = String::from_utf8_lossy(&output.stderr);
            println!("{printed}");
            assert!(output.status.success() && printed.contains("1 passed"), "{printed}{stderr}");
        }
        TestMountNamespaceOutcome::Unavailable => {
            for group in load_groups().unwrap() {
                for case in MCP_SUITE
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
