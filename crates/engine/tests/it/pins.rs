//! Stored and published words of the engine, compared with golden files: policy words, stored words, and the digests
//! of pending approvals. The definitions cover the names of operations, arguments and error kinds.

use std::{collections::BTreeSet, fmt::Write};

use serde_json::{Value, json};
use stead_engine::{
    AccessRight, AlertSeverity, ApprovalFilter, ApprovalRequest, ApprovalState, ErrorKind, Policy, PolicyTier,
    Principal, WatchEventKind,
};
use testkit::pin;

use crate::engine_fixture::{EngineFixture, agent};

/// Policy tables, each with an unknown key: the error lists the known keys.
const TABLES: &[&str] = &[
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

/// The keys between backticks, without the first, which is the unknown one.
fn keys(table: &str) -> String {
    let refusal = Policy::parse(table).unwrap_err().reason;
    let keys: Vec<&str> = refusal.split('`').skip(1).step_by(2).skip(1).collect();
    keys.join(" ")
}

fn words() -> String {
    let mut out = String::new();
    let mut line = |of: &str, word: &str| writeln!(out, "{of}: {word}").unwrap();
    for table in TABLES {
        line(&format!("policy {}", table.lines().next().unwrap()), &keys(table));
    }
    for right in AccessRight::ALL {
        line("right", &format!("{} {}", right.as_str(), json!(right)));
    }
    for tier in PolicyTier::ALL {
        line("tier", &format!("{} {}", tier.as_str(), json!(tier)));
    }
    for state in ApprovalState::ALL {
        line("approval", state.as_str());
    }
    for severity in AlertSeverity::ALL {
        line("severity", severity.as_str());
    }
    for happening in WatchEventKind::CHOICES {
        line("happening", happening.as_str());
    }
    line("happening", WatchEventKind::Rescan.as_str());
    for principal in [Principal::User("ann".into()), Principal::Agent("one".into())] {
        line("principal", &principal.to_string());
    }
    out
}

#[test]
fn words_of_policies_and_stores_are_those_of_0_1_0() {
    pin::check(env!("CARGO_MANIFEST_DIR"), "words.txt", &words());
}

const ASK: &str = "[[system.rules]]\nname = \"all\"\noperations = [\"*\"]\npaths = [\"kept/**\"]\n\
                   principals = [\"agent:asking\"]\ntier = \"approval_required\"\n";

/// Calls that need approval, one for each kind of planned change.
fn calls() -> Vec<(&'static str, Value)> {
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
    ]
}

/// The sorted field names of an approval preview.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => members.iter().for_each(|(name, below)| {
            found.insert(name.clone());
            fields(below, found);
        }),
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn question(world: &EngineFixture, operation: &str, arguments: Value) -> ApprovalRequest {
    let error = world.call_err(operation, arguments, ErrorKind::ApprovalPending);
    let id = error.details["approval"].as_str().unwrap();
    let filter = ApprovalFilter { principal: None, call_digest: None, state: None, limit: 100 };
    let found = world.engine.workspace().approvals(&filter).unwrap();
    found.into_iter().find(|approval| approval.id == id).unwrap().request
}

/// The digests and preview fields of the approvals of these calls.
fn bindings() -> String {
    let mut world = EngineFixture::with_files(&[("kept/a", "one\n"), ("kept/b", "other\n"), ("kept/d/f", "f\n")]);
    world.caller = agent("asking");
    world.call_ok("write", json!({ "path": "kept/undone", "content": "x\n" }));
    let undone = world.call_ok("write", json!({ "path": "kept/redone", "content": "x\n" }));
    world.call_ok("undo", json!({ "entry": undone.json["entry"] }));
    let removed = world.call_ok("remove", json!({ "path": "kept/undone" }));
    world.workspace.set_policy(ASK);
    let mut calls = calls();
    calls.push(("undo", json!({ "entry": removed.json["entry"] })));
    calls.push(("redo", json!({ "entry": undone.json["entry"] })));
    calls.push(("restore", json!({ "trash": removed.json["trash"] })));
    let mut out = String::new();
    for (operation, arguments) in calls {
        let ask = question(&world, operation, arguments);
        let mut shown = BTreeSet::new();
        fields(&serde_json::from_str(&ask.plan_preview).unwrap(), &mut shown);
        let shown: Vec<String> = shown.into_iter().collect();
        writeln!(out, "{operation}\n  call {}\n  plan {}", ask.call_digest, ask.plan_digest).unwrap();
        writeln!(out, "  shown {}", shown.join(" ")).unwrap();
    }
    out
}

#[test]
fn approvals_are_bound_to_the_digests_of_0_1_0() {
    pin::check(env!("CARGO_MANIFEST_DIR"), "approvals.txt", &bindings());
}
