//! Tests the server with the official Python client library of MCP.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

const PYTHON_VARIABLE: &str = "STEAD_TEST_PYTHON";

pub(crate) fn python_binary() -> PathBuf {
    if let Some(given) = env::var_os(PYTHON_VARIABLE) {
        return PathBuf::from(given);
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_stead"));
    let target = binary.ancestors().nth(2).expect("the binary lies in a profile's directory");
    let python = target.join("tools").join("py").join("bin").join("python");
    assert!(
        python.is_file(),
        "no Python with the official client: run `cargo xtask test`, or once `cargo xtask needs`"
    );
    python
}

pub(crate) fn python_in_environment(environment: &str) -> PathBuf {
    let newest = python_binary();
    let tools = newest.ancestors().nth(3).expect("an environment lies among others");
    let python = tools.join(environment).join("bin").join("python");
    assert!(python.is_file(), "no {environment}: run `cargo xtask test`, or once `cargo xtask needs`");
    python
}

fn run_script(script: &str) -> String {
    run_script_with(&python_binary(), script, &[])
}

fn run_script_with(python: &Path, script: &str, more: &[PathBuf]) -> String {
    let place = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("python").join(script);
    let output = Command::new(python)
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_stead"))
        .arg(place.path())
        .args(more)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    let (printed, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}\n{complaint}");
    printed.into_owned()
}

#[test]
fn official_python_client_works_in_every_era() {
    let printed = run_script("client.py");
    assert_eq!(printed.lines().count(), 6, "one line for each transport and era: {printed}");
}

#[test]
fn earlier_official_python_clients_work() {
    for (environment, revision) in [("py-mcp-1.30", "2025-11-25"), ("py-mcp-1.12", "2025-06-18")] {
        let printed = run_script_with(&python_in_environment(environment), "client.py", &[]);
        let spoken = printed.lines().filter(|line| line.ends_with(&format!("speaks {revision}"))).count();
        assert_eq!(spoken, 2, "one line for each transport: {printed}");
    }
}

#[test]
fn python_client_sees_every_dialect_as_documented() {
    let printed = run_script("dialects.py");
    assert_eq!(
        printed.lines().count() + 1,
        stead_protocols::dialect::dialect_names().len(),
        "one line for each dialect: {printed}"
    );
}

#[test]
fn every_json_rpc_method_matches_openrpc() {
    let generated = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocols/tests/generated");
    let examples = ["stead.json", "krux.json"].map(|name| generated.join(name));
    let printed = run_script_with(&python_binary(), "openrpc.py", &examples);
    assert!(printed.contains(" methods, "), "{printed}");
}
