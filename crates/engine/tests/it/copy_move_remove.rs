//! Tests of the operations `copy`, `move`, `remove` and `restore`.

use serde_json::json;
use stead_engine::ErrorKind;

use crate::{
    engine_fixture::{EngineFixture, agent},
    session_fixture::SessionFixture,
};

#[test]
fn a_file_is_copied() {
    let session = SessionFixture::new();
    let version = session.write_file("f", "one\n");
    let outcome = session.call_ok("copy", json!({ "from": "f", "to": "d/g" }));
    assert_eq!((&outcome["version"], &outcome["created"]), (&json!(version), &json!(true)));
    assert_eq!((session.file_text("f"), session.file_text("d/g")), (Some("one\n".into()), Some("one\n".into())));
    session.write_file("f", "two\n");
    assert_eq!(session.call_err("copy", json!({ "from": "f", "to": "d/g" })).0, "exists");
    assert_eq!(session.call_err("copy", json!({ "from": "f", "to": "d", "overwrite": true })).0, "exists");
    assert_eq!(session.call_err("copy", json!({ "from": "f", "to": "h", "base": version })).0, "stale");
    assert_eq!(session.call_err("copy", json!({ "from": "none", "to": "h" })).0, "not_found");
    assert_eq!(session.call_err("copy", json!({ "from": "f", "to": "f/g" })).0, "not_dir");
    let over = session.call_ok("copy", json!({ "from": "f", "to": "d/g", "overwrite": true }));
    assert_eq!((&over["created"], session.file_text("d/g").as_deref()), (&json!(false), Some("two\n")));
    assert_eq!(
        session.call_ok("copy", json!({ "from": "f", "to": "d/g", "overwrite": true }))["changed"],
        json!(false)
    );
    session.call_ok("undo", json!({}));
    assert_eq!(session.file_text("d/g").as_deref(), Some("one\n"));
}

#[test]
fn tree_copy_skips_uncopyable_entries() {
    let session = SessionFixture::new();
    session.write_file("d/a", "a");
    session.write_file("d/sub/b", "bb");
    session.workspace.put_link("d/in", "sub/b");
    session.workspace.put_link("d/out", "../../../out");
    session.workspace.put_special("d/pipe");
    let outcome = session.call_ok("copy", json!({ "from": "d", "to": "n/cp" }));
    assert_eq!((&outcome["files"], &outcome["directories"]), (&json!(3), &json!(2)));
    assert_eq!((session.file_text("n/cp/a"), session.file_text("n/cp/sub/b")), (Some("a".into()), Some("bb".into())));
    assert!(session.exists("n/cp/in") && !session.exists("n/cp/out") && !session.exists("n/cp/pipe"));
    let skipped: Vec<&str> =
        outcome["skipped"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["d/out", "d/pipe"]);
    assert_eq!(session.call_err("copy", json!({ "from": "d", "to": "n/cp" })).0, "exists");
    assert_eq!(session.call_err("copy", json!({ "from": "d", "to": "d/sub/c" })).0, "invalid_path");
    assert_eq!(session.call_err("copy", json!({ "from": "d/pipe", "to": "p" })).0, "not_regular");

    session.call_ok("undo", json!({}));
    assert!(!session.exists("n"));
    session.call_ok("redo", json!({}));
    assert_eq!(session.file_text("n/cp/sub/b").as_deref(), Some("bb"));
    assert!(session.exists("n/cp/in"));
}

#[test]
fn root_can_be_copied_into_itself() {
    let session = SessionFixture::new();
    session.write_file("f", "x");
    session.write_file("d/g", "y");
    session.call_ok("copy", json!({ "from": ".", "to": "cp" }));
    assert_eq!((session.file_text("cp/f"), session.file_text("cp/d/g")), (Some("x".into()), Some("y".into())));
    assert!(!session.exists("cp/cp"));
}

