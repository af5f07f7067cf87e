//! Tests of `read`: ranges of lines and bytes, encodings, pages and errors.

use insta::assert_snapshot;
use serde_json::json;
use stead_engine::{ErrorKind, Version, limits};
use testkit::hint_text;
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, confined_agent},
};

const FIVE_LINES: &str = "one\ntwo\nthree\nfour\nfive\n";

#[test]
fn text_read_returns_metadata() {
    let fixture = EngineFixture::with_files(&[("a.txt", FIVE_LINES)]);
    assert_snapshot!(fixture.call_rendered("read", json!({ "path": "a.txt" })));
    assert_eq!(fixture.entry_count(), 1);
}

#[test]
fn written_file_has_revision_of_its_entry() {
    let fixture = EngineFixture::new();
    let written = fixture.call_ok("write", json!({ "path": "a.txt", "content": "x\n" }));
    let read = fixture.call_ok("read", json!({ "path": "a.txt" }));
    assert_eq!(read["rev"], "r1");
    assert_eq!(read["version"], written["version"]);
}

#[test]
fn line_ranges_return_requested_lines() {
    let fixture =
        EngineFixture::with_files(&[("a.txt", FIVE_LINES), ("open", "a\nb"), ("empty", ""), ("cr", "a\rb\r\nc\n")]);
    let check = |path: &str, lines: &str, content: &str, from: u64, to: u64| {
        let outcome = fixture.call_ok("read", json!({ "path": path, "lines": lines }));
        assert_eq!(outcome["content"], content, "{path} {lines}");
        assert_eq!(outcome["lines"]["from"], from, "{path} {lines}");
        assert_eq!(outcome["lines"]["to"], to, "{path} {lines}");
        assert_eq!(outcome["truncated"], false, "{path} {lines}");
    };
    check("a.txt", "2-3", "two\nthree\n", 2, 3);
    check("a.txt", "4-", "four\nfive\n", 4, 5);
    check("a.txt", "5", "five\n", 5, 5);
    check("a.txt", "4-99", "four\nfive\n", 4, 5);
    check("a.txt", "1-99999999999999999999999999", FIVE_LINES, 1, 5);
    check("open", "2-", "b", 2, 2);
    check("empty", "1-200", "", 0, 0);
    check("cr", "2", "b\r\n", 2, 2);
    check("cr", "3", "c\n", 3, 3);
}

#[test]
fn invalid_ranges_are_rejected_with_hint() {
    let fixture = EngineFixture::with_files(&[("a.txt", FIVE_LINES), ("empty", "")]);
    for lines in ["0-3", "3-2", "-5", "a", "1-2-3", "", "2.5"] {
        let error = fixture.call_err("read", json!({ "path": "a.txt", "lines": lines }), ErrorKind::BadRequest);
        assert!(hint_text(&error).contains("\"10-60\""), "{lines}");
    }
    let past = fixture.call_err("read", json!({ "path": "a.txt", "lines": "6-9" }), ErrorKind::BadRequest);
    assert!(past.message.contains("5 lines"), "{}", past.message);
    assert_eq!(past.details_json()["total"], 5);
    fixture.call_err("read", json!({ "path": "empty", "lines": "2" }), ErrorKind::BadRequest);
    let past = fixture.call_err("read", json!({ "path": "a.txt", "bytes": "24-30" }), ErrorKind::BadRequest);
    assert!(past.message.contains("24 bytes"), "{}", past.message);
    fixture.call_err("read", json!({ "path": "a.txt", "bytes": "99999999999999999999999-" }), ErrorKind::BadRequest);
    fixture.call_err("read", json!({ "path": "a.txt", "lines": "1", "bytes": "1" }), ErrorKind::BadRequest);
    fixture.call_err("read", json!({ "path": "a.txt", "lines": "1", "as": "base64" }), ErrorKind::BadRequest);
    for form in ["outline", "image", "hex"] {
        let error = fixture.call_err("read", json!({ "path": "a.txt", "as": form }), ErrorKind::BadRequest);
        assert!(hint_text(&error).contains("base64"), "{form}");
    }
    let unknown = fixture.call_err("read", json!({ "path": "a.txt", "line": "1" }), ErrorKind::BadRequest);
    assert!(unknown.message.contains("unknown argument `line`"), "{}", unknown.message);
}

