//! The inputs of the capabilities, and the published error for invalid inputs, which names only the first issue.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stead_engine::Error;

use super::{super::arguments::ArgumentIssue, encoding::KruxFileEncoding, errors::invalid_input};
use crate::{
    definition::{ToolArgumentDefinition, ToolArgumentType},
    limits::ECHOED_NAME_CHARS_MAX,
};

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum KruxToolInput {
    File(KruxFileInput),
    Search(KruxSearchInput),
    Agent(KruxAgentAndSessionInput),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KruxFileInput {
    #[serde(rename = "filesystem.read")]
    Read(KruxReadInput),
    #[serde(rename = "filesystem.write")]
    Write { path: String, content: String, encoding: KruxFileEncoding, create_parents: bool },
    #[serde(rename = "filesystem.append")]
    Append { path: String, content: String },
    #[serde(rename = "filesystem.list")]
    List { path: String, include_hidden: bool, sort_by: String },
    #[serde(rename = "filesystem.stat")]
    Stat { path: String },
    #[serde(rename = "filesystem.delete")]
    Delete { path: String },
    #[serde(rename = "filesystem.restore")]
    Restore(KruxRestoreInput),
    #[serde(rename = "filesystem.copy")]
    Copy(KruxCopyMoveInput),
    #[serde(rename = "filesystem.move")]
    Move(KruxCopyMoveInput),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KruxReadInput {
    pub(super) path: String,
    pub(super) encoding: KruxFileEncoding,
    pub(super) offset: Option<u64>,
    pub(super) limit: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KruxRestoreInput {
    pub(super) trash_path: Option<String>,
    pub(super) original_path: Option<String>,
    pub(super) destination: Option<String>,
    pub(super) overwrite: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KruxCopyMoveInput {
    pub(super) source: String,
    pub(super) destination: String,
    pub(super) overwrite: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KruxSearchInput {
    #[serde(rename = "filesystem.search")]
    ByName(KruxNameSearchInput),
    #[serde(rename = "filesystem.search_content")]
    ByContent(KruxContentSearchInput),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KruxNameSearchInput {
    pub(super) path: String,
    pub(super) pattern: String,
    pub(super) max_results: u64,
    pub(super) include_hidden: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KruxContentSearchInput {
    pub(super) path: String,
    pub(super) pattern: String,
    pub(super) regex: bool,
    pub(super) case_sensitive: bool,
    pub(super) include_glob: Option<String>,
    pub(super) max_results: u64,
    pub(super) context_lines: u64,
    pub(super) include_hidden: bool,
    pub(super) files_only: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KruxAgentAndSessionInput {
    #[serde(rename = "agent.session")]
    Session {},
    #[serde(rename = "agent.whoami")]
    Whoami {},
    #[serde(rename = "agent.capabilities")]
    Capabilities { category: Option<String> },
    #[serde(rename = "agent.policy")]
    Policy {},
    #[serde(rename = "alerts.send")]
    Alert { message: String, severity: String },
    #[serde(rename = "system.disk_usage")]
    DiskUsage {},
    #[serde(rename = "session.create")]
    BeginSession {},
    #[serde(rename = "session.events")]
    ListEvents { cursor: Option<String>, wait_ms: Option<u64> },
    #[serde(rename = "session.end")]
    EndSession { session_id: Option<String> },
    #[serde(rename = "filesystem.watch")]
    Watch { path: String, recursive: bool, event_types: Option<Vec<String>>, pattern: Option<String> },
    #[serde(rename = "filesystem.unwatch")]
    Unwatch { watch_id: String },
}

/// A krux error for invalid inputs names the invalid input that the call contains first. A krux error names a missing
/// input only if all given inputs are valid.
pub(super) fn first_issue_error(issues: &[ArgumentIssue<'_>], given: &Map<String, Value>) -> Option<Error> {
    let position = |issue: &ArgumentIssue<'_>| given.keys().position(|name| name == issue.argument_name());
    let issue = issues.iter().min_by_key(|issue| position(issue).unwrap_or(usize::MAX))?;
    let shortened: String = issue.argument_name().chars().take(ECHOED_NAME_CHARS_MAX).collect();
    Some(match (issue.argument, issue.value) {
        (None, _) => invalid_input(&shortened, "the capability has no such input"),
        (Some(_), None) => invalid_input(&shortened, "is required"),
        (Some(input), Some(_)) => invalid_input(&shortened, &expected_value(input)),
    })
}

fn expected_value(input: &ToolArgumentDefinition) -> String {
    match input.kind {
        ToolArgumentType::String => "must be a string".to_owned(),
        ToolArgumentType::StringOrList => "must be a string or several".to_owned(),
        ToolArgumentType::Integer => "must be a whole number that is not negative".to_owned(),
        ToolArgumentType::Boolean => "must be true or false".to_owned(),
        ToolArgumentType::Enum => format!("must be one of {}", input.values.join(", ")),
        ToolArgumentType::Json => {
            let schema = Value::Object(input.schema());
            let words = schema["items"]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            format!("must be a list of {}", words.collect::<Vec<_>>().join(", "))
        }
    }
}
