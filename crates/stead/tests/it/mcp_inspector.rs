//! Runs the official MCP Inspector, which checks every dialect's tool schemas and connects over standard streams and
//! HTTP.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use testkit::external_tools::{self, ProgramOutput};

use crate::server_process::ServerProcess;

const BINARY: &str = env!("CARGO_BIN_EXE_stead");
const PROTOCOL_ERAS: [&str; 3] = ["legacy", "auto", "modern"];
/// The exit code of the MCP Inspector when a tool returns an error.
const TOOL_ERROR_EXIT_CODE: Option<i32> = Some(5);

#[test]
fn strict_tool_lint_passes_for_every_dialect() {
    for dialect in stead_protocols::dialect::dialect_names() {
        let (place, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut command = inspector_command();
        command.args([BINARY, "mcp", "--dialect", dialect, "--workspace"]).arg(place.path());
        command.args(["--method", "tools/list", "--strict"]).env("XDG_STATE_HOME", state.path());
        let printed = external_tools::run_program(command).unwrap();
        let listed = successful_result(dialect, &printed);
        assert!(!printed.stderr.contains("schema"), "{dialect}: {}", printed.stderr);
        assert!(!listed["tools"].as_array().unwrap().is_empty(), "{dialect}");
    }
}

pub(crate) fn npm_packages_directory() -> PathBuf {
    external_tools::npm_packages_directory().unwrap()
}

pub(crate) fn node_binary() -> PathBuf {
    external_tools::node_binary().unwrap()
}

fn inspector_command() -> Command {
    let mut command = external_tools::node_program("mcp-inspector").unwrap();
    command.arg("--cli");
    command
}

fn successful_result(what: &str, printed: &ProgramOutput) -> Value {
    assert_eq!(printed.code, Some(0), "{what}: {}", printed.full_text());
    let printed: Value = serde_json::from_str(&printed.stdout).unwrap();
    printed.get("result").cloned().unwrap_or(printed)
}

fn run_inspector_steps(what: &str, workspace: &Path, reach: &dyn Fn(&mut Command)) {
    let run = |arguments: &[&str]| {
        let mut command = inspector_command();
        reach(&mut command);
        command.args(arguments);
        external_tools::run_program(command).unwrap()
    };
    let call = |tool: &str, arguments: &Value| {
        run(&["--method", "tools/call", "--tool-name", tool, "--tool-args-json", &arguments.to_string()])
    };
    let listed = run(&["--method", "tools/list", "--strict"]);
    assert!(!successful_result(what, &listed)["tools"].as_array().unwrap().is_empty(), "{what}");
    let read = successful_result(what, &call("read", &json!({ "path": "a.txt" })));
    let version = read["structuredContent"]["version"].as_str().unwrap().to_owned();
    let change = json!({ "path": "a.txt", "content": format!("{what}\n"), "base": version });
    successful_result(what, &call("write", &change));
    assert_eq!(std::fs::read_to_string(workspace.join("a.txt")).unwrap(), format!("{what}\n"));
    assert_eq!(call("write", &change).code, TOOL_ERROR_EXIT_CODE, "{what}: a stale write is refused");
    let directory = successful_result(what, &run(&["--method", "resources/directory/read", "--uri", "stead:///"]));
    let names: Vec<&str> =
        directory["resources"].as_array().unwrap().iter().map(|child| child["uri"].as_str().unwrap()).collect();
    assert!(names.contains(&"stead:///a.txt"), "{what}: {directory}");
    let guide = successful_result(what, &run(&["--method", "prompts/get", "--prompt-name", "stead_guide"]));
    assert!(guide["messages"][0]["content"]["text"].as_str().unwrap().contains("- read:"), "{what}: {guide}");
}

#[test]
fn every_protocol_era_over_stdio() {
    let place = tempfile::tempdir().unwrap();
    let workspace = place.path().join("ws");
    std::fs::create_dir(&workspace).unwrap();
    std::fs::write(workspace.join("a.txt"), "one\n").unwrap();
    for era in PROTOCOL_ERAS {
        run_inspector_steps(&format!("streams {era}"), &workspace, &|command| {
            command.args([BINARY, "mcp", "--workspace"]).arg(&workspace);
            command.arg("--state").arg(place.path().join("state")).args(["--protocol-era", era]);
        });
    }
}

#[test]
fn every_protocol_era_over_http() {
    let server = ServerProcess::start(&["--listen", "127.0.0.1:0"]);
    let token = server.run_cli(&["token", "create", "--principal", "agent:inspector"]);
    let header = format!("Authorization: Bearer {}", token.trim());
    for era in PROTOCOL_ERAS {
        run_inspector_steps(&format!("http {era}"), &server.directory.path().join("ws"), &|command| {
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
    server.terminate();
}
