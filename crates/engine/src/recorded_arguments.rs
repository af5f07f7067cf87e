//! The stored encoding of a call's arguments: the JSON object that the journal records, and the value that the digest of
//! an approval covers. The journal gets the size of file content, never the content.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stead_journal::{Digest, JournalEntry, JournalEntryDetails, RecordedMove};

use crate::{approval::ApprovalDigestWriter, limits};

const RECORDED_ARGUMENTS_MAX: usize = 32;

/// The details of a call as formats 1 to 3 of a journal entry store them: under these reserved names, among the
/// arguments of the caller.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct ReservedArguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    unchanged: Option<Digest>,
    /// The old paths of the moved files as keys, with the new paths.
    #[serde(skip_serializing_if = "Map::is_empty")]
    moved: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    buffers: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_elsewhere: Option<u64>,
}

const RESERVED_NAMES: [&str; 4] = ["unchanged", "moved", "buffers", "made_elsewhere"];

/// The details of a journal entry of any format.
pub(crate) fn entry_details(entry: &JournalEntry) -> Cow<'_, JournalEntryDetails> {
    if !entry.details.is_empty() {
        return Cow::Borrowed(&entry.details);
    }
    let reserved: ReservedArguments = serde_json::from_str(&entry.arguments).unwrap_or_default();
    let moved = |(from, to): (String, Value)| Some(RecordedMove { from, to: to.as_str()?.to_owned() });
    Cow::Owned(JournalEntryDetails {
        moved: reserved.moved.into_iter().filter_map(moved).collect(),
        unchanged: reserved.unchanged,
        buffers: reserved.buffers,
        applied_by_editor: reserved.made_elsewhere,
        ..JournalEntryDetails::default()
    })
}

/// The arguments of a journal entry for readers that know only formats 1 to 3: with the details under reserved names.
pub fn arguments_with_details(entry: &JournalEntry) -> Cow<'_, str> {
    let details = &entry.details;
    let reserved = to_json_object(&ReservedArguments {
        unchanged: details.unchanged,
        moved: details.moved.iter().map(|moved| (moved.from.clone(), moved.to.clone().into())).collect(),
        buffers: details.buffers.clone(),
        made_elsewhere: details.applied_by_editor,
    });
    match serde_json::from_str(&entry.arguments) {
        Ok(Value::Object(mut fields)) if !reserved.is_empty() => {
            fields.extend(reserved);
            Cow::Owned(Value::Object(fields).to_string())
        }
        Ok(_) | Err(_) => Cow::Borrowed(&entry.arguments),
    }
}

/// The derived serialization of a struct to JSON cannot fail.
pub(crate) fn to_json_object(fields: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(fields) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) | Err(_) => Map::new(),
    }
}

/// The recorded arguments of an answer that a client gave in place of a person.
pub(crate) fn client_answer_arguments(approval: &str) -> String {
    json!({ "id": approval, "by": "client" }).to_string()
}

/// The complete arguments of a call.
#[derive(Debug)]
pub(crate) struct UnredactedCallArguments(Map<String, Value>);

impl UnredactedCallArguments {
    pub(crate) fn of_operation(operation: &impl Serialize) -> Self {
        Self(to_json_object(operation))
    }

    pub(crate) fn write_digest(&self, out: &mut ApprovalDigestWriter) {
        write_members(out, &self.0);
    }

    /// The arguments as the journal records them. `content_arguments` names the arguments that are file content.
    pub(crate) fn redacted(&self, content_arguments: &[&str]) -> String {
        redact(&self.0, |name| content_arguments.contains(&name))
    }

    /// The recorded form of arguments that a dialect could not translate. The meaning of such an argument is unknown,
    /// so every argument that does not name a path may be file content.
    pub(crate) fn redacted_untranslated(&self) -> String {
        redact(&self.0, |name| !name.to_lowercase().contains("path"))
    }
}

fn write_json(out: &mut ApprovalDigestWriter, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => out.write_text(&value.to_string()),
        Value::String(text) => {
            out.write_text("s");
            out.write_text(text);
        }
        Value::Array(items) => {
            out.write_text("a");
            out.write_number(items.len() as u64);
            items.iter().for_each(|item| write_json(out, item));
        }
        Value::Object(fields) => write_members(out, fields),
    }
}

