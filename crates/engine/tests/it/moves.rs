//! `copy`, `move`, `remove` and `restore`.

use engine::Kind;
use serde_json::json;

use crate::{
    desk::Desk,
    world::{World, agent},
};

#[test]
fn a_file_is_copied() {
    let desk = Desk::new();
    let version = desk.put("f", "one\n");
    let answer = desk.run("copy", json!({ "from": "f", "to": "d/g" }));
    assert_eq!((&answer["version"], &answer["created"]), (&json!(version), &json!(true)));
    assert_eq!((desk.text("f"), desk.text("d/g")), (Some("one\n".into()), Some("one\n".into())));
    desk.put("f", "two\n");
    assert_eq!(desk.fails("copy", json!({ "from": "f", "to": "d/g" })).0, "exists");
    assert_eq!(desk.fails("copy", json!({ "from": "f", "to": "d", "overwrite": true })).0, "exists");
    assert_eq!(desk.fails("copy", json!({ "from": "f", "to": "h", "base": version })).0, "stale");
    assert_eq!(desk.fails("copy", json!({ "from": "none", "to": "h" })).0, "not_found");
    assert_eq!(desk.fails("copy", json!({ "from": "f", "to": "f/g" })).0, "not_dir");
    let over = desk.run("copy", json!({ "from": "f", "to": "d/g", "overwrite": true }));
    assert_eq!((&over["created"], desk.text("d/g").as_deref()), (&json!(false), Some("two\n")));
    assert_eq!(
        desk.run("copy", json!({ "from": "f", "to": "d/g", "overwrite": true }))["changed"],
        json!(false)
    );
    desk.run("undo", json!({}));
    assert_eq!(desk.text("d/g").as_deref(), Some("one\n"));
}

#[test]
fn a_tree_is_copied_without_what_cannot_be() {
    let desk = Desk::new();
    desk.put("d/a", "a");
    desk.put("d/sub/b", "bb");
    desk.workspace.put_link("d/in", "sub/b");
    desk.workspace.put_link("d/out", "../../../out");
    desk.workspace.put_special("d/pipe");
    let answer = desk.run("copy", json!({ "from": "d", "to": "n/cp" }));
    assert_eq!((&answer["files"], &answer["directories"]), (&json!(3), &json!(2)));
    assert_eq!((desk.text("n/cp/a"), desk.text("n/cp/sub/b")), (Some("a".into()), Some("bb".into())));
    assert!(desk.exists("n/cp/in") && !desk.exists("n/cp/out") && !desk.exists("n/cp/pipe"));
    let skipped: Vec<&str> =
        answer["skipped"].as_array().unwrap().iter().map(|item| item["path"].as_str().unwrap()).collect();
    assert_eq!(skipped, ["d/out", "d/pipe"]);
    assert_eq!(desk.fails("copy", json!({ "from": "d", "to": "n/cp" })).0, "exists");
    assert_eq!(desk.fails("copy", json!({ "from": "d", "to": "d/sub/c" })).0, "invalid_path");
    assert_eq!(desk.fails("copy", json!({ "from": "d/pipe", "to": "p" })).0, "not_regular");

    desk.run("undo", json!({}));
    assert!(!desk.exists("n"));
    desk.run("redo", json!({}));
    assert_eq!(desk.text("n/cp/sub/b").as_deref(), Some("bb"));
    assert!(desk.exists("n/cp/in"));
}

#[test]
fn the_root_is_copied_beside_itself() {
    let desk = Desk::new();
    desk.put("f", "x");
    desk.put("d/g", "y");
    desk.run("copy", json!({ "from": ".", "to": "cp" }));
    assert_eq!((desk.text("cp/f"), desk.text("cp/d/g")), (Some("x".into()), Some("y".into())));
    assert!(!desk.exists("cp/cp"));
}

