//! Tests of watches on a workspace that only the engine changes, and of notices about changed files.

use std::time::Instant;

use serde_json::{Value, json};
use stead_engine::{BeforeAfterContentInclusion, Caller, CallerWatchEventReader, CancelToken, Grants, Principal};
use stead_path::RelPath;
use testkit::engine_fixture::EngineFixture;
use testkit::native::{EngineJsonCalls, JsonCall};

fn event_summaries(outcome: &Value) -> Vec<String> {
    let one = |event: &Value| {
        let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", word("event"), word("path"), word("new_path")).trim_end().to_owned()
    };
    outcome["events"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn every_change_produces_events_for_covering_watches() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "d/a", "content": "1\n" }));
    let deep = fixture.call_ok("watch", json!({ "recursive": true }))["watch"].clone();
    let shallow = fixture.call_ok("watch", json!({ "path": "d", "types": ["create", "delete"] }))["watch"].clone();
    fixture.call_ok("write", json!({ "path": "d/e/b", "content": "2\n" }));
    fixture.call_ok("copy", json!({ "from": "d/a", "to": "d/c" }));
    fixture.call_ok("move", json!({ "from": "d/c", "to": "x" }));
    fixture.call_ok("move", json!({ "from": "x", "to": "d/y" }));
    fixture.call_ok("append", json!({ "path": "d/y", "content": "3\n" }));
    fixture.call_ok("remove", json!({ "path": "d", "recursive": true }));
    let events_for = |watch: &Value| {
        event_summaries(&Value::Object(fixture.call_ok("watched", json!({ "watch": watch, "own": true }))))
    };
    assert_eq!(
        events_for(&deep),
        ["create d/e", "create d/e/b", "create d/c", "rename d/c x", "rename x d/y", "modify d/y", "delete d"]
    );
    assert_eq!(events_for(&shallow), ["create d/e", "create d/c", "delete d/c", "create d/y", "delete d"]);
    assert_eq!(event_summaries(&Value::Object(fixture.call_ok("watched", json!({})))), Vec::<String>::new());
    fixture.call_ok("unwatch", json!({ "watch": deep }));
    assert_eq!(fixture.call_ok("watched", json!({}))["watches"], 1);
}

#[test]
fn stale_read_is_reported_once() {
    let fixture = EngineFixture::new();
    let text: String = (1..=9).map(|line| format!("{line}\n")).collect();
    fixture.call_ok("write", json!({ "path": "a.rs", "content": text }));
    fixture.call_ok("write", json!({ "path": "b.rs", "content": "b\n" }));
    let read = fixture.call_ok("read", json!({ "path": "a.rs" }));
    fixture.call_ok("read", json!({ "path": "b.rs" }));
    let other = Caller::new(Principal::Agent("two".into()), "s2", "library");
    let edits = json!({ "path": "a.rs", "edits": [{ "old": "5\n", "new": "five\n" }], "base": read["version"] });
    fixture.call_as(&other, "edit", edits).unwrap();
    let next = fixture.call("stat", json!({ "path": "b.rs" })).unwrap();
    let entry = next.json["changed_since_read"][0]["to"].as_str().unwrap().to_owned();
    assert_eq!(
        next.json["changed_since_read"],
        json!([{ "path": "a.rs", "from": "r1", "to": entry, "lines": [[5, 5]], "actor": "agent:two" }])
    );
    let line = format!("[changed since you read: a.rs (r1 -> {entry}, lines 5-5, agent:two)]");
    assert!(next.text.ends_with(&line), "{}", next.text);
    assert_eq!(fixture.call_ok("stat", json!({ "path": "b.rs" })).get("changed_since_read"), None, "once");
    // The caller's own changes are not reported, nor are changes that the read itself shows.
    let own = fixture.call_ok("append", json!({ "path": "b.rs", "content": "more\n" }));
    assert_eq!(fixture.call_ok("stat", json!({ "path": "b.rs" })).get("changed_since_read"), None);
    fixture.call_as(&other, "append", json!({ "path": "b.rs", "content": "theirs\n" })).unwrap();
    assert_eq!(fixture.call_ok("read", json!({ "path": "b.rs" })).get("changed_since_read"), None);
    fixture.call_as(&other, "remove", json!({ "path": "b.rs" })).unwrap();
    assert_eq!(fixture.call_ok("stat", json!({ "path": "a.rs" }))["changed_since_read"][0]["to"], "gone");
    assert_ne!(own["version"], Value::Null);
}

