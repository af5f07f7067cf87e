//! Running one test of this binary in another process: as another user, with fewer handles, in a namespace of its own.

use std::process::{Command, Output};

/// Says to a test that it is the child.
const MARK: &str = "DISK_TEST_CHILD";
/// An id without rights.
const NOBODY: &str = "65534";

/// Whether this process is the child.
pub(crate) fn is_child() -> bool {
    std::env::var_os(MARK).is_some()
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs `test` again in a process started through `wrapper`, such as `unshare -m`; an empty one starts it plainly.
pub(crate) fn output_of(wrapper: &[&str], test: &str) -> Output {
    let binary = std::env::current_exe().unwrap();
    let mut words: Vec<&str> = wrapper.to_vec();
    let binary = binary.to_str().unwrap();
    words.extend([binary, "--exact", test, "--nocapture", "--test-threads=1"]);
    Command::new(words[0]).args(&words[1..]).env(MARK, "1").output().unwrap()
}

/// The same, and it must pass.
pub(crate) fn must_pass(wrapper: &[&str], test: &str) {
    let output = output_of(wrapper, test);
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "{wrapper:?} {test}:\n{text}");
}

/// Runs the rest of a test without rights: here, if there are none, else in a child. True when the caller should go on.
pub(crate) fn go_on_unprivileged(test: &str) -> bool {
    if is_child() || !is_root() {
        return true;
    }
    must_pass(&["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"], test);
    false
}

/// Runs the rest of a test in a mount namespace of its own. True when the caller should go on.
pub(crate) fn go_on_with_mounts(test: &str) -> bool {
    if is_child() {
        return true;
    }
    let wrapper: &[&str] =
        if is_root() { &["unshare", "-m", "--propagation", "private"] } else { &["unshare", "-Urm"] };
    let probe = Command::new(wrapper[0]).args(&wrapper[1..]).arg("true").output().unwrap();
    if !probe.status.success() {
        eprintln!("NOT RUN: {test}: this machine lets us have no mount namespace ({wrapper:?})");
        return false;
    }
    must_pass(wrapper, test);
    false
}
