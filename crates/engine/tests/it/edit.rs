//! Tests of `edit`: changed files, stale base versions and error messages.

use serde_json::{Value, json};
use stead_engine::{ErrorKind, Tree};
use testkit::engine_fixture::{EngineFixture, agent, confined_agent, rel_path};
use testkit::{ErrorDetailsJson, error_json, hint_text};

fn single_edit(old: &str, new: &str) -> Value {
    json!([{ "old": old, "new": new }])
}

#[test]
fn edit_returns_new_version_and_location() {
    let fixture = EngineFixture::new();
    fixture.write("f", "one\ntwo\nthree\n");
    let outcome = fixture.call_ok("edit", json!({ "path": "f", "edits": single_edit("two", "2\n2b") }));
    assert_eq!(fixture.read_text("f").as_deref(), Some("one\n2\n2b\nthree\n"));
    assert_eq!(outcome["version"].as_str().map(str::to_owned), fixture.version("f"));
    assert_eq!(outcome["rev"], json!(format!("r{}", fixture.entry_count())));
    assert_eq!((&outcome["size"], &outcome["changed"]), (&json!(15), &json!(true)));
    assert_eq!((&outcome["diff"], &outcome["lines"]), (&json!({ "added": 2, "removed": 1 }), &json!(["2-3"])));
    assert!(!outcome.contains_key("edits") && !outcome.contains_key("window") && !outcome.contains_key("rebased"));
    fixture.call_ok("undo", json!({}));
    assert_eq!(fixture.read_text("f").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn lenient_match_is_reported_with_context() {
    let fixture = EngineFixture::with_files(&[("f", "a\nb\nc\n    if x:\n        y()\nd\ne\nf\ng\n")]);
    let outcome = fixture
        .call("edit", json!({ "path": "f", "edits": single_edit("if x:\n    y()\n", "if x:\n    z()\n") }))
        .unwrap();
    assert_eq!(outcome.json["edits"][0]["how"], "indentation");
    let window = outcome.json["window"].as_str().unwrap();
    assert_eq!(window, "1\ta\n2\tb\n3\tc\n4\t    if x:\n5\t        z()\n6\td\n7\te\n8\tf\n");
    assert!(outcome.text.contains("edit 0 matched at another indentation"), "{}", outcome.text);
    let fixture = EngineFixture::with_files(&[("f", "say\u{a0}hi\n")]);
    let outcome = fixture.call("edit", json!({ "path": "f", "edits": single_edit("say hi", "ho") })).unwrap();
    assert_eq!(outcome.json["edits"][0]["look_alikes"], json!(["U+00A0"]));
}

#[test]
fn failed_edit_writes_nothing() {
    let fixture = EngineFixture::new();
    let version = fixture.write("f", "a\nb\n");
    let edits = json!([{ "old": "a", "new": "A" }, { "old": "nowhere", "new": "x" }, { "old": "", "new": "y" }]);
    let error = fixture.call_err("edit", json!({ "path": "f", "edits": edits }), ErrorKind::TextNotFound);
    assert_eq!(error.details_json()["edit"], json!(1));
    assert_eq!(error.details_json()["also_refused"][0]["edit"], 2);
    assert_eq!(error.details_json()["version"], json!(version));
    assert!(error.message.contains("nothing was written"));
    assert_eq!(fixture.read_text("f").as_deref(), Some("a\nb\n"));
    let edits = json!([{ "old": "a\nb", "new": "A" }, { "old": "b\n", "new": "x" }]);
    let error = fixture.call_err("edit", json!({ "path": "f", "edits": edits }), ErrorKind::Overlap);
    assert_eq!(error.details_json()["edits"], json!([0, 1]));
}

#[test]
fn lenient_argument_forms_are_accepted() {
    let fixture = EngineFixture::new();
    fixture.write("f", "a\nb\nb\n");
    fixture.call_ok("edit", json!({ "path": "f", "edits": "[{\"old\": \"a\", \"new\": \"A\"}]" }));
    fixture.call_ok("edit", json!({ "path": "f", "edits": { "old": "A", "new": "B" } }));
    fixture.call_ok("edit", json!({ "path": "f", "edits": [{ "old": "b", "new": "c", "count": 2.0 }] }));
    assert_eq!(fixture.read_text("f").as_deref(), Some("B\nc\nc\n"));
    for (arguments, expected) in [
        (json!({ "path": "f", "old_string": "a", "new_string": "b" }), "pass `edits`"),
        (json!({ "path": "f", "edits": [{ "old_text": "a", "new": "b" }] }), "old_text"),
        (json!({ "path": "f", "edits": [{ "old": "a" }] }), "`new`"),
        (json!({ "path": "f", "edits": "nonsense" }), "not a JSON list"),
        (json!({ "path": "f", "edits": [] }), "edits is empty"),
        (json!({ "path": "f", "edits": [{ "old": "a", "new": "b", "all": true, "count": 2 }] }), "more than one of"),
        (json!({ "path": "f", "edits": [{ "old": "a", "new": "b", "count": 1.5 }] }), "whole number"),
        (json!({ "path": "f", "edits": single_edit("a", "b"), "mode": "loose" }), "loose"),
    ] {
        let error = fixture.call_err("edit", arguments, ErrorKind::BadRequest);
        assert!(error.message.contains(expected), "{}", error.message);
    }
    let renamed = json!({ "path": "f", "edits": [{ "oldText": "a", "new": "b" }] });
    let error = fixture.call_err("edit", renamed, ErrorKind::BadRequest);
    assert!(hint_text(&error).contains("`old`"));
}

#[test]
fn missing_quote_error_shows_nearest_lines() {
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("f", "fn a() {\n    start();\n}\n\nfn b() {\n    go(1);\n    stop();\n}\n");
    let edits = single_edit("fn b() {\n    go(2);\n    stop();\n}", "x");
    let error = fixture.call_err("edit", json!({ "path": "f", "edits": edits }), ErrorKind::TextNotFound);
    assert_eq!(error.details_json()["nearest"], "5\tfn b() {\n6\t    go(1);\n7\t    stop();\n8\t}\n");
    let differs = json!([{ "line": 6, "column": 8, "quoted": "U+0032 2", "actual": "U+0031 1" }]);
    assert_eq!(error.details_json()["differs"], differs);
    assert!(error.excerpt().unwrap().contains("6\t    go(1);"));
}

#[test]
fn quote_from_older_revision_is_recognised() {
    let fixture = EngineFixture::new();
    fixture.write("f", "a\nlimit = 10\nb\n");
    let other = fixture.with_caller(&agent("b"));
    other.call_ok("edit", json!({ "path": "f", "edits": single_edit("limit = 10", "limit = 99") }));
    let error = fixture.call_err(
        "edit",
        json!({ "path": "f", "edits": single_edit("limit = 10", "limit = 20") }),
        ErrorKind::TextNotFound,
    );
    let older = error.details_json()["older"].clone();
    assert_eq!(
        (&older["rev"], &older["changed_by"], &older["changed_in"]),
        (&json!("r1"), &json!("agent:b"), &json!("r2"))
    );
    assert!(older["diff"].as_str().unwrap().contains("-limit = 10\n+limit = 99"));
    assert!(error.message.contains("which agent:b changed in r2"), "{}", error.message);
}

#[test]
fn already_applied_edit_is_not_an_error() {
    let fixture = EngineFixture::new();
    let version = fixture.write("f", "let limit = 20\n");
    let head = fixture.entry_count();
    let outcome =
        fixture.call_ok("edit", json!({ "path": "f", "edits": single_edit("let limit = 10", "let limit = 20") }));
    assert_eq!((&outcome["changed"], &outcome["already_applied"]), (&json!(false), &json!([0])));
    assert_eq!((&outcome["version"], fixture.read_text("f").as_deref()), (&json!(version), Some("let limit = 20\n")));
    assert_eq!(
        fixture.call_ok("edit", json!({ "path": "f", "edits": single_edit("x", "x") }))["changed"],
        json!(false)
    );
    assert!(fixture.entry_count() > head, "what changed nothing is still recorded");
}

#[test]
fn ambiguous_match_error_distinguishes_locations() {
    let fixture = EngineFixture::new();
    fixture.write("f", "fn a() {\n    go();\n    one();\n}\nfn b() {\n    go();\n    two();\n}\n");
    let error =
        fixture.call_err("edit", json!({ "path": "f", "edits": single_edit("go();", "run();") }), ErrorKind::Ambiguous);
    assert_eq!(error.details_json()["places_total"], json!(2));
    assert_eq!(
        error.details_json()["places"],
        json!([
            { "line": 2, "in": "fn a() {", "unique_with": { "before": "fn a() {" } },
            { "line": 6, "in": "fn b() {", "unique_with": { "before": "fn b() {" } },
        ])
    );
    fixture.call_ok("edit", json!({ "path": "f", "edits": [{ "old": "go();", "new": "run();", "near_line": 7 }] }));
    assert!(fixture.read_text("f").unwrap().contains("fn b() {\n    run();"));
}

#[test]
fn elisions_are_refused() {
    let fixture = EngineFixture::new();
    fixture.write("f", "a();\nb();\nc();\n");
    let edits = single_edit("a();\nb();", "a2();\n// ... rest of code unchanged ...");
    let error = fixture.call_err("edit", json!({ "path": "f", "edits": edits }), ErrorKind::BadRequest);
    assert_eq!(error.details_json()["reason"], json!("elided"));
}

#[test]
fn encoding_is_preserved_or_edit_rejected() {
    let fixture = EngineFixture::new();
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("é\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    fixture.workspace.put_file("w", &utf16);
    let outcome = fixture.call_ok("edit", json!({ "path": "w", "edits": single_edit("é\nb", "é\nc") }));
    assert_eq!(outcome["encoding"], "utf-16le-bom");
    assert_eq!(
        fixture.workspace.bytes("w").unwrap(),
        utf16.iter().map(|&b| if b == b'b' { b'c' } else { b }).collect::<Vec<_>>()
    );

    fixture.workspace.put_file("bom", b"\xef\xbb\xbffirst\nx\n");
    fixture.call_ok("edit", json!({ "path": "bom", "edits": single_edit("first\n", "1st\n") }));
    assert_eq!(fixture.workspace.bytes("bom").unwrap(), b"\xef\xbb\xbf1st\nx\n");

    let latin = b"caf\xe9 cr\xe8me br\xfbl\xe9e, d\xe9j\xe0 vu, na\xefve, fa\xe7ade\n";
    fixture.workspace.put_file("l", latin);
    fixture.call_ok("edit", json!({ "path": "l", "edits": single_edit("vu", "lu") }));
    assert_eq!(fixture.workspace.bytes("l").unwrap().len(), latin.len());
    assert!(fixture.workspace.bytes("l").unwrap().starts_with(b"caf\xe9 cr\xe8me"));
    fixture.call_err("edit", json!({ "path": "l", "edits": single_edit("lu", "漢") }), ErrorKind::NotText);

    fixture.workspace.put_file("b", b"\0\x01\x02\xff\xfe\0\0abc");
    fixture.call_err("edit", json!({ "path": "b", "edits": single_edit("abc", "x") }), ErrorKind::NotText);
}

#[test]
fn only_existing_files_can_be_edited() {
    let fixture = EngineFixture::new();
    fixture.write("d/f", "x");
    fixture.call_err("edit", json!({ "path": "d", "edits": single_edit("a", "b") }), ErrorKind::IsDirectory);
    fixture.call_err("edit", json!({ "path": "nothing", "edits": single_edit("a", "b") }), ErrorKind::NotFound);
    fixture.call_err("edit", json!({ "path": "d/f", "edits": single_edit("", "b") }), ErrorKind::BadRequest);
    fixture.call_err("edit", json!({ "path": "../x", "edits": single_edit("a", "b") }), ErrorKind::InvalidPath);
    let outcome = fixture.call_ok("edit", json!({ "path": "new/f", "edits": single_edit("", "made\n") }));
    assert_eq!((&outcome["created"], fixture.read_text("new/f").as_deref()), (&json!(true), Some("made\n")));
    let arguments = json!({ "path": "new/f", "edits": single_edit("", "again\n"), "base": "" });
    fixture.call_err("edit", arguments, ErrorKind::Exists);
}

#[test]
fn dry_run_shows_plan_without_writing() {
    let fixture = EngineFixture::new();
    let version = fixture.write("f", "a\nb\n");
    let outcome = fixture.call_ok("edit", json!({ "path": "f", "edits": single_edit("b", "c"), "dry_run": true }));
    assert_eq!((&outcome["changed"], &outcome["dry_run"]), (&json!(false), &json!(true)));
    assert!(outcome["preview"].as_str().unwrap().contains("-b\n+c\n"));
    assert_eq!(fixture.version("f"), Some(version));
}

struct StaleBaseCase {
    description: &'static str,
    current: &'static str,
    edit: (&'static str, &'static str),
    /// The expected results of the edit in the modes `strict`, `anchored` and `merge`: the new text or the error kind.
    expected: [Result<&'static str, &'static str>; 3],
}

const BASE: &str = "a\nb\nc\nd\ne\nf\n";

const STALE_BASE_CASES: &[StaleBaseCase] = &[
    StaleBaseCase {
        description: "the same",
        current: BASE,
        edit: ("c", "C"),
        expected: [Ok("a\nb\nC\nd\ne\nf\n"), Ok("a\nb\nC\nd\ne\nf\n"), Ok("a\nb\nC\nd\ne\nf\n")],
    },
    StaleBaseCase {
        description: "other lines changed",
        current: "A\na2\nb\nc\nd\ne\nF\n",
        edit: ("c", "C"),
        expected: [Err("stale"), Ok("A\na2\nb\nC\nd\ne\nF\n"), Ok("A\na2\nb\nC\nd\ne\nF\n")],
    },
    StaleBaseCase {
        description: "only white space of the place changed",
        current: "a\nb\n  c\nd\ne\nf\n",
        edit: ("c\n", "C\n"),
        expected: [Err("stale"), Err("stale"), Ok("a\nb\n  C\nd\ne\nf\n")],
    },
    StaleBaseCase {
        description: "the place changed",
        current: "a\nb\nX\nd\ne\nf\n",
        edit: ("c", "C"),
        expected: [Err("stale"), Err("stale"), Err("conflict")],
    },
    StaleBaseCase {
        description: "the place went away",
        current: "a\nb\nd\ne\nf\n",
        edit: ("c\n", "C\n"),
        expected: [Err("stale"), Err("stale"), Err("conflict")],
    },
    StaleBaseCase {
        description: "a line of the quote changed that the edit leaves alone",
        current: "A\nb\nc\nd\ne\nf\n",
        edit: ("a\nb\nc\nd\n", "a\nb\nc\nD\n"),
        expected: [Err("stale"), Err("stale"), Ok("A\nb\nc\nD\ne\nf\n")],
    },
    StaleBaseCase {
        description: "an adjacent line changed",
        current: "a\nB\nc\nD\ne\nf\n",
        edit: ("c", "C"),
        expected: [Err("stale"), Ok("a\nB\nC\nD\ne\nf\n"), Ok("a\nB\nC\nD\ne\nf\n")],
    },
    StaleBaseCase {
        description: "the place got a twin",
        current: "a\nb\nc\nd\ne\nf\nc\n",
        edit: ("c\n", "C\n"),
        expected: [Err("stale"), Err("ambiguous"), Ok("a\nb\nC\nd\ne\nf\nc\n")],
    },
    StaleBaseCase {
        description: "somebody made the same edit",
        current: "a\nb\nChanged\nd\ne\nf\n",
        edit: ("c\n", "Changed\n"),
        expected: [Err("stale"), Ok("a\nb\nChanged\nd\ne\nf\n"), Ok("a\nb\nChanged\nd\ne\nf\n")],
    },
    StaleBaseCase {
        description: "the quote came since",
        current: "a\nb\nc\nd\ne\nf\nnew\n",
        edit: ("new", "N"),
        expected: [Err("stale"), Ok("a\nb\nc\nd\ne\nf\nN\n"), Ok("a\nb\nc\nd\ne\nf\nN\n")],
    },
];

#[test]
fn stale_base_cases() {
    for row in STALE_BASE_CASES {
        for (mode, gives) in ["strict", "anchored", "merge"].into_iter().zip(row.expected) {
            let fixture = EngineFixture::new();
            fixture.write("f", BASE);
            let other = fixture.with_caller(&agent("b"));
            other.write("f", row.current);
            let edits = single_edit(row.edit.0, row.edit.1);
            let found = fixture.call("edit", json!({ "path": "f", "edits": edits, "base": "r1", "mode": mode }));
            let text = fixture.read_text("f").unwrap();
            match (&found, gives) {
                (Ok(outcome), Ok(expected)) => {
                    assert_eq!(text, expected, "{} {mode}", row.description);
                    assert_eq!(outcome.json.contains_key("rebased"), row.current != BASE, "{} {mode}", row.description);
                }
                (Err(error), Err(expected)) => {
                    assert_eq!(error.kind.code(), expected, "{} {mode}: {error}", row.description);
                    assert_eq!(text, row.current, "{} {mode}", row.description);
                    let version = fixture.version("f").unwrap();
                    assert_eq!(error.details_json()["version"], json!(version), "{} {mode}", row.description);
                    let diff = error.details.diff.as_deref();
                    assert!(
                        expected == "ambiguous" || diff.is_some_and(|diff| diff.contains("@@")),
                        "{}",
                        row.description
                    );
                }
                (_, _) => panic!("{} {mode}: {found:?}, expected {gives:?}", row.description),
            }
        }
    }
}

#[test]
fn outcome_reports_rebased_changes() {
    let fixture = EngineFixture::new();
    let base = fixture.write("f", BASE);
    fixture.with_caller(&agent("b")).write("f", "A\nb\nc\nd\ne\nf\ng\n");
    let outcome = fixture.call_ok("edit", json!({ "path": "f", "edits": single_edit("c", "C"), "base": base }));
    assert_eq!(outcome["rebased"], json!({ "from": "r1", "to": "r2", "added": 2, "removed": 1 }));
    assert_eq!(outcome["diff"], json!({ "added": 1, "removed": 1 }));
}

#[test]
fn file_changed_back_is_not_stale() {
    let fixture = EngineFixture::new();
    let base = fixture.write("f", BASE);
    fixture.write("f", "other\n");
    fixture.write("f", BASE);
    let arguments = json!({ "path": "f", "edits": single_edit("c", "C"), "base": base, "mode": "strict" });
    assert!(!fixture.call_ok("edit", arguments).contains_key("rebased"));
}

#[test]
fn moved_file_error_names_new_path() {
    let fixture = EngineFixture::new();
    let base = fixture.write("f", BASE);
    fixture.with_caller(&agent("b")).call_ok("move", json!({ "from": "f", "to": "g" }));
    let error = fixture.call_err(
        "edit",
        json!({ "path": "f", "edits": single_edit("c", "C"), "base": base }),
        ErrorKind::Stale,
    );
    assert_eq!(error.details_json()["moved_to"], json!("g"));
    assert!(hint_text(&error).contains("agent:b moved it to g"));
    fixture.call_ok("remove", json!({ "path": "g" }));
    let error = fixture.call_err("edit", json!({ "path": "g", "edits": single_edit("c", "C") }), ErrorKind::NotFound);
    assert_eq!(error.details_json()["changed_by"], json!("agent:one"));
}

#[test]
fn unavailable_base_requires_exact_quote() {
    let fixture = EngineFixture::new();
    fixture.workspace.put_file("f", "seen\n  kept\n");
    let base = fixture.version("f").unwrap();
    fixture.workspace.put_file("f", "changed\n  kept\n");
    let arguments = json!({ "path": "f", "edits": single_edit("kept", "K"), "base": base });
    assert_eq!(fixture.call_ok("edit", arguments)["rebased"]["unverified"], json!(true));
    let arguments = json!({ "path": "f", "edits": single_edit("changed\nK\n", "x"), "base": base });
    fixture.call_err("edit", arguments, ErrorKind::TextNotFound);
    let arguments = json!({ "path": "f", "edits": single_edit("    K\n", "    x\n"), "base": base });
    fixture.call_err("edit", arguments, ErrorKind::Stale);
    let arguments = json!({ "path": "f", "edits": single_edit("K", "x"), "base": base, "mode": "strict" });
    fixture.call_err("edit", arguments, ErrorKind::Stale);
}

#[test]
fn concurrent_edits_of_different_lines_both_apply() {
    let fixture = EngineFixture::with_files(&[("f", BASE)]);
    let base = fixture.call_ok("read", json!({ "path": "f" }))["version"].clone();
    std::thread::scope(|scope| {
        for (name, letter) in [("one", "a"), ("two", "c"), ("three", "e")] {
            let (fixture, base) = (&fixture, &base);
            scope.spawn(move || {
                let edits = single_edit(&format!("{letter}\n"), &format!("{letter}!\n"));
                let arguments = json!({ "path": "f", "edits": edits, "base": base });
                fixture.call_as(&agent(name), "edit", arguments).unwrap();
            });
        }
    });
    let text = fixture.call_ok("read", json!({ "path": "f" }))["content"].clone();
    assert_eq!(text, "a!\nb\nc!\nd\ne!\nf\n");
}

#[test]
fn edit_of_unreadable_file_does_not_reveal_its_content() {
    let fixture = EngineFixture::with_files(&[("secret/f", "token\n"), ("own/f", "x\n")]);
    let caller = confined_agent("one", &["own"]);
    let error = fixture.with_caller(&caller).call_err(
        "edit",
        json!({ "path": "secret/f", "edits": single_edit("token", "x") }),
        ErrorKind::OutOfScope,
    );
    assert!(!error_json(&error).to_string().contains("token"));
    assert!(fixture.workspace.stat(&rel_path("secret/f")).unwrap().is_some());
}

#[test]
fn unavailable_base_requires_whole_exact_lines() {
    let fixture = EngineFixture::with_files(&[("f", "a\nb\nc\n")]);
    let base = fixture.call_ok("read", json!({ "path": "f" }))["version"].clone();
    fixture.workspace.put_file("f", "a\nb2\nc\n");
    let edit = |old: &str, new: &str| {
        fixture.call("edit", json!({ "path": "f", "base": base, "edits": [{ "old": old, "new": new }] }))
    };
    assert_eq!(edit("b", "B").map(|_| ()).unwrap_err().kind, ErrorKind::Stale);
    let outcome = edit("c\n", "C\n").unwrap().json;
    assert_eq!(outcome["rebased"]["unverified"], true, "{outcome:?}");
}
