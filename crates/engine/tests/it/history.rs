//! Tests of `history`: newest entries first, in pages, and only paths that the caller may read.

use insta::assert_snapshot;
use serde_json::{Map, Value, json};
use stead_engine::{ErrorKind, limits};
use testkit::engine_fixture::{EngineFixture, confined_agent};

fn entry_numbers(outcome: &Map<String, Value>) -> Vec<u64> {
    outcome["entries"].as_array().unwrap().iter().map(|entry| entry["entry"].as_u64().unwrap()).collect()
}

#[test]
fn entries_show_author_operation_and_paths() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "a", "content": "one\n" }));
    fixture.call_ok("read", json!({ "path": "a" }));
    fixture.call_ok("move", json!({ "from": "a", "to": "b" }));
    assert_snapshot!(fixture.call_rendered("history", json!({})));
    assert_eq!(entry_numbers(&fixture.call_ok("history", json!({ "path": "b" }))), [3]);
    assert_eq!(entry_numbers(&fixture.call_ok("history", json!({ "path": "a" }))), [3, 1]);
    assert_eq!(fixture.call_text("history", json!({ "path": "none" })), "no changes");
}

#[test]
fn undone_entries_are_marked() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "a", "content": "one\n" }));
    fixture.call_ok("undo", json!({}));
    assert_snapshot!(fixture.call_rendered("history", json!({})));
}

#[test]
fn pages_cover_all_entries() {
    let fixture = EngineFixture::new();
    for index in 0..120 {
        fixture.call_ok("write", json!({ "path": format!("f{index}"), "content": "x" }));
    }
    let (mut seen, mut arguments) = (Vec::new(), json!({}));
    loop {
        let outcome = fixture.call_ok("history", arguments);
        assert!(entry_numbers(&outcome).len() <= limits::HISTORY_PAGE_ENTRIES);
        seen.extend(entry_numbers(&outcome));
        let Some(next) = outcome.get("next") else { break };
        arguments = next.clone();
    }
    let expected: Vec<u64> = (1..=120).rev().collect();
    assert_eq!(seen, expected);
    assert_eq!(entry_numbers(&fixture.call_ok("history", json!({ "since": "r118" }))), [120, 119]);
    assert_eq!(entry_numbers(&fixture.call_ok("history", json!({ "since": 119 }))), [120]);
    let lost = fixture.call_err("history", json!({ "since": "r999999" }), ErrorKind::HistoryLost);
    assert!(lost.next_step.is_some());
    fixture.call_err("history", json!({ "since": "yesterday" }), ErrorKind::BadRequest);
}

#[test]
fn unreadable_paths_are_omitted() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "open/a", "content": "x" }));
    fixture.call_ok("write", json!({ "path": "closed/b", "content": "x" }));
    fixture.call_ok("move", json!({ "from": "open/a", "to": "closed/a" }));
    fixture.call_ok("move", json!({ "from": "closed/b", "to": "open/b" }));
    let caller = confined_agent("two", &["open"]);
    let outcome = fixture.call_as(&caller, "history", json!({})).unwrap();
    assert_eq!(entry_numbers(&outcome.json), [4, 3, 1]);
    assert_eq!(outcome.json["entries"][0]["changes"][0]["kind"], "create");
    assert_eq!(outcome.json["entries"][1]["changes"][0]["kind"], "remove");
    assert!(!outcome.text.contains("closed"), "{}", outcome.text);
    fixture.with_caller(&caller).call_err("history", json!({ "path": "closed/b" }), ErrorKind::OutOfScope);
}

#[test]
fn entry_with_many_changes_is_truncated_visibly() {
    let fixture = EngineFixture::new();
    for index in 0..30 {
        fixture.workspace.put_file(&format!("from/f{index:02}"), "x");
    }
    fixture.call_ok("copy", json!({ "from": "from", "to": "to" }));
    let outcome = fixture.call("history", json!({ "path": "to/f29" })).unwrap();
    let entry = &outcome.json["entries"][0];
    assert_eq!(entry["changes"].as_array().unwrap().len(), limits::HISTORY_CHANGES_MAX);
    assert_eq!(entry["changes"][0]["path"], "to/f29", "what was asked about comes first");
    assert!(entry["changes_omitted"].as_u64().unwrap() >= 10);
    assert!(outcome.text.contains("more: call changes with since \"r0\""), "{}", outcome.text);
}