#[test]
fn a_file_is_moved() {
    let desk = Desk::new();
    let version = desk.put("f", "one\n");
    desk.put("g", "two\n");
    assert_eq!(desk.fails("move", json!({ "from": "f", "to": "g" })).0, "exists");
    let (kind, failure) = desk.fails("move", json!({ "from": "d/missing", "to": "h" }));
    assert_eq!((kind, failure.hint.unwrap().contains("list with path d")), ("not_found", true));
    let stale = desk.fails("move", json!({ "from": "g", "to": "h", "base": version }));
    assert_eq!(stale.0, "stale");
    assert_eq!(desk.run("move", json!({ "from": "f", "to": "f" }))["changed"], json!(false));
    assert_eq!(desk.fails("move", json!({ "from": ".", "to": "x" })).0, "invalid_path");
    let answer = desk.run("move", json!({ "from": "f", "to": "new/place", "base": version }));
    assert_eq!((&answer["version"], &answer["path"]), (&json!(version), &json!("new/place")));
    assert_eq!((desk.text("f"), desk.text("new/place")), (None, Some("one\n".into())));
    desk.run("undo", json!({}));
    assert_eq!((desk.text("f").as_deref(), desk.exists("new")), (Some("one\n"), false));
    desk.run("redo", json!({}));
    assert_eq!((desk.text("f"), desk.text("new/place")), (None, Some("one\n".into())));
}

#[test]
fn a_move_over_a_file_gives_both_back() {
    let desk = Desk::new();
    desk.put("f", "one\n");
    desk.put("g", "two\n");
    let answer = desk.run("move", json!({ "from": "f", "to": "g", "overwrite": true }));
    assert_eq!((&answer["replaced"], desk.text("g").as_deref()), (&json!(true), Some("one\n")));
    desk.run("undo", json!({}));
    assert_eq!((desk.text("f").as_deref(), desk.text("g").as_deref()), (Some("one\n"), Some("two\n")));
    desk.run("redo", json!({}));
    assert_eq!((desk.text("f"), desk.text("g").as_deref()), (None, Some("one\n")));
    desk.run("undo", json!({}));
    assert_eq!((desk.text("f").as_deref(), desk.text("g").as_deref()), (Some("one\n"), Some("two\n")));
}

#[test]
fn a_directory_moves_whole_and_never_into_itself() {
    let desk = Desk::new();
    desk.put("d/a", "a");
    desk.put("d/sub/b", "b");
    desk.put("e/x", "x");
    assert_eq!(desk.fails("move", json!({ "from": "d", "to": "d/sub/d" })).0, "invalid_path");
    assert_eq!(desk.fails("move", json!({ "from": "d", "to": "e", "overwrite": true })).0, "exists");
    assert_eq!(desk.fails("move", json!({ "from": "e/x", "to": "d", "overwrite": true })).0, "exists");
    let answer = desk.run("move", json!({ "from": "d", "to": "e/d" }));
    assert_eq!((&answer["files"], &answer["bytes"]), (&json!(2), &json!(2)));
    assert_eq!(desk.text("e/d/sub/b").as_deref(), Some("b"));
    desk.put("e/d/a", "changed since");
    desk.run("undo", json!({ "entry": answer["rev"] }));
    assert_eq!((desk.text("d/a").as_deref(), desk.exists("e/d")), (Some("changed since"), false));
}

#[test]
fn a_link_moves_and_goes_itself() {
    let desk = Desk::new();
    desk.workspace.put_link("abs", "/etc/passwd");
    desk.run("move", json!({ "from": "abs", "to": "abs2" }));
    let answer = desk.run("remove", json!({ "path": "abs2" }));
    assert!(!desk.exists("abs2"));
    desk.run("restore", json!({ "trash": answer["trash"] }));
    assert!(desk.exists("abs2"));
}

