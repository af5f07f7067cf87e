//! Known ways in which file servers have damaged files, each with a test that it does not happen here. Each kind of
//! damage has a number, such as D1, with which the names of its tests begin.

#![expect(clippy::disallowed_methods, reason = "the test looks at the directory from outside")]

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use stead_engine::{ErrorKind, limits};

use crate::support::LocalFixture;

struct EditCorruptionTestCase {
    number: &'static str,
    before: &'static [u8],
    old: &'static str,
    new: &'static str,
    after: Result<&'static [u8], ErrorKind>,
}

const EDITS: &[EditCorruptionTestCase] = &[
    EditCorruptionTestCase {
        number: "D1 every ending stays",
        before: b"one\r\ntwo\r\nthree\r\n",
        old: "two",
        new: "2",
        after: Ok(b"one\r\n2\r\nthree\r\n"),
    },
    EditCorruptionTestCase {
        number: "D1 mixed endings stay mixed",
        before: b"one\r\ntwo\nthree\r\n",
        old: "two",
        new: "2",
        after: Ok(b"one\r\n2\nthree\r\n"),
    },
    EditCorruptionTestCase {
        number: "D2 a file in Latin-1 keeps its bytes",
        before: b"caf\xe9 cr\xe8me\nth\xe9 vert et caf\xe9\n",
        old: "vert",
        new: "noir",
        after: Ok(b"caf\xe9 cr\xe8me\nth\xe9 noir et caf\xe9\n"),
    },
    EditCorruptionTestCase {
        number: "D3 the second line keeps its indentation",
        before: b"def f():\n    a = 1\n    b = 2\n",
        old: "a = 1\nb = 2",
        new: "a = 3\nb = 4",
        after: Ok(b"def f():\n    a = 3\n    b = 4\n"),
    },
    EditCorruptionTestCase {
        number: "D4 blank lines at the end stay",
        before: b"def f():\n    a = 1\n    b = 2\n\n\n",
        old: "a = 1\nb = 2",
        new: "a = 3\nb = 4",
        after: Ok(b"def f():\n    a = 3\n    b = 4\n\n\n"),
    },
    EditCorruptionTestCase {
        number: "D5 tabs quoted as spaces keep their depth",
        before: b"if x {\n\tif y {\n\t\tz()\n\t}\n}\n",
        old: "    if y {\n        z()\n    }",
        new: "    if y {\n        w()\n    }",
        after: Ok(b"if x {\n\tif y {\n\t\tw()\n\t}\n}\n"),
    },
    EditCorruptionTestCase {
        number: "D6 the first of two is not taken",
        before: b"x = 1\ny = 2\nx = 1\n",
        old: "x = 1",
        new: "x = 3",
        after: Err(ErrorKind::Ambiguous),
    },
    EditCorruptionTestCase {
        number: "D7 an empty quote is no place",
        before: b"abc\n",
        old: "",
        new: "x",
        after: Err(ErrorKind::BadRequest),
    },
    EditCorruptionTestCase {
        number: "D8 signs of other tools are text",
        before: b"price: 1\n",
        old: "1",
        new: "$& $1 \\1 $$",
        after: Ok(b"price: $& $1 \\1 $$\n"),
    },
    EditCorruptionTestCase {
        number: "D9 what is not found empties nothing",
        before: b"one\ntwo\n",
        old: "three\nfour",
        new: "",
        after: Err(ErrorKind::TextNotFound),
    },
    EditCorruptionTestCase {
        number: "D19 a line that loses its end is not joined to the next",
        before: b"one\ntwo\nthree\n",
        old: "two\n",
        new: "2",
        after: Ok(b"one\n2\nthree\n"),
    },
    EditCorruptionTestCase {
        number: "D19 the same with the ending of another system",
        before: b"one\r\ntwo\r\nthree\r\n",
        old: "two\r\n",
        new: "2",
        after: Ok(b"one\r\n2\r\nthree\r\n"),
    },
    EditCorruptionTestCase {
        number: "D19 a line that shall go goes",
        before: b"one\ntwo\nthree\n",
        old: "two\n",
        new: "",
        after: Ok(b"one\nthree\n"),
    },
    EditCorruptionTestCase {
        number: "D20 the byte order mark is in nobody's way",
        before: b"\xef\xbb\xbffirst\nsecond\n",
        old: "first",
        new: "1st",
        after: Ok(b"\xef\xbb\xbf1st\nsecond\n"),
    },
];

