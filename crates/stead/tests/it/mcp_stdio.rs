//! Tests `stead mcp` over pipes, and over the socket pairs that some clients use.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Stdio,
};

use serde_json::json;
use testkit::session_fixture::SessionFixture;

use crate::cli_fixture::CliFixture;

fn run_conversation(mut session: SessionFixture, fixture: &CliFixture) {
    assert_eq!(session.initialize(&json!({}))["serverInfo"]["name"], "stead");
    let definition = stead_protocols::definition::DialectDefinition::native().unwrap();
    let listed = |one: &&stead_protocols::definition::ToolDefinition| {
        one.listed == stead_protocols::definition::ToolVisibility::Listed
    };
    let shown = definition.operations.iter().filter(listed).count();
    let tools = session.request_ok("tools/list", &json!({}));
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(shown));
    let written = session.call_tool("write", &json!({ "path": "a.txt", "content": "a\n", "base": "" }));
    assert_eq!(written["result"]["isError"], false, "{written}");
    assert_eq!(std::fs::read(fixture.workspace().join("a.txt")).unwrap(), b"a\n");
    let read = session.call_tool("read", &json!({ "path": "a.txt" }));
    assert_eq!(read["result"]["structuredContent"]["content"], "a\n");
    let protected = json!({ "path": ".git/hooks/pre-commit", "content": "x", "base": "" });
    let refused = session.call_tool("write", &protected);
    assert_eq!(refused["result"]["structuredContent"]["error"]["kind"], "approval_pending", "{refused}");
    assert!(session.close().is_empty(), "standard output has only the responses");
    let log = fixture.run_successfully(&["log", "--principal", "agent:mcp"]).text();
    assert_eq!(log.lines().count(), 3, "{log}");
}

#[test]
fn mcp_is_served_over_pipes() {
    let fixture = CliFixture::new();
    run_conversation(fixture.connect(&["mcp"]), &fixture);
}

#[test]
fn mcp_is_served_over_sockets() {
    let fixture = CliFixture::new();
    let (near_in, far_in) = UnixStream::pair().unwrap();
    let (near_out, far_out) = UnixStream::pair().unwrap();
    let mut command = fixture.command(&["mcp"]);
    command.stdin(OwnedFd::from(far_in)).stdout(OwnedFd::from(far_out)).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    // Dropping the command closes its copies of the server's ends, so the client notices when the server exits.
    drop(command);
    run_conversation(SessionFixture::over_streams(child, near_in, near_out), &fixture);
}

#[test]
fn silent_client_is_not_an_error() {
    let fixture = CliFixture::new();
    let ran = fixture.run(&["mcp", "--durability", "fast"]);
    assert_eq!((ran.code, ran.text()), (0, String::new()), "{}", ran.stderr);
    assert!(ran.stderr.contains("--durability fast"), "{}", ran.stderr);
}

#[test]
fn requests_redirected_from_a_file_are_answered() {
    let fixture = CliFixture::new();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    let list =
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "list", "arguments": {} } });
    let script = fixture.directory.path().join("script");
    std::fs::write(&script, format!("{hello}\n{list}\n")).unwrap();
    let output = fixture.command(&["mcp"]).stdin(std::fs::File::open(&script).unwrap()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
}
