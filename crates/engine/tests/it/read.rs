//! `read`: ranges, encodings, pages, refusals.

use engine::{Kind, Version, limits};
use serde_json::{Value, json};

use crate::world::{World, confined};

const FIVE: &str = "one\ntwo\nthree\nfour\nfive\n";

#[test]
fn a_text_file_comes_with_its_facts() {
    let world = World::with(&[("a.txt", FIVE)]);
    let answer = world.ok("read", json!({ "path": "a.txt" }));
    let version = Version::of(FIVE.as_bytes());
    let expected = json!({
        "path": "a.txt", "content": FIVE, "version": version.to_string(), "rev": version.short(), "size": 24,
        "encoding": "utf-8", "ending": "lf", "lines": { "from": 1, "to": 5, "total": 5 }, "truncated": false,
    });
    assert_eq!(Value::Object(answer.json.clone()), expected);
    assert_eq!(answer.json.keys().next().unwrap(), "path");
    assert_eq!(
        answer.text,
        format!("{FIVE}[a.txt: lines 1-5 of 5, {}, 24 bytes, utf-8, lf]", version.short())
    );
    assert_eq!(world.entries(), 1);
}

#[test]
fn a_written_file_is_named_by_its_entry() {
    let world = World::new();
    let written = world.ok("write", json!({ "path": "a.txt", "content": "x\n" }));
    let read = world.ok("read", json!({ "path": "a.txt" }));
    assert_eq!(read.json["rev"], "r1");
    assert_eq!(read.json["version"], written.json["version"]);
}

#[test]
fn line_ranges() {
    let world = World::with(&[("a.txt", FIVE), ("open", "a\nb"), ("empty", ""), ("cr", "a\rb\r\nc\n")]);
    let check = |path: &str, lines: &str, content: &str, from: u64, to: u64| {
        let answer = world.ok("read", json!({ "path": path, "lines": lines }));
        assert_eq!(answer.json["content"], content, "{path} {lines}");
        assert_eq!(answer.json["lines"]["from"], from, "{path} {lines}");
        assert_eq!(answer.json["lines"]["to"], to, "{path} {lines}");
        assert_eq!(answer.json["truncated"], false, "{path} {lines}");
    };
    check("a.txt", "2-3", "two\nthree\n", 2, 3);
    check("a.txt", "4-", "four\nfive\n", 4, 5);
    check("a.txt", "5", "five\n", 5, 5);
    check("a.txt", "4-99", "four\nfive\n", 4, 5);
    check("a.txt", "1-99999999999999999999999999", FIVE, 1, 5);
    check("open", "2-", "b", 2, 2);
    check("empty", "1-200", "", 0, 0);
    check("cr", "2", "b\r\n", 2, 2);
    check("cr", "3", "c\n", 3, 3);
}

#[test]
fn bad_ranges_are_refused_with_the_way_out() {
    let world = World::with(&[("a.txt", FIVE), ("empty", "")]);
    for lines in ["0-3", "3-2", "-5", "a", "1-2-3", "", "2.5"] {
        let failure = world.fails("read", json!({ "path": "a.txt", "lines": lines }), Kind::BadRequest);
        assert!(failure.hint.unwrap().contains("\"10-60\""), "{lines}");
    }
    let past = world.fails("read", json!({ "path": "a.txt", "lines": "6-9" }), Kind::BadRequest);
    assert!(past.detail.contains("5 lines"), "{}", past.detail);
    assert_eq!(past.facts["total"], 5);
    world.fails("read", json!({ "path": "empty", "lines": "2" }), Kind::BadRequest);
    let past = world.fails("read", json!({ "path": "a.txt", "bytes": "24-30" }), Kind::BadRequest);
    assert!(past.detail.contains("24 bytes"), "{}", past.detail);
    world.fails("read", json!({ "path": "a.txt", "bytes": "99999999999999999999999-" }), Kind::BadRequest);
    world.fails("read", json!({ "path": "a.txt", "lines": "1", "bytes": "1" }), Kind::BadRequest);
    world.fails("read", json!({ "path": "a.txt", "lines": "1", "as": "base64" }), Kind::BadRequest);
    for form in ["outline", "image", "hex"] {
        let failure = world.fails("read", json!({ "path": "a.txt", "as": form }), Kind::BadRequest);
        assert!(failure.hint.unwrap().contains("base64"), "{form}");
    }
    let unknown = world.fails("read", json!({ "path": "a.txt", "line": "1" }), Kind::BadRequest);
    assert!(unknown.detail.contains("unknown argument `line`"), "{}", unknown.detail);
}

