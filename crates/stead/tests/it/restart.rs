//! The real server, killed with SIGKILL in the middle of its work, again and again: what was open is open, what was counted is
//! what is there, and a yes is used once.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::Stdio,
};

use serde_json::{Value, json};

use crate::bench::{Bench, Ran};

const RULES: &str = "[[system.rules]]\noperations = [\"append\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n\
                     [agent.\"agent:*\".quota]\nbytes = 6000\nfiles = 500\ntrash_bytes = 5000\n";
const SIGKILL: i32 = 9;

#[track_caller]
fn ok(bench: &Bench, arguments: &[&str]) -> Ran {
    bench.ok(&[&["--policy", "../policy.toml"], arguments].concat())
}

fn agent(bench: &Bench, arguments: &[&str]) -> Ran {
    bench.run(&[&["--policy", "../policy.toml"], arguments, &["--principal", "agent:a", "--json"]].concat())
}

/// Asks a server these things, hears so many answers, and kills it while it works on the rest.
fn killed(bench: &Bench, asks: &[(&str, Value)], heard: usize) -> Vec<Value> {
    let words = ["--policy", "../policy.toml", "rpc", "--principal", "agent:a"];
    let mut child = bench
        .command(&words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut output = child.stdin.take().unwrap();
    for (id, (method, params)) in asks.iter().enumerate() {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(output, "{message}").unwrap();
    }
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(heard);
    let answers = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(SIGKILL));
    answers
}

/// Bytes and files of a tree, as the operating system counts them.
fn counted(directory: &std::path::Path) -> (u64, u64) {
    let mut sum = (0, 0);
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(".stead~") {
            continue;
        }
        let meta = entry.metadata().unwrap();
        let (bytes, files) = if meta.is_dir() { counted(&entry.path()) } else { (meta.len(), 0) };
        sum = (sum.0 + bytes, sum.1 + files + 1);
    }
    sum
}

/// Whatever the journal says was written in a round is there.
fn recorded_is_there(bench: &Bench, round: usize) {
    let log = ok(bench, &["log", "--json", "--limit", "1000"]).text();
    let rows = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut entries: Vec<Value> = rows.map(|row| row["entry"].clone()).collect();
    entries.sort_by_key(|entry| entry["number"].as_u64());
    let mut there = std::collections::BTreeMap::new();
    for change in entries.iter().flat_map(|entry| entry["changes"].as_array().unwrap()) {
        let path = change["path"].as_str().unwrap().to_owned();
        there.insert(path, change["kind"] != "remove");
    }
    for (path, there) in there.iter().filter(|(path, _)| path.starts_with(&format!("d{round}"))) {
        assert_eq!(bench.workspace().join(path).exists(), *there, "{path}");
    }
}

fn approval(ran: &Ran) -> String {
    ran.json()["error"]["approval"].as_str().expect("a question").to_owned()
}

#[test]
fn a_server_that_is_killed_loses_nothing_and_does_nothing_twice() {
    let bench = Bench::new();
    for (file, text) in [("policy.toml", RULES), ("secret", "correct horse\n")] {
        std::fs::write(bench.place.path().join(file), text).unwrap();
    }
    std::fs::write(bench.workspace().join("gone"), "precious\n").unwrap();
    std::fs::write(bench.workspace().join("log"), "").unwrap();
    ok(&bench, &["approvals", "setup", "--secret-file", "../secret"]);
    let begun = [
        ("session", json!({ "action": "begin" })),
        ("lock", json!({ "path": "held", "seconds": 3600 })),
        ("remove", json!({ "path": "gone" })),
        ("append", json!({ "path": "log", "content": "never" })),
    ];
    let answers = killed(&bench, &begun, begun.len());
    let find = |id: usize| answers.iter().find(|answer| answer["id"] == id).unwrap();
    let session = find(0)["result"]["session"].as_str().expect("an answer").to_owned();
    let trash = find(2)["result"]["trash"].as_str().expect("an answer").to_owned();
    let once: &[&str] = &["append", "log", "--content", "once"];
    let (pending, yes) =
        (approval(&agent(&bench, &["append", "log", "--content", "never"])), approval(&agent(&bench, once)));
    ok(&bench, &["approvals", "approve", &yes, "--secret-file", "../secret"]);
    for round in 0..6_usize {
        let mut asks: Vec<(&str, Value)> = (0..30)
            .map(|file| {
                let path = format!("d{round}/f{file}");
                ("write", json!({ "path": path, "content": "x".repeat(50), "base": "" }))
            })
            .collect();
        asks.insert(2 + round, ("append", json!({ "path": "log", "content": "once" })));
        asks.insert(9, ("remove", json!({ "path": format!("d{round}/f0") })));
        killed(&bench, &asks, 1 + round * 5);
        // Whatever was left is finished by the next to come. What it has counted is what is there.
        let usage = agent(&bench, &["usage"]).json();
        let (bytes, files) = counted(&bench.workspace());
        assert_eq!(
            (&usage["quota"]["bytes"]["used"], &usage["quota"]["files"]["used"]),
            (&json!(bytes), &json!(files)),
            "round {round}: {usage}"
        );
        assert!(bytes <= 6_000, "round {round}: {bytes}");
        recorded_is_there(&bench, round);
    }
    // The yes was used in one of the rounds, or it is used now; never more than once.
    agent(&bench, once);
    assert_eq!(std::fs::read_to_string(bench.workspace().join("log")).unwrap(), "once");
    let shown = |id: &str| ok(&bench, &["approvals", "show", id, "--json"]).json()["state"].clone();
    assert_eq!(shown(&yes), "used");
    assert_eq!(shown(&pending), "pending");
    let again = agent(&bench, once);
    assert_eq!(again.json()["error"]["kind"], "approval_pending", "{}", again.err);
    let known = agent(&bench, &["session", "show", "--id", &session]);
    assert!(known.code == 0 && known.json().get("ended").is_none(), "{}", known.err);
    let other = bench.run(&[
        "--policy",
        "../policy.toml",
        "write",
        "held",
        "--content",
        "x",
        "--principal",
        "agent:b",
    ]);
    assert!(other.err.contains("held by agent:a"), "{}", other.err);
    assert_eq!(agent(&bench, &["restore", &trash]).code, 0);
    assert_eq!(std::fs::read_to_string(bench.workspace().join("gone")).unwrap(), "precious\n");
    ok(&bench, &["log", "verify"]);
}
