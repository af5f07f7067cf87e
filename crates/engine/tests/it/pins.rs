//! Compares the engine's identifiers in stored and published data with golden files.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::{Value, json};
use stead_engine::{
    AlertSeverity, ApprovalFilter, ApprovalRequest, ApprovalState, ErrorKind, PathAccessRight, Policy, Principal,
    SupervisionTier, WatchEventKind,
};
use testkit::{
    engine_fixture::{EngineFixture, agent},
    pin,
};

/// Invalid policies, each with an unknown key in one table, whose errors list all known keys of the table.
const TABLES_WITH_UNKNOWN_KEY: &[&str] = &[
    "nothing = 1\n",
    "[system]\nnothing = 1\n",
    "[[system.rules]]\nnothing = 1\n",
    "[system.rate]\nnothing = 1\n",
    "[[system.rates]]\nnothing = 1\n",
    "[system.quota]\nnothing = 1\n",
    "[system.retention]\nnothing = 1\n",
    "[organisation]\nnothing = 1\n",
    "[agent.\"agent:*\"]\nnothing = 1\n",
];

fn known_keys(table: &str) -> String {
    let message = Policy::parse(table).unwrap_err().reason;
    let keys: Vec<&str> = message.split('`').skip(1).step_by(2).skip(1).collect();
    keys.join(" ")
}

fn render_words() -> String {
    let mut out = String::new();
    let mut line = |kind: &str, word: &str| writeln!(out, "{kind}: {word}").unwrap();
    for table in TABLES_WITH_UNKNOWN_KEY {
        line(&format!("policy {}", table.lines().next().unwrap()), &known_keys(table));
    }
    for right in PathAccessRight::ALL {
        line("right", &format!("{} {}", right.as_str(), json!(right)));
    }
    for tier in SupervisionTier::ALL {
        line("tier", &format!("{} {}", tier.as_str(), json!(tier)));
    }
    for state in ApprovalState::ALL {
        line("approval", state.as_str());
    }
    for severity in AlertSeverity::ALL {
        line("severity", severity.as_str());
    }
    for kind in WatchEventKind::CHOICES {
        line("happening", kind.as_str());
    }
    line("happening", WatchEventKind::Rescan.as_str());
    for principal in [Principal::User("ann".into()), Principal::Agent("one".into())] {
        line("principal", &principal.to_string());
    }
    out
}

#[test]
fn words_of_policies_and_stores_are_those_of_0_1_0() {
    pin::check(env!("CARGO_MANIFEST_DIR"), "words.txt", &render_words());
}

const APPROVAL_POLICY: &str = "[[system.rules]]\nname = \"all\"\noperations = [\"*\"]\npaths = [\"kept/**\"]\n\
                   principals = [\"agent:asking\"]\ntier = \"approval_required\"\n";

/// Calls that need approval, one for each kind of planned change.
fn calls_that_need_approval() -> Vec<(&'static str, Value)> {
    let file = "kept/a";
    vec![
        ("read", json!({ "path": file })),
        ("write", json!({ "path": "kept/new/deep", "content": "new\n" })),
        (
            "write",
            json!({ "path": file, "content": "two\n", "base": stead_engine::Version::hash_bytes(b"one\n").to_string() }),
        ),
        ("append", json!({ "path": file, "content": "more\n" })),
        ("edit", json!({ "path": file, "edits": [{ "old": "one", "new": "1", "all": true }] })),
        ("copy", json!({ "from": file, "to": "kept/copy" })),
        ("copy", json!({ "from": "kept/d", "to": "kept/e" })),
        ("move", json!({ "from": file, "to": "kept/b", "overwrite": true })),
        ("remove", json!({ "path": file })),
        ("remove", json!({ "path": "kept/d", "recursive": true })),
        // The copy plans a new symlink, and the patch plans a file with the mode of another file.
        ("copy", json!({ "from": "kept/linked", "to": "kept/f" })),
        (
            "patch",
            json!({ "patch": "*** Begin Patch\n*** Update File: kept/a\n*** Move to: kept/moved\n@@\n-one\n+1\n*** End Patch\n" }),
        ),
    ]
}

fn collect_field_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, member)| {
            names.insert(name.clone());
            collect_field_names(member, names);
        }),
        Value::Array(items) => items.iter().for_each(|item| collect_field_names(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn request_approval(fixture: &EngineFixture, operation: &str, arguments: Value) -> ApprovalRequest {
    let error = fixture.call_err(operation, arguments, ErrorKind::ApprovalPending);
    let id = error.details.approval.unwrap();
    let filter = ApprovalFilter { principal: None, call_digest: None, state: None, limit: 100 };
    let found = fixture.engine.workspace().approvals(&filter).unwrap();
    found.into_iter().find(|approval| approval.id == id).unwrap().request
}

fn render_bindings() -> String {
    let mut fixture = EngineFixture::with_files(&[("kept/a", "one\n"), ("kept/b", "other\n"), ("kept/d/f", "f\n")]);
    fixture.workspace.put_file("kept/linked/f", "f\n");
    fixture.workspace.put_link("kept/linked/link", "f");
    fixture.caller = agent("asking");
    fixture.call_ok("write", json!({ "path": "kept/undone", "content": "x\n" }));
    let undone = fixture.call_ok("write", json!({ "path": "kept/redone", "content": "x\n" }));
    fixture.call_ok("undo", json!({ "entry": undone["entry"] }));
    let removed = fixture.call_ok("remove", json!({ "path": "kept/undone" }));
    fixture.workspace.set_policy(APPROVAL_POLICY);
    let mut calls = calls_that_need_approval();
    calls.push(("undo", json!({ "entry": removed["entry"] })));
    calls.push(("redo", json!({ "entry": undone["entry"] })));
    calls.push(("restore", json!({ "trash": removed["trash"] })));
    let mut out = String::new();
    for (operation, arguments) in calls {
        let request = request_approval(&fixture, operation, arguments);
        let mut names = BTreeSet::new();
        collect_field_names(&serde_json::from_str(&request.plan_preview).unwrap(), &mut names);
        let names: Vec<String> = names.into_iter().collect();
        writeln!(out, "{operation}\n  call {}\n  plan {}", request.call_digest, request.plan_digest).unwrap();
        writeln!(out, "  shown {}", names.join(" ")).unwrap();
    }
    out
}

#[test]
fn approvals_are_bound_to_the_digests_of_0_1_0() {
    pin::check(env!("CARGO_MANIFEST_DIR"), "approvals.txt", &render_bindings());
}

#[test]
fn json_keys_are_those_of_0_1_0() {
    pin::check(env!("CARGO_MANIFEST_DIR"), "json_keys.txt", &pin::json_keys(env!("CARGO_MANIFEST_DIR")));
}

#[test]
fn operation_schemas_match_golden_file() {
    let schemas = serde_json::Value::Object(testkit::operation_schemas::derive_operation_schemas());
    pin::check(env!("CARGO_MANIFEST_DIR"), "operation_schemas.json", &format!("{schemas:#}\n"));
}
