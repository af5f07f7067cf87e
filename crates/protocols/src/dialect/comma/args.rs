//! Validates the arguments of a call. All problems are reported together, one line each, in the published words;
//! unknown arguments are ignored.

use serde_json::{Map, Value};

use super::tool::CommaTool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaArgType {
    NonEmptyText,
    AnyText,
    PositiveInteger,
    NonNegativeInteger,
    Boolean,
    /// In lowercase hex.
    Sha256,
    TextList,
    OneOf(&'static [&'static str]),
    EditList,
    /// A sha256, or the empty string, for each path.
    Sha256ByPath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaArgPresence {
    Required,
    Optional,
}

use CommaArgPresence::{Optional, Required};

type CommaArgSpec = (&'static str, CommaArgType, CommaArgPresence);

/// Whether an edit must name the version it is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditHashRule {
    /// As in the document.
    Required,
    /// As in the original code.
    Optional,
}

fn arg_specs(tool: CommaTool, edit_hash: EditHashRule) -> Vec<CommaArgSpec> {
    match tool {
        CommaTool::ReadFile | CommaTool::ListDirectory | CommaTool::SearchFiles | CommaTool::Glob => {
            read_tool_arg_specs(tool)
        }
        CommaTool::CreateFile => vec![
            ("path", CommaArgType::NonEmptyText, Required),
            ("content", CommaArgType::AnyText, Required),
            ("createParentDirectories", CommaArgType::Boolean, Optional),
            ("createParents", CommaArgType::Boolean, Optional),
        ],
        CommaTool::WriteFile => vec![
            ("path", CommaArgType::NonEmptyText, Required),
            ("content", CommaArgType::AnyText, Required),
            ("expectedSha256", CommaArgType::Sha256, Required),
        ],
        CommaTool::EditFile => {
            let hash = match edit_hash {
                EditHashRule::Required => Required,
                EditHashRule::Optional => Optional,
            };
            vec![
                ("path", CommaArgType::NonEmptyText, Required),
                ("expectedSha256", CommaArgType::Sha256, hash),
                ("edits", CommaArgType::EditList, Required),
            ]
        }
        CommaTool::DeleteFile => vec![
            ("path", CommaArgType::NonEmptyText, Required),
            ("expectedSha256", CommaArgType::Sha256, Optional),
            ("permanent", CommaArgType::Boolean, Optional),
        ],
        CommaTool::RestoreFile => {
            vec![
                ("trashedPath", CommaArgType::NonEmptyText, Required),
                ("targetPath", CommaArgType::NonEmptyText, Optional),
            ]
        }
        CommaTool::MoveFile => vec![
            ("fromPath", CommaArgType::NonEmptyText, Required),
            ("toPath", CommaArgType::NonEmptyText, Required),
            ("expectedSha256", CommaArgType::Sha256, Required),
            ("overwrite", CommaArgType::Boolean, Optional),
        ],
        CommaTool::ApplyPatch => vec![
            ("patch", CommaArgType::NonEmptyText, Required),
            ("expectedSha256ByPath", CommaArgType::Sha256ByPath, Optional),
            ("atomic", CommaArgType::Boolean, Optional),
        ],
    }
}