#[test]
fn a_file_is_moved() {
    let session = SessionFixture::new();
    let version = session.write_file("f", "one\n");
    session.write_file("g", "two\n");
    assert_eq!(session.call_err("move", json!({ "from": "f", "to": "g" })).0, "exists");
    let (kind, error) = session.call_err("move", json!({ "from": "d/missing", "to": "h" }));
    assert_eq!((kind, error.next_step.unwrap().contains("list with path d")), ("not_found", true));
    let stale = session.call_err("move", json!({ "from": "g", "to": "h", "base": version }));
    assert_eq!(stale.0, "stale");
    assert_eq!(session.call_ok("move", json!({ "from": "f", "to": "f" }))["changed"], json!(false));
    assert_eq!(session.call_err("move", json!({ "from": ".", "to": "x" })).0, "invalid_path");
    let outcome = session.call_ok("move", json!({ "from": "f", "to": "new/place", "base": version }));
    assert_eq!((&outcome["version"], &outcome["path"]), (&json!(version), &json!("new/place")));
    assert_eq!((session.file_text("f"), session.file_text("new/place")), (None, Some("one\n".into())));
    session.call_ok("undo", json!({}));
    assert_eq!((session.file_text("f").as_deref(), session.exists("new")), (Some("one\n"), false));
    session.call_ok("redo", json!({}));
    assert_eq!((session.file_text("f"), session.file_text("new/place")), (None, Some("one\n".into())));
}

#[test]
fn move_over_file_is_undone_completely() {
    let session = SessionFixture::new();
    session.write_file("f", "one\n");
    session.write_file("g", "two\n");
    let outcome = session.call_ok("move", json!({ "from": "f", "to": "g", "overwrite": true }));
    assert_eq!((&outcome["replaced"], session.file_text("g").as_deref()), (&json!(true), Some("one\n")));
    session.call_ok("undo", json!({}));
    assert_eq!((session.file_text("f").as_deref(), session.file_text("g").as_deref()), (Some("one\n"), Some("two\n")));
    session.call_ok("redo", json!({}));
    assert_eq!((session.file_text("f"), session.file_text("g").as_deref()), (None, Some("one\n")));
    session.call_ok("undo", json!({}));
    assert_eq!((session.file_text("f").as_deref(), session.file_text("g").as_deref()), (Some("one\n"), Some("two\n")));
}

#[test]
fn directory_can_be_moved_but_not_into_itself() {
    let session = SessionFixture::new();
    session.write_file("d/a", "a");
    session.write_file("d/sub/b", "b");
    session.write_file("e/x", "x");
    assert_eq!(session.call_err("move", json!({ "from": "d", "to": "d/sub/d" })).0, "invalid_path");
    assert_eq!(session.call_err("move", json!({ "from": "d", "to": "e", "overwrite": true })).0, "exists");
    assert_eq!(session.call_err("move", json!({ "from": "e/x", "to": "d", "overwrite": true })).0, "exists");
    let outcome = session.call_ok("move", json!({ "from": "d", "to": "e/d" }));
    assert_eq!((&outcome["files"], &outcome["bytes"]), (&json!(2), &json!(2)));
    assert_eq!(session.file_text("e/d/sub/b").as_deref(), Some("b"));
    session.write_file("e/d/a", "changed since");
    session.call_ok("undo", json!({ "entry": outcome["rev"] }));
    assert_eq!((session.file_text("d/a").as_deref(), session.exists("e/d")), (Some("changed since"), false));
}

#[test]
fn symlink_itself_is_moved_and_removed() {
    let session = SessionFixture::new();
    session.workspace.put_link("abs", "/etc/passwd");
    session.call_ok("move", json!({ "from": "abs", "to": "abs2" }));
    let outcome = session.call_ok("remove", json!({ "path": "abs2" }));
    assert!(!session.exists("abs2"));
    session.call_ok("restore", json!({ "trash": outcome["trash"] }));
    assert!(session.exists("abs2"));
}

