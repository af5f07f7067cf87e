//! Ignore files in `find` and `search`: what is left out, what is taken in again, and what never obeys them.

use engine::{Globs, Grants};
use serde_json::{Value, json};

use crate::world::{World, agent, confined};

const TREE: &[(&str, &str)] = &[
    (".git/info/exclude", "excluded.txt\n"),
    (".git/config", "x\n"),
    (".gitignore", "target/\n*.log\n!keep.log\n/only-top.txt\n!.github\n"),
    (".ignore", "!taken-back.log\n"),
    (".github/ci.yml", "x\n"),
    (".env", "x\n"),
    ("a.txt", "x\n"),
    ("b.log", "x\n"),
    ("keep.log", "x\n"),
    ("taken-back.log", "x\n"),
    ("excluded.txt", "x\n"),
    ("only-top.txt", "x\n"),
    ("target/out.txt", "x\n"),
    ("sub/only-top.txt", "x\n"),
    ("sub/target", "x\n"),
    ("sub/.gitignore", "!b.log\n*.tmp\n"),
    ("sub/b.log", "x\n"),
    ("sub/c.tmp", "x\n"),
    ("sub/deep/d.tmp", "x\n"),
    ("vendored/.git/config", "x\n"),
    ("vendored/e.log", "x\n"),
    ("vendored/excluded.txt", "x\n"),
];

const TAKEN: &[&str] = &[
    ".github/ci.yml",
    "a.txt",
    "keep.log",
    "sub/b.log",
    "sub/only-top.txt",
    "sub/target",
    "taken-back.log",
    "vendored/e.log",
    "vendored/excluded.txt",
];

fn searched(world: &World, arguments: Value) -> (Vec<String>, Value) {
    let answer = world.ok("search", arguments);
    let path = |file: &Value| file["path"].as_str().unwrap().to_owned();
    let mut paths: Vec<String> = answer.json["files"].as_array().unwrap().iter().map(path).collect();
    paths.sort();
    (paths, answer.json.get("ignored").cloned().unwrap_or_default())
}

fn found(world: &World, caller: &engine::Caller, arguments: Value) -> Vec<String> {
    let answer = world.call_as(caller, "find", arguments).unwrap();
    let files = answer.json["matches"].as_array().unwrap().iter().filter(|found| found["type"] == "file");
    files.map(|found| found["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn discovery_obeys_every_level_and_says_what_it_left_out() {
    let world = World::with(TREE);
    let (paths, ignored) = searched(&world, json!({ "query": "x" }));
    assert_eq!(paths, TAKEN);
    // .env, .git, .gitignore, .ignore, b.log, excluded.txt, only-top.txt, target; in sub .gitignore, c.tmp and
    // deep/d.tmp; vendored/.git.
    assert_eq!(ignored, 12);
    assert_eq!(found(&world, &world.caller, json!({ "pattern": "*" })), TAKEN);
    let (paths, ignored) = searched(&world, json!({ "query": "x", "all": true }));
    assert_eq!((paths.len(), ignored), (TREE.len() - 2, Value::Null), "{paths:?}");
}

#[test]
fn a_walk_that_starts_below_obeys_what_lies_above() {
    let world = World::with(TREE);
    let (paths, _) = searched(&world, json!({ "query": "x", "path": "sub" }));
    assert_eq!(paths, ["sub/b.log", "sub/only-top.txt", "sub/target"]);
    // Named itself, a directory is looked into whatever the files say about it.
    let (paths, _) = searched(&world, json!({ "query": "x", "path": "target" }));
    assert_eq!(paths, ["target/out.txt"]);
    let (paths, _) = searched(&world, json!({ "query": "x", "path": "b.log" }));
    assert_eq!(paths, ["b.log"]);
    assert_eq!(world.ok("read", json!({ "path": "b.log" })).json["content"], "x\n");
}

#[test]
fn what_a_caller_may_not_read_rules_nothing() {
    let world = World::with(TREE);
    let below = confined("two", &["sub"]);
    let seen = found(&world, &below, json!({ "pattern": "*", "path": "sub" }));
    assert_eq!(seen, ["sub/b.log", "sub/only-top.txt", "sub/target"]);
    let hidden = Globs::new([".gitignore"]).unwrap();
    let blind = engine::Caller { grants: Grants { hidden, ..Grants::default() }, ..agent("three") };
    assert!(found(&world, &blind, json!({ "pattern": "*.log" })).contains(&"b.log".to_owned()));
}
