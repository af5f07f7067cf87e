//! Tests of the operations `undo` and `redo`.

use serde_json::{Value, json};
use stead_engine::{BytesToRead, Caller, CallerAccessMode, ErrorKind, Grants, Tree};
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, agent, rel_path, user},
};

const FIVE_LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

fn skipped_paths(outcome: &serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    outcome["kept"].as_array().unwrap().iter().map(|item| (text(item, "path"), text(item, "reason"))).collect()
}

#[test]
fn undo_reverts_and_redo_reapplies() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    fixture.write("f", "two");
    fixture.write("f", "three");
    let text = || fixture.read_text("f");
    assert_eq!(fixture.call_ok("undo", json!({}))["undone"], json!(3));
    assert_eq!(text().as_deref(), Some("two"));
    assert_eq!(fixture.call_ok("undo", json!({}))["undone"], json!(2));
    assert_eq!(text().as_deref(), Some("one"));
    assert_eq!(fixture.call_ok("undo", json!({}))["undone"], json!(1));
    assert_eq!(text(), None);
    fixture.call_err("undo", json!({}), ErrorKind::NothingToDo);
    assert_eq!(fixture.call_ok("redo", json!({}))["redone"], json!(1));
    assert_eq!(text().as_deref(), Some("one"));
    assert_eq!(fixture.call_ok("redo", json!({}))["redone"], json!(2));
    assert_eq!(fixture.call_ok("redo", json!({}))["redone"], json!(3));
    assert_eq!(text().as_deref(), Some("three"));
    fixture.call_err("redo", json!({}), ErrorKind::NothingToDo);
    assert_eq!(fixture.call_ok("undo", json!({}))["undone"], json!(3));
    assert_eq!(text().as_deref(), Some("two"));
}

#[test]
fn removal_can_be_undone_and_redone_repeatedly() {
    let fixture = EngineFixture::new();
    fixture.write("d/f", "one");
    fixture.write("d/g", "two");
    fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
    for _ in 0..3 {
        fixture.call_ok("undo", json!({}));
        assert_eq!(
            (fixture.read_text("d/f").as_deref(), fixture.read_text("d/g").as_deref()),
            (Some("one"), Some("two"))
        );
        fixture.call_ok("redo", json!({}));
        assert!(!fixture.exists("d"));
    }
}

#[test]
fn undoing_an_undo_reapplies_the_entry() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    let undo = fixture.call_ok("undo", json!({ "entry": "r1" }));
    assert_eq!((fixture.read_text("f"), skipped_paths(&undo)), (None, vec![]));
    let again = fixture.call_ok("undo", json!({ "entry": undo["entry"] }));
    assert_eq!((&again["redone"], fixture.read_text("f").as_deref()), (&json!(1), Some("one")));
    fixture.call_err("undo", json!({ "entry": undo["entry"] }), ErrorKind::NothingToDo);
    // Undoing the redo finds the file in the trash, where the redo moved it as a new item.
    assert_eq!(fixture.call_ok("undo", json!({ "entry": again["entry"] }))["undone"], json!(1));
    assert_eq!(fixture.read_text("f"), None);
    assert_eq!(fixture.call_ok("redo", json!({ "entry": 1 }))["redone"], json!(1));
    assert_eq!(fixture.read_text("f").as_deref(), Some("one"));
}

#[test]
fn undo_merges_later_edits_of_other_lines() {
    let fixture = EngineFixture::new();
    fixture.write("f", FIVE_LINES);
    fixture.write("f", &FIVE_LINES.replace("one", "ONE"));
    fixture.with_caller(&agent("b")).write("f", &FIVE_LINES.replace("one", "ONE").replace("five", "FIVE"));
    let outcome = fixture.call_ok("undo", json!({}));
    assert_eq!((&outcome["undone"], &outcome["merged"]), (&json!(2), &json!(["f"])));
    assert_eq!(fixture.read_text("f"), Some(FIVE_LINES.replace("five", "FIVE")));
    assert_eq!(fixture.call_ok("redo", json!({}))["redone"], json!(2));
    assert_eq!(fixture.read_text("f"), Some(FIVE_LINES.replace("one", "ONE").replace("five", "FIVE")));
}

