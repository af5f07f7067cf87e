//! Tests of the operations `undo` and `redo`.

use serde_json::{Value, json};
use stead_engine::{BytesToRead, CallerAccessMode, Grants, Workspace};
use stead_path::RelPath;

use crate::session_fixture::{SessionFixture, rel_path};

const FIVE_LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

fn skipped_paths(outcome: &serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    outcome["kept"].as_array().unwrap().iter().map(|item| (text(item, "path"), text(item, "reason"))).collect()
}

#[test]
fn undo_reverts_and_redo_reapplies() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    session.write_file("f", "two");
    session.write_file("f", "three");
    let text = || session.file_text("f");
    assert_eq!(session.call_ok("undo", json!({}))["undone"], json!(3));
    assert_eq!(text().as_deref(), Some("two"));
    assert_eq!(session.call_ok("undo", json!({}))["undone"], json!(2));
    assert_eq!(text().as_deref(), Some("one"));
    assert_eq!(session.call_ok("undo", json!({}))["undone"], json!(1));
    assert_eq!(text(), None);
    assert_eq!(session.call_err("undo", json!({})).0, "nothing_to_do");
    assert_eq!(session.call_ok("redo", json!({}))["redone"], json!(1));
    assert_eq!(text().as_deref(), Some("one"));
    assert_eq!(session.call_ok("redo", json!({}))["redone"], json!(2));
    assert_eq!(session.call_ok("redo", json!({}))["redone"], json!(3));
    assert_eq!(text().as_deref(), Some("three"));
    assert_eq!(session.call_err("redo", json!({})).0, "nothing_to_do");
    assert_eq!(session.call_ok("undo", json!({}))["undone"], json!(3));
    assert_eq!(text().as_deref(), Some("two"));
}

#[test]
fn removal_can_be_undone_and_redone_repeatedly() {
    let session = SessionFixture::new();
    session.write_file("d/f", "one");
    session.write_file("d/g", "two");
    session.call_ok("remove", json!({ "path": "d", "recursive": true }));
    for _ in 0..3 {
        session.call_ok("undo", json!({}));
        assert_eq!(
            (session.file_text("d/f").as_deref(), session.file_text("d/g").as_deref()),
            (Some("one"), Some("two"))
        );
        session.call_ok("redo", json!({}));
        assert!(!session.exists("d"));
    }
}

#[test]
fn undoing_an_undo_reapplies_the_entry() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    let undo = session.call_ok("undo", json!({ "entry": "r1" }));
    assert_eq!((session.file_text("f"), skipped_paths(&undo)), (None, vec![]));
    let again = session.call_ok("undo", json!({ "entry": undo["entry"] }));
    assert_eq!((&again["redone"], session.file_text("f").as_deref()), (&json!(1), Some("one")));
    assert_eq!(session.call_err("undo", json!({ "entry": undo["entry"] })).0, "nothing_to_do");
    // Undoing the redo finds the file in the trash, where the redo moved it as a new item.
    assert_eq!(session.call_ok("undo", json!({ "entry": again["entry"] }))["undone"], json!(1));
    assert_eq!(session.file_text("f"), None);
    assert_eq!(session.call_ok("redo", json!({ "entry": 1 }))["redone"], json!(1));
    assert_eq!(session.file_text("f").as_deref(), Some("one"));
}

#[test]
fn undo_merges_later_edits_of_other_lines() {
    let session = SessionFixture::new();
    session.write_file("f", FIVE_LINES);
    session.write_file("f", &FIVE_LINES.replace("one", "ONE"));
    session.with_principal("agent:b").write_file("f", &FIVE_LINES.replace("one", "ONE").replace("five", "FIVE"));
    let outcome = session.call_ok("undo", json!({}));
    assert_eq!((&outcome["undone"], &outcome["merged"]), (&json!(2), &json!(["f"])));
    assert_eq!(session.file_text("f"), Some(FIVE_LINES.replace("five", "FIVE")));
    assert_eq!(session.call_ok("redo", json!({}))["redone"], json!(2));
    assert_eq!(session.file_text("f"), Some(FIVE_LINES.replace("one", "ONE").replace("five", "FIVE")));
}

