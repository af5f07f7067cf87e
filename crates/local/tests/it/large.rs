//! `search` in files that are too large to be held: the same hits as in small ones, in bounded memory and time, and a note
//! where that cannot be.

#![expect(clippy::disallowed_methods, reason = "the test makes files from outside")]

use std::{
    fs::{self, File},
    io::Write,
    thread,
    time::{Duration, Instant},
};

use engine::{Call, Cancel, Control, Kind};
use serde_json::{Map, Value, json};

use crate::support::Fixture;

const MIB: usize = 1 << 20;

/// Lines of a text of at least so many bytes, with a needle in every thousandth line.
fn lines(bytes: usize) -> (String, Vec<u64>) {
    let (mut text, mut needles) = (String::with_capacity(bytes + 100), Vec::new());
    let mut number = 0_u64;
    while text.len() < bytes {
        number += 1;
        let what = if number.is_multiple_of(1000) { "needle" } else { "hay" };
        if what == "needle" {
            needles.push(number);
        }
        // Of different lengths, so that pieces end everywhere.
        text.push_str(&format!(
            "{number} {what} {}\n",
            &"abcdefghijklmnopqrstuvwxyz"[..(number % 26) as usize]
        ));
    }
    (text, needles)
}

/// The lines of one file in an answer, in order.
fn found(search: &Map<String, Value>, path: &str) -> Vec<u64> {
    let files = search["files"].as_array().unwrap();
    let hits =
        files.iter().filter(|file| file["path"] == path).flat_map(|file| file["hits"].as_array().unwrap());
    let mut lines: Vec<u64> = hits.map(|hit| hit["line"].as_u64().unwrap()).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn a_large_file_has_the_hits_of_a_small_one_in_any_encoding() {
    let fixture = Fixture::new();
    let (text, needles) = lines(5 * MIB);
    fixture.put("plain.txt", &text);
    fixture.put("marked.txt", &format!("\u{feff}{text}"));
    fixture.put("wide.txt", &text.replace("hay", "häy漢"));
    let utf16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    fs::write(fixture.path("utf16.txt"), [b"\xff\xfe".as_slice(), &utf16].concat()).unwrap();
    // The first letter that is not ASCII comes long after the first piece.
    let latin = [text.as_bytes(), b"un caf\xe9 cr\xe8me, s'il vous pla\xeet: needle\n"].concat();
    fs::write(fixture.path("latin.txt"), latin).unwrap();
    for path in ["plain.txt", "marked.txt", "wide.txt", "utf16.txt", "latin.txt"] {
        for query in [
            json!({ "query": "needle" }),
            json!({ "query": "^\\d+ ne+dle\\b|cr.me.*needle$", "regex": true }),
        ] {
            let mut arguments = query;
            arguments["path"] = path.into();
            arguments["max"] = 1000.into();
            arguments["budget"] = 40_000.into();
            let search = fixture.ok("search", arguments);
            let last = if path == "latin.txt" { Some(text.lines().count() as u64 + 1) } else { None };
            let expected: Vec<u64> = needles.iter().copied().chain(last).collect();
            assert_eq!(search["total"], expected.len(), "{path} {search:?}");
            assert_eq!(found(&search, path), expected, "{path}");
            assert_eq!((search.get("large"), search.get("binary")), (None, None), "{path}");
        }
    }
}

#[test]
fn a_hit_in_a_large_file_comes_with_the_lines_around_it() {
    let fixture = Fixture::new();
    let (text, _) = lines(5 * MIB);
    fixture.put("a.txt", &text.replace("\n150000 needle", "\n150000 special needle"));
    let answer = fixture.call("search", json!({ "query": "special" })).unwrap();
    let text = answer.text.to_string();
    assert!(text.contains("149990- 149990 hay") && text.contains("150010- 150010 hay"), "{text}");
    assert!(text.contains("150000: 150000 special needle"), "{text}");
}

#[test]
fn what_is_not_wholly_searched_is_named() {
    let fixture = Fixture::new();
    let (text, needles) = lines(5 * MIB);
    fixture.put("late-zero", &format!("{text}\0"));
    fixture.put("damaged", &format!("é{text}"));
    let mut damaged = fs::OpenOptions::new().append(true).open(fixture.path("damaged")).unwrap();
    damaged.write_all(b"\xff needle\n").unwrap();
    for (name, bytes, size) in [("sparse", "", 9_u64 << 30), ("huge", "needle\n", 5 << 30)] {
        fixture.put(name, bytes);
        File::options().write(true).open(fixture.path(name)).unwrap().set_len(size).unwrap();
    }
    let line = "x".repeat(17 * MIB);
    fixture.put("line.txt", &format!("needle\n{line} needle\nneedle\n{line}"));
    fixture.put("plain.txt", &text);
    let answer = fixture.call("search", json!({ "query": "needle", "max": 1000, "budget": 40_000 })).unwrap();
    let search = answer.json;
    assert_eq!(search["total"], needles.len() + 2, "{:?}", search.get("left"));
    assert_eq!(found(&search, "line.txt"), [1, 3]);
    let left = json!([
        { "path": "huge", "why": "size" }, { "path": "line.txt", "why": "line" }, { "path": "sparse", "why": "size" }
    ]);
    assert_eq!((&search["large"], &search["left"]), (&json!(3), &left));
    assert_eq!(search["binary"], 2);
    let text = answer.text.to_string();
    assert!(text.contains("not wholly searched: huge (too large), line.txt (a line too long)"), "{text}");
    // The cut is not taken for the end of the line.
    let search = fixture.ok("search", json!({ "query": "x$", "regex": true, "path": "line.txt" }));
    assert_eq!((&search["total"], &search["large"]), (&json!(0), &json!(1)));
}

/// Whoever wants the version of a file of any size gets it in time or is told that it takes too long.
#[test]
fn what_needs_the_version_of_a_huge_file_ends_in_time() {
    let fixture = Fixture::new();
    fixture.put("huge", "begin");
    File::options().write(true).open(fixture.path("huge")).unwrap().set_len(1 << 40).unwrap();
    for (operation, arguments) in [
        ("remove", json!({ "path": "huge" })),
        ("read", json!({ "path": "huge", "bytes": "0-4" })),
        ("copy", json!({ "from": "huge", "to": "other" })),
        ("move", json!({ "from": "huge", "to": "other" })),
    ] {
        let mut call = Call::new(&fixture.caller, operation, arguments.as_object().unwrap().clone());
        call.control = Control::new(Instant::now() + Duration::from_millis(50), Cancel::default(), None);
        let failure = fixture.engine.call(&call).unwrap_err();
        assert_eq!(failure.kind, Kind::Deadline, "{operation}: {failure}");
        assert!(fixture.path("huge").exists() && !fixture.path("other").exists(), "{operation}");
    }
}

/// A file that is read piece by piece has the version and the bytes of one that is read at once.
#[test]
fn a_large_file_has_the_version_of_its_bytes() {
    let fixture = Fixture::new();
    let (text, _) = lines(65 * MIB);
    fixture.put("large", &text);
    let first = 3 * MIB - 5;
    let read = fixture.ok("read", json!({ "path": "large", "bytes": format!("{first}-{}", first + 9) }));
    assert_eq!(read["content"], text[first..first + 10]);
    assert_eq!(read["version"], engine::Version::of(text.as_bytes()).to_string());
}

#[test]
fn a_search_ends_in_the_middle_of_a_file() {
    let fixture = Fixture::new();
    let (text, _) = lines(3 * MIB);
    let slow = json!({ "query": "[a-m][a-z\\n 0-9]{900}[A-Z]", "regex": true });
    fixture.put("small.txt", &text.replace('\n', " ").replace("99 ", "99\n"));
    fixture.put("large.txt", &text.repeat(3).replace('\n', " ").replace("99 ", "99\n"));
    let ended = |deadline: Duration, cancel: &Cancel, path: &str| {
        let Value::Object(mut arguments) = slow.clone() else { panic!("an object") };
        arguments.insert("path".into(), path.into());
        let started = Instant::now();
        let control = Control::new(started + deadline, cancel.clone(), None);
        let call = Call { control, ..Call::new(&fixture.caller, "search", arguments) };
        let code = fixture.engine.call(&call).map_or_else(|failure| failure.kind.code(), |_| "done");
        (code, started.elapsed())
    };
    for path in ["small.txt", "large.txt", "."] {
        let (code, took) = ended(Duration::from_millis(200), &Cancel::default(), path);
        // A large file is left where time is short, and that is said; a small one ends the call.
        assert!(code == "deadline" || (path == "large.txt" && code == "done"), "{path}: {code}");
        assert!(took < Duration::from_secs(20), "{path}: {took:?}");
        let cancel = Cancel::default();
        let switch = cancel.clone();
        let waiting = thread::spawn(move || {
            thread::sleep(Duration::from_millis(100));
            switch.cancel();
        });
        let (code, took) = ended(Duration::from_secs(600), &cancel, path);
        waiting.join().unwrap();
        assert_eq!(code, "cancelled", "{path}");
        assert!(took < Duration::from_secs(20), "{path}: {took:?}");
    }
}