#[test]
fn stale_read_notice_waits_for_suitable_outcome() {
    let fixture = EngineFixture::new();
    for path in ["a.rs", "b.rs"] {
        fixture.call_ok("write", json!({ "path": path, "content": "x\n" }));
        fixture.call_ok("read", json!({ "path": path }));
    }
    let other = Caller::new(Principal::Agent("two".into()), "s2", "library");
    for path in ["a.rs", "b.rs"] {
        fixture.call_as(&other, "append", json!({ "path": path, "content": "theirs\n" })).unwrap();
    }
    // Some protocols return only the bytes of a file and cannot show a notice.
    let arguments = json!({ "path": "b.rs" }).as_object().cloned().unwrap();
    let mut call = JsonCall::new(&fixture.caller, "read", arguments);
    call.options.before_after = BeforeAfterContentInclusion::Include;
    let bytes = fixture.engine.call(&call).unwrap();
    assert_eq!(bytes.json.get("changed_since_read"), None);
    let next = fixture.call_ok("stat", json!({ "path": "." }));
    let stale = next["changed_since_read"].as_array().unwrap();
    // The bytes of b.rs have shown its change, so the notice names only a.rs.
    assert_eq!((stale.len(), &stale[0]["path"]), (1, &json!("a.rs")), "{next:?}");
}

#[test]
fn watch_omits_unreadable_paths() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "open/a", "content": "1\n" }));
    fixture.call_ok("write", json!({ "path": "shut/a", "content": "1\n" }));
    let mut narrow = Caller::new(Principal::Agent("narrow".into()), "s3", "library");
    narrow.grants = Grants { readable: vec![RelPath::from_wire("open").unwrap()], ..Grants::default() };
    fixture.call_as(&narrow, "watch", json!({ "recursive": true })).unwrap();
    fixture.call_ok("append", json!({ "path": "shut/a", "content": "2\n" }));
    fixture.call_ok("move", json!({ "from": "shut/a", "to": "open/b" }));
    fixture.call_ok("move", json!({ "from": "open/a", "to": "shut/c" }));
    let events = fixture.call_as(&narrow, "watched", json!({})).unwrap().json;
    assert_eq!(event_summaries(&Value::Object(events.clone())), ["create open/b", "delete open/a"]);
    assert!(!Value::Object(events).to_string().contains("shut"));
}

#[test]
fn moved_directory_with_matching_contents_is_reported() {
    let fixture = EngineFixture::new();
    fixture.call_ok("write", json!({ "path": "d/x.log", "content": "1\n" }));
    fixture.call_ok("write", json!({ "path": "d/x.txt", "content": "1\n" }));
    fixture.call_ok("write", json!({ "path": "e/y.log", "content": "1\n" }));
    fixture.call_ok("watch", json!({ "recursive": true, "glob": "*.log" }));
    fixture.call_ok("watch", json!({ "path": "e", "recursive": true, "glob": "*.log" }));
    fixture.call_ok("move", json!({ "from": "d", "to": "e/f" }));
    fixture.call_ok("move", json!({ "from": "e/f/x.txt", "to": "e/f/y.txt" }));
    fixture.call_ok("write", json!({ "path": "empty/no", "content": "1\n" }));
    let removed = fixture.call_ok("remove", json!({ "path": "e/f", "recursive": true }));
    fixture.call_ok("restore", json!({ "trash": removed["trash"] }));
    assert_eq!(
        event_summaries(&Value::Object(fixture.call_ok("watched", json!({ "own": true })))),
        ["rename d e/f", "rescan e/f", "delete e/f", "delete e/f", "rescan e/f", "rescan e/f",]
    );
}

fn received_events(follower: &mut CallerWatchEventReader, ids: &[&str]) -> Vec<(String, String)> {
    let ids = || ids.iter().map(|id| (*id).to_owned()).collect();
    let events = follower.wait_for_events(&ids, Instant::now(), &CancelToken::default()).unwrap();
    events.into_iter().map(|event| (event.watch, event.path.to_string())).collect()
}

#[test]
fn late_watch_receives_events_since_its_start() {
    let fixture = EngineFixture::new();
    let other = Caller::new(Principal::Agent("two".into()), "s2", "library");
    let write = |path: &str| {
        fixture.call_as(&other, "write", json!({ "path": path, "content": path, "base": "" })).unwrap();
    };
    let watch = |path: &str| {
        let begun = fixture.call_ok("watch", json!({ "path": path, "recursive": true }));
        begun["watch"].as_str().unwrap().to_owned()
    };
    write("a/0");
    let mut follower = CallerWatchEventReader::new(fixture.engine.clone(), fixture.caller.clone());
    let first = watch("a");
    write("a/1");
    let event = |id: &str, path: &str| (id.to_owned(), path.to_owned());
    assert_eq!(received_events(&mut follower, &[&first]), [event(&first, "a/1")]);
    write("b/0");
    let second = watch("b");
    write("b/1");
    write("a/2");
    assert_eq!(received_events(&mut follower, &[&first]), [event(&first, "a/2")]);
    write("b/2");
    write("a/3");
    let both = [first.as_str(), second.as_str()];
    assert_eq!(
        received_events(&mut follower, &both),
        [event(&second, "b/1"), event(&second, "b/2"), event(&first, "a/3")],
        "each event once, and none before the watch began"
    );
    assert_eq!(received_events(&mut follower, &both), []);
    write("a/4");
    assert_eq!(received_events(&mut follower, &both), [event(&first, "a/4")]);
}