#[test]
fn undo_keeps_later_edit_of_same_lines() {
    let session = SessionFixture::new();
    session.write_file("f", FIVE_LINES);
    session.write_file("f", &FIVE_LINES.replace("one", "ONE"));
    session.with_principal("agent:b").write_file("f", &FIVE_LINES.replace("one", "first"));
    let (kind, error) = session.call_err("undo", json!({}));
    assert_eq!(kind, "conflict");
    assert_eq!(error.details["kept"][0]["path"], json!("f"));
    assert!(error.details["kept"][0]["reason"].as_str().unwrap().contains("same lines"));
    assert_eq!(session.file_text("f"), Some(FIVE_LINES.replace("one", "first")));
}

#[test]
fn files_changed_since_are_skipped_individually() {
    let session = SessionFixture::new();
    session.write_file("d/a", "a");
    session.write_file("d/b", "b");
    session.call_ok("copy", json!({ "from": "d", "to": "e" }));
    session.with_principal("agent:b").write_file("e/a", "changed");
    session.with_principal("agent:b").write_file("e/new", "new");
    let preview = session.call_ok("undo", json!({ "dry_run": true }));
    assert_eq!(preview["dry_run"], json!(true));
    assert_eq!(session.file_text("e/b").as_deref(), Some("b"));
    let outcome = session.call_ok("undo", json!({}));
    assert_eq!(
        skipped_paths(&outcome),
        [("e/a".to_owned(), "it was changed since".to_owned()), ("e".to_owned(), "it is not empty".to_owned()),]
    );
    assert_eq!(outcome["changed"], json!([{ "path": "e/b", "kind": "remove" }]));
    assert_eq!(preview["changed"], outcome["changed"]);
    assert_eq!(preview["kept"], outcome["kept"]);
    assert_eq!((session.file_text("e/a").as_deref(), session.file_text("e/b")), (Some("changed"), None));
    session.call_ok("redo", json!({}));
    assert_eq!(
        (session.file_text("e/a").as_deref(), session.file_text("e/b").as_deref()),
        (Some("changed"), Some("b"))
    );
}

#[test]
fn redo_is_rejected_only_after_write_to_same_file() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    session.write_file("f", "two");
    session.call_ok("undo", json!({}));
    session.write_file("other", "x");
    session.call_ok("redo", json!({ "dry_run": true }));
    session.write_file("f", "three");
    assert_eq!(session.call_err("redo", json!({})).0, "conflict");
    assert_eq!(session.file_text("f").as_deref(), Some("three"));
}

#[test]
fn agent_can_undo_its_own_entries_and_person_any() {
    let session = SessionFixture::new();
    let (other, user) = (session.with_principal("agent:b"), session.with_principal("user:u"));
    session.write_file("mine", "1");
    other.write_file("theirs", "2");
    assert_eq!(session.call_err("undo", json!({ "entry": 2 })).0, "not_owner");
    assert_eq!(session.call_ok("undo", json!({}))["undone"], json!(1));
    assert_eq!(session.file_text("theirs").as_deref(), Some("2"));
    assert_eq!(user.call_ok("undo", json!({}))["undone"], json!(2));
    assert_eq!(session.file_text("theirs"), None);
    // An agent may not redo a change that a person undid.
    assert_eq!(other.call_err("redo", json!({})).0, "nothing_to_do");
    assert_eq!(other.call_err("redo", json!({ "entry": 2 })).0, "not_owner");
    assert_eq!(user.call_ok("redo", json!({}))["redone"], json!(2));
    assert_eq!(user.call_ok("redo", json!({}))["redone"], json!(1));
}

#[test]
fn undo_of_removal_needs_a_free_path() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    session.call_ok("remove", json!({ "path": "f" }));
    session.with_principal("agent:b").write_file("f", "taken");
    let (kind, error) = session.call_err("undo", json!({}));
    assert_eq!((kind, &error.details["kept"][0]["reason"]), ("conflict", &json!("something else is there now")));
    assert_eq!(session.file_text("f").as_deref(), Some("taken"));
}

#[test]
fn undo_recreates_missing_parents() {
    let session = SessionFixture::new();
    session.write_file("d/e/f", "one");
    let removed = session.call_ok("remove", json!({ "path": "d/e/f" }))["entry"].clone();
    session.call_ok("remove", json!({ "path": "d", "recursive": true }));
    session.call_ok("undo", json!({ "entry": removed }));
    assert_eq!(session.file_text("d/e/f").as_deref(), Some("one"));
    session.call_ok("redo", json!({ "entry": removed }));
    assert!(!session.exists("d"));
}

