//! `patch` on a workspace in memory: the shared table, and what a table cannot say.

use std::collections::BTreeMap;

use engine::{
    Answer, Bases, Binary, Call, Engine, Evidence, Failure, Grammar, Kind, Parents, Patching, Placing,
    Repeated, Terms, Workspace,
};
use serde_json::{Value, json};
use testkit::{MemoryWorkspace, patches};

use crate::world::{World, agent, confined};

impl patches::Ground for World {
    fn put(&self, path: &str, bytes: &[u8]) {
        self.workspace.put_file(path, bytes);
    }

    fn link(&self, path: &str, target: &str) {
        self.workspace.put_link(path, target);
    }

    fn call(&self, operation: &str, arguments: Value) -> Result<Answer, Failure> {
        World::call(self, operation, arguments)
    }

    fn tree(&self) -> BTreeMap<String, Option<Vec<u8>>> {
        let link = |path: &str| {
            let place = path::RelPath::from_wire(path).unwrap();
            self.workspace.read_link(&place).ok().map(|target| [b"-> ", target.as_slice()].concat())
        };
        let paths = self.workspace.paths().into_iter();
        paths.map(|path| (path.clone(), self.workspace.bytes(&path).or_else(|| link(&path)))).collect()
    }
}

#[test]
fn every_case_of_the_table_holds() {
    let cases = patches::cases();
    for case in &cases {
        if let Err(wrong) = case.check(&World::new()) {
            panic!("{}: {wrong}", case.id);
        }
    }
    assert!(cases.len() > 60, "the table was read");
}

#[test]
fn patches_made_by_chance_are_whole_and_can_be_taken_back() {
    let outcomes: Vec<_> = (0..3_000)
        .map(|seed| patches::by_chance(seed, &World::new()).unwrap_or_else(|wrong| panic!("{wrong}")))
        .collect();
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert!(count(patches::Outcome::Applied) > 300 && count(patches::Outcome::Refused) > 300);
}

fn patched(lines: &[&str]) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n")) })
}

#[test]
fn a_failure_names_section_chunk_and_line() {
    let world = World::with(&[("a", "1\n"), ("b", "x\ny\n")]);
    let lines =
        ["*** Update File: a", "@@", "-1", "+2", "*** Update File: b", "@@", "-x", "+X", "@@", "-q", "+z"];
    let failure = world.fails("patch", patched(&lines), Kind::TextNotFound);
    for (fact, value) in
        [("section", json!(1)), ("chunk", json!(1)), ("line", json!(10)), ("path", json!("b"))]
    {
        assert_eq!(failure.facts.get(fact), Some(&value), "{fact}: {failure}");
    }
    assert!(failure.detail.ends_with("nothing was written"), "{failure}");
    assert_eq!(world.workspace.bytes("a").unwrap(), b"1\n");
}

#[test]
fn the_answer_says_how_a_lenient_chunk_was_found() {
    let world = World::with(&[("f", "a  \nb\n")]);
    let answer = world.ok("patch", patched(&["*** Update File: f", "@@", " a", "-b", "+c"]));
    let row = &answer.json["files"][0];
    assert_eq!(row["matched"], json!([{ "chunk": 0, "line": 1, "by": "trailing_space" }]));
    assert_eq!((row["added"].as_u64(), row["removed"].as_u64()), (Some(1), Some(1)));
    assert_eq!(row["rev"], answer.json["rev"]);
    assert!(
        answer.text.contains("M f +1 -1; chunk 0 matched at line 1 by trailing_space"),
        "{}",
        answer.text
    );
}

#[test]
fn a_stale_base_comes_with_the_difference() {
    let world = World::new();
    let seen = world.ok("write", json!({ "path": "f", "content": "a\nb\n", "base": "" }));
    let base = seen.json["version"].as_str().unwrap();
    world.ok("write", json!({ "path": "f", "content": "a\nc\n", "base": base }));
    let mut call = patched(&["*** Update File: f", "@@", "-a", "+A"]);
    call["base"] = json!({ "f": base });
    let failure = world.fails("patch", call, Kind::Stale);
    let diff = failure.facts["diff"].as_str().unwrap();
    assert!(diff.contains("-b\n+c\n"), "{diff}");
    assert_eq!(failure.facts["section"], json!(0));
}

