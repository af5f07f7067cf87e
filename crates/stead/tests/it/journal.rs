//! Tests of `stead log` and `stead status`.

use std::{io::Read, path::Path, process::Stdio};

use crate::cli_fixture::CliFixture;

pub(crate) fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[test]
fn log_filters_select_entries() {
    let fixture = CliFixture::new();
    fixture.run_successfully(&["write", "a.txt", "--content", "a"]);
    fixture.run_successfully(&["write", "d/b.txt", "--content", "b", "--principal", "agent:x"]);
    fixture.run(&["read", "../etc/passwd"]);
    let all = fixture.run_successfully(&["log"]).text();
    assert_eq!(all.lines().count(), 3, "{all}");
    assert!(all.lines().next().unwrap().contains("refused: invalid_path"), "newest first: {all}");
    let count =
        |arguments: &[&str]| fixture.run_successfully(&[&["log", "--json"], arguments].concat()).text().lines().count();
    assert_eq!(count(&["--path", "d"]), 1);
    assert_eq!(count(&["--principal", "agent:x"]), 1);
    assert_eq!(count(&["--operation", "write"]), 2);
    assert_eq!(count(&["--changes"]), 2);
    assert_eq!(count(&["--since", "1h"]), 8, "every look at the journal is an entry as well");
    assert_eq!(count(&["--until", "2020-01-01"]), 0);
    assert_eq!(count(&["--limit", "1"]), 1);
    assert_eq!(fixture.run(&["log", "--since", "whenever"]).code, 2);
}

#[test]
fn every_change_and_refusal_has_an_audit_row() {
    let fixture = CliFixture::new();
    fixture.run_successfully(&["write", "a.txt", "--content", "abc"]);
    fixture.run(&["write", "a.txt", "--content", "x"]);
    fixture.run_successfully(&["move", "a.txt", "b.txt"]);
    fixture.run_successfully(&["remove", "b.txt"]);
    fixture.run(&["remove", "../x"]);
    fixture.run_successfully(&["list"]);
    let log = fixture.run_successfully(&["log", "--json"]).text();
    let rows: Vec<serde_json::Value> = log
        .lines()
        .rev()
        .flat_map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).unwrap();
            entry["audit"].as_array().unwrap().clone()
        })
        .map(|mut row| {
            let fields = row.as_object_mut().unwrap();
            ["timestamp", "sessionId", "agentName"].iter().for_each(|name| drop(fields.remove(*name)));
            row
        })
        .collect();
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let expected = serde_json::json!([
        { "toolName": "write", "operation": "create", "path": "a.txt", "afterSha256": sha256, "success": true },
        { "toolName": "write", "operation": "write", "path": "a.txt", "success": false, "error": "base_required" },
        { "toolName": "move", "operation": "move", "path": "a.txt", "toPath": "b.txt", "beforeSha256": sha256,
          "afterSha256": sha256, "success": true },
        { "toolName": "remove", "operation": "delete", "path": "b.txt", "beforeSha256": sha256, "success": true },
        { "toolName": "remove", "operation": "remove", "path": "../x", "success": false, "error": "invalid_path" },
    ]);
    assert_eq!(serde_json::Value::Array(rows), expected);
}

#[test]
fn intact_log_passes_every_verification() {
    let fixture = CliFixture::new();
    for name in ["a", "b", "c"] {
        fixture.run_successfully(&["write", name, "--content", name]);
    }
    let report = fixture.run_successfully(&["log", "verify", "--json"]).json();
    assert_eq!((&report["ok"], &report["entries"]), (&true.into(), &3.into()), "{report}");
    let saved = fixture.directory.path().join("saved.json");
    let saved = saved.to_str().unwrap();
    fixture.run_successfully(&["log", "verify", "--full", "--save", saved]);
    fixture.run_successfully(&["write", "d", "--content", "d"]);
    let later = fixture.run_successfully(&["log", "verify", "--from-checkpoint", saved, "--json"]).json();
    assert_eq!((&later["ok"], &later["checked"], &later["entries"]), (&true.into(), &2.into(), &6.into()), "{later}");
    assert_eq!(fixture.run_successfully(&["log", "verify", "--entry", "2", "--json"]).json()["ok"], true);
    assert_eq!(fixture.run(&["log", "verify", "--entry", "99"]).code, 1);
    fixture.run_successfully(&["log", "rotate-key"]);
    fixture.run_successfully(&["write", "e", "--content", "e"]);
    fixture.run_successfully(&["log", "verify"]);
    let export = fixture.directory.path().join("export.jsonl");
    fixture.run_successfully(&["log", "export", export.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&export).unwrap().lines().count() >= 5);
    assert_eq!(
        fixture.run(&["log", "export", export.to_str().unwrap()]).code,
        1,
        "a file that is there is not touched"
    );
}

#[test]
fn truncated_log_is_detected_by_an_external_checkpoint() {
    let fixture = CliFixture::new();
    fixture.run_successfully(&["write", "a", "--content", "a"]);
    let before = fixture.directory.path().join("before");
    copy_tree(&fixture.state(), &before);
    fixture.run_successfully(&["write", "b", "--content", "b"]);
    let kept = fixture.directory.path().join("checkpoint");
    std::fs::write(&kept, fixture.run_successfully(&["log", "checkpoint"]).stdout).unwrap();
    fixture.run_successfully(&["log", "verify", "--against", kept.to_str().unwrap()]);
    std::fs::remove_dir_all(fixture.state()).unwrap();
    copy_tree(&before, &fixture.state());
    let ran = fixture.run(&["log", "verify", "--against", kept.to_str().unwrap()]);
    assert_eq!(ran.code, 5, "{}{}", ran.text(), ran.stderr);
    assert!(ran.text().contains("TAMPERED"), "{}", ran.text());
}

#[test]
fn closed_output_pipe_is_not_an_error() {
    let fixture = CliFixture::new();
    fixture.run_successfully(&["write", "a", "--content", "a"]);
    for arguments in [&["log", "export"][..], &["log", "--json"]] {
        let mut child = fixture.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}: {complaint}");
        assert_eq!(complaint, "", "{arguments:?}");
    }
}

#[test]
fn status_shows_how_the_workspace_is_opened() {
    let fixture = CliFixture::new();
    fixture.run_successfully(&["write", "a", "--content", "a"]);
    let status = fixture.run_successfully(&["status", "--json", "--durability", "fast", "--resolver", "walker"]).json();
    assert_eq!(
        (&status["entries"], &status["durability"], &status["resolver"]),
        (&1.into(), &"fast".into(), &"walker".into())
    );
}
