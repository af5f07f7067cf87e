//! Tests of the authorization of calls on open buffers: hidden paths, leases, policy rules and size limits.

use serde_json::json;
use stead_engine::{
    CallControl, CallDurationClass, CallDurationFactor, CallForecast, CallMetadata, CallOptions, Caller, ErrorKind,
    Grants, limits, ops::ReadArgs,
};
use testkit::error_json;
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, rel_path, user},
};

#[test]
fn buffers_of_unreadable_files_are_hidden() {
    let fixture = EngineFixture::with_files(&[("secret/a.txt", "one\ntwo\nthree\n"), ("open.txt", "x\n")]);
    fixture
        .with_caller(&user("ann"))
        .call_ok("buffer.open", json!({ "path": "secret/a.txt", "text": "one\ntwo\nthree\ntyped\n" }));
    let grants = Grants { readable: vec![rel_path("open.txt")], ..Grants::default() };
    let agent_without_access = fixture.with_caller(&Caller { grants, ..fixture.caller.clone() });
    agent_without_access.call_err("read", json!({ "path": "secret/a.txt" }), ErrorKind::OutOfScope);
    assert_eq!(agent_without_access.call_ok("search", json!({ "query": "typed" }))["total"], 0);
    // The caller may append to the file, but the error must not name the person or the lines.
    let refused = agent_without_access.call_err(
        "append",
        json!({ "path": "secret/a.txt", "content": "more\n" }),
        ErrorKind::Conflict,
    );
    assert!(!error_json(&refused).to_string().contains("user:ann"), "{refused}");
    assert!(refused.details_json().get("version").is_none() && refused.details_json().get("lines").is_none());
    let grants = Grants { readable: vec![rel_path("open.txt")], ..Grants::default() };
    let user_without_access = fixture.with_caller(&Caller { grants, ..user("bob") });
    assert_eq!(user_without_access.call_ok("buffer.list", json!({}))["buffers"], json!([]));
    user_without_access.call_err("buffer.open", json!({ "path": "secret/a.txt", "text": "" }), ErrorKind::OutOfScope);
}

#[test]
fn lease_blocks_saving_but_not_typing() {
    let fixture = EngineFixture::with_files(&[("a.txt", "one\n")]);
    let ann = fixture.with_caller(&user("ann"));
    fixture.call_ok("lock", json!({ "path": "a.txt" }));
    ann.call_ok("buffer.open", json!({ "path": "a.txt", "text": "one\ntyped\n" }));
    ann.call_ok("buffer.change", json!({ "path": "a.txt", "revision": 1, "text": "one\ntyped more\n" }));
    ann.call_err("buffer.save", json!({ "path": "a.txt" }), ErrorKind::Locked);
    fixture.call_ok("unlock", json!({ "path": "a.txt" }));
    ann.call_ok("buffer.save", json!({ "path": "a.txt" }));
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
    let ann = fixture.with_caller(&user("ann"));
    ann.call_ok("buffer.open", json!({ "path": "a.txt", "text": "one\ntwo\nthree\nFOUR\n" }));
    let edit = json!({ "path": "a.txt", "edits": [{ "old": "one", "new": "ONE" }] });
    let pending = fixture.call_err("edit", edit, ErrorKind::ApprovalPending);
    let preview = ann.call_ok("approvals", json!({ "id": pending.details_json()["approval"] }));
    let preview = json!(preview).to_string();
    assert!(preview.contains("+ONE") && !preview.contains("FOUR"), "{preview}");
}

#[test]
fn buffer_size_and_count_are_limited() {
    let fixture = EngineFixture::with_files(&[("a.txt", "one\n")]);
    let ann = fixture.with_caller(&user("ann"));
    let large = "x".repeat(usize::try_from(limits::BUFFER_BYTES_MAX).unwrap() + 1);
    ann.call_err("buffer.open", json!({ "path": "a.txt", "text": large }), ErrorKind::TooLarge);
    for number in 0..limits::BUFFERS_PER_PRINCIPAL_MAX {
        ann.call_ok("buffer.open", json!({ "path": format!("f{number}"), "text": "" }));
    }
    ann.call_err("buffer.open", json!({ "path": "a.txt", "text": "" }), ErrorKind::TooMany);
    let listed = ann.call_ok("buffer.list", json!({}));
    assert_eq!(listed["buffers"].as_array().unwrap().len(), limits::BUFFERS_LISTED_MAX);
    assert_eq!(listed["truncated"], true);
}

#[test]
fn buffer_changes_are_recorded_without_text() {
    let fixture = EngineFixture::with_files(&[("a.txt", "one\n")]);
    fixture.with_caller(&user("ann")).call_ok("buffer.open", json!({ "path": "a.txt", "text": "my secret\n" }));
    let stored = fixture.engine.workspace().entry(fixture.entry_count()).unwrap().unwrap();
    assert_eq!(stored.entry.operation, "buffer.open");
    assert!(!stored.entry.arguments.contains("secret"), "{}", stored.entry.arguments);
}

#[test]
fn call_with_a_forecast_reads_the_file_as_it_was_then_and_its_unsaved_text_as_it_is_now() {
    let options = CallOptions::default();
    let file = CallDurationFactor::FileSize { path: "a.txt", bytes: None };
    let read = |fixture: &EngineFixture, forecast: CallForecast| {
        let control = CallControl::default().with_forecast(forecast);
        let call =
            CallMetadata { caller: &fixture.caller, idempotency_key: None, options: &options, control: &control };
        fixture.engine.run(ReadArgs::new(rel_path("a.txt")), &call).unwrap().into_outcome().unwrap().content
    };
    let fixture = EngineFixture::with_files(&[("a.txt", "one\n")]);
    let forecast = fixture.engine.forecast(file, &options);
    assert_eq!(forecast.duration, CallDurationClass::Inline);
    fixture.write("a.txt", "two\n");
    assert_eq!(read(&fixture, forecast), "one\n");
    assert_eq!(read(&fixture, fixture.engine.forecast(file, &options)), "two\n");

    // An editor saves its unsaved text, which earlier calls have seen, and closes the file.
    let ann = fixture.with_caller(&user("ann"));
    ann.call_ok("buffer.open", json!({ "path": "a.txt", "text": "typed\n" }));
    let forecast = fixture.engine.forecast(file, &options);
    ann.call_ok("buffer.save", json!({ "path": "a.txt" }));
    ann.call_ok("buffer.close", json!({ "path": "a.txt" }));
    assert_eq!(read(&fixture, forecast), "typed\n");
}
