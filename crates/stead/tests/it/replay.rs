//! Tests `stead replay` with the recordings of the published servers.

use std::path::PathBuf;

use crate::cli_fixture::{CliFixture, CliTestCommandOutput};

fn case_path(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(name).to_str().unwrap().to_owned()
}

fn run_replay(recording: &str, arguments: &[&str]) -> CliTestCommandOutput {
    let (file, listed) = (case_path(&format!("{recording}.jsonl")), case_path(&format!("{recording}.deviations.json")));
    let whole = [&["replay", &file, "--dialect-option", "origin=exact", "--deviations", &listed], arguments].concat();
    CliFixture::new().run(&whole)
}

fn assert_replay_passes(recording: &str, arguments: &[&str]) {
    let ran = run_replay(recording, arguments);
    assert_eq!(ran.code, 0, "{}{}", ran.text(), ran.stderr);
    assert!(ran.text().contains(" passed, 0 failed"), "{}", ran.text());
}

#[test]
fn weaver_matches_its_recording() {
    assert_replay_passes("weaver", &["--dialect", "weaver"]);
}

#[test]
fn newest_weaver_matches_its_recording() {
    assert_replay_passes("weaver-newest", &["--dialect", "weaver", "--dialect-option", "generation=newest"]);
}

#[test]
fn comma_matches_its_recording() {
    assert_replay_passes("comma", &["--dialect", "comma"]);
}

#[test]
fn mismatches_are_printed_and_counted() {
    let fixture = CliFixture::new();
    let file = fixture.directory.path().join("r.jsonl");
    let lines = [
        r#"{"op": "put", "path": "a.txt", "text": "a"}"#,
        r#"{"op": "call", "tool": "read_file", "args": {"path": "a.txt"}, "expect": {"for_llm": "b", "is_error": false}}"#,
        r#"{"op": "disk", "path": "a.txt", "text": "a", "mode": "644"}"#,
        r#"{"op": "disk", "path": "b.txt", "text": null}"#,
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let file = file.to_str().unwrap();
    let ran = fixture.run(&["replay", file, "--dialect", "weaver"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.text().contains("line 2 differs from the recording: ") && ran.text().contains("\"for_llm\": \"a\""),
        "{}",
        ran.text()
    );
    assert!(ran.text().ends_with("2 passed, 1 failed\n"), "{}", ran.text());
    let listed = fixture.directory.path().join("d.json");
    std::fs::write(&listed, r#"[{"line": 2, "reason": "because"}]"#).unwrap();
    let listed = listed.to_str().unwrap();
    let ran = fixture.run(&["replay", file, "--dialect", "weaver", "--deviations", listed]);
    assert_eq!((ran.code, ran.text().lines().last()), (0, Some("2 passed, 0 failed, expected deviations: 1")));
    std::fs::write(listed, r#"[{"line": 2, "reason": "because"}, {"line": 3, "reason": "why"}]"#).unwrap();
    let ran = fixture.run(&["replay", file, "--dialect", "weaver", "--deviations", listed]);
    assert_eq!(ran.code, 1, "a listed deviation that does not differ is reported");
    assert_eq!(fixture.run(&["replay", file, "--dialect", "stead", "--dialect", "weaver"]).code, 2);
}
