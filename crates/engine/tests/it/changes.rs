//! Tests of `changes`: events are ordered and complete, and a cursor that is not of this journal is an error.

use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use stead_engine::{CallControl, CancelToken, ChangesFollower, ErrorKind, Workspace, limits};
use testkit::native::{EngineJsonCalls, JsonCall};
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, confined_agent},
};

fn event_list(outcome: &Map<String, Value>) -> Vec<(u64, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let events = outcome["events"].as_array().unwrap();
    events.iter().map(|event| (event["entry"].as_u64().unwrap(), text(&event["kind"]), text(&event["path"]))).collect()
}

fn write_three_times() -> EngineFixture {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "a", "content": "1\n2\n3\n" }));
    let version = fixture.call_ok("read", json!({ "path": "a" }))["version"].clone();
    fixture.call_ok("write", json!({ "path": "a", "content": "1\ntwo\n3\n", "base": version }));
    fixture.call_ok("remove", json!({ "path": "a" }));
    fixture
}

#[test]
fn events_are_ordered_and_carry_line_ranges() {
    let fixture = write_three_times();
    let outcome = fixture.call("changes", json!({ "since": 0 })).unwrap();
    let expected = [(1, "create", "a"), (3, "modify", "a"), (4, "remove", "a")];
    assert_eq!(
        event_list(&outcome.json),
        expected.map(|(entry, kind, path)| (entry, kind.to_owned(), path.to_owned()))
    );
    let event = &outcome.json["events"][1];
    assert_eq!((&event["rev"], &event["lines"]), (&json!("r3"), &json!([[2, 2]])));
    assert_eq!((&event["principal"], &event["operation"]), (&json!("agent:one"), &json!("write")));
    assert_eq!(outcome.json["events"][2].get("rev"), None);
    assert!(outcome.text.contains("r3 agent:one write: modify a (8 bytes) lines 2-2\n"), "{}", outcome.text);
}

#[test]
fn cursor_continues_without_gap_or_repeat() {
    let fixture = write_three_times();
    let cursor = fixture.call_ok("changes", json!({ "since": "r1" }))["cursor"].clone();
    let again = fixture.call("changes", json!({ "since": cursor })).unwrap();
    assert_eq!((event_list(&again.json).len(), &again.json["cursor"]), (0, &cursor));
    assert!(again.text.starts_with("no changes"));
    fixture.call_ok("write", json!({ "path": "b", "content": "x" }));
    assert_eq!(event_list(&fixture.call_ok("changes", json!({ "since": cursor }))).len(), 1);
    let now = fixture.call_ok("changes", json!({ "since": "now" }));
    assert_eq!(event_list(&now).len(), 0);
    assert_eq!(event_list(&fixture.call_ok("changes", json!({ "since": now["cursor"] }))).len(), 0);
    assert_eq!(EngineFixture::new().call_ok("changes", json!({ "since": "now" }))["cursor"], "0");
}

#[test]
fn follower_returns_same_events_without_recording() {
    let fixture = write_three_times();
    let inside = confined_agent("two", &["sub"]);
    for caller in [&fixture.caller, &inside] {
        let begin = fixture.call_as(caller, "changes", json!({ "since": "now" })).unwrap().json["cursor"].clone();
        let mut follower =
            ChangesFollower::from_cursor(fixture.engine.clone(), caller.clone(), begin.as_str().unwrap()).unwrap();
        fixture.call_ok("write", json!({ "path": "b", "content": "x" }));
        fixture.call_ok("write", json!({ "path": "sub/c", "content": "x" }));
        let before = fixture.workspace.head().unwrap();
        let page = follower.next_page().unwrap();
        assert_eq!(follower.next_page().unwrap().events.len(), 0);
        assert_eq!(fixture.workspace.head().unwrap(), before);
        let called = fixture.call_as(caller, "changes", json!({ "since": begin })).unwrap();
        assert_eq!(serde_json::to_value(&page).unwrap(), Value::Object(called.json));
        assert!(!page.events.is_empty());
        fixture.call_ok("remove", json!({ "path": "b" }));
        fixture.call_ok("remove", json!({ "path": "sub", "recursive": true }));
    }
    assert!(ChangesFollower::from_cursor(fixture.engine.clone(), fixture.caller.clone(), "9999").is_err());
}

