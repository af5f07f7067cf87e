//! `undo` and `redo`.

use engine::{Access, Grants, Want, Workspace};
use path::RelPath;
use serde_json::{Value, json};

use crate::desk::{Desk, at};

const FIVE: &str = "one\ntwo\nthree\nfour\nfive\n";

fn kept(answer: &serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
    answer["kept"].as_array().unwrap().iter().map(|item| (text(item, "path"), text(item, "reason"))).collect()
}

#[test]
fn undo_goes_back_and_redo_forward() {
    let desk = Desk::new();
    desk.put("f", "one");
    desk.put("f", "two");
    desk.put("f", "three");
    let text = || desk.text("f");
    assert_eq!(desk.run("undo", json!({}))["undone"], json!(3));
    assert_eq!(text().as_deref(), Some("two"));
    assert_eq!(desk.run("undo", json!({}))["undone"], json!(2));
    assert_eq!(text().as_deref(), Some("one"));
    assert_eq!(desk.run("undo", json!({}))["undone"], json!(1));
    assert_eq!(text(), None);
    assert_eq!(desk.fails("undo", json!({})).0, "nothing_to_do");
    assert_eq!(desk.run("redo", json!({}))["redone"], json!(1));
    assert_eq!(text().as_deref(), Some("one"));
    assert_eq!(desk.run("redo", json!({}))["redone"], json!(2));
    assert_eq!(desk.run("redo", json!({}))["redone"], json!(3));
    assert_eq!(text().as_deref(), Some("three"));
    assert_eq!(desk.fails("redo", json!({})).0, "nothing_to_do");
    assert_eq!(desk.run("undo", json!({}))["undone"], json!(3));
    assert_eq!(text().as_deref(), Some("two"));
}

#[test]
fn removing_can_be_undone_and_redone_again_and_again() {
    let desk = Desk::new();
    desk.put("d/f", "one");
    desk.put("d/g", "two");
    desk.run("remove", json!({ "path": "d", "recursive": true }));
    for _ in 0..3 {
        desk.run("undo", json!({}));
        assert_eq!((desk.text("d/f").as_deref(), desk.text("d/g").as_deref()), (Some("one"), Some("two")));
        desk.run("redo", json!({}));
        assert!(!desk.exists("d"));
    }
}

#[test]
fn undoing_an_undo_makes_the_entry_again() {
    let desk = Desk::new();
    desk.put("f", "one");
    let undo = desk.run("undo", json!({ "entry": "r1" }));
    assert_eq!((desk.text("f"), kept(&undo)), (None, vec![]));
    let again = desk.run("undo", json!({ "entry": undo["entry"] }));
    assert_eq!((&again["redone"], desk.text("f").as_deref()), (&json!(1), Some("one")));
    assert_eq!(desk.fails("undo", json!({ "entry": undo["entry"] })).0, "nothing_to_do");
    // Undoing what was made again finds it in the trash where it now is.
    assert_eq!(desk.run("undo", json!({ "entry": again["entry"] }))["undone"], json!(1));
    assert_eq!(desk.text("f"), None);
    assert_eq!(desk.run("redo", json!({ "entry": 1 }))["redone"], json!(1));
    assert_eq!(desk.text("f").as_deref(), Some("one"));
}

#[test]
fn a_later_edit_elsewhere_in_the_file_is_merged() {
    let desk = Desk::new();
    desk.put("f", FIVE);
    desk.put("f", &FIVE.replace("one", "ONE"));
    desk.and("agent:b").put("f", &FIVE.replace("one", "ONE").replace("five", "FIVE"));
    let answer = desk.run("undo", json!({}));
    assert_eq!((&answer["undone"], &answer["merged"]), (&json!(2), &json!(["f"])));
    assert_eq!(desk.text("f"), Some(FIVE.replace("five", "FIVE")));
    assert_eq!(desk.run("redo", json!({}))["redone"], json!(2));
    assert_eq!(desk.text("f"), Some(FIVE.replace("one", "ONE").replace("five", "FIVE")));
}

#[test]
fn a_later_edit_of_the_same_lines_is_kept() {
    let desk = Desk::new();
    desk.put("f", FIVE);
    desk.put("f", &FIVE.replace("one", "ONE"));
    desk.and("agent:b").put("f", &FIVE.replace("one", "first"));
    let (kind, failure) = desk.fails("undo", json!({}));
    assert_eq!(kind, "conflict");
    assert_eq!(failure.facts["kept"][0]["path"], json!("f"));
    assert!(failure.facts["kept"][0]["reason"].as_str().unwrap().contains("same lines"));
    assert_eq!(desk.text("f"), Some(FIVE.replace("one", "first")));
}

