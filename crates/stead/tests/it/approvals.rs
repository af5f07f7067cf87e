//! A person answers an agent's question from another terminal, and whatever an agent may try to answer itself.

use serde_json::Value;

use crate::bench::{Bench, Ran};

const SECRET: &str = "correct horse\n";

/// A bench with a policy, a file and an approver's secret.
fn bench() -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.place.path().join("secret"), SECRET).unwrap();
    std::fs::write(
        bench.place.path().join("policy.toml"),
        "[[system.rules]]\nname = \"removals\"\noperations = [\"remove\", \"append\"]\nprincipals = [\"agent:*\"]\ntier = \"approval_required\"\n",
    )
    .unwrap();
    std::fs::write(bench.workspace().join("a.txt"), "a\n").unwrap();
    ok(&bench, &["approvals", "setup", "--secret-file", "../secret"]);
    bench
}

fn run(bench: &Bench, arguments: &[&str]) -> Ran {
    bench.run(&[&["--policy", "../policy.toml"], arguments].concat())
}

#[track_caller]
fn ok(bench: &Bench, arguments: &[&str]) -> Ran {
    let ran = run(bench, arguments);
    assert_eq!(ran.code, 0, "{arguments:?}: {}", ran.err);
    ran
}

const REMOVE: &[&str] = &["remove", "a.txt", "--principal", "agent:a", "--json"];

fn asked(bench: &Bench) -> String {
    let ran = run(bench, REMOVE);
    assert_eq!(ran.code, 3, "{}", ran.err);
    let error = ran.json()["error"].clone();
    assert_eq!(error["kind"], "approval_pending");
    error["approval"].as_str().unwrap().to_owned()
}

#[test]
fn one_terminal_asks_and_another_answers() {
    let bench = bench();
    let id = asked(&bench);
    assert!(ok(&bench, &["approvals", "list"]).text().contains(&id));
    let shown = ok(&bench, &["approvals", "show", &id]).text();
    for word in ["agent:a", "remove a.txt", "rule 'removals' of the system layer (line 1)"] {
        assert!(shown.contains(word), "{shown}");
    }
    ok(&bench, &["approvals", "approve", &id, "--secret-file", "../secret", "--reason", "fine"]);
    let entry = ok(&bench, REMOVE).json()["entry"].clone();
    assert!(!bench.workspace().join("a.txt").exists());
    // The audit tells the whole story.
    let log = ok(&bench, &["log", "--json"]).text();
    let rows: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let with = |operation: &str| {
        rows.iter()
            .filter(|row| row["entry"]["operation"] == operation && row["entry"]["approval"] == id.as_str())
            .count()
    };
    assert_eq!((with("remove"), with("approve")), (2, 1), "{log}");
    let used = ok(&bench, &["approvals", "show", &id, "--json"]).json();
    assert_eq!(
        (&used["state"], &used["used"], &used["answered_by"]),
        (&"used".into(), &entry, &"user:tester".into())
    );
    ok(&bench, &["log", "verify"]);
}

#[test]
fn a_yes_needs_the_secret_and_wrong_ones_wait() {
    let bench = bench();
    let id = asked(&bench);
    std::fs::write(bench.place.path().join("wrong"), "a guess\n").unwrap();
    let guess = ["approvals", "approve", &id, "--secret-file", "../wrong"];
    for _ in 0..3 {
        let ran = run(&bench, &guess);
        assert!(ran.code == 3 && ran.err.contains("not the approver's secret"), "{}", ran.err);
    }
    // Now even the right one waits.
    let right = run(&bench, &["approvals", "approve", &id, "--secret-file", "../secret"]);
    assert!(right.code == 3 && right.err.contains("rate_limited"), "{}", right.err);
    assert_eq!(ok(&bench, &["approvals", "show", &id, "--json"]).json()["state"], "pending");
}

#[test]
fn an_agent_s_name_does_not_answer_whatever_it_knows() {
    let bench = bench();
    let id = asked(&bench);
    let own = ["approvals", "approve", &id, "--secret-file", "../secret", "--principal", "agent:a"];
    let ran = run(&bench, &own);
    assert!(ran.code == 3 && ran.err.contains("only a person"), "{}", ran.err);
    // The operations themselves are no commands.
    assert_eq!(run(&bench, &["approve", &id]).code, 2);
    assert_eq!(run(&bench, &["deny", &id]).code, 2);
    let unset = Bench::new();
    let ran = unset.run(&["approvals", "approve", &id, "--secret-file", "/dev/null"]);
    assert!(ran.code == 3 && ran.err.contains("approvals setup"), "{}", ran.err);
}

