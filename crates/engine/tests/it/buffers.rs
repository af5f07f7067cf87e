//! Open buffers against rules: what a scope hides, what a lease and a rule hold, and how large a text may be.

use engine::{Caller, Grants, Kind, Principal, limits};
use path::RelPath;
use serde_json::{Value, json};

use crate::world::World;

fn user(name: &str) -> Caller {
    Caller::new(Principal::User(name.to_owned()), "editor", "library")
}

fn said(world: &World, caller: &Caller, operation: &str, arguments: Value) -> Value {
    match world.call_as(caller, operation, arguments.clone()) {
        Ok(answer) => Value::Object(answer.json),
        Err(failure) => panic!("{operation} {arguments}: {failure}"),
    }
}

fn places(paths: &[&str]) -> Vec<RelPath> {
    paths.iter().map(|path| RelPath::from_wire(path).unwrap()).collect()
}

#[test]
fn whoever_may_not_read_a_file_sees_no_buffer_of_it() {
    let world = World::with(&[("secret/a.txt", "one\ntwo\nthree\n"), ("open.txt", "x\n")]);
    said(
        &world,
        &user("ann"),
        "buffer.open",
        json!({ "path": "secret/a.txt", "text": "one\ntwo\nthree\ntyped\n" }),
    );
    let grants = Grants { readable: places(&["open.txt"]), ..Grants::default() };
    let blind = Caller { grants, ..world.caller.clone() };
    let read = world.call_as(&blind, "read", json!({ "path": "secret/a.txt" })).unwrap_err();
    assert_eq!(read.kind, Kind::OutOfScope);
    assert_eq!(said(&world, &blind, "search", json!({ "query": "typed" }))["total"], 0);
    // It may add to the file all the same. What it hears names neither the person nor the lines.
    let refused =
        world.call_as(&blind, "append", json!({ "path": "secret/a.txt", "content": "more\n" })).unwrap_err();
    assert_eq!(refused.kind, Kind::Conflict);
    assert!(!refused.to_json().to_string().contains("user:ann"), "{refused}");
    assert!(refused.facts.get("version").is_none() && refused.facts.get("lines").is_none());
    let grants = Grants { readable: places(&["open.txt"]), ..Grants::default() };
    let narrow = Caller { grants, ..user("bob") };
    assert_eq!(said(&world, &narrow, "buffer.list", json!({}))["buffers"], json!([]));
    let opened =
        world.call_as(&narrow, "buffer.open", json!({ "path": "secret/a.txt", "text": "" })).unwrap_err();
    assert_eq!(opened.kind, Kind::OutOfScope);
}

#[test]
fn a_lease_holds_saving_and_not_typing() {
    let world = World::with(&[("a.txt", "one\n")]);
    let ann = user("ann");
    world.ok("lock", json!({ "path": "a.txt" }));
    said(&world, &ann, "buffer.open", json!({ "path": "a.txt", "text": "one\ntyped\n" }));
    said(
        &world,
        &ann,
        "buffer.change",
        json!({ "path": "a.txt", "revision": 1, "text": "one\ntyped more\n" }),
    );
    let failure = world.call_as(&ann, "buffer.save", json!({ "path": "a.txt" })).unwrap_err();
    assert_eq!(failure.kind, Kind::Locked);
    world.ok("unlock", json!({ "path": "a.txt" }));
    said(&world, &ann, "buffer.save", json!({ "path": "a.txt" }));
}

#[test]
fn a_question_shows_what_would_be_on_disk() {
    let world = World::with(&[("a.txt", "one\ntwo\nthree\nfour\n")]);
    let rule = "[[system.rules]]
name = \"ask\"
operations = [\"edit\"]
principals = [\"agent:*\"]
tier = \"approval_required\"
";
    world.workspace.set_policy(rule);
    let ann = user("ann");
    said(&world, &ann, "buffer.open", json!({ "path": "a.txt", "text": "one\ntwo\nthree\nFOUR\n" }));
    let edit = json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "ONE" }] });
    let pending = world.call("edit", edit).unwrap_err();
    assert_eq!(pending.kind, Kind::ApprovalPending);
    let approvals = said(&world, &ann, "approvals", json!({ "id": pending.facts["approval"] }));
    let shown = approvals.to_string();
    assert!(shown.contains("+ONE") && !shown.contains("FOUR"), "{shown}");
}

#[test]
fn texts_and_their_number_are_bounded() {
    let world = World::with(&[("a.txt", "one\n")]);
    let large = "x".repeat(usize::try_from(limits::BUFFER_BYTES_MAX).unwrap() + 1);
    let failure =
        world.call_as(&user("ann"), "buffer.open", json!({ "path": "a.txt", "text": large })).unwrap_err();
    assert_eq!(failure.kind, Kind::TooLarge);
    for number in 0..limits::BUFFERS_PER_PRINCIPAL_MAX {
        said(&world, &user("ann"), "buffer.open", json!({ "path": format!("f{number}"), "text": "" }));
    }
    let failure =
        world.call_as(&user("ann"), "buffer.open", json!({ "path": "a.txt", "text": "" })).unwrap_err();
    assert_eq!(failure.kind, Kind::TooMany);
    let listed = said(&world, &user("ann"), "buffer.list", json!({}));
    assert_eq!(listed["buffers"].as_array().unwrap().len(), limits::BUFFERS_LISTED_MAX);
    assert_eq!(listed["truncated"], true);
}

#[test]
fn typing_is_recorded_without_what_was_typed() {
    let world = World::with(&[("a.txt", "one\n")]);
    said(&world, &user("ann"), "buffer.open", json!({ "path": "a.txt", "text": "my secret\n" }));
    let stored = world.engine.workspace().entry(world.entries()).unwrap().unwrap();
    assert_eq!(stored.entry.operation, "buffer.open");
    assert!(!stored.entry.arguments.contains("secret"), "{}", stored.entry.arguments);
}
