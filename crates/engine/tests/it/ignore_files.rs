//! Tests of ignore files in `find` and `search`: which files they exclude, include again, or do not affect.

use serde_json::{Value, json};
use stead_engine::{GlobPatternSet, Grants};
use testkit::engine_fixture::{EngineFixture, agent, confined_agent};

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

const INCLUDED: &[&str] = &[
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

fn searched_paths(fixture: &EngineFixture, arguments: Value) -> (Vec<String>, Value) {
    let outcome = fixture.call_ok("search", arguments);
    let path = |file: &Value| file["path"].as_str().unwrap().to_owned();
    let mut paths: Vec<String> = outcome["files"].as_array().unwrap().iter().map(path).collect();
    paths.sort();
    (paths, outcome.get("ignored").cloned().unwrap_or_default())
}

fn found_paths(fixture: &EngineFixture, caller: &stead_engine::Caller, arguments: Value) -> Vec<String> {
    let outcome = fixture.call_as(caller, "find", arguments).unwrap();
    let files = outcome.json["matches"].as_array().unwrap().iter().filter(|found| found["type"] == "file");
    files.map(|found| found["path"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ignore_files_of_every_level_apply_and_are_counted() {
    let fixture = EngineFixture::with_files(TREE);
    let (paths, ignored) = searched_paths(&fixture, json!({ "query": "x" }));
    assert_eq!(paths, INCLUDED);
    // The ignored entries are .env, .git, .gitignore, .ignore, b.log, excluded.txt, only-top.txt and target at the top,
    // .gitignore, c.tmp and deep/d.tmp in sub, and vendored/.git.
    assert_eq!(ignored, 12);
    assert_eq!(found_paths(&fixture, &fixture.caller, json!({ "pattern": "*" })), INCLUDED);
    let (paths, ignored) = searched_paths(&fixture, json!({ "query": "x", "all": true }));
    assert_eq!((paths.len(), ignored), (TREE.len() - 2, Value::Null), "{paths:?}");
}

#[test]
fn walk_from_subdirectory_obeys_parent_ignore_files() {
    let fixture = EngineFixture::with_files(TREE);
    let (paths, _) = searched_paths(&fixture, json!({ "query": "x", "path": "sub" }));
    assert_eq!(paths, ["sub/b.log", "sub/only-top.txt", "sub/target"]);
    // An explicitly named directory is searched even if an ignore file excludes it.
    let (paths, _) = searched_paths(&fixture, json!({ "query": "x", "path": "target" }));
    assert_eq!(paths, ["target/out.txt"]);
    let (paths, _) = searched_paths(&fixture, json!({ "query": "x", "path": "b.log" }));
    assert_eq!(paths, ["b.log"]);
    assert_eq!(fixture.call_ok("read", json!({ "path": "b.log" }))["content"], "x\n");
}

#[test]
fn unreadable_ignore_files_have_no_effect() {
    let fixture = EngineFixture::with_files(TREE);
    let below = confined_agent("two", &["sub"]);
    let seen = found_paths(&fixture, &below, json!({ "pattern": "*", "path": "sub" }));
    assert_eq!(seen, ["sub/b.log", "sub/only-top.txt", "sub/target"]);
    let hidden = GlobPatternSet::new([".gitignore"]).unwrap();
    let blind = stead_engine::Caller { grants: Grants { hidden, ..Grants::default() }, ..agent("three") };
    assert!(found_paths(&fixture, &blind, json!({ "pattern": "*.log" })).contains(&"b.log".to_owned()));
}
