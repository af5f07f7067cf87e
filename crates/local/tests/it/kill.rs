//! The crash rig on this workspace: a child process that makes changes is killed at random moments.

#![expect(clippy::disallowed_methods, reason = "a child to kill must be started")]

use std::process::Command;

use testkit::{crash, rig::Length, workload};

/// Says to the test `child` that it is one.
const MARK: &str = "LOCAL_TEST_CHILD";
/// Rounds in an ordinary run, and in a long one.
const ROUNDS: (u64, u64) = (250, 10_000);

/// This binary again, running only the test below.
fn start() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::child", "--nocapture", "--test-threads=1"]).env(MARK, "1");
    command
}

#[test]
fn child() {
    if std::env::var_os(MARK).is_some() {
        workload::run_child().unwrap();
    }
}

#[test]
fn no_acknowledged_change_is_lost_and_none_is_half_done() {
    let figures = crash::run(Length::wanted().of(ROUNDS.0, ROUNDS.1), &start).unwrap();
    eprintln!("{figures:?}");
    assert!(figures.came_true > 0 && figures.came_true < figures.under_way, "{figures:?}");
    assert!(figures.replayed > 0, "{figures:?}");
}
