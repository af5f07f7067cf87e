//! Tests that `search` in files too large for memory finds the same matches as in small files, with bounded memory and
//! time, or reports that it cannot.

#![expect(clippy::disallowed_methods, reason = "the test makes files from outside")]

use std::{
    fs::{self, File},
    io::Write,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use stead_engine::{CallControl, CancelToken, ErrorKind};
use testkit::native::{EngineJsonCalls, JsonCall};
use testkit::wait::wait_until;

use crate::support::LocalFixture;

const MIB: usize = 1 << 20;
/// The number of newly read bytes that shows that the search has begun to read a file.
const SEARCH_STARTED_BYTES: u64 = 256 << 10;

/// Returns a text with the word `needle` in every thousandth line, and the numbers of these lines.
fn lines(bytes: usize) -> (String, Vec<u64>) {
    let (mut text, mut needles) = (String::with_capacity(bytes + 100), Vec::new());
    let mut number = 0_u64;
    while text.len() < bytes {
        number += 1;
        let what = if number.is_multiple_of(1000) { "needle" } else { "hay" };
        if what == "needle" {
            needles.push(number);
        }
        // The lines have different lengths, so that chunks end at any position.
        text.push_str(&format!("{number} {what} {}\n", &"abcdefghijklmnopqrstuvwxyz"[..(number % 26) as usize]));
    }
    (text, needles)
}

fn lines_found(search: &Map<String, Value>, path: &str) -> Vec<u64> {
    let files = search["files"].as_array().unwrap();
    let hits = files.iter().filter(|file| file["path"] == path).flat_map(|file| file["hits"].as_array().unwrap());
    let mut lines: Vec<u64> = hits.map(|hit| hit["line"].as_u64().unwrap()).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn large_files_have_the_same_hits_in_any_encoding() {
    let fixture = LocalFixture::new();
    let (text, needles) = lines(5 * MIB);
    fixture.write_on_disk("plain.txt", &text);
    fixture.write_on_disk("marked.txt", &format!("\u{feff}{text}"));
    fixture.write_on_disk("wide.txt", &text.replace("hay", "häy漢"));
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(fixture.path("utf16.txt"), [b"\xff\xfe".as_slice(), &utf16].concat()).unwrap();
    // The first non-ASCII letter comes long after the first chunk.
    let latin = [text.as_bytes(), b"un caf\xe9 cr\xe8me, s'il vous pla\xeet: needle\n"].concat();
    fs::write(fixture.path("latin.txt"), latin).unwrap();
    for path in ["plain.txt", "marked.txt", "wide.txt", "utf16.txt", "latin.txt"] {
        for query in [json!({ "query": "needle" }), json!({ "query": "^\\d+ ne+dle\\b|cr.me.*needle$", "regex": true })]
        {
            let mut arguments = query;
            arguments["path"] = path.into();
            arguments["max"] = 1000.into();
            arguments["budget"] = 40_000.into();
            let search = fixture.call_ok("search", arguments);
            let last = if path == "latin.txt" { Some(text.lines().count() as u64 + 1) } else { None };
            let expected: Vec<u64> = needles.iter().copied().chain(last).collect();
            assert_eq!(search["total"], expected.len(), "{path} {search:?}");
            assert_eq!(lines_found(&search, path), expected, "{path}");
            assert_eq!((search.get("large"), search.get("binary")), (None, None), "{path}");
        }
    }
}

#[test]
fn hits_in_large_files_have_context() {
    let fixture = LocalFixture::new();
    let (text, _) = lines(5 * MIB);
    fixture.write_on_disk("a.txt", &text.replace("\n150000 needle", "\n150000 special needle"));
    let answer = fixture.call("search", json!({ "query": "special" })).unwrap();
    let text = answer.text.to_string();
    assert!(text.contains("149990- 149990 hay") && text.contains("150010- 150010 hay"), "{text}");
    assert!(text.contains("150000: 150000 special needle"), "{text}");
}

#[test]
fn partially_searched_files_are_reported() {
    let fixture = LocalFixture::new();
    let (text, needles) = lines(5 * MIB);
    fixture.write_on_disk("late-zero", &format!("{text}\0"));
    fixture.write_on_disk("damaged", &format!("é{text}"));
    let mut damaged = fs::OpenOptions::new().append(true).open(fixture.path("damaged")).unwrap();
    damaged.write_all(b"\xff needle\n").unwrap();
    for (name, bytes, size) in [("sparse", "", 9_u64 << 30), ("huge", "needle\n", 5 << 30)] {
        fixture.write_on_disk(name, bytes);
        File::options().write(true).open(fixture.path(name)).unwrap().set_len(size).unwrap();
    }
    let line = "x".repeat(17 * MIB);
    fixture.write_on_disk("line.txt", &format!("needle\n{line} needle\nneedle\n{line}"));
    fixture.write_on_disk("plain.txt", &text);
    let answer = fixture.call("search", json!({ "query": "needle", "max": 1000, "budget": 40_000 })).unwrap();
    let search = answer.json;
    assert_eq!(search["total"], needles.len() + 2, "{:?}", search.get("left"));
    assert_eq!(lines_found(&search, "line.txt"), [1, 3]);
    let left = json!([
        { "path": "huge", "why": "size" }, { "path": "line.txt", "why": "line" }, { "path": "sparse", "why": "size" }
    ]);
    assert_eq!((&search["large"], &search["left"]), (&json!(3), &left));
    assert_eq!(search["binary"], 2);
    let text = answer.text.to_string();
    assert!(text.contains("not fully searched: huge (too large), line.txt (line too long)"), "{text}");
    // The cut does not count as the end of the line.
    let search = fixture.call_ok("search", json!({ "query": "x$", "regex": true, "path": "line.txt" }));
    assert_eq!((&search["total"], &search["large"]), (&json!(0), &json!(1)));
}

#[test]
fn versions_of_huge_files_finish_in_time() {
    let fixture = LocalFixture::new();
    fixture.write_on_disk("huge", "begin");
    File::options().write(true).open(fixture.path("huge")).unwrap().set_len(1 << 40).unwrap();
    for (operation, arguments) in [
        ("remove", json!({ "path": "huge" })),
        ("read", json!({ "path": "huge", "bytes": "0-4" })),
        ("copy", json!({ "from": "huge", "to": "other" })),
        ("move", json!({ "from": "huge", "to": "other" })),
    ] {
        let mut call = JsonCall::new(&fixture.caller, operation, arguments.as_object().unwrap().clone());
        call.control = CallControl::new(Instant::now() + Duration::from_millis(50), CancelToken::default(), None);
        let error = fixture.engine.call(&call).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Deadline, "{operation}: {error}");
        assert!(fixture.path("huge").exists() && !fixture.path("other").exists(), "{operation}");
    }
}

#[test]
fn version_of_a_large_file_is_its_digest() {
    let fixture = LocalFixture::new();
    let (text, _) = lines(65 * MIB);
    fixture.write_on_disk("large", &text);
    let first = 3 * MIB - 5;
    let read = fixture.call_ok("read", json!({ "path": "large", "bytes": format!("{first}-{}", first + 9) }));
    assert_eq!(read["content"], text[first..first + 10]);
    assert_eq!(read["version"], stead_engine::Version::hash_bytes(text.as_bytes()).to_string());
}

fn bytes_read_by_process() -> u64 {
    let counters = fs::read_to_string("/proc/self/io").unwrap();
    counters.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[test]
fn search_can_stop_within_a_file() {
    let fixture = LocalFixture::new();
    let (text, _) = lines(3 * MIB);
    let slow = json!({ "query": "[a-m][a-z\\n 0-9]{900}[A-Z]", "regex": true });
    fixture.write_on_disk("small.txt", &text.replace('\n', " ").replace("99 ", "99\n"));
    fixture.write_on_disk("large.txt", &text.repeat(3).replace('\n', " ").replace("99 ", "99\n"));
    let ended = |deadline: Duration, cancel: &CancelToken, path: &str| {
        let Value::Object(mut arguments) = slow.clone() else { panic!("an object") };
        arguments.insert("path".into(), path.into());
        let started = Instant::now();
        let control = CallControl::new(started + deadline, cancel.clone(), None);
        let call = JsonCall { control, ..JsonCall::new(&fixture.caller, "search", arguments) };
        let code = fixture.engine.call(&call).map_or_else(|error| error.kind.code(), |_| "done");
        (code, started.elapsed())
    };
    for path in ["small.txt", "large.txt", "."] {
        let (code, took) = ended(Duration::from_millis(200), &CancelToken::default(), path);
        // A large file is skipped with a note if time is short; a small one ends the call.
        assert!(code == "deadline" || (path == "large.txt" && code == "done"), "{path}: {code}");
        assert!(took < Duration::from_secs(20), "{path}: {took:?}");
        let cancel = CancelToken::default();
        let switch = cancel.clone();
        let read_before = bytes_read_by_process();
        let waiting = thread::spawn(move || {
            wait_until("the search reads the file", || bytes_read_by_process() - read_before >= SEARCH_STARTED_BYTES);
            switch.cancel();
        });
        let (code, took) = ended(Duration::from_secs(600), &cancel, path);
        waiting.join().unwrap();
        assert_eq!(code, "cancelled", "{path}");
        assert!(took < Duration::from_secs(20), "{path}: {took:?}");
    }
}
