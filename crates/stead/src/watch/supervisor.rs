//! `stead watch --supervisor`: events for people who supervise agents, read from the journal: reported calls, policy refusals,
//! approvals and alerts.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stead_engine::{ErrorKind, JournalEntryOrder, JournalEntryQuery, PolicyTier, StoredJournalEntry, Workspace};
use stead_journal::EntryDecision;
use stead_local::LandlockMode;

use crate::{
    cli::WorkspaceFlags,
    open_workspace,
    output::{self, CommandExit, CommandResult, OutputFormat},
    time,
};

pub(super) struct SupervisorWatchOptions {
    /// Start after this entry; `None` for the latest.
    pub(super) since: Option<u64>,
    pub(super) when_caught_up: WhenCaughtUp,
    pub(super) format: OutputFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenCaughtUp {
    Wait,
    Exit,
}

const ENTRIES_PER_PAGE: usize = 500;
const POLL_WAIT: Duration = Duration::from_secs(5);

/// Shows events until it is interrupted.
pub(super) fn run(flags: &WorkspaceFlags, options: &SupervisorWatchOptions) -> CommandResult {
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    let workspace: &dyn Workspace = &*opened.local;
    let head = workspace.head()?.number;
    let mut cursor = options.since.unwrap_or(head);
    loop {
        let filter = JournalEntryQuery {
            after: Some(cursor),
            order: JournalEntryOrder::OldestFirst,
            limit: ENTRIES_PER_PAGE,
            ..JournalEntryQuery::default()
        };
        let page = workspace.entries(&filter)?;
        for stored in &page {
            cursor = stored.entry.number;
            for event in supervisor_events(stored) {
                match options.format {
                    OutputFormat::Json => output::print_json(&event)?,
                    OutputFormat::Text => output::print_text(&event_line(&event))?,
                }
            }
        }
        if page.is_empty() {
            if options.when_caught_up == WhenCaughtUp::Exit {
                return Ok(CommandExit::Success);
            }
            workspace.wait_for_entry_after(cursor, Instant::now() + POLL_WAIT)?;
        }
    }
}

/// The events of one entry; none for calls of the autonomous tier.
fn supervisor_events(stored: &StoredJournalEntry) -> Vec<Value> {
    let entry = &stored.entry;
    let reason = entry.reason.as_deref();
    let is_reported = entry.tier.as_deref().is_some_and(|tier| tier != PolicyTier::Blocked.as_str());
    let types: &[&str] = match (entry.operation.as_str(), entry.decision, reason) {
        ("approve" | "deny", EntryDecision::Allowed, _) => &["approval_resolved"],
        ("alert", EntryDecision::Allowed, _) => &["alert"],
        (_, _, Some(kind)) if kind == ErrorKind::ApprovalPending.code() || kind == ErrorKind::ApprovalStale.code() => {
            &["approval_requested"]
        }
        (_, EntryDecision::Refused, Some(kind)) if is_policy_violation(kind) => &["policy_violation"],
        (_, EntryDecision::Allowed, _) if is_reported => &["capability_invoked", "capability_result"],
        (_, EntryDecision::Refused | EntryDecision::Failed, _) if is_reported => {
            &["capability_invoked", "capability_error"]
        }
        (_, EntryDecision::Allowed | EntryDecision::Refused | EntryDecision::Failed, _) => &[],
    };
    types.iter().map(|kind| entry_event(kind, stored)).collect()
}

/// Whether a refusal is due to rules and limits rather than to the arguments.
fn is_policy_violation(kind: &str) -> bool {
    let kinds = [
        ErrorKind::PolicyDenied,
        ErrorKind::ApprovalDenied,
        ErrorKind::RateLimited,
        ErrorKind::QuotaExceeded,
        ErrorKind::ProtectedPath,
        ErrorKind::PathEscape,
        ErrorKind::CrossMount,
        ErrorKind::OutOfScope,
        ErrorKind::ReadOnly,
    ];
    kinds.iter().any(|known| known.code() == kind)
}

fn entry_event(kind: &str, stored: &StoredJournalEntry) -> Value {
    let entry = &stored.entry;
    let tool = entry.tool.as_deref().and_then(|tool| tool.split_once('/')).map(|(_, tool)| tool);
    let changes: Vec<&str> = entry.changes.iter().map(|change| change.path.as_str()).take(CHANGES_SHOWN).collect();
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

/// Changed paths that one event lists.
const CHANGES_SHOWN: usize = 20;

fn event_line(event: &Value) -> String {
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
