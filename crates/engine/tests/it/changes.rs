//! `changes`: in order, without gaps, never silent about a lost history.

use std::time::{Duration, Instant};

use engine::{Call, Cancel, Control, Kind, Listening, Workspace, limits};
use serde_json::{Value, json};

use crate::world::{World, confined};

fn events(answer: &engine::Answer) -> Vec<(u64, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = answer.json["events"].as_array().unwrap();
    events
        .iter()
        .map(|event| (event["entry"].as_u64().unwrap(), text(&event["kind"]), text(&event["path"])))
        .collect()
}

fn three() -> World {
    let world = World::new();
    world.ok("write", json!({ "path": "a", "content": "1\n2\n3\n" }));
    let version = world.ok("read", json!({ "path": "a" })).json["version"].clone();
    world.ok("write", json!({ "path": "a", "content": "1\ntwo\n3\n", "base": version }));
    world.ok("remove", json!({ "path": "a" }));
    world
}

#[test]
fn events_come_in_order_with_their_lines() {
    let world = three();
    let answer = world.ok("changes", json!({ "since": 0 }));
    let expected = [(1, "create", "a"), (3, "modify", "a"), (4, "remove", "a")];
    assert_eq!(
        events(&answer),
        expected.map(|(entry, kind, path)| (entry, kind.to_owned(), path.to_owned()))
    );
    let event = &answer.json["events"][1];
    assert_eq!((&event["rev"], &event["lines"]), (&json!("r3"), &json!([[2, 2]])));
    assert_eq!((&event["principal"], &event["operation"]), (&json!("agent:one"), &json!("write")));
    assert_eq!(answer.json["events"][2].get("rev"), None);
    assert!(answer.text.contains("r3 agent:one write: modify a (8 bytes) lines 2-2\n"), "{}", answer.text);
}

#[test]
fn the_cursor_goes_on_without_gap_or_repeat() {
    let world = three();
    let cursor = world.ok("changes", json!({ "since": "r1" })).json["cursor"].clone();
    let again = world.ok("changes", json!({ "since": cursor }));
    assert_eq!((events(&again).len(), &again.json["cursor"]), (0, &cursor));
    assert!(again.text.starts_with("no changes"));
    world.ok("write", json!({ "path": "b", "content": "x" }));
    assert_eq!(events(&world.ok("changes", json!({ "since": cursor }))).len(), 1);
    let now = world.ok("changes", json!({ "since": "now" }));
    assert_eq!(events(&now).len(), 0);
    assert_eq!(events(&world.ok("changes", json!({ "since": now.json["cursor"] }))).len(), 0);
    assert_eq!(World::new().ok("changes", json!({ "since": "now" })).json["cursor"], "0");
}

/// A stream hears what `changes` would answer the same caller, and whoever only listens is no entry.
#[test]
fn listening_tells_the_same_and_is_not_recorded() {
    let world = three();
    let inside = confined("two", &["sub"]);
    for caller in [&world.caller, &inside] {
        let begin =
            world.call_as(caller, "changes", json!({ "since": "now" })).unwrap().json["cursor"].clone();
        let mut listening =
            Listening::after(world.engine.clone(), caller.clone(), begin.as_str().unwrap()).unwrap();
        world.ok("write", json!({ "path": "b", "content": "x" }));
        world.ok("write", json!({ "path": "sub/c", "content": "x" }));
        let before = world.workspace.head().unwrap();
        let heard = listening.next_page().unwrap();
        assert_eq!(events(&listening.next_page().unwrap()).len(), 0);
        assert_eq!(world.workspace.head().unwrap(), before);
        let asked = world.call_as(caller, "changes", json!({ "since": begin })).unwrap();
        assert_eq!(heard.json, asked.json);
        assert!(!events(&heard).is_empty());
        world.ok("remove", json!({ "path": "b" }));
        world.ok("remove", json!({ "path": "sub", "recursive": true }));
    }
    assert!(Listening::after(world.engine.clone(), world.caller.clone(), "9999").is_err());
}

#[test]
fn a_lost_history_is_never_silent() {
    let world = three();
    let other = World::new();
    other.workspace.advance_ms(1);
    other.ok("write", json!({ "path": "elsewhere", "content": "x" }));
    let foreign = other.ok("changes", json!({ "since": 0 })).json["cursor"].clone();
    for since in [json!(99_999), json!("r99999"), foreign, json!("1:0000000000000000")] {
        let failure = world.fails("changes", json!({ "since": since }), Kind::HistoryLost);
        assert!(failure.facts.contains_key("head") && failure.hint.is_some());
    }
    for since in ["", "x", "r", "-1", "1:zz", "1:abc", "1:0000000000000000:x", "r1 r2"] {
        world.fails("changes", json!({ "since": since }), Kind::BadRequest);
    }
    world.fails("changes", json!({}), Kind::BadRequest);
}

#[test]
fn an_entry_larger_than_a_page_is_delivered_whole() {
    let world = World::new();
    let files = 2 * limits::CHANGES_PAGE + 50;
    for index in 0..files {
        world.workspace.put_file(&format!("from/f{index:04}"), "x");
    }
    world.ok("copy", json!({ "from": "from", "to": "to" }));
    world.ok("write", json!({ "path": "last", "content": "x" }));
    let (mut seen, mut since) = (Vec::new(), json!(0));
    loop {
        let answer = world.ok("changes", json!({ "since": since }));
        assert!(events(&answer).len() <= limits::CHANGES_PAGE);
        seen.extend(events(&answer).into_iter().map(|(_, _, path)| path));
        since = answer.json["cursor"].clone();
        if answer.json["truncated"] == false {
            break;
        }
    }
    let distinct: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len()), (files + 2, files + 2));
    assert_eq!(seen.last().unwrap(), "last");
}

#[test]
fn only_places_in_scope_are_told() {
    let world = World::new();
    world.ok("write", json!({ "path": "open/a", "content": "x" }));
    world.ok("write", json!({ "path": "closed/b", "content": "x" }));
    let answer = world.call_as(&confined("two", &["open"]), "changes", json!({ "since": 0 })).unwrap();
    let paths: Vec<String> = events(&answer).into_iter().map(|(_, _, path)| path).collect();
    assert_eq!(paths, ["open", "open/a"]);
    assert!(!answer.text.contains("closed"));
}

#[test]
fn waiting_ends_with_a_change_or_its_time() {
    let world = World::new();
    let started = Instant::now();
    assert_eq!(events(&world.ok("changes", json!({ "since": 0, "wait_ms": 30 }))).len(), 0);
    assert!(started.elapsed() >= Duration::from_millis(30));
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.ok("changes", json!({ "since": 0, "wait_ms": 20_000 })));
        world.ok("list", json!({}));
        world.ok("write", json!({ "path": "a", "content": "x" }));
        waiting.join().unwrap()
    });
    assert_eq!(events(&answer).len(), 1);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn waiting_is_cancelled_and_bounded_by_the_deadline() {
    let world = World::new();
    let Value::Object(arguments) = json!({ "since": 0, "wait_ms": 20_000 }) else { panic!("object") };
    let mut call = Call::new(&world.caller, "changes", arguments);
    call.control = Control::new(Instant::now() + Duration::from_millis(600), Cancel::default(), None);
    assert_eq!(events(&world.engine.call(&call).unwrap()).len(), 0);
    let cancel = Cancel::default();
    call.control = Control::new(Instant::now() + Duration::from_secs(20), cancel.clone(), None);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| world.engine.call(&call));
        cancel.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind, Kind::Cancelled);
    });
}