#[test]
fn encoding_and_line_endings_are_reported() {
    let fixture = EngineFixture::new();
    let check = |bytes: &[u8], content: &str, encoding: &str, ending: &str, bom: bool| {
        fixture.workspace.put_file("f", bytes);
        let outcome = fixture.call_ok("read", json!({ "path": "f" }));
        let found = (&outcome["content"], &outcome["encoding"], &outcome["ending"]);
        assert_eq!(found, (&json!(content), &json!(encoding), &json!(ending)), "{bytes:?}");
        assert_eq!(outcome.contains_key("bom"), bom, "{bytes:?}");
        assert_eq!(outcome["version"], Version::hash_bytes(bytes).to_string());
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
fn text_reports_missing_final_newline() {
    let fixture = EngineFixture::with_files(&[("open", "a\nb"), ("closed", "a\nb\n"), ("empty", "")]);
    assert!(fixture.call_text("read", json!({ "path": "open" })).ends_with("no newline at the end]"));
    assert!(fixture.call_text("read", json!({ "path": "closed" })).ends_with("lf]"));
    assert!(fixture.call_text("read", json!({ "path": "empty" })).starts_with("[empty: empty, "));
    assert!(!fixture.call_text("read", json!({ "path": "open", "lines": "1" })).contains("no newline"));
}

#[test]
fn binary_files_are_returned_as_base64() {
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("b", [0_u8, 1, 2, 255]);
    let outcome = fixture.call_ok("read", json!({ "path": "b" }));
    assert_eq!(outcome["content"], "AAEC/w==");
    assert_eq!(outcome["encoding"], "base64");
    assert_eq!(outcome["binary"], true);
    assert_eq!(outcome["bytes"], json!({ "from": 0, "to": 3, "total": 4 }));
    let error = fixture.call_err("read", json!({ "path": "b", "as": "text" }), ErrorKind::NotText);
    assert!(hint_text(&error).contains("base64"));
    fixture.call_err("read", json!({ "path": "b", "lines": "1-2" }), ErrorKind::NotText);
    fixture.workspace.put_file("t", "hi");
    let text = fixture.call_ok("read", json!({ "path": "t", "as": "base64" }));
    assert_eq!((&text["content"], text.get("binary")), (&json!("aGk="), None));
}

#[test]
fn long_text_is_paged_without_loss() {
    let whole: String = (0..20_000).map(|line| format!("line {line} ä\n")).collect();
    let fixture = EngineFixture::with_files(&[("long", &whole)]);
    let (mut arguments, mut read, mut pages) = (json!({ "path": "long" }), String::new(), 0);
    loop {
        let outcome = fixture.call("read", arguments).unwrap();
        let content = outcome.json["content"].as_str().unwrap();
        assert!(content.chars().count() <= limits::OUTCOME_PAGE_CHARS && content.ends_with('\n'));
        read.push_str(content);
        pages += 1;
        assert_eq!(outcome.json["truncated"], outcome.json.contains_key("next"));
        let Some(next) = outcome.json.get("next") else { break };
        let lines = next["lines"].as_str().unwrap();
        assert!(outcome.text.ends_with(&format!("… truncated: call read with path long, lines \"{lines}\"")));
        arguments = next.clone();
    }
    assert_eq!((read == whole, pages > 5), (true, true));
    let bounded = fixture.call_ok("read", json!({ "path": "long", "lines": "1-9999" }));
    assert!(bounded["next"]["lines"].as_str().unwrap().ends_with("-9999"));
}

#[test]
fn huge_line_continues_by_bytes() {
    let whole = format!("{}ä{}\nend\n", "x".repeat(limits::OUTCOME_PAGE_CHARS - 1), "üß€".repeat(30_000));
    let fixture = EngineFixture::with_files(&[("wide", &whole)]);
    let first = fixture.call_ok("read", json!({ "path": "wide" }));
    let mut read = first["content"].as_str().unwrap().to_owned();
    assert_eq!(read.chars().count(), limits::OUTCOME_PAGE_CHARS);
    let mut next = first["next"].clone();
    while next.is_object() {
        assert!(next.get("bytes").is_some());
        let outcome = fixture.call_ok("read", next);
        assert_eq!(outcome["encoding"], "utf-8");
        read.push_str(outcome["content"].as_str().unwrap());
        next = outcome.get("next").cloned().unwrap_or_default();
    }
    assert!(read == whole);
}

#[test]
fn huge_line_in_other_encoding_continues_at_cut() {
    let text = format!("{}\n", "é".repeat(limits::OUTCOME_PAGE_CHARS + 10));
    let bytes: Vec<u8> = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("wide", &bytes);
    let first = fixture.call_ok("read", json!({ "path": "wide" }));
    let offset = 2 + 2 * limits::OUTCOME_PAGE_CHARS;
    assert_eq!(first["next"]["bytes"], format!("{offset}-{}", bytes.len() - 1));
    let rest = fixture.call_ok("read", first["next"].clone());
    assert_eq!(rest["encoding"], "base64");
}

#[test]
fn byte_ranges_are_returned_in_one_outcome() {
    let whole = "0123456789".repeat(20_000);
    let fixture = EngineFixture::with_files(&[("big", &whole), ("umlaut", "aäb"), ("empty", "")]);
    let outcome = fixture.call("read", json!({ "path": "big", "bytes": "0-" })).unwrap();
    assert_eq!(outcome.json["content"].as_str().unwrap().len(), whole.len());
    assert_eq!(outcome.json["bytes"], json!({ "from": 0, "to": 199_999, "total": 200_000 }));
    assert!(outcome.text.len() < 500, "the twin does not repeat a large content");
    let part = fixture.call_ok("read", json!({ "path": "big", "bytes": "10-19" }));
    assert_eq!(part["content"], "0123456789");
    assert_eq!(part["truncated"], false);
    assert_eq!(part["next"], json!({ "path": "big", "bytes": "20-29" }));
    assert_eq!(part["version"], Version::hash_bytes(whole.as_bytes()).to_string());
    let end = fixture.call_ok("read", json!({ "path": "big", "bytes": "199990-200500" }));
    assert_eq!((end["bytes"]["to"].as_u64(), end.get("next")), (Some(199_999), None));

    let cut = fixture.call_ok("read", json!({ "path": "umlaut", "bytes": "0-1" }));
    assert_eq!((&cut["content"], &cut["bytes"]["to"]), (&json!("a"), &json!(0)));
    assert_eq!((&cut["truncated"], &cut["next"]["bytes"]), (&json!(true), &json!("1-2")));
    let inside = fixture.call_ok("read", json!({ "path": "umlaut", "bytes": "2-" }));
    assert_eq!((&inside["encoding"], &inside["content"]), (&json!("base64"), &json!("pGI=")));
    fixture.call_err("read", json!({ "path": "umlaut", "bytes": "2-", "as": "text" }), ErrorKind::NotText);
    let empty = fixture.call_ok("read", json!({ "path": "empty", "bytes": "0-99" }));
    assert_eq!((&empty["content"], &empty["bytes"]["total"]), (&json!(""), &json!(0)));
}

#[test]
fn large_binary_is_paged_without_loss() {
    let whole: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("b", &whole);
    let (mut arguments, mut read) = (json!({ "path": "b" }), 0);
    loop {
        let outcome = fixture.call_ok("read", arguments);
        assert!(outcome["content"].as_str().unwrap().len() <= limits::OUTCOME_PAGE_CHARS);
        let bytes = &outcome["bytes"];
        read += bytes["to"].as_u64().unwrap() + 1 - bytes["from"].as_u64().unwrap();
        let Some(next) = outcome.get("next") else { break };
        arguments = next.clone();
    }
    assert_eq!(read, 100_000);
}

#[test]
fn non_regular_files_are_rejected() {
    let fixture = EngineFixture::with_files(&[("dir/x", "x"), ("secret/key", "k")]);
    fixture.workspace.put_special("pipe");
    fixture.workspace.put_link("in", "dir/x");
    fixture.workspace.put_link("abs", "/ws/dir/x");
    fixture.workspace.put_link("out", "../../etc/passwd");
    fixture.workspace.put_link("loop", "loop");
    let check = |path: &str, kind: ErrorKind, hint: &str| {
        let error = fixture.call_err("read", json!({ "path": path }), kind);
        assert!(hint_text(&error).contains(hint), "{path}: {error}");
    };
    check("dir", ErrorKind::IsDirectory, "call list with path dir");
    check("dir/none", ErrorKind::NotFound, "call list with path dir");
    check("pipe", ErrorKind::NotRegular, "only regular files");
    check("out", ErrorKind::PathEscape, "");
    check("loop", ErrorKind::LinkLoop, "");
    check("../x", ErrorKind::InvalidPath, "relative to the workspace root");
    check("dir/x/", ErrorKind::NotDirectory, "trailing slash");
    for path in ["in", "abs", "/ws/dir/x"] {
        let outcome = fixture.call_ok("read", json!({ "path": path }));
        assert_eq!((&outcome["path"], &outcome["content"]), (&json!("dir/x"), &json!("x")), "{path}");
    }
    let caller = confined_agent("two", &["dir"]);
    fixture.with_caller(&caller).call_err("read", json!({ "path": "secret/key" }), ErrorKind::OutOfScope);
    assert_eq!(fixture.entry_count(), 11, "every call is one entry");
}

#[test]
fn hard_links_are_reported() {
    let fixture = EngineFixture::with_files(&[("a", "x")]);
    fixture.workspace.set_link_count("a", 3);
    let outcome = fixture.call_ok("read", json!({ "path": "a" }));
    assert_eq!(outcome["links"], 3);
    assert!(outcome["notices"][0].as_str().unwrap().contains("3 hard links"));
}
