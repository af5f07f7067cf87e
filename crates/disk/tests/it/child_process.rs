//! Runs one test of this binary in a child process: as another user, with fewer handles, or in its own namespace.

use std::process::{Command, Output};

const CHILD_ENV: &str = "DISK_TEST_CHILD";
const NOBODY_UID: &str = "65534";

pub(crate) fn is_child() -> bool {
    std::env::var_os(CHILD_ENV).is_some()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(crate) fn run_test_in_child(wrapper: &[&str], test: &str) -> Output {
    let binary = std::env::current_exe().unwrap();
    let mut words: Vec<&str> = wrapper.to_vec();
    let binary = binary.to_str().unwrap();
    words.extend([binary, "--exact", test, "--nocapture", "--test-threads=1"]);
    Command::new(words[0]).args(&words[1..]).env(CHILD_ENV, "1").output().unwrap()
}

pub(crate) fn assert_child_passes(wrapper: &[&str], test: &str) {
    let output = run_test_in_child(wrapper, test);
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{wrapper:?} {test}:\n{text}");
}

/// Returns `true` if this process has no privileges; else runs the test in a child process without privileges.
pub(crate) fn rerun_unprivileged(test: &str) -> bool {
    if is_child() || !is_root() {
        return true;
    }
    assert_child_passes(&["setpriv", "--reuid", NOBODY_UID, "--regid", NOBODY_UID, "--clear-groups"], test);
    false
}

/// Runs a test in a child process with its own mount namespace, and returns `true` in the child process.
pub(crate) fn rerun_with_mount_namespace(test: &str) -> bool {
    if is_child() {
        return true;
    }
    let wrapper: &[&str] =
        if is_root() { &["unshare", "-m", "--propagation", "private"] } else { &["unshare", "-Urm"] };
    let probe = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output().unwrap();
    if !probe.status.success() {
        eprintln!("NOT RUN: {test}: this machine does not permit a mount namespace ({wrapper:?})");
        return false;
    }
    assert_child_passes(wrapper, test);
    false
}
