//! The journal as the recorded log sees it: one row for each thing that a tool changed. The journal holds more, such
//! as refusals and directories that were made; a recorded row must be there, in order, with the same facts.

use engine::{EntryFilter, Order, Which, Workspace};
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
    match rows.iter().skip(*from).position(|row| fits(row, &wanted)) {
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

/// Whether a row has the recorded facts. A path may also be the one that was given, where a link led elsewhere.
fn fits(row: &Row, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, value)| {
        row.facts.get(name) == Some(value)
            || (name == "path" && row.given.is_some() && row.given.as_deref() == value.as_str())
    })
}
