//! Tests of the operations `write` and `append`.

use serde_json::json;
use stead_engine::ErrorKind;

use crate::{engine_fixture::EngineFixture, session_fixture::SessionFixture};

#[test]
fn new_file_needs_no_base_and_creates_parents() {
    let session = SessionFixture::new();
    let outcome = session.call_ok("write", json!({ "path": "a/b/f.txt", "content": "one\ntwo\n" }));
    assert_eq!(session.file_text("a/b/f.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(
        (&outcome["path"], &outcome["size"], &outcome["created"]),
        (&json!("a/b/f.txt"), &json!(8), &json!(true))
    );
    assert_eq!(outcome["diff"], json!({ "added": 2, "removed": 0 }));
    assert_eq!(outcome["rev"], json!(format!("r{}", session.head_entry())));
    assert_eq!(outcome["entry"], json!(session.head_entry()));
    assert_eq!(outcome["hash"], json!(session.head_hash()));
    assert_eq!(outcome["version"].as_str().map(str::to_owned), session.file_version("a/b/f.txt"));
    session.call_ok("write", json!({ "path": "g", "content": "", "base": "" }));
    assert_eq!(session.call_err("write", json!({ "path": "g", "content": "x", "base": "" })).0, "exists");
}

#[test]
fn existing_file_requires_current_base() {
    let session = SessionFixture::new();
    let first = session.write_file("f", "one\n");
    let (kind, error) = session.call_err("write", json!({ "path": "f", "content": "two\n" }));
    assert_eq!(kind, "base_required");
    assert_eq!(error.details["version"], json!(first));
    assert_eq!(error.details["rev"], json!("r1"));
    assert!(error.next_step.unwrap().contains("read with path f"));

    let outcome = session.call_ok("write", json!({ "path": "f", "content": "two\n", "base": first }));
    assert_eq!((&outcome["created"], &outcome["diff"]), (&json!(false), &json!({ "added": 1, "removed": 1 })));
    let (kind, error) = session.call_err("write", json!({ "path": "f", "content": "three\n", "base": first }));
    assert_eq!((kind, &error.details["version"]), ("stale", &outcome["version"]));
    assert_eq!(session.file_text("f").as_deref(), Some("two\n"));

    let rev = outcome["rev"].clone();
    session.call_ok("write", json!({ "path": "f", "content": "three\n", "base": rev }));
    let gone = session.call_err("write", json!({ "path": "nothing", "content": "x", "base": first })).0;
    assert_eq!(gone, "stale");
}

#[test]
fn identical_content_changes_nothing() {
    let session = SessionFixture::new();
    let version = session.write_file("f", "one\n");
    let outcome = session.call_ok("write", json!({ "path": "f", "content": "one\n", "base": version }));
    assert_eq!((&outcome["changed"], &outcome["version"]), (&json!(false), &json!(version)));
    assert_eq!(session.call_ok("undo", json!({}))["undone"], json!(1));
}

#[test]
fn only_regular_files_can_be_written() {
    let session = SessionFixture::new();
    session.write_file("d/f", "x");
    assert_eq!(session.call_err("write", json!({ "path": "d", "content": "x" })).0, "is_dir");
    assert_eq!(session.call_err("append", json!({ "path": "d", "content": "x" })).0, "is_dir");
    assert_eq!(session.call_err("write", json!({ "path": "d/f/g", "content": "x" })).0, "not_dir");
    assert_eq!(session.call_err("write", json!({ "path": ".", "content": "x" })).0, "invalid_path");
    assert_eq!(session.call_err("write", json!({ "path": "x", "content": "x", "mode": 1 })).0, "bad_request");
    assert_eq!(session.call_err("write", json!({ "path": ".git/config", "content": "x" })).0, "approval_pending");
    session.with_principal("user:u").call_ok("write", json!({ "path": ".git/config", "content": "x" }));
}

#[test]
fn encodings_are_explicit_or_preserved() {
    let session = SessionFixture::new();
    let outcome = session.call_ok("write", json!({ "path": "b", "content": "AP8B", "encoding": "base64" }));
    assert_eq!(session.file_bytes("b"), Some(vec![0, 255, 1]));
    assert_eq!(outcome.get("diff"), None);
    let outcome = session.call_ok("write", json!({ "path": "w", "content": "héllo\n", "encoding": "utf-16le-bom" }));
    assert_eq!(outcome["encoding"], json!("utf-16le-bom"));
    let outcome = session.call_ok("write", json!({ "path": "w", "content": "hé\n", "base": outcome["version"] }));
    assert_eq!(session.file_bytes("w"), Some(b"\xff\xfeh\0\xe9\0\n\0".to_vec()));
    assert_eq!(outcome["encoding"], json!("utf-16le-bom"));
    session.call_ok("append", json!({ "path": "w", "content": "é" }));
    assert_eq!(session.file_bytes("w"), Some(b"\xff\xfeh\0\xe9\0\n\0\xe9\0".to_vec()));

    let latin = "Der Bär läuft über die Straße.\n";
    let outcome = session.call_ok("write", json!({ "path": "l", "content": latin, "encoding": "windows-1252" }));
    let refused = session.call_err("write", json!({ "path": "l", "content": "漢", "base": outcome["version"] }));
    assert_eq!(refused.0, "not_text");
    session.call_ok("write", json!({ "path": "l", "content": "漢", "base": outcome["version"], "encoding": "utf-8" }));
    assert_eq!(session.file_text("l").as_deref(), Some("漢"));
    assert_eq!(
        session.call_err("write", json!({ "path": "n", "content": "x", "encoding": "ebcdic" })).0,
        "bad_request"
    );
}

#[test]
fn append_adds_to_the_end() {
    let session = SessionFixture::new();
    let appended = session.call_ok("append", json!({ "path": "logs/l", "content": "one\n" }));
    assert_eq!((&appended["created"], &appended["size"]), (&json!(true), &json!(4)));
    let more = session.call_ok("append", json!({ "path": "logs/l", "content": "two\n", "base": appended["version"] }));
    assert_eq!((&more["created"], &more["size"]), (&json!(false), &json!(8)));
    assert_eq!(session.file_text("logs/l").as_deref(), Some("one\ntwo\n"));
    let stale = session.call_err("append", json!({ "path": "logs/l", "content": "x", "base": appended["version"] }));
    assert_eq!(stale.0, "stale");
    let nothing = session.call_ok("append", json!({ "path": "logs/l", "content": "" }));
    assert_eq!((&nothing["changed"], &nothing["version"]), (&json!(false), &more["version"]));
}

#[test]
fn unchanged_write_is_recorded_with_existing_version() {
    let fixture = EngineFixture::with_files(&[("a.txt", "same\n")]);
    let version = fixture.call_ok("read", json!({ "path": "a.txt" })).json["version"].clone();
    fixture.call_ok("write", json!({ "path": "a.txt", "content": "same\n", "base": version }));
    let entry = fixture.engine.workspace().entry(fixture.entry_count()).unwrap().unwrap().entry;
    let arguments: serde_json::Value = serde_json::from_str(&entry.arguments).unwrap();
    assert!(entry.changes.is_empty());
    assert_eq!(arguments["unchanged"], version);
    assert!(!entry.arguments.contains("same\\n"), "{}", entry.arguments);
}

#[test]
fn file_too_large_to_change_is_reported() {
    let large = "x".repeat(usize::try_from(stead_engine::limits::WRITE_BYTES_MAX).unwrap() + 1);
    let fixture = EngineFixture::with_files(&[("large", &large)]);
    let patch = "*** Begin Patch\n*** Update File: large\n@@\n-x\n+y\n*** End Patch\n";
    for (operation, arguments) in [
        ("append", json!({ "path": "large", "content": "y" })),
        ("edit", json!({ "path": "large", "edits": [{ "old": "x", "new": "y" }] })),
        ("patch", json!({ "patch": patch })),
    ] {
        let error = fixture.call_err(operation, arguments, ErrorKind::TooLarge);
        assert!(error.message.contains("the limit for changes"), "{operation}: {error}");
        assert!(!error.next_step.as_deref().unwrap_or_default().contains("call read"), "{operation}");
    }
}