fn read_tool_arg_specs(tool: CommaTool) -> Vec<CommaArgSpec> {
    match tool {
        CommaTool::ReadFile => vec![
            ("path", CommaArgType::NonEmptyText, Required),
            ("startLine", CommaArgType::PositiveInteger, Optional),
            ("endLine", CommaArgType::PositiveInteger, Optional),
            ("maxBytes", CommaArgType::PositiveInteger, Optional),
            ("allowBinary", CommaArgType::Boolean, Optional),
        ],
        CommaTool::ListDirectory => vec![
            ("path", CommaArgType::NonEmptyText, Required),
            ("recursive", CommaArgType::Boolean, Optional),
            ("maxDepth", CommaArgType::PositiveInteger, Optional),
            ("includeHidden", CommaArgType::Boolean, Optional),
        ],
        CommaTool::SearchFiles => vec![
            ("query", CommaArgType::NonEmptyText, Required),
            ("mode", CommaArgType::OneOf(&["path", "text", "regex"]), Required),
            ("root", CommaArgType::NonEmptyText, Optional),
            ("includeGlobs", CommaArgType::TextList, Optional),
            ("excludeGlobs", CommaArgType::TextList, Optional),
            ("maxResults", CommaArgType::PositiveInteger, Optional),
            ("contextLines", CommaArgType::NonNegativeInteger, Optional),
        ],
        CommaTool::Glob => vec![
            ("pattern", CommaArgType::NonEmptyText, Required),
            ("root", CommaArgType::NonEmptyText, Optional),
            ("excludeGlobs", CommaArgType::TextList, Optional),
            ("maxResults", CommaArgType::PositiveInteger, Optional),
        ],
        CommaTool::CreateFile
        | CommaTool::WriteFile
        | CommaTool::EditFile
        | CommaTool::DeleteFile
        | CommaTool::RestoreFile
        | CommaTool::MoveFile
        | CommaTool::ApplyPatch => Vec::new(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct CommaArgIssue {
    path: String,
    message: String,
}

fn single_issue(path: &str, message: impl Into<String>) -> Vec<CommaArgIssue> {
    vec![CommaArgIssue { path: path.to_owned(), message: message.into() }]
}

/// Arguments that are valid for their tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommaArgs<'a> {
    arguments: &'a Map<String, Value>,
}

impl<'a> CommaArgs<'a> {
    /// Validates a call. The error lists every problem.
    pub(super) fn validate(
        tool: CommaTool,
        arguments: &'a Map<String, Value>,
        edit_hash: EditHashRule,
    ) -> Result<Self, String> {
        let issues: Vec<CommaArgIssue> = arg_specs(tool, edit_hash)
            .into_iter()
            .flat_map(|(name, kind, presence)| match (arguments.get(name), presence) {
                (None, Required) => single_issue(name, "Required"),
                (None, Optional) => Vec::new(),
                (Some(value), _) => check_type(name, kind, value),
            })
            .collect();
        if issues.is_empty() {
            return Ok(Self { arguments });
        }
        let mut message = format!("Invalid arguments for `{}`:", tool.name());
        for issue in issues {
            message.push_str(&format!("\n- `{}`: {}", issue.path, issue.message));
        }
        let received = Value::Object(arguments.clone()).to_string();
        message.push_str(&format!("\nReceived: {}", truncate_received(&received)));
        Err(message)
    }

    pub(super) fn text_or_empty(&self, name: &str) -> &'a str {
        self.optional_text(name).unwrap_or_default()
    }

    pub(super) fn optional_text(&self, name: &str) -> Option<&'a str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.arguments.get(name).and_then(parse_whole_number)
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.flag(name) == Some(true)
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.arguments.get(name).and_then(Value::as_bool)
    }

    pub(super) fn texts(&self, name: &str) -> Option<Vec<&'a str>> {
        let texts = self.arguments.get(name)?.as_array()?;
        Some(texts.iter().filter_map(Value::as_str).collect())
    }

    pub(super) fn objects(&self, name: &str) -> Vec<&'a Map<String, Value>> {
        let list = self.arguments.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_object).collect()
    }

    pub(super) fn object(&self, name: &str) -> Option<&'a Map<String, Value>> {
        self.arguments.get(name).and_then(Value::as_object)
    }
}

const ECHOED_ARGS_CHARS_MAX: usize = 2000;

fn truncate_received(received: &str) -> String {
    match received.char_indices().nth(ECHOED_ARGS_CHARS_MAX) {
        None => received.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &received[..end], received.len()),
    }
}

/// An integer, also one written with a zero fraction.
pub(super) fn parse_whole_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number =
            value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=MAX_SAFE_INTEGER).contains(number))?;
        format!("{number:.0}").parse().ok()
    })
}

/// The largest integer that the original's numbers represent exactly.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

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

