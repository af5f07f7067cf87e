//! Tests that an agent can access only the files in the root directories of its session.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::{Value, json};

use super::harness::AcpProxyTestProcess;
use crate::cli_fixture::CliFixture;

fn content_of(answer: &Value) -> &str {
    answer["result"]["content"].as_str().expect("the content is text")
}

fn assert_not_found(answer: &Value) {
    assert_eq!((&answer["error"]["code"], &answer["error"]["message"]), (&json!(-32002), &json!("Resource not found")));
}

fn open_session(fixture: &CliFixture, cwd: &Path, others: &[&Path]) -> AcpProxyTestProcess {
    let params = json!({ "cwd": cwd, "additionalDirectories": others, "mcpServers": [] });
    AcpProxyTestProcess::with_session(&fixture.state(), &["--durability", "fast"], &params)
}

#[test]
fn symlinked_root_is_reachable_by_both_names() {
    let fixture = CliFixture::new();
    let (real, link) = (fixture.workspace(), fixture.directory.path().join("link"));
    symlink(&real, &link).unwrap();
    fs::write(real.join("a"), "text").unwrap();
    let mut proxy = open_session(&fixture, &link, &[]);
    assert_eq!(content_of(&proxy.read_text_file(&link.join("a"))), "text");
    assert_eq!(content_of(&proxy.read_text_file(&real.join("a"))), "text");
    // After the link is changed, the session's root is still the directory that the link named first.
    let other = fixture.directory.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("a"), "secret").unwrap();
    fs::remove_file(&link).unwrap();
    symlink(&other, &link).unwrap();
    assert_eq!(content_of(&proxy.read_text_file(&link.join("a"))), "text");
    assert_eq!(proxy.write_text_file(&link.join("b"), "x")["result"], json!({}));
    assert!(real.join("b").exists() && !other.join("b").exists());
}

#[test]
fn one_directory_has_one_journal_under_any_name() {
    let fixture = CliFixture::new();
    let link = fixture.directory.path().join("link");
    symlink(fixture.workspace(), &link).unwrap();
    open_session(&fixture, &link, &[]).write_text_file(&link.join("a"), "x");
    let log = fixture.run_successfully(&["log"]).text();
    assert!(log.contains("agent:acp  write  a"), "{log}");
}

#[test]
fn moved_directory_stays_the_session_root() {
    let fixture = CliFixture::new();
    let root = fixture.workspace();
    fs::write(root.join("a"), "text").unwrap();
    let mut proxy = open_session(&fixture, &root, &[]);
    let moved = fixture.directory.path().join("moved");
    fs::rename(&root, &moved).unwrap();
    // A new directory with the root's old name is not the root of the session.
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "secret").unwrap();
    assert_eq!(content_of(&proxy.read_text_file(&root.join("a"))), "text");
    assert_not_found(&proxy.read_text_file(&moved.join("a")));
}

#[test]
fn nested_and_sibling_roots_are_served() {
    let fixture = CliFixture::new();
    let (outer, beside) = (fixture.workspace(), fixture.directory.path().join("beside"));
    let inner = outer.join("inner");
    fs::create_dir(&inner).unwrap();
    fs::create_dir(&beside).unwrap();
    fs::write(inner.join("a"), "inner").unwrap();
    fs::write(outer.join("a"), "outer").unwrap();
    fs::write(beside.join("a"), "beside").unwrap();
    for (cwd, other) in [(&outer, &inner), (&inner, &outer)] {
        let mut proxy = open_session(&fixture, cwd, &[other, &beside]);
        assert_eq!(content_of(&proxy.read_text_file(&inner.join("a"))), "inner");
        assert_eq!(content_of(&proxy.read_text_file(&outer.join("a"))), "outer");
        assert_eq!(content_of(&proxy.read_text_file(&beside.join("a"))), "beside");
        assert_eq!(content_of(&proxy.read_text_file(&inner.join("../a"))), "outer");
        assert_not_found(&proxy.read_text_file(&beside.join("../nothing")));
    }
    // A session whose only root is the inner directory cannot access the outer directory.
    let mut proxy = open_session(&fixture, &inner, &[]);
    assert_not_found(&proxy.read_text_file(&outer.join("a")));
    assert_not_found(&proxy.write_text_file(&outer.join("b"), "x"));
}

