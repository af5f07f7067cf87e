//! Tests of idempotency keys: a call that repeats a key changes nothing and returns the first outcome.

use serde_json::{Value, json};
use stead_engine::{Error, ErrorKind};
use testkit::engine_fixture::{EngineFixture, agent};
use testkit::native::{EngineJsonCalls, JsonCall, RenderedOutcome};

fn call_with_key(fixture: &EngineFixture, key: &str, arguments: Value) -> Result<RenderedOutcome, Error> {
    let Value::Object(arguments) = arguments else { panic!("object") };
    let mut call = JsonCall::new(&fixture.caller, "append", arguments);
    call.idempotency_key = Some(key);
    fixture.engine.call(&call)
}

#[test]
fn repeated_key_returns_recorded_outcome() {
    let fixture = EngineFixture::with_files(&[("log", "")]);
    let arguments = json!({ "path": "log", "content": "x\n" });
    let first = call_with_key(&fixture, "k1", arguments.clone()).unwrap();
    let again = call_with_key(&fixture, "k1", arguments.clone()).unwrap();
    assert_eq!(fixture.workspace.bytes("log").unwrap(), b"x\n");
    for field in ["entry", "hash", "version", "rev"] {
        assert_eq!(again.json[field], first.json[field], "{field}");
    }
    assert_eq!(again.json["replayed"], true);
    assert_eq!(again.json["changes"][0]["path"], "log");
    call_with_key(&fixture, "k2", arguments).unwrap();
    assert_eq!(fixture.workspace.bytes("log").unwrap(), b"x\nx\n");
}

#[test]
fn keys_are_scoped_to_principal() {
    let mut fixture = EngineFixture::with_files(&[("log", "")]);
    call_with_key(&fixture, "k", json!({ "path": "log", "content": "1" })).unwrap();
    fixture.caller = agent("two");
    call_with_key(&fixture, "k", json!({ "path": "log", "content": "2" })).unwrap();
    assert_eq!(fixture.workspace.bytes("log").unwrap(), b"12");
    let empty = call_with_key(&fixture, "", json!({ "path": "log", "content": "3" })).unwrap_err();
    assert_eq!(empty.kind, ErrorKind::BadRequest);
}

#[test]
fn key_of_different_call_is_rejected() {
    let fixture = EngineFixture::new();
    let call_again = |operation: &str, arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let mut call = JsonCall::new(&fixture.caller, operation, arguments);
        call.idempotency_key = Some("k");
        fixture.engine.call(&call)
    };
    call_again("write", json!({ "path": "a", "content": "x" })).unwrap();
    assert!(call_again("write", json!({ "path": "a", "content": "x" })).unwrap().json.contains_key("replayed"));
    for (operation, arguments) in
        [("write", json!({ "path": "b", "content": "x" })), ("append", json!({ "path": "a", "content": "x" }))]
    {
        let error = call_again(operation, arguments).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadRequest, "{error}");
    }
}