fn wrong_type_issue(path: &str, word: &str, value: &Value) -> Vec<CommaArgIssue> {
    single_issue(path, format!("Expected {word}, received {}", json_type_name(value)))
}

fn check_type(path: &str, kind: CommaArgType, value: &Value) -> Vec<CommaArgIssue> {
    match (kind, value) {
        (CommaArgType::NonEmptyText, Value::String(text)) if text.is_empty() => {
            single_issue(path, "String must contain at least 1 character(s)")
        }
        (CommaArgType::NonEmptyText | CommaArgType::AnyText, Value::String(_)) => Vec::new(),
        (CommaArgType::Sha256, Value::String(text)) => {
            if is_sha256_hex(text) {
                return Vec::new();
            }
            let name = path.rsplit('.').next().unwrap_or(path);
            single_issue(path, format!("{name} must be a 64-character lowercase hex string"))
        }
        (CommaArgType::OneOf(words), Value::String(text)) => {
            if words.contains(&text.as_str()) {
                return Vec::new();
            }
            let known: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            single_issue(path, format!("Invalid enum value. Expected {}, received '{text}'", known.join(" | ")))
        }
        (CommaArgType::OneOf(words), other) => {
            let known: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            wrong_type_issue(path, &known.join(" | "), other)
        }
        (CommaArgType::NonEmptyText | CommaArgType::AnyText | CommaArgType::Sha256, other) => {
            wrong_type_issue(path, "string", other)
        }
        (CommaArgType::PositiveInteger | CommaArgType::NonNegativeInteger, Value::Number(_)) => {
            check_number(path, kind, value)
        }
        (CommaArgType::PositiveInteger | CommaArgType::NonNegativeInteger, other) => {
            wrong_type_issue(path, "number", other)
        }
        (CommaArgType::Boolean, Value::Bool(_)) => Vec::new(),
        (CommaArgType::Boolean, other) => wrong_type_issue(path, "boolean", other),
        (CommaArgType::TextList, Value::Array(texts)) => {
            let each = |(index, text)| check_type(&format!("{path}.{index}"), CommaArgType::NonEmptyText, text);
            texts.iter().enumerate().flat_map(each).collect()
        }
        (CommaArgType::EditList, Value::Array(edits)) if edits.is_empty() => {
            single_issue(path, "Array must contain at least 1 element(s)")
        }
        (CommaArgType::EditList, Value::Array(edits)) => {
            edits.iter().enumerate().flat_map(|(index, edit)| check_edit(&format!("{path}.{index}"), edit)).collect()
        }
        (CommaArgType::TextList | CommaArgType::EditList, other) => wrong_type_issue(path, "array", other),
        (CommaArgType::Sha256ByPath, Value::Object(hashes)) => {
            let each = |(name, hash): (&String, &Value)| check_empty_or_hash(&format!("{path}.{name}"), hash);
            hashes.iter().flat_map(each).collect()
        }
        (CommaArgType::Sha256ByPath, other) => wrong_type_issue(path, "object", other),
    }
}

/// The empty string asserts that the file does not exist.
fn check_empty_or_hash(path: &str, value: &Value) -> Vec<CommaArgIssue> {
    let Value::String(text) = value else { return wrong_type_issue(path, "string", value) };
    if text.is_empty() || is_sha256_hex(text) {
        return Vec::new();
    }
    single_issue(path, "expectedSha256ByPath must hold 64-character lowercase hex strings, or \"\" for a new file")
}

fn check_number(path: &str, kind: CommaArgType, value: &Value) -> Vec<CommaArgIssue> {
    let number = value.as_f64().unwrap_or(f64::NAN);
    if number.fract() != 0.0 {
        return single_issue(path, "Expected integer, received float");
    }
    match kind {
        CommaArgType::PositiveInteger if number <= 0.0 => single_issue(path, "Number must be greater than 0"),
        CommaArgType::NonNegativeInteger if number < 0.0 => {
            single_issue(path, "Number must be greater than or equal to 0")
        }
        CommaArgType::PositiveInteger
        | CommaArgType::NonNegativeInteger
        | CommaArgType::NonEmptyText
        | CommaArgType::AnyText
        | CommaArgType::Boolean
        | CommaArgType::Sha256
        | CommaArgType::TextList
        | CommaArgType::OneOf(_)
        | CommaArgType::EditList
        | CommaArgType::Sha256ByPath => Vec::new(),
    }
}

