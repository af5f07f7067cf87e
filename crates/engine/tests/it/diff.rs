//! `diff`: versions by every name, and what cannot be compared.

use engine::{Kind, Version, limits};
use serde_json::json;

use crate::world::World;

fn written(world: &World, content: &str, base: &str) -> String {
    let answer = world.ok("write", json!({ "path": "a", "content": content, "base": base }));
    answer.json["version"].as_str().unwrap().to_owned()
}

#[test]
fn versions_by_every_name() {
    let world = World::new();
    let first = written(&world, "one\ntwo\n", "");
    let second = written(&world, "one\n2\n", &first);
    let expected =
        |old: &str, new: &str| format!("--- a {old}\n+++ a {new}\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n");
    let short = format!("sha:{}", &first[..12]);
    for (from, label) in [("r1", "r1"), (first.as_str(), short.as_str()), (short.as_str(), short.as_str())] {
        let answer = world.ok("diff", json!({ "path": "a", "from": from }));
        assert_eq!(answer.json["diff"], expected(label, "now"), "{from}");
        assert_eq!((&answer.json["added"], &answer.json["removed"]), (&json!(1), &json!(1)));
        assert_eq!((&answer.json["from"], &answer.json["to"]), (&json!(first), &json!(second)));
        assert!(answer.text.ends_with("[+1 -1 lines]"));
    }
    let both = world.ok("diff", json!({ "path": "a", "from": "r1", "to": "r2" }));
    assert_eq!(both.json["diff"], expected("r1", "r2"));
    let same = world.ok("diff", json!({ "path": "a", "from": "r2" }));
    assert_eq!((&same.json["diff"], same.text.as_str()), (&json!(""), "no differences"));
    let new = world.ok("diff", json!({ "path": "a", "from": "" }));
    assert_eq!((&new.json["added"], &new.json["from"]), (&json!(2), &json!("absent")));
}

#[test]
fn a_foreign_edit_is_compared_with_what_we_wrote() {
    let world = World::new();
    written(&world, "one\n", "");
    world.workspace.put_file("a", "1\r\n");
    let answer = world.ok("diff", json!({ "path": "a", "from": "r1" }));
    assert_eq!(answer.json["diff"], "--- a r1\n+++ a now\n@@ -1 +1 @@\n-one\n+1\r\n");
    assert!(answer.text.contains("+1\\u{d}\n"), "endings are visible in the twin");
}

#[test]
fn a_removed_file_is_nothing() {
    let world = World::new();
    written(&world, "one\n", "");
    world.ok("remove", json!({ "path": "a" }));
    for arguments in [json!({ "path": "a", "from": "r1" }), json!({ "path": "a", "from": "r1", "to": "r2" })]
    {
        let answer = world.ok("diff", arguments);
        assert_eq!((&answer.json["removed"], &answer.json["to"]), (&json!(1), &json!("absent")));
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let world = World::new();
    let first = written(&world, "one\n", "");
    written(&world, "two\n", &first);
    world.fails("diff", json!({ "path": "a", "from": "r9" }), Kind::BadRequest);
    world.fails("diff", json!({ "path": "a", "from": "yesterday" }), Kind::BadRequest);
    world.workspace.forget(&Version::of(b"one\n"));
    let expired = world.fails("diff", json!({ "path": "a", "from": "r1" }), Kind::Expired);
    assert!(expired.hint.unwrap().contains("history"));
    world.workspace.put_file("a", [0, 1, 2]);
    let binary = world.fails("diff", json!({ "path": "a", "from": "r2" }), Kind::NotText);
    assert_eq!((&binary.facts["from_size"], &binary.facts["to_size"]), (&json!(4), &json!(3)));
    world.workspace.put_file("a", vec![b'x'; limits::DIFF_BYTES_MAX as usize + 1]);
    world.fails("diff", json!({ "path": "a", "from": "r2" }), Kind::TooLarge);
    world.workspace.put_directory("d");
    world.fails("diff", json!({ "path": "d", "from": "r1" }), Kind::IsDirectory);
}

#[test]
fn kept_bytes_of_another_place_are_out_of_reach() {
    let world = World::new();
    world.ok("write", json!({ "path": "secret", "content": "password\n" }));
    written(&world, "one\n", "");
    let guessed = Version::of(b"password\n").to_string();
    world.fails("diff", json!({ "path": "a", "from": guessed }), Kind::Expired);
}

#[test]
fn a_long_diff_is_cut_visibly() {
    let world = World::new();
    let first = written(&world, "", "");
    let long: String = (0..2 * limits::DIFF_LINES_MAX).map(|line| format!("{line}\n")).collect();
    written(&world, &long, &first);
    let answer = world.ok("diff", json!({ "path": "a", "from": "r1" }));
    assert_eq!((&answer.json["truncated"], &answer.json["added"]), (&json!(true), &json!(800)));
    assert!(answer.text.contains("… truncated"));
    let version = world.ok("stat", json!({ "path": "a" })).json["version"].as_str().unwrap().to_owned();
    written(&world, &"x".repeat(3 * limits::PAGE_CHARS), &version);
    let wide = world.ok("diff", json!({ "path": "a", "from": "r1" }));
    assert!(wide.json["diff"].as_str().unwrap().chars().count() <= limits::PAGE_CHARS);
    assert_eq!(wide.json["truncated"], true);
}
