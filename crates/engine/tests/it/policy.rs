//! What rules make of calls: a table of policy, call and outcome.

use engine::{Call, Caller, Kind, Policy, Principal, Terms, Tier};
use serde_json::{Value, json};

use crate::world::{World, agent};

/// The files of every case.
const FILES: &[(&str, &str)] = &[
    ("a.txt", "a\n"),
    ("src/main.rs", "m\n"),
    ("src/gen/x.rs", "x\n"),
    ("secret/key", "k\n"),
    (".vscode/x.json", "{}"),
];

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gets {
    Runs(Tier),
    Fails(Kind),
}
use Gets::{Fails, Runs};

const FREE: Gets = Runs(Tier::Autonomous);
const ASKED: Gets = Fails(Kind::ApprovalPending);
const BLOCKED: Gets = Fails(Kind::PolicyDenied);

fn gets(policy: &str, principal: &str, operation: &str, arguments: Value, terms: Terms) -> Gets {
    let world = World::with(FILES);
    world.workspace.set_policy(policy);
    let caller = Caller::new(Principal::parse(principal).unwrap(), "s", "test");
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let mut call = Call::new(&caller, operation, arguments);
    call.terms = terms;
    let outcome = world.engine.call(&call);
    let entry = world.engine.workspace().entry(world.entries()).unwrap().unwrap().entry;
    match outcome {
        Ok(_) => Runs(entry.tier.map_or(Tier::Autonomous, |tier| tier.parse().unwrap())),
        Err(failure) => {
            assert_eq!(entry.reason.as_deref(), Some(failure.kind.code()), "{failure}");
            Fails(failure.kind)
        }
    }
}

const GENERATED: &str = r#"
[[system.rules]]
name = "generated code"
paths = ["src/gen/**"]
rights = ["create", "modify", "delete"]
tier = "approval_required"
"#;
const SECRETS: &str = "[[system.rules]]\npaths = [\"secret/**\"]\ntier = \"blocked\"\n";
const LAYERS: &str = r#"
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
const FIRST: &str = r#"
[[system.rules]]
paths = ["src/main.rs"]
tier = "autonomous"
[[system.rules]]
paths = ["src/**"]
tier = "blocked"
"#;
const WIDE: &str = "[[system.rules]]\npaths = [\"**\"]\ntier = \"autonomous\"\n";
const NAMED: &str = "[[system.rules]]\npaths = [\".vscode/**\"]\ntier = \"notify\"\n";
const LARGE: &str = "[[system.rules]]\nsize_over = 3\ntier = \"approval_required\"\n";
const DEFAULTS: &str = "[system]\ndefault = \"notify\"\n[organisation]\ndefault = \"autonomous\"\n";
const PEOPLE: &str =
    "[[system.rules]]\nprincipals = [\"user:*\"]\noperations = [\"remove\"]\ntier = \"blocked\"\n";
const AGENTS: &str = "[[agent.\"agent:*\".rules]]\nrights = [\"delete\"]\ntier = \"blocked\"\n";

