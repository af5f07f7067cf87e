//! Compares answers, files and audit rows of a replay with the recording. Only the prefix and the reason of an error
//! text are compared, because the rest depends on library versions of the recorded server. Every recorded audit row
//! must be in the journal in order, but the journal may have more rows.

use serde_json::{Map, Value, json};
use stead_engine::{
    JournalEntryOrder, JournalEntryQuery, StoredJournalEntry, Workspace,
    ops::{AuditRow, audit_rows},
};
use stead_protocols::dialect::{DialectReply, ReplyStatus};
use stead_text::diff;

use super::{
    directory::RecordingReplayActualFileState, placeholders::RecordingPlaceholders, recording::RecordedToolCallStep,
};
use crate::{limits::REPLAY_ENTRIES_MAX, output::CommandError};

/// The audit row fields that a replay compares; the journal lacks all other recorded fields.
const COMPARED_AUDIT_FIELDS: &[&str] =
    &["sessionId", "agentName", "toolName", "operation", "path", "toPath", "beforeSha256", "afterSha256", "success"];

#[derive(Debug)]
pub(super) struct RecordingReplayMismatch {
    expected: String,
    actual: String,
}

impl RecordingReplayMismatch {
    pub(super) fn new(expected: impl Into<String>, actual: impl Into<String>) -> Self {
        Self { expected: expected.into(), actual: actual.into() }
    }

    fn from_values(expected: &Value, actual: &Value) -> Self {
        Self::new(format!("{expected:#}"), format!("{actual:#}"))
    }

    pub(super) fn diff_text(&self) -> String {
        let old: Vec<&str> = self.expected.lines().collect();
        let new: Vec<&str> = self.actual.lines().collect();
        let mut lines = Vec::new();
        for hunk in diff::hunks(&(old.join("\n") + "\n"), &(new.join("\n") + "\n")) {
            lines.extend(old.get(hunk.old).unwrap_or_default().iter().map(|line| format!("  - {line}")));
            lines.extend(new.get(hunk.new).unwrap_or_default().iter().map(|line| format!("  + {line}")));
        }
        lines.join("\n")
    }
}

pub(super) type RecordedStepComparisonResult = Result<(), RecordingReplayMismatch>;

pub(super) fn compare_answer(
    call: &RecordedToolCallStep,
    reply: &DialectReply,
    words: &mut RecordingPlaceholders,
) -> Option<RecordedStepComparisonResult> {
    if let Some(issues) = &call.schema_error {
        let is_missing = |issue: &&super::recording::ExpectedArgumentError| {
            !reply.text.contains(&format!("`{}`: {}", issue.path, issue.message))
        };
        let missing: Vec<String> =
            issues.iter().filter(is_missing).map(|issue| format!("`{}`: {}", issue.path, issue.message)).collect();
        let is_match = missing.is_empty() && reply.status == ReplyStatus::Error;
        return Some(if is_match {
            Ok(())
        } else {
            Err(RecordingReplayMismatch::new(missing.join("\n"), reply.text.clone()))
        });
    }
    if let Some(thrown) = &call.throws {
        // The recorded server crashed, so the dialect must return an error.
        return Some(match reply.status {
            ReplyStatus::Error => Ok(()),
            ReplyStatus::Success => {
                Err(RecordingReplayMismatch::new(format!("an error: {thrown}"), reply.text.clone()))
            }
        });
    }
    let expected = call.expect.as_ref()?;
    let actual = to_recorded_form(expected, &reply.json_fields());
    let is_match = object_matches(expected, &actual, words);
    Some(if is_match {
        Ok(())
    } else {
        Err(RecordingReplayMismatch::from_values(
            &Value::Object(words.substitute_object(expected)),
            &Value::Object(actual),
        ))
    })
}

fn object_matches(
    expected: &Map<String, Value>,
    actual: &Map<String, Value>,
    words: &mut RecordingPlaceholders,
) -> bool {
    let failed = expected.get("is_error") == Some(&Value::Bool(true));
    expected.len() == actual.len()
        && expected.iter().all(|(name, expected)| match (expected, actual.get(name)) {
            (Value::String(expected), Some(Value::String(actual))) if failed && name == "for_llm" => {
                error_matches(&words.substitute(expected), actual)
            }
            (expected, Some(actual)) => value_matches(expected, actual, words),
            (_, None) => false,
        })
}

fn value_matches(expected: &Value, actual: &Value, words: &mut RecordingPlaceholders) -> bool {
    match (expected, actual) {
        (Value::String(expected), Value::String(actual)) => words.matches(expected, actual),
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| value_matches(expected, actual, words))
        }
        (Value::Object(expected), Value::Object(actual)) => object_matches(expected, actual, words),
        (expected, actual) => expected == actual,
    }
}

/// Returns whether two error texts of the form `prefix: step path: reason` have the same prefix and reason.
fn error_matches(expected: &str, actual: &str) -> bool {
    let ends = |text: &str| {
        let (prefix, _) = text.split_once(": ")?;
        let (_, reason) = text.rsplit_once(": ")?;
        Some((prefix.to_owned(), reason.to_owned()))
    };
    expected == actual || ends(expected).is_some_and(|expected| Some(expected) == ends(actual))
}