#[test]
fn what_was_changed_since_is_kept_file_by_file() {
    let desk = Desk::new();
    desk.put("d/a", "a");
    desk.put("d/b", "b");
    desk.run("copy", json!({ "from": "d", "to": "e" }));
    desk.and("agent:b").put("e/a", "changed");
    desk.and("agent:b").put("e/new", "new");
    let preview = desk.run("undo", json!({ "dry_run": true }));
    assert_eq!(preview["dry_run"], json!(true));
    assert_eq!(desk.text("e/b").as_deref(), Some("b"));
    let answer = desk.run("undo", json!({}));
    assert_eq!(
        kept(&answer),
        [
            ("e/a".to_owned(), "it was changed since".to_owned()),
            ("e".to_owned(), "other things are in it".to_owned()),
        ]
    );
    assert_eq!(answer["changed"], json!([{ "path": "e/b", "kind": "remove" }]));
    assert_eq!(preview["changed"], answer["changed"]);
    assert_eq!(preview["kept"], answer["kept"]);
    assert_eq!((desk.text("e/a").as_deref(), desk.text("e/b")), (Some("changed"), None));
    desk.run("redo", json!({}));
    assert_eq!((desk.text("e/a").as_deref(), desk.text("e/b").as_deref()), (Some("changed"), Some("b")));
}

#[test]
fn redo_is_refused_after_a_new_write_to_the_same_file_only() {
    let desk = Desk::new();
    desk.put("f", "one");
    desk.put("f", "two");
    desk.run("undo", json!({}));
    desk.put("other", "x");
    desk.run("redo", json!({ "dry_run": true }));
    desk.put("f", "three");
    assert_eq!(desk.fails("redo", json!({})).0, "conflict");
    assert_eq!(desk.text("f").as_deref(), Some("three"));
}

#[test]
fn agents_undo_their_own_and_people_anything() {
    let desk = Desk::new();
    let (other, user) = (desk.and("agent:b"), desk.and("user:u"));
    desk.put("mine", "1");
    other.put("theirs", "2");
    assert_eq!(desk.fails("undo", json!({ "entry": 2 })).0, "not_owner");
    assert_eq!(desk.run("undo", json!({}))["undone"], json!(1));
    assert_eq!(desk.text("theirs").as_deref(), Some("2"));
    assert_eq!(user.run("undo", json!({}))["undone"], json!(2));
    assert_eq!(desk.text("theirs"), None);
    // What a person took back is not the agent's to bring back.
    assert_eq!(other.fails("redo", json!({})).0, "nothing_to_do");
    assert_eq!(other.fails("redo", json!({ "entry": 2 })).0, "not_owner");
    assert_eq!(user.run("redo", json!({}))["redone"], json!(2));
    assert_eq!(user.run("redo", json!({}))["redone"], json!(1));
}

#[test]
fn removed_is_restored_only_to_a_free_place() {
    let desk = Desk::new();
    desk.put("f", "one");
    desk.run("remove", json!({ "path": "f" }));
    desk.and("agent:b").put("f", "taken");
    let (kind, failure) = desk.fails("undo", json!({}));
    assert_eq!(
        (kind, &failure.facts["kept"][0]["reason"]),
        ("conflict", &json!("something else is there now"))
    );
    assert_eq!(desk.text("f").as_deref(), Some("taken"));
}

#[test]
fn parents_that_went_meanwhile_are_made_again() {
    let desk = Desk::new();
    desk.put("d/e/f", "one");
    let removed = desk.run("remove", json!({ "path": "d/e/f" }))["entry"].clone();
    desk.run("remove", json!({ "path": "d", "recursive": true }));
    desk.run("undo", json!({ "entry": removed }));
    assert_eq!(desk.text("d/e/f").as_deref(), Some("one"));
    desk.run("redo", json!({ "entry": removed }));
    assert!(!desk.exists("d"));
}

#[test]
fn a_file_where_a_directory_was_is_left_alone() {
    let desk = Desk::new();
    desk.put("d/f", "one");
    desk.put("d/f", "two");
    let write = desk.head();
    desk.run("remove", json!({ "path": "d", "recursive": true }));
    desk.put("d", "a file now");
    let (kind, failure) = desk.fails("undo", json!({ "entry": write }));
    assert_eq!((kind, failure.facts["kept"].as_array().map(Vec::len)), ("conflict", Some(1)));
    assert_eq!(desk.text("d").as_deref(), Some("a file now"));
}