#[test]
fn every_case_of_the_table_holds() {
    let (one, user) = ("agent:one", "user:ann");
    let cases = [
        ("", one, "write", json!({ "path": "n", "content": "" }), FREE),
        ("", one, "write", json!({ "path": ".vscode/n", "content": "" }), ASKED),
        ("", user, "write", json!({ "path": ".vscode/n", "content": "" }), FREE),
        (GENERATED, one, "write", json!({ "path": "src/gen/n", "content": "" }), ASKED),
        (GENERATED, one, "write", json!({ "path": "src/n", "content": "" }), FREE),
        (GENERATED, one, "read", json!({ "path": "src/gen/x.rs" }), FREE),
        (GENERATED, one, "remove", json!({ "path": "src", "recursive": true }), ASKED),
        (GENERATED, one, "move", json!({ "from": "src", "to": "other" }), ASKED),
        (GENERATED, one, "move", json!({ "from": "a.txt", "to": "src/gen/a" }), ASKED),
        (GENERATED, one, "copy", json!({ "from": "src/gen/x.rs", "to": "x" }), FREE),
        (GENERATED, one, "copy", json!({ "from": "a.txt", "to": "src/gen/a" }), ASKED),
        (GENERATED, user, "write", json!({ "path": "src/gen/n", "content": "" }), ASKED),
        (SECRETS, one, "read", json!({ "path": "secret/key" }), BLOCKED),
        (SECRETS, one, "list", json!({ "path": "secret" }), BLOCKED),
        (SECRETS, one, "copy", json!({ "from": "secret/key", "to": "k" }), BLOCKED),
        (SECRETS, one, "move", json!({ "from": "secret", "to": "k" }), BLOCKED),
        (SECRETS, one, "write", json!({ "path": "secret/n", "content": "" }), BLOCKED),
        (SECRETS, one, "remove", json!({ "path": "secret", "recursive": true }), BLOCKED),
        (LAYERS, one, "remove", json!({ "path": "a.txt" }), Runs(Tier::Notify)),
        (LAYERS, one, "remove", json!({ "path": "src/main.rs" }), ASKED),
        (LAYERS, one, "remove", json!({ "path": "src/gen/x.rs" }), BLOCKED),
        (LAYERS, "agent:two", "remove", json!({ "path": "src/gen/x.rs" }), ASKED),
        (FIRST, one, "remove", json!({ "path": "src/main.rs" }), FREE),
        (FIRST, one, "remove", json!({ "path": "src/gen/x.rs" }), BLOCKED),
        (WIDE, one, "remove", json!({ "path": ".vscode/x.json" }), ASKED),
        (NAMED, one, "remove", json!({ "path": ".vscode/x.json" }), Runs(Tier::Notify)),
        (NAMED, one, "write", json!({ "path": ".git/config", "content": "" }), ASKED),
        (LARGE, one, "write", json!({ "path": "n", "content": "abc" }), FREE),
        (LARGE, one, "write", json!({ "path": "n", "content": "abcd" }), ASKED),
        (LARGE, one, "append", json!({ "path": "a.txt", "content": "abcd" }), ASKED),
        (DEFAULTS, one, "read", json!({ "path": "a.txt" }), Runs(Tier::Notify)),
        (PEOPLE, user, "remove", json!({ "path": "a.txt" }), BLOCKED),
        (PEOPLE, one, "remove", json!({ "path": "a.txt" }), FREE),
        (AGENTS, one, "remove", json!({ "path": "a.txt" }), BLOCKED),
        (AGENTS, one, "move", json!({ "from": "a.txt", "to": "b" }), BLOCKED),
        (AGENTS, user, "remove", json!({ "path": "a.txt" }), FREE),
    ];
    for (policy, principal, operation, arguments, expected) in cases {
        let got = gets(policy, principal, operation, arguments.clone(), Terms::default());
        assert_eq!(got, expected, "{policy}\n{principal} {operation} {arguments}");
    }
}

#[test]
fn a_tool_has_the_tier_of_its_definition_unless_a_rule_speaks() {
    let terms = |tier| Terms {
        tool: Some("krux/filesystem.delete".to_owned()),
        tier: Some(tier),
        ..Terms::default()
    };
    let remove = |policy: &str, principal: &str, tier| {
        gets(policy, principal, "remove", json!({ "path": "a.txt" }), terms(tier))
    };
    let freed = "[[system.rules]]\noperations = [\"filesystem.*\"]\ntier = \"autonomous\"\n";
    let other = "[[system.rules]]\noperations = [\"krux/filesystem.write\"]\ntier = \"autonomous\"\n";
    assert_eq!(remove("", "agent:one", Tier::Notify), Runs(Tier::Notify));
    assert_eq!(remove("", "agent:one", Tier::ApprovalRequired), ASKED);
    assert_eq!(remove("", "user:ann", Tier::ApprovalRequired), FREE);
    assert_eq!(remove(freed, "agent:one", Tier::ApprovalRequired), FREE);
    assert_eq!(remove(other, "agent:one", Tier::ApprovalRequired), ASKED);
    assert_eq!(remove("[system]\ndefault = \"autonomous\"\n", "agent:one", Tier::ApprovalRequired), ASKED);
}

#[test]
fn what_is_blocked_is_not_seen_on_a_walk_either() {
    let world = World::with(FILES);
    world.workspace.set_policy(SECRETS);
    let listed = world.ok("list", json!({ "depth": 9, "all": true })).text;
    assert!(!listed.contains("secret/key"), "{listed}");
    assert_eq!(world.ok("search", json!({ "query": "k" })).json["total"], 0);
    assert_eq!(world.ok("find", json!({ "pattern": "key" })).json["total"], 0);
}

#[test]
fn a_restored_tree_is_judged_by_what_it_may_hold() {
    let world = World::with(FILES);
    let trash = world.ok("remove", json!({ "path": "src", "recursive": true })).json["trash"].clone();
    world.workspace.set_policy(GENERATED);
    world.fails("restore", json!({ "trash": trash }), Kind::ApprovalPending);
    world.fails("undo", json!({}), Kind::ApprovalPending);
}

#[test]
fn a_policy_file_inside_is_out_of_an_agent_s_reach() {
    let world = World::with(&[("conf/policy.toml", ""), ("a.txt", "a\n"), ("innocent", "x")]);
    world.workspace.put_link("link", "conf/policy.toml");
    let trash = world.ok("remove", json!({ "path": "innocent" })).json["trash"].clone();
    world.workspace.place_policy("conf/policy.toml");
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
        let failure = world.call(operation, arguments.clone()).expect_err("the policy stays");
        let refused = [
            Kind::ProtectedPath,
            Kind::Exists,
            Kind::BaseRequired,
            Kind::Stale,
            Kind::TextNotFound,
            Kind::BadRequest,
        ];
        assert!(refused.contains(&failure.kind), "{operation} {arguments}: {failure}");
        assert!(
            failure.kind == Kind::ProtectedPath || operation == "restore",
            "{operation} {arguments}: {failure}"
        );
    }
    assert_eq!(world.ok("read", json!({ "path": "conf/policy.toml" })).json["size"], 0);
}

