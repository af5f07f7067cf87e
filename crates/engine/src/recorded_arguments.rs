//! The stored encoding of a call's arguments: the JSON object that the journal records, and the value that the digest of
//! an approval covers. The journal gets the size of file content, never the content.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    limits,
    outcome::to_json_object,
    plan::{FileModeSource, Plan, PlannedChange},
    version::Version,
};

/// The number of changes that the editor applies.
const APPLIED_ELSEWHERE_FIELD: &str = "made_elsewhere";
/// The version of a file that the call left unchanged.
const UNCHANGED_FIELD: &str = "unchanged";
/// The old and new paths of files that the call moves and also changes.
const MOVED_FIELD: &str = "moved";
/// The ids of the open buffers that the call changes along with the files.
const BUFFERS_FIELD: &str = "buffers";
/// The fields that the engine adds to the arguments of the caller.
const ADDED_FIELDS: [&str; 4] = [UNCHANGED_FIELD, MOVED_FIELD, BUFFERS_FIELD, APPLIED_ELSEWHERE_FIELD];
const RECORDED_ARGUMENTS_MAX: usize = 32;

/// The complete arguments of a call.
#[derive(Debug)]
pub(crate) struct UnredactedCallArguments(Map<String, Value>);

impl UnredactedCallArguments {
    pub(crate) fn of_operation(operation: &impl Serialize) -> Self {
        Self(to_json_object(operation))
    }

    pub(crate) fn as_json(&self) -> Value {
        Value::Object(self.0.clone())
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

/// Whether two recorded arguments are of the same call, apart from the fields that the engine added.
pub(crate) fn are_of_same_call(first: &str, second: &str) -> bool {
    let of_caller = |text: &str| {
        let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        fields.retain(|name, _| !ADDED_FIELDS.contains(&name.as_str()));
        fields
    };
    of_caller(first) == of_caller(second)
}

pub(crate) fn add_unchanged_version(recorded: &mut String, version: Option<Version>) {
    add_field(recorded, UNCHANGED_FIELD, version.map(|version| version.to_string().into()));
}

pub(crate) fn add_changes_applied_elsewhere(recorded: &mut String, changes: usize) {
    add_field(recorded, APPLIED_ELSEWHERE_FIELD, Some(changes.into()));
}

pub(crate) fn add_moved_files_and_buffers(recorded: &mut String, plan: &Plan) {
    let moved = |change: &PlannedChange| {
        let PlannedChange::Put { path, mode: FileModeSource::CopyFrom(from, _), .. } = change else { return None };
        Some((from.to_string(), path.to_string().into()))
    };
    let moved: Map<String, Value> = plan.changes.iter().filter_map(moved).collect();
    add_field(recorded, MOVED_FIELD, (!moved.is_empty()).then_some(Value::Object(moved)));
    let buffers: Vec<&str> = plan.buffers.iter().map(|change| change.id.as_str()).collect();
    add_field(recorded, BUFFERS_FIELD, (!buffers.is_empty()).then(|| buffers.into()));
}

fn add_field(recorded: &mut String, name: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    if let Ok(Value::Object(mut fields)) = serde_json::from_str(recorded) {
        fields.insert(name.to_owned(), value);
        *recorded = Value::Object(fields).to_string();
    }
}
