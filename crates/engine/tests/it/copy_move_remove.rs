//! Tests of the operations `copy`, `move`, `remove` and `restore`.

use serde_json::json;
use stead_engine::ErrorKind;
use testkit::hint_text;
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, agent, user},
};

#[test]
fn a_file_is_copied() {
    let fixture = EngineFixture::new();
    let version = fixture.write("f", "one\n");
    let outcome = fixture.call_ok("copy", json!({ "from": "f", "to": "d/g" }));
    assert_eq!((&outcome["version"], &outcome["created"]), (&json!(version), &json!(true)));
    assert_eq!((fixture.read_text("f"), fixture.read_text("d/g")), (Some("one\n".into()), Some("one\n".into())));
    fixture.write("f", "two\n");
    fixture.call_err("copy", json!({ "from": "f", "to": "d/g" }), ErrorKind::Exists);
    fixture.call_err("copy", json!({ "from": "f", "to": "d", "overwrite": true }), ErrorKind::Exists);
    fixture.call_err("copy", json!({ "from": "f", "to": "h", "base": version }), ErrorKind::Stale);
    fixture.call_err("copy", json!({ "from": "none", "to": "h" }), ErrorKind::NotFound);
    fixture.call_err("copy", json!({ "from": "f", "to": "f/g" }), ErrorKind::NotDirectory);
    let over = fixture.call_ok("copy", json!({ "from": "f", "to": "d/g", "overwrite": true }));
    assert_eq!((&over["created"], fixture.read_text("d/g").as_deref()), (&json!(false), Some("two\n")));
    assert_eq!(
        fixture.call_ok("copy", json!({ "from": "f", "to": "d/g", "overwrite": true }))["changed"],
        json!(false)
    );
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.read_text("d/g").as_deref(), Some("one\n"));
}

#[test]
fn tree_copy_skips_uncopyable_entries() {
    let fixture = EngineFixture::new();
    fixture.write("d/a", "a");
    fixture.write("d/sub/b", "bb");
    fixture.workspace.put_link("d/in", "sub/b");
    fixture.workspace.put_link("d/out", "../../../out");
    fixture.workspace.put_special("d/pipe");
    let outcome = fixture.call_ok("copy", json!({ "from": "d", "to": "n/cp" }));
    assert_eq!((&outcome["files"], &outcome["directories"]), (&json!(3), &json!(2)));
    assert_eq!((fixture.read_text("n/cp/a"), fixture.read_text("n/cp/sub/b")), (Some("a".into()), Some("bb".into())));
    assert!(fixture.exists("n/cp/in") && !fixture.exists("n/cp/out") && !fixture.exists("n/cp/pipe"));
    let skipped: Vec<&str> =
        outcome["skipped"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["d/out", "d/pipe"]);
    fixture.call_err("copy", json!({ "from": "d", "to": "n/cp" }), ErrorKind::Exists);
    fixture.call_err("copy", json!({ "from": "d", "to": "d/sub/c" }), ErrorKind::InvalidPath);
    fixture.call_err("copy", json!({ "from": "d/pipe", "to": "p" }), ErrorKind::NotRegular);

    fixture.call_ok("undo", json!({}));
    assert!(!fixture.exists("n"));
    fixture.call_ok("redo", json!({}));
    assert_eq!(fixture.read_text("n/cp/sub/b").as_deref(), Some("bb"));
    assert!(fixture.exists("n/cp/in"));
}

#[test]
fn root_can_be_copied_into_itself() {
    let fixture = EngineFixture::new();
    fixture.write("f", "x");
    fixture.write("d/g", "y");
    fixture.call_ok("copy", json!({ "from": ".", "to": "cp" }));
    assert_eq!((fixture.read_text("cp/f"), fixture.read_text("cp/d/g")), (Some("x".into()), Some("y".into())));
    assert!(!fixture.exists("cp/cp"));
}

#[test]
fn a_file_is_moved() {
    let fixture = EngineFixture::new();
    let version = fixture.write("f", "one\n");
    fixture.write("g", "two\n");
    fixture.call_err("move", json!({ "from": "f", "to": "g" }), ErrorKind::Exists);
    let error = fixture.call_err("move", json!({ "from": "d/missing", "to": "h" }), ErrorKind::NotFound);
    assert!(hint_text(&error).contains("list with path d"));
    fixture.call_err("move", json!({ "from": "g", "to": "h", "base": version }), ErrorKind::Stale);
    assert_eq!(fixture.call_ok("move", json!({ "from": "f", "to": "f" }))["changed"], json!(false));
    fixture.call_err("move", json!({ "from": ".", "to": "x" }), ErrorKind::InvalidPath);
    let outcome = fixture.call_ok("move", json!({ "from": "f", "to": "new/place", "base": version }));
    assert_eq!((&outcome["version"], &outcome["path"]), (&json!(version), &json!("new/place")));
    assert_eq!((fixture.read_text("f"), fixture.read_text("new/place")), (None, Some("one\n".into())));
    fixture.call_ok("undo", json!({}));
    assert_eq!((fixture.read_text("f").as_deref(), fixture.exists("new")), (Some("one\n"), false));
    fixture.call_ok("redo", json!({}));
    assert_eq!((fixture.read_text("f"), fixture.read_text("new/place")), (None, Some("one\n".into())));
}

