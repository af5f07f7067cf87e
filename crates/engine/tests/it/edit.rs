//! `edit`: what it does to files, to stale bases, and what it says when it cannot.

use engine::{Kind, Workspace};
use serde_json::{Value, json};

use crate::{
    desk::{Desk, at},
    world::{World, agent},
};

fn one(old: &str, new: &str) -> Value {
    json!([{ "old": old, "new": new }])
}

#[test]
fn an_edit_answers_with_the_new_version_and_where_it_is() {
    let desk = Desk::new();
    desk.put("f", "one\ntwo\nthree\n");
    let answer = desk.run("edit", json!({ "path": "f", "edits": one("two", "2\n2b") }));
    assert_eq!(desk.text("f").as_deref(), Some("one\n2\n2b\nthree\n"));
    assert_eq!(answer["version"].as_str().map(str::to_owned), desk.version("f"));
    assert_eq!(answer["rev"], json!(format!("r{}", desk.head())));
    assert_eq!((&answer["size"], &answer["changed"]), (&json!(15), &json!(true)));
    assert_eq!((&answer["diff"], &answer["lines"]), (&json!({ "added": 2, "removed": 1 }), &json!(["2-3"])));
    assert!(
        !answer.contains_key("edits") && !answer.contains_key("window") && !answer.contains_key("rebased")
    );
    desk.run("undo", json!({}));
    assert_eq!(desk.text("f").as_deref(), Some("one\ntwo\nthree\n"));
}

#[test]
fn a_lenient_match_is_told_with_a_window() {
    let world = World::with(&[("f", "a\nb\nc\n    if x:\n        y()\nd\ne\nf\ng\n")]);
    let answer =
        world.ok("edit", json!({ "path": "f", "edits": one("if x:\n    y()\n", "if x:\n    z()\n") }));
    assert_eq!(answer.json["edits"][0]["how"], "indentation");
    let window = answer.json["window"].as_str().unwrap();
    assert_eq!(window, "1\ta\n2\tb\n3\tc\n4\t    if x:\n5\t        z()\n6\td\n7\te\n8\tf\n");
    assert!(answer.text.contains("edit 0 matched at another indentation"), "{}", answer.text);
    let world = World::with(&[("f", "say\u{a0}hi\n")]);
    let answer = world.ok("edit", json!({ "path": "f", "edits": one("say hi", "ho") }));
    assert_eq!(answer.json["edits"][0]["look_alikes"], json!(["U+00A0"]));
}

#[test]
fn nothing_is_written_when_one_edit_fails() {
    let desk = Desk::new();
    let version = desk.put("f", "a\nb\n");
    let edits =
        json!([{ "old": "a", "new": "A" }, { "old": "nowhere", "new": "x" }, { "old": "", "new": "y" }]);
    let (kind, failure) = desk.fails("edit", json!({ "path": "f", "edits": edits }));
    assert_eq!((kind, &failure.facts["edit"]), ("text_not_found", &json!(1)));
    assert_eq!(failure.facts["also_refused"][0]["edit"], 2);
    assert_eq!(failure.facts["version"], json!(version));
    assert!(failure.detail.contains("nothing was written"));
    assert_eq!(desk.text("f").as_deref(), Some("a\nb\n"));
    let edits = json!([{ "old": "a\nb", "new": "A" }, { "old": "b\n", "new": "x" }]);
    let (kind, failure) = desk.fails("edit", json!({ "path": "f", "edits": edits }));
    assert_eq!((kind, &failure.facts["edits"]), ("overlap", &json!([0, 1])));
}

