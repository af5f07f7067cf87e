//! Tests one call of each operation and the files on disk after the call.

use serde_json::json;
use stead_engine::{
    ErrorKind,
    ops::{MoveArgs, RestoreFromTrashArgs},
};
use stead_local::LocalWorkspace;
use testkit::native::run_operation;

use crate::support::{LocalFixture, test_options};

#[test]
fn writes_are_stored_recorded_and_undone() {
    let fixture = LocalFixture::new();
    let first = fixture.call_ok("write", json!({ "path": "a/b.txt", "content": "one\n" }));
    assert_eq!(fixture.text_on_disk("a/b.txt").as_deref(), Some("one\n"));
    let second = fixture.call_ok("write", json!({ "path": "a/b.txt", "content": "two\n", "base": first["version"] }));
    assert_eq!(fixture.text_on_disk("a/b.txt").as_deref(), Some("two\n"));
    fixture.call_err("write", json!({ "path": "a/b.txt", "content": "x", "base": first["version"] }), ErrorKind::Stale);
    fixture.call_err("write", json!({ "path": "a/b.txt", "content": "x" }), ErrorKind::BaseRequired);
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.text_on_disk("a/b.txt").as_deref(), Some("one\n"));
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.text_on_disk("a/b.txt"), None);
    fixture.call_ok("redo", json!({}));
    fixture.call_ok("redo", json!({}));
    assert_eq!(fixture.text_on_disk("a/b.txt").as_deref(), Some("two\n"));
    assert_eq!(second["rev"], json!(format!("r{}", second["entry"])));
    let report = fixture.workspace.verify_journal(None, &[]).unwrap();
    assert_eq!(report.integrity_error, None);
    assert!(report.entries >= 8, "{report:?}");
}

#[test]
fn trashed_items_are_restored_after_a_restart() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("d/one", "1");
    fixture.write_on_disk("d/two/three", "3");
    fixture.call_err("remove", json!({ "path": "d" }), ErrorKind::NotEmpty);
    let removed = fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
    assert_eq!(fixture.text_on_disk("d/one"), None);
    let fixture = fixture.reopen();
    fixture.call_ok("restore", json!({ "trash": removed["trash"] }));
    assert_eq!(fixture.text_on_disk("d/two/three").as_deref(), Some("3"));
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.text_on_disk("d/one"), None);
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.text_on_disk("d/one").as_deref(), Some("1"));
}

#[test]
fn moves_and_copies_include_trees_and_retain_replaced_files() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("d/one", "1");
    fixture.write_on_disk("f", "old");
    fixture.write_on_disk("g", "new");
    fixture.call_ok("copy", json!({ "from": "d", "to": "e" }));
    assert_eq!(fixture.text_on_disk("e/one").as_deref(), Some("1"));
    fixture.call_ok("move", json!({ "from": "d", "to": "x/y" }));
    assert_eq!((fixture.text_on_disk("x/y/one").as_deref(), fixture.text_on_disk("d/one")), (Some("1"), None));
    fixture.call_err("move", json!({ "from": "g", "to": "f" }), ErrorKind::Exists);
    fixture.call_ok("move", json!({ "from": "g", "to": "f", "overwrite": true }));
    assert_eq!((fixture.text_on_disk("f").as_deref(), fixture.text_on_disk("g")), (Some("new"), None));
    fixture.call_ok("undo", json!({}));
    assert_eq!(
        (fixture.text_on_disk("f").as_deref(), fixture.text_on_disk("g").as_deref()),
        (Some("old"), Some("new"))
    );
}

#[test]
fn large_files_are_retained_by_inode_and_restored() {
    let fixture = LocalFixture::new();
    let old = "a".repeat(200_000);
    let new = "b".repeat(300_000);
    let first = fixture.call_ok("write", json!({ "path": "big", "content": old }));
    fixture.call_ok("write", json!({ "path": "big", "content": new, "base": first["rev"] }));
    assert_eq!(fixture.text_on_disk("big").map(|text| text.len()), Some(300_000));
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.text_on_disk("big"), Some(old));
}

