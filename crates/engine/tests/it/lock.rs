//! `lock` and `unlock`: leases that others see and that end.

use engine::{Kind, limits};
use serde_json::json;

use crate::world::{World, agent, confined};

#[test]
fn a_lease_names_its_holder_fence_and_end() {
    let world = World::new();
    let answer = world.ok("lock", json!({ "path": "src/", "seconds": 60 }));
    assert_eq!((&answer.json["path"], &answer.json["holder"]), (&json!("src"), &json!("agent:one")));
    assert_eq!(
        (&answer.json["fence"], &answer.json["ends"]),
        (&json!(1), &json!("2026-01-01T00:01:00.000Z"))
    );
    assert_eq!(answer.json["entry"], 1);
    assert!(answer.json["hash"].is_string());
    assert_eq!(answer.text, "src is yours until 2026-01-01T00:01:00.000Z, fence 1");
    assert_eq!(world.ok("lock", json!({ "path": "src" })).json["fence"], 2, "a longer lease is a new grant");
}

#[test]
fn others_wait_until_it_ends_or_is_given_back() {
    let world = World::new();
    let other = agent("two");
    let write = json!({ "path": "src/a", "content": "x" });
    world.ok("lock", json!({ "path": "src", "seconds": 60 }));
    for (operation, arguments) in
        [("lock", json!({ "path": "src" })), ("lock", json!({ "path": "src/a" })), ("write", write.clone())]
    {
        let failure = world.call_as(&other, operation, arguments).unwrap_err();
        assert_eq!(
            (failure.kind, &failure.facts["holder"]),
            (Kind::Locked, &json!("agent:one")),
            "{operation}"
        );
    }
    world.call_as(&other, "lock", json!({ "path": "elsewhere" })).unwrap();
    world.ok("write", write.clone());
    assert_eq!(world.ok("unlock", json!({ "path": "src" })).text, "src is free again");
    world.call_as(&other, "lock", json!({ "path": "src", "seconds": 60 })).unwrap();
    world.fails("unlock", json!({ "path": "src" }), Kind::Locked);
    world.workspace.advance_ms(60_001);
    world.ok("lock", json!({ "path": "src" }));
}

#[test]
fn what_cannot_be_held_is_refused() {
    let world = World::new();
    world.fails("lock", json!({ "path": "a", "seconds": 0 }), Kind::BadRequest);
    world.fails("lock", json!({ "path": "a", "seconds": limits::LEASE_SECONDS_MAX + 1 }), Kind::BadRequest);
    world.fails("lock", json!({ "path": "." }), Kind::InvalidPath);
    world.fails("lock", json!({ "path": ".git/config" }), Kind::ApprovalPending);
    world.fails("unlock", json!({ "path": "a" }), Kind::NotFound);
    let failure = world.call_as(&confined("two", &["b"]), "lock", json!({ "path": "a" })).unwrap_err();
    assert_eq!(failure.kind, Kind::OutOfScope);
}
