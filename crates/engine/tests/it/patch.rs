//! Tests of `patch` on an in-memory workspace, with a table of cases that is shared with other workspaces.

use serde_json::{Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallControl, CallMetadata, CallOptions, CallReply, Engine, Error, ErrorKind,
    MissingParentPolicy, PatchGrammar,
    ops::{PatchArgs, PatchOutcome},
};
use testkit::{
    ErrorDetailsJson, MemoryWorkspace,
    engine_fixture::{EngineFixture, agent, confined_agent},
    patch_cases,
};

#[test]
fn patch_cases() {
    let cases = patch_cases::load_cases();
    for case in &cases {
        if let Err(wrong) = case.check(&EngineFixture::new()) {
            panic!("{}: {wrong}", case.id);
        }
    }
    assert!(cases.len() > 60, "the table was read");
}

#[test]
fn random_patches_are_atomic_and_undoable() {
    let outcomes: Vec<_> = (0..3_000)
        .map(|seed| {
            patch_cases::try_random_patch(seed, &EngineFixture::new()).unwrap_or_else(|wrong| panic!("{wrong}"))
        })
        .collect();
    let count = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
    assert!(
        count(patch_cases::RandomPatchOutcome::Applied) > 300 && count(patch_cases::RandomPatchOutcome::Refused) > 300
    );
}

fn apply_patch(lines: &[&str]) -> Value {
    json!({ "patch": format!("*** Begin Patch\n{}\n*** End Patch", lines.join("\n")) })
}

#[test]
fn error_names_section_chunk_and_line() {
    let fixture = EngineFixture::with_files(&[("a", "1\n"), ("b", "x\ny\n")]);
    let lines = ["*** Update File: a", "@@", "-1", "+2", "*** Update File: b", "@@", "-x", "+X", "@@", "-q", "+z"];
    let error = fixture.call_err("patch", apply_patch(&lines), ErrorKind::TextNotFound);
    for (fact, value) in [("section", json!(1)), ("chunk", json!(1)), ("line", json!(10)), ("path", json!("b"))] {
        assert_eq!(error.details_json().get(fact), Some(&value), "{fact}: {error}");
    }
    assert!(error.message.ends_with("nothing was written"), "{error}");
    assert_eq!(fixture.workspace.bytes("a").unwrap(), b"1\n");
}

#[test]
fn outcome_reports_lenient_chunk_match() {
    let fixture = EngineFixture::with_files(&[("f", "a  \nb\n")]);
    let outcome = fixture.call("patch", apply_patch(&["*** Update File: f", "@@", " a", "-b", "+c"])).unwrap();
    let row = &outcome.json["files"][0];
    assert_eq!(row["matched"], json!([{ "chunk": 0, "line": 1, "by": "trailing_space" }]));
    assert_eq!((row["added"].as_u64(), row["removed"].as_u64()), (Some(1), Some(1)));
    assert_eq!(row["rev"], outcome.json["rev"]);
    assert!(outcome.text.contains("M f +1 -1; chunk 0 matched at line 1 by trailing_space"), "{}", outcome.text);
}

#[test]
fn stale_base_error_includes_diff() {
    let fixture = EngineFixture::new();
    let seen = fixture.call_ok("write", json!({ "path": "f", "content": "a\nb\n", "base": "" }));
    let base = seen["version"].as_str().unwrap();
    fixture.call_ok("write", json!({ "path": "f", "content": "a\nc\n", "base": base }));
    let mut call = apply_patch(&["*** Update File: f", "@@", "-a", "+A"]);
    call["base"] = json!({ "f": base });
    let error = fixture.call_err("patch", call, ErrorKind::Stale);
    let diff = error.details.diff.as_deref().unwrap();
    assert!(diff.contains("-b\n+c\n"), "{diff}");
    assert_eq!(error.details_json()["section"], json!(0));
}

#[test]
fn deleted_file_can_be_restored_from_trash() {
    let fixture = EngineFixture::with_files(&[("f", "a\n"), ("g", "b\n")]);
    let outcome = fixture.call_ok("patch", apply_patch(&["*** Delete File: f", "*** Delete File: g"]));
    let trash = outcome["files"][1]["trash"].as_str().unwrap();
    fixture.call_ok("restore", json!({ "trash": trash }));
    assert_eq!(fixture.workspace.bytes("g").unwrap(), b"b\n");
    assert!(fixture.workspace.bytes("f").is_none());
}

