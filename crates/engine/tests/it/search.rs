//! `find` and `search`, and places that are hidden from a caller.

use engine::{Caller, Globs, Grants, Kind};
use serde_json::{Value, json};

use crate::world::{World, agent, confined};

const TREE: &[(&str, &str)] = &[
    (".env", "TOKEN=needle\n"),
    ("README.md", "a needle\r\nnothing\r\n"),
    ("node_modules/p/i.js", "needle();\n"),
    ("src/.hid.rs", "needle\n"),
    ("src/a.rs", "fn a() {\n    needle();\n}\n"),
    ("src/deep/b.rs", "Needle\nneedle needle\n"),
];

fn paths(answer: &Value, list: &str) -> Vec<String> {
    let path = |item: &Value| item["path"].as_str().unwrap().to_owned();
    answer[list].as_array().unwrap().iter().map(path).collect()
}

fn asked(world: &World, caller: &Caller, operation: &str, arguments: Value) -> Value {
    Value::Object(world.call_as(caller, operation, arguments).unwrap().json)
}

#[test]
fn a_name_is_found_at_any_depth_and_a_path_where_it_is() {
    let world = World::with(TREE);
    for (pattern, expected) in [
        ("*.rs", &["src/a.rs", "src/deep/b.rs"][..]),
        ("src/*.rs", &["src/a.rs"]),
        ("src/**", &["src/a.rs", "src/deep", "src/deep/b.rs"]),
        ("deep", &["src/deep"]),
        ("{README,LICENSE}*", &["README.md"]),
        ("*.zig", &[]),
    ] {
        let answer = asked(&world, &world.caller, "find", json!({ "pattern": pattern }));
        assert_eq!(paths(&answer, "matches"), expected, "{pattern}");
        assert_eq!(answer["total"], expected.len());
    }
    let hidden = asked(&world, &world.caller, "find", json!({ "pattern": ".*", "all": true }));
    assert_eq!(paths(&hidden, "matches"), [".env", "src/.hid.rs"]);
    world.fails("find", json!({ "pattern": "*", "path": "README.md" }), Kind::NotDirectory);
    world.fails("find", json!({ "pattern": "*", "max": 0 }), Kind::BadRequest);
}

#[test]
fn a_name_that_nothing_has_is_tried_as_a_part_and_then_by_likeness() {
    let world = World::with(TREE);
    let answer = world.ok("find", json!({ "pattern": "readme" }));
    assert_eq!(paths(&Value::Object(answer.json.clone()), "matches"), ["README.md"]);
    assert_eq!((&answer.json["total"], &answer.json["partial"]), (&json!(1), &json!(true)));
    assert!(answer.text.contains("[nothing matches readme; 1 have it as a part"), "{}", answer.text);
    let answer = world.ok("find", json!({ "pattern": "redame.md" }));
    assert_eq!((&answer.json["total"], &answer.json["nearest"]), (&json!(0), &json!(["README.md"])));
    assert!(answer.text.starts_with("[nothing matches redame.md; did you mean README.md"), "{}", answer.text);
    // Hidden names are suggested only to those who ask for them.
    let hidden = world.ok("find", json!({ "pattern": ".hed.rs" }));
    assert_eq!(hidden.json.get("nearest"), None);
    let hidden = world.ok("find", json!({ "pattern": ".hed.rs", "all": true }));
    assert_eq!(hidden.json["nearest"], json!(["src/.hid.rs"]));
    let below = confined("two", &["src/deep"]);
    let answer = asked(&world, &below, "find", json!({ "pattern": "a", "path": "src/deep" }));
    assert_eq!(answer["total"], 0);
}

