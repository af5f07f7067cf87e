//! The stored encoding of a call's arguments: the JSON object that the journal records, and the value that the digest of
//! an approval covers. The journal gets the size of file content, never the content.

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use stead_path::RelPath;

use crate::{
    approval::ApprovalDigestWriter,
    limits,
    plan::{FileModeSource, Plan, PlannedChange},
    version::Version,
};

/// The reserved names under which the journal stores [`EngineFactsAboutCall`] among the arguments of the caller.
const FACT_NAMES: [&str; 4] = ["unchanged", "moved", "buffers", "made_elsewhere"];
const RECORDED_ARGUMENTS_MAX: usize = 32;

/// The facts about a call that the engine adds to its journal entry.
#[derive(Debug, Clone, Default, Serialize)]
pub struct EngineFactsAboutCall {
    /// The version of a file that the call left unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Version>,
    /// The old and new paths of files that the call moves and also changes.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "serialize_path_pairs")]
    pub moved: Vec<(RelPath, RelPath)>,
    /// The ids of the open buffers that the call changes along with the files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buffers: Vec<String>,
    /// The number of changes that the editor applies.
    #[serde(rename = "made_elsewhere", skip_serializing_if = "Option::is_none")]
    pub applied_by_editor: Option<usize>,
}

fn serialize_path_pairs<S: Serializer>(pairs: &[(RelPath, RelPath)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(from, to)| (from.to_string(), to.to_string())))
}

impl EngineFactsAboutCall {
    pub(crate) fn of_plan(plan: &Plan) -> Self {
        let moved = |change: &PlannedChange| {
            let PlannedChange::Put { path, mode: FileModeSource::CopyFrom(from, _), .. } = change else { return None };
            Some((from.clone(), path.clone()))
        };
        let moved = plan.changes.iter().filter_map(moved).collect();
        let buffers = plan.buffers.iter().map(|change| change.id.clone()).collect();
        Self { moved, buffers, ..Self::default() }
    }

    /// The arguments of a journal entry: those of the caller, and the facts under reserved names.
    pub(crate) fn add_to_arguments(&self, arguments: &str) -> String {
        let facts = to_json_object(self);
        match serde_json::from_str(arguments) {
            Ok(Value::Object(mut fields)) if !facts.is_empty() => {
                fields.extend(facts);
                Value::Object(fields).to_string()
            }
            Ok(_) | Err(_) => arguments.to_owned(),
        }
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

/// Whether two recorded arguments are of the same call, apart from the facts that the engine added.
pub(crate) fn are_of_same_call(first: &str, second: &str) -> bool {
    let of_caller = |text: &str| {
        let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
        fields.retain(|name, _| !FACT_NAMES.contains(&name.as_str()));
        fields
    };
    of_caller(first) == of_caller(second)
}
