//! Watches on a workspace that only the engine changes, and the word to a reader whose file changed.

use std::time::Instant;

use engine::{Call, Caller, Cancel, Evidence, Follower, Grants, Heard, Principal};
use path::RelPath;
use serde_json::{Value, json};

use crate::world::World;

fn shorts(answer: &Value) -> Vec<String> {
    let one = |event: &Value| {
        let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", word("event"), word("path"), word("new_path")).trim_end().to_owned()
    };
    answer["events"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn every_change_has_its_event_at_the_watch_that_reaches_it() {
    let world = World::new();
    world.ok("write", json!({ "path": "d/a", "content": "1\n" }));
    let deep = world.ok("watch", json!({ "recursive": true })).json["watch"].clone();
    let shallow =
        world.ok("watch", json!({ "path": "d", "types": ["create", "delete"] })).json["watch"].clone();
    world.ok("write", json!({ "path": "d/e/b", "content": "2\n" }));
    world.ok("copy", json!({ "from": "d/a", "to": "d/c" }));
    world.ok("move", json!({ "from": "d/c", "to": "x" }));
    world.ok("move", json!({ "from": "x", "to": "d/y" }));
    world.ok("append", json!({ "path": "d/y", "content": "3\n" }));
    world.ok("remove", json!({ "path": "d", "recursive": true }));
    let told = |watch: &Value| {
        shorts(&Value::Object(world.ok("watched", json!({ "watch": watch, "own": true })).json))
    };
    assert_eq!(
        told(&deep),
        [
            "create d/e",
            "create d/e/b",
            "create d/c",
            "rename d/c x",
            "rename x d/y",
            "modify d/y",
            "delete d"
        ]
    );
    assert_eq!(told(&shallow), ["create d/e", "create d/c", "delete d/c", "create d/y", "delete d"]);
    assert_eq!(shorts(&Value::Object(world.ok("watched", json!({})).json)), Vec::<String>::new());
    world.ok("unwatch", json!({ "watch": deep }));
    assert_eq!(world.ok("watched", json!({})).json["watches"], 1);
}

#[test]
fn a_reader_whose_file_changed_is_told_once_with_its_next_answer() {
    let world = World::new();
    let text: String = (1..=9).map(|line| format!("{line}\n")).collect();
    world.ok("write", json!({ "path": "a.rs", "content": text }));
    world.ok("write", json!({ "path": "b.rs", "content": "b\n" }));
    let read = world.ok("read", json!({ "path": "a.rs" })).json;
    world.ok("read", json!({ "path": "b.rs" }));
    let other = Caller::new(Principal::Agent("two".into()), "s2", "library");
    let edits =
        json!({ "path": "a.rs", "edits": [{ "old": "5\n", "new": "five\n" }], "base": read["version"] });
    world.call_as(&other, "edit", edits).unwrap();
    let next = world.ok("stat", json!({ "path": "b.rs" }));
    let entry = next.json["changed_since_read"][0]["to"].as_str().unwrap().to_owned();
    assert_eq!(
        next.json["changed_since_read"],
        json!([{ "path": "a.rs", "from": "r1", "to": entry, "lines": [[5, 5]], "actor": "agent:two" }])
    );
    let line = format!("[changed since you read: a.rs (r1 -> {entry}, lines 5-5, agent:two)]");
    assert!(next.text.ends_with(&line), "{}", next.text);
    assert_eq!(world.ok("stat", json!({ "path": "b.rs" })).json.get("changed_since_read"), None, "once");
    // One's own change is no news, and what a read shows anyway is none either.
    let own = world.ok("append", json!({ "path": "b.rs", "content": "more\n" })).json;
    assert_eq!(world.ok("stat", json!({ "path": "b.rs" })).json.get("changed_since_read"), None);
    world.call_as(&other, "append", json!({ "path": "b.rs", "content": "theirs\n" })).unwrap();
    assert_eq!(world.ok("read", json!({ "path": "b.rs" })).json.get("changed_since_read"), None);
    world.call_as(&other, "remove", json!({ "path": "b.rs" })).unwrap();
    assert_eq!(world.ok("stat", json!({ "path": "a.rs" })).json["changed_since_read"][0]["to"], "gone");
    assert_ne!(own["version"], Value::Null);
}

#[test]
fn what_an_answer_of_bytes_has_no_room_for_is_told_with_the_next() {
    let world = World::new();
    for path in ["a.rs", "b.rs"] {
        world.ok("write", json!({ "path": path, "content": "x\n" }));
        world.ok("read", json!({ "path": path }));
    }
    let other = Caller::new(Principal::Agent("two".into()), "s2", "library");
    for path in ["a.rs", "b.rs"] {
        world.call_as(&other, "append", json!({ "path": path, "content": "theirs\n" })).unwrap();
    }
    // As a face asks that sends the bytes of a file and nothing else.
    let arguments = json!({ "path": "b.rs" }).as_object().cloned().unwrap();
    let mut call = Call::new(&world.caller, "read", arguments);
    call.terms.evidence = Evidence::Bytes;
    let bytes = world.engine.call(&call).unwrap();
    assert_eq!(bytes.json.get("changed_since_read"), None);
    let next = world.ok("stat", json!({ "path": "." })).json;
    let told = next["changed_since_read"].as_array().unwrap();
    // What the bytes showed is no news.
    assert_eq!((told.len(), &told[0]["path"]), (1, &json!("a.rs")), "{next:?}");
}

#[test]
fn a_watch_tells_nothing_of_what_its_owner_may_not_read() {
    let world = World::new();
    world.ok("write", json!({ "path": "open/a", "content": "1\n" }));
    world.ok("write", json!({ "path": "shut/a", "content": "1\n" }));
    let mut narrow = Caller::new(Principal::Agent("narrow".into()), "s3", "library");
    narrow.grants = Grants { readable: vec![RelPath::from_wire("open").unwrap()], ..Grants::default() };
    world.call_as(&narrow, "watch", json!({ "recursive": true })).unwrap();
    world.ok("append", json!({ "path": "shut/a", "content": "2\n" }));
    world.ok("move", json!({ "from": "shut/a", "to": "open/b" }));
    world.ok("move", json!({ "from": "open/a", "to": "shut/c" }));
    let told = world.call_as(&narrow, "watched", json!({})).unwrap().json;
    assert_eq!(shorts(&Value::Object(told.clone())), ["create open/b", "delete open/a"]);
    assert!(!Value::Object(told).to_string().contains("shut"));
}

#[test]
fn a_directory_that_carries_what_fits_a_pattern_is_told_though_its_name_does_not_fit() {
    let world = World::new();
    world.ok("write", json!({ "path": "d/x.log", "content": "1\n" }));
    world.ok("write", json!({ "path": "d/x.txt", "content": "1\n" }));
    world.ok("write", json!({ "path": "e/y.log", "content": "1\n" }));
    world.ok("watch", json!({ "recursive": true, "glob": "*.log" }));
    world.ok("watch", json!({ "path": "e", "recursive": true, "glob": "*.log" }));
    world.ok("move", json!({ "from": "d", "to": "e/f" }));
    world.ok("move", json!({ "from": "e/f/x.txt", "to": "e/f/y.txt" }));
    world.ok("write", json!({ "path": "empty/no", "content": "1\n" }));
    let removed = world.ok("remove", json!({ "path": "e/f", "recursive": true })).json;
    world.ok("restore", json!({ "trash": removed["trash"] }));
    assert_eq!(
        shorts(&Value::Object(world.ok("watched", json!({ "own": true })).json)),
        ["rename d e/f", "rescan e/f", "delete e/f", "delete e/f", "rescan e/f", "rescan e/f",]
    );
}

/// What a follower hears of these watches without waiting.
fn heard(follower: &mut Follower, ids: &[&str]) -> Vec<(String, String)> {
    let ids = || ids.iter().map(|id| (*id).to_owned()).collect();
    let heard = follower.wait(&ids, Instant::now(), &Cancel::default()).unwrap();
    let one = |Heard { watch, event }: Heard| (watch, event["path"].as_str().unwrap().to_owned());
    heard.into_iter().map(one).collect()
}

/// Whoever begins a watch names it to the follower after it began, and others do not wait for that.
#[test]
fn a_watch_that_is_named_late_hears_what_happened_since_it_began() {
    let world = World::new();
    let other = Caller::new(Principal::Agent("two".into()), "s2", "library");
    let write = |path: &str| {
        world.call_as(&other, "write", json!({ "path": path, "content": path, "base": "" })).unwrap();
    };
    let watch = |path: &str| {
        let begun = world.ok("watch", json!({ "path": path, "recursive": true })).json;
        begun["watch"].as_str().unwrap().to_owned()
    };
    write("a/0");
    let mut follower = Follower::new(world.engine.clone(), world.caller.clone());
    let first = watch("a");
    write("a/1");
    let told = |id: &str, path: &str| (id.to_owned(), path.to_owned());
    assert_eq!(heard(&mut follower, &[&first]), [told(&first, "a/1")]);
    write("b/0");
    let second = watch("b");
    write("b/1");
    write("a/2");
    assert_eq!(heard(&mut follower, &[&first]), [told(&first, "a/2")]);
    write("b/2");
    write("a/3");
    let both = [first.as_str(), second.as_str()];
    assert_eq!(
        heard(&mut follower, &both),
        [told(&second, "b/1"), told(&second, "b/2"), told(&first, "a/3")],
        "each event once, and none before the watch began"
    );
    assert_eq!(heard(&mut follower, &both), []);
    write("a/4");
    assert_eq!(heard(&mut follower, &both), [told(&first, "a/4")]);
}
