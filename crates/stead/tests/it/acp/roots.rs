//! The roots of sessions: what is in them is reached, and nothing else is.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use super::puppet::Puppet;
use crate::bench::Bench;

fn content(answer: &Value) -> &str {
    answer["result"]["content"].as_str().expect("it is a text")
}

fn missing(answer: &Value) {
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["message"]),
        (&json!(-32002), &json!("Resource not found"))
    );
}

fn open(bench: &Bench, cwd: &Path, others: &[&Path]) -> Puppet {
    let params = json!({ "cwd": cwd, "additionalDirectories": others, "mcpServers": [] });
    Puppet::with_session(&bench.state(), &["--durability", "fast"], &params)
}

#[test]
fn a_root_may_be_a_link_and_is_reached_by_both_names() {
    let bench = Bench::new();
    let (real, link) = (bench.workspace(), bench.place.path().join("link"));
    symlink(&real, &link).unwrap();
    fs::write(real.join("a"), "text").unwrap();
    let mut puppet = open(&bench, &link, &[]);
    assert_eq!(content(&puppet.read(&link.join("a"))), "text");
    assert_eq!(content(&puppet.read(&real.join("a"))), "text");
    // The link now leads elsewhere; the root does not.
    let other = bench.place.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a"), "secret").unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    assert_eq!(content(&puppet.read(&link.join("a"))), "text");
    assert_eq!(puppet.write(&link.join("b"), "x")["result"], json!({}));
    assert!(real.join("b").exists() && !other.join("b").exists());
}

#[test]
fn one_directory_has_one_journal_however_it_is_named() {
    let bench = Bench::new();
    let link = bench.place.path().join("link");
    symlink(bench.workspace(), &link).unwrap();
    open(&bench, &link, &[]).write(&link.join("a"), "x");
    let log = bench.ok(&["log"]).text();
    assert!(log.contains("agent:acp  write  a"), "{log}");
}

#[test]
fn a_directory_that_is_moved_stays_the_root() {
    let bench = Bench::new();
    let root = bench.workspace();
    fs::write(root.join("a"), "text").unwrap();
    let mut puppet = open(&bench, &root, &[]);
    let moved = bench.place.path().join("moved");
    fs::rename(&root, &moved).unwrap();
    // What is put in its place is not what the session was given.
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "secret").unwrap();
    assert_eq!(content(&puppet.read(&root.join("a"))), "text");
    missing(&puppet.read(&moved.join("a")));
}

#[test]
fn roots_may_lie_in_each_other_and_beside_each_other() {
    let bench = Bench::new();
    let (outer, beside) = (bench.workspace(), bench.place.path().join("beside"));
    let inner = outer.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::create_dir(&beside).unwrap();
    fs::write(inner.join("a"), "inner").unwrap();
    fs::write(outer.join("a"), "outer").unwrap();
    fs::write(beside.join("a"), "beside").unwrap();
    for (cwd, other) in [(&outer, &inner), (&inner, &outer)] {
        let mut puppet = open(&bench, cwd, &[other, &beside]);
        assert_eq!(content(&puppet.read(&inner.join("a"))), "inner");
        assert_eq!(content(&puppet.read(&outer.join("a"))), "outer");
        assert_eq!(content(&puppet.read(&beside.join("a"))), "beside");
        assert_eq!(content(&puppet.read(&inner.join("../a"))), "outer");
        missing(&puppet.read(&beside.join("../nothing")));
    }
    // The inner one alone does not reach out.
    let mut puppet = open(&bench, &inner, &[]);
    missing(&puppet.read(&outer.join("a")));
    missing(&puppet.write(&outer.join("b"), "x"));
}

