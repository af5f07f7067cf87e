//! Tests of the commands for file operations, of `stead trash`, and of the help texts.

use insta::assert_snapshot;
use stead_protocols::definition::{DialectDefinition, ToolDefinition};

use crate::cli_fixture::CliFixture;

#[test]
fn a_file_is_written_read_and_removed() {
    let fixture = CliFixture::new();
    let written = fixture.run_with_input(&["write", "src/a.txt", "--json"], b"one\n");
    assert_eq!(written.code, 0, "{}", written.stderr);
    let version = written.json()["version"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read(fixture.workspace().join("src/a.txt")).unwrap(), b"one\n");
    assert_eq!(fixture.run_successfully(&["read", "src/a.txt"]).text(), "one\n");
    fixture.run_successfully(&["write", "src/a.txt", "--content", "two\n", "--base", &version]);
    let removed = fixture.run_successfully(&["remove", "src/a.txt", "--json"]).json();
    let id = removed["trash"].as_str().unwrap();
    assert!(fixture.run_successfully(&["trash", "list"]).text().contains(id));
    fixture.run_successfully(&["trash", "restore", id, "--to", "b.txt"]);
    assert_eq!(fixture.run_successfully(&["read", "b.txt"]).text(), "two\n");
    fixture.run_successfully(&["undo"]);
    assert_eq!(fixture.run(&["read", "b.txt"]).code, 1);
    fixture.run_successfully(&["redo"]);
    assert_eq!(fixture.run_successfully(&["read", "b.txt"]).text(), "two\n");
}

#[test]
fn exit_codes_follow_the_error_kind() {
    let fixture = CliFixture::new();
    fixture.run_with_input(&["write", "a.txt"], b"a\n");
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
        let ran = fixture.run(arguments);
        assert_eq!(ran.code, code, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains('\x1b'), "colours are only for terminals: {}", ran.stderr);
    }
}

#[test]
fn error_names_the_next_command_and_has_a_json_form() {
    let fixture = CliFixture::new();
    let ran = fixture.run(&["read", "missing.txt", "--json"]);
    assert_eq!(ran.json()["error"]["kind"], "not_found");
    assert!(ran.stderr.starts_with("stead: not_found: "), "{}", ran.stderr);
    assert!(ran.stderr.contains("\n  next: to see the names in the directory, run: stead list .\n"), "{}", ran.stderr);
}

#[test]
fn binary_content_round_trips() {
    let fixture = CliFixture::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(5000).collect();
    assert_eq!(fixture.run_with_input(&["write", "blob", "--content", "-"], &bytes).code, 0);
    assert_eq!(fixture.run_successfully(&["read", "blob"]).stdout, bytes);
    let refused = fixture.run_with_input(&["append", "blob"], &bytes);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
}

