//! Tests of `stat`: the attributes of every kind of file, and symlinks that lead out of the workspace.

use insta::assert_snapshot;
use serde_json::json;
use stead_engine::ErrorKind;
use testkit::{engine_fixture::EngineFixture, hint_text};

#[test]
fn stat_returns_all_file_metadata() {
    let fixture = EngineFixture::with_files(&[("d/a", "hi")]);
    fixture.workspace.set_mode("d/a", 0o100_640);
    assert_snapshot!(fixture.call_rendered("stat", json!({ "path": "d/a" })));
    fixture.workspace.set_link_count("d/a", 2);
    assert_eq!(fixture.call_ok("stat", json!({ "path": "d/a" }))["links"], 2);
}

#[test]
fn non_files_report_their_kind() {
    let fixture = EngineFixture::with_files(&[("d/a", "hi")]);
    fixture.workspace.put_special("pipe");
    for (path, kind) in [(".", "directory"), ("d", "directory"), ("d/", "directory"), ("pipe", "other")] {
        let outcome = fixture.call_ok("stat", json!({ "path": path }));
        assert_eq!((&outcome["type"], outcome.get("version")), (&json!(kind), None), "{path}");
    }
    let error = fixture.call_err("stat", json!({ "path": "d/none" }), ErrorKind::NotFound);
    assert!(hint_text(&error).contains("list with path d"));
}

#[test]
fn link_stat_never_reveals_outside_target() {
    let fixture = EngineFixture::with_files(&[("d/a", "hi")]);
    for (target, shown) in [
        ("d/a", "d/a"),
        ("missing", "missing"),
        ("/ws/d/a", "d/a"),
        ("/etc/passwd", "(outside)"),
        ("../other", "(outside)"),
        ("d/../../x", "(outside)"),
        ("link", "link"),
        ("d/a/x", "d/a/x"),
    ] {
        fixture.workspace.put_link("link", target);
        let outcome = fixture.call("stat", json!({ "path": "link" })).unwrap();
        assert_eq!((&outcome.json["type"], &outcome.json["target"]), (&json!("link"), &json!(shown)), "{target}");
        assert!(!outcome.text.contains("passwd"), "{target}");
    }
}
