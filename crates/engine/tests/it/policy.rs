//! Tests of policy rules, mostly as a table of policies, calls and expected outcomes.

use serde_json::{Value, json};
use stead_engine::{CallOptions, Caller, ErrorKind, Policy, Principal, SupervisionTier};
use testkit::native::{EngineJsonCalls, JsonCall};
use testkit::{
    ErrorDetailsJson,
    engine_fixture::{EngineFixture, agent},
};

const FILES: &[(&str, &str)] = &[
    ("a.txt", "a\n"),
    ("src/main.rs", "m\n"),
    ("src/gen/x.rs", "x\n"),
    ("secret/key", "k\n"),
    (".vscode/x.json", "{}"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyTestExpectedOutcome {
    Runs(SupervisionTier),
    Fails(ErrorKind),
}
use PolicyTestExpectedOutcome::{Fails, Runs};

const AUTONOMOUS: PolicyTestExpectedOutcome = Runs(SupervisionTier::Autonomous);
const NEEDS_APPROVAL: PolicyTestExpectedOutcome = Fails(ErrorKind::ApprovalPending);
const BLOCKED: PolicyTestExpectedOutcome = Fails(ErrorKind::PolicyDenied);

fn result_of_call(
    policy: &str,
    principal: &str,
    operation: &str,
    arguments: Value,
    terms: CallOptions,
) -> PolicyTestExpectedOutcome {
    let fixture = EngineFixture::with_files(FILES);
    fixture.workspace.set_policy(policy);
    let caller = Caller::new(Principal::parse(principal).unwrap(), "s", "test");
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let mut call = JsonCall::new(&caller, operation, arguments);
    call.options = terms;
    let outcome = fixture.engine.call(&call);
    let entry = fixture.engine.workspace().entry(fixture.entry_count()).unwrap().unwrap().entry;
    match outcome {
        Ok(_) => Runs(entry.tier.map_or(SupervisionTier::Autonomous, |tier| tier.parse().unwrap())),
        Err(error) => {
            assert_eq!(entry.reason.as_deref(), Some(error.kind.code()), "{error}");
            Fails(error.kind)
        }
    }
}

const GENERATED_FILES_POLICY: &str = r#"
[[system.rules]]
name = "generated code"
paths = ["src/gen/**"]
rights = ["create", "modify", "delete"]
tier = "approval_required"
"#;
const SECRETS_POLICY: &str = "[[system.rules]]\npaths = [\"secret/**\"]\ntier = \"blocked\"\n";
const LAYERED_POLICY: &str = r#"
[[system.rules]]
operations = ["remove"]
tier = "notify"
[[organisation.rules]]
operations = ["remove"]
paths = ["src/**"]
tier = "approval_required"
[[agent."agent:one".rules]]
operations = ["remove"]
paths = ["src/gen/**"]
tier = "blocked"
"#;
const FIRST_RULE_POLICY: &str = r#"
[[system.rules]]
paths = ["src/main.rs"]
tier = "autonomous"
[[system.rules]]
paths = ["src/**"]
tier = "blocked"
"#;
const WILDCARD_POLICY: &str = "[[system.rules]]\npaths = [\"**\"]\ntier = \"autonomous\"\n";
const NAMED_PATH_POLICY: &str = "[[system.rules]]\npaths = [\".vscode/**\"]\ntier = \"notify\"\n";
const LARGE_FILE_POLICY: &str = "[[system.rules]]\nsize_over = 3\ntier = \"approval_required\"\n";
const DEFAULTS_POLICY: &str = "[system]\ndefault = \"notify\"\n[organisation]\ndefault = \"autonomous\"\n";
const PEOPLE_POLICY: &str =
    "[[system.rules]]\nprincipals = [\"user:*\"]\noperations = [\"remove\"]\ntier = \"blocked\"\n";
const AGENTS_POLICY: &str = "[[agent.\"agent:*\".rules]]\nrights = [\"delete\"]\ntier = \"blocked\"\n";

#[test]
fn policy_cases() {
    let (one, user) = ("agent:one", "user:ann");
    let cases = [
        ("", one, "write", json!({ "path": "n", "content": "" }), AUTONOMOUS),
        ("", one, "write", json!({ "path": ".vscode/n", "content": "" }), NEEDS_APPROVAL),
        ("", user, "write", json!({ "path": ".vscode/n", "content": "" }), AUTONOMOUS),
        (GENERATED_FILES_POLICY, one, "write", json!({ "path": "src/gen/n", "content": "" }), NEEDS_APPROVAL),
        (GENERATED_FILES_POLICY, one, "write", json!({ "path": "src/n", "content": "" }), AUTONOMOUS),
        (GENERATED_FILES_POLICY, one, "read", json!({ "path": "src/gen/x.rs" }), AUTONOMOUS),
        (GENERATED_FILES_POLICY, one, "remove", json!({ "path": "src", "recursive": true }), NEEDS_APPROVAL),
        (GENERATED_FILES_POLICY, one, "move", json!({ "from": "src", "to": "other" }), NEEDS_APPROVAL),
        (GENERATED_FILES_POLICY, one, "move", json!({ "from": "a.txt", "to": "src/gen/a" }), NEEDS_APPROVAL),
        (GENERATED_FILES_POLICY, one, "copy", json!({ "from": "src/gen/x.rs", "to": "x" }), AUTONOMOUS),
        (GENERATED_FILES_POLICY, one, "copy", json!({ "from": "a.txt", "to": "src/gen/a" }), NEEDS_APPROVAL),
        (GENERATED_FILES_POLICY, user, "write", json!({ "path": "src/gen/n", "content": "" }), NEEDS_APPROVAL),
        (SECRETS_POLICY, one, "read", json!({ "path": "secret/key" }), BLOCKED),
        (SECRETS_POLICY, one, "list", json!({ "path": "secret" }), BLOCKED),
        (SECRETS_POLICY, one, "copy", json!({ "from": "secret/key", "to": "k" }), BLOCKED),
        (SECRETS_POLICY, one, "move", json!({ "from": "secret", "to": "k" }), BLOCKED),
        (SECRETS_POLICY, one, "write", json!({ "path": "secret/n", "content": "" }), BLOCKED),
        (SECRETS_POLICY, one, "remove", json!({ "path": "secret", "recursive": true }), BLOCKED),
        (LAYERED_POLICY, one, "remove", json!({ "path": "a.txt" }), Runs(SupervisionTier::Notify)),
        (LAYERED_POLICY, one, "remove", json!({ "path": "src/main.rs" }), NEEDS_APPROVAL),
        (LAYERED_POLICY, one, "remove", json!({ "path": "src/gen/x.rs" }), BLOCKED),
        (LAYERED_POLICY, "agent:two", "remove", json!({ "path": "src/gen/x.rs" }), NEEDS_APPROVAL),
        (FIRST_RULE_POLICY, one, "remove", json!({ "path": "src/main.rs" }), AUTONOMOUS),
        (FIRST_RULE_POLICY, one, "remove", json!({ "path": "src/gen/x.rs" }), BLOCKED),
        (WILDCARD_POLICY, one, "remove", json!({ "path": ".vscode/x.json" }), NEEDS_APPROVAL),
        (NAMED_PATH_POLICY, one, "remove", json!({ "path": ".vscode/x.json" }), Runs(SupervisionTier::Notify)),
        (NAMED_PATH_POLICY, one, "write", json!({ "path": ".git/config", "content": "" }), NEEDS_APPROVAL),
        (LARGE_FILE_POLICY, one, "write", json!({ "path": "n", "content": "abc" }), AUTONOMOUS),
        (LARGE_FILE_POLICY, one, "write", json!({ "path": "n", "content": "abcd" }), NEEDS_APPROVAL),
        (LARGE_FILE_POLICY, one, "append", json!({ "path": "a.txt", "content": "abcd" }), NEEDS_APPROVAL),
        (DEFAULTS_POLICY, one, "read", json!({ "path": "a.txt" }), Runs(SupervisionTier::Notify)),
        (PEOPLE_POLICY, user, "remove", json!({ "path": "a.txt" }), BLOCKED),
        (PEOPLE_POLICY, one, "remove", json!({ "path": "a.txt" }), AUTONOMOUS),
        (AGENTS_POLICY, one, "remove", json!({ "path": "a.txt" }), BLOCKED),
        (AGENTS_POLICY, one, "move", json!({ "from": "a.txt", "to": "b" }), BLOCKED),
        (AGENTS_POLICY, user, "remove", json!({ "path": "a.txt" }), AUTONOMOUS),
    ];
    for (policy, principal, operation, arguments, expected) in cases {
        let got = result_of_call(policy, principal, operation, arguments.clone(), CallOptions::default());
        assert_eq!(got, expected, "{policy}\n{principal} {operation} {arguments}");
    }
}

#[test]
fn tool_tier_applies_unless_a_rule_matches() {
    let terms = |tier| CallOptions {
        tool: Some("krux/filesystem.delete".to_owned()),
        declared_tier: Some(tier),
        ..CallOptions::default()
    };
    let remove = |policy: &str, principal: &str, tier| {
        result_of_call(policy, principal, "remove", json!({ "path": "a.txt" }), terms(tier))
    };
    let freed = "[[system.rules]]\noperations = [\"filesystem.*\"]\ntier = \"autonomous\"\n";
    let other = "[[system.rules]]\noperations = [\"krux/filesystem.write\"]\ntier = \"autonomous\"\n";
    assert_eq!(remove("", "agent:one", SupervisionTier::Notify), Runs(SupervisionTier::Notify));
    assert_eq!(remove("", "agent:one", SupervisionTier::ApprovalRequired), NEEDS_APPROVAL);
    assert_eq!(remove("", "user:ann", SupervisionTier::ApprovalRequired), AUTONOMOUS);
    assert_eq!(remove(freed, "agent:one", SupervisionTier::ApprovalRequired), AUTONOMOUS);
    assert_eq!(remove(other, "agent:one", SupervisionTier::ApprovalRequired), NEEDS_APPROVAL);
    assert_eq!(
        remove("[system]\ndefault = \"autonomous\"\n", "agent:one", SupervisionTier::ApprovalRequired),
        NEEDS_APPROVAL
    );
}

#[test]
fn blocked_paths_are_hidden_from_walks() {
    let fixture = EngineFixture::with_files(FILES);
    fixture.workspace.set_policy(SECRETS_POLICY);
    let listed = fixture.call_text("list", json!({ "depth": 9, "all": true }));
    assert!(!listed.contains("secret/key"), "{listed}");
    assert_eq!(fixture.call_ok("search", json!({ "query": "k" }))["total"], 0);
    assert_eq!(fixture.call_ok("find", json!({ "pattern": "key" }))["total"], 0);
}

#[test]
fn restore_of_tree_is_checked_for_every_possible_entry() {
    let fixture = EngineFixture::with_files(FILES);
    let trash = fixture.call_ok("remove", json!({ "path": "src", "recursive": true }))["trash"].clone();
    fixture.workspace.set_policy(GENERATED_FILES_POLICY);
    fixture.call_err("restore", json!({ "trash": trash }), ErrorKind::ApprovalPending);
    fixture.call_err("undo", json!({}), ErrorKind::ApprovalPending);
}

#[test]
fn agent_cannot_change_policy_file_inside_the_workspace() {
    let fixture = EngineFixture::with_files(&[("conf/policy.toml", ""), ("a.txt", "a\n"), ("innocent", "x")]);
    fixture.workspace.put_link("link", "conf/policy.toml");
    let trash = fixture.call_ok("remove", json!({ "path": "innocent" }))["trash"].clone();
    fixture.workspace.protect_policy_file("conf/policy.toml");
    let patch = "*** Begin Patch\n*** Delete File: conf/policy.toml\n*** End Patch\n";
    for (operation, arguments) in [
        ("write", json!({ "path": "conf/policy.toml", "content": "x", "base": "r1" })),
        ("write", json!({ "path": "link", "content": "x" })),
        ("append", json!({ "path": "conf/policy.toml", "content": "x" })),
        ("edit", json!({ "path": "conf/policy.toml", "edits": [{ "old": "", "new": "x" }] })),
        ("patch", json!({ "patch": patch })),
        ("remove", json!({ "path": "conf/policy.toml" })),
        ("remove", json!({ "path": "conf", "recursive": true })),
        ("move", json!({ "from": "conf", "to": "c" })),
        ("move", json!({ "from": "conf/policy.toml", "to": "c" })),
        ("move", json!({ "from": "a.txt", "to": "conf/policy.toml", "overwrite": true })),
        ("copy", json!({ "from": "a.txt", "to": "conf/policy.toml", "overwrite": true })),
        ("restore", json!({ "trash": trash, "to": "conf/policy.toml" })),
        ("lock", json!({ "path": "conf/policy.toml" })),
    ] {
        let error = fixture.call(operation, arguments.clone()).expect_err("the policy stays");
        let refused = [
            ErrorKind::ProtectedPath,
            ErrorKind::Exists,
            ErrorKind::BaseRequired,
            ErrorKind::Stale,
            ErrorKind::TextNotFound,
            ErrorKind::BadRequest,
        ];
        assert!(refused.contains(&error.kind), "{operation} {arguments}: {error}");
        assert!(error.kind == ErrorKind::ProtectedPath || operation == "restore", "{operation} {arguments}: {error}");
    }
    assert_eq!(fixture.call_ok("read", json!({ "path": "conf/policy.toml" }))["size"], 0);
}

#[test]
fn malformed_policy_error_has_line_number() {
    for (text, line, word) in [
        ("[system]\ndefault = \"open\"\n", 2, "no tier"),
        ("[system]\n\ntire = \"notify\"\n", 3, "unknown field"),
        ("[sytem]\n", 1, "unknown field"),
        ("[[system.rules]]\nname = \"x\"\n", 1, "tier"),
        ("[[system.rules]]\npaths = [\"a[\"]\ntier = \"notify\"\n", 2, "pattern"),
        ("[[system.rules]]\npaths = [\"../x\"]\ntier = \"notify\"\n", 2, "relative"),
        ("[[system.rules]]\npaths = []\ntier = \"notify\"\n", 2, "empty"),
        ("[[system.rules]]\nrights = [\"write\"]\ntier = \"notify\"\n", 2, "unknown right"),
        ("[[system.rules]]\noperations = [\"re*\"]\ntier = \"notify\"\n", 2, "operation pattern"),
        ("[[system.rules]]\noperations = [\"read\", \"removee\"]\ntier = \"blocked\"\n", 2, "did you mean 'remove'?"),
        ("[[system.rules]]\noperations = [\"delete\"]\ntier = \"blocked\"\n", 2, "rights = [\"delete\"]"),
        (
            "[system.rate]\noperations = [\"filesystem__*\"]\ncalls = 1\nper_seconds = 1\nthen = \"blocked\"\n",
            2,
            "operation pattern",
        ),
        ("[[system.rules]]\nprincipals = [\"root\"]\ntier = \"notify\"\n", 2, "not a principal"),
        ("[agent.\"user:x\"]\ndefault = \"notify\"\n", 1, "not an agent"),
        ("[system.rate]\ncalls = 0\nper_seconds = 1\nthen = \"blocked\"\n", 1, "at least 1"),
        ("[system.rate]\ncalls = 1\nper_seconds = 1\nthen = \"notify\"\n", 4, "approval_required or blocked"),
        ("[system.retention]\nagent_hours = 0\n", 2, "at least one hour"),
        ("[system.quota]\nbytes = -1\n", 2, ""),
        ("[system\n", 1, ""),
    ] {
        let error = Policy::parse(text).expect_err(text);
        assert_eq!(error.line, line, "{text}: {error}");
        assert!(error.reason.contains(word), "{text}: {error}");
    }
}

#[test]
fn rate_limit_refuses_or_requires_approval_until_time_passes() {
    let fixture = EngineFixture::with_files(FILES);
    let read = || fixture.call("read", json!({ "path": "a.txt" }));
    fixture.workspace.set_policy("[system.rate]\ncalls = 3\nper_seconds = 10\nthen = \"blocked\"\n");
    for _ in 0..3 {
        read().unwrap();
    }
    for _ in 0..5 {
        let error = read().expect_err("too often");
        assert_eq!(error.kind, ErrorKind::RateLimited, "{error}");
        assert!(error.details_json()["retry_after_ms"].as_i64().unwrap() > 0);
    }
    // The rate limit applies to all sessions of one agent, but not to another agent.
    let second = Caller { session: "another".to_owned(), ..agent("one") };
    let again = fixture.call_as(&second, "read", json!({ "path": "a.txt" }));
    assert_eq!(again.expect_err("the same agent").kind, ErrorKind::RateLimited);
    fixture.call_as(&agent("two"), "read", json!({ "path": "a.txt" })).unwrap();
    fixture.workspace.advance_ms(10_001);
    read().unwrap();
    fixture.workspace.set_policy(
        "[system.rate]\ncalls = 1\nper_seconds = 10\nthen = \"approval_required\"\nrights = [\"delete\"]\n",
    );
    read().unwrap();
    fixture.call_err("remove", json!({ "path": "a.txt" }), ErrorKind::ApprovalPending);
}

#[test]
fn strictest_layer_decides_retention() {
    let fixture = EngineFixture::with_files(FILES);
    fixture.workspace.set_policy("[system.retention]\nagent_hours = 2\n[organisation.retention]\nagent_hours = 3\n");
    let until = fixture.call_ok("remove", json!({ "path": "a.txt" }))["recoverable_until"].clone();
    assert_eq!(until, "2026-01-01T02:00:00.000Z");
}

#[test]
fn policy_operation_names_the_rule_and_changes_nothing() {
    let fixture = EngineFixture::with_files(FILES);
    fixture.workspace.set_policy(GENERATED_FILES_POLICY);
    let asked = json!({ "operation": "remove", "arguments": { "path": "src", "recursive": true } });
    let outcome = fixture.call_ok("policy", asked);
    assert_eq!(outcome["tier"], "approval_required");
    assert_eq!(outcome["rule"], "generated code");
    assert_eq!(outcome["why"], "rule 'generated code' of the system layer (line 2)");
    let missing = json!({ "operation": "remove", "arguments": { "path": "nowhere" } });
    assert_eq!(fixture.call_ok("policy", missing)["kind"], "not_found");
    fixture.call_ok("read", json!({ "path": "src/gen/x.rs" }));
    assert_eq!(
        fixture.engine.workspace().approvals(&stead_engine::ApprovalFilter { limit: 9, ..Default::default() }).unwrap(),
        []
    );
    let other = json!({ "operation": "remove", "arguments": { "path": "a.txt" }, "principal": "user:ann" });
    fixture.call_err("policy", other, ErrorKind::OutOfScope);
}
