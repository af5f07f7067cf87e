//! What an agent does with the tools of the server that a session gave it is part of that session, and of no other.

use std::fs;

use serde_json::{Value, json};

use super::puppet::Puppet;
use crate::bench::{Bench, Ran};

/// A server as an agent was told to start it.
struct Told {
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
}

impl Told {
    /// The server that a session was set up with.
    fn of(heard: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let server = &heard["params"]["mcpServers"][0];
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

    /// Starts it, and has it write a file, as a client that calls itself something.
    fn write(&self, bench: &Bench, client: &str, path: &str, content: &str) -> Ran {
        let opening = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": client, "version": "1" } } });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let write = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "write", "arguments": { "path": path, "content": content, "base": "" } } });
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let mut command = bench.command(&arguments);
        command.envs(self.environment.iter().cloned());
        Bench::drive(&mut command, format!("{opening}\n{ready}\n{write}\n").as_bytes())
    }
}

fn prompt(puppet: &mut Puppet, session: &str) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "do it" }] });
    puppet.editor(&json!({ "jsonrpc": "2.0", "id": 7, "method": "session/prompt", "params": params }));
    puppet.agent_hears();
}

fn changed(review: &Value) -> Vec<&str> {
    review["files"].as_array().unwrap().iter().map(|file| file["path"].as_str().unwrap()).collect()
}

#[test]
fn writes_of_the_server_are_part_of_the_session_and_its_turn() {
    let bench = Bench::new();
    let mut puppet = Puppet::start(&bench.state(), &["--durability", "fast"]);
    puppet.initialize();
    let told = Told::of(&puppet.session("s1", &json!({ "cwd": bench.workspace(), "mcpServers": [] })));
    prompt(&mut puppet, "s1");
    assert_eq!(told.write(&bench, "whatever", "first.txt", "1\n").code, 0);
    prompt(&mut puppet, "s1");
    assert_eq!(puppet.write(&bench.workspace().join("second.txt"), "2\n")["result"], json!({}));
    assert_eq!(told.write(&bench, "whatever", "third.txt", "3\n").code, 0);

    let review = bench.ok(&["review", "--json"]).json();
    assert_eq!((&review["author"], &review["session"]), (&json!("agent:acp"), &json!("s1")), "{review}");
    assert_eq!(changed(&review), ["first.txt", "second.txt", "third.txt"]);
    let turn = bench.ok(&["review", "--since", "turn", "--json"]).json();
    assert_eq!(changed(&turn), ["second.txt", "third.txt"]);
    let params = json!({ "sessionId": "s1" });
    puppet.editor(&json!({ "jsonrpc": "2.0", "id": 8, "method": "_stead/undo_turn", "params": params }));
    let undone = puppet.editor_hears();
    let taken = ["second.txt", "third.txt"].map(|name| bench.workspace().join(name));
    assert_eq!(undone["result"]["rejected"], json!(taken), "{undone}");
    let log = bench.ok(&["log"]).text();
    assert!(log.contains("user:tester  reject"), "{log}");
    let mut left: Vec<String> = fs::read_dir(bench.workspace())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["first.txt"]);
}

#[test]
fn a_session_that_is_taken_up_again_goes_on() {
    let bench = Bench::new();
    let params = json!({ "sessionId": "s1", "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::start(&bench.state(), &["--durability", "fast"]);
    puppet.initialize();
    puppet.editor(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params }));
    let told = Told::of(&puppet.agent_hears());
    // It has its name already, so nothing waits for the agent's answer.
    assert_eq!(told.write(&bench, "whatever", "a.txt", "1\n").code, 0);
    let review = bench.ok(&["review", "--json"]).json();
    assert_eq!((&review["session"], changed(&review)), (&json!("s1"), vec!["a.txt"]));
}

#[test]
fn nobody_gets_into_another_s_session() {
    let bench = Bench::new();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::start(&bench.state(), &["--durability", "fast"]);
    puppet.initialize();
    let first = Told::of(&puppet.session("s1", &params));
    let mut second = Told::of(&puppet.session("s2", &params));
    assert_ne!(first.environment, second.environment);
    assert!(!second.arguments.contains(&second.environment[0].1), "others see arguments");
    // What a client calls itself counts for nothing beside its ticket.
    assert_eq!(second.write(&bench, "s1", "a.txt", "2\n").code, 0);
    let review = bench.ok(&["review", "--json"]).json();
    assert_eq!((&review["session"], changed(&review)), (&json!("s2"), vec!["a.txt"]));
    for invented in ["", "s1", &"0".repeat(64)] {
        second.environment[0].1 = invented.to_owned();
        let ran = second.write(&bench, "s1", "b.txt", "2\n");
        assert_ne!(ran.code, 0);
        assert!(ran.err.contains("STEAD_TICKET"), "{}", ran.err);
    }
    let at = first.arguments.iter().position(|argument| argument == "--principal").unwrap();
    let mut other = first;
    other.arguments[at + 1] = "agent:other".to_owned();
    assert_ne!(other.write(&bench, "s1", "b.txt", "2\n").code, 0);
    assert!(!bench.workspace().join("b.txt").exists());
}
