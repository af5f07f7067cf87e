//! Four processes on one tree, overlapping in every path; one of them dies every now and then.

#![expect(clippy::disallowed_methods, reason = "processes must be started")]

use std::process::Command;

use testkit::{rig::Length, several};

/// Says to the test `member` that it is one.
const MARK: &str = "LOCAL_TEST_MEMBER";
/// Deaths, and calls of each process, in an ordinary run and in a long one.
const ORDINARY: (u64, u64) = (24, 250);
const LONG: (u64, u64) = (400, 1_000);

/// This binary again, running only the test below.
fn start() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "several::member", "--nocapture", "--test-threads=1"]).env(MARK, "1");
    command
}

#[test]
fn member() {
    if std::env::var_os(MARK).is_some() {
        several::run_member().unwrap();
    }
}

#[test]
fn four_processes_share_one_tree() {
    let (deaths, steps) = Length::wanted().of(ORDINARY, LONG);
    let figures = several::run(deaths, steps, &start).unwrap();
    eprintln!("{figures:?}");
    assert!(figures.keys_shared > 0 && figures.seen_of_others > 0, "{figures:?}");
}
