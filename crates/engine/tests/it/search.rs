//! Tests of `find` and `search`, also with paths that the caller may not see.

use insta::assert_snapshot;
use serde_json::{Map, Value, json};
use stead_engine::{Caller, ErrorKind, GlobPatternSet, Grants};
use testkit::engine_fixture::{EngineFixture, agent, confined_agent};
use testkit::native::{EngineJsonCalls, JsonCall};

const TREE: &[(&str, &str)] = &[
    (".env", "TOKEN=needle\n"),
    ("README.md", "a needle\r\nnothing\r\n"),
    ("node_modules/p/i.js", "needle();\n"),
    ("src/.hid.rs", "needle\n"),
    ("src/a.rs", "fn a() {\n    needle();\n}\n"),
    ("src/deep/b.rs", "Needle\nneedle needle\n"),
];

fn match_paths(outcome: &Map<String, Value>, list: &str) -> Vec<String> {
    let path = |item: &Value| item["path"].as_str().unwrap().to_owned();
    outcome[list].as_array().unwrap().iter().map(path).collect()
}

#[test]
fn name_patterns_match_at_any_depth_and_path_patterns_from_the_root() {
    let fixture = EngineFixture::with_files(TREE);
    for (pattern, expected) in [
        ("*.rs", &["src/a.rs", "src/deep/b.rs"][..]),
        ("src/*.rs", &["src/a.rs"]),
        ("src/**", &["src/a.rs", "src/deep", "src/deep/b.rs"]),
        ("deep", &["src/deep"]),
        ("{README,LICENSE}*", &["README.md"]),
        ("*.zig", &[]),
    ] {
        let outcome = fixture.call_ok("find", json!({ "pattern": pattern }));
        assert_eq!(match_paths(&outcome, "matches"), expected, "{pattern}");
        assert_eq!(outcome["total"], expected.len());
    }
    let hidden = fixture.call_ok("find", json!({ "pattern": ".*", "all": true }));
    assert_eq!(match_paths(&hidden, "matches"), [".env", "src/.hid.rs"]);
    fixture.call_err("find", json!({ "pattern": "*", "path": "README.md" }), ErrorKind::NotDirectory);
    fixture.call_err("find", json!({ "pattern": "*", "max": 0 }), ErrorKind::BadRequest);
}

#[test]
fn find_falls_back_to_substring_then_similar_names() {
    let fixture = EngineFixture::with_files(TREE);
    let outcome = fixture.call("find", json!({ "pattern": "readme" })).unwrap();
    assert_eq!(match_paths(&outcome.json, "matches"), ["README.md"]);
    assert_eq!((&outcome.json["total"], &outcome.json["partial"]), (&json!(1), &json!(true)));
    assert!(outcome.text.contains("[no match for readme; 1 contain it"), "{}", outcome.text);
    let outcome = fixture.call("find", json!({ "pattern": "redame.md" })).unwrap();
    assert_eq!((&outcome.json["total"], &outcome.json["nearest"]), (&json!(0), &json!(["README.md"])));
    assert!(outcome.text.starts_with("[no match for redame.md; did you mean README.md"), "{}", outcome.text);
    // A name with a leading dot is suggested only if the call includes hidden files.
    let hidden = fixture.call_ok("find", json!({ "pattern": ".hed.rs" }));
    assert_eq!(hidden.get("nearest"), None);
    let hidden = fixture.call_ok("find", json!({ "pattern": ".hed.rs", "all": true }));
    assert_eq!(hidden["nearest"], json!(["src/.hid.rs"]));
    let below = confined_agent("two", &["src/deep"]);
    let outcome = fixture.with_caller(&below).call_ok("find", json!({ "pattern": "a", "path": "src/deep" }));
    assert_eq!(outcome["total"], 0);
}

