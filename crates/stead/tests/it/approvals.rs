//! Tests that a person can answer an agent's approval requests from another terminal, and that the agent cannot.

use serde_json::Value;
use testkit::wait::kill_after;

use crate::cli_fixture::{CliFixture, CliTestCommandOutput};

const SECRET: &str = "correct horse\n";

fn fixture_with_approver() -> CliFixture {
    let fixture = CliFixture::new();
    std::fs::write(fixture.directory.path().join("secret"), SECRET).unwrap();
    std::fs::write(
        fixture.directory.path().join("policy.toml"),
        "[[system.rules]]\nname = \"removals\"\noperations = [\"remove\", \"append\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n",
    )
    .unwrap();
    std::fs::write(fixture.workspace().join("a.txt"), "a\n").unwrap();
    run_successfully(&fixture, &["approvals", "setup", "--secret-file", "../secret"]);
    fixture
}

fn run_with_policy(fixture: &CliFixture, arguments: &[&str]) -> CliTestCommandOutput {
    fixture.run(&[&["--policy", "../policy.toml"], arguments].concat())
}

#[track_caller]
fn run_successfully(fixture: &CliFixture, arguments: &[&str]) -> CliTestCommandOutput {
    let ran = run_with_policy(fixture, arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.stderr);
    ran
}

const REMOVE_ARGUMENTS: &[&str] = &["remove", "a.txt", "--principal", "agent:a", "--json"];

fn request_removal(fixture: &CliFixture) -> String {
    let ran = run_with_policy(fixture, REMOVE_ARGUMENTS);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    let error = ran.json()["error"].clone();
    assert_eq!(error["kind"], "approval_pending");
    error["approval"].as_str().unwrap().to_owned()
}

#[test]
fn approval_is_requested_and_answered_by_two_processes() {
    let fixture = fixture_with_approver();
    let id = request_removal(&fixture);
    assert!(run_successfully(&fixture, &["approvals", "list"]).text().contains(&id));
    let shown = run_successfully(&fixture, &["approvals", "show", &id]).text();
    for word in ["agent:a", "remove a.txt", "rule 'removals' of the system layer (line 1)"] {
        assert!(shown.contains(word), "{shown}");
    }
    run_successfully(&fixture, &["approvals", "approve", &id, "--secret-file", "../secret", "--reason", "fine"]);
    let entry = run_successfully(&fixture, REMOVE_ARGUMENTS).json()["entry"].clone();
    assert!(!fixture.workspace().join("a.txt").exists());
    let log = run_successfully(&fixture, &["log", "--json"]).text();
    let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let with = |operation: &str| {
        rows.iter()
            .filter(|row| row["entry"]["operation"] == operation && row["entry"]["approval"] == id.as_str())
            .count()
    };
    assert_eq!((with("remove"), with("approve")), (2, 1), "{log}");
    let used = run_successfully(&fixture, &["approvals", "show", &id, "--json"]).json();
    assert_eq!((&used["state"], &used["used"], &used["answered_by"]), (&"used".into(), &entry, &"user:tester".into()));
    run_successfully(&fixture, &["log", "verify"]);
}

#[test]
fn approval_requires_the_secret_and_delays_wrong_ones() {
    let fixture = fixture_with_approver();
    let id = request_removal(&fixture);
    std::fs::write(fixture.directory.path().join("wrong"), "a guess\n").unwrap();
    let guess = ["approvals", "approve", &id, "--secret-file", "../wrong"];
    for _ in 0..3 {
        let ran = run_with_policy(&fixture, &guess);
        assert!(ran.code == 3 && ran.stderr.contains("wrong approver secret"), "{}", ran.stderr);
    }
    // After wrong secrets, even the right secret is refused until a delay has passed.
    let right = run_with_policy(&fixture, &["approvals", "approve", &id, "--secret-file", "../secret"]);
    assert!(right.code == 3 && right.stderr.contains("rate_limited"), "{}", right.stderr);
    assert_eq!(run_successfully(&fixture, &["approvals", "show", &id, "--json"]).json()["state"], "pending");
}

