//! Renders the journal as an audit log with one row per changed path and per call without changes. The field names of
//! audit rows are stable, because other programs read them.

use serde_json::{Map, Value, json};
use stead_engine::{OperationEffectClass, StoredJournalEntry, UtcSecond};
use stead_journal::{ChangeKind, JournalEntry, JournaledCallOutcomeStatus, PathState, RecordedChange};

/// The names of the arguments that contain the path of a call, in all dialects.
const PATH_KEYS: &[&str] = &["path", "from", "fromPath", "root", "trashedPath"];
const TARGET_PATH_KEYS: &[&str] = &["to", "toPath", "targetPath"];

pub(crate) struct AuditRow {
    pub(crate) fields: Map<String, Value>,
    pub(crate) requested_path: Option<String>,
}

/// Returns the audit rows of one journal entry; a successful call that only reads has none.
pub(crate) fn audit_rows(stored: &StoredJournalEntry) -> Vec<AuditRow> {
    let entry = &stored.entry;
    let arguments: Value = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let named = |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_str()).map(str::to_owned);
    let requested_path = named(PATH_KEYS);
    let row = |change: &RecordedChange| AuditRow {
        fields: change_fields(entry, change),
        requested_path: requested_path.clone(),
    };
    let is_read_only =
        stead_engine::find_operation(&entry.operation).is_some_and(|row| row.effect == OperationEffectClass::None);
    if !entry.changes.is_empty() || (is_read_only && entry.decision == JournaledCallOutcomeStatus::Allowed) {
        return merge_moves(entry, arguments.get("moved")).iter().map(row).collect();
    }
    // A file that already had the written content has the same version before and after the call.
    let unchanged = arguments.get("unchanged").filter(|_| entry.decision == JournaledCallOutcomeStatus::Allowed);
    let unchanged = unchanged.and_then(Value::as_str).map(str::to_owned);
    let operation = if unchanged.is_some() { change_kind_name(ChangeKind::Modify) } else { &entry.operation };
    let mut fields = first_fields(entry, operation);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value.into());
        }
    };
    add("path", requested_path.clone());
    add("toPath", named(TARGET_PATH_KEYS));
    add("beforeSha256", unchanged.clone());
    add("afterSha256", unchanged);
    add_result_fields(entry, &mut fields);
    vec![AuditRow { fields, requested_path }]
}

/// Returns the changes of a journal entry. The removal and the creation of a file that was moved and changed become one
/// rename.
fn merge_moves(entry: &JournalEntry, moved: Option<&Value>) -> Vec<RecordedChange> {
    let moved_change = |change: &RecordedChange| {
        let to = moved?.get(&change.path)?.as_str().filter(|_| change.kind == ChangeKind::Remove)?;
        entry.changes.iter().find(|other| other.path == to)
    };
    let is_move_target = |change: &RecordedChange| {
        entry.changes.iter().any(|other| moved_change(other).is_some_and(|target| target.path == change.path))
    };
    let merged = |change: &RecordedChange| match moved_change(change) {
        Some(target) => Some(RecordedChange {
            kind: ChangeKind::Rename,
            to: Some(target.path.clone()),
            after: target.after.clone(),
            ..change.clone()
        }),
        None if is_move_target(change) => None,
        None => Some(change.clone()),
    };
    entry.changes.iter().filter_map(merged).collect()
}

fn change_fields(entry: &JournalEntry, change: &RecordedChange) -> Map<String, Value> {
    let mut fields = first_fields(entry, change_kind_name(change.kind));
    fields.insert("path".to_owned(), change.path.clone().into());
    for (name, value) in [
        ("toPath", change.to.clone()),
        ("beforeSha256", version_of_state(&change.before)),
        ("afterSha256", version_of_state(&change.after)),
    ] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value.into());
        }
    }
    add_result_fields(entry, &mut fields);
    fields
}

fn first_fields(entry: &JournalEntry, operation: &str) -> Map<String, Value> {
    let tool = entry.tool.as_deref().and_then(|tool| tool.split_once('/')).map(|(_, tool)| tool);
    let (_, agent) = entry.caller.principal.split_once(':').unwrap_or_default();
    let fields = json!({
        "timestamp": UtcSecond { unix_ms: entry.time_ms },
        "sessionId": entry.caller.session,
        "agentName": agent,
        "toolName": tool.unwrap_or(&entry.operation),
        "operation": operation,
    });
    fields.as_object().cloned().unwrap_or_default()
}

fn add_result_fields(entry: &JournalEntry, fields: &mut Map<String, Value>) {
    fields.insert("success".to_owned(), (entry.decision == JournaledCallOutcomeStatus::Allowed).into());
    for (name, value) in [("tier", &entry.tier), ("approval", &entry.approval)] {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value.clone().into());
        }
    }
    if let Some(reason) = &entry.reason {
        fields.insert("error".to_owned(), reason.clone().into());
    }
}

fn change_kind_name(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Create => "create",
        ChangeKind::Modify => "update",
        ChangeKind::Remove => "delete",
        ChangeKind::Rename => "move",
        ChangeKind::Copy => "copy",
        ChangeKind::MakeDir => "make_directory",
        ChangeKind::MakeLink => "make_link",
        ChangeKind::SetMode => "set_mode",
        ChangeKind::Rescan => "rescan",
    }
}

fn version_of_state(state: &PathState) -> Option<String> {
    match state {
        PathState::File { version, .. } | PathState::Tree { version: Some(version), .. } => Some(version.to_string()),
        PathState::Absent
        | PathState::Directory { .. }
        | PathState::Link { .. }
        | PathState::Tree { version: None, .. }
        | PathState::Unknown { .. } => None,
    }
}