#[test]
fn results_beyond_the_limit_are_counted() {
    let fixture = EngineFixture::with_files(TREE);
    let outcome = fixture.call("find", json!({ "pattern": "*.rs", "max": 1 })).unwrap();
    assert_eq!((&outcome.json["total"], &outcome.json["truncated"]), (&json!(2), &json!(true)));
    assert!(outcome.text.contains("truncated, 1 more"), "{}", outcome.text);
    assert_eq!(outcome.json["next"], json!({ "pattern": "*.rs", "path": ".", "max": 2 }));
    let outcome = fixture.call("search", json!({ "query": "needle", "max": 2 })).unwrap();
    assert_eq!((&outcome.json["total"], &outcome.json["truncated"]), (&json!(4), &json!(true)));
    assert!(outcome.text.contains("[2 more: cursor \"2\"]"), "{}", outcome.text);
    assert_eq!(outcome.json["next"], json!({ "query": "needle", "max": 2, "cursor": "2" }));
    let outcome = fixture.call("search", outcome.json["next"].clone()).unwrap();
    assert_eq!((&outcome.json["total"], &outcome.json["truncated"]), (&json!(4), &json!(false)));
    let outcome = fixture.call("search", json!({ "query": "needle", "budget": 1 })).unwrap();
    assert_eq!(outcome.json["next"]["cursor"], "1", "one hit is shown whatever its length");
    fixture.call_err("search", json!({ "query": "needle", "budget": 0 }), ErrorKind::BadRequest);
    fixture.call_err("search", json!({ "query": "needle", "cursor": "x" }), ErrorKind::BadRequest);
}

#[test]
fn lines_match_by_literal_and_regex() {
    let fixture = EngineFixture::with_files(TREE);
    assert_snapshot!(fixture.call_rendered("search", json!({ "query": "needle", "glob": "*.rs" })));
    let outcome = fixture.call("search", json!({ "query": "(?i)^needle$", "regex": true, "path": "src" })).unwrap();
    assert_eq!(match_paths(&outcome.json, "files"), ["src/deep/b.rs"]);
    for context in [0, 1] {
        let arguments = json!({ "query": "needle", "path": "src/a.rs", "context": context });
        assert_snapshot!(format!("search_with_context_{context}"), fixture.call_rendered("search", arguments));
    }
    fixture.call_err("search", json!({ "query": "" }), ErrorKind::BadRequest);
    fixture.call_err("search", json!({ "query": "(", "regex": true }), ErrorKind::BadRequest);
    fixture.call_err("search", json!({ "query": "x", "path": "missing" }), ErrorKind::NotFound);
}

#[test]
fn multiple_queries_whole_words_and_case() {
    let fixture = EngineFixture::with_files(TREE);
    let total = |arguments: Value| fixture.call_ok("search", arguments)["total"].clone();
    assert_eq!(total(json!({ "query": "nothing\nfn a" })), 2);
    assert_eq!(total(json!({ "query": ["nothing", "fn a"] })), 2);
    assert_eq!(total(json!({ "query": "need", "word": true })), 0);
    assert_eq!(total(json!({ "query": "NEEDLE", "ignore_case": true, "glob": "*.rs" })), 3);
    assert_eq!(total(json!({ "query": ["^need", "fn.a"], "regex": true, "path": "src" })), 2);
    fixture.call_err("search", json!({ "query": "\n" }), ErrorKind::BadRequest);
    fixture.call_err("search", json!({ "query": [] }), ErrorKind::BadRequest);
    fixture.call_err("search", json!({ "query": ["a", 1] }), ErrorKind::BadRequest);
    fixture.call_err("search", json!({ "query": ["a\nb"] }), ErrorKind::BadRequest);
}