#[test]
fn symlink_between_roots_is_not_followed() {
    let fixture = CliFixture::new();
    let (outer, beside) = (fixture.workspace(), fixture.directory.path().join("beside"));
    fs::create_dir(&beside).unwrap();
    fs::create_dir(outer.join("inner")).unwrap();
    fs::write(beside.join("a"), "beside").unwrap();
    fs::write(outer.join("inner/a"), "inner").unwrap();
    symlink(beside.join("a"), outer.join("absolute")).unwrap();
    symlink("../beside/a", outer.join("relative")).unwrap();
    symlink("inner/a", outer.join("within")).unwrap();
    let mut proxy = open_session(&fixture, &outer, &[&beside, &outer.join("inner")]);
    // The session can access the file by the file's own path.
    assert_eq!(content_of(&proxy.read_text_file(&beside.join("a"))), "beside");
    for link in ["absolute", "relative"] {
        assert_not_found(&proxy.read_text_file(&outer.join(link)));
        assert_not_found(&proxy.write_text_file(&outer.join(link), "x"));
    }
    assert_eq!(fs::read_to_string(beside.join("a")).unwrap(), "beside");
    // A link within one root is followed, even if the target is in another root too.
    assert_eq!(content_of(&proxy.read_text_file(&outer.join("within"))), "inner");
}

#[test]
fn single_file_root_exposes_only_that_file() {
    let fixture = CliFixture::new();
    let beside = fixture.directory.path().join("beside");
    fs::create_dir(&beside).unwrap();
    fs::write(beside.join("a"), "one file").unwrap();
    fs::write(beside.join("b"), "secret").unwrap();
    symlink("a", beside.join("link")).unwrap();
    let mut proxy = open_session(&fixture, &fixture.workspace(), &[&beside.join("a")]);
    assert_eq!(content_of(&proxy.read_text_file(&beside.join("a"))), "one file");
    assert_eq!(proxy.write_text_file(&beside.join("a"), "changed")["result"], json!({}));
    assert_not_found(&proxy.read_text_file(&beside.join("b")));
    assert_not_found(&proxy.write_text_file(&beside.join("c"), "x"));
    assert_not_found(&proxy.read_text_file(&beside.join("a/b")));
    let mut proxy = open_session(&fixture, &fixture.workspace(), &[&beside.join("link")]);
    assert_eq!(content_of(&proxy.read_text_file(&beside.join("link"))), "changed");
    assert_not_found(&proxy.read_text_file(&beside.join("b")));
    assert_eq!(fs::read_to_string(beside.join("b")).unwrap(), "secret");
}

#[test]
fn unavailable_roots_are_rejected() {
    let fixture = CliFixture::new();
    let mut proxy =
        AcpProxyTestProcess::start(&fixture.state(), &["--workspace", fixture.workspace().to_str().unwrap()]);
    proxy.initialize();
    for (cwd, reason) in [
        (fixture.workspace().join("nothing"), "not_found"),
        (fixture.directory.path().to_owned(), "out_of_scope"),
        ("/".into(), "out_of_scope"),
    ] {
        let answer = proxy.new_session_error(&json!({ "cwd": cwd, "mcpServers": [] }));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert!(answer["error"]["data"]["reason"].as_str().unwrap().starts_with(reason), "{answer}");
    }
    fs::create_dir(fixture.workspace().join("sub")).unwrap();
    proxy.new_session("s1", &json!({ "cwd": fixture.workspace().join("sub"), "mcpServers": [] }));
    assert_eq!(proxy.write_text_file(&fixture.workspace().join("sub/a"), "x")["result"], json!({}));
}

#[test]
fn added_mcp_server_serves_the_same_directory() {
    let fixture = CliFixture::new();
    let params = json!({ "cwd": fixture.workspace(), "mcpServers": [] });
    let mut proxy =
        AcpProxyTestProcess::start(&fixture.state(), &["--durability", "fast", "--principal", "agent:tried"]);
    proxy.initialize();
    let heard = proxy.new_session("s1", &params);
    let server = &heard["params"]["mcpServers"][0];
    let arguments: Vec<&str> =
        server["args"].as_array().unwrap().iter().map(|argument| argument.as_str().unwrap()).collect();
    let opening = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let write = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "write", "arguments": { "path": "by-mcp.txt", "content": "x\n", "base": "" } } });
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_stead"));
    let ran = fixture.run_with_input(&arguments, format!("{opening}\n{ready}\n{write}\n").as_bytes());
    assert!(ran.text().contains("by-mcp.txt"), "{}", ran.text());
    assert_eq!(content_of(&proxy.read_text_file(&fixture.workspace().join("by-mcp.txt"))), "x\n");
    let log = fixture.run_successfully(&["log"]).text();
    assert!(log.contains("agent:tried  write  by-mcp.txt"), "{log}");
    let mut proxy = AcpProxyTestProcess::start(&fixture.state(), &["--no-mcp"]);
    proxy.initialize();
    assert_eq!(proxy.new_session("s1", &params)["params"]["mcpServers"], json!([]));
}
