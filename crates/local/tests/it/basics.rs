//! One call of each kind, and what is on disk afterwards.

use engine::{Call, Replaced, Terms};
use serde_json::{Value, json};

use crate::support::Fixture;

#[test]
fn a_write_is_on_disk_recorded_and_undone() {
    let fixture = Fixture::new();
    let first = fixture.ok("write", json!({ "path": "a/b.txt", "content": "one\n" }));
    assert_eq!(fixture.text("a/b.txt").as_deref(), Some("one\n"));
    let second =
        fixture.ok("write", json!({ "path": "a/b.txt", "content": "two\n", "base": first["version"] }));
    assert_eq!(fixture.text("a/b.txt").as_deref(), Some("two\n"));
    assert_eq!(
        fixture.kind("write", json!({ "path": "a/b.txt", "content": "x", "base": first["version"] })),
        "stale"
    );
    assert_eq!(fixture.kind("write", json!({ "path": "a/b.txt", "content": "x" })), "base_required");
    fixture.ok("undo", json!({}));
    assert_eq!(fixture.text("a/b.txt").as_deref(), Some("one\n"));
    fixture.ok("undo", json!({}));
    assert_eq!(fixture.text("a/b.txt"), None);
    fixture.ok("redo", json!({}));
    fixture.ok("redo", json!({}));
    assert_eq!(fixture.text("a/b.txt").as_deref(), Some("two\n"));
    assert_eq!(second["rev"], json!(format!("r{}", second["entry"])));
    let report = fixture.workspace.verify_log(None, &[]).unwrap();
    assert_eq!(report.tamper, None);
    assert!(report.entries >= 8, "{report:?}");
}

#[test]
fn removed_things_come_back_after_a_restart() {
    let fixture = Fixture::new();
    fixture.put("d/one", "1");
    fixture.put("d/two/three", "3");
    assert_eq!(fixture.kind("remove", json!({ "path": "d" })), "not_empty");
    let removed = fixture.ok("remove", json!({ "path": "d", "recursive": true }));
    assert_eq!(fixture.text("d/one"), None);
    let fixture = fixture.reopen();
    fixture.ok("restore", json!({ "trash": removed["trash"] }));
    assert_eq!(fixture.text("d/two/three").as_deref(), Some("3"));
    fixture.ok("undo", json!({}));
    assert_eq!(fixture.text("d/one"), None);
    fixture.ok("undo", json!({}));
    assert_eq!(fixture.text("d/one").as_deref(), Some("1"));
}

#[test]
fn moves_and_copies_carry_trees_and_keep_what_they_replace() {
    let fixture = Fixture::new();
    fixture.put("d/one", "1");
    fixture.put("f", "old");
    fixture.put("g", "new");
    fixture.ok("copy", json!({ "from": "d", "to": "e" }));
    assert_eq!(fixture.text("e/one").as_deref(), Some("1"));
    fixture.ok("move", json!({ "from": "d", "to": "x/y" }));
    assert_eq!((fixture.text("x/y/one").as_deref(), fixture.text("d/one")), (Some("1"), None));
    assert_eq!(fixture.kind("move", json!({ "from": "g", "to": "f" })), "exists");
    fixture.ok("move", json!({ "from": "g", "to": "f", "overwrite": true }));
    assert_eq!((fixture.text("f").as_deref(), fixture.text("g")), (Some("new"), None));
    fixture.ok("undo", json!({}));
    assert_eq!((fixture.text("f").as_deref(), fixture.text("g").as_deref()), (Some("old"), Some("new")));
}

#[test]
fn large_files_are_kept_by_their_inode_and_come_back() {
    let fixture = Fixture::new();
    let old = "a".repeat(200_000);
    let new = "b".repeat(300_000);
    let first = fixture.ok("write", json!({ "path": "big", "content": old }));
    fixture.ok("write", json!({ "path": "big", "content": new, "base": first["rev"] }));
    assert_eq!(fixture.text("big").map(|text| text.len()), Some(300_000));
    fixture.ok("undo", json!({}));
    assert_eq!(fixture.text("big"), Some(old));
}

#[test]
fn every_call_is_one_entry_and_the_journal_survives() {
    let fixture = Fixture::new();
    fixture.ok("write", json!({ "path": "f", "content": "x" }));
    fixture.ok("read", json!({ "path": "f" }));
    fixture.kind("read", json!({ "path": "../f" }));
    fixture.ok("list", json!({}));
    let fixture = fixture.reopen();
    let report = fixture.workspace.verify_log(None, &[]).unwrap();
    assert_eq!((report.entries, report.covered, report.tamper), (4, 4, None));
}

#[test]
fn what_is_moved_over_goes_to_the_trash_where_the_terms_say_so() {
    let fixture = Fixture::new();
    fixture.put("f", "old");
    fixture.put("g", "new");
    let over = || {
        let arguments = json!({ "from": "g", "to": "f", "overwrite": true });
        let mut call = Call::new(&fixture.caller, "move", arguments.as_object().unwrap().clone());
        call.terms = Terms { replaced: Replaced::Trashed, ..Terms::default() };
        fixture.engine.call(&call).unwrap().json
    };
    let moved = over();
    assert_eq!((fixture.text("f").as_deref(), fixture.text("g")), (Some("new"), None));
    fixture.ok("undo", json!({}));
    assert_eq!((fixture.text("f").as_deref(), fixture.text("g").as_deref()), (Some("old"), Some("new")));
    fixture.ok("redo", json!({}));
    assert_eq!((fixture.text("f").as_deref(), fixture.text("g")), (Some("new"), None));
    fixture.ok("undo", json!({}));
    let again = over();
    assert_ne!(moved["trash"], again["trash"]);
    let back = fixture.ok("restore", json!({ "trash": again["trash"], "to": "h" }));
    assert_eq!(fixture.text("h").as_deref(), Some("old"));
    assert_eq!(
        back["version"],
        json!(engine::Version::of(b"old").to_string()),
        "a removal records the version"
    );
    assert_eq!(fixture.workspace.verify_log(None, &[]).unwrap().tamper, None);
}

#[test]
fn a_file_makes_way_for_one_from_the_trash_and_undo_turns_both_back() {
    let fixture = Fixture::new();
    fixture.put("a.txt", "old");
    let removed = fixture.ok("remove", json!({ "path": "a.txt" }));
    fixture.put("a.txt", "new");
    let arguments = json!({ "trash": removed["trash"] });
    assert_eq!(fixture.kind("restore", arguments.clone()), "exists");
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let mut call = engine::Call::new(&fixture.caller, "restore", arguments);
    call.terms.occupied = engine::Occupied::MakesWay;
    let restored = fixture.engine.call(&call).unwrap().json;
    assert_eq!(fixture.text("a.txt").as_deref(), Some("old"));
    fixture.ok("undo", json!({ "entry": restored["entry"] }));
    assert_eq!(fixture.text("a.txt").as_deref(), Some("new"), "what had made way is back");
    fixture.ok("redo", json!({}));
    assert_eq!(fixture.text("a.txt").as_deref(), Some("old"));
    let fixture = fixture.reopen();
    assert_eq!(fixture.text("a.txt").as_deref(), Some("old"));
    assert_eq!(fixture.workspace.verify_log(None, &[]).unwrap().tamper, None);
}