#[test]
fn a_deleted_file_comes_back_from_the_trash() {
    let world = World::with(&[("f", "a\n"), ("g", "b\n")]);
    let answer = world.ok("patch", patched(&["*** Delete File: f", "*** Delete File: g"]));
    let trash = answer.json["files"][1]["trash"].as_str().unwrap();
    world.ok("restore", json!({ "trash": trash }));
    assert_eq!(world.workspace.bytes("g").unwrap(), b"b\n");
    assert!(world.workspace.bytes("f").is_none());
}

#[test]
fn one_place_out_of_reach_refuses_all() {
    let world = World::with(&[("in/a", "1\n"), ("out/b", "1\n")]);
    let caller = confined("two", &["in"]);
    let call =
        patched(&["*** Update File: in/a", "@@", "-1", "+2", "*** Update File: out/b", "@@", "-1", "+2"]);
    let failure = world.call_as(&caller, "patch", call).unwrap_err();
    assert_eq!(failure.kind, Kind::OutOfScope);
    assert_eq!(world.workspace.bytes("in/a").unwrap(), b"1\n");
}

#[test]
fn modes_and_encodings_stay() {
    let world = World::with(&[("run.sh", "a\n")]);
    world.workspace.set_mode("run.sh", 0o755);
    world.workspace.put_file("wide", b"\xff\xfea\0\r\0\n\0");
    world.ok(
        "patch",
        patched(&[
            "*** Move File: run.sh -> bin/run.sh",
            "@@",
            "-a",
            "+b",
            "*** Update File: wide",
            "@@",
            "-a",
            "+é",
        ]),
    );
    assert_eq!(world.workspace.mode("bin/run.sh"), Some(0o755));
    assert_eq!(world.workspace.bytes("wide").unwrap(), b"\xff\xfe\xe9\0\r\0\n\0");
}

/// Calls with the terms of a dialect that forgives nothing.
fn strictly(workspace: &std::sync::Arc<MemoryWorkspace>, arguments: Value) -> Result<Answer, Failure> {
    let engine = Engine::new(workspace.clone());
    let caller = agent("one");
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let terms = Terms {
        patching: Patching::STRICT,
        parents: Parents::Required,
        evidence: Evidence::Bytes,
        ..Terms::default()
    };
    engine.call(&Call { terms, ..Call::new(&caller, "patch", arguments) })
}

#[test]
fn strict_terms_refuse_what_tolerant_ones_forgive() {
    let patching = Patching::STRICT;
    assert_eq!(patching.grammar, Grammar::STRICT);
    assert_eq!((patching.placing, patching.bases), (Placing::Strict, Bases::ByWord));
    assert_eq!((patching.repeated, patching.binary), (Repeated::Refused, Binary::AsText));
    let world = World::with(&[("f", "a\nb\n"), ("bp", "\0a\n")]);
    let fails = |call: Value, kind: Kind, fact: &str, value: Value| {
        let failure = strictly(&world.workspace, call).unwrap_err();
        assert_eq!((failure.kind, failure.facts.get(fact)), (kind, Some(&value)), "{failure}");
    };
    let strict = |lines: &[&str]| patched(lines);
    fails(
        strict(&["*** Update File: f", "-a", "+b"]),
        Kind::MalformedPatch,
        "fault",
        json!("not_chunk_header"),
    );
    fails(strict(&["*** Add File: q/w", "+x"]), Kind::NotFound, "parent", json!("q"));
    let twice = ["*** Update File: f", "@@", "-a", "+A", "*** Delete File: f"];
    fails(strict(&twice), Kind::BadRequest, "reason", json!("duplicate_path"));
    fails(strict(&["*** Move File: f -> f"]), Kind::BadRequest, "reason", json!("same_place"));
    fails(strict(&["*** Update File: f", "@@", "-q", "+A"]), Kind::TextNotFound, "chunk", json!(0));
    let zeros = "0".repeat(64);
    let mut call = strict(&["*** Add File: s", "+x"]);
    call["base"] = json!({ "s": zeros });
    fails(call, Kind::Stale, "reason", json!("absent"));
    let mut call = strict(&["*** Update File: f", "@@", "-a", "+A"]);
    call["base"] = json!({ "./f": zeros, "other": zeros });
    let answer = strictly(&world.workspace, call).unwrap();
    assert_eq!(answer.evidence[0].before.as_deref(), Some(b"a\nb\n".as_slice()));
    assert_eq!(answer.evidence[0].after.as_deref(), Some(b"A\nb\n".as_slice()));
    strictly(&world.workspace, strict(&["*** Update File: bp", "@@", "-\0a", "+b"])).unwrap();
    assert_eq!(world.workspace.bytes("bp").unwrap(), b"b\n");
}

