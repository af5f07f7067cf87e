//! Runs a test in a process that can access only one scratch directory. The attack corpus has links to paths of the
//! real machine. The sandbox keeps unsafe control servers away from the real machine's files.

use std::{path::Path, process::Command};

use stead_disk::landlock::{self, LandlockOutcome};

const SCRATCH_VARIABLE: &str = "STEAD_ATTACK_SCRATCH";

const NO_SANDBOX_MESSAGE: &str = "no wall on this machine";

/// Runs a test again in a sandboxed child process. The function `enter_sandbox` returns true only in the child process,
/// where the test must run.
pub(crate) fn enter_sandbox(test: &str) -> bool {
    if let Some(scratch) = std::env::var_os(SCRATCH_VARIABLE) {
        let report = landlock::restrict_process(&[Path::new(&scratch)], &[]);
        if report.status == LandlockOutcome::None {
            println!("{NO_SANDBOX_MESSAGE}: {report:?}");
            return false;
        }
        assert!(std::fs::read("/etc/passwd").is_err(), "a wall with a hole: {report:?}");
        return true;
    }
    let scratch = tempfile::Builder::new().prefix("walled-").tempdir().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(SCRATCH_VARIABLE, scratch.path())
        .env("TMPDIR", scratch.path())
        .output()
        .unwrap();
    // No program can run in the sandbox, so the parent process removes trees that only `rm` can remove.
    Command::new("rm").arg("-rf").arg(scratch.path()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    println!("{stdout}");
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    if stdout.contains(NO_SANDBOX_MESSAGE) {
        eprintln!("NOT RUN: {test}: without Landlock the links of the corpus would put this machine at risk");
    }
    false
}