#[test]
fn no_protected_place_is_made_by_moving_a_tree() {
    let desk = Desk::new();
    desk.put("x/workflows/ci.yml", "evil");
    assert_eq!(desk.fails("move", json!({ "from": "x", "to": ".github" })).0, "approval_pending");
    assert_eq!(desk.fails("copy", json!({ "from": "x", "to": ".github" })).0, "approval_pending");
    let trash = desk.run("remove", json!({ "path": "x", "recursive": true }))["trash"].clone();
    assert_eq!(desk.fails("restore", json!({ "trash": trash, "to": ".github" })).0, "approval_pending");
    desk.run("restore", json!({ "trash": trash }));
    // Nor by moving an allowed one away, filling it, and taking the move back.
    desk.put(".github/notes", "plain");
    let moved = desk.run("move", json!({ "from": ".github", "to": "g" }))["rev"].clone();
    desk.put("g/workflows/ci.yml", "evil");
    assert_eq!(desk.fails("undo", json!({ "entry": moved })).0, "approval_pending");
    desk.and("user:u").run("undo", json!({ "entry": moved }));
    assert!(desk.exists(".github/workflows/ci.yml"));
}

#[test]
fn what_is_removed_comes_back() {
    let desk = Desk::new();
    desk.put("d/a", "a");
    desk.put("d/sub/b", "bb");
    assert_eq!(desk.fails("remove", json!({ "path": "d" })).0, "not_empty");
    assert_eq!(desk.fails("remove", json!({ "path": "nothing" })).0, "not_found");
    assert_eq!(desk.fails("remove", json!({ "path": "d/a", "permanent": true })).0, "bad_request");
    assert_eq!(desk.fails("remove", json!({ "path": "." , "recursive": true })).0, "invalid_path");
    let answer = desk.run("remove", json!({ "path": "d", "recursive": true }));
    assert_eq!((&answer["files"], &answer["bytes"]), (&json!(2), &json!(3)));
    assert!(answer["recoverable_until"].as_str().unwrap().ends_with('Z'));
    assert!(!desk.exists("d"));
    let restored = desk.run("restore", json!({ "trash": answer["trash"] }));
    assert_eq!((&restored["path"], desk.text("d/sub/b").as_deref()), (&json!("d"), Some("bb")));
    assert_eq!(desk.fails("restore", json!({ "trash": answer["trash"] })).0, "not_found");
    // Taking the restoring back puts it into the trash again.
    desk.run("undo", json!({}));
    assert!(!desk.exists("d"));
    desk.run("redo", json!({}));
    assert_eq!(desk.text("d/a").as_deref(), Some("a"));
}

#[test]
fn a_stale_base_removes_nothing() {
    let desk = Desk::new();
    let old = desk.put("f", "one");
    desk.put("f", "two");
    assert_eq!(desk.fails("remove", json!({ "path": "f", "base": old })).0, "stale");
    desk.run("remove", json!({ "path": "f", "base": desk.version("f") }));
}

#[test]
fn restoring_never_overwrites_and_knows_its_owner() {
    let desk = Desk::new();
    desk.put("d/f", "one");
    let trash = desk.run("remove", json!({ "path": "d/f" }))["trash"].clone();
    desk.run("remove", json!({ "path": "d" }));
    assert_eq!(desk.and("agent:b").fails("restore", json!({ "trash": trash })).0, "not_owner");
    desk.put("other", "x");
    assert_eq!(desk.fails("restore", json!({ "trash": trash, "to": "other" })).0, "exists");
    assert_eq!(desk.fails("restore", json!({ "trash": "t999" })).0, "not_found");
    let answer = desk.and("user:u").run("restore", json!({ "trash": trash }));
    assert_eq!((&answer["path"], desk.text("d/f").as_deref()), (&json!("d/f"), Some("one")));
}

