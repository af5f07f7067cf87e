//! Tests four processes that change overlapping paths of one workspace concurrently, of which some are killed.

#![expect(clippy::disallowed_methods, reason = "processes must be started")]

use std::process::Command;

use testkit::{multi_process, stress::StressLength};

const CHILD_ENV: &str = "LOCAL_TEST_MEMBER";
/// The number of killed processes and the number of calls per process in the test of several processes.
const ROUNDS_DEFAULT: (u64, u64) = (24, 250);
const ROUNDS_LONG: (u64, u64) = (400, 1_000);

fn member_command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "several::member", "--nocapture", "--test-threads=1"]).env(CHILD_ENV, "1");
    command
}

#[test]
fn member() {
    if std::env::var_os(CHILD_ENV).is_some() {
        multi_process::run_member().unwrap();
    }
}

#[test]
fn four_processes_share_one_tree() {
    let (deaths, steps) = StressLength::from_environment().choose(ROUNDS_DEFAULT, ROUNDS_LONG);
    let figures = multi_process::run_processes(deaths, steps, &member_command).unwrap();
    eprintln!("{figures:?}");
    assert!(figures.shared_keys > 0 && figures.entries_of_others > 0, "{figures:?}");
}
