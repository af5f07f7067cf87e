//! Tests `stead rpc` over pipes, with one JSON object per line.

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
    sync::mpsc,
};

use serde_json::{Value, json};

use crate::{cli_fixture::CliFixture, server_process::LINE_TIMEOUT};

#[test]
fn calls_are_answered_per_line_and_journaled() {
    let fixture = CliFixture::new();
    let mut command = fixture.command(&["rpc", "--durability", "fast"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdin.take().unwrap();
    let mut input = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |message: &str| -> Value {
        writeln!(output, "{message}").unwrap();
        serde_json::from_str(&input.next().unwrap().unwrap()).expect("one object a line")
    };
    let write = json!({ "path": "a.txt", "content": "hello\n", "base": "" });
    let written = ask(&json!({ "jsonrpc": "2.0", "id": "1", "method": "write", "params": write }).to_string());
    assert_eq!((&written["id"], &written["result"]["size"]), (&json!("1"), &json!(6)), "{written}");
    assert_eq!(ask("{")["error"]["code"], -32700);
    let discovered = ask(r#"{"jsonrpc":"2.0","id":2,"method":"rpc.discover"}"#);
    assert!(discovered["result"]["methods"].is_array(), "{discovered}");
    drop(output);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(std::fs::read(fixture.workspace().join("a.txt")).unwrap(), b"hello\n");
    assert!(fixture.run_successfully(&["log"]).text().contains("agent:rpc"));
}

#[test]
fn buffer_of_a_killed_editor_becomes_a_draft() {
    let fixture = CliFixture::new();
    std::fs::write(fixture.workspace().join("a.txt"), "one\n").unwrap();
    let mut command = fixture.command(&["rpc", "--durability", "fast", "--principal", "user:ann"]);
    let mut editor = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = editor.stdin.take().unwrap();
    let mut input = BufReader::new(editor.stdout.take().unwrap()).lines();
    let params = json!({ "path": "a.txt", "text": "one\ntyped\n" });
    writeln!(output, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": "buffer.open", "params": params })).unwrap();
    let opened: Value = serde_json::from_str(&input.next().unwrap().unwrap()).unwrap();
    assert_eq!(opened["result"]["state"], "unsaved", "{opened}");
    let read = |fixture: &CliFixture| {
        fixture.run_successfully(&["read", "a.txt", "--principal", "agent:one", "--json"]).text()
    };
    let seen: Value = serde_json::from_str(&read(&fixture)).unwrap();
    assert_eq!((&seen["content"], seen["unsaved"].is_object()), (&json!("one\ntyped\n"), true), "{seen}");
    editor.kill().unwrap();
    editor.wait().unwrap();
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
    let mut command = fixture.command(&["--policy", "../policy.toml", "rpc", "--principal", "agent:a"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut output = child.stdin.take().unwrap();
    let (heard, lines) = mpsc::channel();
    let printed = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    std::thread::spawn(move || printed.map(|line| heard.send(line)).take_while(Result::is_ok).for_each(drop));
    let next = || -> Value {
        let line = lines.recv_timeout(LINE_TIMEOUT).expect("a message arrives in time");
        serde_json::from_str(&line).expect("one object a line")
    };
    writeln!(output, r#"{{"jsonrpc":"2.0","id":1,"method":"watch","params":{{"recursive":true}}}}"#).unwrap();
    let started = next();
    assert!(started["result"]["watch"].is_string(), "{started}");
    // Another process, started without the policy file, keeps working while the file is invalid.
    std::fs::write(&policy, "nonsense").unwrap();
    let names = ["1.txt", "2.txt", "3.txt"];
    for name in names {
        fixture.run_successfully(&["write", name, "--content", "x", "--principal", "agent:b"]);
    }
    std::fs::write(&policy, rules).unwrap();
    for name in names {
        let event = next();
        assert_eq!(event["params"]["path"], name, "{event}");
    }
    drop(output);
    assert!(child.wait().unwrap().success());
}