#[test]
fn what_is_too_old_does_not_come_back() {
    let desk = Desk::new();
    desk.put("f", "one");
    let trash = desk.run("remove", json!({ "path": "f" }))["trash"].clone();
    desk.workspace.advance_ms(engine::limits::TRASH_AGENT_MS + 1);
    let kind = desk.fails("restore", json!({ "trash": trash })).0;
    assert!(["expired", "not_found"].contains(&kind), "{kind}");
    assert_eq!(desk.fails("undo", json!({})).0, "expired");
    assert!(!desk.exists("f"));
}

#[test]
fn a_lease_below_holds_the_whole_tree() {
    let desk = Desk::new();
    desk.put("dir/x", "1");
    desk.and("agent:b").run("lock", json!({ "path": "dir/x" }));
    assert_eq!(desk.fails("move", json!({ "from": "dir", "to": "dir2" })).0, "locked");
    assert_eq!(desk.fails("remove", json!({ "path": "dir", "recursive": true })).0, "locked");
    assert_eq!(desk.fails("write", json!({ "path": "dir/x", "content": "2" })).0, "locked");
    desk.run("copy", json!({ "from": "dir", "to": "dir2" }));
}

#[test]
fn links_are_followed_only_to_the_inside() {
    let desk = Desk::new();
    desk.put("a/f", "one\n");
    desk.workspace.put_link("in", "a/f");
    desk.workspace.put_link("out", "../secret");
    desk.workspace.put_link("outdir", "/etc");
    assert_eq!(desk.fails("copy", json!({ "from": "outdir", "to": "cp" })).0, "path_escape");
    assert_eq!(desk.fails("write", json!({ "path": "out", "content": "x" })).0, "path_escape");
    desk.run("copy", json!({ "from": "in", "to": "g" }));
    assert_eq!(desk.text("g").as_deref(), Some("one\n"));
    let version = desk.version("a/f").unwrap();
    assert_eq!(
        desk.run("write", json!({ "path": "in", "content": "two\n", "base": version }))["path"],
        json!("a/f")
    );
    assert_eq!(desk.text("a/f").as_deref(), Some("two\n"));
    assert_eq!(desk.fails("move", json!({ "from": "g", "to": "in", "overwrite": true })).0, "exists");
    desk.run("remove", json!({ "path": "in" }));
    assert_eq!(desk.text("a/f").as_deref(), Some("two\n"));
}

#[test]
fn what_may_not_be_read_does_not_come_to_where_it_may() {
    let world = World::with(&[("sec/s", "secret\n"), ("sec/b/x", "secret\n"), ("pub/p", "p\n")]);
    let place = |wire: &str| vec![path::RelPath::from_wire(wire).unwrap()];
    let grants = engine::Grants { readable: place("pub"), ..engine::Grants::default() };
    let caller = engine::Caller { grants, ..agent("narrow") };
    let refused = |operation: &str, arguments: serde_json::Value| {
        world.call_as(&caller, operation, arguments).map(|_| ()).unwrap_err().kind
    };
    assert_eq!(refused("move", json!({ "from": "sec/s", "to": "pub/c" })), Kind::OutOfScope);
    assert_eq!(refused("move", json!({ "from": "sec", "to": "pub/sec" })), Kind::OutOfScope);
    let patch = "*** Begin Patch\n*** Move File: sec/s -> pub/c\n*** End Patch\n";
    assert_eq!(refused("patch", json!({ "patch": patch })), Kind::OutOfScope);
    let removed = world.call_as(&caller, "remove", json!({ "path": "sec/s" })).unwrap().json["trash"].clone();
    assert_eq!(refused("restore", json!({ "trash": removed, "to": "pub/r" })), Kind::OutOfScope);
    world.call_as(&caller, "restore", json!({ "trash": removed })).unwrap();
    let stale = world
        .call_as(&caller, "write", json!({ "path": "sec/s", "content": "x", "base": "0".repeat(64) }))
        .unwrap_err();
    assert_eq!(stale.kind, Kind::Stale);
    assert!(!stale.facts.contains_key("version"), "{stale:?}");
}
