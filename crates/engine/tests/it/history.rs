//! `history`: newest first, by page, within scope.

use engine::{Kind, limits};
use serde_json::json;

use crate::world::{World, confined};

fn numbers(answer: &engine::Answer) -> Vec<u64> {
    answer.json["entries"].as_array().unwrap().iter().map(|entry| entry["entry"].as_u64().unwrap()).collect()
}

#[test]
fn entries_say_who_did_what_where() {
    let world = World::new();
    world.ok("write", json!({ "path": "a", "content": "one\n" }));
    world.ok("read", json!({ "path": "a" }));
    world.ok("move", json!({ "from": "a", "to": "b" }));
    let answer = world.ok("history", json!({}));
    assert_eq!(numbers(&answer), [3, 1]);
    let first = &answer.json["entries"][1];
    assert_eq!(first["time"], "2026-01-01T00:00:00.000Z");
    assert_eq!((&first["principal"], &first["operation"]), (&json!("agent:one"), &json!("write")));
    assert_eq!(first["changes"][0]["kind"], "create");
    assert_eq!(first["changes"][0]["size"], 4);
    assert_eq!(answer.json["entries"][0]["changes"][0]["to"], "b");
    assert_eq!(
        answer.text,
        "r3 2026-01-01T00:00:00.000Z agent:one move\n  rename a -> b (4 bytes)\n\
         r1 2026-01-01T00:00:00.000Z agent:one write\n  create a (4 bytes)"
    );
    assert_eq!(numbers(&world.ok("history", json!({ "path": "b" }))), [3]);
    assert_eq!(numbers(&world.ok("history", json!({ "path": "a" }))), [3, 1]);
    assert_eq!(world.ok("history", json!({ "path": "none" })).text, "no changes");
}

#[test]
fn undone_entries_are_marked() {
    let world = World::new();
    world.ok("write", json!({ "path": "a", "content": "one\n" }));
    world.ok("undo", json!({}));
    let answer = world.ok("history", json!({}));
    assert_eq!(answer.json["entries"][0]["undoes"], 1);
    assert_eq!(
        (&answer.json["entries"][0]["undone"], &answer.json["entries"][1]["undone"]),
        (&json!(false), &json!(true))
    );
    assert!(answer.text.contains("(undone by r2)"));
}

#[test]
fn pages_add_up() {
    let world = World::new();
    for index in 0..120 {
        world.ok("write", json!({ "path": format!("f{index}"), "content": "x" }));
    }
    let (mut seen, mut arguments) = (Vec::new(), json!({}));
    loop {
        let answer = world.ok("history", arguments);
        assert!(numbers(&answer).len() <= limits::HISTORY_PAGE);
        seen.extend(numbers(&answer));
        let Some(next) = answer.json.get("next") else { break };
        arguments = next.clone();
    }
    let expected: Vec<u64> = (1..=120).rev().collect();
    assert_eq!(seen, expected);
    assert_eq!(numbers(&world.ok("history", json!({ "since": "r118" }))), [120, 119]);
    assert_eq!(numbers(&world.ok("history", json!({ "since": 119 }))), [120]);
    let lost = world.fails("history", json!({ "since": "r999999" }), Kind::HistoryLost);
    assert!(lost.hint.is_some());
    world.fails("history", json!({ "since": "yesterday" }), Kind::BadRequest);
}

#[test]
fn other_places_are_left_out() {
    let world = World::new();
    world.ok("write", json!({ "path": "open/a", "content": "x" }));
    world.ok("write", json!({ "path": "closed/b", "content": "x" }));
    world.ok("move", json!({ "from": "open/a", "to": "closed/a" }));
    world.ok("move", json!({ "from": "closed/b", "to": "open/b" }));
    let caller = confined("two", &["open"]);
    let answer = world.call_as(&caller, "history", json!({})).unwrap();
    assert_eq!(numbers(&answer), [4, 3, 1]);
    assert_eq!(answer.json["entries"][0]["changes"][0]["kind"], "create");
    assert_eq!(answer.json["entries"][1]["changes"][0]["kind"], "remove");
    assert!(!answer.text.contains("closed"), "{}", answer.text);
    let refused = world.call_as(&caller, "history", json!({ "path": "closed/b" })).unwrap_err();
    assert_eq!(refused.kind, Kind::OutOfScope);
}

#[test]
fn an_entry_with_many_changes_is_cut_visibly() {
    let world = World::new();
    for index in 0..30 {
        world.workspace.put_file(&format!("from/f{index:02}"), "x");
    }
    world.ok("copy", json!({ "from": "from", "to": "to" }));
    let answer = world.ok("history", json!({ "path": "to/f29" }));
    let entry = &answer.json["entries"][0];
    assert_eq!(entry["changes"].as_array().unwrap().len(), limits::HISTORY_CHANGES_MAX);
    assert_eq!(entry["changes"][0]["path"], "to/f29", "what was asked about comes first");
    assert!(entry["changes_omitted"].as_u64().unwrap() >= 10);
    assert!(answer.text.contains("more: call changes with since \"r0\""), "{}", answer.text);
}
