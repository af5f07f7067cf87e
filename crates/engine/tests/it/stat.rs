//! `stat`: every kind of thing, and nothing about the outside.

use engine::{Kind, Version};
use serde_json::{Value, json};

use crate::world::World;

#[test]
fn a_file_has_all_its_facts() {
    let world = World::with(&[("d/a", "hi")]);
    world.workspace.set_mode("d/a", 0o100_640);
    let answer = world.ok("stat", json!({ "path": "d/a" }));
    let version = Version::of(b"hi");
    let expected = json!({
        "path": "d/a", "type": "file", "size": 2, "modified": "2026-01-01T00:00:00.000Z", "mode": "0640",
        "version": version.to_string(), "rev": version.short(),
    });
    assert_eq!(Value::Object(answer.json), expected);
    assert!(answer.text.starts_with("d/a: file, 2 bytes, mode 0640"), "{}", answer.text);
    world.workspace.set_links("d/a", 2);
    assert_eq!(world.ok("stat", json!({ "path": "d/a" })).json["links"], 2);
}

#[test]
fn other_things_have_a_type() {
    let world = World::with(&[("d/a", "hi")]);
    world.workspace.put_special("pipe");
    for (path, kind) in [(".", "directory"), ("d", "directory"), ("d/", "directory"), ("pipe", "other")] {
        let answer = world.ok("stat", json!({ "path": path }));
        assert_eq!((&answer.json["type"], answer.json.get("version")), (&json!(kind), None), "{path}");
    }
    let failure = world.fails("stat", json!({ "path": "d/none" }), Kind::NotFound);
    assert!(failure.hint.unwrap().contains("list with path d"));
}

#[test]
fn a_link_is_described_itself_and_never_names_the_outside() {
    let world = World::with(&[("d/a", "hi")]);
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
        world.workspace.put_link("link", target);
        let answer = world.ok("stat", json!({ "path": "link" }));
        assert_eq!(
            (&answer.json["type"], &answer.json["target"]),
            (&json!("link"), &json!(shown)),
            "{target}"
        );
        assert!(!answer.text.contains("passwd"), "{target}");
    }
}
