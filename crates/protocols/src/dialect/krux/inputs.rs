//! The inputs of the krux capabilities, and the published error for invalid inputs, which names only the first issue.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stead_engine::Error;

use super::{
    super::arguments::{ArgumentIssue, tool_inputs},
    encoding::KruxFileEncoding,
    errors::invalid_input,
};
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

tool_inputs! {
    KruxFileInput with "snake_case" fields:
    "filesystem.read" => Read(KruxReadInput {
        path: String, encoding: KruxFileEncoding, offset: Option<u64>, limit: Option<u64>,
    }),
    "filesystem.write" => Write(KruxWriteInput {
        path: String, content: String, encoding: KruxFileEncoding, create_parents: bool,
    }),
    "filesystem.append" => Append(KruxAppendInput { path: String, content: String }),
    "filesystem.list" => List(KruxListInput { path: String, include_hidden: bool, sort_by: String }),
    "filesystem.stat" => Stat(KruxStatInput { path: String }),
    "filesystem.delete" => Delete(KruxDeleteInput { path: String }),
    "filesystem.restore" => Restore(KruxRestoreInput {
        trash_path: Option<String>, original_path: Option<String>, destination: Option<String>, overwrite: bool,
    }),
    "filesystem.copy" => Copy(KruxCopyMoveInput { source: String, destination: String, overwrite: bool }),
    "filesystem.move" => Move(KruxCopyMoveInput),
}

tool_inputs! {
    KruxSearchInput with "snake_case" fields:
    "filesystem.search" => ByName(KruxNameSearchInput {
        path: String, pattern: String, max_results: u64, include_hidden: bool,
    }),
    "filesystem.search_content" => ByContent(KruxContentSearchInput {
        path: String, pattern: String, regex: bool, case_sensitive: bool, include_glob: Option<String>,
        max_results: u64, context_lines: u64, include_hidden: bool, files_only: bool,
    }),
}

tool_inputs! {
    KruxAgentAndSessionInput with "snake_case" fields:
    "agent.session" => Session(KruxEmptyInput {}),
    "agent.whoami" => Whoami(KruxEmptyInput),
    "agent.capabilities" => Capabilities(KruxCapabilitiesInput { category: Option<String> }),
    "agent.policy" => Policy(KruxEmptyInput),
    "alerts.send" => Alert(KruxAlertInput { message: String, severity: String }),
    "system.disk_usage" => DiskUsage(KruxEmptyInput),
    "session.create" => BeginSession(KruxEmptyInput),
    "session.events" => ListEvents(KruxListEventsInput { cursor: Option<String>, wait_ms: Option<u64> }),
    "session.end" => EndSession(KruxEndSessionInput { session_id: Option<String> }),
    "filesystem.watch" => Watch(KruxWatchInput {
        path: String, recursive: bool, event_types: Option<Vec<String>>, pattern: Option<String>,
    }),
    "filesystem.unwatch" => Unwatch(KruxUnwatchInput { watch_id: String }),
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
        ToolArgumentType::StringList => "must be a list of strings".to_owned(),
        ToolArgumentType::Integer => "must be a whole number that is not negative".to_owned(),
        ToolArgumentType::Boolean => "must be true or false".to_owned(),
        ToolArgumentType::Enum => format!("must be one of {}", input.values.join(", ")),
        ToolArgumentType::Json => {
            let schema = input.schema();
            let words = schema["items"]["enum"].as_array().into_iter().flatten().filter_map(Value::as_str);
            format!("must be a list of {}", words.collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::super::arguments::tests::assert_inputs_match_definition, *};

    #[test]
    fn inputs_match_definition() {
        assert_inputs_match_definition::<KruxToolInput>(super::super::DEFINITION_JSON);
    }
}