#[test]
fn edits_and_patches_are_read_from_arguments_or_stdin() {
    let fixture = CliFixture::new();
    fixture.run_with_input(&["write", "a.txt"], b"one\ntwo\none\n");
    fixture.run_successfully(&["edit", "a.txt", "--edits", r#"[{"old": "two", "new": "2"}]"#]);
    for (arguments, old, new) in
        [(&["edit", "a.txt"][..], "2", "zwei"), (&["edit", "a.txt", "--edits", "-"], "zwei", "deux")]
    {
        let edits = format!(r#"[{{"old": "{old}", "new": "{new}"}}]"#);
        let ran = fixture.run_with_input(arguments, edits.as_bytes());
        assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    }
    let broken = fixture.run(&["edit", "a.txt", "--edits", "[{"]);
    assert_eq!(broken.code, 2, "{}", broken.stderr);
    let unclear = fixture.run(&["edit", "a.txt", "--edits", r#"[{"old": "one", "new": "1"}]"#]);
    assert!(unclear.stderr.contains("ambiguous") && unclear.stderr.contains("\n  line 3"), "{}", unclear.stderr);
    let patch = b"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-deux\n+two\n one\n";
    let ran = fixture.run_with_input(&["patch"], patch);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(fixture.run_successfully(&["read", "a.txt"]).text(), "one\ntwo\none\n");
}

#[test]
fn idempotency_key_applies_a_change_once() {
    let fixture = CliFixture::new();
    for _ in 0..2 {
        fixture.run_successfully(&["append", "log.txt", "--content", "x", "--key", "k1"]);
    }
    assert_eq!(fixture.run_successfully(&["read", "log.txt"]).text(), "x");
}

#[test]
fn only_a_user_may_purge_the_trash() {
    let fixture = CliFixture::new();
    fixture.run_successfully(&["write", "a.txt", "--content", "a"]);
    let removed = fixture.run_successfully(&["remove", "a.txt", "--json"]).json();
    let id = removed["trash"].as_str().unwrap();
    assert_eq!(fixture.run(&["trash", "purge", id, "--principal", "agent:x"]).code, 3);
    assert_eq!(fixture.run(&["trash", "purge", "t000"]).code, 1);
    fixture.run_successfully(&["trash", "purge", id]);
    assert_eq!(fixture.run_successfully(&["trash", "list"]).text(), "");
    assert_ne!(fixture.run(&["trash", "restore", id]).code, 0);
}

#[test]
fn purging_items_of_others_requires_all_flag() {
    let fixture = CliFixture::new();
    let removed_by = |name: &str, principal: &str| {
        fixture.run_successfully(&["write", name, "--content", "a", "--principal", principal]);
        let removed = fixture.run_successfully(&["remove", name, "--principal", principal, "--json"]).json();
        removed["trash"].as_str().unwrap().to_owned()
    };
    let mine = removed_by("mine", "user:tester");
    let others: Vec<String> = ["one", "two", "three"].iter().map(|name| removed_by(name, "agent:x")).collect();
    let refused = fixture.run(&["trash", "purge", &mine, &others[0]]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(refused.stderr.contains("not_owner") && refused.stderr.contains("--all"), "{}", refused.stderr);
    assert_eq!(fixture.run_successfully(&["trash", "list", "--all"]).text().lines().count(), 4, "nothing was purged");
    fixture.run_successfully(&["trash", "purge", "--mine"]);
    assert_eq!(fixture.run_successfully(&["trash", "list", "--all"]).text().lines().count(), 3);
    fixture.run_successfully(&["trash", "purge", &others[0], "--all"]);
    assert_eq!(fixture.run_successfully(&["trash", "list", "--all"]).text().lines().count(), 2);
    assert_eq!(fixture.run(&["trash", "purge", "--all", "--principal", "agent:x"]).code, 3);
    assert_eq!(fixture.run(&["trash", "purge"]).code, 2);
    fixture.run_successfully(&["trash", "purge", "--all"]);
    assert_eq!(fixture.run_successfully(&["trash", "list", "--all"]).text(), "");
}

#[test]
fn help_completions_and_man_pages_cover_every_operation() {
    let fixture = CliFixture::new();
    let help = fixture.run_successfully(&["--help"]).text();
    assert_snapshot!("help", help);
    assert_snapshot!("help_of_edit", fixture.run_successfully(&["edit", "--help"]).text());
    let man = fixture.run_successfully(&["man"]).text();
    let completions = fixture.run_successfully(&["completions", "bash"]).text();
    let definition = DialectDefinition::native().unwrap();
    // The listed operations have builtin commands instead of generated ones.
    let without_command = [
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
    let has_command = |operation: &&ToolDefinition| {
        operation.authority.is_none() && !without_command.contains(&operation.name.as_str())
    };
    for operation in definition.operations.iter().filter(has_command) {
        assert!(help.contains(&format!("  {} ", operation.name)), "{}", operation.name);
        assert!(man.contains(&format!("stead\\-{}", operation.name)), "{}", operation.name);
        assert!(
            completions.contains(&format!("stead__subcmd__{}", operation.name))
                || completions.contains(&operation.name)
        );
        let command_help = fixture.run_successfully(&[&operation.name, "--help"]).text();
        assert!(command_help.contains(&format!("Usage: stead {}", operation.name)), "{command_help}");
    }
    let pages = fixture.directory.path().join("man");
    std::fs::create_dir(&pages).unwrap();
    fixture.run_successfully(&["man", pages.to_str().unwrap()]);
    assert!(pages.join("stead-read.1").exists());
}

#[test]
fn one_directory_has_one_journal_under_any_spelling() {
    let directory = tempfile::tempdir().unwrap();
    let (real, link) = (directory.path().join("real"), directory.path().join("link"));
    std::fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    let run = |workspace: &std::path::Path, arguments: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_stead"))
            .args(arguments)
            .arg("--workspace")
            .arg(workspace)
            .env("XDG_STATE_HOME", directory.path().join("state"))
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
    assert_eq!(std::fs::read_dir(directory.path().join("state/stead")).unwrap().count(), 1);
}