fn check_edit(path: &str, value: &Value) -> Vec<CommaArgIssue> {
    let Value::Object(fields) = value else { return wrong_type_issue(path, "object", value) };
    let specs = [
        ("oldText", CommaArgType::NonEmptyText, Required),
        ("newText", CommaArgType::AnyText, Required),
        ("expectedOccurrences", CommaArgType::PositiveInteger, Optional),
        ("replaceAll", CommaArgType::Boolean, Optional),
    ];
    let check = |(name, kind, presence): (&str, CommaArgType, CommaArgPresence)| {
        let path = format!("{path}.{name}");
        match (fields.get(name), presence) {
            (None, Required) => single_issue(&path, "Required"),
            (None, Optional) => Vec::new(),
            (Some(value), _) => check_type(&path, kind, value),
        }
    };
    specs.into_iter().flat_map(check).collect()
}

fn is_sha256_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn validation_error(tool: CommaTool, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { return String::new() };
        let outcome = CommaArgs::validate(tool, &arguments, EditHashRule::Required).map(|_| ());
        outcome.err().unwrap_or_default()
    }

    #[test]
    fn reports_all_argument_errors_at_once() {
        assert_eq!(
            validation_error(CommaTool::WriteFile, json!({ "path": "", "expectedSha256": "ABC" })),
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
            (CommaTool::ReadFile, json!({ "path": 1 }), "- `path`: Expected string, received number"),
            (CommaTool::ReadFile, json!({ "path": "a", "startLine": 0 }), "greater than 0"),
            (CommaTool::ReadFile, json!({ "path": "a", "startLine": 1.5 }), "Expected integer, received float"),
            (CommaTool::ReadFile, json!({ "path": "a", "startLine": null }), "Expected number, received null"),
            (
                CommaTool::SearchFiles,
                json!({ "query": "q", "mode": "x" }),
                "Expected 'path' | 'text' | 'regex', received 'x'",
            ),
            (CommaTool::SearchFiles, json!({ "query": "q", "mode": "text", "contextLines": -1 }), "or equal to 0"),
            (CommaTool::Glob, json!({ "pattern": "*", "excludeGlobs": [1] }), "- `excludeGlobs.0`: Expected string"),
            (CommaTool::EditFile, json!({ "path": "a", "edits": [] }), "at least 1 element(s)"),
            (
                CommaTool::EditFile,
                json!({ "path": "a", "edits": [{ "oldText": "" }] }),
                "- `edits.0.newText`: Required",
            ),
            (
                CommaTool::ApplyPatch,
                json!({ "patch": "p", "expectedSha256ByPath": [] }),
                "Expected object, received array",
            ),
            (
                CommaTool::ApplyPatch,
                json!({ "patch": "p", "expectedSha256ByPath": { "a.txt": "ABC", "new": "" } }),
                "- `expectedSha256ByPath.a.txt`: expectedSha256ByPath must hold 64-character lowercase hex strings, \
                 or \"\" for a new file\nReceived",
            ),
            (
                CommaTool::ApplyPatch,
                json!({ "patch": "p", "expectedSha256ByPath": { "a.txt": 1 } }),
                "- `expectedSha256ByPath.a.txt`: Expected string, received number",
            ),
        ] {
            let message = validation_error(tool, arguments);
            assert!(message.contains(sentence), "{message}");
        }
        let fitting = json!({ "patch": "p", "expectedSha256ByPath": { "a": "", "b": "0a".repeat(32) } });
        assert_eq!(validation_error(CommaTool::ApplyPatch, fitting), "");
        assert_eq!(validation_error(CommaTool::ReadFile, json!({ "path": "a", "startLine": 2.0, "other": [] })), "");
    }
}
