//! Tests of the authorization of calls on open buffers: hidden paths, leases, policy rules and size limits.

use serde_json::{Value, json};
use stead_engine::{Caller, ErrorKind, Grants, Principal, limits};
use stead_path::RelPath;

use crate::engine_fixture::EngineFixture;

fn user(name: &str) -> Caller {
    Caller::new(Principal::User(name.to_owned()), "editor", "library")
}

fn call_json(fixture: &EngineFixture, caller: &Caller, operation: &str, arguments: Value) -> Value {
    match fixture.call_as(caller, operation, arguments.clone()) {
        Ok(outcome) => Value::Object(outcome.json),
        Err(error) => panic!("{operation} {arguments}: {error}"),
    }
}

fn rel_paths(paths: &[&str]) -> Vec<RelPath> {
    paths.iter().map(|path| RelPath::from_wire(path).unwrap()).collect()
}

#[test]
fn buffers_of_unreadable_files_are_hidden() {
    let fixture = EngineFixture::with_files(&[("secret/a.txt", "one\ntwo\nthree\n"), ("open.txt", "x\n")]);
    call_json(
        &fixture,
        &user("ann"),
        "buffer.open",
        json!({ "path": "secret/a.txt", "text": "one\ntwo\nthree\ntyped\n" }),
    );
    let grants = Grants { readable: rel_paths(&["open.txt"]), ..Grants::default() };
    let agent_without_access = Caller { grants, ..fixture.caller.clone() };
    let read = fixture.call_as(&agent_without_access, "read", json!({ "path": "secret/a.txt" })).unwrap_err();
    assert_eq!(read.kind, ErrorKind::OutOfScope);
    assert_eq!(call_json(&fixture, &agent_without_access, "search", json!({ "query": "typed" }))["total"], 0);
    // The caller may append to the file, but the error must not name the person or the lines.
    let refused = fixture
        .call_as(&agent_without_access, "append", json!({ "path": "secret/a.txt", "content": "more\n" }))
        .unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Conflict);
    assert!(!refused.to_json().to_string().contains("user:ann"), "{refused}");
    assert!(refused.details.get("version").is_none() && refused.details.get("lines").is_none());
    let grants = Grants { readable: rel_paths(&["open.txt"]), ..Grants::default() };
    let user_without_access = Caller { grants, ..user("bob") };
    assert_eq!(call_json(&fixture, &user_without_access, "buffer.list", json!({}))["buffers"], json!([]));
    let opened = fixture
        .call_as(&user_without_access, "buffer.open", json!({ "path": "secret/a.txt", "text": "" }))
        .unwrap_err();
    assert_eq!(opened.kind, ErrorKind::OutOfScope);
}

#[test]
fn lease_blocks_saving_but_not_typing() {
    let fixture = EngineFixture::with_files(&[("a.txt", "one\n")]);
    let ann = user("ann");
    fixture.call_ok("lock", json!({ "path": "a.txt" }));
    call_json(&fixture, &ann, "buffer.open", json!({ "path": "a.txt", "text": "one\ntyped\n" }));
    call_json(&fixture, &ann, "buffer.change", json!({ "path": "a.txt", "revision": 1, "text": "one\ntyped more\n" }));
    let error = fixture.call_as(&ann, "buffer.save", json!({ "path": "a.txt" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Locked);
    fixture.call_ok("unlock", json!({ "path": "a.txt" }));
    call_json(&fixture, &ann, "buffer.save", json!({ "path": "a.txt" }));
}

#[test]
fn approval_preview_shows_bytes_on_disk() {
    let fixture = EngineFixture::with_files(&[("a.txt", "one\ntwo\nthree\nfour\n")]);
    let rule = "[[system.rules]]
name = \"ask\"
operations = [\"edit\"]
principals = [\"agent:*\"]
tier = \"approval_required\"
";
    fixture.workspace.set_policy(rule);
    let ann = user("ann");
    call_json(&fixture, &ann, "buffer.open", json!({ "path": "a.txt", "text": "one\ntwo\nthree\nFOUR\n" }));
    let edit = json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "ONE" }] });
    let pending = fixture.call("edit", edit).unwrap_err();
    assert_eq!(pending.kind, ErrorKind::ApprovalPending);
    let approvals = call_json(&fixture, &ann, "approvals", json!({ "id": pending.details["approval"] }));
    let preview = approvals.to_string();
    assert!(preview.contains("+ONE") && !preview.contains("FOUR"), "{preview}");
}

#[test]
fn buffer_size_and_count_are_limited() {
    let fixture = EngineFixture::with_files(&[("a.txt", "one\n")]);
    let large = "x".repeat(usize::try_from(limits::BUFFER_BYTES_MAX).unwrap() + 1);
    let error = fixture.call_as(&user("ann"), "buffer.open", json!({ "path": "a.txt", "text": large })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooLarge);
    for number in 0..limits::BUFFERS_PER_PRINCIPAL_MAX {
        call_json(&fixture, &user("ann"), "buffer.open", json!({ "path": format!("f{number}"), "text": "" }));
    }
    let error = fixture.call_as(&user("ann"), "buffer.open", json!({ "path": "a.txt", "text": "" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::TooMany);
    let listed = call_json(&fixture, &user("ann"), "buffer.list", json!({}));
    assert_eq!(listed["buffers"].as_array().unwrap().len(), limits::BUFFERS_LISTED_MAX);
    assert_eq!(listed["truncated"], true);
}

#[test]
fn buffer_changes_are_recorded_without_text() {
    let fixture = EngineFixture::with_files(&[("a.txt", "one\n")]);
    call_json(&fixture, &user("ann"), "buffer.open", json!({ "path": "a.txt", "text": "my secret\n" }));
    let stored = fixture.engine.workspace().entry(fixture.entry_count()).unwrap().unwrap();
    assert_eq!(stored.entry.operation, "buffer.open");
    assert!(!stored.entry.arguments.contains("secret"), "{}", stored.entry.arguments);
}
