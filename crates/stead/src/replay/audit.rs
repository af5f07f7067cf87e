//! The journal as the recorded log sees it: one row for each thing that a tool changed. The journal holds more, such
//! as refusals and directories that were made; a recorded row must be there, in order, with the same facts.

use engine::{EntryFilter, Order, Stored, Workspace};
use serde_json::{Map, Value};

use super::compare::{Judged, Mismatch};
use crate::{
    audit::{Row, rows},
    show::Problem,
};

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

/// Judges one recorded row; `found` are the rows that were recorded before it.
pub(super) fn entry(
    workspace: &dyn Workspace,
    expected: &Map<String, Value>,
    found: &mut Vec<usize>,
) -> Result<Judged, Problem> {
    let filter = EntryFilter { order: Order::OldestFirst, limit: ENTRIES_MAX, ..EntryFilter::default() };
    let entries = workspace.entries(&filter)?;
    let numbered = |(at, stored): (usize, &Stored)| rows(stored).into_iter().map(move |row| (at, row));
    let rows: Vec<(usize, Row)> = entries.iter().enumerate().flat_map(numbered).collect();
    let wanted: Map<String, Value> =
        COMPARED.iter().filter_map(|name| Some(((*name).to_owned(), expected.get(*name)?.clone()))).collect();
    // The rows of one call have no order among themselves.
    let reached = found.iter().filter_map(|at| rows.get(*at)).map(|(entry, _)| *entry).max().unwrap_or(0);
    let ahead = |(at, (entry, _)): &(usize, &(usize, Row))| *entry >= reached && !found.contains(at);
    let mut open = rows.iter().enumerate().filter(ahead).peekable();
    let next = open.peek().map_or(Value::Null, |(_, (_, row))| Value::Object(row.facts.clone()));
    match open.find(|(_, (_, row))| fits(row, &wanted)).map(|(at, _)| at) {
        Some(at) => {
            found.push(at);
            Ok(Ok(()))
        }
        None => Ok(Err(Mismatch::new(format!("{:#}", Value::Object(wanted)), format!("{next:#}")))),
    }
}

/// Whether a row has the recorded facts. A path may also be the one that was given, where a link led elsewhere.
fn fits(row: &Row, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, value)| {
        row.facts.get(name) == Some(value)
            || (name == "path" && row.given.is_some() && row.given.as_deref() == value.as_str())
    })
}