#[test]
fn a_malformed_policy_is_an_error_with_its_line() {
    for (text, line, word) in [
        ("[system]\ndefault = \"open\"\n", 2, "no tier"),
        ("[system]\n\ntire = \"notify\"\n", 3, "unknown field"),
        ("[sytem]\n", 1, "unknown field"),
        ("[[system.rules]]\nname = \"x\"\n", 1, "tier"),
        ("[[system.rules]]\npaths = [\"a[\"]\ntier = \"notify\"\n", 2, "pattern"),
        ("[[system.rules]]\npaths = [\"../x\"]\ntier = \"notify\"\n", 2, "relative"),
        ("[[system.rules]]\npaths = []\ntier = \"notify\"\n", 2, "empty"),
        ("[[system.rules]]\nrights = [\"write\"]\ntier = \"notify\"\n", 2, "no right"),
        ("[[system.rules]]\noperations = [\"re*\"]\ntier = \"notify\"\n", 2, "pattern of operations"),
        (
            "[[system.rules]]\noperations = [\"read\", \"removee\"]\ntier = \"blocked\"\n",
            2,
            "perhaps 'remove'",
        ),
        ("[[system.rules]]\noperations = [\"delete\"]\ntier = \"blocked\"\n", 2, "rights = [\"delete\"]"),
        (
            "[system.rate]\noperations = [\"filesystem__*\"]\ncalls = 1\nper_seconds = 1\nthen = \"blocked\"\n",
            2,
            "pattern of operations",
        ),
        ("[[system.rules]]\nprincipals = [\"root\"]\ntier = \"notify\"\n", 2, "no principal"),
        ("[agent.\"user:x\"]\ndefault = \"notify\"\n", 1, "no agent"),
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
fn a_rate_turns_calls_away_or_asks_and_lets_them_in_again() {
    let world = World::with(FILES);
    let read = || world.call("read", json!({ "path": "a.txt" }));
    world.workspace.set_policy("[system.rate]\ncalls = 3\nper_seconds = 10\nthen = \"blocked\"\n");
    for _ in 0..3 {
        read().unwrap();
    }
    for _ in 0..5 {
        let failure = read().expect_err("too often");
        assert_eq!(failure.kind, Kind::RateLimited, "{failure}");
        assert!(failure.facts["retry_after_ms"].as_i64().unwrap() > 0);
    }
    // Another session of the same agent is the same agent; another agent is not.
    let second = Caller { session: "another".to_owned(), ..agent("one") };
    let again = world.call_as(&second, "read", json!({ "path": "a.txt" }));
    assert_eq!(again.expect_err("the same agent").kind, Kind::RateLimited);
    world.call_as(&agent("two"), "read", json!({ "path": "a.txt" })).unwrap();
    world.workspace.advance_ms(10_001);
    read().unwrap();
    world.workspace.set_policy(
        "[system.rate]\ncalls = 1\nper_seconds = 10\nthen = \"approval_required\"\nrights = [\"delete\"]\n",
    );
    read().unwrap();
    world.fails("remove", json!({ "path": "a.txt" }), Kind::ApprovalPending);
}

#[test]
fn retention_is_what_the_strictest_layer_says() {
    let world = World::with(FILES);
    world
        .workspace
        .set_policy("[system.retention]\nagent_hours = 2\n[organisation.retention]\nagent_hours = 3\n");
    let until = world.ok("remove", json!({ "path": "a.txt" })).json["recoverable_until"].clone();
    assert_eq!(until, "2026-01-01T02:00:00.000Z");
}

#[test]
fn an_explanation_names_the_rule_and_changes_nothing() {
    let world = World::with(FILES);
    world.workspace.set_policy(GENERATED);
    let asked = json!({ "operation": "remove", "arguments": { "path": "src", "recursive": true } });
    let answer = world.ok("policy", asked).json;
    assert_eq!(answer["tier"], "approval_required");
    assert_eq!(answer["rule"], "generated code");
    assert_eq!(answer["why"], "rule 'generated code' of the system layer (line 2)");
    let missing = json!({ "operation": "remove", "arguments": { "path": "nowhere" } });
    assert_eq!(world.ok("policy", missing).json["kind"], "not_found");
    world.ok("read", json!({ "path": "src/gen/x.rs" }));
    assert_eq!(
        world
            .engine
            .workspace()
            .approvals(&engine::ApprovalFilter { limit: 9, ..Default::default() })
            .unwrap(),
        []
    );
    let other = json!({ "operation": "remove", "arguments": { "path": "a.txt" }, "principal": "user:ann" });
    world.fails("policy", other, Kind::OutOfScope);
}
