//! The journal as the recorded log sees it: one row for each thing that a tool changed. The journal holds more, such
//! as refusals and directories that were made; a recorded row must be there, in order, with the same facts.

use engine::{EntryFilter, Order, Stored, Which, Workspace};
use journal::{Change, ChangeKind, Decision, State};
use serde_json::{Map, Value, json};

use super::compare::{Judged, Mismatch};
use crate::show::Problem;

/// The facts of a row that the journal keeps as well.
const COMPARED: &[&str] = &[
    "sessionId",
    "agentName",
    "toolName",
    "operation",
    "path",
    "toPath",
    "beforeSha256",
    "afterSha256",
    "success",
];
/// Entries of one recording that are looked at.
const ENTRIES_MAX: usize = 100_000;

/// Judges one recorded row; `from` is the first row that was not recorded yet.
pub(super) fn entry(
    workspace: &dyn Workspace,
    expected: &Map<String, Value>,
    from: &mut usize,
) -> Result<Judged, Problem> {
    let filter = EntryFilter {
        what: Which::Changes,
        order: Order::OldestFirst,
        limit: ENTRIES_MAX,
        ..EntryFilter::default()
    };
    let rows: Vec<Row> = workspace.entries(&filter)?.iter().flat_map(rows).collect();
    let wanted: Map<String, Value> =
        COMPARED.iter().filter_map(|name| Some(((*name).to_owned(), expected.get(*name)?.clone()))).collect();
    match rows.iter().skip(*from).position(|row| row.fits(&wanted)) {
        Some(after) => {
            *from += after + 1;
            Ok(Ok(()))
        }
        None => {
            let next = rows.get(*from).map_or(Value::Null, |row| Value::Object(row.facts.clone()));
            Ok(Err(Mismatch::new(format!("{:#}", Value::Object(wanted)), format!("{next:#}"))))
        }
    }
}

/// One thing that a tool changed.
struct Row {
    facts: Map<String, Value>,
    /// The path as it was given, when a link led elsewhere.
    given: Option<String>,
}

impl Row {
    fn fits(&self, wanted: &Map<String, Value>) -> bool {
        wanted.iter().all(|(name, value)| {
            self.facts.get(name) == Some(value)
                || (name == "path" && self.given.as_deref() == value.as_str() && self.given.is_some())
        })
    }
}

fn rows(stored: &Stored) -> Vec<Row> {
    let entry = &stored.entry;
    let arguments: Value = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let given = arguments.get("path").and_then(Value::as_str).map(str::to_owned);
    let tool = entry.tool.as_deref().and_then(|tool| tool.split_once('/')).map_or("", |(_, tool)| tool);
    let (_, agent) = entry.caller.principal.split_once(':').unwrap_or_default();
    let row = |change: &Change| {
        let operation = match change.kind {
            ChangeKind::Create => "create",
            ChangeKind::Modify => "update",
            ChangeKind::Remove => "delete",
            ChangeKind::Rename => "move",
            ChangeKind::Copy | ChangeKind::MakeDir | ChangeKind::MakeLink | ChangeKind::SetMode => {
                return None;
            }
        };
        let facts = json!({
            "sessionId": entry.caller.session,
            "agentName": agent,
            "toolName": tool,
            "operation": operation,
            "path": change.path,
            "toPath": change.to,
            "beforeSha256": version(&change.before),
            "afterSha256": version(&change.after),
            "success": entry.decision == Decision::Allowed,
        });
        Some(Row { facts: facts.as_object().cloned().unwrap_or_default(), given: given.clone() })
    };
    entry.changes.iter().filter_map(row).collect()
}

fn version(state: &State) -> Option<String> {
    match state {
        State::File { version, .. } => Some(version.to_string()),
        State::Absent | State::Directory { .. } | State::Link { .. } | State::Tree { .. } => None,
    }
}