#[test]
fn odd_names_of_entries_are_told_apart() {
    let desk = Desk::new();
    desk.put("f", "one");
    desk.run("read", json!({ "path": "f" }));
    assert_eq!(desk.fails("undo", json!({ "entry": "nonsense" })).0, "bad_request");
    assert_eq!(desk.fails("undo", json!({ "entry": true })).0, "bad_request");
    assert_eq!(desk.fails("undo", json!({ "entry": 999 })).0, "not_found");
    assert_eq!(desk.fails("undo", json!({ "entry": 2 })).0, "nothing_to_do");
    assert_eq!(desk.fails("redo", json!({ "entry": "r1" })).0, "nothing_to_do");
    assert_eq!(desk.run("undo", json!({ "entry": "1" }))["undone"], json!(1));
    assert_eq!(desk.fails("undo", json!({ "entry": 1 })).0, "nothing_to_do");
}

#[test]
fn rules_hold_for_undo_as_well() {
    let desk = Desk::new();
    desk.put("in/f", "one");
    desk.put("out/f", "one");
    let scope = vec![RelPath::from_wire("in").unwrap()];
    let narrow = Grants { writable: scope, ..Grants::default() };
    assert_eq!(desk.granted(narrow).fails("undo", json!({})).0, "out_of_scope");
    let looking = Grants { access: Access::ReadOnly, ..Grants::default() };
    assert_eq!(desk.granted(looking).fails("undo", json!({})).0, "read_only");
    desk.and("agent:b").run("lock", json!({ "path": "out" }));
    assert_eq!(desk.fails("undo", json!({})).0, "locked");
    assert_eq!(desk.text("out/f").as_deref(), Some("one"));
}

#[test]
fn bytes_that_are_no_longer_kept_are_said_so() {
    let desk = Desk::new();
    desk.put("f", "one");
    let first = desk.workspace.read(&at("f"), Want::Nothing).unwrap().version;
    desk.put("f", "two");
    desk.workspace.forget(&first);
    let (kind, failure) = desk.fails("undo", json!({}));
    assert_eq!(
        (kind, &failure.facts["kept"][0]["reason"]),
        ("expired", &json!("its bytes are no longer kept"))
    );
    assert_eq!(desk.text("f").as_deref(), Some("two"));
}

#[test]
fn a_place_behind_a_link_is_not_undone() {
    let desk = Desk::new();
    desk.put("d/f", "one");
    desk.put("d/f", "two");
    desk.workspace.take("d");
    desk.workspace.put_link("d", "../out");
    assert_eq!(desk.fails("undo", json!({})).0, "path_escape");
    desk.workspace.take("d");
    desk.workspace.put_file("e/f", "two");
    desk.workspace.put_link("d", "e");
    let (kind, failure) = desk.fails("undo", json!({}));
    assert_eq!(kind, "conflict");
    assert!(failure.facts["kept"][0]["reason"].as_str().unwrap().contains("link"));
    assert_eq!(desk.text("e/f").as_deref(), Some("two"));
}

#[test]
fn changes_by_other_programs_are_never_lost() {
    let desk = Desk::new();
    desk.put("f", "one");
    desk.workspace.put_file("f", "somebody else");
    assert_eq!(desk.fails("undo", json!({})).0, "conflict");
    assert_eq!(desk.text("f").as_deref(), Some("somebody else"));
    desk.workspace.take("f");
    let (kind, failure) = desk.fails("undo", json!({}));
    assert_eq!((kind, &failure.facts["kept"][0]["reason"]), ("conflict", &json!("it is already gone")));
}

#[test]
fn set_id_bits_do_not_come_back() {
    let desk = Desk::new();
    desk.workspace.put_file("f", "one");
    desk.workspace.put_file("g", "two");
    desk.workspace.set_mode("g", 0o4755);
    desk.run("move", json!({ "from": "f", "to": "g", "overwrite": true }));
    desk.run("undo", json!({}));
    assert_eq!((desk.text("g").as_deref(), desk.workspace.mode("g")), (Some("two"), Some(0o755)));
    desk.run("copy", json!({ "from": "g", "to": "h" }));
    assert_eq!(desk.workspace.mode("h"), Some(0o755));
}
