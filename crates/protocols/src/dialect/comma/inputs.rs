//! The inputs of the comma tools, and the published error for invalid arguments, which lists all issues, one line each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::arguments::{ArgumentIssue, ArgumentJsonType, ArgumentProblem, tool_inputs};
use crate::{definition::ToolArgumentStringFormat, limits::COMMA_ECHOED_ARGS_CHARS_MAX};

tool_inputs! {
    CommaToolInput with "camelCase" fields:
    "read_file" => ReadFile(CommaReadFileInput {
        path: String, start_line: Option<u64>, end_line: Option<u64>, max_bytes: u64, allow_binary: bool,
    }),
    "list_directory" => ListDirectory(CommaListDirectoryInput { path: String, recursive: bool, max_depth: u64, include_hidden: bool }),
    "search_files" => SearchFiles(CommaSearchFilesInput {
        query: String, mode: CommaSearchMode, root: String, #[serde(default)] include_globs: Vec<String>,
        exclude_globs: Option<Vec<String>>, max_results: u64, context_lines: u64,
    }),
    "glob" => Glob(CommaGlobInput { pattern: String, root: String, exclude_globs: Option<Vec<String>>, max_results: u64 }),
    "create_file" => CreateFile(CommaCreateFileInput {
        path: String, content: String, create_parent_directories: bool,
        /// The alias `createParents`, which the document of the dialect describes and the original code ignores.
        create_parents: bool,
    }),
    "write_file" => WriteFile(CommaWriteFileInput { path: String, content: String, expected_sha256: String }),
    "edit_file" => EditFile(CommaEditFileInput { path: String, expected_sha256: Option<String>, edits: Vec<CommaTextEdit> }),
    "delete_file" => DeleteFile(CommaDeleteFileInput { path: String, expected_sha256: Option<String>, permanent: bool }),
    "restore_file" => RestoreFile(CommaRestoreFileInput { trashed_path: String, target_path: Option<String> }),
    "move_file" => MoveFile(CommaMoveFileInput { from_path: String, to_path: String, expected_sha256: String, overwrite: bool }),
    "apply_patch" => ApplyPatch(CommaApplyPatchInput {
        patch: String, #[serde(default)] expected_sha256_by_path: BTreeMap<String, String>, atomic: bool,
    }),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommaTextEdit {
    pub(super) old_text: String,
    pub(super) new_text: String,
    pub(super) expected_occurrences: Option<u64>,
    /// The argument `replaceAll`, which the document of the dialect describes and the original code ignores.
    #[serde(default)]
    pub(super) replace_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum CommaSearchMode {
    Path,
    Text,
    Regex,
}

impl CommaSearchMode {
    pub(super) fn name(self) -> &'static str {
        match self {
            CommaSearchMode::Path => "path",
            CommaSearchMode::Text => "text",
            CommaSearchMode::Regex => "regex",
        }
    }
}

pub(super) fn invalid_arguments_message(
    tool: &str,
    issues: &[ArgumentIssue<'_>],
    arguments: &Map<String, Value>,
) -> String {
    let mut message = format!("Invalid arguments for `{tool}`:");
    for issue in issues {
        message.push_str(&format!("\n- `{}`: {}", issue.place, issue_sentence(issue)));
    }
    let received = Value::Object(arguments.clone()).to_string();
    message.push_str(&format!("\nReceived: {}", truncate_received(&received)));
    message
}

fn truncate_received(received: &str) -> String {
    match received.char_indices().nth(COMMA_ECHOED_ARGS_CHARS_MAX) {
        None => received.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &received[..end], received.len()),
    }
}

fn issue_sentence(issue: &ArgumentIssue<'_>) -> String {
    let received = issue.value.map_or("undefined", json_type_name);
    let name = issue.argument_name();
    match issue.problem {
        ArgumentProblem::Missing => "Required".to_owned(),
        ArgumentProblem::WrongType(expected) => {
            let expected = match expected {
                ArgumentJsonType::String => "string",
                ArgumentJsonType::Integer => "number",
                ArgumentJsonType::Boolean => "boolean",
                ArgumentJsonType::Array => "array",
                ArgumentJsonType::Object => "object",
            };
            format!("Expected {expected}, received {received}")
        }
        ArgumentProblem::NotOneOf => {
            let known = issue.argument.map_or_else(String::new, |argument| argument.values.join("' | '"));
            match issue.value.and_then(Value::as_str) {
                Some(text) => format!("Invalid enum value. Expected '{known}', received '{text}'"),
                None => format!("Expected '{known}', received {received}"),
            }
        }
        ArgumentProblem::EmptyText => "String must contain at least 1 character(s)".to_owned(),
        ArgumentProblem::EmptyList => "Array must contain at least 1 element(s)".to_owned(),
        ArgumentProblem::PatternMismatch(ToolArgumentStringFormat::Sha256) => {
            format!("{name} must be a 64-character lowercase hex string")
        }
        ArgumentProblem::PatternMismatch(ToolArgumentStringFormat::Sha256OrEmpty) => {
            format!("{name} must hold 64-character lowercase hex strings, or \"\" for a new file")
        }
        ArgumentProblem::NotInteger => "Expected integer, received float".to_owned(),
        ArgumentProblem::BelowMinimum(0) => "Number must be greater than or equal to 0".to_owned(),
        ArgumentProblem::BelowMinimum(min) => format!("Number must be greater than {}", min - 1),
        // The dialect ignores unknown arguments and accepts numbers of every size.
        ArgumentProblem::Unknown | ArgumentProblem::Overflow => String::new(),
    }
}

fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        super::{
            super::arguments::{ArgumentCheckResult, ArgumentIntegerSyntax, tests::assert_inputs_match_definition},
            DEFINITION_JSON,
        },
        *,
    };
    use crate::definition::DialectDefinition;

    fn validation_error(name: &str, arguments: Value) -> String {
        let definition = DialectDefinition::from_json(DEFINITION_JSON).unwrap();
        let (tool, arguments) = (definition.find_tool(name).unwrap(), arguments.as_object().unwrap());
        let checked = ArgumentCheckResult::new(&definition, tool, ArgumentIntegerSyntax::ZeroFraction, arguments);
        if checked.issues.is_empty() {
            return String::new();
        }
        invalid_arguments_message(name, &checked.issues, arguments)
    }

    #[test]
    fn inputs_match_definition() {
        assert_inputs_match_definition::<CommaToolInput>(DEFINITION_JSON);
    }

    #[test]
    fn reports_all_argument_errors_at_once() {
        assert_eq!(
            validation_error("write_file", json!({ "path": "", "expectedSha256": "ABC" })),
            "Invalid arguments for `write_file`:\n\
             - `path`: String must contain at least 1 character(s)\n\
             - `content`: Required\n\
             - `expectedSha256`: expectedSha256 must be a 64-character lowercase hex string\n\
             Received: {\"path\":\"\",\"expectedSha256\":\"ABC\"}"
        );
    }

    #[test]
    fn every_argument_type_has_an_error_message() {
        for (tool, arguments, sentence) in [
            ("read_file", json!({ "path": 1 }), "- `path`: Expected string, received number"),
            ("read_file", json!({ "path": "a", "startLine": 0 }), "greater than 0"),
            ("read_file", json!({ "path": "a", "startLine": 1.5 }), "Expected integer, received float"),
            ("read_file", json!({ "path": "a", "startLine": null }), "Expected number, received null"),
            ("search_files", json!({ "query": "q", "mode": "x" }), "Expected 'path' | 'text' | 'regex', received 'x'"),
            ("search_files", json!({ "query": "q", "mode": "text", "contextLines": -1 }), "or equal to 0"),
            ("glob", json!({ "pattern": "*", "excludeGlobs": [1] }), "- `excludeGlobs.0`: Expected string"),
            ("edit_file", json!({ "path": "a", "edits": [] }), "at least 1 element(s)"),
            ("edit_file", json!({ "path": "a", "edits": [{ "oldText": "" }] }), "- `edits.0.newText`: Required"),
            ("apply_patch", json!({ "patch": "p", "expectedSha256ByPath": [] }), "Expected object, received array"),
            (
                "apply_patch",
                json!({ "patch": "p", "expectedSha256ByPath": { "a.txt": "ABC", "new": "" } }),
                "- `expectedSha256ByPath.a.txt`: expectedSha256ByPath must hold 64-character lowercase hex strings, \
                 or \"\" for a new file\nReceived",
            ),
            (
                "apply_patch",
                json!({ "patch": "p", "expectedSha256ByPath": { "a.txt": 1 } }),
                "- `expectedSha256ByPath.a.txt`: Expected string, received number",
            ),
        ] {
            let message = validation_error(tool, arguments);
            assert!(message.contains(sentence), "{message}");
        }
        let valid = json!({ "patch": "p", "expectedSha256ByPath": { "a": "", "b": "0a".repeat(32) } });
        assert_eq!(validation_error("apply_patch", valid), "");
        assert_eq!(validation_error("read_file", json!({ "path": "a", "startLine": 2.0, "other": [] })), "");
    }
}