#[test]
fn lost_history_is_an_error() {
    let fixture = write_three_times();
    let other = EngineFixture::new();
    other.workspace.advance_ms(1);
    other.call_ok("write", json!({ "path": "elsewhere", "content": "x" }));
    let foreign = other.call_ok("changes", json!({ "since": 0 }))["cursor"].clone();
    for since in [json!(99_999), json!("r99999"), foreign, json!("1:0000000000000000")] {
        let error = fixture.call_err("changes", json!({ "since": since }), ErrorKind::HistoryLost);
        assert!(error.details_json().get("head").is_some() && error.next_step.is_some());
    }
    for since in ["", "x", "r", "-1", "1:zz", "1:abc", "1:0000000000000000:x", "r1 r2"] {
        fixture.call_err("changes", json!({ "since": since }), ErrorKind::BadRequest);
    }
    fixture.call_err("changes", json!({}), ErrorKind::BadRequest);
}

#[test]
fn entry_larger_than_page_is_delivered_completely() {
    let fixture = EngineFixture::new();
    let files = 2 * limits::CHANGES_PAGE_EVENTS + 50;
    for index in 0..files {
        fixture.workspace.put_file(&format!("from/f{index:04}"), "x");
    }
    fixture.call_ok("copy", json!({ "from": "from", "to": "to" }));
    fixture.call_ok("write", json!({ "path": "last", "content": "x" }));
    let (mut seen, mut since) = (Vec::new(), json!(0));
    loop {
        let outcome = fixture.call_ok("changes", json!({ "since": since }));
        assert!(event_list(&outcome).len() <= limits::CHANGES_PAGE_EVENTS);
        seen.extend(event_list(&outcome).into_iter().map(|(_, _, path)| path));
        since = outcome["cursor"].clone();
        if outcome["truncated"] == false {
            break;
        }
    }
    let distinct: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len()), (files + 2, files + 2));
    assert_eq!(seen.last().unwrap(), "last");
}

#[test]
fn only_paths_in_scope_are_reported() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "open/a", "content": "x" }));
    fixture.call_ok("write", json!({ "path": "closed/b", "content": "x" }));
    let outcome = fixture.call_as(&confined_agent("two", &["open"]), "changes", json!({ "since": 0 })).unwrap();
    let paths: Vec<String> = event_list(&outcome.json).into_iter().map(|(_, _, path)| path).collect();
    assert_eq!(paths, ["open", "open/a"]);
    assert!(!outcome.text.contains("closed"));
}

#[test]
fn waiting_ends_on_change_or_timeout() {
    let fixture = EngineFixture::new();
    let started = Instant::now();
    assert_eq!(event_list(&fixture.call_ok("changes", json!({ "since": 0, "wait_ms": 30 }))).len(), 0);
    assert!(started.elapsed() >= Duration::from_millis(30));
    let outcome = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.call_ok("changes", json!({ "since": 0, "wait_ms": 20_000 })));
        fixture.call_ok("list", json!({}));
        fixture.call_ok("write", json!({ "path": "a", "content": "x" }));
        waiting.join().unwrap()
    });
    assert_eq!(event_list(&outcome).len(), 1);
    assert!(started.elapsed() < Duration::from_secs(10));
}

#[test]
fn waiting_respects_cancellation_and_deadline() {
    let fixture = EngineFixture::new();
    let Value::Object(arguments) = json!({ "since": 0, "wait_ms": 20_000 }) else { panic!("object") };
    let mut call = JsonCall::new(&fixture.caller, "changes", arguments);
    call.control = CallControl::new(Instant::now() + Duration::from_millis(600), CancelToken::default(), None);
    assert_eq!(event_list(&fixture.engine.call(&call).unwrap().json).len(), 0);
    let cancel = CancelToken::default();
    call.control = CallControl::new(Instant::now() + Duration::from_secs(20), cancel.clone(), None);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| fixture.engine.call(&call));
        cancel.cancel();
        assert_eq!(waiting.join().unwrap().unwrap_err().kind, ErrorKind::Cancelled);
    });
}
