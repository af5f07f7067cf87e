//! Tests of `list`: the order, depth and pages of a listing, and names that the caller may not see.

use insta::assert_snapshot;
use serde_json::{Map, Value, json};
use stead_engine::{ErrorKind, limits};
use testkit::engine_fixture::{EngineFixture, confined_agent};
use testkit::hint_text;

fn listed_paths(outcome: &Map<String, Value>) -> Vec<String> {
    let entries = outcome["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

fn fixture_with_tree() -> EngineFixture {
    let fixture = EngineFixture::with_files(&[
        ("b", "12"),
        ("a/y", "1"),
        ("a/x/deep", ""),
        ("a-b", ""),
        (".hidden", ""),
        ("Z", ""),
    ]);
    fixture.workspace.put_link("l", "b");
    fixture.workspace.put_directory("empty");
    fixture
}

#[test]
fn one_level_is_listed_in_byte_order() {
    assert_snapshot!(fixture_with_tree().call_rendered("list", json!({})));
}

#[test]
fn deeper_levels_follow_their_parent() {
    let fixture = fixture_with_tree();
    let outcome = fixture.call_ok("list", json!({ "depth": 2, "all": true }));
    assert_eq!(listed_paths(&outcome), [".hidden", "Z", "a", "a/x", "a/y", "a-b", "b", "empty", "l"]);
    assert_eq!((outcome.get("hidden"), outcome.get("total")), (None, None));
    assert_snapshot!(fixture.call_rendered("list", json!({ "path": "a", "depth": 9 })));
    assert_eq!(fixture.call_text("list", json!({ "path": "empty" })), "[empty: empty]");
}

#[test]
fn non_directories_are_rejected() {
    let fixture = fixture_with_tree();
    fixture.workspace.put_link("out", "/etc");
    let hint = |path: &str, kind| hint_text(&fixture.call_err("list", json!({ "path": path }), kind));
    assert!(hint("b", ErrorKind::NotDirectory).contains("read"));
    assert!(hint("a/none", ErrorKind::NotFound).contains("path a"));
    fixture.call_err("list", json!({ "path": "out" }), ErrorKind::PathEscape);
    fixture.call_err("list", json!({ "depth": 0 }), ErrorKind::BadRequest);
    fixture.call_err("list", json!({ "depth": limits::LIST_DEPTH_MAX + 1 }), ErrorKind::BadRequest);
    fixture.call_err("list", json!({ "cursor": "../x" }), ErrorKind::BadRequest);
    fixture.call_err("list", json!({ "path": "a", "cursor": "b" }), ErrorKind::BadRequest);
}

/// Lists a directory page by page, and passes the paths listed so far to `between` after each page.
fn all_pages(fixture: &EngineFixture, mut arguments: Value, between: impl Fn(&[String])) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let outcome = fixture.call("list", arguments).unwrap();
        assert!(outcome.text.chars().count() < limits::OUTCOME_PAGE_CHARS + 500);
        seen.extend(listed_paths(&outcome.json));
        between(&seen);
        assert_eq!(outcome.json["truncated"], outcome.json.contains_key("next"));
        let Some(next) = outcome.json.get("next") else { return seen };
        assert!(outcome.text.contains("… truncated: call list with path"));
        arguments = next.clone();
    }
}

#[test]
fn pages_cover_all_entries_at_every_depth() {
    let fixture = EngineFixture::new();
    let name = "n".repeat(60);
    let mut expected = Vec::new();
    for directory in 0..40 {
        expected.push(format!("d{directory:02}"));
        for file in 0..40 {
            expected.push(format!("d{directory:02}/{name}{file:02}"));
        }
    }
    for path in expected.iter().filter(|path| path.contains('/')) {
        fixture.workspace.put_file(path, "x");
    }
    let found = all_pages(&fixture, json!({ "depth": 3 }), |_| {});
    assert_eq!(found, expected);
}

#[test]
fn cursor_continues_after_removed_entry() {
    let fixture = EngineFixture::new();
    let name = "n".repeat(200);
    for file in 0..500 {
        fixture.workspace.put_file(&format!("{name}{file:03}"), "x");
    }
    let first = fixture.call_ok("list", json!({}));
    assert_eq!(first["total"], 500);
    let found = all_pages(&fixture, json!({}), |seen| {
        fixture.workspace.remove_silently(seen.last().unwrap());
        fixture.workspace.put_file(&format!("{name}000-new"), "before the cursor, so not on a later page");
    });
    assert_eq!(found.len(), 500);
    assert!(found.is_sorted());
}

#[test]
fn unusual_names_are_escaped_in_text() {
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("a\nb\u{202e}", "");
    fixture.workspace.put_file("caf\\xE9", "");
    let outcome = fixture.call("list", json!({})).unwrap();
    assert_eq!(outcome.text, "a\\u{a}b\\u{202e}  0\ncaf\\xE9  0\n[.: 2 entries]");
    assert_eq!(listed_paths(&outcome.json), ["a\nb\u{202e}", "caf\\xE9"]);
    fixture.call_ok("read", json!({ "path": "caf\\xE9" }));
}

#[test]
fn only_visible_entries_are_listed() {
    let fixture = EngineFixture::with_files(&[("a/open/x", ""), ("a/closed/y", ""), ("b/z", "")]);
    let caller = confined_agent("two", &["a/open"]);
    let list = |arguments: Value| fixture.call_as(&caller, "list", arguments);
    assert_eq!(listed_paths(&list(json!({ "depth": 5 })).unwrap().json), ["a", "a/open", "a/open/x"]);
    assert_eq!(list(json!({ "path": "b" })).unwrap_err().kind, ErrorKind::OutOfScope);
    assert_eq!(list(json!({ "path": "a/closed" })).unwrap_err().kind, ErrorKind::OutOfScope);
}