#[test]
fn one_path_out_of_scope_rejects_the_patch() {
    let fixture = EngineFixture::with_files(&[("in/a", "1\n"), ("out/b", "1\n")]);
    let caller = confined_agent("two", &["in"]);
    let call = apply_patch(&["*** Update File: in/a", "@@", "-1", "+2", "*** Update File: out/b", "@@", "-1", "+2"]);
    fixture.with_caller(&caller).call_err("patch", call, ErrorKind::OutOfScope);
    assert_eq!(fixture.workspace.bytes("in/a").unwrap(), b"1\n");
}

#[test]
fn modes_and_encodings_are_preserved() {
    let fixture = EngineFixture::with_files(&[("run.sh", "a\n")]);
    fixture.workspace.set_mode("run.sh", 0o755);
    fixture.workspace.put_file("wide", b"\xff\xfea\0\r\0\n\0");
    fixture.call_ok(
        "patch",
        apply_patch(&[
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
    assert_eq!(fixture.workspace.mode("bin/run.sh"), Some(0o755));
    assert_eq!(fixture.workspace.bytes("wide").unwrap(), b"\xff\xfe\xe9\0\r\0\n\0");
}

fn apply_strict_patch(
    workspace: &std::sync::Arc<MemoryWorkspace>,
    arguments: Value,
) -> Result<CallReply<PatchOutcome>, Error> {
    let engine = Engine::new(workspace.clone());
    let caller = agent("one");
    let arguments: PatchArgs = serde_json::from_value(arguments).unwrap();
    let arguments = PatchArgs { grammar: PatchGrammar::Strict, ..arguments };
    let options = CallOptions {
        missing_parents: MissingParentPolicy::Refuse,
        before_after: BeforeAfterContentInclusion::Include,
        ..CallOptions::default()
    };
    let control = CallControl::default();
    engine
        .run(arguments, &CallMetadata { caller: &caller, idempotency_key: None, options: &options, control: &control })
}

#[test]
fn strict_options_reject_patches_that_tolerant_ones_accept() {
    let fixture = EngineFixture::with_files(&[("f", "a\nb\n"), ("bp", "\0a\n")]);
    let fails = |call: Value, kind: ErrorKind, fact: &str, value: Value| {
        let error = apply_strict_patch(&fixture.workspace, call).unwrap_err();
        assert_eq!((error.kind, error.details_json().get(fact)), (kind, Some(&value)), "{error}");
    };
    let strict = |lines: &[&str]| apply_patch(lines);
    fails(strict(&["*** Update File: f", "-a", "+b"]), ErrorKind::MalformedPatch, "fault", json!("not_chunk_header"));
    fails(strict(&["*** Add File: q/w", "+x"]), ErrorKind::NotFound, "parent", json!("q"));
    let twice = ["*** Update File: f", "@@", "-a", "+A", "*** Delete File: f"];
    fails(strict(&twice), ErrorKind::BadRequest, "reason", json!("duplicate_path"));
    fails(strict(&["*** Move File: f -> f"]), ErrorKind::BadRequest, "reason", json!("same_place"));
    fails(strict(&["*** Update File: f", "@@", "-q", "+A"]), ErrorKind::TextNotFound, "chunk", json!(0));
    let zeros = "0".repeat(64);
    let mut call = strict(&["*** Add File: s", "+x"]);
    call["base"] = json!({ "s": zeros });
    fails(call, ErrorKind::Stale, "reason", json!("absent"));
    let mut call = strict(&["*** Update File: f", "@@", "-a", "+A"]);
    call["base"] = json!({ "./f": zeros, "other": zeros });
    let outcome = apply_strict_patch(&fixture.workspace, call).unwrap();
    assert_eq!(outcome.before_after[0].before.as_deref(), Some(b"a\nb\n".as_slice()));
    assert_eq!(outcome.before_after[0].after.as_deref(), Some(b"A\nb\n".as_slice()));
    apply_strict_patch(&fixture.workspace, strict(&["*** Update File: bp", "@@", "-\0a", "+b"])).unwrap();
    assert_eq!(fixture.workspace.bytes("bp").unwrap(), b"b\n");
}

#[test]
fn before_after_bytes_cover_every_operation() {
    let fixture = EngineFixture::with_files(&[("d", "1\n"), ("m", "2\n")]);
    let call = apply_patch(&["*** Add File: n", "+0", "*** Delete File: d", "*** Move File: m -> k"]);
    let outcome = apply_strict_patch(&fixture.workspace, call).unwrap();
    let shown: Vec<_> = outcome
        .before_after
        .iter()
        .map(|file| (file.path.to_string(), file.before.clone(), file.after.clone()))
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
fn ambiguous_chunk_error_shows_distinguishing_context() {
    let fixture =
        EngineFixture::with_files(&[("f", "fn a() {\n    x;\n    one;\n}\n\nfn b() {\n    x;\n    two;\n}\n")]);
    let error = fixture.call_err(
        "patch",
        apply_patch(&["*** Update File: f", "@@", "-    x;", "+    y;"]),
        ErrorKind::Ambiguous,
    );
    let places = json!([
        { "line": 2, "in": "fn a() {", "unique_with": { "before": "fn a() {" } },
        { "line": 7, "in": "fn b() {", "unique_with": { "before": "fn b() {" } },
    ]);
    assert_eq!(error.details_json()["places"], places);
    let shown = error.excerpt().unwrap();
    assert!(shown.contains("line 7 in fn b() {, unique with the line before: fn b() {"), "{shown}");
}

#[test]
fn chunk_error_names_matching_older_revision() {
    let fixture = EngineFixture::new();
    let seen = fixture.call_ok("write", json!({ "path": "f", "content": "a\nb\nc\n", "base": "" }));
    let first = seen["rev"].as_str().unwrap().to_owned();
    let base = seen["version"].clone();
    let changed = fixture.call_ok("write", json!({ "path": "f", "content": "a\nB\nc\n", "base": base }));
    let error = fixture.call_err(
        "patch",
        apply_patch(&["*** Update File: f", "@@", " a", "-b", "+x"]),
        ErrorKind::TextNotFound,
    );
    let older = error.details_json()["older"].clone();
    assert_eq!((&older["rev"], &older["changed_in"]), (&json!(first), &changed["rev"]), "{error}");
    assert!(older["diff"].as_str().unwrap().contains("-b\n+B\n"), "{older}");
    assert_eq!(error.details_json()["nearest"], json!("1\ta\n2\tB\n"));
    assert!(error.message.contains(&format!("your text matches {first}")), "{error}");
    assert!(error.excerpt().unwrap().contains("-b\n+B\n"));
}

#[test]
fn reapplied_patch_changes_nothing() {
    let fixture = EngineFixture::with_files(&[
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
    let first = fixture.call_ok("patch", apply_patch(&lines));
    let again = fixture.call("patch", apply_patch(&lines)).unwrap();
    assert_eq!((&first["changed"], &again.json["changed"]), (&json!(true), &json!(false)));
    let rows = again.json["files"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["already_applied"] == json!(true)), "{rows:?}");
    assert!(again.text.contains("  R k -> l; already applied"), "{}", again.text);
    let more = [&lines[..], &["*** Add File: extra", "+x"]].concat();
    let error = fixture.call_err("patch", apply_patch(&more), ErrorKind::AlreadyApplied);
    assert_eq!(error.details_json()["already_applied"], json!([0, 1, 2, 3, 4]));
    assert!(fixture.workspace.bytes("extra").is_none());
    fixture.call_err("patch", apply_patch(&["*** Delete File: never"]), ErrorKind::NotFound);
}

#[test]
fn outcome_reports_location_of_lines_without_context() {
    let fixture = EngineFixture::with_files(&[("f", "a\nb\n")]);
    let outcome = fixture.call("patch", apply_patch(&["*** Update File: f", "@@", "+c"])).unwrap();
    let row = &outcome.json["files"][0];
    assert_eq!(row["matched"], json!([{ "chunk": 0, "line": 3, "by": "no_context" }]));
    assert!(outcome.text.contains("chunk 0 has no context and was inserted at line 3"), "{}", outcome.text);
}
