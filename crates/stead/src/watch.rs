//! `stead watch` prints changes of files until it is interrupted. `stead watch --supervisor` prints approvals, alerts,
//! policy refusals and reported calls from the journal.

use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};
use stead_engine::{
    Caller, ErrorKind, JournalEntryOrder, JournalEntryQuery, StoredJournalEntry, SupervisionTier, UtcSecond, Workspace,
    arguments_with_details,
};
use stead_journal::JournaledCallOutcomeStatus;
use stead_local::LandlockMode;
use stead_protocols::native::without_nulls;

use crate::{
    cli::{CallerAccessCliFlags, WorkspaceFlags},
    host_files,
    open_workspace::{self, CallerProtocol, CommandLineWorkspace},
    operation::call_operation,
    output::{self, CliCommandResult, CommandError, CommandExit, OutputFormat},
};

const WAIT_MS: u64 = 60_000;
const ENTRIES_PER_PAGE: usize = 500;
const POLL_WAIT: Duration = Duration::from_secs(5);
const CHANGES_SHOWN: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct WatchCliArgs {
    /// Paths to watch
    #[arg(default_value = ".")]
    paths: Vec<String>,
    /// Watch only the direct children of a directory
    #[arg(long)]
    shallow: bool,
    /// Print only these events: create, modify, delete, rename (repeatable)
    #[arg(long = "type", value_name = "EVENT")]
    types: Vec<String>,
    /// Print only paths that match this pattern
    #[arg(long, value_name = "PATTERN")]
    glob: Option<String>,
    /// Print supervisor events instead: reported calls, policy refusals, approvals and alerts
    #[arg(long, conflicts_with_all = ["paths", "shallow", "types", "glob"])]
    supervisor: bool,
    /// Start after this journal entry [default: the latest]
    #[arg(long, value_name = "ENTRY", requires = "supervisor")]
    since: Option<u64>,
    /// Print existing events and exit instead of waiting for more
    #[arg(long, requires = "since")]
    no_wait: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    caller: CallerAccessCliFlags,
}

pub(crate) fn run(flags: &WorkspaceFlags, arguments: &WatchCliArgs) -> CliCommandResult {
    let caller = open_workspace::caller_from_flags(&arguments.caller, CallerProtocol::Person)?;
    let opened = open_workspace::open_workspace(flags, LandlockMode::Off)?;
    if arguments.supervisor {
        return print_supervisor_events(&*opened.local, arguments);
    }
    end_stale_watches(&opened, &caller)?;
    let format = OutputFormat::from(arguments.json);
    let (mut cursor, mut watch_ids) = (Value::Null, Vec::new());
    for path in &arguments.paths {
        let options = json!({
            "path": path,
            "recursive": !arguments.shallow,
            "types": arguments.types,
            "glob": arguments.glob,
        });
        let started = call_operation(&opened, &caller, "watch", options)?.json_fields();
        watch_ids.push(started["watch"].clone());
        if cursor.is_null() {
            cursor = started["cursor"].clone();
        }
    }
    loop {
        let page =
            call_operation(&opened, &caller, "watched", json!({ "cursor": cursor, "wait_ms": WAIT_MS }))?.json_fields();
        cursor = page["cursor"].clone();
        let events = page["events"].as_array().into_iter().flatten();
        for event in events.filter(|event| watch_ids.contains(&event["watch"])) {
            output::print_as(format, || event.clone(), || change_line(event))?;
        }
    }
}

fn change_line(event: &Value) -> String {
    let word = |name: &str| event[name].as_str().unwrap_or_default();
    let mut line = format!("{} {} {} {}", word("time"), word("actor"), word("event"), word("path"));
    if let Some(new_path) = event["new_path"].as_str() {
        line.push_str(&format!(" -> {new_path}"));
    }
    line
}

/// Ends watches that belong to `stead` processes which have exited.
fn end_stale_watches(opened: &CommandLineWorkspace, caller: &Caller) -> Result<(), CommandError> {
    for watch in (&*opened.local as &dyn Workspace).watches(&caller.principal)? {
        let process = watch.session.strip_prefix("cli-").and_then(|number| number.parse::<u32>().ok());
        if process.is_some_and(|process| !host_files::is_process_running(process)) {
            call_operation(opened, caller, "unwatch", json!({ "watch": watch.id }))?;
        }
    }
    Ok(())
}

fn print_supervisor_events(workspace: &dyn Workspace, arguments: &WatchCliArgs) -> CliCommandResult {
    let head = workspace.head()?.number;
    let mut cursor = arguments.since.unwrap_or(head);
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
                let line = supervisor_event_line(&event);
                output::print_as(OutputFormat::from(arguments.json), || event, || line)?;
            }
        }
        if page.is_empty() {
            if arguments.no_wait {
                return Ok(CommandExit::Success);
            }
            workspace.wait_for_entry_after(cursor, Instant::now() + POLL_WAIT)?;
        }
    }
}

/// Converts one journal entry to supervisor events. A call without a supervision tier yields an event only for an
/// approval, an alert or a policy refusal.
fn supervisor_events(stored: &StoredJournalEntry) -> Vec<Value> {
    let entry = &stored.entry;
    let reason = entry.reason.as_deref();
    let is_reported = entry.tier.as_deref().is_some_and(|tier| tier != SupervisionTier::Blocked.as_str());
    let types: &[&str] = match (entry.operation.as_str(), entry.decision, reason) {
        ("approve" | "deny", JournaledCallOutcomeStatus::Allowed, _) => &["approval_resolved"],
        ("alert", JournaledCallOutcomeStatus::Allowed, _) => &["alert"],
        (_, _, Some(kind)) if kind == ErrorKind::ApprovalPending.code() || kind == ErrorKind::ApprovalStale.code() => {
            &["approval_requested"]
        }
        (_, JournaledCallOutcomeStatus::Refused, Some(kind)) if is_policy_violation(kind) => &["policy_violation"],
        (_, JournaledCallOutcomeStatus::Allowed, _) if is_reported => &["capability_invoked", "capability_result"],
        (_, JournaledCallOutcomeStatus::Refused | JournaledCallOutcomeStatus::Failed, _) if is_reported => {
            &["capability_invoked", "capability_error"]
        }
        (
            _,
            JournaledCallOutcomeStatus::Allowed
            | JournaledCallOutcomeStatus::Refused
            | JournaledCallOutcomeStatus::Failed,
            _,
        ) => &[],
    };
    types.iter().map(|kind| entry_event(kind, stored)).collect()
}

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
    let data = without_nulls(json!({
        "entry": entry.number,
        "capability": tool.unwrap_or(&entry.operation),
        "arguments": serde_json::from_str::<Value>(&arguments_with_details(entry)).unwrap_or_else(|_| json!({})),
        "tier": entry.tier,
        "approval": entry.approval,
        "error": entry.reason,
        "changed": Some(changes).filter(|changes| !changes.is_empty()),
    }));
    json!({
        "type": kind,
        "timestamp": UtcSecond { unix_ms: entry.time_ms },
        "agent": entry.caller.principal,
        "session_id": entry.caller.session,
        "data": data,
    })
}

fn supervisor_event_line(event: &Value) -> String {
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