#[test]
fn edits_change_only_quoted_text() {
    for case in EDITS {
        let fixture = LocalFixture::new();
        std::fs::write(fixture.path("f"), case.before).unwrap();
        let arguments = json!({ "path": "f", "edits": [{ "old": case.old, "new": case.new }] });
        let outcome = fixture.call("edit", arguments).map_err(|error| error.kind);
        let now = std::fs::read(fixture.path("f")).unwrap();
        match case.after {
            Ok(after) => {
                assert!(outcome.is_ok(), "{}: {outcome:?}", case.number);
                assert_eq!(now, after, "{}: {:?}", case.number, String::from_utf8_lossy(&now));
            }
            Err(kind) => {
                assert_eq!(outcome.map(|_| ()), Err(kind), "{}", case.number);
                assert_eq!(now, case.before, "{}", case.number);
            }
        }
    }
}

#[test]
fn d10_pages_never_split_a_character() {
    let fixture = LocalFixture::new();
    let text = "é".repeat(limits::OUTCOME_PAGE_CHARS + 1000);
    std::fs::write(fixture.path("f"), &text).unwrap();
    let (mut all, mut arguments) = (String::new(), json!({ "path": "f" }));
    loop {
        let answer = fixture.call("read", arguments).unwrap().json;
        all.push_str(answer["content"].as_str().unwrap());
        match answer.get("next") {
            Some(next) => arguments = next.clone(),
            None => break,
        }
    }
    assert_eq!(all, text);
}

#[test]
fn d11_executable_bit_is_preserved() {
    let fixture = LocalFixture::new();
    let directory = fixture.path("run.sh");
    std::fs::write(&directory, "#!/bin/sh\nexit 1\n").unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    let edits = json!([{ "old": "exit 1", "new": "exit 0" }]);
    fixture.call("edit", json!({ "path": "run.sh", "edits": edits })).unwrap();
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o7777, 0o755);
    let version = fixture.call("stat", json!({ "path": "run.sh" })).unwrap().json["version"].clone();
    fixture.call("write", json!({ "path": "run.sh", "content": "x", "base": version })).unwrap();
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn d13_and_d18_nothing_is_overwritten_by_a_move_or_a_restore() {
    let fixture = LocalFixture::new();
    std::fs::write(fixture.path("a"), "a").unwrap();
    std::fs::write(fixture.path("b"), "b").unwrap();
    let refused = fixture.call("move", json!({ "from": "a", "to": "b" })).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Exists);
    let trash = fixture.call("remove", json!({ "path": "a" })).unwrap().json["trash"].clone();
    std::fs::write(fixture.path("a"), "new").unwrap();
    let refused = fixture.call("restore", json!({ "trash": trash })).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Exists);
    assert_eq!(std::fs::read(fixture.path("a")).unwrap(), b"new");
    assert_eq!(std::fs::read(fixture.path("b")).unwrap(), b"b");
}

#[test]
fn d14_a_patch_whose_second_file_fails_changes_nothing() {
    let fixture = LocalFixture::new();
    std::fs::write(fixture.path("a"), "one\n").unwrap();
    std::fs::write(fixture.path("b"), "two\n").unwrap();
    let patch = "*** Begin Patch\n*** Update File: a\n-one\n+1\n*** Update File: b\n-three\n+3\n*** End Patch\n";
    let refused = fixture.call("patch", json!({ "patch": patch })).unwrap_err();
    assert_eq!(refused.kind, ErrorKind::TextNotFound, "{refused}");
    assert_eq!(std::fs::read(fixture.path("a")).unwrap(), b"one\n");
    assert_eq!(std::fs::read(fixture.path("b")).unwrap(), b"two\n");
}

#[test]
fn d15_undo_changes_only_paths_of_the_call() {
    let fixture = LocalFixture::new();
    for directory in ["one", "two"] {
        std::fs::create_dir(fixture.path(directory)).unwrap();
        std::fs::write(fixture.path(directory).join("f"), "old\n").unwrap();
    }
    let edit = |path: &str| {
        let edits = json!([{ "old": "old", "new": "new" }]);
        fixture.call("edit", json!({ "path": path, "edits": edits })).unwrap().json["entry"].clone()
    };
    let first: Value = edit("one/f");
    edit("two/f");
    std::fs::write(fixture.path("two").join("g"), "foreign\n").unwrap();
    fixture.call("undo", json!({ "entry": format!("r{first}") })).unwrap();
    assert_eq!(std::fs::read(fixture.path("one").join("f")).unwrap(), b"old\n");
    assert_eq!(std::fs::read(fixture.path("two").join("f")).unwrap(), b"new\n");
    assert_eq!(std::fs::read(fixture.path("two").join("g")).unwrap(), b"foreign\n");
}

#[test]
fn d17_restored_content_equals_the_original() {
    let fixture = LocalFixture::new();
    std::fs::write(fixture.path("f"), "before\n").unwrap();
    let edits = json!([{ "old": "before", "new": "after" }]);
    fixture.call("edit", json!({ "path": "f", "edits": edits })).unwrap();
    fixture.call("undo", json!({})).unwrap();
    assert_eq!(std::fs::read(fixture.path("f")).unwrap(), b"before\n");
}