/// Object members are sorted, so that their order does not change the digest.
fn write_members(out: &mut ApprovalDigestWriter, fields: &Map<String, Value>) {
    out.write_text("o");
    out.write_number(fields.len() as u64);
    let mut sorted: Vec<_> = fields.iter().collect();
    sorted.sort_by_key(|(name, _)| name.as_str());
    for (name, item) in sorted {
        out.write_text(name);
        write_json(out, item);
    }
}

fn redact(arguments: &Map<String, Value>, is_content: impl Fn(&str) -> bool) -> String {
    let recorded = arguments.iter().map(|(name, value)| {
        let recorded = match value {
            Value::String(text) if is_content(name) || text.len() > limits::RECORDED_ARGUMENT_CHARS_MAX => {
                Value::String(format!("<{} bytes>", text.len()))
            }
            Value::Array(_) | Value::Object(_) => Value::String("<nested>".to_owned()),
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        };
        (name.clone(), recorded)
    });
    Value::Object(recorded.take(RECORDED_ARGUMENTS_MAX).collect()).to_string()
}

/// Whether a journal entry has these recorded arguments, apart from the details of the entry.
pub(crate) fn has_arguments(entry: &JournalEntry, arguments: &str) -> bool {
    let of_caller = |text: &str| {
        let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        fields.retain(|name, _| !RESERVED_NAMES.contains(&name.as_str()));
        fields
    };
    of_caller(&entry.arguments) == of_caller(arguments)
}

#[cfg(test)]
mod tests {
    use stead_journal::{ChangeKind, PathState, RecordedChange};

    use super::*;
    use crate::ops::audit_rows;

    fn entry(arguments: &str, details: JournalEntryDetails) -> JournalEntry {
        JournalEntry { arguments: arguments.to_owned(), details, ..JournalEntry::default() }
    }

    #[test]
    fn details_of_old_entries_are_among_the_arguments() {
        let version = Digest([0xab; 32]);
        let moved = |from: &str, to: &str| RecordedMove { from: from.to_owned(), to: to.to_owned() };
        let details = JournalEntryDetails {
            moved: vec![moved("b", "c"), moved("a", "d")],
            unchanged: Some(version),
            buffers: vec!["b1".to_owned()],
            applied_by_editor: Some(2),
            ..JournalEntryDetails::default()
        };
        let change = |path: &str, kind| {
            let state = PathState::Unknown { size: None };
            RecordedChange { path: path.to_owned(), kind, to: None, before: state.clone(), after: state }
        };
        let changes = vec![change("b", ChangeKind::Remove), change("c", ChangeKind::Create)];
        let new = JournalEntry { changes, ..entry(r#"{"path":"a"}"#, details.clone()) };
        let reserved =
            format!(r#""unchanged":"{version}","moved":{{"b":"c","a":"d"}},"buffers":["b1"],"made_elsewhere":2"#);
        let arguments = format!(r#"{{"path":"a",{reserved}}}"#);
        let old = JournalEntry { arguments, details: JournalEntryDetails::default(), ..new.clone() };
        assert_eq!(entry_details(&old).as_ref(), &details);
        assert_eq!(entry_details(&new).as_ref(), &details);
        assert_eq!(arguments_with_details(&new), old.arguments);
        assert_eq!(arguments_with_details(&old), old.arguments);
        let rows = json!(audit_rows(&new));
        assert_eq!((rows.as_array().map(Vec::len), &rows[0]["operation"]), (Some(1), &json!("move")));
        assert_eq!(json!(audit_rows(&old)), rows);
        assert!(has_arguments(&old, r#"{"path":"a"}"#) && has_arguments(&new, r#"{"path":"a"}"#));
        assert!(!has_arguments(&new, r#"{"path":"b"}"#));
    }

    #[test]
    fn typed_details_hide_reserved_names() {
        let details = JournalEntryDetails { applied_by_editor: Some(1), ..JournalEntryDetails::default() };
        let entry = entry(r#"{"unchanged":"x","moved":{"a":"b"}}"#, details.clone());
        assert_eq!(entry_details(&entry).as_ref(), &details);
        let without_facts = JournalEntry { details: JournalEntryDetails::default(), ..entry };
        assert!(entry_details(&without_facts).is_empty(), "an argument of a caller is no digest");
    }
}
