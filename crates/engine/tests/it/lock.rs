//! Tests of `lock` and `unlock`: until a lease ends, other principals cannot change its path.

use serde_json::json;
use stead_engine::{ErrorKind, limits};
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, agent, confined_agent},
};

#[test]
fn lease_reports_holder_token_and_expiry() {
    let fixture = EngineFixture::new();
    let outcome = fixture.call("lock", json!({ "path": "src/", "seconds": 60 })).unwrap();
    assert_eq!((&outcome.json["path"], &outcome.json["holder"]), (&json!("src"), &json!("agent:one")));
    assert_eq!((&outcome.json["fence"], &outcome.json["ends"]), (&json!(1), &json!("2026-01-01T00:01:00.000Z")));
    assert_eq!(outcome.json["entry"], 1);
    assert!(outcome.json["hash"].is_string());
    assert_eq!(outcome.text, "locked src until 2026-01-01T00:01:00.000Z, fence 1");
    assert_eq!(fixture.call_ok("lock", json!({ "path": "src" }))["fence"], 2, "a longer lease is a new grant");
}

#[test]
fn others_are_locked_out_until_expiry_or_release() {
    let fixture = EngineFixture::new();
    let other = agent("two");
    let write = json!({ "path": "src/a", "content": "x" });
    fixture.call_ok("lock", json!({ "path": "src", "seconds": 60 }));
    for (operation, arguments) in
        [("lock", json!({ "path": "src" })), ("lock", json!({ "path": "src/a" })), ("write", write.clone())]
    {
        let error = fixture.call_as(&other, operation, arguments).unwrap_err();
        assert_eq!(
            (error.kind, &error.details_json()["holder"]),
            (ErrorKind::Locked, &json!("agent:one")),
            "{operation}"
        );
    }
    fixture.call_as(&other, "lock", json!({ "path": "elsewhere" })).unwrap();
    fixture.call_ok("write", write.clone());
    assert_eq!(fixture.call_text("unlock", json!({ "path": "src" })), "unlocked src");
    fixture.call_as(&other, "lock", json!({ "path": "src", "seconds": 60 })).unwrap();
    fixture.call_err("unlock", json!({ "path": "src" }), ErrorKind::Locked);
    fixture.workspace.advance_ms(60_001);
    fixture.call_ok("lock", json!({ "path": "src" }));
}

#[test]
fn paths_that_cannot_be_locked_are_rejected() {
    let fixture = EngineFixture::new();
    fixture.call_err("lock", json!({ "path": "a", "seconds": 0 }), ErrorKind::BadRequest);
    fixture.call_err("lock", json!({ "path": "a", "seconds": limits::LEASE_SECONDS_MAX + 1 }), ErrorKind::BadRequest);
    fixture.call_err("lock", json!({ "path": "." }), ErrorKind::InvalidPath);
    fixture.call_err("lock", json!({ "path": ".git/config" }), ErrorKind::ApprovalPending);
    fixture.call_err("unlock", json!({ "path": "a" }), ErrorKind::NotFound);
    fixture.with_caller(&confined_agent("two", &["b"])).call_err("lock", json!({ "path": "a" }), ErrorKind::OutOfScope);
}