#[test]
fn a_secret_is_replaced_only_by_who_knows_it() {
    let bench = bench();
    std::fs::write(bench.place.path().join("new"), "another secret\n").unwrap();
    let blind =
        run(&bench, &["approvals", "setup", "--secret-file", "../new", "--old-secret-file", "../new"]);
    assert_eq!(blind.code, 3, "{}", blind.err);
    ok(&bench, &["approvals", "setup", "--secret-file", "../new", "--old-secret-file", "../secret"]);
    let id = asked(&bench);
    assert_eq!(run(&bench, &["approvals", "approve", &id, "--secret-file", "../secret"]).code, 3);
    ok(&bench, &["approvals", "approve", &id, "--secret-file", "../new"]);
    let made = Bench::new().ok(&["approvals", "setup", "--generate"]).text();
    assert_eq!(made.trim().len(), 40, "{made}");
}

#[test]
fn always_writes_a_rule_that_the_person_sees() {
    let bench = bench();
    let id = asked(&bench);
    let ran = ok(&bench, &["approvals", "approve", &id, "--secret-file", "../secret", "--always", "--yes"]);
    assert!(ran.err.contains("tier = \"autonomous\""), "{}", ran.err);
    let policy = std::fs::read_to_string(bench.place.path().join("policy.toml")).unwrap();
    assert!(policy.starts_with("# Written by user:tester on "), "{policy}");
    ok(&bench, REMOVE);
    std::fs::write(bench.workspace().join("a.txt"), "again\n").unwrap();
    ok(&bench, REMOVE);
    std::fs::write(bench.workspace().join("b.txt"), "b\n").unwrap();
    assert_eq!(run(&bench, &["remove", "b.txt", "--principal", "agent:a"]).code, 3);
    // The rule is about that place and not about its name.
    std::fs::create_dir_all(bench.workspace().join("deep")).unwrap();
    std::fs::write(bench.workspace().join("deep/a.txt"), "a\n").unwrap();
    assert_eq!(run(&bench, &["remove", "deep/a.txt", "--principal", "agent:a"]).code, 3);
}

#[test]
fn no_rule_is_written_against_a_rate() {
    let bench = bench();
    let rate = "[system.rate]\ncalls = 1\nper_seconds = 1000\nthen = \"approval_required\"\n";
    std::fs::write(bench.place.path().join("policy.toml"), rate).unwrap();
    run(&bench, &["stat", "a.txt", "--principal", "agent:a"]);
    let id = asked(&bench);
    let ran = run(&bench, &["approvals", "approve", &id, "--secret-file", "../secret", "--always", "--yes"]);
    assert!(ran.code == 2 && ran.err.contains("how often"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(bench.place.path().join("policy.toml")).unwrap(), rate);
    ok(&bench, &["approvals", "approve", &id, "--secret-file", "../secret"]);
    // Nor for a question that is answered already.
    let again =
        run(&bench, &["approvals", "approve", &id, "--secret-file", "../secret", "--always", "--yes"]);
    assert!(again.code == 4 && !again.err.contains("this rule goes into"), "{}", again.err);
    ok(&bench, REMOVE);
}

#[test]
fn a_malformed_policy_stops_everything_with_its_line() {
    let bench = bench();
    std::fs::write(bench.place.path().join("policy.toml"), "[system]\ndefault = \"open\"\n").unwrap();
    for command in [&["read", "a.txt"][..], &["mcp"], &["rpc"]] {
        let ran = run(&bench, command);
        assert!(
            ran.code == 3 && ran.err.contains("line 2: there is no tier 'open'"),
            "{command:?}: {}",
            ran.err
        );
    }
    let missing = bench.run(&["--policy", "../none.toml", "read", "a.txt"]);
    assert!(missing.code == 3 && missing.err.contains("no such file"), "{}", missing.err);
    std::os::unix::fs::symlink("policy.toml", bench.place.path().join("link.toml")).unwrap();
    let linked = bench.run(&["--policy", "../link.toml", "read", "a.txt"]);
    assert_eq!(linked.code, 3, "{}", linked.err);
}

#[test]
fn a_check_explains_without_running() {
    let bench = bench();
    let told = ok(&bench, &["policy", "check", "--principal", "agent:a", "remove", "path=a.txt"]).text();
    assert_eq!(told, "agent:a remove: approval_required (rule 'removals' of the system layer (line 1))\n");
    let json =
        ok(&bench, &["policy", "check", "--json", "write", "{\"path\":\".git/x\",\"content\":\"\"}"]).json();
    assert_eq!((&json["tier"], &json["rule"]), (&"approval_required".into(), &"protected places".into()));
    let of_tool = |tool: &str| {
        let path = format!("path={}", bench.workspace().join("a.txt").display());
        run(&bench, &["policy", "check", "--principal", "agent:a", tool, &path])
    };
    let told = of_tool("filesystem.append");
    assert_eq!(told.code, 0, "{}", told.err);
    assert!(told.text().starts_with("agent:a krux/filesystem.append: "), "{}", told.text());
    let told = of_tool("krux/filesystem.delete").text();
    assert_eq!(
        told,
        "agent:a krux/filesystem.delete: approval_required (rule 'removals' of the system layer (line 1))\n"
    );
    let unknown = of_tool("filesystem.remov");
    assert!(unknown.code == 2 && unknown.err.contains("no operation 'filesystem.remov'"), "{}", unknown.err);
    let twice = of_tool("read_file");
    assert!(twice.code == 2 && twice.err.contains("say which"), "{}", twice.err);
    assert!(ok(&bench, &["policy", "list"]).text().contains("removals -> approval_required"));
    assert!(bench.workspace().join("a.txt").exists());
}

#[test]
fn a_policy_in_the_workspace_is_kept_from_agents_by_every_name() {
    let bench = bench();
    let inside = bench.workspace().join("rules.toml");
    std::fs::rename(bench.place.path().join("policy.toml"), &inside).unwrap();
    std::fs::hard_link(&inside, bench.workspace().join("twin")).unwrap();
    std::os::unix::fs::symlink("rules.toml", bench.workspace().join("link")).unwrap();
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
        let ran = bench.run(&words);
        assert!(ran.code == 3 && ran.err.contains("protected_path"), "{arguments:?}: {}", ran.err);
    }
    assert_eq!(std::fs::read(&inside).unwrap(), before);
    let own = bench.run(&["--policy", "rules.toml", "append", "rules.toml", "--content", "# a person may\n"]);
    assert_eq!(own.code, 0, "{}", own.err);
}

