//! Shows the journal as an audit log with one row per changed path and per call without changes. The field names of
//! audit rows are stable, because other programs read them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, de::IgnoredAny};
use stead_journal::{ChangeKind, JournalEntry, JournaledCallOutcomeStatus, PathState, RecordedChange, RecordedMove};

use crate::{operation::OperationEffectClass, recorded_arguments::entry_details, utc_time::UtcSecond};

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    pub timestamp: UtcSecond,
    pub session_id: String,
    pub agent_name: String,
    pub tool_name: String,
    pub operation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_sha256: Option<String>,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(skip)]
    pub requested_path: Option<String>,
}

/// The names of the arguments that contain the path of a call, in all dialects.
const PATH_KEYS: &[&str] = &["path", "from", "fromPath", "root", "trashedPath"];
const TARGET_PATH_KEYS: &[&str] = &["to", "toPath", "targetPath"];

#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedArgumentValue {
    Text(String),
    Other(IgnoredAny),
}

impl RecordedArgumentValue {
    fn as_text(&self) -> Option<&String> {
        match self {
            RecordedArgumentValue::Text(text) => Some(text),
            RecordedArgumentValue::Other(_) => None,
        }
    }
}

/// Returns the audit rows of one journal entry; a successful call that only reads has none.
pub fn audit_rows(entry: &JournalEntry) -> Vec<AuditRow> {
    let arguments: BTreeMap<String, RecordedArgumentValue> = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let text = |names: &[&str]| names.iter().find_map(|name| arguments.get(*name)?.as_text()).cloned();
    let details = entry_details(entry);
    let is_allowed = entry.decision == JournaledCallOutcomeStatus::Allowed;
    let tool = entry.tool.as_deref().and_then(|tool| tool.split_once('/')).map(|(_, tool)| tool);
    let (_, agent) = entry.caller.principal.split_once(':').unwrap_or_default();
    let row = |operation: &str| AuditRow {
        timestamp: UtcSecond { unix_ms: entry.time_ms },
        session_id: entry.caller.session.clone(),
        agent_name: agent.to_owned(),
        tool_name: tool.unwrap_or(&entry.operation).to_owned(),
        operation: operation.to_owned(),
        path: text(PATH_KEYS),
        to_path: text(TARGET_PATH_KEYS),
        before_sha256: None,
        after_sha256: None,
        success: is_allowed,
        tier: entry.tier.clone(),
        approval: entry.approval.clone(),
        error: entry.reason.clone(),
        requested_path: text(PATH_KEYS),
    };
    let changed_row = |change: RecordedChange| AuditRow {
        before_sha256: version_of_state(&change.before),
        after_sha256: version_of_state(&change.after),
        path: Some(change.path),
        to_path: change.to,
        ..row(change_kind_name(change.kind))
    };
    let is_read_only =
        super::find_operation(&entry.operation).is_some_and(|row| row.effect == OperationEffectClass::None);
    if !entry.changes.is_empty() || (is_read_only && is_allowed) {
        return merge_moves(entry, &details.moved).into_iter().map(changed_row).collect();
    }
    // A file that already had the written content has the same version before and after the call.
    let unchanged = details.unchanged.filter(|_| is_allowed).map(|version| version.to_string());
    let operation = if unchanged.is_some() { change_kind_name(ChangeKind::Modify) } else { &entry.operation };
    vec![AuditRow { before_sha256: unchanged.clone(), after_sha256: unchanged, ..row(operation) }]
}

/// Returns the changes of a journal entry. The removal and the creation of a file that was moved and changed become one
/// rename.
fn merge_moves(entry: &JournalEntry, moved: &[RecordedMove]) -> Vec<RecordedChange> {
    let moved_change = |change: &RecordedChange| {
        let moved = moved.iter().find(|moved| moved.from == change.path && change.kind == ChangeKind::Remove)?;
        entry.changes.iter().find(|other| other.path == moved.to)
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
    let (PathState::File { version, .. } | PathState::Tree { version: Some(version), .. }) = state else { return None };
    Some(version.to_string())
}
