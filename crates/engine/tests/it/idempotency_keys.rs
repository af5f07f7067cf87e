//! Idempotency keys: the same key never changes anything twice.

use serde_json::{Value, json};
use stead_engine::{Call, CallOutcome, Error, ErrorKind};

use crate::engine_fixture::{EngineFixture, agent};

fn call_with_key(world: &EngineFixture, key: &str, arguments: Value) -> Result<CallOutcome, Error> {
    let Value::Object(arguments) = arguments else { panic!("object") };
    let mut call = Call::new(&world.caller, "append", arguments);
    call.idempotency_key = Some(key);
    world.engine.call(&call)
}

#[test]
fn repeated_key_returns_recorded_outcome() {
    let world = EngineFixture::with_files(&[("log", "")]);
    let arguments = json!({ "path": "log", "content": "x\n" });
    let first = call_with_key(&world, "k1", arguments.clone()).unwrap();
    let again = call_with_key(&world, "k1", arguments.clone()).unwrap();
    assert_eq!(world.workspace.bytes("log").unwrap(), b"x\n");
    for field in ["entry", "hash", "version", "rev"] {
        assert_eq!(again.json[field], first.json[field], "{field}");
    }
    assert_eq!(again.json["replayed"], true);
    assert_eq!(again.json["changes"][0]["path"], "log");
    call_with_key(&world, "k2", arguments).unwrap();
    assert_eq!(world.workspace.bytes("log").unwrap(), b"x\nx\n");
}

#[test]
fn keys_are_scoped_to_principal() {
    let mut world = EngineFixture::with_files(&[("log", "")]);
    call_with_key(&world, "k", json!({ "path": "log", "content": "1" })).unwrap();
    world.caller = agent("two");
    call_with_key(&world, "k", json!({ "path": "log", "content": "2" })).unwrap();
    assert_eq!(world.workspace.bytes("log").unwrap(), b"12");
    let empty = call_with_key(&world, "", json!({ "path": "log", "content": "3" })).unwrap_err();
    assert_eq!(empty.kind, ErrorKind::BadRequest);
}

#[test]
fn key_of_different_call_is_rejected() {
    let world = EngineFixture::new();
    let ask = |operation: &str, arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let mut call = Call::new(&world.caller, operation, arguments);
        call.idempotency_key = Some("k");
        world.engine.call(&call)
    };
    ask("write", json!({ "path": "a", "content": "x" })).unwrap();
    assert!(ask("write", json!({ "path": "a", "content": "x" })).unwrap().json.contains_key("replayed"));
    for (operation, arguments) in
        [("write", json!({ "path": "b", "content": "x" })), ("append", json!({ "path": "a", "content": "x" }))]
    {
        let error = ask(operation, arguments).unwrap_err();
        assert_eq!(error.kind, ErrorKind::BadRequest, "{error}");
    }
}