#[test]
fn moving_a_tree_cannot_create_protected_paths() {
    let session = SessionFixture::new();
    session.write_file("x/workflows/ci.yml", "evil");
    assert_eq!(session.call_err("move", json!({ "from": "x", "to": ".github" })).0, "approval_pending");
    assert_eq!(session.call_err("copy", json!({ "from": "x", "to": ".github" })).0, "approval_pending");
    let trash = session.call_ok("remove", json!({ "path": "x", "recursive": true }))["trash"].clone();
    assert_eq!(session.call_err("restore", json!({ "trash": trash, "to": ".github" })).0, "approval_pending");
    session.call_ok("restore", json!({ "trash": trash }));
    // An agent cannot create a workflow file by moving a directory, filling it and undoing the move.
    session.write_file(".github/notes", "plain");
    let moved = session.call_ok("move", json!({ "from": ".github", "to": "g" }))["rev"].clone();
    session.write_file("g/workflows/ci.yml", "evil");
    assert_eq!(session.call_err("undo", json!({ "entry": moved })).0, "approval_pending");
    session.with_principal("user:u").call_ok("undo", json!({ "entry": moved }));
    assert!(session.exists(".github/workflows/ci.yml"));
}

#[test]
fn removed_files_can_be_restored() {
    let session = SessionFixture::new();
    session.write_file("d/a", "a");
    session.write_file("d/sub/b", "bb");
    assert_eq!(session.call_err("remove", json!({ "path": "d" })).0, "not_empty");
    assert_eq!(session.call_err("remove", json!({ "path": "nothing" })).0, "not_found");
    assert_eq!(session.call_err("remove", json!({ "path": "d/a", "permanent": true })).0, "bad_request");
    assert_eq!(session.call_err("remove", json!({ "path": "." , "recursive": true })).0, "invalid_path");
    let outcome = session.call_ok("remove", json!({ "path": "d", "recursive": true }));
    assert_eq!((&outcome["files"], &outcome["bytes"]), (&json!(2), &json!(3)));
    assert!(outcome["recoverable_until"].as_str().unwrap().ends_with('Z'));
    assert!(!session.exists("d"));
    let restored = session.call_ok("restore", json!({ "trash": outcome["trash"] }));
    assert_eq!((&restored["path"], session.file_text("d/sub/b").as_deref()), (&json!("d"), Some("bb")));
    assert_eq!(session.call_err("restore", json!({ "trash": outcome["trash"] })).0, "not_found");
    session.call_ok("undo", json!({}));
    assert!(!session.exists("d"));
    session.call_ok("redo", json!({}));
    assert_eq!(session.file_text("d/a").as_deref(), Some("a"));
}

#[test]
fn stale_base_blocks_removal() {
    let session = SessionFixture::new();
    let old = session.write_file("f", "one");
    session.write_file("f", "two");
    assert_eq!(session.call_err("remove", json!({ "path": "f", "base": old })).0, "stale");
    session.call_ok("remove", json!({ "path": "f", "base": session.file_version("f") }));
}

#[test]
fn restore_never_overwrites_and_checks_owner() {
    let session = SessionFixture::new();
    session.write_file("d/f", "one");
    let trash = session.call_ok("remove", json!({ "path": "d/f" }))["trash"].clone();
    session.call_ok("remove", json!({ "path": "d" }));
    assert_eq!(session.with_principal("agent:b").call_err("restore", json!({ "trash": trash })).0, "not_owner");
    session.write_file("other", "x");
    assert_eq!(session.call_err("restore", json!({ "trash": trash, "to": "other" })).0, "exists");
    assert_eq!(session.call_err("restore", json!({ "trash": "t999" })).0, "not_found");
    let outcome = session.with_principal("user:u").call_ok("restore", json!({ "trash": trash }));
    assert_eq!((&outcome["path"], session.file_text("d/f").as_deref()), (&json!("d/f"), Some("one")));
}

