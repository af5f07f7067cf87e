//! How it ends: with the agent's own code, when either side goes, however it goes.

use std::{fs, io::Read, process::Stdio};

use serde_json::json;

use super::puppet::Puppet;
use crate::bench::Bench;

#[test]
fn the_agent_s_end_is_ours() {
    let bench = Bench::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let ran = bench.run(&["acp", "--", "sh", "-c", script]);
        assert_eq!(ran.code, code, "{script}: {}", ran.err);
    }
    let ran = bench.run(&["acp", "--", "/no/such/agent"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("cannot be started"), "{}", ran.err);
}

#[test]
fn what_the_agent_complains_about_is_passed_through() {
    let bench = Bench::new();
    let ran = bench.run(&["acp", "--", "sh", "-c", "echo trouble >&2; exit 3"]);
    assert!(ran.err.contains("trouble"), "{}", ran.err);
    assert!(ran.out.is_empty());
}

#[test]
fn an_agent_that_goes_on_is_ended_once_the_editor_is_gone() {
    let bench = Bench::new();
    let ran = bench.run(&["acp", "--", "sh", "-c", "exec sleep 1000"]);
    assert_eq!(ran.code, 137);
    assert!(ran.err.contains("was ended"), "{}", ran.err);
}

#[test]
fn what_an_agent_started_does_not_hold_us() {
    let bench = Bench::new();
    let mut command = bench.command(&["acp", "--", "sh", "-c", "sleep 8 & exit 5"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let _open = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn an_agent_that_dies_in_the_middle_of_a_call_leaves_a_whole_file() {
    let bench = Bench::new();
    let path = bench.workspace().join("a.txt");
    fs::write(&path, "old\n").unwrap();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::with_session(&bench.state(), &["--durability", "fast"], &params);
    let large = "new\n".repeat(1 << 18);
    puppet.send("fs/write_text_file", json!({ "path": path, "content": large }));
    puppet.kill_agent();
    puppet.agent_says = None;
    assert_eq!(puppet.child.wait().unwrap().code(), Some(137));
    let mut rest = String::new();
    puppet.editor_hears.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing but the protocol reaches the editor");
    let left = fs::read_to_string(&path).unwrap();
    assert!(left == "old\n" || left == large, "{} bytes", left.len());
    assert!(bench.ok(&["log", "verify"]).code == 0);
}

#[test]
fn an_editor_that_dies_ends_the_agent_s_input_and_its_question() {
    let bench = Bench::new();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::with_session(&bench.state(), &["--durability", "fast"], &params);
    let path = bench.workspace().join(".git/config");
    let id = puppet.send("fs/write_text_file", json!({ "path": path, "content": "x" }));
    assert_eq!(puppet.editor_hears()["method"], "session/request_permission");
    puppet.editor_says = None;
    let answer = puppet.agent_hears();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32800)));
    let mut rest = String::new();
    puppet.agent_hears.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "the agent sees the end");
    puppet.agent_says = None;
    assert_eq!(puppet.child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn always_is_a_rule_that_everybody_can_see() {
    let bench = Bench::new();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::with_session(&bench.state(), &["--durability", "fast"], &params);
    let path = bench.workspace().join(".git/config");
    puppet.send("fs/write_text_file", json!({ "path": path, "content": "one\n" }));
    let question = puppet.editor_hears();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_always" } });
    puppet.editor(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome }));
    assert_eq!(puppet.agent_hears()["result"], json!({}));
    assert_eq!(puppet.write(&path, "two\n")["result"], json!({}), "not asked again");
    let states = fs::read_dir(bench.state().join("stead")).unwrap();
    let rules: String =
        states.map(|state| fs::read_to_string(state.unwrap().path().join("policy.toml")).unwrap()).collect();
    assert!(rules.contains("always acp/fs/write_text_file"), "{rules}");
}

#[test]
fn a_write_is_recorded_before_the_editor_hears_of_it() {
    let bench = Bench::new();
    let mut puppet = Puppet::start(&bench.state(), &["--durability", "fast"]);
    puppet.initialize_with(&json!({ "fs": { "readTextFile": false, "writeTextFile": true } }));
    puppet.session("s1", &json!({ "cwd": bench.workspace(), "mcpServers": [] }));
    let path = bench.workspace().join("a.txt");
    puppet.send("fs/write_text_file", json!({ "path": path, "content": "x" }));
    assert_eq!(puppet.editor_hears()["params"]["content"], "x");
    puppet.child.kill().unwrap();
    puppet.child.wait().unwrap();
    let log = bench.ok(&["log", "--json"]).text();
    assert!(log.contains("made_elsewhere"), "{log}");
    assert!(!path.exists());
}
