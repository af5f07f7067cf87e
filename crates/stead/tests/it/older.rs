//! Runs the binary on a state directory of version 0.1.0 that contains an unfinished change.

use std::{os::unix::fs::PermissionsExt, path::Path};

use serde_json::Value;

use crate::{
    cli_fixture::{CliFixture, CliTestCommandOutput},
    journal::copy_tree,
};

const FIXTURE_0_1_0: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../local/tests/fixtures/0.1.0");

#[test]
fn a_state_directory_of_0_1_0_is_finished_verified_shown_and_undone() {
    let fixture = CliFixture::new();
    let state = fixture.directory.path().join("kept");
    copy_tree(&Path::new(FIXTURE_0_1_0).join("workspace"), &fixture.workspace());
    copy_tree(&Path::new(FIXTURE_0_1_0).join("state"), &state);
    std::fs::set_permissions(&state, std::fs::Permissions::from_mode(0o700)).unwrap();
    let ok = |arguments: &[&str]| -> CliTestCommandOutput {
        fixture.run_successfully(&[&["--state", "../kept"], arguments].concat())
    };
    let text = |path: &str| std::fs::read_to_string(fixture.workspace().join(path)).unwrap();
    ok(&["log", "verify"]);
    assert_eq!((text("replaced.txt").as_str(), text("pending/new.txt").as_str()), ("after\n", "pending\n"));
    let log = ok(&["log", "--json", "--limit", "1000"]).text();
    let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = rows.iter().map(|row| &row["entry"]).find(|entry| entry["operation"] == "patch").unwrap();
    assert_eq!(last["caller"]["principal"], "agent:writer");
    let audited: Vec<_> = rows.iter().flat_map(|row| row["audit"].as_array().unwrap()).collect();
    for operation in ["create", "update", "delete", "move"] {
        assert!(audited.iter().any(|row| row["operation"] == operation), "{operation}: {log}");
    }
    let tokens = ok(&["token", "list", "--json"]).text();
    assert!(tokens.contains("\"agent:ci\""), "{tokens}");
    let refused = ["--state", "../kept", "write", "closed/x", "--content", "x", "--principal", "agent:writer"];
    assert_eq!(fixture.run(&refused).code, 3, "the policy of 0.1.0 still applies");
    ok(&["undo", "--principal", "agent:writer"]);
    assert_eq!(text("replaced.txt"), "before\n");
    ok(&["log", "verify"]);
}
