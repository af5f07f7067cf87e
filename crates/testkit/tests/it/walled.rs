//! Runs a test in a process that can reach one scratch directory and nothing else. The corpus holds links to places of
//! the real machine, and its controls follow links: a control, or a server with a new bug, must not reach them, even when
//! the tests run as root.

use std::{path::Path, process::Command};

use disk::wall::{self, Standing};

/// The scratch directory, told to the child.
const SCRATCH: &str = "STEAD_ATTACK_SCRATCH";

/// What the child says when there is no wall to be had.
const NO_WALL: &str = "no wall on this machine";

/// Runs the rest of a test behind the wall. True when the caller should go on.
pub(crate) fn behind_a_wall(test: &str) -> bool {
    if let Some(scratch) = std::env::var_os(SCRATCH) {
        let report = wall::raise(&[Path::new(&scratch)]);
        if report.standing == Standing::None {
            println!("{NO_WALL}: {report:?}");
            return false;
        }
        assert!(std::fs::read("/etc/passwd").is_err(), "a wall with a hole: {report:?}");
        return true;
    }
    let scratch = tempfile::Builder::new().prefix("walled-").tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(SCRATCH, scratch.path())
        .env("TMPDIR", scratch.path())
        .output()
        .unwrap();
    // Behind the wall no program runs, so trees that only `rm` can clear are left to this side.
    Command::new("rm").arg("-rf").arg(scratch.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let cried = String::from_utf8_lossy(&output.stderr);
    println!("{said}");
    assert!(output.status.success() && said.contains("1 passed"), "{said}{cried}");
    if said.contains(NO_WALL) {
        eprintln!("NOT RUN: {test}: without Landlock the links of the corpus would put this machine at risk");
    }
    false
}
