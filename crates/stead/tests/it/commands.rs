//! Operations as commands.

use crate::bench::Bench;

#[test]
fn a_file_is_written_read_and_removed() {
    let bench = Bench::new();
    let written = bench.run_with(&["write", "src/a.txt", "--json"], b"one\n");
    assert_eq!(written.code, 0, "{}", written.err);
    let version = written.json()["version"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read(bench.workspace().join("src/a.txt")).unwrap(), b"one\n");
    assert_eq!(bench.ok(&["read", "src/a.txt"]).text(), "one\n");
    bench.ok(&["write", "src/a.txt", "--content", "two\n", "--base", &version]);
    let removed = bench.ok(&["remove", "src/a.txt", "--json"]).json();
    let id = removed["trash"].as_str().unwrap();
    assert!(bench.ok(&["trash", "list"]).text().contains(id));
    bench.ok(&["trash", "restore", id, "--to", "b.txt"]);
    assert_eq!(bench.ok(&["read", "b.txt"]).text(), "two\n");
    bench.ok(&["undo"]);
    assert_eq!(bench.run(&["read", "b.txt"]).code, 1);
    bench.ok(&["redo"]);
    assert_eq!(bench.ok(&["read", "b.txt"]).text(), "two\n");
}

#[test]
fn exit_codes_say_why() {
    let bench = Bench::new();
    bench.run_with(&["write", "a.txt"], b"a\n");
    for (arguments, code, word) in [
        (&["read", "missing.txt"][..], 1, "not_found"),
        (&["no-such-command"], 2, "unrecognized"),
        (&["read"], 2, "required"),
        (&["read", "a.txt", "--lines", "x"], 2, "bad_request"),
        (&["read", "../a.txt"], 3, "invalid_path"),
        (&["write", "a.txt", "--content", "b"], 4, "base_required"),
        (&["write", "b.txt", "--content", "b", "--read-only"], 3, "read_only"),
        (&["write", "b.txt", "--content", "b", "--writable", "src"], 3, "out_of_scope"),
        (&["read", "a.txt", "--readable", "src"], 3, "out_of_scope"),
        (&["read", "a.txt", "--readable", "src/"], 3, "out_of_scope"),
        (&["read", "a.txt", "--readable", "/etc"], 2, "it is absolute"),
        (&["read", "a.txt", "--principal", "root"], 2, "bad_request"),
        (&["read", "a.txt", "--workspace", "nowhere"], 1, "not_found"),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.err);
        assert!(ran.err.contains(word), "{arguments:?}: {}", ran.err);
        assert!(!ran.err.contains('\x1b'), "no colours off a terminal: {}", ran.err);
    }
}

#[test]
fn a_failure_names_the_next_step_and_is_json_when_asked() {
    let bench = Bench::new();
    let ran = bench.run(&["read", "missing.txt", "--json"]);
    assert_eq!(ran.json()["error"]["kind"], "not_found");
    assert!(ran.err.starts_with("stead: not_found: "), "{}", ran.err);
    assert!(ran.err.contains("\n  next: "), "{}", ran.err);
}

#[test]
fn bytes_go_in_and_out_as_they_are() {
    let bench = Bench::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    assert_eq!(bench.run_with(&["write", "blob", "--content", "-"], &bytes).code, 0);
    assert_eq!(bench.ok(&["read", "blob"]).out, bytes);
    let refused = bench.run_with(&["append", "blob"], &bytes);
    assert_eq!(refused.code, 1, "{}", refused.err);
}