#[test]
fn undo_skips_path_whose_directory_became_a_file() {
    let session = SessionFixture::new();
    session.write_file("d/f", "one");
    session.write_file("d/f", "two");
    let write = session.head_entry();
    session.call_ok("remove", json!({ "path": "d", "recursive": true }));
    session.write_file("d", "a file now");
    let (kind, error) = session.call_err("undo", json!({ "entry": write }));
    assert_eq!((kind, error.details["kept"].as_array().map(Vec::len)), ("conflict", Some(1)));
    assert_eq!(session.file_text("d").as_deref(), Some("a file now"));
}

#[test]
fn entry_arguments_are_parsed_strictly() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    session.call_ok("read", json!({ "path": "f" }));
    assert_eq!(session.call_err("undo", json!({ "entry": "nonsense" })).0, "bad_request");
    assert_eq!(session.call_err("undo", json!({ "entry": true })).0, "bad_request");
    assert_eq!(session.call_err("undo", json!({ "entry": 999 })).0, "not_found");
    assert_eq!(session.call_err("undo", json!({ "entry": 2 })).0, "nothing_to_do");
    assert_eq!(session.call_err("redo", json!({ "entry": "r1" })).0, "nothing_to_do");
    assert_eq!(session.call_ok("undo", json!({ "entry": "1" }))["undone"], json!(1));
    assert_eq!(session.call_err("undo", json!({ "entry": 1 })).0, "nothing_to_do");
}

#[test]
fn policy_applies_to_undo() {
    let session = SessionFixture::new();
    session.write_file("in/f", "one");
    session.write_file("out/f", "one");
    let scope = vec![RelPath::from_wire("in").unwrap()];
    let narrow = Grants { writable: scope, ..Grants::default() };
    assert_eq!(session.with_grants(narrow).call_err("undo", json!({})).0, "out_of_scope");
    let looking = Grants { access: CallerAccessMode::ReadOnly, ..Grants::default() };
    assert_eq!(session.with_grants(looking).call_err("undo", json!({})).0, "read_only");
    session.with_principal("agent:b").call_ok("lock", json!({ "path": "out" }));
    assert_eq!(session.call_err("undo", json!({})).0, "locked");
    assert_eq!(session.file_text("out/f").as_deref(), Some("one"));
}

#[test]
fn expired_versions_are_reported() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    let first = session.workspace.read(&rel_path("f"), BytesToRead::VersionOnly).unwrap().version;
    session.write_file("f", "two");
    session.workspace.forget_version(&first);
    let (kind, error) = session.call_err("undo", json!({}));
    assert_eq!((kind, &error.details["kept"][0]["reason"]), ("expired", &json!("its old content is no longer stored")));
    assert_eq!(session.file_text("f").as_deref(), Some("two"));
}

#[test]
fn undo_skips_paths_redirected_by_links() {
    let session = SessionFixture::new();
    session.write_file("d/f", "one");
    session.write_file("d/f", "two");
    session.workspace.remove_silently("d");
    session.workspace.put_link("d", "../out");
    assert_eq!(session.call_err("undo", json!({})).0, "path_escape");
    session.workspace.remove_silently("d");
    session.workspace.put_file("e/f", "two");
    session.workspace.put_link("d", "e");
    let (kind, error) = session.call_err("undo", json!({}));
    assert_eq!(kind, "conflict");
    assert!(error.details["kept"][0]["reason"].as_str().unwrap().contains("link"));
    assert_eq!(session.file_text("e/f").as_deref(), Some("two"));
}

#[test]
fn undo_never_loses_external_changes() {
    let session = SessionFixture::new();
    session.write_file("f", "one");
    session.workspace.put_file("f", "somebody else");
    assert_eq!(session.call_err("undo", json!({})).0, "conflict");
    assert_eq!(session.file_text("f").as_deref(), Some("somebody else"));
    session.workspace.remove_silently("f");
    let (kind, error) = session.call_err("undo", json!({}));
    assert_eq!((kind, &error.details["kept"][0]["reason"]), ("conflict", &json!("it is already gone")));
}

#[test]
fn undo_does_not_restore_setuid_bits() {
    let session = SessionFixture::new();
    session.workspace.put_file("f", "one");
    session.workspace.put_file("g", "two");
    session.workspace.set_mode("g", 0o4755);
    session.call_ok("move", json!({ "from": "f", "to": "g", "overwrite": true }));
    session.call_ok("undo", json!({}));
    assert_eq!((session.file_text("g").as_deref(), session.workspace.mode("g")), (Some("two"), Some(0o755)));
    session.call_ok("copy", json!({ "from": "g", "to": "h" }));
    assert_eq!(session.workspace.mode("h"), Some(0o755));
}