#[test]
fn agent_principal_cannot_answer_even_with_the_secret() {
    let fixture = fixture_with_approver();
    let id = request_removal(&fixture);
    let own = ["approvals", "approve", &id, "--secret-file", "../secret", "--principal", "agent:a"];
    let ran = run_with_policy(&fixture, &own);
    assert!(ran.code == 3 && ran.stderr.contains("only a person"), "{}", ran.stderr);
    // The operations `approve` and `deny` are not commands.
    assert_eq!(run_with_policy(&fixture, &["approve", &id]).code, 2);
    assert_eq!(run_with_policy(&fixture, &["deny", &id]).code, 2);
    let unset = CliFixture::new();
    let ran = unset.run(&["approvals", "approve", &id, "--secret-file", "/dev/null"]);
    assert!(ran.code == 3 && ran.stderr.contains("approvals setup"), "{}", ran.stderr);
}

#[test]
fn replacing_the_secret_requires_the_old_one() {
    let fixture = fixture_with_approver();
    std::fs::write(fixture.directory.path().join("new"), "another secret\n").unwrap();
    let without_old_secret =
        run_with_policy(&fixture, &["approvals", "setup", "--secret-file", "../new", "--old-secret-file", "../new"]);
    assert_eq!(without_old_secret.code, 3, "{}", without_old_secret.stderr);
    run_successfully(&fixture, &["approvals", "setup", "--secret-file", "../new", "--old-secret-file", "../secret"]);
    let id = request_removal(&fixture);
    assert_eq!(run_with_policy(&fixture, &["approvals", "approve", &id, "--secret-file", "../secret"]).code, 3);
    run_successfully(&fixture, &["approvals", "approve", &id, "--secret-file", "../new"]);
    let created = CliFixture::new().run_successfully(&["approvals", "setup", "--generate"]).text();
    assert_eq!(created.trim().len(), 40, "{created}");
}

#[test]
fn approve_always_shows_and_writes_a_rule() {
    let fixture = fixture_with_approver();
    let id = request_removal(&fixture);
    let ran =
        run_successfully(&fixture, &["approvals", "approve", &id, "--secret-file", "../secret", "--always", "--yes"]);
    assert!(ran.stderr.contains("tier = \"autonomous\""), "{}", ran.stderr);
    let policy = std::fs::read_to_string(fixture.directory.path().join("policy.toml")).unwrap();
    assert!(policy.starts_with("# Written by user:tester on "), "{policy}");
    run_successfully(&fixture, REMOVE_ARGUMENTS);
    std::fs::write(fixture.workspace().join("a.txt"), "again\n").unwrap();
    run_successfully(&fixture, REMOVE_ARGUMENTS);
    std::fs::write(fixture.workspace().join("b.txt"), "b\n").unwrap();
    assert_eq!(run_with_policy(&fixture, &["remove", "b.txt", "--principal", "agent:a"]).code, 3);
    // The added rule matches only the approved path, not every file with the same name.
    std::fs::create_dir_all(fixture.workspace().join("deep")).unwrap();
    std::fs::write(fixture.workspace().join("deep/a.txt"), "a\n").unwrap();
    assert_eq!(run_with_policy(&fixture, &["remove", "deep/a.txt", "--principal", "agent:a"]).code, 3);
}