#[test]
fn every_call_is_one_entry_after_a_restart() {
    let fixture = LocalFixture::new();
    fixture.call_ok("write", json!({ "path": "f", "content": "x" }));
    fixture.call_ok("read", json!({ "path": "f" }));
    fixture.call_err("read", json!({ "path": "../f" }), ErrorKind::InvalidPath);
    fixture.call_ok("list", json!({}));
    let fixture = fixture.reopen();
    let report = fixture.workspace.verify_journal(None, &[]).unwrap();
    assert_eq!((report.entries, report.covered_by_checkpoint, report.integrity_error), (4, 4, None));
}

#[test]
fn replaced_files_go_to_the_trash_if_requested() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("f", "old");
    fixture.write_on_disk("g", "new");
    let over = || {
        let (from, to) = ("g".to_owned(), "f".to_owned());
        let arguments = MoveArgs { from, to, overwrite: true, trash_overwritten: true, ..MoveArgs::default() };
        run_operation(&fixture.engine, &fixture.caller, arguments).unwrap().trash
    };
    let moved = over();
    assert_eq!((fixture.text_on_disk("f").as_deref(), fixture.text_on_disk("g")), (Some("new"), None));
    fixture.call_ok("undo", json!({}));
    assert_eq!(
        (fixture.text_on_disk("f").as_deref(), fixture.text_on_disk("g").as_deref()),
        (Some("old"), Some("new"))
    );
    fixture.call_ok("redo", json!({}));
    assert_eq!((fixture.text_on_disk("f").as_deref(), fixture.text_on_disk("g")), (Some("new"), None));
    fixture.call_ok("undo", json!({}));
    let again = over();
    assert_ne!(moved, again);
    let back = fixture.call_ok("restore", json!({ "trash": again, "to": "h" }));
    assert_eq!(fixture.text_on_disk("h").as_deref(), Some("old"));
    assert_eq!(
        back["version"],
        json!(stead_engine::Version::hash_bytes(b"old").to_string()),
        "a removal records the version"
    );
    assert_eq!(fixture.workspace.verify_journal(None, &[]).unwrap().integrity_error, None);
}

#[test]
fn restore_replaces_a_file_and_undo_reverts_both() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("a.txt", "old");
    let removed = fixture.call_ok("remove", json!({ "path": "a.txt" }));
    fixture.write_on_disk("a.txt", "new");
    fixture.call_err("restore", json!({ "trash": removed["trash"] }), ErrorKind::Exists);
    let trash = removed["trash"].as_str().unwrap().to_owned();
    let arguments = RestoreFromTrashArgs { trash, to: None, trash_existing: true };
    let restored = run_operation(&fixture.engine, &fixture.caller, arguments).unwrap();
    assert_eq!(fixture.text_on_disk("a.txt").as_deref(), Some("old"));
    fixture.call_ok("undo", json!({ "entry": restored.recorded.entry }));
    assert_eq!(fixture.text_on_disk("a.txt").as_deref(), Some("new"), "what had made way is back");
    fixture.call_ok("redo", json!({}));
    assert_eq!(fixture.text_on_disk("a.txt").as_deref(), Some("old"));
    let fixture = fixture.reopen();
    assert_eq!(fixture.text_on_disk("a.txt").as_deref(), Some("old"));
    assert_eq!(fixture.workspace.verify_journal(None, &[]).unwrap().integrity_error, None);
}

/// SQLite does not wait while a connection switches a new database to a write-ahead log.
#[test]
fn new_state_directory_is_opened_by_many_at_once() {
    const ROUNDS: usize = 100;
    const OPENERS: usize = 3;
    for round in 0..ROUNDS {
        let directory = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(OPENERS);
        let ids: Vec<String> = std::thread::scope(|scope| {
            let open = || {
                barrier.wait();
                let workspace = LocalWorkspace::open(test_options(&directory)).unwrap();
                stead_engine::Tree::profile(&*workspace).id.clone()
            };
            let openers: Vec<_> = (0..OPENERS).map(|_| scope.spawn(open)).collect();
            openers.into_iter().map(|opener| opener.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "round {round}: one workspace, several ids: {ids:?}");
    }
}