#[test]
fn encodings_and_endings_are_told() {
    let world = World::new();
    let check = |bytes: &[u8], content: &str, encoding: &str, ending: &str, bom: bool| {
        world.workspace.put_file("f", bytes);
        let answer = world.ok("read", json!({ "path": "f" }));
        let found = (&answer.json["content"], &answer.json["encoding"], &answer.json["ending"]);
        assert_eq!(found, (&json!(content), &json!(encoding), &json!(ending)), "{bytes:?}");
        assert_eq!(answer.json.contains_key("bom"), bom, "{bytes:?}");
        assert_eq!(answer.json["version"], Version::of(bytes).to_string());
    };
    check(b"", "", "utf-8", "none", false);
    check(b"a", "a", "utf-8", "none", false);
    check(b"a\r\nb\r\n", "a\r\nb\r\n", "utf-8", "crlf", false);
    check(b"a\rb\r", "a\rb\r", "utf-8", "cr", false);
    check(b"a\nb\r\n", "a\nb\r\n", "utf-8", "mixed", false);
    check(b"\xef\xbb\xbfhi\n", "hi\n", "utf-8-bom", "lf", true);
    check(b"\xff\xfeh\0i\0\n\0", "hi\n", "utf-16le-bom", "lf", true);
    check(b"caf\xe9 cr\xe8me br\xfbl\xe9e\n", "café crème brûlée\n", "windows-1252", "lf", false);
}

#[test]
fn the_twin_says_when_the_last_newline_is_missing() {
    let world = World::with(&[("open", "a\nb"), ("closed", "a\nb\n"), ("empty", "")]);
    assert!(world.ok("read", json!({ "path": "open" })).text.ends_with("no newline at the end]"));
    assert!(world.ok("read", json!({ "path": "closed" })).text.ends_with("lf]"));
    assert!(world.ok("read", json!({ "path": "empty" })).text.starts_with("[empty: empty, "));
    assert!(!world.ok("read", json!({ "path": "open", "lines": "1" })).text.contains("no newline"));
}

#[test]
fn binary_is_base64_and_says_so() {
    let world = World::new();
    world.workspace.put_file("b", [0_u8, 1, 2, 255]);
    let answer = world.ok("read", json!({ "path": "b" }));
    assert_eq!(answer.json["content"], "AAEC/w==");
    assert_eq!(answer.json["encoding"], "base64");
    assert_eq!(answer.json["binary"], true);
    assert_eq!(answer.json["bytes"], json!({ "from": 0, "to": 3, "total": 4 }));
    let failure = world.fails("read", json!({ "path": "b", "as": "text" }), Kind::NotText);
    assert!(failure.hint.unwrap().contains("base64"));
    world.fails("read", json!({ "path": "b", "lines": "1-2" }), Kind::NotText);
    world.workspace.put_file("t", "hi");
    let text = world.ok("read", json!({ "path": "t", "as": "base64" }));
    assert_eq!((&text.json["content"], text.json.get("binary")), (&json!("aGk="), None));
}

#[test]
fn a_long_text_comes_by_pages_that_add_up() {
    let whole: String = (0..20_000).map(|line| format!("line {line} ä\n")).collect();
    let world = World::with(&[("long", &whole)]);
    let (mut arguments, mut read, mut pages) = (json!({ "path": "long" }), String::new(), 0);
    loop {
        let answer = world.ok("read", arguments);
        let content = answer.json["content"].as_str().unwrap();
        assert!(content.chars().count() <= limits::PAGE_CHARS && content.ends_with('\n'));
        read.push_str(content);
        pages += 1;
        assert_eq!(answer.json["truncated"], answer.json.contains_key("next"));
        let Some(next) = answer.json.get("next") else { break };
        let lines = next["lines"].as_str().unwrap();
        assert!(answer.text.ends_with(&format!("… truncated: call read with path long, lines \"{lines}\"")));
        arguments = next.clone();
    }
    assert_eq!((read == whole, pages > 5), (true, true));
    let bounded = world.ok("read", json!({ "path": "long", "lines": "1-9999" }));
    assert!(bounded.json["next"]["lines"].as_str().unwrap().ends_with("-9999"));
}

#[test]
fn one_enormous_line_goes_on_by_bytes() {
    let whole = format!("{}ä{}\nend\n", "x".repeat(limits::PAGE_CHARS - 1), "üß€".repeat(30_000));
    let world = World::with(&[("wide", &whole)]);
    let first = world.ok("read", json!({ "path": "wide" }));
    let mut read = first.json["content"].as_str().unwrap().to_owned();
    assert_eq!(read.chars().count(), limits::PAGE_CHARS);
    let mut next = first.json["next"].clone();
    while next.is_object() {
        assert!(next.get("bytes").is_some());
        let answer = world.ok("read", next);
        assert_eq!(answer.json["encoding"], "utf-8");
        read.push_str(answer.json["content"].as_str().unwrap());
        next = answer.json.get("next").cloned().unwrap_or_default();
    }
    assert!(read == whole);
}

