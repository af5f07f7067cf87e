//! Kills a working server repeatedly with SIGKILL. After the kills, sessions are still open, the recorded usage equals
//! the files on disk, and no approval is used twice.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use crate::cli_fixture::{CliFixture, CliTestCommandOutput};

const POLICY_TEXT: &str = "[[system.rules]]\noperations = [\"append\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n\
                     [agent.\"agent:*\".quota]\nbytes = 6000\nfiles = 500\ntrash_bytes = 5000\n";
const SIGKILL: i32 = 9;

#[track_caller]
fn run_successfully(fixture: &CliFixture, arguments: &[&str]) -> CliTestCommandOutput {
    fixture.run_successfully(&[&["--policy", "../policy.toml"], arguments].concat())
}

fn run_as_agent(fixture: &CliFixture, arguments: &[&str]) -> CliTestCommandOutput {
    fixture.run(&[&["--policy", "../policy.toml"], arguments, &["--principal", "agent:a", "--json"]].concat())
}

/// Sends the requests `asks` to a new server, and kills the server after `heard` answers.
fn call_and_kill_server(fixture: &CliFixture, asks: &[(&str, Value)], heard: usize) -> Vec<Value> {
    let mut session = fixture.connect(&["--policy", "../policy.toml", "rpc", "--principal", "agent:a"]);
    for (id, (method, params)) in asks.iter().enumerate() {
        session.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }
    let answers = (0..heard).map(|_| session.receive()).collect();
    session.child.kill().unwrap();
    assert_eq!(session.child.wait().unwrap().signal(), Some(SIGKILL));
    answers
}

/// Counts the bytes and files of a tree without stead, as a check of the recorded usage.
fn count_tree_usage(directory: &std::path::Path) -> (u64, u64) {
    let mut sum = (0, 0);
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(".stead~") {
            continue;
        }
        let meta = entry.metadata().unwrap();
        let (bytes, files) = if meta.is_dir() { count_tree_usage(&entry.path()) } else { (meta.len(), 0) };
        sum = (sum.0 + bytes, sum.1 + files + 1);
    }
    sum
}

fn assert_journaled_writes_exist(fixture: &CliFixture, round: usize) {
    let log = run_successfully(fixture, &["log", "--json", "--limit", "1000"]).text();
    let rows = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut entries: Vec<Value> = rows.map(|row| row["entry"].clone()).collect();
    entries.sort_by_key(|entry| entry["number"].as_u64());
    let mut there = std::collections::BTreeMap::new();
    for change in entries.iter().flat_map(|entry| entry["changes"].as_array().unwrap()) {
        let path = change["path"].as_str().unwrap().to_owned();
        there.insert(path, change["kind"] != "remove");
    }
    for (path, there) in there.iter().filter(|(path, _)| path.starts_with(&format!("d{round}"))) {
        assert_eq!(fixture.workspace().join(path).exists(), *there, "{path}");
    }
}

fn approval_id(ran: &CliTestCommandOutput) -> String {
    ran.json()["error"]["approval"].as_str().expect("a question").to_owned()
}

#[test]
fn killed_server_loses_nothing_and_repeats_nothing() {
    let fixture = CliFixture::new();
    for (file, text) in [("policy.toml", POLICY_TEXT), ("secret", "correct horse\n")] {
        std::fs::write(fixture.directory.path().join(file), text).unwrap();
    }
    std::fs::write(fixture.workspace().join("gone"), "precious\n").unwrap();
    std::fs::write(fixture.workspace().join("log"), "").unwrap();
    run_successfully(&fixture, &["approvals", "setup", "--secret-file", "../secret"]);
    let started = [
        ("session", json!({ "action": "begin" })),
        ("lock", json!({ "path": "held", "seconds": 3600 })),
        ("remove", json!({ "path": "gone" })),
        ("append", json!({ "path": "log", "content": "never" })),
    ];
    let answers = call_and_kill_server(&fixture, &started, started.len());
    let find = |id: usize| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let session = find(0)["result"]["session"].as_str().expect("an answer").to_owned();
    let trash = find(2)["result"]["trash"].as_str().expect("an answer").to_owned();
    let once: &[&str] = &["append", "log", "--content", "once"];
    let (pending, yes) = (
        approval_id(&run_as_agent(&fixture, &["append", "log", "--content", "never"])),
        approval_id(&run_as_agent(&fixture, once)),
    );
    run_successfully(&fixture, &["approvals", "approve", &yes, "--secret-file", "../secret"]);
    for round in 0..6_usize {
        let mut asks: Vec<(&str, Value)> = (0..30)
            .map(|file| {
                let path = format!("d{round}/f{file}");
                ("write", json!({ "path": path, "content": "x".repeat(50), "base": "" }))
            })
            .collect();
        asks.insert(2 + round, ("append", json!({ "path": "log", "content": "once" })));
        asks.insert(9, ("remove", json!({ "path": format!("d{round}/f0") })));
        call_and_kill_server(&fixture, &asks, 1 + round * 5);
        // The next server completes unfinished changes, and its usage equals the files on disk.
        let usage = run_as_agent(&fixture, &["usage"]).json();
        let (bytes, files) = count_tree_usage(&fixture.workspace());
        assert_eq!(
            (&usage["quota"]["bytes"]["used"], &usage["quota"]["files"]["used"]),
            (&json!(bytes), &json!(files)),
            "round {round}: {usage}"
        );
        assert!(bytes <= 6_000, "round {round}: {bytes}");
        assert_journaled_writes_exist(&fixture, round);
    }
    // The approval is used exactly once, either in one of the rounds or now.
    run_as_agent(&fixture, once);
    assert_eq!(std::fs::read_to_string(fixture.workspace().join("log")).unwrap(), "once");
    let shown = |id: &str| run_successfully(&fixture, &["approvals", "show", id, "--json"]).json()["state"].clone();
    assert_eq!(shown(&yes), "used");
    assert_eq!(shown(&pending), "pending");
    let again = run_as_agent(&fixture, once);
    assert_eq!(again.json()["error"]["kind"], "approval_pending", "{}", again.stderr);
    let known = run_as_agent(&fixture, &["session", "show", "--id", &session]);
    assert!(known.code == 0 && known.json().get("ended").is_none(), "{}", known.stderr);
    let other =
        fixture.run(&["--policy", "../policy.toml", "write", "held", "--content", "x", "--principal", "agent:b"]);
    assert!(other.stderr.contains("held by agent:a"), "{}", other.stderr);
    assert_eq!(run_as_agent(&fixture, &["restore", &trash]).code, 0);
    assert_eq!(std::fs::read_to_string(fixture.workspace().join("gone")).unwrap(), "precious\n");
    run_successfully(&fixture, &["log", "verify"]);
}
