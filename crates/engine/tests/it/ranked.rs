//! What `search` shows first, how it reads, and what it says when there is nothing.

use serde_json::{Value, json};

use crate::world::World;

const TREE: &[(&str, &str)] = &[
    ("Cargo.toml", "[package]\nname = \"parser\"\n"),
    ("README.md", "# Parser\n\nCall `parse_header`.\n"),
    (
        "src/a.rs",
        "use crate::parser::parse_header;\n\nfn main() {\n    parse_header(b\"\");\n    let x = 1;\n    parse_header(b\"\");\n}\n",
    ),
    ("src/parser.rs", "/// Parses.\npub fn parse_header(bytes: &[u8]) {}\n\nfn parse_header_line() {}\n"),
    ("tests/it.rs", "fn parse_header() {}\n"),
];

fn text(world: &World, arguments: Value) -> String {
    world.ok("search", arguments).text
}

#[test]
fn definitions_come_first_then_uses_then_imports() {
    let world = World::with(TREE);
    assert_eq!(
        text(&world, json!({ "query": "parse_header" })),
        "7 hits in 4 files, 2 definitions\n\
         src/parser.rs [def]\n2 pub fn parse_header(bytes: &[u8]) {}\n\
         tests/it.rs [def]\n1 fn parse_header() {}\n\
         src/parser.rs\n4 fn parse_header_line() {}\n\
         README.md\n3 Call `parse_header`.\n\
         src/a.rs\n4 parse_header(b\"\"); (×2)\n\
         [import] src/a.rs:1"
    );
}

#[test]
fn pages_hold_every_hit_once() {
    let world = World::with(TREE);
    let whole = world.ok("search", json!({ "query": "parse", "max": 1000 }));
    let all = |answer: &Value| -> Vec<(String, Value)> {
        let mut hits = Vec::new();
        for file in answer["files"].as_array().unwrap() {
            for hit in file["hits"].as_array().unwrap() {
                hits.push((file["path"].as_str().unwrap().to_owned(), hit.clone()));
            }
        }
        hits.sort_by_key(|(path, hit)| (path.clone(), hit["line"].as_u64()));
        hits
    };
    let mut found = Vec::new();
    let mut arguments = json!({ "query": "parse", "budget": 60 });
    for _ in 0..100 {
        let answer = Value::Object(world.ok("search", arguments).json);
        found.extend(all(&answer));
        arguments = answer["next"].clone();
        if arguments.is_null() {
            break;
        }
    }
    found.sort_by_key(|(path, hit)| (path.clone(), hit["line"].as_u64()));
    assert_eq!(found, all(&Value::Object(whole.json)));
}

#[test]
fn nothing_is_said_with_what_comes_nearest() {
    let world = World::with(TREE);
    for (arguments, expected) in [
        (
            json!({ "query": "PARSE_HEADER(" }),
            "nearest, ignoring case: 4 hits in 3 files\nsrc/parser.rs [def]\n2 ",
        ),
        (
            json!({ "query": "fn.*_line" }),
            "nearest, as a regular expression: 1 hit in 1 file\nsrc/parser.rs [def]\n4 ",
        ),
        (json!({ "query": "header[", "regex": false }), "nothing holds header["),
        (json!({ "query": "how are headers parsed" }), "nearest, its words: "),
        (json!({ "query": "Parser.rs" }), "files named like it: src/parser.rs"),
        (json!({ "query": "zzz" }), "nothing holds zzz; 5 files looked into; nor ignoring case"),
    ] {
        let answer = world.ok("search", arguments.clone());
        assert_eq!(answer.json["total"], 0);
        assert!(answer.text.contains(expected), "{arguments}: {}", answer.text);
    }
}

#[test]
fn the_words_of_a_question_lead_to_the_file() {
    let world = World::with(TREE);
    let answer = world.ok("search", json!({ "query": "where is the header of the parser parsed" }));
    assert_eq!(answer.json["nearest"]["read"], "its words");
    assert_eq!(answer.json["nearest"]["files"][0]["path"], "src/parser.rs", "{}", answer.text);
}
