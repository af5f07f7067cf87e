//! Tests of the operations for sessions, events and alerts.

use serde_json::{Value, json};
use stead_engine::{Caller, ConversationSessionSwitch, ErrorKind, Principal};
use testkit::engine_fixture::EngineFixture;

fn user() -> Caller {
    Caller::new(Principal::User("ada".to_owned()), "cli-1", "cli")
}

fn agent(session: &str) -> Caller {
    Caller::new(Principal::Agent("one".to_owned()), session, "rpc")
}

#[test]
fn session_totals_come_from_the_journal() {
    let fixture = EngineFixture::with_files(&[("a.txt", "hello\n")]);
    let agent_one = fixture.with_caller(&agent("rpc-1"));
    agent_one.call_ok("read", json!({ "path": "a.txt" }));
    agent_one.call_ok("write", json!({ "path": "b.txt", "content": "123", "base": "" }));
    agent_one.call("read", json!({ "path": "no" })).unwrap_err();
    fixture.with_caller(&agent("rpc-2")).call_ok("read", json!({ "path": "a.txt" }));
    let shown = agent_one.call_ok("session", json!({}));
    assert_eq!((&shown["calls"], &shown["bytes_read"], &shown["bytes_written"]), (&json!(3), &json!(6), &json!(3)));
    assert_eq!((&shown["root"], &shown["readable"]), (&json!("/ws"), &json!(["."])));
}

#[test]
fn created_session_outlives_connection_and_is_private() {
    let fixture = EngineFixture::new();
    let begun = fixture.call_as(&agent("rpc-1"), "session", json!({ "action": "begin" })).unwrap();
    let id = begun.json["session"].as_str().unwrap().to_owned();
    assert_eq!(begun.session_switch, Some(ConversationSessionSwitch::Enter(id.clone())));
    fixture.with_caller(&agent(&id)).call_ok("list", json!({}));
    // Another connection of the same principal can use the session.
    let shown = fixture.with_caller(&agent("rpc-9")).call_ok("session", json!({ "id": id }));
    assert_eq!((&shown["calls"], &shown["session"]), (&json!(1), &json!(id)));
    let stranger = fixture.with_caller(&testkit::engine_fixture::agent("two"));
    for action in ["show", "end"] {
        stranger.call_err("session", json!({ "action": action, "id": id }), ErrorKind::NotFound);
    }
    let ended = fixture.call_as(&agent(&id), "session", json!({ "action": "end" })).unwrap();
    assert_eq!(ended.session_switch, Some(ConversationSessionSwitch::Leave));
    assert!(ended.json["ended"].is_string());
    fixture.with_caller(&agent(&id)).call_err("session", json!({ "action": "end" }), ErrorKind::NothingToDo);
}

#[test]
fn events_include_watch_events_but_not_own_changes() {
    let fixture = EngineFixture::new();
    let agent_one = fixture.with_caller(&agent("rpc-1"));
    let write = |caller: &Caller, path: &str| {
        fixture.with_caller(caller).call_ok("write", json!({ "path": path, "content": "x", "base": "" }));
    };
    agent_one.call_ok("list", json!({}));
    write(&user(), "before.txt");
    let begun = agent_one.call_ok("watch", json!({ "glob": "*.txt" }));
    write(&user(), "unwatched.md");
    write(&agent("rpc-1"), "own.txt");
    write(&user(), "theirs.txt");
    write(&agent("rpc-2"), "other-session.txt");
    let first = agent_one.call_ok("events", json!({}));
    let paths: Vec<&Value> = first["events"].as_array().unwrap().iter().map(|event| &event["path"]).collect();
    assert_eq!(paths, [&json!("theirs.txt"), &json!("other-session.txt")], "{first:?}");
    let event = &first["events"][0];
    assert_eq!((&event["type"], &event["event"]), (&json!("file_changed"), &json!("create")));
    assert_eq!((&event["watch"], &event["actor"]), (&begun["watch"], &json!("user:ada")));
    let next = agent_one.call_ok("events", json!({ "since": first["cursor"] }));
    assert_eq!(next["events"], json!([]));
    write(&user(), "later.txt");
    let later = agent_one.call_ok("events", json!({ "since": next["cursor"] }));
    assert_eq!(later["events"][0]["path"], "later.txt");
    agent_one.call_err("events", json!({ "since": "999:0123456789abcdef" }), ErrorKind::HistoryLost);
}

#[test]
fn alert_reaches_people_and_response_reaches_agent() {
    let fixture = EngineFixture::new();
    let agent_one = fixture.with_caller(&agent("rpc-1"));
    let sent = agent_one.call_ok("alert", json!({ "message": "may I?", "severity": "critical" }));
    let id = sent["alert"].clone();
    let listed = fixture.with_caller(&user()).call_ok("alerts", json!({}));
    assert_eq!((&listed["alerts"][0]["message"], &listed["alerts"][0]["state"]), (&json!("may I?"), &json!("open")));
    let stranger = fixture.with_caller(&testkit::engine_fixture::agent("two"));
    assert_eq!(stranger.call_ok("alerts", json!({}))["alerts"], json!([]));
    stranger.call_err("alerts", json!({ "id": id }), ErrorKind::NotFound);
    for answering in [&agent_one, &stranger] {
        answering.call_err("respond", json!({ "alert": id, "text": "yes" }), ErrorKind::NotOwner);
    }
    assert_eq!(agent_one.call_ok("events", json!({}))["events"], json!([]));
    fixture.with_caller(&user()).call_ok("respond", json!({ "alert": id, "text": "yes, go on" }));
    fixture.with_caller(&user()).call_err("respond", json!({ "alert": id, "text": "no" }), ErrorKind::Exists);
    let events = agent_one.call_ok("events", json!({}));
    let event = &events["events"][0];
    assert_eq!(
        (&event["type"], &event["text"], &event["by"]),
        (&json!("alert_answered"), &json!("yes, go on"), &json!("user:ada"))
    );
    assert_eq!(stranger.call_ok("events", json!({ "since": "0" }))["events"], json!([]));
}

#[test]
fn open_alerts_are_limited() {
    let fixture = EngineFixture::new();
    let long = "x".repeat(stead_engine::limits::ALERT_CHARS_MAX + 1);
    fixture.call_err("alert", json!({ "message": long }), ErrorKind::TooLarge);
    for _ in 0..stead_engine::limits::ALERTS_OPEN_MAX {
        fixture.call_ok("alert", json!({ "message": "x" }));
    }
    fixture.call_err("alert", json!({ "message": "x" }), ErrorKind::TooMany);
}