#[test]
fn other_encodings_are_searched_and_binary_counted() {
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("utf16.txt", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    fixture.workspace.put_file("image.bin", b"needle\0\x01\x02");
    let outcome = fixture.call("search", json!({ "query": "needle" })).unwrap();
    assert_eq!(match_paths(&outcome.json, "files"), ["utf16.txt"]);
    assert_eq!(outcome.json["binary"], 1);
    assert!(outcome.text.contains("1 not text"), "{}", outcome.text);
}

#[test]
fn files_out_of_scope_are_not_found_or_counted() {
    let fixture = EngineFixture::with_files(TREE);
    let narrow = confined_agent("narrow", &["src/deep"]);
    let found = fixture.with_caller(&narrow).call_ok("find", json!({ "pattern": "*.rs" }));
    assert_eq!(match_paths(&found, "matches"), ["src/deep/b.rs"]);
    let searched = fixture.with_caller(&narrow).call_ok("search", json!({ "query": "needle", "all": true }));
    assert_eq!((&searched["total"], &searched["scanned"]), (&json!(1), &json!(1)));
    assert!(searched.get("unreadable").is_none(), "{searched:?}");
}

#[test]
fn hidden_paths_are_not_found() {
    let fixture = EngineFixture::with_files(TREE);
    let hidden = GlobPatternSet::new(["**/.env*", "node_modules/**"]).unwrap();
    let caller = Caller { grants: Grants { hidden, ..Grants::default() }, ..agent("two") };
    let listed = fixture.with_caller(&caller).call_ok("list", json!({ "all": true }));
    assert_eq!(match_paths(&listed, "entries"), ["README.md", "src"]);
    let found = fixture.with_caller(&caller).call_ok("find", json!({ "pattern": "**", "all": true }));
    let found = json!(found).to_string();
    assert!(!found.contains("node_modules") && !found.contains(".env"), "{found}");
    let searched = fixture.with_caller(&caller).call_ok("search", json!({ "query": "needle", "all": true }));
    assert_eq!((&searched["total"], &searched["scanned"]), (&json!(4), &json!(4)));
    let refused = |operation: &str, arguments: Value| {
        fixture.call_as(&caller, operation, arguments).map(|_| ()).unwrap_err().kind
    };
    for path in [".env", ".env.local", "node_modules", "node_modules/p/i.js", "node_modules/new"] {
        assert_eq!(refused("read", json!({ "path": path })), ErrorKind::OutOfScope, "{path}");
        assert_eq!(refused("write", json!({ "path": path, "content": "x" })), ErrorKind::OutOfScope, "{path}");
        assert_eq!(refused("move", json!({ "from": path, "to": "x" })), ErrorKind::OutOfScope, "{path}");
        assert_eq!(refused("copy", json!({ "from": "README.md", "to": path })), ErrorKind::OutOfScope, "{path}");
    }
    assert_eq!(refused("read", json!({ "path": "node_modules/../.env" })), ErrorKind::InvalidPath);
}

#[test]
fn parallel_search_is_deterministic() {
    let fixture = EngineFixture::new();
    for number in 0..2_000 {
        fixture.workspace.put_file(&format!("d{}/e{}/f{number}.txt", number % 7, number % 13), "needle\n");
        fixture.workspace.put_file(&format!("flat/f{number}.txt"), "hay\nneedle\n");
    }
    let find = fixture.call_ok("find", json!({ "pattern": "*.txt", "max": 300 }));
    assert_eq!(find["total"], 4_000);
    let paths = match_paths(&find, "matches");
    let ordered = |paths: &[String]| {
        paths.is_sorted_by(|one, two| one.split('/').collect::<Vec<_>>() < two.split('/').collect::<Vec<_>>())
    };
    assert!(paths.len() == 300 && paths[0] == "d0/e0/f0.txt" && ordered(&paths), "{paths:?}");
    let search = fixture.call_ok("search", json!({ "query": "needle", "max": 300 }));
    assert_eq!((&search["total"], &search["scanned"]), (&json!(4_000), &json!(4_000)));
    for _ in 0..5 {
        assert_eq!(fixture.call_ok("find", json!({ "pattern": "*.txt", "max": 300 })), find);
        assert_eq!(fixture.call_ok("search", json!({ "query": "needle", "max": 300 })), search);
    }
}

#[test]
fn parallel_walk_stops_on_cancellation() {
    use std::time::{Duration, Instant};
    use stead_engine::{CallControl, CancelToken};
    let fixture = EngineFixture::new();
    for number in 0..3_000 {
        fixture.workspace.put_file(&format!("d{}/f{number}.txt", number % 50), "needle\n");
    }
    let Value::Object(arguments) = json!({ "query": "needle" }) else { unreachable!() };
    let cancel = CancelToken::default();
    let stop = |_: stead_engine::CallProgress| cancel.cancel();
    let control = CallControl::new(Instant::now() + Duration::from_secs(60), cancel.clone(), Some(&stop));
    let call = JsonCall { control, ..JsonCall::new(&fixture.caller, "search", arguments.clone()) };
    assert_eq!(fixture.engine.call(&call).unwrap_err().kind, ErrorKind::Cancelled);
    let control = CallControl::new(Instant::now(), CancelToken::default(), None);
    let call = JsonCall { control, ..JsonCall::new(&fixture.caller, "search", arguments) };
    assert_eq!(fixture.engine.call(&call).unwrap_err().kind, ErrorKind::Deadline);
}
