//! Tests of `search`: the ranking of hits, the text form of the result, and the message of a search without a match.

use insta::assert_snapshot;
use serde_json::{Value, json};
use testkit::engine_fixture::EngineFixture;

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

#[test]
fn definitions_rank_before_uses_and_imports() {
    let fixture = EngineFixture::with_files(TREE);
    assert_snapshot!(fixture.call_rendered("search", json!({ "query": "parse_header" })));
}

#[test]
fn pages_contain_every_hit_once() {
    let fixture = EngineFixture::with_files(TREE);
    let whole = fixture.call_ok("search", json!({ "query": "parse", "max": 1000 }));
    let all = |outcome: &Value| -> Vec<(String, Value)> {
        let mut hits = Vec::new();
        for file in outcome["files"].as_array().unwrap() {
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
        let outcome = Value::Object(fixture.call_ok("search", arguments));
        found.extend(all(&outcome));
        arguments = outcome["next"].clone();
        if arguments.is_null() {
            break;
        }
    }
    found.sort_by_key(|(path, hit)| (path.clone(), hit["line"].as_u64()));
    assert_eq!(found, all(&Value::Object(whole)));
}

#[test]
fn no_match_shows_nearest_alternatives() {
    let fixture = EngineFixture::with_files(TREE);
    for (arguments, expected) in [
        (json!({ "query": "PARSE_HEADER(" }), "nearest, ignoring case: 4 hits in 3 files\nsrc/parser.rs [def]\n2 "),
        (json!({ "query": "fn.*_line" }), "nearest, as a regular expression: 1 hit in 1 file\nsrc/parser.rs [def]\n4 "),
        (json!({ "query": "header[", "regex": false }), "no match for \"header[\""),
        (json!({ "query": "how are headers parsed" }), "nearest, its words: "),
        (json!({ "query": "Parser.rs" }), "files with similar names: src/parser.rs"),
        (json!({ "query": "zzz" }), "no match for \"zzz\" in 5 files (also tried case-insensitive"),
    ] {
        let outcome = fixture.call("search", arguments.clone()).unwrap();
        assert_eq!(outcome.json["total"], 0);
        assert!(outcome.text.contains(expected), "{arguments}: {}", outcome.text);
    }
}

#[test]
fn natural_language_query_finds_the_file() {
    let fixture = EngineFixture::with_files(TREE);
    let outcome = fixture.call("search", json!({ "query": "where is the header of the parser parsed" })).unwrap();
    assert_eq!(outcome.json["nearest"]["read"], "its words");
    assert_eq!(outcome.json["nearest"]["files"][0]["path"], "src/parser.rs", "{}", outcome.text);
}
