//! Idempotency keys: the same key never changes anything twice.

use engine::{Answer, Call, Failure, Kind};
use serde_json::{Value, json};

use crate::world::{World, agent};

fn keyed(world: &World, key: &str, arguments: Value) -> Result<Answer, Failure> {
    let Value::Object(arguments) = arguments else { panic!("object") };
    let mut call = Call::new(&world.caller, "append", arguments);
    call.key = Some(key);
    world.engine.call(&call)
}

#[test]
fn a_repeated_key_is_answered_from_its_entry() {
    let world = World::with(&[("log", "")]);
    let arguments = json!({ "path": "log", "content": "x\n" });
    let first = keyed(&world, "k1", arguments.clone()).unwrap();
    let again = keyed(&world, "k1", arguments.clone()).unwrap();
    assert_eq!(world.workspace.bytes("log").unwrap(), b"x\n");
    for field in ["entry", "hash", "version", "rev"] {
        assert_eq!(again.json[field], first.json[field], "{field}");
    }
    assert_eq!(again.json["replayed"], true);
    assert_eq!(again.json["changes"][0]["path"], "log");
    keyed(&world, "k2", arguments).unwrap();
    assert_eq!(world.workspace.bytes("log").unwrap(), b"x\nx\n");
}

#[test]
fn a_key_belongs_to_its_principal() {
    let mut world = World::with(&[("log", "")]);
    keyed(&world, "k", json!({ "path": "log", "content": "1" })).unwrap();
    world.caller = agent("two");
    keyed(&world, "k", json!({ "path": "log", "content": "2" })).unwrap();
    assert_eq!(world.workspace.bytes("log").unwrap(), b"12");
    let empty = keyed(&world, "", json!({ "path": "log", "content": "3" })).unwrap_err();
    assert_eq!(empty.kind, Kind::BadRequest);
}

#[test]
fn a_key_of_another_call_is_refused() {
    let world = World::new();
    let ask = |operation: &str, arguments: Value| {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        let mut call = Call::new(&world.caller, operation, arguments);
        call.key = Some("k");
        world.engine.call(&call)
    };
    ask("write", json!({ "path": "a", "content": "x" })).unwrap();
    assert!(ask("write", json!({ "path": "a", "content": "x" })).unwrap().json.contains_key("replayed"));
    for (operation, arguments) in [
        ("write", json!({ "path": "b", "content": "x" })),
        ("append", json!({ "path": "a", "content": "x" })),
    ] {
        let failure = ask(operation, arguments).unwrap_err();
        assert_eq!(failure.kind, Kind::BadRequest, "{failure}");
    }
}
