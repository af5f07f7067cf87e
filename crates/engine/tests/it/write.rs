//! Tests of the operations `write` and `append`.

use serde_json::json;
use stead_engine::{ErrorKind, Workspace};
use testkit::hint_text;
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, user},
};

#[test]
fn new_file_needs_no_base_and_creates_parents() {
    let fixture = EngineFixture::new();
    let outcome = fixture.call_ok("write", json!({ "path": "a/b/f.txt", "content": "one\ntwo\n" }));
    assert_eq!(fixture.read_text("a/b/f.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(
        (&outcome["path"], &outcome["size"], &outcome["created"]),
        (&json!("a/b/f.txt"), &json!(8), &json!(true))
    );
    assert_eq!(outcome["diff"], json!({ "added": 2, "removed": 0 }));
    assert_eq!(outcome["rev"], json!(format!("r{}", fixture.entry_count())));
    assert_eq!(outcome["entry"], json!(fixture.entry_count()));
    assert_eq!(outcome["hash"], json!(fixture.workspace.head().unwrap().hash.to_string()));
    assert_eq!(outcome["version"].as_str().map(str::to_owned), fixture.version("a/b/f.txt"));
    fixture.call_ok("write", json!({ "path": "g", "content": "", "base": "" }));
    fixture.call_err("write", json!({ "path": "g", "content": "x", "base": "" }), ErrorKind::Exists);
}

#[test]
fn existing_file_requires_current_base() {
    let fixture = EngineFixture::new();
    let first = fixture.write("f", "one\n");
    let error = fixture.call_err("write", json!({ "path": "f", "content": "two\n" }), ErrorKind::BaseRequired);
    assert_eq!(error.details_json()["version"], json!(first));
    assert_eq!(error.details_json()["rev"], json!("r1"));
    assert!(hint_text(&error).contains("read with path f"));

    let outcome = fixture.call_ok("write", json!({ "path": "f", "content": "two\n", "base": first }));
    assert_eq!((&outcome["created"], &outcome["diff"]), (&json!(false), &json!({ "added": 1, "removed": 1 })));
    let error =
        fixture.call_err("write", json!({ "path": "f", "content": "three\n", "base": first }), ErrorKind::Stale);
    assert_eq!(&error.details_json()["version"], &outcome["version"]);
    assert_eq!(fixture.read_text("f").as_deref(), Some("two\n"));

    let rev = outcome["rev"].clone();
    fixture.call_ok("write", json!({ "path": "f", "content": "three\n", "base": rev }));
    fixture.call_err("write", json!({ "path": "nothing", "content": "x", "base": first }), ErrorKind::Stale);
}

#[test]
fn identical_content_changes_nothing() {
    let fixture = EngineFixture::new();
    let version = fixture.write("f", "one\n");
    let outcome = fixture.call_ok("write", json!({ "path": "f", "content": "one\n", "base": version }));
    assert_eq!((&outcome["changed"], &outcome["version"]), (&json!(false), &json!(version)));
    assert_eq!(fixture.call_ok("undo", json!({}))["undone"], json!(1));
}

#[test]
fn only_regular_files_can_be_written() {
    let fixture = EngineFixture::new();
    fixture.write("d/f", "x");
    fixture.call_err("write", json!({ "path": "d", "content": "x" }), ErrorKind::IsDirectory);
    fixture.call_err("append", json!({ "path": "d", "content": "x" }), ErrorKind::IsDirectory);
    fixture.call_err("write", json!({ "path": "d/f/g", "content": "x" }), ErrorKind::NotDirectory);
    fixture.call_err("write", json!({ "path": ".", "content": "x" }), ErrorKind::InvalidPath);
    fixture.call_err("write", json!({ "path": "x", "content": "x", "mode": 1 }), ErrorKind::BadRequest);
    fixture.call_err("write", json!({ "path": ".git/config", "content": "x" }), ErrorKind::ApprovalPending);
    fixture.with_caller(&user("u")).call_ok("write", json!({ "path": ".git/config", "content": "x" }));
}

#[test]
fn encodings_are_explicit_or_preserved() {
    let fixture = EngineFixture::new();
    let outcome = fixture.call_ok("write", json!({ "path": "b", "content": "AP8B", "encoding": "base64" }));
    assert_eq!(fixture.workspace.bytes("b"), Some(vec![0, 255, 1]));
    assert_eq!(outcome.get("diff"), None);
    let outcome = fixture.call_ok("write", json!({ "path": "w", "content": "héllo\n", "encoding": "utf-16le-bom" }));
    assert_eq!(outcome["encoding"], json!("utf-16le-bom"));
    let outcome = fixture.call_ok("write", json!({ "path": "w", "content": "hé\n", "base": outcome["version"] }));
    assert_eq!(fixture.workspace.bytes("w"), Some(b"\xff\xfeh\0\xe9\0\n\0".to_vec()));
    assert_eq!(outcome["encoding"], json!("utf-16le-bom"));
    fixture.call_ok("append", json!({ "path": "w", "content": "é" }));
    assert_eq!(fixture.workspace.bytes("w"), Some(b"\xff\xfeh\0\xe9\0\n\0\xe9\0".to_vec()));

    let latin = "Der Bär läuft über die Straße.\n";
    let outcome = fixture.call_ok("write", json!({ "path": "l", "content": latin, "encoding": "windows-1252" }));
    let other_script = json!({ "path": "l", "content": "漢", "base": outcome["version"] });
    fixture.call_err("write", other_script, ErrorKind::NotText);
    fixture.call_ok("write", json!({ "path": "l", "content": "漢", "base": outcome["version"], "encoding": "utf-8" }));
    assert_eq!(fixture.read_text("l").as_deref(), Some("漢"));
    fixture.call_err("write", json!({ "path": "n", "content": "x", "encoding": "ebcdic" }), ErrorKind::BadRequest);
}

#[test]
fn append_adds_to_the_end() {
    let fixture = EngineFixture::new();
    let appended = fixture.call_ok("append", json!({ "path": "logs/l", "content": "one\n" }));
    assert_eq!((&appended["created"], &appended["size"]), (&json!(true), &json!(4)));
    let more = fixture.call_ok("append", json!({ "path": "logs/l", "content": "two\n", "base": appended["version"] }));
    assert_eq!((&more["created"], &more["size"]), (&json!(false), &json!(8)));
    assert_eq!(fixture.read_text("logs/l").as_deref(), Some("one\ntwo\n"));
    let stale = json!({ "path": "logs/l", "content": "x", "base": appended["version"] });
    fixture.call_err("append", stale, ErrorKind::Stale);
    let nothing = fixture.call_ok("append", json!({ "path": "logs/l", "content": "" }));
    assert_eq!((&nothing["changed"], &nothing["version"]), (&json!(false), &more["version"]));
}

#[test]
fn unchanged_write_is_recorded_with_existing_version() {
    let fixture = EngineFixture::with_files(&[("a.txt", "same\n")]);
    let version = fixture.call_ok("read", json!({ "path": "a.txt" }))["version"].clone();
    fixture.call_ok("write", json!({ "path": "a.txt", "content": "same\n", "base": version }));
    let entry = fixture.engine.workspace().entry(fixture.entry_count()).unwrap().unwrap().entry;
    assert!(entry.changes.is_empty());
    assert_eq!(json!(entry.details), json!({ "unchanged": version }));
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
        assert!(!hint_text(&error).contains("call read"), "{operation}");
    }
}