#[test]
fn a_link_from_one_root_into_another_is_not_followed() {
    let bench = Bench::new();
    let (outer, beside) = (bench.workspace(), bench.place.path().join("beside"));
    fs::create_dir(&beside).unwrap();
    fs::create_dir(outer.join("inner")).unwrap();
    fs::write(beside.join("a"), "beside").unwrap();
    fs::write(outer.join("inner/a"), "inner").unwrap();
    symlink(beside.join("a"), outer.join("absolute")).unwrap();
    symlink("../beside/a", outer.join("relative")).unwrap();
    symlink("inner/a", outer.join("within")).unwrap();
    let mut puppet = open(&bench, &outer, &[&beside, &outer.join("inner")]);
    // The session may have the file, by its own name.
    assert_eq!(content(&puppet.read(&beside.join("a"))), "beside");
    for link in ["absolute", "relative"] {
        missing(&puppet.read(&outer.join(link)));
        missing(&puppet.write(&outer.join(link), "x"));
    }
    assert_eq!(fs::read_to_string(beside.join("a")).unwrap(), "beside");
    // One that stays in its own root is followed, whatever other root lies there too.
    assert_eq!(content(&puppet.read(&outer.join("within"))), "inner");
}

#[test]
fn a_root_that_is_one_file_is_not_widened() {
    let bench = Bench::new();
    let beside = bench.place.path().join("beside");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("a"), "one file").unwrap();
    fs::write(beside.join("b"), "secret").unwrap();
    symlink("a", beside.join("link")).unwrap();
    let mut puppet = open(&bench, &bench.workspace(), &[&beside.join("a")]);
    assert_eq!(content(&puppet.read(&beside.join("a"))), "one file");
    assert_eq!(puppet.write(&beside.join("a"), "changed")["result"], json!({}));
    missing(&puppet.read(&beside.join("b")));
    missing(&puppet.write(&beside.join("c"), "x"));
    missing(&puppet.read(&beside.join("a/b")));
    let mut puppet = open(&bench, &bench.workspace(), &[&beside.join("link")]);
    assert_eq!(content(&puppet.read(&beside.join("link"))), "changed");
    missing(&puppet.read(&beside.join("b")));
    assert_eq!(fs::read_to_string(beside.join("b")).unwrap(), "secret");
}

#[test]
fn roots_that_cannot_be_had_are_refused() {
    let bench = Bench::new();
    let mut puppet = Puppet::start(&bench.state(), &["--workspace", bench.workspace().to_str().unwrap()]);
    puppet.initialize();
    for (cwd, reason) in [
        (bench.workspace().join("nothing"), "not_found"),
        (bench.place.path().to_owned(), "out_of_scope"),
        ("/".into(), "out_of_scope"),
    ] {
        let answer = puppet.refused_session(&json!({ "cwd": cwd, "mcpServers": [] }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["data"]["reason"].as_str().unwrap().starts_with(reason), "{answer}");
    }
    fs::create_dir(bench.workspace().join("sub")).unwrap();
    puppet.session("s1", &json!({ "cwd": bench.workspace().join("sub"), "mcpServers": [] }));
    assert_eq!(puppet.write(&bench.workspace().join("sub/a"), "x")["result"], json!({}));
}

#[test]
fn the_server_that_is_added_serves_the_same_directory() {
    let bench = Bench::new();
    let params = json!({ "cwd": bench.workspace(), "mcpServers": [] });
    let mut puppet = Puppet::start(&bench.state(), &["--durability", "fast", "--principal", "agent:tried"]);
    puppet.initialize();
    let heard = puppet.session("s1", &params);
    let server = &heard["params"]["mcpServers"][0];
    let arguments: Vec<&str> =
        server["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect();
    let opening = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let write = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "write", "arguments": { "path": "by-mcp.txt", "content": "x\n", "base": "" } } });
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_stead"));
    let ran = bench.run_with(&arguments, format!("{opening}\n{ready}\n{write}\n").as_bytes());
    assert!(ran.text().contains("by-mcp.txt"), "{}", ran.text());
    assert_eq!(content(&puppet.read(&bench.workspace().join("by-mcp.txt"))), "x\n");
    let log = bench.ok(&["log"]).text();
    assert!(log.contains("agent:tried  write  by-mcp.txt"), "{log}");
    let mut puppet = Puppet::start(&bench.state(), &["--no-mcp"]);
    puppet.initialize();
    assert_eq!(puppet.session("s1", &params)["params"]["mcpServers"], json!([]));
}