#[test]
fn arguments_are_read_as_they_were_meant() {
    let desk = Desk::new();
    desk.put("f", "a\nb\nb\n");
    desk.run("edit", json!({ "path": "f", "edits": "[{\"old\": \"a\", \"new\": \"A\"}]" }));
    desk.run("edit", json!({ "path": "f", "edits": { "old": "A", "new": "B" } }));
    desk.run("edit", json!({ "path": "f", "edits": [{ "old": "b", "new": "c", "count": 2.0 }] }));
    assert_eq!(desk.text("f").as_deref(), Some("B\nc\nc\n"));
    for (arguments, said) in [
        (json!({ "path": "f", "old_string": "a", "new_string": "b" }), "give `edits`"),
        (json!({ "path": "f", "edits": [{ "old_text": "a", "new": "b" }] }), "old_text"),
        (json!({ "path": "f", "edits": [{ "old": "a" }] }), "`new`"),
        (json!({ "path": "f", "edits": "nonsense" }), "no JSON list"),
        (json!({ "path": "f", "edits": [] }), "there is no edit"),
        (
            json!({ "path": "f", "edits": [{ "old": "a", "new": "b", "all": true, "count": 2 }] }),
            "more than one of",
        ),
        (json!({ "path": "f", "edits": [{ "old": "a", "new": "b", "count": 1.5 }] }), "whole number"),
        (json!({ "path": "f", "edits": one("a", "b"), "mode": "loose" }), "loose"),
    ] {
        let (kind, failure) = desk.fails("edit", arguments);
        assert_eq!(kind, "bad_request");
        assert!(failure.detail.contains(said), "{}", failure.detail);
    }
    let (_, failure) = desk.fails("edit", json!({ "path": "f", "edits": [{ "oldText": "a", "new": "b" }] }));
    assert!(failure.hint.unwrap().contains("`old`"));
}

#[test]
fn a_missing_quote_is_answered_with_the_nearest_lines() {
    let desk = Desk::new();
    desk.workspace.put_file("f", "fn a() {\n    start();\n}\n\nfn b() {\n    go(1);\n    stop();\n}\n");
    let edits = one("fn b() {\n    go(2);\n    stop();\n}", "x");
    let (kind, failure) = desk.fails("edit", json!({ "path": "f", "edits": edits }));
    assert_eq!(kind, "text_not_found");
    assert_eq!(failure.facts["nearest"], "5\tfn b() {\n6\t    go(1);\n7\t    stop();\n8\t}\n");
    let differs = json!([{ "line": 6, "column": 8, "quoted": "U+0032 2", "actual": "U+0031 1" }]);
    assert_eq!(failure.facts["differs"], differs);
    assert!(failure.shown().unwrap().contains("6\t    go(1);"));
}

#[test]
fn a_quote_from_an_older_revision_is_recognised() {
    let desk = Desk::new();
    desk.put("f", "a\nlimit = 10\nb\n");
    let other = desk.and("agent:b");
    other.run("edit", json!({ "path": "f", "edits": one("limit = 10", "limit = 99") }));
    let (kind, failure) =
        desk.fails("edit", json!({ "path": "f", "edits": one("limit = 10", "limit = 20") }));
    assert_eq!(kind, "text_not_found");
    let older = &failure.facts["older"];
    assert_eq!(
        (&older["rev"], &older["changed_by"], &older["changed_in"]),
        (&json!("r1"), &json!("agent:b"), &json!("r2"))
    );
    assert!(older["diff"].as_str().unwrap().contains("-limit = 10\n+limit = 99"));
    assert!(failure.detail.contains("which agent:b changed in r2"), "{}", failure.detail);
}

#[test]
fn an_edit_made_before_is_no_error() {
    let desk = Desk::new();
    let version = desk.put("f", "let limit = 20\n");
    let head = desk.head();
    let answer = desk.run("edit", json!({ "path": "f", "edits": one("let limit = 10", "let limit = 20") }));
    assert_eq!((&answer["changed"], &answer["already_applied"]), (&json!(false), &json!([0])));
    assert_eq!((&answer["version"], desk.text("f").as_deref()), (&json!(version), Some("let limit = 20\n")));
    assert_eq!(desk.run("edit", json!({ "path": "f", "edits": one("x", "x") }))["changed"], json!(false));
    assert!(desk.head() > head, "what changed nothing is still recorded");
}

#[test]
fn ambiguous_places_are_told_apart() {
    let desk = Desk::new();
    desk.put("f", "fn a() {\n    go();\n    one();\n}\nfn b() {\n    go();\n    two();\n}\n");
    let (kind, failure) = desk.fails("edit", json!({ "path": "f", "edits": one("go();", "run();") }));
    assert_eq!((kind, &failure.facts["places_total"]), ("ambiguous", &json!(2)));
    assert_eq!(
        failure.facts["places"],
        json!([
            { "line": 2, "in": "fn a() {", "unique_with": { "before": "fn a() {" } },
            { "line": 6, "in": "fn b() {", "unique_with": { "before": "fn b() {" } },
        ])
    );
    desk.run("edit", json!({ "path": "f", "edits": [{ "old": "go();", "new": "run();", "near_line": 7 }] }));
    assert!(desk.text("f").unwrap().contains("fn b() {\n    run();"));
}