#[test]
fn move_over_file_is_undone_completely() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one\n");
    fixture.write("g", "two\n");
    let outcome = fixture.call_ok("move", json!({ "from": "f", "to": "g", "overwrite": true }));
    assert_eq!((&outcome["replaced"], fixture.read_text("g").as_deref()), (&json!(true), Some("one\n")));
    fixture.call_ok("undo", json!({}));
    assert_eq!((fixture.read_text("f").as_deref(), fixture.read_text("g").as_deref()), (Some("one\n"), Some("two\n")));
    fixture.call_ok("redo", json!({}));
    assert_eq!((fixture.read_text("f"), fixture.read_text("g").as_deref()), (None, Some("one\n")));
    fixture.call_ok("undo", json!({}));
    assert_eq!((fixture.read_text("f").as_deref(), fixture.read_text("g").as_deref()), (Some("one\n"), Some("two\n")));
}

#[test]
fn directory_can_be_moved_but_not_into_itself() {
    let fixture = EngineFixture::new();
    fixture.write("d/a", "a");
    fixture.write("d/sub/b", "b");
    fixture.write("e/x", "x");
    fixture.call_err("move", json!({ "from": "d", "to": "d/sub/d" }), ErrorKind::InvalidPath);
    fixture.call_err("move", json!({ "from": "d", "to": "e", "overwrite": true }), ErrorKind::Exists);
    fixture.call_err("move", json!({ "from": "e/x", "to": "d", "overwrite": true }), ErrorKind::Exists);
    let outcome = fixture.call_ok("move", json!({ "from": "d", "to": "e/d" }));
    assert_eq!((&outcome["files"], &outcome["bytes"]), (&json!(2), &json!(2)));
    assert_eq!(fixture.read_text("e/d/sub/b").as_deref(), Some("b"));
    fixture.write("e/d/a", "changed since");
    fixture.call_ok("undo", json!({ "entry": outcome["rev"] }));
    assert_eq!((fixture.read_text("d/a").as_deref(), fixture.exists("e/d")), (Some("changed since"), false));
}

#[test]
fn symlink_itself_is_moved_and_removed() {
    let fixture = EngineFixture::new();
    fixture.workspace.put_link("abs", "/etc/passwd");
    fixture.call_ok("move", json!({ "from": "abs", "to": "abs2" }));
    let outcome = fixture.call_ok("remove", json!({ "path": "abs2" }));
    assert!(!fixture.exists("abs2"));
    fixture.call_ok("restore", json!({ "trash": outcome["trash"] }));
    assert!(fixture.exists("abs2"));
}

#[test]
fn moving_a_tree_cannot_create_protected_paths() {
    let fixture = EngineFixture::new();
    fixture.write("x/workflows/ci.yml", "evil");
    fixture.call_err("move", json!({ "from": "x", "to": ".github" }), ErrorKind::ApprovalPending);
    fixture.call_err("copy", json!({ "from": "x", "to": ".github" }), ErrorKind::ApprovalPending);
    let trash = fixture.call_ok("remove", json!({ "path": "x", "recursive": true }))["trash"].clone();
    fixture.call_err("restore", json!({ "trash": trash, "to": ".github" }), ErrorKind::ApprovalPending);
    fixture.call_ok("restore", json!({ "trash": trash }));
    // An agent cannot create a workflow file by moving a directory, filling it and undoing the move.
    fixture.write(".github/notes", "plain");
    let moved = fixture.call_ok("move", json!({ "from": ".github", "to": "g" }))["rev"].clone();
    fixture.write("g/workflows/ci.yml", "evil");
    fixture.call_err("undo", json!({ "entry": moved }), ErrorKind::ApprovalPending);
    fixture.with_caller(&user("u")).call_ok("undo", json!({ "entry": moved }));
    assert!(fixture.exists(".github/workflows/ci.yml"));
}