#[test]
fn undo_keeps_later_edit_of_same_lines() {
    let fixture = EngineFixture::new();
    fixture.write("f", FIVE_LINES);
    fixture.write("f", &FIVE_LINES.replace("one", "ONE"));
    fixture.with_caller(&agent("b")).write("f", &FIVE_LINES.replace("one", "first"));
    let error = fixture.call_err("undo", json!({}), ErrorKind::Conflict);
    assert_eq!(error.details_json()["kept"][0]["path"], json!("f"));
    assert!(error.details_json()["kept"][0]["reason"].as_str().unwrap().contains("same lines"));
    assert_eq!(fixture.read_text("f"), Some(FIVE_LINES.replace("one", "first")));
}

#[test]
fn files_changed_since_are_skipped_individually() {
    let fixture = EngineFixture::new();
    fixture.write("d/a", "a");
    fixture.write("d/b", "b");
    fixture.call_ok("copy", json!({ "from": "d", "to": "e" }));
    fixture.with_caller(&agent("b")).write("e/a", "changed");
    fixture.with_caller(&agent("b")).write("e/new", "new");
    let preview = fixture.call_ok("undo", json!({ "dry_run": true }));
    assert_eq!(preview["dry_run"], json!(true));
    assert_eq!(fixture.read_text("e/b").as_deref(), Some("b"));
    let outcome = fixture.call_ok("undo", json!({}));
    assert_eq!(
        skipped_paths(&outcome),
        [("e/a".to_owned(), "it was changed since".to_owned()), ("e".to_owned(), "it is not empty".to_owned()),]
    );
    assert_eq!(outcome["changed"], json!([{ "path": "e/b", "kind": "remove" }]));
    assert_eq!(preview["changed"], outcome["changed"]);
    assert_eq!(preview["kept"], outcome["kept"]);
    assert_eq!((fixture.read_text("e/a").as_deref(), fixture.read_text("e/b")), (Some("changed"), None));
    fixture.call_ok("redo", json!({}));
    assert_eq!(
        (fixture.read_text("e/a").as_deref(), fixture.read_text("e/b").as_deref()),
        (Some("changed"), Some("b"))
    );
}

#[test]
fn redo_is_rejected_only_after_write_to_same_file() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    fixture.write("f", "two");
    fixture.call_ok("undo", json!({}));
    fixture.write("other", "x");
    fixture.call_ok("redo", json!({ "dry_run": true }));
    fixture.write("f", "three");
    fixture.call_err("redo", json!({}), ErrorKind::Conflict);
    assert_eq!(fixture.read_text("f").as_deref(), Some("three"));
}

#[test]
fn agent_can_undo_its_own_entries_and_person_any() {
    let fixture = EngineFixture::new();
    let (other, user) = (fixture.with_caller(&agent("b")), fixture.with_caller(&user("u")));
    fixture.write("mine", "1");
    other.write("theirs", "2");
    fixture.call_err("undo", json!({ "entry": 2 }), ErrorKind::NotOwner);
    assert_eq!(fixture.call_ok("undo", json!({}))["undone"], json!(1));
    assert_eq!(fixture.read_text("theirs").as_deref(), Some("2"));
    assert_eq!(user.call_ok("undo", json!({}))["undone"], json!(2));
    assert_eq!(fixture.read_text("theirs"), None);
    // An agent may not redo a change that a person undid.
    other.call_err("redo", json!({}), ErrorKind::NothingToDo);
    other.call_err("redo", json!({ "entry": 2 }), ErrorKind::NotOwner);
    assert_eq!(user.call_ok("redo", json!({}))["redone"], json!(2));
    assert_eq!(user.call_ok("redo", json!({}))["redone"], json!(1));
}

#[test]
fn undo_of_removal_needs_a_free_path() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    fixture.call_ok("remove", json!({ "path": "f" }));
    fixture.with_caller(&agent("b")).write("f", "taken");
    let error = fixture.call_err("undo", json!({}), ErrorKind::Conflict);
    assert_eq!(error.details_json()["kept"][0]["reason"], json!("something else is there now"));
    assert_eq!(fixture.read_text("f").as_deref(), Some("taken"));
}

#[test]
fn undo_recreates_missing_parents() {
    let fixture = EngineFixture::new();
    fixture.write("d/e/f", "one");
    let removed = fixture.call_ok("remove", json!({ "path": "d/e/f" }))["entry"].clone();
    fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
    fixture.call_ok("undo", json!({ "entry": removed }));
    assert_eq!(fixture.read_text("d/e/f").as_deref(), Some("one"));
    fixture.call_ok("redo", json!({ "entry": removed }));
    assert!(!fixture.exists("d"));
}

