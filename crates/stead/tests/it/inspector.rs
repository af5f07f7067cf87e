//! Every dialect before the official Inspector, whose strict mode refuses schemas that some client cannot read; and the
//! Inspector's own clients of every era, by standard streams and over HTTP.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use testkit::instruments::{self, Said};

use crate::served::Server;

const BINARY: &str = env!("CARGO_BIN_EXE_stead");
/// The eras that the Inspector can be told to speak.
const ERAS: [&str; 3] = ["legacy", "auto", "modern"];
/// What it ends with when a tool answers an error.
const TOOL_ERROR: Option<i32> = Some(5);

#[test]
fn the_strict_lint_passes_for_every_dialect() {
    for dialect in faces::dialect::names() {
        let (place, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut command = inspector();
        command.args([BINARY, "mcp", "--dialect", dialect, "--workspace"]).arg(place.path());
        command.args(["--method", "tools/list", "--strict"]).env("XDG_STATE_HOME", state.path());
        let said = instruments::run(command).unwrap();
        let listed = well(dialect, &said);
        assert!(!said.complaint.contains("schema"), "{dialect}: {}", said.complaint);
        assert!(!listed["tools"].as_array().unwrap().is_empty(), "{dialect}");
    }
}

/// Where the packages from npm are.
pub(crate) fn home() -> PathBuf {
    instruments::node_home().unwrap()
}

/// The Node that came with them.
pub(crate) fn node() -> PathBuf {
    instruments::node().unwrap()
}

fn inspector() -> Command {
    let mut command = instruments::node_program("mcp-inspector").unwrap();
    command.arg("--cli");
    command
}

/// The result of a call that must succeed.
fn well(what: &str, said: &Said) -> Value {
    assert_eq!(said.code, Some(0), "{what}: {}", said.whole());
    let said: Value = serde_json::from_str(&said.output).unwrap();
    said.get("result").cloned().unwrap_or(said)
}

/// Every step with one way to reach the server.
fn tried(what: &str, workspace: &Path, reach: &dyn Fn(&mut Command)) {
    let run = |arguments: &[&str]| {
        let mut command = inspector();
        reach(&mut command);
        command.args(arguments);
        instruments::run(command).unwrap()
    };
    let call = |tool: &str, arguments: &Value| {
        run(&["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments.to_string()])
    };
    let listed = run(&["--method", "tools/list", "--strict"]);
    assert!(!well(what, &listed)["tools"].as_array().unwrap().is_empty(), "{what}");
    let read = well(what, &call("read", &json!({ "path": "a.txt" })));
    let version = read["structuredContent"]["version"].as_str().unwrap().to_owned();
    let change = json!({ "path": "a.txt", "content": format!("{what}\n"), "base": version });
    well(what, &call("write", &change));
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), format!("{what}\n"));
    assert_eq!(call("write", &change).code, TOOL_ERROR, "{what}: a stale write is refused");
    let directory = well(what, &run(&["--method", "resources/directory/read", "--uri", "stead:///"]));
    let names: Vec<&str> = directory["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|child| child["uri"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"stead:///a.txt"), "{what}: {directory}");
    let guide = well(what, &run(&["--method", "prompts/get", "--prompt-name", "stead_guide"]));
    assert!(guide["messages"][0]["content"]["text"].as_str().unwrap().contains("- read:"), "{what}: {guide}");
}

#[test]
fn every_era_by_standard_streams() {
    let place = tempfile::tempdir().unwrap();
    let workspace = place.path().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    for era in ERAS {
        tried(&format!("streams {era}"), &workspace, &|command| {
            command.args([BINARY, "mcp", "--workspace"]).arg(&workspace);
            command.arg("--state").arg(place.path().join("state")).args(["--protocol-era", era]);
        });
    }
}

#[test]
fn every_era_over_http() {
    let server = Server::start(&["--listen", "127.0.0.1:0"]);
    let token = server.say(&["token", "create", "--principal", "agent:inspector"]);
    let header = format!("Authorization: Bearer {}", token.trim());
    for era in ERAS {
        tried(&format!("http {era}"), &server.place.path().join("ws"), &|command| {
            command.args([
                "--server-url",
                &format!("http://{}/mcp", server.address),
                "--transport",
                "http",
                "--header",
                &header,
            ]);
            command.args(["--protocol-era", era]);
        });
    }
    server.end();
}
