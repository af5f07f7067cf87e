//! `write` and `append`.

use engine::Kind;
use serde_json::json;

use crate::{desk::Desk, world::World};

#[test]
fn a_new_file_needs_no_base_and_gets_its_parents() {
    let desk = Desk::new();
    let answer = desk.run("write", json!({ "path": "a/b/f.txt", "content": "one\ntwo\n" }));
    assert_eq!(desk.text("a/b/f.txt").as_deref(), Some("one\ntwo\n"));
    assert_eq!(
        (&answer["path"], &answer["size"], &answer["created"]),
        (&json!("a/b/f.txt"), &json!(8), &json!(true))
    );
    assert_eq!(answer["diff"], json!({ "added": 2, "removed": 0 }));
    assert_eq!(answer["rev"], json!(format!("r{}", desk.head())));
    assert_eq!(answer["entry"], json!(desk.head()));
    assert_eq!(answer["hash"], json!(desk.workspace_head_hash()));
    assert_eq!(answer["version"].as_str().map(str::to_owned), desk.version("a/b/f.txt"));
    desk.run("write", json!({ "path": "g", "content": "", "base": "" }));
    assert_eq!(desk.fails("write", json!({ "path": "g", "content": "x", "base": "" })).0, "exists");
}

#[test]
fn an_existing_file_needs_the_current_base() {
    let desk = Desk::new();
    let first = desk.put("f", "one\n");
    let (kind, failure) = desk.fails("write", json!({ "path": "f", "content": "two\n" }));
    assert_eq!(kind, "base_required");
    assert_eq!(failure.facts["version"], json!(first));
    assert_eq!(failure.facts["rev"], json!("r1"));
    assert!(failure.hint.unwrap().contains("read with path f"));

    let answer = desk.run("write", json!({ "path": "f", "content": "two\n", "base": first }));
    assert_eq!((&answer["created"], &answer["diff"]), (&json!(false), &json!({ "added": 1, "removed": 1 })));
    let (kind, failure) = desk.fails("write", json!({ "path": "f", "content": "three\n", "base": first }));
    assert_eq!((kind, &failure.facts["version"]), ("stale", &answer["version"]));
    assert_eq!(desk.text("f").as_deref(), Some("two\n"));

    let rev = answer["rev"].clone();
    desk.run("write", json!({ "path": "f", "content": "three\n", "base": rev }));
    let gone = desk.fails("write", json!({ "path": "nothing", "content": "x", "base": first })).0;
    assert_eq!(gone, "stale");
}

#[test]
fn the_same_content_changes_nothing() {
    let desk = Desk::new();
    let version = desk.put("f", "one\n");
    let answer = desk.run("write", json!({ "path": "f", "content": "one\n", "base": version }));
    assert_eq!((&answer["changed"], &answer["version"]), (&json!(false), &json!(version)));
    assert_eq!(desk.run("undo", json!({}))["undone"], json!(1));
}

#[test]
fn only_files_are_written() {
    let desk = Desk::new();
    desk.put("d/f", "x");
    assert_eq!(desk.fails("write", json!({ "path": "d", "content": "x" })).0, "is_dir");
    assert_eq!(desk.fails("append", json!({ "path": "d", "content": "x" })).0, "is_dir");
    assert_eq!(desk.fails("write", json!({ "path": "d/f/g", "content": "x" })).0, "not_dir");
    assert_eq!(desk.fails("write", json!({ "path": ".", "content": "x" })).0, "invalid_path");
    assert_eq!(desk.fails("write", json!({ "path": "x", "content": "x", "mode": 1 })).0, "bad_request");
    assert_eq!(desk.fails("write", json!({ "path": ".git/config", "content": "x" })).0, "approval_pending");
    desk.and("user:u").run("write", json!({ "path": ".git/config", "content": "x" }));
}

