//! Operations as commands.

use crate::cli_fixture::CliFixture;

#[test]
fn a_file_is_written_read_and_removed() {
    let bench = CliFixture::new();
    let written = bench.run_with_input(&["write", "src/a.txt", "--json"], b"one\n");
    assert_eq!(written.code, 0, "{}", written.stderr);
    let version = written.json()["version"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read(bench.workspace().join("src/a.txt")).unwrap(), b"one\n");
    assert_eq!(bench.run_successfully(&["read", "src/a.txt"]).text(), "one\n");
    bench.run_successfully(&["write", "src/a.txt", "--content", "two\n", "--base", &version]);
    let removed = bench.run_successfully(&["remove", "src/a.txt", "--json"]).json();
    let id = removed["trash"].as_str().unwrap();
    assert!(bench.run_successfully(&["trash", "list"]).text().contains(id));
    bench.run_successfully(&["trash", "restore", id, "--to", "b.txt"]);
    assert_eq!(bench.run_successfully(&["read", "b.txt"]).text(), "two\n");
    bench.run_successfully(&["undo"]);
    assert_eq!(bench.run(&["read", "b.txt"]).code, 1);
    bench.run_successfully(&["redo"]);
    assert_eq!(bench.run_successfully(&["read", "b.txt"]).text(), "two\n");
}

#[test]
fn exit_codes_follow_the_error_kind() {
    let bench = CliFixture::new();
    bench.run_with_input(&["write", "a.txt"], b"a\n");
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
        (&["read", "a.txt", "--readable", "/etc"], 2, "/etc is absolute"),
        (&["read", "a.txt", "--principal", "root"], 2, "bad_request"),
        (&["read", "a.txt", "--workspace", "nowhere"], 1, "not_found"),
    ] {
        let ran = bench.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\x1b'), "no colours off a terminal: {}", ran.stderr);
    }
}

#[test]
fn error_has_a_hint_and_a_json_form() {
    let bench = CliFixture::new();
    let ran = bench.run(&["read", "missing.txt", "--json"]);
    assert_eq!(ran.json()["error"]["kind"], "not_found");
    assert!(ran.stderr.starts_with("stead: not_found: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n  next: "), "{}", ran.stderr);
}

#[test]
fn binary_content_round_trips() {
    let bench = CliFixture::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    assert_eq!(bench.run_with_input(&["write", "blob", "--content", "-"], &bytes).code, 0);
    assert_eq!(bench.run_successfully(&["read", "blob"]).stdout, bytes);
    let refused = bench.run_with_input(&["append", "blob"], &bytes);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
}

