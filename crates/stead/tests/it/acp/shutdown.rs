//! Tests that the ACP proxy exits when the editor or the agent ends.

use std::{fs, io::Read, process::Stdio};

use serde_json::json;

use super::harness::AcpProxyTestProcess;
use crate::cli_fixture::CliFixture;

#[test]
fn proxy_exits_with_the_agent_status() {
    let fixture = CliFixture::new();
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137)] {
        let ran = fixture.run(&["acp", "--", "sh", "-c", script]);
        assert_eq!(ran.code, code, "{script}: {}", ran.stderr);
    }
    let ran = fixture.run(&["acp", "--", "/no/such/agent"]);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("cannot start the agent"), "{}", ran.stderr);
}

#[test]
fn agent_stderr_is_passed_through() {
    let fixture = CliFixture::new();
    let ran = fixture.run(&["acp", "--", "sh", "-c", "echo trouble >&2; exit 3"]);
    assert!(ran.stderr.contains("trouble"), "{}", ran.stderr);
    assert!(ran.stdout.is_empty());
}

#[test]
fn running_agent_is_stopped_after_the_editor_leaves() {
    let fixture = CliFixture::new();
    let ran = fixture.run(&["acp", "--", "sh", "-c", "exec sleep 1000"]);
    assert_eq!(ran.code, 137);
    assert!(ran.stderr.contains("stead killed it"), "{}", ran.stderr);
}

#[test]
fn grandchild_of_the_agent_does_not_block_exit() {
    let fixture = CliFixture::new();
    let mut command = fixture.command(&["acp", "--", "sh", "-c", "sleep 8 & exit 5"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let _open = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn agent_killed_during_a_write_leaves_a_complete_file() {
    let fixture = CliFixture::new();
    let path = fixture.workspace().join("a.txt");
    fs::write(&path, "old\n").unwrap();
    let params = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy = AcpProxyTestProcess::with_session(&fixture.state(), &["--durability", "fast"], &params);
    let large = "new\n".repeat(1 << 18);
    proxy.send_agent_request("fs/write_text_file", json!({ "path": path, "content": large }));
    proxy.kill_agent();
    proxy.agent_input = None;
    assert_eq!(proxy.child.wait().unwrap().code(), Some(137));
    let mut rest = String::new();
    proxy.editor_output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "nothing but the protocol reaches the editor");
    let left = fs::read_to_string(&path).unwrap();
    assert!(left == "old\n" || left == large, "{} bytes", left.len());
    assert!(fixture.run_successfully(&["log", "verify"]).code == 0);
}

#[test]
fn editor_death_closes_agent_input_and_pending_permission() {
    let fixture = CliFixture::new();
    let params = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy = AcpProxyTestProcess::with_session(&fixture.state(), &["--durability", "fast"], &params);
    let path = fixture.workspace().join(".git/config");
    let id = proxy.send_agent_request("fs/write_text_file", json!({ "path": path, "content": "x" }));
    assert_eq!(proxy.receive_at_editor()["method"], "session/request_permission");
    proxy.editor_input = None;
    let answer = proxy.receive_at_agent();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(id), &json!(-32800)));
    let mut rest = String::new();
    proxy.agent_output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "", "the agent sees the end");
    proxy.agent_input = None;
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
}

#[test]
fn allow_always_writes_a_visible_policy_rule() {
    let fixture = CliFixture::new();
    let params = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy = AcpProxyTestProcess::with_session(&fixture.state(), &["--durability", "fast"], &params);
    let path = fixture.workspace().join(".git/config");
    proxy.send_agent_request("fs/write_text_file", json!({ "path": path, "content": "one\n" }));
    let question = proxy.receive_at_editor();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_always" } });
    proxy.send_from_editor(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": outcome }));
    assert_eq!(proxy.receive_at_agent()["result"], json!({}));
    assert_eq!(proxy.write_text_file(&path, "two\n")["result"], json!({}), "the new rule allows the second write");
    let states = fs::read_dir(fixture.state().join("stead")).unwrap();
    let rules: String =
        states.map(|state| fs::read_to_string(state.unwrap().path().join("policy.toml")).unwrap()).collect();
    assert!(rules.contains("always acp/fs/write_text_file"), "{rules}");
}

#[test]
fn write_is_journaled_before_the_editor_is_notified() {
    let fixture = CliFixture::new();
    let mut proxy = AcpProxyTestProcess::start(&fixture.state(), &["--durability", "fast"]);
    proxy.initialize_with(&json!({ "fs": { "readTextFile": false, "writeTextFile": true } }));
    proxy.new_session("s1", &json!({ "cwd": fixture.workspace(), "mcpServers": [] }));
    let path = fixture.workspace().join("a.txt");
    proxy.send_agent_request("fs/write_text_file", json!({ "path": path, "content": "x" }));
    assert_eq!(proxy.receive_at_editor()["params"]["content"], "x");
    proxy.child.kill().unwrap();
    proxy.child.wait().unwrap();
    let log = fixture.run_successfully(&["log", "--json"]).text();
    assert!(log.contains(r#""details":{"applied_by_editor":1}"#), "{log}");
    let log = fixture.run_successfully(&["log"]).text();
    assert!(log.contains(r#""made_elsewhere":1}"#), "{log}");
    assert!(!path.exists());
}