const APPEND: &[&str] = &["append", "log", "--content", "x", "--principal", "agent:a", "--json"];

fn approved_append(bench: &Bench) -> String {
    let id = run(bench, APPEND).json()["error"]["approval"].as_str().unwrap().to_owned();
    ok(bench, &["approvals", "approve", &id, "--secret-file", "../secret"]);
    id
}

/// How many entries changed something with this approval.
fn uses(bench: &Bench, id: &str) -> usize {
    let log = ok(bench, &["log", "--json"]).text();
    let rows = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.filter(|row| {
        let entry = &row["entry"];
        entry["approval"] == id && entry["changes"].as_array().is_some_and(|changes| !changes.is_empty())
    })
    .count()
}

#[test]
fn many_processes_use_one_yes_once() {
    let bench = bench();
    let id = approved_append(&bench);
    let codes: Vec<i32> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..6).map(|_| scope.spawn(|| run(&bench, APPEND).code)).collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(std::fs::read(bench.workspace().join("log")).unwrap(), b"x");
    assert_eq!(uses(&bench, &id), 1);
}

#[test]
fn a_killed_process_leaves_a_yes_used_once_or_not_at_all() {
    let bench = bench();
    let log = bench.workspace().join("log");
    for round in 0..8_u64 {
        let before = std::fs::read(&log).map_or(0, |bytes| bytes.len());
        let id = approved_append(&bench);
        let mut child = bench
            .command(&[&["--policy", "../policy.toml"], APPEND].concat())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_micros(3_000 + round * 4_000);
        while std::time::Instant::now() < until && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        drop(child.kill());
        child.wait().unwrap();
        // Whatever it had recorded is finished by the next to come; one more try may use what was left.
        run(&bench, APPEND);
        let after = std::fs::read(&log).unwrap().len();
        assert_eq!((after - before, uses(&bench, &id)), (1, 1), "round {round}");
    }
}

#[test]
fn a_supervisor_sees_questions_answers_told_calls_and_violations() {
    let bench = bench();
    let policy = bench.place.path().join("policy.toml");
    let mut rules = std::fs::read_to_string(&policy).unwrap();
    rules.push_str("[[system.rules]]\noperations = [\"write\"]\ntier = \"notify\"\n[[system.rules]]\noperations = [\"lock\"]\ntier = \"blocked\"\n");
    std::fs::write(&policy, rules).unwrap();
    let id = approved_append(&bench);
    ok(&bench, APPEND);
    ok(&bench, &["write", "n", "--content", "n", "--principal", "agent:a"]);
    assert_eq!(run(&bench, &["lock", "n", "--principal", "agent:a"]).code, 3);
    let outside = run(&bench, &["read", "../../secret", "--principal", "agent:a", "--json"]);
    assert_eq!(outside.json()["error"]["kind"], "invalid_path", "what an agent hears stays as it is");
    ok(&bench, &["read", "n", "--principal", "agent:a"]);
    let seen = ok(&bench, &["watch", "--supervisor", "--since", "0", "--no-wait", "--json"]).text();
    let events: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let told = ["capability_invoked", "capability_result"];
    let expected = [
        &["approval_requested", "approval_resolved"][..],
        &told,
        &told,
        &["policy_violation"],
        &["policy_violation"],
    ]
    .concat();
    assert_eq!(types, expected, "{seen}");
    assert!(events[..3].iter().all(|event| event["data"]["approval"] == id.as_str()), "{seen}");
    let text = ok(&bench, &["watch", "--supervisor", "--since", "0", "--no-wait"]).text();
    assert!(text.contains("policy_violation agent:a lock error=policy_denied"), "{text}");
    assert!(text.contains("policy_violation agent:a read error=path_escape ../../secret"), "{text}");
}
