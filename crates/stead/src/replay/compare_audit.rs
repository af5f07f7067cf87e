//! Compares recorded audit rows with the journal. The journal has more rows, such as refusals and created directories; every
//! recorded row must be in it, in order, with the same fields.

use serde_json::{Map, Value};
use stead_engine::{JournalEntryOrder, JournalEntryQuery, StoredJournalEntry, Workspace};

use super::compare::{ComparisonResult, ReplayMismatch};
use crate::{
    audit_rows::{AuditRow, audit_rows},
    output::CommandError,
};

/// Fields of a row that the journal has as well.
const COMPARED_FIELDS: &[&str] =
    &["sessionId", "agentName", "toolName", "operation", "path", "toPath", "beforeSha256", "afterSha256", "success"];
const ENTRIES_MAX: usize = 100_000;

/// Compares one recorded row; `found` are the rows already matched.
pub(super) fn compare_row(
    workspace: &dyn Workspace,
    expected: &Map<String, Value>,
    found: &mut Vec<usize>,
) -> Result<ComparisonResult, CommandError> {
    let filter =
        JournalEntryQuery { order: JournalEntryOrder::OldestFirst, limit: ENTRIES_MAX, ..JournalEntryQuery::default() };
    let entries = workspace.entries(&filter)?;
    let numbered =
        |(at, stored): (usize, &StoredJournalEntry)| audit_rows(stored).into_iter().map(move |row| (at, row));
    let rows: Vec<(usize, AuditRow)> = entries.iter().enumerate().flat_map(numbered).collect();
    let wanted: Map<String, Value> =
        COMPARED_FIELDS.iter().filter_map(|name| Some(((*name).to_owned(), expected.get(*name)?.clone()))).collect();
    // The rows of one call are unordered.
    let reached = found.iter().filter_map(|at| rows.get(*at)).map(|(entry, _)| *entry).max().unwrap_or(0);
    let ahead = |(at, (entry, _)): &(usize, &(usize, AuditRow))| *entry >= reached && !found.contains(at);
    let mut open = rows.iter().enumerate().filter(ahead).peekable();
    let next = open.peek().map_or(Value::Null, |(_, (_, row))| Value::Object(row.fields.clone()));
    match open.find(|(_, (_, row))| row_matches(row, &wanted)).map(|(at, _)| at) {
        Some(at) => {
            found.push(at);
            Ok(Ok(()))
        }
        None => Ok(Err(ReplayMismatch::new(format!("{:#}", Value::Object(wanted)), format!("{next:#}")))),
    }
}

/// Whether a row has the recorded fields. The path may also be the requested one, if a link led elsewhere.
fn row_matches(row: &AuditRow, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, value)| {
        row.fields.get(name) == Some(value)
            || (name == "path" && row.requested_path.is_some() && row.requested_path.as_deref() == value.as_str())
    })
}
