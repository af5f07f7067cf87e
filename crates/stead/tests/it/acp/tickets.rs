//! Tests that calls through the MCP server that the proxy adds to a session belong to that session.

use std::fs;

use serde_json::{Value, json};

use super::harness::AcpProxyTestProcess;
use crate::cli_fixture::{CliFixture, CliTestCommandOutput};

struct AgentReceivedMcpServerCommand {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl AgentReceivedMcpServerCommand {
    fn from_session_setup(received: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let server = &received["params"]["mcpServers"][0];
        Self {
            arguments: server["args"].as_array().unwrap().iter().map(text).collect(),
            environment: server["env"]
                .as_array()
                .unwrap()
                .iter()
                .map(|variable| (text(&variable["name"]), text(&variable["value"])))
                .collect(),
        }
    }

    fn run_and_write(&self, fixture: &CliFixture, client: &str, path: &str, content: &str) -> CliTestCommandOutput {
        let opening = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": client, "version": "1" } } });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let write = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "write", "arguments": { "path": path, "content": content, "base": "" } } });
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let mut command = fixture.command(&arguments);
        command.envs(self.environment.iter().cloned());
        CliFixture::run_command(&mut command, format!("{opening}\n{ready}\n{write}\n").as_bytes())
    }
}

fn send_prompt(proxy: &mut AcpProxyTestProcess, session: &str) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "do it" }] });
    proxy.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params }));
    proxy.receive_at_agent();
}

fn reviewed_paths(review: &Value) -> Vec<&str> {
    review["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn added_server_writes_belong_to_the_session_turn() {
    let fixture = CliFixture::new();
    let mut proxy = AcpProxyTestProcess::start(&fixture.state(), &["--durability", "fast"]);
    proxy.initialize();
    let added_server = AgentReceivedMcpServerCommand::from_session_setup(
        &proxy.new_session("s1", &json!({ "cwd": fixture.workspace(), "mcpServers": [] })),
    );
    send_prompt(&mut proxy, "s1");
    assert_eq!(added_server.run_and_write(&fixture, "whatever", "first.txt", "1\n").code, 0);
    send_prompt(&mut proxy, "s1");
    assert_eq!(proxy.write_text_file(&fixture.workspace().join("second.txt"), "2\n")["result"], json!({}));
    assert_eq!(added_server.run_and_write(&fixture, "whatever", "third.txt", "3\n").code, 0);

    let review = fixture.run_successfully(&["review", "--json"]).json();
    assert_eq!((&review["author"], &review["session"]), (&json!("agent:acp"), &json!("s1")), "{review}");
    assert_eq!(reviewed_paths(&review), ["first.txt", "second.txt", "third.txt"]);
    let turn = fixture.run_successfully(&["review", "--since", "turn", "--json"]).json();
    assert_eq!(reviewed_paths(&turn), ["second.txt", "third.txt"]);
    let params = json!({ "sessionId": "s1" });
    proxy.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 8, "method": "_stead/undo_turn", "params": params }));
    let undone = proxy.receive_at_editor();
    let taken = ["second.txt", "third.txt"].map(|name| fixture.workspace().join(name));
    assert_eq!(undone["result"]["rejected"], json!(taken), "{undone}");
    let log = fixture.run_successfully(&["log"]).text();
    assert!(log.contains("user:tester  reject"), "{log}");
    let mut left: Vec<String> = fs::read_dir(fixture.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["first.txt"]);
}

#[test]
fn loaded_session_keeps_its_ticket() {
    let fixture = CliFixture::new();
    let params = json!({ "sessionId": "s1", "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy = AcpProxyTestProcess::start(&fixture.state(), &["--durability", "fast"]);
    proxy.initialize();
    proxy.send_from_editor(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params }));
    let added_server = AgentReceivedMcpServerCommand::from_session_setup(&proxy.receive_at_agent());
    // The proxy does not wait for the agent's response, because a loaded session already has its id.
    assert_eq!(added_server.run_and_write(&fixture, "whatever", "a.txt", "1\n").code, 0);
    let review = fixture.run_successfully(&["review", "--json"]).json();
    assert_eq!((&review["session"], reviewed_paths(&review)), (&json!("s1"), vec!["a.txt"]));
}

#[test]
fn ticket_of_another_session_is_rejected() {
    let fixture = CliFixture::new();
    let params = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy = AcpProxyTestProcess::start(&fixture.state(), &["--durability", "fast"]);
    proxy.initialize();
    let first = AgentReceivedMcpServerCommand::from_session_setup(&proxy.new_session("s1", &params));
    let mut second = AgentReceivedMcpServerCommand::from_session_setup(&proxy.new_session("s2", &params));
    assert_ne!(first.environment, second.environment);
    assert!(!second.arguments.contains(&second.environment[0].1), "others see arguments");
    // With a ticket, the client's name does not choose the session.
    assert_eq!(second.run_and_write(&fixture, "s1", "a.txt", "2\n").code, 0);
    let review = fixture.run_successfully(&["review", "--json"]).json();
    assert_eq!((&review["session"], reviewed_paths(&review)), (&json!("s2"), vec!["a.txt"]));
    for invented in ["", "s1", &"0".repeat(64)] {
        second.environment[0].1 = invented.to_owned();
        let ran = second.run_and_write(&fixture, "s1", "b.txt", "2\n");
        assert_ne!(ran.code, 0);
        assert!(ran.stderr.contains("STEAD_TICKET"), "{}", ran.stderr);
    }
    let at = first.arguments.iter().position(|argument| argument == "--principal").unwrap();
    let mut other = first;
    other.arguments[at + 1] = "agent:other".to_owned();
    assert_ne!(other.run_and_write(&fixture, "s1", "b.txt", "2\n").code, 0);
    assert!(!fixture.workspace().join("b.txt").exists());
}