#[test]
fn evidence_covers_every_operation() {
    let world = World::with(&[("d", "1\n"), ("m", "2\n")]);
    let call = patched(&["*** Add File: n", "+0", "*** Delete File: d", "*** Move File: m -> k"]);
    let answer = strictly(&world.workspace, call).unwrap();
    let shown: Vec<_> = answer
        .evidence
        .iter()
        .map(|held| (held.path.to_string(), held.before.clone(), held.after.clone()))
        .collect();
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let expected = [
        ("n".to_owned(), None, bytes("0\n")),
        ("d".to_owned(), bytes("1\n"), None),
        ("k".to_owned(), bytes("2\n"), bytes("2\n")),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn each_place_of_an_ambiguous_chunk_comes_with_what_makes_it_unique() {
    let world = World::with(&[("f", "fn a() {\n    x;\n    one;\n}\n\nfn b() {\n    x;\n    two;\n}\n")]);
    let failure =
        world.fails("patch", patched(&["*** Update File: f", "@@", "-    x;", "+    y;"]), Kind::Ambiguous);
    let places = json!([
        { "line": 2, "in": "fn a() {", "unique_with": { "before": "fn a() {" } },
        { "line": 7, "in": "fn b() {", "unique_with": { "before": "fn b() {" } },
    ]);
    assert_eq!(failure.facts["places"], places);
    let shown = failure.shown().unwrap();
    assert!(shown.contains("line 7 in fn b() {, unique with the line before: fn b() {"), "{shown}");
}

#[test]
fn a_chunk_written_for_an_older_revision_is_told_which() {
    let world = World::new();
    let seen = world.ok("write", json!({ "path": "f", "content": "a\nb\nc\n", "base": "" }));
    let first = seen.json["rev"].as_str().unwrap().to_owned();
    let base = seen.json["version"].clone();
    let changed = world.ok("write", json!({ "path": "f", "content": "a\nB\nc\n", "base": base }));
    let failure =
        world.fails("patch", patched(&["*** Update File: f", "@@", " a", "-b", "+x"]), Kind::TextNotFound);
    let older = &failure.facts["older"];
    assert_eq!((&older["rev"], &older["changed_in"]), (&json!(first), &changed.json["rev"]), "{failure}");
    assert!(older["diff"].as_str().unwrap().contains("-b\n+B\n"), "{older}");
    assert_eq!(failure.facts["nearest"], json!("1\ta\n2\tB\n"));
    assert!(failure.detail.contains(&format!("your text is that of {first}")), "{failure}");
    assert!(failure.shown().unwrap().contains("-b\n+B\n"));
}

#[test]
fn a_patch_sent_twice_changes_once() {
    let world = World::with(&[
        ("f", "a\nlet limit = 10;\n"),
        ("d", "1\n"),
        ("m", "2\n"),
        ("k", "3\nthe number is 4\n"),
    ]);
    let lines = [
        "*** Update File: f",
        "@@",
        " a",
        "-let limit = 10;",
        "+let limit = 20;",
        "*** Add File: n",
        "+x",
        "*** Delete File: d",
        "*** Move File: m -> o",
        "*** Move File: k -> l",
        "@@",
        " 3",
        "-the number is 4",
        "+the number is 5",
    ];
    let first = world.ok("patch", patched(&lines));
    let again = world.ok("patch", patched(&lines));
    assert_eq!((&first.json["changed"], &again.json["changed"]), (&json!(true), &json!(false)));
    let rows = again.json["files"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["already_applied"] == json!(true)), "{rows:?}");
    assert!(again.text.contains("  R k -> l; already applied"), "{}", again.text);
    let more = [&lines[..], &["*** Add File: extra", "+x"]].concat();
    let failure = world.fails("patch", patched(&more), Kind::AlreadyApplied);
    assert_eq!(failure.facts["already_applied"], json!([0, 1, 2, 3, 4]));
    assert!(world.workspace.bytes("extra").is_none());
    world.fails("patch", patched(&["*** Delete File: never"]), Kind::NotFound);
}

#[test]
fn the_answer_says_where_lines_without_context_went() {
    let world = World::with(&[("f", "a\nb\n")]);
    let answer = world.ok("patch", patched(&["*** Update File: f", "@@", "+c"]));
    let row = &answer.json["files"][0];
    assert_eq!(row["matched"], json!([{ "chunk": 0, "line": 3, "by": "no_context" }]));
    assert!(answer.text.contains("chunk 0 quotes nothing and went in at line 3"), "{}", answer.text);
}
