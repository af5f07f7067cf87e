//! `list`: order, depth, hidden names, pages, scope.

use engine::{Kind, limits};
use serde_json::{Value, json};

use crate::world::{World, confined};

fn paths(answer: &engine::Answer) -> Vec<String> {
    let entries = answer.json["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

fn tree() -> World {
    let world =
        World::with(&[("b", "12"), ("a/y", "1"), ("a/x/deep", ""), ("a-b", ""), (".hidden", ""), ("Z", "")]);
    world.workspace.put_link("l", "b");
    world.workspace.put_directory("empty");
    world
}

#[test]
fn one_level_in_byte_order() {
    let answer = tree().ok("list", json!({}));
    assert_eq!(paths(&answer), ["Z", "a", "a-b", "b", "empty", "l"]);
    assert_eq!(answer.json["total"], 6);
    assert_eq!(answer.json["hidden"], 1);
    assert_eq!(answer.json["entries"][1], json!({ "path": "a", "type": "directory" }));
    assert_eq!(answer.json["entries"][3], json!({ "path": "b", "type": "file", "size": 2 }));
    assert_eq!(answer.json["entries"][5], json!({ "path": "l", "type": "link" }));
    assert_eq!(
        answer.text,
        "Z  0\na/\na-b  0\nb  2\nempty/\nl@\n[.: 6 entries, 1 hidden (all: true shows them)]"
    );
}

#[test]
fn deeper_levels_follow_their_parent() {
    let world = tree();
    let answer = world.ok("list", json!({ "depth": 2, "all": true }));
    assert_eq!(paths(&answer), [".hidden", "Z", "a", "a/x", "a/y", "a-b", "b", "empty", "l"]);
    assert_eq!((answer.json.get("hidden"), answer.json.get("total")), (None, None));
    let below = world.ok("list", json!({ "path": "a", "depth": 9 }));
    assert_eq!(paths(&below), ["a/x", "a/x/deep", "a/y"]);
    assert_eq!(below.text, "x/\nx/deep  0\ny  1\n[a: 3 entries]");
    assert_eq!(world.ok("list", json!({ "path": "empty" })).text, "[empty: empty]");
}

#[test]
fn what_is_no_directory_is_refused() {
    let world = tree();
    world.workspace.put_link("out", "/etc");
    assert!(world.fails("list", json!({ "path": "b" }), Kind::NotDirectory).hint.unwrap().contains("read"));
    assert!(
        world.fails("list", json!({ "path": "a/none" }), Kind::NotFound).hint.unwrap().contains("path a")
    );
    world.fails("list", json!({ "path": "out" }), Kind::PathEscape);
    world.fails("list", json!({ "depth": 0 }), Kind::BadRequest);
    world.fails("list", json!({ "depth": limits::LIST_DEPTH_MAX + 1 }), Kind::BadRequest);
    world.fails("list", json!({ "cursor": "../x" }), Kind::BadRequest);
    world.fails("list", json!({ "path": "a", "cursor": "b" }), Kind::BadRequest);
}

/// Reads all pages, calling `between` after each.
fn all_pages(world: &World, mut arguments: Value, between: impl Fn(&[String])) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let answer = world.ok("list", arguments);
        assert!(answer.text.chars().count() < limits::PAGE_CHARS + 500);
        seen.extend(paths(&answer));
        between(&seen);
        assert_eq!(answer.json["truncated"], answer.json.contains_key("next"));
        let Some(next) = answer.json.get("next") else { return seen };
        assert!(answer.text.contains("… truncated: call list with path"));
        arguments = next.clone();
    }
}

#[test]
fn pages_add_up_at_every_depth() {
    let world = World::new();
    let name = "n".repeat(60);
    let mut expected = Vec::new();
    for directory in 0..40 {
        expected.push(format!("d{directory:02}"));
        for file in 0..40 {
            expected.push(format!("d{directory:02}/{name}{file:02}"));
        }
    }
    for path in expected.iter().filter(|path| path.contains('/')) {
        world.workspace.put_file(path, "x");
    }
    let found = all_pages(&world, json!({ "depth": 3 }), |_| {});
    assert_eq!(found, expected);
}

#[test]
fn a_page_goes_on_after_what_was_shown_even_if_that_is_gone() {
    let world = World::new();
    let name = "n".repeat(200);
    for file in 0..500 {
        world.workspace.put_file(&format!("{name}{file:03}"), "x");
    }
    let first = world.ok("list", json!({}));
    assert_eq!(first.json["total"], 500);
    let found = all_pages(&world, json!({}), |seen| {
        world.workspace.take(seen.last().unwrap());
        world.workspace.put_file(&format!("{name}000-new"), "before the cursor, so not on a later page");
    });
    assert_eq!(found.len(), 500);
    assert!(found.is_sorted());
}

#[test]
fn strange_names_are_escaped_in_the_twin() {
    let world = World::new();
    world.workspace.put_file("a\nb\u{202e}", "");
    world.workspace.put_file("caf\\xE9", "");
    let answer = world.ok("list", json!({}));
    assert_eq!(answer.text, "a\\u{a}b\\u{202e}  0\ncaf\\xE9  0\n[.: 2 entries]");
    assert_eq!(paths(&answer), ["a\nb\u{202e}", "caf\\xE9"]);
    world.ok("read", json!({ "path": "caf\\xE9" }));
}

#[test]
fn only_what_may_be_seen_is_listed() {
    let world = World::with(&[("a/open/x", ""), ("a/closed/y", ""), ("b/z", "")]);
    let caller = confined("two", &["a/open"]);
    let list = |arguments: Value| world.call_as(&caller, "list", arguments);
    assert_eq!(paths(&list(json!({ "depth": 5 })).unwrap()), ["a", "a/open", "a/open/x"]);
    assert_eq!(list(json!({ "path": "b" })).unwrap_err().kind, Kind::OutOfScope);
    assert_eq!(list(json!({ "path": "a/closed" })).unwrap_err().kind, Kind::OutOfScope);
}
