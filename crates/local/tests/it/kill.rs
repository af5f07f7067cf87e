//! Crash test of the local workspace: a child process that makes changes is killed at random moments.

#![expect(clippy::disallowed_methods, reason = "a child to kill must be started")]

use std::process::Command;

use testkit::{crash, stress::StressLength, workload};

const CHILD_ENV: &str = "LOCAL_TEST_CHILD";
const ROUNDS: (u64, u64) = (250, 10_000);

fn child_command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "kill::child", "--nocapture", "--test-threads=1"]).env(CHILD_ENV, "1");
    command
}

#[test]
fn child() {
    if std::env::var_os(CHILD_ENV).is_some() {
        workload::run_child().unwrap();
    }
}

#[test]
fn acknowledged_changes_survive_kills_completely() {
    let figures =
        crash::run_rounds(StressLength::from_environment().choose(ROUNDS.0, ROUNDS.1), &child_command).unwrap();
    eprintln!("{figures:?}");
    assert!(figures.in_flight_applied > 0 && figures.in_flight_applied < figures.in_flight, "{figures:?}");
    assert!(figures.replayed_steps > 0, "{figures:?}");
}