#[test]
fn edits_and_patches_come_by_argument_or_by_standard_input() {
    let bench = Bench::new();
    bench.run_with(&["write", "a.txt"], b"one\ntwo\none\n");
    bench.ok(&["edit", "a.txt", "--edits", r#"[{"old": "two", "new": "2"}]"#]);
    for (arguments, old, new) in
        [(&["edit", "a.txt"][..], "2", "zwei"), (&["edit", "a.txt", "--edits", "-"], "zwei", "deux")]
    {
        let edits = format!(r#"[{{"old": "{old}", "new": "{new}"}}]"#);
        let ran = bench.run_with(arguments, edits.as_bytes());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    }
    let broken = bench.run(&["edit", "a.txt", "--edits", "[{"]);
    assert_eq!(broken.code, 2, "{}", broken.err);
    let unclear = bench.run(&["edit", "a.txt", "--edits", r#"[{"old": "one", "new": "1"}]"#]);
    assert!(unclear.err.contains("ambiguous") && unclear.err.contains("\n  line 3"), "{}", unclear.err);
    let patch = b"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-deux\n+two\n one\n";
    let ran = bench.run_with(&["patch"], patch);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(bench.ok(&["read", "a.txt"]).text(), "one\ntwo\none\n");
}

#[test]
fn a_key_changes_nothing_twice() {
    let bench = Bench::new();
    for _ in 0..2 {
        bench.ok(&["append", "log.txt", "--content", "x", "--key", "k1"]);
    }
    assert_eq!(bench.ok(&["read", "log.txt"]).text(), "x");
}

#[test]
fn only_a_person_empties_the_trash() {
    let bench = Bench::new();
    bench.ok(&["write", "a.txt", "--content", "a"]);
    let removed = bench.ok(&["remove", "a.txt", "--json"]).json();
    let id = removed["trash"].as_str().unwrap();
    assert_eq!(bench.run(&["trash", "purge", id, "--principal", "agent:x"]).code, 3);
    assert_eq!(bench.run(&["trash", "purge", "t000"]).code, 1);
    bench.ok(&["trash", "purge", id]);
    assert_eq!(bench.ok(&["trash", "list"]).text(), "");
    assert_ne!(bench.run(&["trash", "restore", id]).code, 0);
}

#[test]
fn what_others_removed_goes_only_when_asked_for_in_so_many_words() {
    let bench = Bench::new();
    let removed_by = |name: &str, principal: &str| {
        bench.ok(&["write", name, "--content", "a", "--principal", principal]);
        let removed = bench.ok(&["remove", name, "--principal", principal, "--json"]).json();
        removed["trash"].as_str().unwrap().to_owned()
    };
    let mine = removed_by("mine", "user:tester");
    let others: Vec<String> =
        ["one", "two", "three"].iter().map(|name| removed_by(name, "agent:x")).collect();
    let refused = bench.run(&["trash", "purge", &mine, &others[0]]);
    assert_eq!(refused.code, 3, "{}", refused.err);
    assert!(refused.err.contains("not_owner") && refused.err.contains("--all"), "{}", refused.err);
    assert_eq!(bench.ok(&["trash", "list", "--all"]).text().lines().count(), 4, "none went");
    bench.ok(&["trash", "purge", "--mine"]);
    assert_eq!(bench.ok(&["trash", "list", "--all"]).text().lines().count(), 3);
    bench.ok(&["trash", "purge", &others[0], "--all"]);
    assert_eq!(bench.ok(&["trash", "list", "--all"]).text().lines().count(), 2);
    assert_eq!(bench.run(&["trash", "purge", "--all", "--principal", "agent:x"]).code, 3);
    assert_eq!(bench.run(&["trash", "purge"]).code, 2);
    bench.ok(&["trash", "purge", "--all"]);
    assert_eq!(bench.ok(&["trash", "list", "--all"]).text(), "");
}

#[test]
fn help_completions_and_manual_cover_every_operation() {
    let bench = Bench::new();
    let help = bench.ok(&["--help"]).text();
    let man = bench.ok(&["man"]).text();
    let completions = bench.ok(&["completions", "bash"]).text();
    let definition = faces::definition::Definition::stead().unwrap();
    // These have commands made for people.
    let otherwise = [
        "alerts",
        "respond",
        "policy",
        "approvals",
        "approve",
        "deny",
        "watch",
        "buffer.open",
        "buffer.change",
        "buffer.save",
        "buffer.close",
    ];
    for operation in
        definition.operations.iter().filter(|operation| !otherwise.contains(&operation.name.as_str()))
    {
        let summary = operation.summary.trim_end_matches('.');
        assert!(help.contains(&format!("  {} ", operation.name)), "{}", operation.name);
        assert!(man.contains(&format!("stead\\-{}", operation.name)), "{}", operation.name);
        assert!(
            completions.contains(&format!("stead__subcmd__{}", operation.name))
                || completions.contains(&operation.name)
        );
        let own =
            bench.ok(&[&operation.name, "--help"]).text().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(own.contains(summary), "{own}");
    }
    let pages = bench.place.path().join("man");
    std::fs::create_dir(&pages).unwrap();
    bench.ok(&["man", pages.to_str().unwrap()]);
    assert!(pages.join("stead-read.1").exists());
}

#[test]
fn one_directory_has_one_journal_however_it_is_called() {
    let place = tempfile::tempdir().unwrap();
    let (real, link) = (place.path().join("real"), place.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    let run = |workspace: &std::path::Path, arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_stead"))
            .args(arguments)
            .arg("--workspace")
            .arg(workspace)
            .env("XDG_STATE_HOME", place.path().join("state"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    run(&real, &["write", "a.txt", "--content", "a", "--base", ""]);
    run(&link, &["write", "b.txt", "--content", "b", "--base", ""]);
    run(&link.join("../real/."), &["write", "c.txt", "--content", "c", "--base", ""]);
    let log = run(&link, &["log"]);
    assert!(["a.txt", "b.txt", "c.txt"].iter().all(|name| log.contains(name)), "{log}");
    assert_eq!(std::fs::read_dir(place.path().join("state/stead")).unwrap().count(), 1);
}
