//! The journal as an audit log: one row for each thing that a call changed, and one for each call that was refused,
//! failed or found nothing to change. Owns the names of the fields, which stay as they are: other programs read them.

use engine::{Effect, Stored};
use journal::{Change, ChangeKind, Decision, Entry, State};
use serde_json::{Map, Value, json};

use crate::time;

/// Arguments that name the place a call is about, and the one it leads to, by whatever vocabulary.
const PATHS: &[&str] = &["path", "from", "fromPath", "root", "trashedPath"];
const OTHER_PATHS: &[&str] = &["to", "toPath", "targetPath"];

/// One row.
pub(crate) struct Row {
    /// Its fields. What is not known is left out.
    pub(crate) facts: Map<String, Value>,
    /// The path as it was given, when there is one.
    pub(crate) given: Option<String>,
}

/// The rows of one entry; none for a call that only looked.
pub(crate) fn rows(stored: &Stored) -> Vec<Row> {
    let entry = &stored.entry;
    let arguments: Value = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let named =
        |names: &[&str]| names.iter().find_map(|name| arguments.get(name)?.as_str()).map(str::to_owned);
    let given = named(PATHS);
    let row = |change: &Change| Row { facts: changed(entry, change), given: given.clone() };
    let looked = engine::row(&entry.operation).is_some_and(|row| row.effect == Effect::Read);
    if !entry.changes.is_empty() || (looked && entry.decision == Decision::Allowed) {
        return joined(entry, arguments.get("moved")).iter().map(row).collect();
    }
    // What was found to be right already was there before and is there now.
    // Of a refused call that is only what its author wrote.
    let unchanged = arguments.get("unchanged").filter(|_| entry.decision == Decision::Allowed);
    let unchanged = unchanged.and_then(Value::as_str).map(str::to_owned);
    let operation = if unchanged.is_some() { word(ChangeKind::Modify) } else { &entry.operation };
    let mut facts = opening(entry, operation);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value.into());
        }
    };
    add("path", given.clone());
    add("toPath", named(OTHER_PATHS));
    add("beforeSha256", unchanged.clone());
    add("afterSha256", unchanged);
    finish(entry, &mut facts);
    vec![Row { facts, given }]
}

/// The changes of an entry, where a file that was moved and changed at once is one: what went, and what came of it.
fn joined(entry: &Entry, moved: Option<&Value>) -> Vec<Change> {
    let came_of = |change: &Change| {
        let to = moved?.get(&change.path)?.as_str().filter(|_| change.kind == ChangeKind::Remove)?;
        entry.changes.iter().find(|other| other.path == to)
    };
    let is_what_came = |change: &Change| {
        entry.changes.iter().any(|other| came_of(other).is_some_and(|came| came.path == change.path))
    };
    let one = |change: &Change| match came_of(change) {
        Some(came) => Some(Change {
            kind: ChangeKind::Rename,
            to: Some(came.path.clone()),
            after: came.after.clone(),
            ..change.clone()
        }),
        None if is_what_came(change) => None,
        None => Some(change.clone()),
    };
    entry.changes.iter().filter_map(one).collect()
}

fn changed(entry: &Entry, change: &Change) -> Map<String, Value> {
    let mut facts = opening(entry, word(change.kind));
    facts.insert("path".to_owned(), change.path.clone().into());
    for (name, value) in [
        ("toPath", change.to.clone()),
        ("beforeSha256", version(&change.before)),
        ("afterSha256", version(&change.after)),
    ] {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value.into());
        }
    }
    finish(entry, &mut facts);
    facts
}

/// What every row starts with.
fn opening(entry: &Entry, operation: &str) -> Map<String, Value> {
    let tool = entry.tool.as_deref().and_then(|tool| tool.split_once('/')).map(|(_, tool)| tool);
    let (_, agent) = entry.caller.principal.split_once(':').unwrap_or_default();
    let facts = json!({
        "timestamp": time::iso_utc(entry.time_ms),
        "sessionId": entry.caller.session,
        "agentName": agent,
        "toolName": tool.unwrap_or(&entry.operation),
        "operation": operation,
    });
    facts.as_object().cloned().unwrap_or_default()
}

/// What every row ends with.
fn finish(entry: &Entry, facts: &mut Map<String, Value>) {
    facts.insert("success".to_owned(), (entry.decision == Decision::Allowed).into());
    for (name, value) in [("tier", &entry.tier), ("approval", &entry.approval)] {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value.clone().into());
        }
    }
    if let Some(reason) = &entry.reason {
        facts.insert("error".to_owned(), reason.clone().into());
    }
}

fn word(kind: ChangeKind) -> &'static str {
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

fn version(state: &State) -> Option<String> {
    match state {
        State::File { version, .. } | State::Tree { version: Some(version), .. } => Some(version.to_string()),
        State::Absent
        | State::Directory { .. }
        | State::Link { .. }
        | State::Tree { version: None, .. }
        | State::Unknown { .. } => None,
    }
}
