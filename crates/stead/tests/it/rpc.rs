//! Tests `stead rpc` over pipes, with one JSON object per line.

use serde_json::{Value, json};

use crate::cli_fixture::CliFixture;

#[test]
fn calls_are_answered_per_line_and_journaled() {
    let fixture = CliFixture::new();
    let mut session = fixture.connect(&["rpc", "--durability", "fast"]);
    let write = json!({ "path": "a.txt", "content": "hello\n", "base": "" });
    session.send(&json!({ "jsonrpc": "2.0", "id": "1", "method": "write", "params": write }));
    let written = session.receive();
    assert_eq!((&written["id"], &written["result"]["size"]), (&json!("1"), &json!(6)), "{written}");
    session.send_raw("{");
    assert_eq!(session.receive()["error"]["code"], -32700);
    session.send_raw(r#"{"jsonrpc":"2.0","id":2,"method":"rpc.discover"}"#);
    let discovered = session.receive();
    assert!(discovered["result"]["methods"].is_array(), "{discovered}");
    assert!(session.close().is_empty());
    assert_eq!(std::fs::read(fixture.workspace().join("a.txt")).unwrap(), b"hello\n");
    assert!(fixture.run_successfully(&["log"]).text().contains("agent:rpc"));
}

#[test]
fn buffer_of_a_killed_editor_becomes_a_draft() {
    let fixture = CliFixture::new();
    std::fs::write(fixture.workspace().join("a.txt"), "one\n").unwrap();
    let mut editor = fixture.connect(&["rpc", "--durability", "fast", "--principal", "user:ann"]);
    let opened = editor.request_ok("buffer.open", &json!({ "path": "a.txt", "text": "one\ntyped\n" }));
    assert_eq!(opened["state"], "unsaved", "{opened}");
    let read = |fixture: &CliFixture| {
        fixture.run_successfully(&["read", "a.txt", "--principal", "agent:one", "--json"]).text()
    };
    let seen: Value = serde_json::from_str(&read(&fixture)).unwrap();
    assert_eq!((&seen["content"], seen["unsaved"].is_object()), (&json!("one\ntyped\n"), true), "{seen}");
    drop(editor);
    let seen: Value = serde_json::from_str(&read(&fixture)).unwrap();
    assert_eq!((&seen["content"], seen["notices"].is_array()), (&json!("one\n"), true), "{seen}");
    let listed = fixture.run_successfully(&["buffer.list", "--principal", "user:ann", "--json"]).text();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["buffers"][0]["state"], "draft", "{listed}");
    let id = listed["buffers"][0]["buffer"].as_str().unwrap();
    fixture.run_successfully(&["buffer.drop", id, "--principal", "user:ann"]);
}

#[test]
fn events_resume_after_a_temporary_error() {
    let fixture = CliFixture::new();
    let policy = fixture.directory.path().join("policy.toml");
    let rules = "[agent.\"agent:*\".quota]\nfiles = 500\n";
    std::fs::write(&policy, rules).unwrap();
    let mut session = fixture.connect(&["--policy", "../policy.toml", "rpc", "--principal", "agent:a"]);
    let started = session.request_ok("watch", &json!({ "recursive": true }));
    assert!(started["watch"].is_string(), "{started}");
    // Another process, started without the policy file, keeps working while the file is invalid.
    std::fs::write(&policy, "nonsense").unwrap();
    let names = ["1.txt", "2.txt", "3.txt"];
    for name in names {
        fixture.run_successfully(&["write", name, "--content", "x", "--principal", "agent:b"]);
    }
    std::fs::write(&policy, rules).unwrap();
    for name in names {
        let event = session.receive();
        assert_eq!(event["params"]["path"], name, "{event}");
    }
    session.close();
}