#[test]
fn approve_always_is_refused_for_rate_limits() {
    let fixture = fixture_with_approver();
    let rate = "[system.rate]\ncalls = 1\nper_seconds = 1000\nthen = \"approval_required\"\n";
    std::fs::write(fixture.directory.path().join("policy.toml"), rate).unwrap();
    run_with_policy(&fixture, &["stat", "a.txt", "--principal", "agent:a"]);
    let id = request_removal(&fixture);
    let ran =
        run_with_policy(&fixture, &["approvals", "approve", &id, "--secret-file", "../secret", "--always", "--yes"]);
    assert!(ran.code == 2 && ran.stderr.contains("cannot lift a rate limit"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(fixture.directory.path().join("policy.toml")).unwrap(), rate);
    run_successfully(&fixture, &["approvals", "approve", &id, "--secret-file", "../secret"]);
    // An approval that is already answered cannot become a rule.
    let again =
        run_with_policy(&fixture, &["approvals", "approve", &id, "--secret-file", "../secret", "--always", "--yes"]);
    assert!(again.code == 4 && !again.stderr.contains("this rule will be added to"), "{}", again.stderr);
    run_successfully(&fixture, REMOVE_ARGUMENTS);
}

#[test]
fn malformed_policy_is_reported_with_its_line() {
    let fixture = fixture_with_approver();
    std::fs::write(fixture.directory.path().join("policy.toml"), "[system]\ndefault = \"open\"\n").unwrap();
    for command in [&["read", "a.txt"][..], &["mcp"], &["rpc"]] {
        let ran = run_with_policy(&fixture, command);
        assert!(ran.code == 3 && ran.stderr.contains("line 2: there is no tier 'open'"), "{command:?}: {}", ran.stderr);
    }
    let missing = fixture.run(&["--policy", "../none.toml", "read", "a.txt"]);
    assert!(missing.code == 3 && missing.stderr.contains("no such file"), "{}", missing.stderr);
    std::os::unix::fs::symlink("policy.toml", fixture.directory.path().join("link.toml")).unwrap();
    let linked = fixture.run(&["--policy", "../link.toml", "read", "a.txt"]);
    assert_eq!(linked.code, 3, "{}", linked.stderr);
}

#[test]
fn policy_check_explains_without_running() {
    let fixture = fixture_with_approver();
    let decision =
        run_successfully(&fixture, &["policy", "check", "--principal", "agent:a", "remove", "path=a.txt"]).text();
    assert_eq!(decision, "agent:a remove: approval_required (rule 'removals' of the system layer (line 1))\n");
    let json =
        run_successfully(&fixture, &["policy", "check", "--json", "write", "{\"path\":\".git/x\",\"content\":\"\"}"])
            .json();
    assert_eq!((&json["tier"], &json["rule"]), (&"approval_required".into(), &"protected places".into()));
    let check_tool = |tool: &str| {
        let path = format!("path={}", fixture.workspace().join("a.txt").display());
        run_with_policy(&fixture, &["policy", "check", "--principal", "agent:a", tool, &path])
    };
    let decision = check_tool("filesystem.append");
    assert_eq!(decision.code, 0, "{}", decision.stderr);
    assert!(decision.text().starts_with("agent:a krux/filesystem.append: "), "{}", decision.text());
    let decision = check_tool("krux/filesystem.delete").text();
    assert_eq!(
        decision,
        "agent:a krux/filesystem.delete: approval_required (rule 'removals' of the system layer (line 1))\n"
    );
    let unknown = check_tool("filesystem.remov");
    assert!(unknown.code == 2 && unknown.stderr.contains("no operation 'filesystem.remov'"), "{}", unknown.stderr);
    let twice = check_tool("read_file");
    assert!(twice.code == 2 && twice.stderr.contains("several dialects have a tool 'read_file'"), "{}", twice.stderr);
    assert!(run_successfully(&fixture, &["policy", "list"]).text().contains("removals -> approval_required"));
    assert!(fixture.workspace().join("a.txt").exists());
}

#[test]
fn policy_file_in_the_workspace_is_protected_under_every_name() {
    let fixture = fixture_with_approver();
    let inside = fixture.workspace().join("rules.toml");
    std::fs::rename(fixture.directory.path().join("policy.toml"), &inside).unwrap();
    std::fs::hard_link(&inside, fixture.workspace().join("twin")).unwrap();
    std::os::unix::fs::symlink("rules.toml", fixture.workspace().join("link")).unwrap();
    let before = std::fs::read(&inside).unwrap();
    for arguments in [
        &["append", "rules.toml", "--content", "x"][..],
        &["append", "link", "--content", "x"],
        &["append", "twin", "--content", "x"],
        &["move", "a.txt", "rules.toml", "--overwrite"],
        &["move", "rules.toml", "b"],
        &["copy", "a.txt", "twin", "--overwrite"],
        &["lock", "rules.toml"],
    ] {
        let words = [&["--policy", "rules.toml"], arguments, &["--principal", "agent:a"]].concat();
        let ran = fixture.run(&words);
        assert!(ran.code == 3 && ran.stderr.contains("protected_path"), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(std::fs::read(&inside).unwrap(), before);
    let own = fixture.run(&["--policy", "rules.toml", "append", "rules.toml", "--content", "# a person may\n"]);
    assert_eq!(own.code, 0, "{}", own.stderr);
}

const APPEND_ARGUMENTS: &[&str] = &["append", "log", "--content", "x", "--principal", "agent:a", "--json"];

fn approved_append(fixture: &CliFixture) -> String {
    let id = run_with_policy(fixture, APPEND_ARGUMENTS).json()["error"]["approval"].as_str().unwrap().to_owned();
    run_successfully(fixture, &["approvals", "approve", &id, "--secret-file", "../secret"]);
    id
}

fn count_approval_uses(fixture: &CliFixture, id: &str) -> usize {
    let log = run_successfully(fixture, &["log", "--json"]).text();
    let rows = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| {
        let entry = &row["entry"];
        entry["approval"] == id && entry["changes"].as_array().is_some_and(|changes| !changes.is_empty())
    })
    .count()
}

#[test]
fn one_approval_is_used_once_by_many_processes() {
    let fixture = fixture_with_approver();
    let id = approved_append(&fixture);
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| run_with_policy(&fixture, APPEND_ARGUMENTS).code)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(std::fs::read(fixture.workspace().join("log")).unwrap(), b"x");
    assert_eq!(count_approval_uses(&fixture, &id), 1);
}

#[test]
fn killed_process_uses_an_approval_at_most_once() {
    let fixture = fixture_with_approver();
    let log = fixture.workspace().join("log");
    for round in 0..8_u64 {
        let before = std::fs::read(&log).map_or(0, |bytes| bytes.len());
        let id = approved_append(&fixture);
        let mut child = fixture
            .command(&[&["--policy", "../policy.toml"], APPEND_ARGUMENTS].concat())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        kill_after(&mut child, std::time::Duration::from_micros(3_000 + round * 4_000)).unwrap();
        // The next process completes the change if the killed process had recorded it.
        run_with_policy(&fixture, APPEND_ARGUMENTS);
        let after = std::fs::read(&log).unwrap().len();
        assert_eq!((after - before, count_approval_uses(&fixture, &id)), (1, 1), "round {round}");
    }
}

#[test]
fn supervisor_watch_shows_approvals_reports_and_violations() {
    let fixture = fixture_with_approver();
    let policy = fixture.directory.path().join("policy.toml");
    let mut rules = std::fs::read_to_string(&policy).unwrap();
    rules.push_str("[[system.rules]]\noperations = [\"write\"]\ntier = \"notify\"\n[[system.rules]]\noperations = [\"lock\"]\ntier = \"blocked\"\n");
    std::fs::write(&policy, rules).unwrap();
    let id = approved_append(&fixture);
    run_successfully(&fixture, APPEND_ARGUMENTS);
    run_successfully(&fixture, &["write", "n", "--content", "n", "--principal", "agent:a"]);
    assert_eq!(run_with_policy(&fixture, &["lock", "n", "--principal", "agent:a"]).code, 3);
    let outside = run_with_policy(&fixture, &["read", "../../secret", "--principal", "agent:a", "--json"]);
    assert_eq!(outside.json()["error"]["kind"], "invalid_path", "what an agent hears stays as it is");
    run_successfully(&fixture, &["read", "n", "--principal", "agent:a"]);
    let seen = run_successfully(&fixture, &["watch", "--supervisor", "--since", "0", "--no-wait", "--json"]).text();
    let events: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let reported = ["capability_invoked", "capability_result"];
    let expected = [
        &["approval_requested", "approval_resolved"][..],
        &reported,
        &reported,
        &["policy_violation"],
        &["policy_violation"],
    ]
    .concat();
    assert_eq!(types, expected, "{seen}");
    assert!(events[..3].iter().all(|event| event["data"]["approval"] == id.as_str()), "{seen}");
    let text = run_successfully(&fixture, &["watch", "--supervisor", "--since", "0", "--no-wait"]).text();
    assert!(text.contains("policy_violation agent:a lock error=policy_denied"), "{text}");
    assert!(text.contains("policy_violation agent:a read error=path_escape ../../secret"), "{text}");
}