#[test]
fn elisions_are_refused() {
    let desk = Desk::new();
    desk.put("f", "a();\nb();\nc();\n");
    let edits = one("a();\nb();", "a2();\n// ... rest of code unchanged ...");
    let (kind, failure) = desk.fails("edit", json!({ "path": "f", "edits": edits }));
    assert_eq!((kind, &failure.facts["reason"]), ("bad_request", &json!("elided")));
}

#[test]
fn an_encoding_is_kept_or_the_edit_is_refused() {
    let desk = Desk::new();
    let utf16: Vec<u8> =
        [0xff, 0xfe].into_iter().chain("é\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    desk.workspace.put_file("w", &utf16);
    let answer = desk.run("edit", json!({ "path": "w", "edits": one("é\nb", "é\nc") }));
    assert_eq!(answer["encoding"], "utf-16le-bom");
    assert_eq!(
        desk.bytes("w").unwrap(),
        utf16.iter().map(|&b| if b == b'b' { b'c' } else { b }).collect::<Vec<_>>()
    );

    desk.workspace.put_file("bom", b"\xef\xbb\xbffirst\nx\n");
    desk.run("edit", json!({ "path": "bom", "edits": one("first\n", "1st\n") }));
    assert_eq!(desk.bytes("bom").unwrap(), b"\xef\xbb\xbf1st\nx\n");

    let latin = b"caf\xe9 cr\xe8me br\xfbl\xe9e, d\xe9j\xe0 vu, na\xefve, fa\xe7ade\n";
    desk.workspace.put_file("l", latin);
    desk.run("edit", json!({ "path": "l", "edits": one("vu", "lu") }));
    assert_eq!(desk.bytes("l").unwrap().len(), latin.len());
    assert!(desk.bytes("l").unwrap().starts_with(b"caf\xe9 cr\xe8me"));
    assert_eq!(desk.fails("edit", json!({ "path": "l", "edits": one("lu", "漢") })).0, "not_text");

    desk.workspace.put_file("b", b"\0\x01\x02\xff\xfe\0\0abc");
    assert_eq!(desk.fails("edit", json!({ "path": "b", "edits": one("abc", "x") })).0, "not_text");
}

#[test]
fn only_files_that_are_there_are_edited() {
    let desk = Desk::new();
    desk.put("d/f", "x");
    assert_eq!(desk.fails("edit", json!({ "path": "d", "edits": one("a", "b") })).0, "is_dir");
    assert_eq!(desk.fails("edit", json!({ "path": "nothing", "edits": one("a", "b") })).0, "not_found");
    assert_eq!(desk.fails("edit", json!({ "path": "d/f", "edits": one("", "b") })).0, "bad_request");
    assert_eq!(desk.fails("edit", json!({ "path": "../x", "edits": one("a", "b") })).0, "invalid_path");
    let answer = desk.run("edit", json!({ "path": "new/f", "edits": one("", "made\n") }));
    assert_eq!((&answer["created"], desk.text("new/f").as_deref()), (&json!(true), Some("made\n")));
    let arguments = json!({ "path": "new/f", "edits": one("", "again\n"), "base": "" });
    assert_eq!(desk.fails("edit", arguments).0, "exists");
}

#[test]
fn a_dry_run_shows_the_plan_and_changes_nothing() {
    let desk = Desk::new();
    let version = desk.put("f", "a\nb\n");
    let answer = desk.run("edit", json!({ "path": "f", "edits": one("b", "c"), "dry_run": true }));
    assert_eq!((&answer["changed"], &answer["dry_run"]), (&json!(false), &json!(true)));
    assert!(answer["preview"].as_str().unwrap().contains("-b\n+c\n"));
    assert_eq!(desk.version("f"), Some(version));
}

/// One row of the stale matrix.
struct Stale {
    what: &'static str,
    now: &'static str,
    edit: (&'static str, &'static str),
    /// What comes of `strict`, `anchored` and `merge`: a text, or a kind.
    gives: [Result<&'static str, &'static str>; 3],
}

const BASE: &str = "a\nb\nc\nd\ne\nf\n";

const MATRIX: &[Stale] = &[
    Stale {
        what: "the same",
        now: BASE,
        edit: ("c", "C"),
        gives: [Ok("a\nb\nC\nd\ne\nf\n"), Ok("a\nb\nC\nd\ne\nf\n"), Ok("a\nb\nC\nd\ne\nf\n")],
    },
    Stale {
        what: "other lines changed",
        now: "A\na2\nb\nc\nd\ne\nF\n",
        edit: ("c", "C"),
        gives: [Err("stale"), Ok("A\na2\nb\nC\nd\ne\nF\n"), Ok("A\na2\nb\nC\nd\ne\nF\n")],
    },
    Stale {
        what: "only white space of the place changed",
        now: "a\nb\n  c\nd\ne\nf\n",
        edit: ("c\n", "C\n"),
        gives: [Err("stale"), Err("stale"), Ok("a\nb\n  C\nd\ne\nf\n")],
    },
    Stale {
        what: "the place changed",
        now: "a\nb\nX\nd\ne\nf\n",
        edit: ("c", "C"),
        gives: [Err("stale"), Err("stale"), Err("conflict")],
    },
    Stale {
        what: "the place went away",
        now: "a\nb\nd\ne\nf\n",
        edit: ("c\n", "C\n"),
        gives: [Err("stale"), Err("stale"), Err("conflict")],
    },
    Stale {
        what: "a line of the quote changed that the edit leaves alone",
        now: "A\nb\nc\nd\ne\nf\n",
        edit: ("a\nb\nc\nd\n", "a\nb\nc\nD\n"),
        gives: [Err("stale"), Err("stale"), Ok("A\nb\nc\nD\ne\nf\n")],
    },
    Stale {
        what: "an adjacent line changed",
        now: "a\nB\nc\nD\ne\nf\n",
        edit: ("c", "C"),
        gives: [Err("stale"), Ok("a\nB\nC\nD\ne\nf\n"), Ok("a\nB\nC\nD\ne\nf\n")],
    },
    Stale {
        what: "the place got a twin",
        now: "a\nb\nc\nd\ne\nf\nc\n",
        edit: ("c\n", "C\n"),
        gives: [Err("stale"), Err("ambiguous"), Ok("a\nb\nC\nd\ne\nf\nc\n")],
    },
    Stale {
        what: "somebody made the same edit",
        now: "a\nb\nChanged\nd\ne\nf\n",
        edit: ("c\n", "Changed\n"),
        gives: [Err("stale"), Ok("a\nb\nChanged\nd\ne\nf\n"), Ok("a\nb\nChanged\nd\ne\nf\n")],
    },
    Stale {
        what: "the quote came since",
        now: "a\nb\nc\nd\ne\nf\nnew\n",
        edit: ("new", "N"),
        gives: [Err("stale"), Ok("a\nb\nc\nd\ne\nf\nN\n"), Ok("a\nb\nc\nd\ne\nf\nN\n")],
    },
];

#[test]
fn every_row_of_the_stale_matrix_holds() {
    for row in MATRIX {
        for (mode, gives) in ["strict", "anchored", "merge"].into_iter().zip(row.gives) {
            let desk = Desk::new();
            desk.put("f", BASE);
            let other = desk.and("agent:b");
            other.put("f", row.now);
            let edits = one(row.edit.0, row.edit.1);
            let found = desk.call("edit", json!({ "path": "f", "edits": edits, "base": "r1", "mode": mode }));
            let text = desk.text("f").unwrap();
            match (&found, gives) {
                (Ok(answer), Ok(expected)) => {
                    assert_eq!(text, expected, "{} {mode}", row.what);
                    assert_eq!(answer.contains_key("rebased"), row.now != BASE, "{} {mode}", row.what);
                }
                (Err(failure), Err(expected)) => {
                    assert_eq!(failure.kind.code(), expected, "{} {mode}: {failure}", row.what);
                    assert_eq!(text, row.now, "{} {mode}", row.what);
                    let version = desk.version("f").unwrap();
                    assert_eq!(failure.facts["version"], json!(version), "{} {mode}", row.what);
                    let diff = failure.facts.get("diff").and_then(Value::as_str);
                    assert!(
                        expected == "ambiguous" || diff.is_some_and(|diff| diff.contains("@@")),
                        "{}",
                        row.what
                    );
                }
                (_, _) => panic!("{} {mode}: {found:?}, expected {gives:?}", row.what),
            }
        }
    }
}

#[test]
fn the_answer_says_over_what_it_was_rebased() {
    let desk = Desk::new();
    let base = desk.put("f", BASE);
    desk.and("agent:b").put("f", "A\nb\nc\nd\ne\nf\ng\n");
    let answer = desk.run("edit", json!({ "path": "f", "edits": one("c", "C"), "base": base }));
    assert_eq!(answer["rebased"], json!({ "from": "r1", "to": "r2", "added": 2, "removed": 1 }));
    assert_eq!(answer["diff"], json!({ "added": 1, "removed": 1 }));
}

#[test]
fn a_file_that_changed_back_is_not_stale() {
    let desk = Desk::new();
    let base = desk.put("f", BASE);
    desk.put("f", "other\n");
    desk.put("f", BASE);
    let arguments = json!({ "path": "f", "edits": one("c", "C"), "base": base, "mode": "strict" });
    assert!(!desk.run("edit", arguments).contains_key("rebased"));
}

#[test]
fn a_file_that_went_away_is_named_where_it_is() {
    let desk = Desk::new();
    let base = desk.put("f", BASE);
    desk.and("agent:b").run("move", json!({ "from": "f", "to": "g" }));
    let (kind, failure) = desk.fails("edit", json!({ "path": "f", "edits": one("c", "C"), "base": base }));
    assert_eq!((kind, &failure.facts["moved_to"]), ("stale", &json!("g")));
    assert!(failure.hint.unwrap().contains("agent:b moved it to g"));
    desk.run("remove", json!({ "path": "g" }));
    let (kind, failure) = desk.fails("edit", json!({ "path": "g", "edits": one("c", "C") }));
    assert_eq!((kind, &failure.facts["changed_by"]), ("not_found", &json!("agent:a")));
}

#[test]
fn a_base_that_nobody_kept_needs_the_quote_as_it_stands() {
    let desk = Desk::new();
    desk.workspace.put_file("f", "seen\n  kept\n");
    let base = desk.version("f").unwrap();
    desk.workspace.put_file("f", "changed\n  kept\n");
    let arguments = json!({ "path": "f", "edits": one("kept", "K"), "base": base });
    assert_eq!(desk.run("edit", arguments)["rebased"]["unverified"], json!(true));
    let arguments = json!({ "path": "f", "edits": one("changed\nK\n", "x"), "base": base });
    assert_eq!(desk.fails("edit", arguments).0, "text_not_found");
    let arguments = json!({ "path": "f", "edits": one("    K\n", "    x\n"), "base": base });
    assert_eq!(desk.fails("edit", arguments).0, "stale");
    let arguments = json!({ "path": "f", "edits": one("K", "x"), "base": base, "mode": "strict" });
    assert_eq!(desk.fails("edit", arguments).0, "stale");
}

#[test]
fn edits_of_different_lines_made_at_once_both_land() {
    let world = World::with(&[("f", BASE)]);
    let base = world.ok("read", json!({ "path": "f" })).json["version"].clone();
    std::thread::scope(|scope| {
        for (name, letter) in [("one", "a"), ("two", "c"), ("three", "e")] {
            let (world, base) = (&world, &base);
            scope.spawn(move || {
                let edits = one(&format!("{letter}\n"), &format!("{letter}!\n"));
                let arguments = json!({ "path": "f", "edits": edits, "base": base });
                world.call_as(&agent(name), "edit", arguments).unwrap();
            });
        }
    });
    let text = world.ok("read", json!({ "path": "f" })).json["content"].clone();
    assert_eq!(text, "a!\nb\nc!\nd\ne!\nf\n");
}

#[test]
fn whoever_may_not_read_a_file_learns_nothing_from_editing_it() {
    let world = World::with(&[("secret/f", "token\n"), ("own/f", "x\n")]);
    let caller = crate::world::confined("one", &["own"]);
    let failure = world
        .call_as(&caller, "edit", json!({ "path": "secret/f", "edits": one("token", "x") }))
        .unwrap_err();
    assert_eq!(failure.kind, Kind::OutOfScope);
    assert!(!failure.to_json().to_string().contains("token"));
    assert!(world.workspace.stat(&at("secret/f")).unwrap().is_some());
}

#[test]
fn a_base_nobody_kept_is_good_only_for_whole_lines_as_they_stand() {
    let world = World::with(&[("f", "a\nb\nc\n")]);
    let base = world.ok("read", json!({ "path": "f" })).json["version"].clone();
    world.workspace.put_file("f", "a\nb2\nc\n");
    let edit = |old: &str, new: &str| {
        world.call("edit", json!({ "path": "f", "base": base, "edits": [{ "old": old, "new": new }] }))
    };
    assert_eq!(edit("b", "B").map(|_| ()).unwrap_err().kind, Kind::Stale);
    let answer = edit("c\n", "C\n").unwrap().json;
    assert_eq!(answer["rebased"]["unverified"], true, "{answer:?}");
}
