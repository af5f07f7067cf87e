//! `stead watch --supervisor`: what a person who supervises agents should see, as it happens. Everything comes from the
//! journal: calls of the tiers that are told, refusals by the policy, questions to people and their answers.

use std::time::{Duration, Instant};

use engine::{EntryFilter, Kind, Order, Stored, Tier, Workspace};
use journal::Decision;
use local::Wall;
use serde_json::{Value, json};

use crate::{
    cli::WorkspaceFlags,
    show::{self, Exit, Form, Outcome},
    time, wire,
};

/// What a supervisor asks for.
pub(super) struct Wish {
    /// Begin after this entry; what comes from now on when nothing is said.
    pub(super) since: Option<u64>,
    /// What to do when there is nothing more.
    pub(super) then: Then,
    /// For whom.
    pub(super) form: Form,
}

/// What to do when there is nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Wait,
    End,
}

/// Entries that are read together.
const PAGE: usize = 500;
/// How long one wait for news lasts.
const WAIT: Duration = Duration::from_secs(5);

/// Shows events until it is interrupted.
pub(super) fn run(flags: &WorkspaceFlags, wish: &Wish) -> Outcome {
    let opened = wire::open(flags, Wall::Leave)?;
    let workspace: &dyn Workspace = &*opened.local;
    let head = workspace.head()?.number;
    let mut cursor = wish.since.unwrap_or(head);
    loop {
        let filter = EntryFilter {
            after: Some(cursor),
            order: Order::OldestFirst,
            limit: PAGE,
            ..EntryFilter::default()
        };
        let page = workspace.entries(&filter)?;
        for stored in &page {
            cursor = stored.entry.number;
            for event in events(stored) {
                match wish.form {
                    Form::Json => show::json(&event)?,
                    Form::Text => show::text(&line(&event))?,
                }
            }
        }
        if page.is_empty() {
            if wish.then == Then::End {
                return Ok(Exit::Fine);
            }
            workspace.wait_after(cursor, Instant::now() + WAIT)?;
        }
    }
}

/// What one entry tells a supervisor; nothing for a call that runs alone.
fn events(stored: &Stored) -> Vec<Value> {
    let entry = &stored.entry;
    let reason = entry.reason.as_deref();
    let is_told = entry.tier.as_deref().is_some_and(|tier| tier != Tier::Blocked.word());
    let types: &[&str] = match (entry.operation.as_str(), entry.decision, reason) {
        ("approve" | "deny", Decision::Allowed, _) => &["approval_resolved"],
        ("alert", Decision::Allowed, _) => &["alert"],
        (_, _, Some(kind)) if kind == Kind::ApprovalPending.code() || kind == Kind::ApprovalStale.code() => {
            &["approval_requested"]
        }
        (_, Decision::Refused, Some(kind)) if is_violation(kind) => &["policy_violation"],
        (_, Decision::Allowed, _) if is_told => &["capability_invoked", "capability_result"],
        (_, Decision::Refused | Decision::Failed, _) if is_told => {
            &["capability_invoked", "capability_error"]
        }
        (_, Decision::Allowed | Decision::Refused | Decision::Failed, _) => &[],
    };
    types.iter().map(|kind| event(kind, stored)).collect()
}

/// Whether a refusal is one by the rules, and not by the arguments.
fn is_violation(kind: &str) -> bool {
    let kinds = [
        Kind::PolicyDenied,
        Kind::ApprovalDenied,
        Kind::RateLimited,
        Kind::Quota,
        Kind::ProtectedPath,
        Kind::PathEscape,
        Kind::CrossMount,
        Kind::OutOfScope,
        Kind::ReadOnly,
    ];
    kinds.iter().any(|known| known.code() == kind)
}

fn event(kind: &str, stored: &Stored) -> Value {
    let entry = &stored.entry;
    let tool = entry.tool.as_deref().and_then(|tool| tool.split_once('/')).map(|(_, tool)| tool);
    let changes: Vec<&str> =
        entry.changes.iter().map(|change| change.path.as_str()).take(CHANGES_SHOWN).collect();
    let mut data = json!({
        "entry": entry.number,
        "capability": tool.unwrap_or(&entry.operation),
        "arguments": serde_json::from_str::<Value>(&entry.arguments).unwrap_or_default(),
    });
    for (name, value) in [
        ("tier", entry.tier.clone().map(Value::from)),
        ("approval", entry.approval.clone().map(Value::from)),
        ("error", entry.reason.clone().map(Value::from)),
        ("changed", (!changes.is_empty()).then(|| changes.into())),
    ] {
        if let Some(value) = value {
            data[name] = value;
        }
    }
    json!({
        "type": kind,
        "timestamp": time::iso_utc(entry.time_ms),
        "agent": entry.caller.principal,
        "session_id": entry.caller.session,
        "data": data,
    })
}

/// Changed places that one event names.
const CHANGES_SHOWN: usize = 20;

fn line(event: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let data = &event["data"];
    let mut line = format!(
        "{} r{} {} {} {}",
        word(&event["timestamp"]),
        data["entry"],
        word(&event["type"]),
        word(&event["agent"]),
        word(&data["capability"])
    );
    for name in ["error", "approval"] {
        if let Some(value) = data[name].as_str() {
            line.push_str(&format!(" {name}={value}"));
        }
    }
    if let Some(path) = data["arguments"]["path"].as_str() {
        line.push_str(&format!(" {path}"));
    }
    line
}