#[test]
fn removed_files_can_be_restored() {
    let fixture = EngineFixture::new();
    fixture.write("d/a", "a");
    fixture.write("d/sub/b", "bb");
    fixture.call_err("remove", json!({ "path": "d" }), ErrorKind::NotEmpty);
    fixture.call_err("remove", json!({ "path": "nothing" }), ErrorKind::NotFound);
    fixture.call_err("remove", json!({ "path": "d/a", "permanent": true }), ErrorKind::BadRequest);
    fixture.call_err("remove", json!({ "path": "." , "recursive": true }), ErrorKind::InvalidPath);
    let outcome = fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
    assert_eq!((&outcome["files"], &outcome["bytes"]), (&json!(2), &json!(3)));
    assert!(outcome["recoverable_until"].as_str().unwrap().ends_with('Z'));
    assert!(!fixture.exists("d"));
    let restored = fixture.call_ok("restore", json!({ "trash": outcome["trash"] }));
    assert_eq!((&restored["path"], fixture.read_text("d/sub/b").as_deref()), (&json!("d"), Some("bb")));
    fixture.call_err("restore", json!({ "trash": outcome["trash"] }), ErrorKind::NotFound);
    fixture.call_ok("undo", json!({}));
    assert!(!fixture.exists("d"));
    fixture.call_ok("redo", json!({}));
    assert_eq!(fixture.read_text("d/a").as_deref(), Some("a"));
}

#[test]
fn stale_base_blocks_removal() {
    let fixture = EngineFixture::new();
    let old = fixture.write("f", "one");
    fixture.write("f", "two");
    fixture.call_err("remove", json!({ "path": "f", "base": old }), ErrorKind::Stale);
    fixture.call_ok("remove", json!({ "path": "f", "base": fixture.version("f") }));
}

#[test]
fn restore_never_overwrites_and_checks_owner() {
    let fixture = EngineFixture::new();
    fixture.write("d/f", "one");
    let trash = fixture.call_ok("remove", json!({ "path": "d/f" }))["trash"].clone();
    fixture.call_ok("remove", json!({ "path": "d" }));
    fixture.with_caller(&agent("b")).call_err("restore", json!({ "trash": trash }), ErrorKind::NotOwner);
    fixture.write("other", "x");
    fixture.call_err("restore", json!({ "trash": trash, "to": "other" }), ErrorKind::Exists);
    fixture.call_err("restore", json!({ "trash": "t999" }), ErrorKind::NotFound);
    let outcome = fixture.with_caller(&user("u")).call_ok("restore", json!({ "trash": trash }));
    assert_eq!((&outcome["path"], fixture.read_text("d/f").as_deref()), (&json!("d/f"), Some("one")));
}

#[test]
fn expired_trash_cannot_be_restored() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    let trash = fixture.call_ok("remove", json!({ "path": "f" }))["trash"].clone();
    fixture.workspace.advance_ms(stead_engine::limits::AGENT_TRASH_RETENTION_MS + 1);
    let error = fixture.call("restore", json!({ "trash": trash })).unwrap_err();
    assert!([ErrorKind::Expired, ErrorKind::NotFound].contains(&error.kind), "{error}");
    fixture.call_err("undo", json!({}), ErrorKind::Expired);
    assert!(!fixture.exists("f"));
}

#[test]
fn lease_inside_tree_blocks_the_whole_tree() {
    let fixture = EngineFixture::new();
    fixture.write("dir/x", "1");
    fixture.with_caller(&agent("b")).call_ok("lock", json!({ "path": "dir/x" }));
    fixture.call_err("move", json!({ "from": "dir", "to": "dir2" }), ErrorKind::Locked);
    fixture.call_err("remove", json!({ "path": "dir", "recursive": true }), ErrorKind::Locked);
    fixture.call_err("write", json!({ "path": "dir/x", "content": "2" }), ErrorKind::Locked);
    fixture.call_ok("copy", json!({ "from": "dir", "to": "dir2" }));
}

#[test]
fn links_are_followed_only_inside_the_workspace() {
    let fixture = EngineFixture::new();
    fixture.write("a/f", "one\n");
    fixture.workspace.put_link("in", "a/f");
    fixture.workspace.put_link("out", "../secret");
    fixture.workspace.put_link("outdir", "/etc");
    fixture.call_err("copy", json!({ "from": "outdir", "to": "cp" }), ErrorKind::PathEscape);
    fixture.call_err("write", json!({ "path": "out", "content": "x" }), ErrorKind::PathEscape);
    fixture.call_ok("copy", json!({ "from": "in", "to": "g" }));
    assert_eq!(fixture.read_text("g").as_deref(), Some("one\n"));
    let version = fixture.version("a/f").unwrap();
    assert_eq!(
        fixture.call_ok("write", json!({ "path": "in", "content": "two\n", "base": version }))["path"],
        json!("a/f")
    );
    assert_eq!(fixture.read_text("a/f").as_deref(), Some("two\n"));
    fixture.call_err("move", json!({ "from": "g", "to": "in", "overwrite": true }), ErrorKind::Exists);
    fixture.call_ok("remove", json!({ "path": "in" }));
    assert_eq!(fixture.read_text("a/f").as_deref(), Some("two\n"));
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
    let stale = fixture.with_caller(&caller).call_err(
        "write",
        json!({ "path": "sec/s", "content": "x", "base": "0".repeat(64) }),
        ErrorKind::Stale,
    );
    assert!(stale.details_json().get("version").is_none(), "{stale:?}");
}