#[test]
fn what_does_not_fit_is_counted_and_said() {
    let world = World::with(TREE);
    let answer = world.ok("find", json!({ "pattern": "*.rs", "max": 1 }));
    assert_eq!((&answer.json["total"], &answer.json["truncated"]), (&json!(2), &json!(true)));
    assert!(answer.text.contains("truncated, 1 more"), "{}", answer.text);
    let answer = world.ok("search", json!({ "query": "needle", "max": 2 }));
    assert_eq!((&answer.json["total"], &answer.json["truncated"]), (&json!(4), &json!(true)));
    assert!(answer.text.contains("[2 more: cursor \"2\"]"), "{}", answer.text);
    assert_eq!(answer.json["next"], json!({ "query": "needle", "max": 2, "cursor": "2" }));
    let answer = world.ok("search", answer.json["next"].clone());
    assert_eq!((&answer.json["total"], &answer.json["truncated"]), (&json!(4), &json!(false)));
    let answer = world.ok("search", json!({ "query": "needle", "budget": 1 }));
    assert_eq!(answer.json["next"]["cursor"], "1", "one hit is shown whatever its length");
    world.fails("search", json!({ "query": "needle", "budget": 0 }), Kind::BadRequest);
    world.fails("search", json!({ "query": "needle", "cursor": "x" }), Kind::BadRequest);
}

#[test]
fn lines_are_found_by_text_and_by_expression() {
    let world = World::with(TREE);
    let answer = world.ok("search", json!({ "query": "needle", "glob": "*.rs" }));
    assert_eq!(paths(&Value::Object(answer.json.clone()), "files"), ["src/a.rs", "src/deep/b.rs"]);
    let hit = &answer.json["files"][0]["hits"][0];
    assert_eq!(hit, &json!({ "line": 2, "column": 5 }), "the line is in the text alone");
    assert_eq!(
        answer.text,
        "2 hits in 2 files\nsrc/a.rs\n1- fn a() {\n2:     needle();\n3- }\nsrc/deep/b.rs\n1- Needle\n2: needle needle\n\
         [2 ignored]"
    );
    let answer = world.ok("search", json!({ "query": "(?i)^needle$", "regex": true, "path": "src" }));
    assert_eq!(paths(&Value::Object(answer.json), "files"), ["src/deep/b.rs"]);
    let around = world.ok("search", json!({ "query": "needle", "path": "src/a.rs", "context": 1 }));
    assert_eq!(around.text, "1 hit in 1 file\nsrc/a.rs\n1- fn a() {\n2:     needle();\n3- }");
    let alone = world.ok("search", json!({ "query": "needle", "path": "src/a.rs", "context": 0 }));
    assert_eq!(alone.text, "1 hit in 1 file\nsrc/a.rs\n2 needle();");
    world.fails("search", json!({ "query": "" }), Kind::BadRequest);
    world.fails("search", json!({ "query": "(", "regex": true }), Kind::BadRequest);
    world.fails("search", json!({ "query": "x", "path": "missing" }), Kind::NotFound);
}

#[test]
fn several_texts_whole_words_and_cases() {
    let world = World::with(TREE);
    let total = |arguments: Value| world.ok("search", arguments).json["total"].clone();
    assert_eq!(total(json!({ "query": "nothing\nfn a" })), 2);
    assert_eq!(total(json!({ "query": ["nothing", "fn a"] })), 2);
    assert_eq!(total(json!({ "query": "need", "word": true })), 0);
    assert_eq!(total(json!({ "query": "NEEDLE", "ignore_case": true, "glob": "*.rs" })), 3);
    assert_eq!(total(json!({ "query": ["^need", "fn.a"], "regex": true, "path": "src" })), 2);
    world.fails("search", json!({ "query": "\n" }), Kind::BadRequest);
    world.fails("search", json!({ "query": [] }), Kind::BadRequest);
    world.fails("search", json!({ "query": ["a", 1] }), Kind::BadRequest);
    world.fails("search", json!({ "query": ["a\nb"] }), Kind::BadRequest);
}

