//! How it ends: with the agent's own code, when either side goes, however it goes.

use std::{fs, io::Read, process::Stdio};

use serde_json::json;

use super::harness::AcpProcess;
use crate::cli_fixture::CliFixture;

#[test]
fn proxy_exits_with_the_agent_status() {
    let bench = CliFixture::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let ran = bench.run(&["acp", "--", "sh", "-c", script]);
        assert_eq!(ran.code, code, "{script}: {}", ran.stderr);
    }
    let ran = bench.run(&["acp", "--", "/no/such/agent"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("cannot start the agent"), "{}", ran.stderr);
}

#[test]
fn agent_stderr_is_passed_through() {
    let bench = CliFixture::new();
    let ran = bench.run(&["acp", "--", "sh", "-c", "echo trouble >&2; exit 3"]);
    assert!(ran.stderr.contains("trouble"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
}

#[test]
fn running_agent_is_stopped_after_the_editor_leaves() {
    let bench = CliFixture::new();
    let ran = bench.run(&["acp", "--", "sh", "-c", "exec sleep 1000"]);
    assert_eq!(ran.code, 137);
    assert!(ran.stderr.contains("was killed"), "{}", ran.stderr);
}

#[test]
fn grandchild_of_the_agent_does_not_block_exit() {
    let bench = CliFixture::new();
    let mut command = bench.command(&["acp", "--", "sh", "-c", "sleep 8 & exit 5"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let _open = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn agent_killed_during_a_write_leaves_a_complete_file() {
    let bench = CliFixture::new();
    let path = bench.workspace().join("a.txt");
    fs::write(&path, "old\n").unwrap();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = AcpProcess::with_session(&bench.state(), &["--durability", "fast"], &params);
    let large = "new\n".repeat(1 << 18);
    puppet.send_agent_request("fs/write_text_file", json!({ "path": path, "content": large }));
    puppet.kill_agent();
    puppet.agent_input = None;
    assert_eq!(puppet.child.wait().unwrap().code(), Some(137));
    let mut rest = String::new();
    puppet.editor_output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing but the protocol reaches the editor");
    let left = fs::read_to_string(&path).unwrap();
    assert!(left == "old\n" || left == large, "{} bytes", left.len());
    assert!(bench.run_successfully(&["log", "verify"]).code == 0);
}

#[test]
fn editor_death_closes_agent_input_and_pending_permission() {
    let bench = CliFixture::new();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = AcpProcess::with_session(&bench.state(), &["--durability", "fast"], &params);
    let path = bench.workspace().join(".git/config");
    let id = puppet.send_agent_request("fs/write_text_file", json!({ "path": path, "content": "x" }));
    assert_eq!(puppet.receive_at_editor()["method"], "session/request_permission");
    puppet.editor_input = None;
    let answer = puppet.receive_at_agent();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32800)));
    let mut rest = String::new();
    puppet.agent_output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "the agent sees the end");
    puppet.agent_input = None;
    assert_eq!(puppet.child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn allow_always_writes_a_visible_policy_rule() {
    let bench = CliFixture::new();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = AcpProcess::with_session(&bench.state(), &["--durability", "fast"], &params);
    let path = bench.workspace().join(".git/config");
    puppet.send_agent_request("fs/write_text_file", json!({ "path": path, "content": "one\n" }));
    let question = puppet.receive_at_editor();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_always" } });
    puppet.send_from_editor(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome }));
    assert_eq!(puppet.receive_at_agent()["result"], json!({}));
    assert_eq!(puppet.write_text_file(&path, "two\n")["result"], json!({}), "not asked again");
    let states = fs::read_dir(bench.state().join("stead")).unwrap();
    let rules: String =
        states.map(|state| fs::read_to_string(state.unwrap().path().join("policy.toml")).unwrap()).collect();
    assert!(rules.contains("always acp/fs/write_text_file"), "{rules}");
}

#[test]
fn write_is_journaled_before_the_editor_is_notified() {
    let bench = CliFixture::new();
    let mut puppet = AcpProcess::start(&bench.state(), &["--durability", "fast"]);
    puppet.initialize_with(&json!({ "fs": { "readTextFile": false, "writeTextFile": true } }));
    puppet.new_session("s1", &json!({ "cwd": bench.workspace(), "mcpServers": [] }));
    let path = bench.workspace().join("a.txt");
    puppet.send_agent_request("fs/write_text_file", json!({ "path": path, "content": "x" }));
    assert_eq!(puppet.receive_at_editor()["params"]["content"], "x");
    puppet.child.kill().unwrap();
    puppet.child.wait().unwrap();
    let log = bench.run_successfully(&["log", "--json"]).text();
    assert!(log.contains("made_elsewhere"), "{log}");
    assert!(!path.exists());
}