#[test]
fn undo_skips_path_whose_directory_became_a_file() {
    let fixture = EngineFixture::new();
    fixture.write("d/f", "one");
    fixture.write("d/f", "two");
    let write = fixture.entry_count();
    fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
    fixture.write("d", "a file now");
    let error = fixture.call_err("undo", json!({ "entry": write }), ErrorKind::Conflict);
    assert_eq!(error.details_json()["kept"].as_array().map(Vec::len), Some(1));
    assert_eq!(fixture.read_text("d").as_deref(), Some("a file now"));
}

#[test]
fn entry_arguments_are_parsed_strictly() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    fixture.call_ok("read", json!({ "path": "f" }));
    fixture.call_err("undo", json!({ "entry": "nonsense" }), ErrorKind::BadRequest);
    fixture.call_err("undo", json!({ "entry": true }), ErrorKind::BadRequest);
    fixture.call_err("undo", json!({ "entry": 999 }), ErrorKind::NotFound);
    fixture.call_err("undo", json!({ "entry": 2 }), ErrorKind::NothingToDo);
    fixture.call_err("redo", json!({ "entry": "r1" }), ErrorKind::NothingToDo);
    assert_eq!(fixture.call_ok("undo", json!({ "entry": "1" }))["undone"], json!(1));
    fixture.call_err("undo", json!({ "entry": 1 }), ErrorKind::NothingToDo);
}

#[test]
fn policy_applies_to_undo() {
    let fixture = EngineFixture::new();
    fixture.write("in/f", "one");
    fixture.write("out/f", "one");
    let with_grants = |grants| fixture.with_caller(&Caller { grants, ..agent("one") });
    let narrow = Grants { writable: vec![rel_path("in")], ..Grants::default() };
    with_grants(narrow).call_err("undo", json!({}), ErrorKind::OutOfScope);
    let looking = Grants { access: CallerAccessMode::ReadOnly, ..Grants::default() };
    with_grants(looking).call_err("undo", json!({}), ErrorKind::ReadOnly);
    fixture.with_caller(&agent("b")).call_ok("lock", json!({ "path": "out" }));
    fixture.call_err("undo", json!({}), ErrorKind::Locked);
    assert_eq!(fixture.read_text("out/f").as_deref(), Some("one"));
}

#[test]
fn expired_versions_are_reported() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    let first = fixture.workspace.read(&rel_path("f"), BytesToRead::VersionOnly).unwrap().version;
    fixture.write("f", "two");
    fixture.workspace.forget_version(&first);
    let error = fixture.call_err("undo", json!({}), ErrorKind::Expired);
    assert_eq!(error.details_json()["kept"][0]["reason"], json!("its old content is no longer stored"));
    assert_eq!(fixture.read_text("f").as_deref(), Some("two"));
}

#[test]
fn undo_skips_paths_redirected_by_links() {
    let fixture = EngineFixture::new();
    fixture.write("d/f", "one");
    fixture.write("d/f", "two");
    fixture.workspace.remove_silently("d");
    fixture.workspace.put_link("d", "../out");
    fixture.call_err("undo", json!({}), ErrorKind::PathEscape);
    fixture.workspace.remove_silently("d");
    fixture.workspace.put_file("e/f", "two");
    fixture.workspace.put_link("d", "e");
    let error = fixture.call_err("undo", json!({}), ErrorKind::Conflict);
    assert!(error.details_json()["kept"][0]["reason"].as_str().unwrap().contains("link"));
    assert_eq!(fixture.read_text("e/f").as_deref(), Some("two"));
}

#[test]
fn undo_never_loses_external_changes() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one");
    fixture.workspace.put_file("f", "somebody else");
    fixture.call_err("undo", json!({}), ErrorKind::Conflict);
    assert_eq!(fixture.read_text("f").as_deref(), Some("somebody else"));
    fixture.workspace.remove_silently("f");
    let error = fixture.call_err("undo", json!({}), ErrorKind::Conflict);
    assert_eq!(error.details_json()["kept"][0]["reason"], json!("it is already gone"));
}

#[test]
fn undo_does_not_restore_setuid_bits() {
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("f", "one");
    fixture.workspace.put_file("g", "two");
    fixture.workspace.set_mode("g", 0o4755);
    fixture.call_ok("move", json!({ "from": "f", "to": "g", "overwrite": true }));
    fixture.call_ok("undo", json!({}));
    assert_eq!((fixture.read_text("g").as_deref(), fixture.workspace.mode("g")), (Some("two"), Some(0o755)));
    fixture.call_ok("copy", json!({ "from": "g", "to": "h" }));
    assert_eq!(fixture.workspace.mode("h"), Some(0o755));
}