#[test]
fn other_encodings_are_searched_and_what_is_no_text_is_counted() {
    let world = World::new();
    world.workspace.put_file("utf16.txt", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    world.workspace.put_file("image.bin", b"needle\0\x01\x02");
    let answer = world.ok("search", json!({ "query": "needle" }));
    assert_eq!(paths(&Value::Object(answer.json.clone()), "files"), ["utf16.txt"]);
    assert_eq!(answer.json["binary"], 1);
    assert!(answer.text.contains("1 not text"), "{}", answer.text);
}

#[test]
fn nothing_outside_the_scope_is_found_or_counted() {
    let world = World::with(TREE);
    let narrow = confined("narrow", &["src/deep"]);
    let found = asked(&world, &narrow, "find", json!({ "pattern": "*.rs" }));
    assert_eq!(paths(&found, "matches"), ["src/deep/b.rs"]);
    let searched = asked(&world, &narrow, "search", json!({ "query": "needle", "all": true }));
    assert_eq!((&searched["total"], &searched["scanned"]), (&json!(1), &json!(1)));
    assert!(searched.get("unreadable").is_none(), "{searched}");
}

#[test]
fn hidden_places_are_not_there() {
    let world = World::with(TREE);
    let hidden = Globs::new(["**/.env*", "node_modules/**"]).unwrap();
    let caller = Caller { grants: Grants { hidden, ..Grants::default() }, ..agent("two") };
    let listed = asked(&world, &caller, "list", json!({ "all": true }));
    assert_eq!(paths(&listed, "entries"), ["README.md", "src"]);
    let found = asked(&world, &caller, "find", json!({ "pattern": "**", "all": true }));
    assert!(!found.to_string().contains("node_modules") && !found.to_string().contains(".env"), "{found}");
    let searched = asked(&world, &caller, "search", json!({ "query": "needle", "all": true }));
    assert_eq!((&searched["total"], &searched["scanned"]), (&json!(4), &json!(4)));
    let refused = |operation: &str, arguments: Value| {
        world.call_as(&caller, operation, arguments).map(|_| ()).unwrap_err().kind
    };
    for path in [".env", ".env.local", "node_modules", "node_modules/p/i.js", "node_modules/new"] {
        assert_eq!(refused("read", json!({ "path": path })), Kind::OutOfScope, "{path}");
        assert_eq!(refused("write", json!({ "path": path, "content": "x" })), Kind::OutOfScope, "{path}");
        assert_eq!(refused("move", json!({ "from": path, "to": "x" })), Kind::OutOfScope, "{path}");
        assert_eq!(refused("copy", json!({ "from": "README.md", "to": path })), Kind::OutOfScope, "{path}");
    }
    assert_eq!(refused("read", json!({ "path": "node_modules/../.env" })), Kind::InvalidPath);
}

#[test]
fn a_large_tree_is_walked_by_several_and_answers_the_same_every_time() {
    let world = World::new();
    for number in 0..2_000 {
        world.workspace.put_file(&format!("d{}/e{}/f{number}.txt", number % 7, number % 13), "needle\n");
        world.workspace.put_file(&format!("flat/f{number}.txt"), "hay\nneedle\n");
    }
    let find = world.ok("find", json!({ "pattern": "*.txt", "max": 300 }));
    assert_eq!(find.json["total"], 4_000);
    let paths = paths(&Value::Object(find.json.clone()), "matches");
    let ordered = |paths: &[String]| {
        paths.is_sorted_by(|one, two| one.split('/').collect::<Vec<_>>() < two.split('/').collect::<Vec<_>>())
    };
    assert!(paths.len() == 300 && paths[0] == "d0/e0/f0.txt" && ordered(&paths), "{paths:?}");
    let search = world.ok("search", json!({ "query": "needle", "max": 300 }));
    assert_eq!((&search.json["total"], &search.json["scanned"]), (&json!(4_000), &json!(4_000)));
    for _ in 0..5 {
        assert_eq!(world.ok("find", json!({ "pattern": "*.txt", "max": 300 })).json, find.json);
        assert_eq!(world.ok("search", json!({ "query": "needle", "max": 300 })).json, search.json);
    }
}

#[test]
fn a_walk_by_several_stops_when_it_is_told_to() {
    use engine::{Call, Cancel, Control};
    use std::time::{Duration, Instant};
    let world = World::new();
    for number in 0..3_000 {
        world.workspace.put_file(&format!("d{}/f{number}.txt", number % 50), "needle\n");
    }
    let Value::Object(arguments) = json!({ "query": "needle" }) else { unreachable!() };
    let cancel = Cancel::default();
    let stop = |_: engine::Progress| cancel.cancel();
    let control = Control::new(Instant::now() + Duration::from_secs(60), cancel.clone(), Some(&stop));
    let call = Call { control, ..Call::new(&world.caller, "search", arguments.clone()) };
    assert_eq!(world.engine.call(&call).unwrap_err().kind, Kind::Cancelled);
    let control = Control::new(Instant::now(), Cancel::default(), None);
    let call = Call { control, ..Call::new(&world.caller, "search", arguments) };
    assert_eq!(world.engine.call(&call).unwrap_err().kind, Kind::Deadline);
}