#[test]
fn encodings_are_named_or_kept() {
    let desk = Desk::new();
    let answer = desk.run("write", json!({ "path": "b", "content": "AP8B", "encoding": "base64" }));
    assert_eq!(desk.bytes("b"), Some(vec![0, 255, 1]));
    assert_eq!(answer.get("diff"), None);
    let answer = desk.run("write", json!({ "path": "w", "content": "héllo\n", "encoding": "utf-16le-bom" }));
    assert_eq!(answer["encoding"], json!("utf-16le-bom"));
    let answer = desk.run("write", json!({ "path": "w", "content": "hé\n", "base": answer["version"] }));
    assert_eq!(desk.bytes("w"), Some(b"\xff\xfeh\0\xe9\0\n\0".to_vec()));
    assert_eq!(answer["encoding"], json!("utf-16le-bom"));
    desk.run("append", json!({ "path": "w", "content": "é" }));
    assert_eq!(desk.bytes("w"), Some(b"\xff\xfeh\0\xe9\0\n\0\xe9\0".to_vec()));

    let latin = "Der Bär läuft über die Straße.\n";
    let answer = desk.run("write", json!({ "path": "l", "content": latin, "encoding": "windows-1252" }));
    let refused = desk.fails("write", json!({ "path": "l", "content": "漢", "base": answer["version"] }));
    assert_eq!(refused.0, "not_text");
    desk.run(
        "write",
        json!({ "path": "l", "content": "漢", "base": answer["version"], "encoding": "utf-8" }),
    );
    assert_eq!(desk.text("l").as_deref(), Some("漢"));
    assert_eq!(
        desk.fails("write", json!({ "path": "n", "content": "x", "encoding": "ebcdic" })).0,
        "bad_request"
    );
}

#[test]
fn append_adds_at_the_end() {
    let desk = Desk::new();
    let made = desk.run("append", json!({ "path": "logs/l", "content": "one\n" }));
    assert_eq!((&made["created"], &made["size"]), (&json!(true), &json!(4)));
    let more = desk.run("append", json!({ "path": "logs/l", "content": "two\n", "base": made["version"] }));
    assert_eq!((&more["created"], &more["size"]), (&json!(false), &json!(8)));
    assert_eq!(desk.text("logs/l").as_deref(), Some("one\ntwo\n"));
    let stale = desk.fails("append", json!({ "path": "logs/l", "content": "x", "base": made["version"] }));
    assert_eq!(stale.0, "stale");
    let nothing = desk.run("append", json!({ "path": "logs/l", "content": "" }));
    assert_eq!((&nothing["changed"], &nothing["version"]), (&json!(false), &more["version"]));
}

#[test]
fn a_write_that_changes_nothing_is_recorded_with_the_version_it_found() {
    let world = World::with(&[("a.txt", "same\n")]);
    let version = world.ok("read", json!({ "path": "a.txt" })).json["version"].clone();
    world.ok("write", json!({ "path": "a.txt", "content": "same\n", "base": version }));
    let entry = world.engine.workspace().entry(world.entries()).unwrap().unwrap().entry;
    let arguments: serde_json::Value = serde_json::from_str(&entry.arguments).unwrap();
    assert!(entry.changes.is_empty());
    assert_eq!(arguments["unchanged"], version);
    assert!(!entry.arguments.contains("same\\n"), "{}", entry.arguments);
}

#[test]
fn a_file_that_is_too_large_to_change_is_called_that() {
    let large = "x".repeat(usize::try_from(engine::limits::WRITE_BYTES_MAX).unwrap() + 1);
    let world = World::with(&[("large", &large)]);
    let patch = "*** Begin Patch\n*** Update File: large\n@@\n-x\n+y\n*** End Patch\n";
    for (operation, arguments) in [
        ("append", json!({ "path": "large", "content": "y" })),
        ("edit", json!({ "path": "large", "edits": [{ "old": "x", "new": "y" }] })),
        ("patch", json!({ "patch": patch })),
    ] {
        let failure = world.fails(operation, arguments, Kind::TooLarge);
        assert!(failure.detail.contains("the most that a change takes"), "{operation}: {failure}");
        assert!(!failure.hint.as_deref().unwrap_or_default().contains("call read"), "{operation}");
    }
}