#[test]
fn expired_trash_cannot_be_restored() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    let trash = session.call_ok("remove", json!({ "path": "f" }))["trash"].clone();
    session.workspace.advance_ms(stead_engine::limits::AGENT_TRASH_RETENTION_MS + 1);
    let kind = session.call_err("restore", json!({ "trash": trash })).0;
    assert!(["expired", "not_found"].contains(&kind), "{kind}");
    assert_eq!(session.call_err("undo", json!({})).0, "expired");
    assert!(!session.exists("f"));
}

#[test]
fn lease_inside_tree_blocks_the_whole_tree() {
    let session = SessionFixture::new();
    session.write_file("dir/x", "1");
    session.with_principal("agent:b").call_ok("lock", json!({ "path": "dir/x" }));
    assert_eq!(session.call_err("move", json!({ "from": "dir", "to": "dir2" })).0, "locked");
    assert_eq!(session.call_err("remove", json!({ "path": "dir", "recursive": true })).0, "locked");
    assert_eq!(session.call_err("write", json!({ "path": "dir/x", "content": "2" })).0, "locked");
    session.call_ok("copy", json!({ "from": "dir", "to": "dir2" }));
}

#[test]
fn links_are_followed_only_inside_the_workspace() {
    let session = SessionFixture::new();
    session.write_file("a/f", "one\n");
    session.workspace.put_link("in", "a/f");
    session.workspace.put_link("out", "../secret");
    session.workspace.put_link("outdir", "/etc");
    assert_eq!(session.call_err("copy", json!({ "from": "outdir", "to": "cp" })).0, "path_escape");
    assert_eq!(session.call_err("write", json!({ "path": "out", "content": "x" })).0, "path_escape");
    session.call_ok("copy", json!({ "from": "in", "to": "g" }));
    assert_eq!(session.file_text("g").as_deref(), Some("one\n"));
    let version = session.file_version("a/f").unwrap();
    assert_eq!(
        session.call_ok("write", json!({ "path": "in", "content": "two\n", "base": version }))["path"],
        json!("a/f")
    );
    assert_eq!(session.file_text("a/f").as_deref(), Some("two\n"));
    assert_eq!(session.call_err("move", json!({ "from": "g", "to": "in", "overwrite": true })).0, "exists");
    session.call_ok("remove", json!({ "path": "in" }));
    assert_eq!(session.file_text("a/f").as_deref(), Some("two\n"));
}

#[test]
fn unreadable_files_cannot_be_moved_to_readable_paths() {
    let fixture = EngineFixture::with_files(&[("sec/s", "secret\n"), ("sec/b/x", "secret\n"), ("pub/p", "p\n")]);
    let rel_path = |wire: &str| vec![stead_path::RelPath::from_wire(wire).unwrap()];
    let grants = stead_engine::Grants { readable: rel_path("pub"), ..stead_engine::Grants::default() };
    let caller = stead_engine::Caller { grants, ..agent("narrow") };
    let refused = |operation: &str, arguments: serde_json::Value| {
        fixture.call_as(&caller, operation, arguments).map(|_| ()).unwrap_err().kind
    };
    assert_eq!(refused("move", json!({ "from": "sec/s", "to": "pub/c" })), ErrorKind::OutOfScope);
    assert_eq!(refused("move", json!({ "from": "sec", "to": "pub/sec" })), ErrorKind::OutOfScope);
    let patch = "*** Begin Patch\n*** Move File: sec/s -> pub/c\n*** End Patch\n";
    assert_eq!(refused("patch", json!({ "patch": patch })), ErrorKind::OutOfScope);
    let removed = fixture.call_as(&caller, "remove", json!({ "path": "sec/s" })).unwrap().json["trash"].clone();
    assert_eq!(refused("restore", json!({ "trash": removed, "to": "pub/r" })), ErrorKind::OutOfScope);
    fixture.call_as(&caller, "restore", json!({ "trash": removed })).unwrap();
    let stale = fixture
        .call_as(&caller, "write", json!({ "path": "sec/s", "content": "x", "base": "0".repeat(64) }))
        .unwrap_err();
    assert_eq!(stale.kind, ErrorKind::Stale);
    assert!(!stale.details.contains_key("version"), "{stale:?}");
}