#[test]
fn edits_and_patches_are_read_from_arguments_or_stdin() {
    let bench = CliFixture::new();
    bench.run_with_input(&["write", "a.txt"], b"one\ntwo\none\n");
    bench.run_successfully(&["edit", "a.txt", "--edits", r#"[{"old": "two", "new": "2"}]"#]);
    for (arguments, old, new) in
        [(&["edit", "a.txt"][..], "2", "zwei"), (&["edit", "a.txt", "--edits", "-"], "zwei", "deux")]
    {
        let edits = format!(r#"[{{"old": "{old}", "new": "{new}"}}]"#);
        let ran = bench.run_with_input(arguments, edits.as_bytes());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    }
    let broken = bench.run(&["edit", "a.txt", "--edits", "[{"]);
    assert_eq!(broken.code, 2, "{}", broken.stderr);
    let unclear = bench.run(&["edit", "a.txt", "--edits", r#"[{"old": "one", "new": "1"}]"#]);
    assert!(unclear.stderr.contains("ambiguous") && unclear.stderr.contains("\n  line 3"), "{}", unclear.stderr);
    let patch = b"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-deux\n+two\n one\n";
    let ran = bench.run_with_input(&["patch"], patch);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(bench.run_successfully(&["read", "a.txt"]).text(), "one\ntwo\none\n");
}

#[test]
fn idempotency_key_applies_a_change_once() {
    let bench = CliFixture::new();
    for _ in 0..2 {
        bench.run_successfully(&["append", "log.txt", "--content", "x", "--key", "k1"]);
    }
    assert_eq!(bench.run_successfully(&["read", "log.txt"]).text(), "x");
}

#[test]
fn only_a_user_may_purge_the_trash() {
    let bench = CliFixture::new();
    bench.run_successfully(&["write", "a.txt", "--content", "a"]);
    let removed = bench.run_successfully(&["remove", "a.txt", "--json"]).json();
    let id = removed["trash"].as_str().unwrap();
    assert_eq!(bench.run(&["trash", "purge", id, "--principal", "agent:x"]).code, 3);
    assert_eq!(bench.run(&["trash", "purge", "t000"]).code, 1);
    bench.run_successfully(&["trash", "purge", id]);
    assert_eq!(bench.run_successfully(&["trash", "list"]).text(), "");
    assert_ne!(bench.run(&["trash", "restore", id]).code, 0);
}

#[test]
fn purging_items_of_others_requires_all_flag() {
    let bench = CliFixture::new();
    let removed_by = |name: &str, principal: &str| {
        bench.run_successfully(&["write", name, "--content", "a", "--principal", principal]);
        let removed = bench.run_successfully(&["remove", name, "--principal", principal, "--json"]).json();
        removed["trash"].as_str().unwrap().to_owned()
    };
    let mine = removed_by("mine", "user:tester");
    let others: Vec<String> = ["one", "two", "three"].iter().map(|name| removed_by(name, "agent:x")).collect();
    let refused = bench.run(&["trash", "purge", &mine, &others[0]]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("not_owner") && refused.stderr.contains("--all"), "{}", refused.stderr);
    assert_eq!(bench.run_successfully(&["trash", "list", "--all"]).text().lines().count(), 4, "none went");
    bench.run_successfully(&["trash", "purge", "--mine"]);
    assert_eq!(bench.run_successfully(&["trash", "list", "--all"]).text().lines().count(), 3);
    bench.run_successfully(&["trash", "purge", &others[0], "--all"]);
    assert_eq!(bench.run_successfully(&["trash", "list", "--all"]).text().lines().count(), 2);
    assert_eq!(bench.run(&["trash", "purge", "--all", "--principal", "agent:x"]).code, 3);
    assert_eq!(bench.run(&["trash", "purge"]).code, 2);
    bench.run_successfully(&["trash", "purge", "--all"]);
    assert_eq!(bench.run_successfully(&["trash", "list", "--all"]).text(), "");
}

#[test]
fn help_completions_and_man_pages_cover_every_operation() {
    let bench = CliFixture::new();
    let help = bench.run_successfully(&["--help"]).text();
    let man = bench.run_successfully(&["man"]).text();
    let completions = bench.run_successfully(&["completions", "bash"]).text();
    let definition = stead_protocols::definition::DialectDefinition::native().unwrap();
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
    for operation in definition.operations.iter().filter(|operation| !otherwise.contains(&operation.name.as_str())) {
        assert!(help.contains(&format!("  {} ", operation.name)), "{}", operation.name);
        assert!(man.contains(&format!("stead\\-{}", operation.name)), "{}", operation.name);
        assert!(
            completions.contains(&format!("stead__subcmd__{}", operation.name))
                || completions.contains(&operation.name)
        );
        let own = bench.run_successfully(&[&operation.name, "--help"]).text();
        assert!(own.contains(&format!("Usage: stead {}", operation.name)), "{own}");
    }
    let pages = bench.directory.path().join("man");
    std::fs::create_dir(&pages).unwrap();
    bench.run_successfully(&["man", pages.to_str().unwrap()]);
    assert!(pages.join("stead-read.1").exists());
}

#[test]
fn one_directory_has_one_journal_under_any_spelling() {
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
