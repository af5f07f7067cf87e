//! Tests of the operations for sessions, events and alerts.

use serde_json::{Value, json};
use stead_engine::{Caller, ErrorKind, Principal, SessionForLaterCalls};

use crate::engine_fixture::EngineFixture;

fn user() -> Caller {
    Caller::new(Principal::User("ada".to_owned()), "cli-1", "cli")
}

fn agent(session: &str) -> Caller {
    Caller::new(Principal::Agent("one".to_owned()), session, "rpc")
}

fn call_json(fixture: &EngineFixture, caller: &Caller, operation: &str, arguments: Value) -> Value {
    Value::Object(fixture.call_as(caller, operation, arguments).unwrap().json)
}

#[test]
fn session_totals_come_from_the_journal() {
    let fixture = EngineFixture::with_files(&[("a.txt", "hello\n")]);
    let caller = agent("rpc-1");
    call_json(&fixture, &caller, "read", json!({ "path": "a.txt" }));
    call_json(&fixture, &caller, "write", json!({ "path": "b.txt", "content": "123", "base": "" }));
    fixture.call_as(&caller, "read", json!({ "path": "no" })).unwrap_err();
    call_json(&fixture, &agent("rpc-2"), "read", json!({ "path": "a.txt" }));
    let shown = call_json(&fixture, &caller, "session", json!({}));
    assert_eq!((&shown["calls"], &shown["bytes_read"], &shown["bytes_written"]), (&json!(3), &json!(6), &json!(3)));
    assert_eq!((&shown["root"], &shown["readable"]), (&json!("/ws"), &json!(["."])));
}

#[test]
fn created_session_outlives_connection_and_is_private() {
    let fixture = EngineFixture::new();
    let begun = fixture.call_as(&agent("rpc-1"), "session", json!({ "action": "begin" })).unwrap();
    let id = begun.json["session"].as_str().unwrap().to_owned();
    assert_eq!(begun.session_switch, Some(SessionForLaterCalls::Enter(id.clone())));
    call_json(&fixture, &agent(&id), "list", json!({}));
    // Another connection of the same principal can use the session.
    let shown = call_json(&fixture, &agent("rpc-9"), "session", json!({ "id": id }));
    assert_eq!((&shown["calls"], &shown["session"]), (&json!(1), &json!(id)));
    let stranger = Caller::new(Principal::Agent("two".to_owned()), "x", "rpc");
    for action in ["show", "end"] {
        let error = fixture.call_as(&stranger, "session", json!({ "action": action, "id": id })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound);
    }
    let ended = fixture.call_as(&agent(&id), "session", json!({ "action": "end" })).unwrap();
    assert_eq!(ended.session_switch, Some(SessionForLaterCalls::Leave));
    assert!(ended.json["ended"].is_string());
    let again = fixture.call_as(&agent(&id), "session", json!({ "action": "end" })).unwrap_err();
    assert_eq!(again.kind, ErrorKind::NothingToDo);
}

#[test]
fn events_include_watch_events_but_not_own_changes() {
    let fixture = EngineFixture::new();
    let caller = agent("rpc-1");
    let write = |caller: &Caller, path: &str| {
        call_json(&fixture, caller, "write", json!({ "path": path, "content": "x", "base": "" }));
    };
    call_json(&fixture, &caller, "list", json!({}));
    write(&user(), "before.txt");
    let begun = call_json(&fixture, &caller, "watch", json!({ "glob": "*.txt" }));
    write(&user(), "unwatched.md");
    write(&caller, "own.txt");
    write(&user(), "theirs.txt");
    write(&agent("rpc-2"), "other-session.txt");
    let first = call_json(&fixture, &caller, "events", json!({}));
    let paths: Vec<&Value> = first["events"].as_array().unwrap().iter().map(|event| &event["path"]).collect();
    assert_eq!(paths, [&json!("theirs.txt"), &json!("other-session.txt")], "{first}");
    let event = &first["events"][0];
    assert_eq!((&event["type"], &event["event"]), (&json!("file_changed"), &json!("create")));
    assert_eq!((&event["watch"], &event["actor"]), (&begun["watch"], &json!("user:ada")));
    let next = call_json(&fixture, &caller, "events", json!({ "since": first["cursor"] }));
    assert_eq!(next["events"], json!([]));
    write(&user(), "later.txt");
    let later = call_json(&fixture, &caller, "events", json!({ "since": next["cursor"] }));
    assert_eq!(later["events"][0]["path"], "later.txt");
    let lost = fixture.call_as(&caller, "events", json!({ "since": "999:0123456789abcdef" })).unwrap_err();
    assert_eq!(lost.kind, ErrorKind::HistoryLost);
}

#[test]
fn alert_reaches_people_and_response_reaches_agent() {
    let fixture = EngineFixture::new();
    let caller = agent("rpc-1");
    let sent = call_json(&fixture, &caller, "alert", json!({ "message": "may I?", "severity": "critical" }));
    let id = sent["alert"].clone();
    let listed = call_json(&fixture, &user(), "alerts", json!({}));
    assert_eq!((&listed["alerts"][0]["message"], &listed["alerts"][0]["state"]), (&json!("may I?"), &json!("open")));
    let stranger = Caller::new(Principal::Agent("two".to_owned()), "x", "rpc");
    assert_eq!(call_json(&fixture, &stranger, "alerts", json!({}))["alerts"], json!([]));
    assert_eq!(fixture.call_as(&stranger, "alerts", json!({ "id": id })).unwrap_err().kind, ErrorKind::NotFound);
    for answering in [&caller, &stranger] {
        let error = fixture.call_as(answering, "respond", json!({ "alert": id, "text": "yes" })).unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotOwner);
    }
    assert_eq!(call_json(&fixture, &caller, "events", json!({}))["events"], json!([]));
    call_json(&fixture, &user(), "respond", json!({ "alert": id, "text": "yes, go on" }));
    let again = fixture.call_as(&user(), "respond", json!({ "alert": id, "text": "no" })).unwrap_err();
    assert_eq!(again.kind, ErrorKind::Exists);
    let events = call_json(&fixture, &caller, "events", json!({}));
    let event = &events["events"][0];
    assert_eq!(
        (&event["type"], &event["text"], &event["by"]),
        (&json!("alert_answered"), &json!("yes, go on"), &json!("user:ada"))
    );
    assert_eq!(call_json(&fixture, &stranger, "events", json!({ "since": "0" }))["events"], json!([]));
}

#[test]
fn open_alerts_are_limited() {
    let fixture = EngineFixture::new();
    let long = "x".repeat(stead_engine::limits::ALERT_CHARS_MAX + 1);
    assert_eq!(fixture.call("alert", json!({ "message": long })).unwrap_err().kind, ErrorKind::TooLarge);
    for _ in 0..stead_engine::limits::ALERTS_OPEN_MAX {
        fixture.call_ok("alert", json!({ "message": "x" }));
    }
    assert_eq!(fixture.call("alert", json!({ "message": "x" })).unwrap_err().kind, ErrorKind::TooMany);
}
