//! The recordings of the originals, through the command that makes them again.

use std::path::PathBuf;

use crate::bench::{Bench, Ran};

fn cases(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name).to_str().unwrap().to_owned()
}

fn replay(recording: &str, arguments: &[&str]) -> Ran {
    let (file, listed) =
        (cases(&format!("{recording}.jsonl")), cases(&format!("{recording}.deviations.json")));
    let whole =
        [&["replay", &file, "--dialect-option", "origin=exact", "--deviations", &listed], arguments].concat();
    Bench::new().run(&whole)
}

fn holds(recording: &str, arguments: &[&str]) {
    let ran = replay(recording, arguments);
    assert_eq!(ran.code, 0, "{}{}", ran.text(), ran.err);
    assert!(ran.text().contains(" passed, 0 failed"), "{}", ran.text());
}

#[test]
fn weaver_answers_as_recorded() {
    holds("weaver", &["--dialect", "weaver"]);
}

#[test]
fn the_newest_weaver_answers_as_recorded() {
    holds("weaver-newest", &["--dialect", "weaver", "--dialect-option", "generation=newest"]);
}

#[test]
fn comma_answers_as_recorded() {
    holds("comma", &["--dialect", "comma"]);
}

#[test]
fn what_differs_is_shown_and_counted() {
    let bench = Bench::new();
    let file = bench.place.path().join("r.jsonl");
    let lines = [
        r#"{"op": "put", "path": "a.txt", "text": "a"}"#,
        r#"{"op": "call", "tool": "read_file", "args": {"path": "a.txt"}, "expect": {"for_llm": "b", "is_error": false}}"#,
        r#"{"op": "disk", "path": "a.txt", "text": "a", "mode": "644"}"#,
        r#"{"op": "disk", "path": "b.txt", "text": null}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let ran = bench.run(&["replay", file, "--dialect", "weaver"]);
    assert_eq!(ran.code, 1);
    assert!(ran.text().contains("line 2: ") && ran.text().contains("\"for_llm\": \"a\""), "{}", ran.text());
    assert!(ran.text().ends_with("2 passed, 1 failed\n"), "{}", ran.text());
    let listed = bench.place.path().join("d.json");
    std::fs::write(&listed, r#"[{"line": 2, "reason": "because"}]"#).unwrap();
    let listed = listed.to_str().unwrap();
    let ran = bench.run(&["replay", file, "--dialect", "weaver", "--deviations", listed]);
    assert_eq!((ran.code, ran.text().lines().last()), (0, Some("2 passed, 0 failed, 1 deviations")));
    std::fs::write(listed, r#"[{"line": 2, "reason": "because"}, {"line": 3, "reason": "why"}]"#).unwrap();
    let ran = bench.run(&["replay", file, "--dialect", "weaver", "--deviations", listed]);
    assert_eq!(ran.code, 1, "a deviation that is none is told");
    assert_eq!(bench.run(&["replay", file, "--dialect", "stead", "--dialect", "weaver"]).code, 2);
}