fn to_recorded_form(expected: &Map<String, Value>, answer: &Map<String, Value>) -> Map<String, Value> {
    let mut actual = answer.clone();
    if expected.contains_key("for_llm") {
        // A recording contains only some fields of an answer, and an empty string for a field that the answer lacks.
        let field = |name: &String| (name.clone(), actual.get(name).cloned().unwrap_or_else(|| "".into()));
        return expected.keys().map(field).collect();
    }
    if expected.contains_key("output_first_line") {
        let output = actual.remove("output").unwrap_or_default();
        let first = output.as_str().and_then(|output| output.lines().next()).unwrap_or_default();
        actual.insert("output_first_line".to_owned(), first.into());
        if let Some(Value::Array(matches)) = actual.get_mut("data").and_then(|data| data.get_mut("matches")) {
            let key = |found: &Value| {
                let path = found.get("path").and_then(Value::as_str).unwrap_or_default().to_owned();
                (path, found.get("line").and_then(Value::as_u64))
            };
            matches.sort_by_key(key);
        }
    }
    actual
}

pub(super) fn compare_file(
    facts: &Map<String, Value>,
    found: Option<&RecordingReplayActualFileState>,
) -> RecordedStepComparisonResult {
    let actual: Map<String, Value> = facts
        .keys()
        .map(|name| {
            let value = match (name.as_str(), found) {
                ("text", Some(RecordingReplayActualFileState { bytes: Some(bytes), .. })) => {
                    Value::String(String::from_utf8_lossy(bytes).into_owned())
                }
                ("hex", Some(RecordingReplayActualFileState { bytes: Some(bytes), .. })) => {
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
                }
                ("mode", Some(found)) => format!("{:o}", found.mode).into(),
                ("symlink", found) => found.is_some_and(|found| found.is_link).into(),
                (_, _) => Value::Null,
            };
            (name.clone(), value)
        })
        .collect();
    if *facts == actual {
        return Ok(());
    }
    Err(RecordingReplayMismatch::from_values(&json!(facts), &json!(actual)))
}

/// Finds the audit row of the journal that matches a recorded row, and adds its index to `found`.
pub(super) fn compare_audit_row(
    workspace: &dyn Workspace,
    expected: &Map<String, Value>,
    found: &mut Vec<usize>,
) -> Result<RecordedStepComparisonResult, CommandError> {
    let filter = JournalEntryQuery {
        order: JournalEntryOrder::OldestFirst,
        limit: REPLAY_ENTRIES_MAX,
        ..JournalEntryQuery::default()
    };
    let entries = workspace.entries(&filter)?;
    let numbered =
        |(at, stored): (usize, &StoredJournalEntry)| audit_rows(&stored.entry).into_iter().map(move |row| (at, row));
    let rows: Vec<(usize, AuditRow)> = entries.iter().enumerate().flat_map(numbered).collect();
    let wanted: Map<String, Value> = COMPARED_AUDIT_FIELDS
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), expected.get(*name)?.clone())))
        .collect();
    // The rows of one call are unordered, so a row of the last matched call may also match.
    let reached = found.iter().filter_map(|at| rows.get(*at)).map(|(entry, _)| *entry).max().unwrap_or(0);
    let ahead = |(at, (entry, _)): &(usize, &(usize, AuditRow))| *entry >= reached && !found.contains(at);
    let mut open = rows.iter().enumerate().filter(ahead).peekable();
    let next = open.peek().map_or(Value::Null, |(_, (_, row))| json!(row));
    match open.find(|(_, (_, row))| row_matches(row, &wanted)).map(|(at, _)| at) {
        Some(at) => {
            found.push(at);
            Ok(Ok(()))
        }
        None => Ok(Err(RecordingReplayMismatch::new(format!("{:#}", Value::Object(wanted)), format!("{next:#}")))),
    }
}

/// Returns whether an audit row of the journal has all fields of a recorded row. The `path` of a recorded row may also
/// be the requested path, which can lead through a symbolic link.
fn row_matches(row: &AuditRow, wanted: &Map<String, Value>) -> bool {
    let fields = json!(row);
    wanted.iter().all(|(name, value)| {
        fields.get(name) == Some(value)
            || (name == "path" && row.requested_path.is_some() && row.requested_path.as_deref() == value.as_str())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_matches_by_prefix_and_reason() {
        let expected = "failed to read directory: readdirent /w/a: not a directory";
        assert!(error_matches(expected, "failed to read directory: open /w/a: not a directory"));
        assert!(!error_matches(expected, "failed to read file: open /w/a: not a directory"));
        assert!(!error_matches(expected, "failed to read directory: open /w/a: is a directory"));
        assert!(!error_matches("path is required", "content is required"));
    }

    #[test]
    fn diff_text_shows_only_differing_lines() {
        let text = RecordingReplayMismatch::new("a\nb\nc", "a\nx\nc").diff_text();
        assert_eq!(text, "  - b\n  + x");
    }
}
