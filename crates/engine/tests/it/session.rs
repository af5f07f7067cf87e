//! Sessions, events and alerts: what a conversation is, what it hears, and what it may say to people.

use engine::{Caller, Kind, Principal, Switch};
use serde_json::{Value, json};

use crate::world::World;

fn user() -> Caller {
    Caller::new(Principal::User("ada".to_owned()), "cli-1", "cli")
}

fn agent(session: &str) -> Caller {
    Caller::new(Principal::Agent("one".to_owned()), session, "rpc")
}

fn said(world: &World, caller: &Caller, operation: &str, arguments: Value) -> Value {
    Value::Object(world.call_as(caller, operation, arguments).unwrap().json)
}

#[test]
fn a_session_counts_what_it_did_from_the_journal() {
    let world = World::with(&[("a.txt", "hello\n")]);
    let caller = agent("rpc-1");
    said(&world, &caller, "read", json!({ "path": "a.txt" }));
    said(&world, &caller, "write", json!({ "path": "b.txt", "content": "123", "base": "" }));
    world.call_as(&caller, "read", json!({ "path": "no" })).unwrap_err();
    said(&world, &agent("rpc-2"), "read", json!({ "path": "a.txt" }));
    let shown = said(&world, &caller, "session", json!({}));
    assert_eq!(
        (&shown["calls"], &shown["bytes_read"], &shown["bytes_written"]),
        (&json!(3), &json!(6), &json!(3))
    );
    assert_eq!((&shown["root"], &shown["readable"]), (&json!("/ws"), &json!(["."])));
}

#[test]
fn a_session_that_was_begun_outlives_its_connection_and_is_its_principal_s_own() {
    let world = World::new();
    let begun = world.call_as(&agent("rpc-1"), "session", json!({ "action": "begin" })).unwrap();
    let id = begun.json["session"].as_str().unwrap().to_owned();
    assert_eq!(begun.switch, Some(Switch::To(id.clone())));
    said(&world, &agent(&id), "list", json!({}));
    // Another connection, the same principal.
    let shown = said(&world, &agent("rpc-9"), "session", json!({ "id": id }));
    assert_eq!((&shown["calls"], &shown["session"]), (&json!(1), &json!(id)));
    let stranger = Caller::new(Principal::Agent("two".to_owned()), "x", "rpc");
    for action in ["show", "end"] {
        let failure = world.call_as(&stranger, "session", json!({ "action": action, "id": id })).unwrap_err();
        assert_eq!(failure.kind, Kind::NotFound);
    }
    let ended = world.call_as(&agent(&id), "session", json!({ "action": "end" })).unwrap();
    assert_eq!(ended.switch, Some(Switch::Back));
    assert!(ended.json["ended"].is_string());
    let again = world.call_as(&agent(&id), "session", json!({ "action": "end" })).unwrap_err();
    assert_eq!(again.kind, Kind::NothingToDo);
}

#[test]
fn events_tell_what_watches_heard_and_not_what_it_did_itself() {
    let world = World::new();
    let caller = agent("rpc-1");
    let write = |caller: &Caller, path: &str| {
        said(&world, caller, "write", json!({ "path": path, "content": "x", "base": "" }));
    };
    said(&world, &caller, "list", json!({}));
    write(&user(), "before.txt");
    let begun = said(&world, &caller, "watch", json!({ "glob": "*.txt" }));
    write(&user(), "unwatched.md");
    write(&caller, "own.txt");
    write(&user(), "theirs.txt");
    write(&agent("rpc-2"), "other-session.txt");
    let first = said(&world, &caller, "events", json!({}));
    let paths: Vec<&Value> = first["events"].as_array().unwrap().iter().map(|event| &event["path"]).collect();
    assert_eq!(paths, [&json!("theirs.txt"), &json!("other-session.txt")], "{first}");
    let event = &first["events"][0];
    assert_eq!((&event["type"], &event["event"]), (&json!("file_changed"), &json!("create")));
    assert_eq!((&event["watch"], &event["actor"]), (&begun["watch"], &json!("user:ada")));
    let next = said(&world, &caller, "events", json!({ "since": first["cursor"] }));
    assert_eq!(next["events"], json!([]));
    write(&user(), "later.txt");
    let later = said(&world, &caller, "events", json!({ "since": next["cursor"] }));
    assert_eq!(later["events"][0]["path"], "later.txt");
    let lost = world.call_as(&caller, "events", json!({ "since": "999:0123456789abcdef" })).unwrap_err();
    assert_eq!(lost.kind, Kind::HistoryLost);
}

#[test]
fn an_alert_reaches_people_and_its_answer_the_agent() {
    let world = World::new();
    let caller = agent("rpc-1");
    let sent = said(&world, &caller, "alert", json!({ "message": "may I?", "severity": "critical" }));
    let id = sent["alert"].clone();
    let listed = said(&world, &user(), "alerts", json!({}));
    assert_eq!(
        (&listed["alerts"][0]["message"], &listed["alerts"][0]["state"]),
        (&json!("may I?"), &json!("open"))
    );
    let stranger = Caller::new(Principal::Agent("two".to_owned()), "x", "rpc");
    assert_eq!(said(&world, &stranger, "alerts", json!({}))["alerts"], json!([]));
    assert_eq!(world.call_as(&stranger, "alerts", json!({ "id": id })).unwrap_err().kind, Kind::NotFound);
    for answering in [&caller, &stranger] {
        let failure = world.call_as(answering, "respond", json!({ "alert": id, "text": "yes" })).unwrap_err();
        assert_eq!(failure.kind, Kind::NotOwner);
    }
    assert_eq!(said(&world, &caller, "events", json!({}))["events"], json!([]));
    said(&world, &user(), "respond", json!({ "alert": id, "text": "yes, go on" }));
    let again = world.call_as(&user(), "respond", json!({ "alert": id, "text": "no" })).unwrap_err();
    assert_eq!(again.kind, Kind::Exists);
    let heard = said(&world, &caller, "events", json!({}));
    let event = &heard["events"][0];
    assert_eq!(
        (&event["type"], &event["text"], &event["by"]),
        (&json!("alert_answered"), &json!("yes, go on"), &json!("user:ada"))
    );
    assert_eq!(said(&world, &stranger, "events", json!({ "since": "0" }))["events"], json!([]));
}

#[test]
fn alerts_are_bounded() {
    let world = World::new();
    let long = "x".repeat(engine::limits::ALERT_CHARS_MAX + 1);
    assert_eq!(world.call("alert", json!({ "message": long })).unwrap_err().kind, Kind::TooLarge);
    for _ in 0..engine::limits::ALERTS_OPEN_MAX {
        world.ok("alert", json!({ "message": "x" }));
    }
    assert_eq!(world.call("alert", json!({ "message": "x" })).unwrap_err().kind, Kind::TooMany);
}
