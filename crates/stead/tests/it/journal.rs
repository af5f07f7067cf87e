//! The journal from the command line.

use std::{io::Read, path::Path, process::Stdio};

use crate::bench::Bench;

fn copy_tree(from: &Path, to: &Path) {
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
fn the_log_shows_what_is_asked_for() {
    let bench = Bench::new();
    bench.ok(&["write", "a.txt", "--content", "a"]);
    bench.ok(&["write", "d/b.txt", "--content", "b", "--principal", "agent:x"]);
    bench.run(&["read", "../etc/passwd"]);
    let all = bench.ok(&["log"]).text();
    assert_eq!(all.lines().count(), 3, "{all}");
    assert!(all.lines().next().unwrap().contains("refused: invalid_path"), "newest first: {all}");
    let count =
        |arguments: &[&str]| bench.ok(&[&["log", "--json"], arguments].concat()).text().lines().count();
    assert_eq!(count(&["--path", "d"]), 1);
    assert_eq!(count(&["--principal", "agent:x"]), 1);
    assert_eq!(count(&["--operation", "write"]), 2);
    assert_eq!(count(&["--changes"]), 2);
    assert_eq!(count(&["--since", "1h"]), 3);
    assert_eq!(count(&["--until", "2020-01-01"]), 0);
    assert_eq!(count(&["--limit", "1"]), 1);
    assert_eq!(bench.run(&["log", "--since", "whenever"]).code, 2);
}

#[test]
fn every_change_and_every_refusal_is_a_row_of_the_audit() {
    let bench = Bench::new();
    bench.ok(&["write", "a.txt", "--content", "abc"]);
    bench.run(&["write", "a.txt", "--content", "x"]);
    bench.ok(&["move", "a.txt", "b.txt"]);
    bench.ok(&["remove", "b.txt"]);
    bench.run(&["remove", "../x"]);
    bench.ok(&["list"]);
    let log = bench.ok(&["log", "--json"]).text();
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
fn an_intact_log_verifies_in_every_way() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.ok(&["write", name, "--content", name]);
    }
    let report = bench.ok(&["log", "verify", "--json"]).json();
    assert_eq!((&report["ok"], &report["entries"]), (&true.into(), &3.into()), "{report}");
    let saved = bench.place.path().join("saved.json");
    let saved = saved.to_str().unwrap();
    bench.ok(&["log", "verify", "--full", "--save", saved]);
    bench.ok(&["write", "d", "--content", "d"]);
    let later = bench.ok(&["log", "verify", "--from-checkpoint", saved, "--json"]).json();
    assert_eq!(
        (&later["ok"], &later["checked"], &later["entries"]),
        (&true.into(), &1.into(), &4.into()),
        "{later}"
    );
    assert_eq!(bench.ok(&["log", "verify", "--entry", "2", "--json"]).json()["ok"], true);
    assert_eq!(bench.run(&["log", "verify", "--entry", "99"]).code, 1);
    bench.ok(&["log", "rotate-key"]);
    bench.ok(&["write", "e", "--content", "e"]);
    bench.ok(&["log", "verify"]);
    let export = bench.place.path().join("export.jsonl");
    bench.ok(&["log", "export", export.to_str().unwrap()]);
    assert!(std::fs::read_to_string(&export).unwrap().lines().count() >= 5);
    assert_eq!(
        bench.run(&["log", "export", export.to_str().unwrap()]).code,
        1,
        "a file that is there is not touched"
    );
}

#[test]
fn a_log_that_lost_its_end_is_found_out_by_a_checkpoint_kept_elsewhere() {
    let bench = Bench::new();
    bench.ok(&["write", "a", "--content", "a"]);
    let before = bench.place.path().join("before");
    copy_tree(&bench.state(), &before);
    bench.ok(&["write", "b", "--content", "b"]);
    let kept = bench.place.path().join("checkpoint");
    std::fs::write(&kept, bench.ok(&["log", "checkpoint"]).out).unwrap();
    bench.ok(&["log", "verify", "--against", kept.to_str().unwrap()]);
    std::fs::remove_dir_all(bench.state()).unwrap();
    copy_tree(&before, &bench.state());
    let ran = bench.run(&["log", "verify", "--against", kept.to_str().unwrap()]);
    assert_eq!(ran.code, 5, "{}{}", ran.text(), ran.err);
    assert!(ran.text().contains("TAMPERED"), "{}", ran.text());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let bench = Bench::new();
    bench.ok(&["write", "a", "--content", "a"]);
    for arguments in [&["log", "export"][..], &["log", "--json"]] {
        let mut child =
            bench.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A reader that is gone before the first byte.
        drop(child.stdout.take());
        let mut complaint = String::new();
        child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}: {complaint}");
        assert_eq!(complaint, "", "{arguments:?}");
    }
}

#[test]
fn the_status_says_how_the_workspace_is_opened() {
    let bench = Bench::new();
    bench.ok(&["write", "a", "--content", "a"]);
    let status = bench.ok(&["status", "--json", "--durability", "fast", "--resolver", "walker"]).json();
    assert_eq!(
        (&status["entries"], &status["durability"], &status["resolver"]),
        (&1.into(), &"fast".into(), &"walker".into())
    );
}