#[test]
fn an_enormous_line_in_another_encoding_goes_on_where_it_was_cut() {
    let text = format!("{}\n", "é".repeat(limits::PAGE_CHARS + 10));
    let bytes: Vec<u8> =
        [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let world = World::new();
    world.workspace.put_file("wide", &bytes);
    let first = world.ok("read", json!({ "path": "wide" }));
    let offset = 2 + 2 * limits::PAGE_CHARS;
    assert_eq!(first.json["next"]["bytes"], format!("{offset}-{}", bytes.len() - 1));
    let rest = world.ok("read", first.json["next"].clone());
    assert_eq!(rest.json["encoding"], "base64");
}

#[test]
fn byte_ranges_are_honoured_in_one_answer() {
    let whole = "0123456789".repeat(20_000);
    let world = World::with(&[("big", &whole), ("umlaut", "aäb"), ("empty", "")]);
    let answer = world.ok("read", json!({ "path": "big", "bytes": "0-" }));
    assert_eq!(answer.json["content"].as_str().unwrap().len(), whole.len());
    assert_eq!(answer.json["bytes"], json!({ "from": 0, "to": 199_999, "total": 200_000 }));
    assert!(answer.text.len() < 500, "the twin does not repeat a large content");
    let part = world.ok("read", json!({ "path": "big", "bytes": "10-19" }));
    assert_eq!(part.json["content"], "0123456789");
    assert_eq!(part.json["truncated"], false);
    assert_eq!(part.json["next"], json!({ "path": "big", "bytes": "20-29" }));
    assert_eq!(part.json["version"], Version::of(whole.as_bytes()).to_string());
    let end = world.ok("read", json!({ "path": "big", "bytes": "199990-200500" }));
    assert_eq!((end.json["bytes"]["to"].as_u64(), end.json.get("next")), (Some(199_999), None));

    let cut = world.ok("read", json!({ "path": "umlaut", "bytes": "0-1" }));
    assert_eq!((&cut.json["content"], &cut.json["bytes"]["to"]), (&json!("a"), &json!(0)));
    assert_eq!((&cut.json["truncated"], &cut.json["next"]["bytes"]), (&json!(true), &json!("1-2")));
    let inside = world.ok("read", json!({ "path": "umlaut", "bytes": "2-" }));
    assert_eq!((&inside.json["encoding"], &inside.json["content"]), (&json!("base64"), &json!("pGI=")));
    world.fails("read", json!({ "path": "umlaut", "bytes": "2-", "as": "text" }), Kind::NotText);
    let empty = world.ok("read", json!({ "path": "empty", "bytes": "0-99" }));
    assert_eq!((&empty.json["content"], &empty.json["bytes"]["total"]), (&json!(""), &json!(0)));
}

#[test]
fn a_large_binary_comes_by_pages_that_add_up() {
    let whole: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    let world = World::new();
    world.workspace.put_file("b", &whole);
    let (mut arguments, mut read) = (json!({ "path": "b" }), 0);
    loop {
        let answer = world.ok("read", arguments);
        assert!(answer.json["content"].as_str().unwrap().len() <= limits::PAGE_CHARS);
        let bytes = &answer.json["bytes"];
        read += bytes["to"].as_u64().unwrap() + 1 - bytes["from"].as_u64().unwrap();
        let Some(next) = answer.json.get("next") else { break };
        arguments = next.clone();
    }
    assert_eq!(read, 100_000);
}

#[test]
fn what_is_no_readable_file_is_refused() {
    let world = World::with(&[("dir/x", "x"), ("secret/key", "k")]);
    world.workspace.put_special("pipe");
    world.workspace.put_link("in", "dir/x");
    world.workspace.put_link("abs", "/ws/dir/x");
    world.workspace.put_link("out", "../../etc/passwd");
    world.workspace.put_link("loop", "loop");
    let check = |path: &str, kind: Kind, hint: &str| {
        let failure = world.fails("read", json!({ "path": path }), kind);
        assert!(failure.to_string().contains(hint), "{path}: {failure}");
    };
    check("dir", Kind::IsDirectory, "call list with path dir");
    check("dir/none", Kind::NotFound, "call list with path dir");
    check("pipe", Kind::NotRegular, "only files");
    check("out", Kind::PathEscape, "");
    check("loop", Kind::LinkLoop, "");
    check("../x", Kind::InvalidPath, "relative to the workspace root");
    check("dir/x/", Kind::NotDirectory, "trailing slash");
    for path in ["in", "abs", "/ws/dir/x"] {
        let answer = world.ok("read", json!({ "path": path }));
        assert_eq!((&answer.json["path"], &answer.json["content"]), (&json!("dir/x"), &json!("x")), "{path}");
    }
    let caller = confined("two", &["dir"]);
    let refused = world.call_as(&caller, "read", json!({ "path": "secret/key" })).unwrap_err();
    assert_eq!(refused.kind, Kind::OutOfScope);
    assert_eq!(world.entries(), 11, "every call is one entry");
}

#[test]
fn other_names_of_a_file_are_told() {
    let world = World::with(&[("a", "x")]);
    world.workspace.set_links("a", 3);
    let answer = world.ok("read", json!({ "path": "a" }));
    assert_eq!(answer.json["links"], 3);
    assert!(answer.json["notices"][0].as_str().unwrap().contains("3 names"));
}
