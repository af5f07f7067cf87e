//! Validates the arguments of a tool call, and ignores unknown arguments. The error for invalid arguments lists all
//! problems, one line each, in the sentences that the dialect published.

use serde_json::{Map, Value};

use super::CommaTool;
use crate::limits::COMMA_ECHOED_ARGS_CHARS_MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaToolArgType {
    NonEmptyText,
    AnyText,
    PositiveInteger,
    NonNegativeInteger,
    Boolean,
    Sha256,
    TextList,
    OneOf(&'static [&'static str]),
    EditList,
    /// The argument is an object that maps each path to a hash or to the empty string.
    Sha256ByPath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaToolArgPresence {
    Required,
    Optional,
}

use CommaToolArgPresence::{Optional, Required};

type CommaToolArgSpec = (&'static str, CommaToolArgType, CommaToolArgPresence);

/// The document of the dialect requires the hash of the base version in an edit; the original code does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditBaseHashRule {
    Required,
    Optional,
}

/// The hash argument of `edit_file` is optional if an option of the dialect says so.
fn arg_specs(tool: CommaTool) -> &'static [CommaToolArgSpec] {
    match tool {
        CommaTool::ReadFile => &[
            ("path", CommaToolArgType::NonEmptyText, Required),
            ("startLine", CommaToolArgType::PositiveInteger, Optional),
            ("endLine", CommaToolArgType::PositiveInteger, Optional),
            ("maxBytes", CommaToolArgType::PositiveInteger, Optional),
            ("allowBinary", CommaToolArgType::Boolean, Optional),
        ],
        CommaTool::ListDirectory => &[
            ("path", CommaToolArgType::NonEmptyText, Required),
            ("recursive", CommaToolArgType::Boolean, Optional),
            ("maxDepth", CommaToolArgType::PositiveInteger, Optional),
            ("includeHidden", CommaToolArgType::Boolean, Optional),
        ],
        CommaTool::SearchFiles => &[
            ("query", CommaToolArgType::NonEmptyText, Required),
            ("mode", CommaToolArgType::OneOf(&["path", "text", "regex"]), Required),
            ("root", CommaToolArgType::NonEmptyText, Optional),
            ("includeGlobs", CommaToolArgType::TextList, Optional),
            ("excludeGlobs", CommaToolArgType::TextList, Optional),
            ("maxResults", CommaToolArgType::PositiveInteger, Optional),
            ("contextLines", CommaToolArgType::NonNegativeInteger, Optional),
        ],
        CommaTool::Glob => &[
            ("pattern", CommaToolArgType::NonEmptyText, Required),
            ("root", CommaToolArgType::NonEmptyText, Optional),
            ("excludeGlobs", CommaToolArgType::TextList, Optional),
            ("maxResults", CommaToolArgType::PositiveInteger, Optional),
        ],
        CommaTool::CreateFile => &[
            ("path", CommaToolArgType::NonEmptyText, Required),
            ("content", CommaToolArgType::AnyText, Required),
            ("createParentDirectories", CommaToolArgType::Boolean, Optional),
            ("createParents", CommaToolArgType::Boolean, Optional),
        ],
        CommaTool::WriteFile => &[
            ("path", CommaToolArgType::NonEmptyText, Required),
            ("content", CommaToolArgType::AnyText, Required),
            ("expectedSha256", CommaToolArgType::Sha256, Required),
        ],
        CommaTool::EditFile => &[
            ("path", CommaToolArgType::NonEmptyText, Required),
            ("expectedSha256", CommaToolArgType::Sha256, Required),
            ("edits", CommaToolArgType::EditList, Required),
        ],
        CommaTool::DeleteFile => &[
            ("path", CommaToolArgType::NonEmptyText, Required),
            ("expectedSha256", CommaToolArgType::Sha256, Optional),
            ("permanent", CommaToolArgType::Boolean, Optional),
        ],
        CommaTool::RestoreFile => &[
            ("trashedPath", CommaToolArgType::NonEmptyText, Required),
            ("targetPath", CommaToolArgType::NonEmptyText, Optional),
        ],
        CommaTool::MoveFile => &[
            ("fromPath", CommaToolArgType::NonEmptyText, Required),
            ("toPath", CommaToolArgType::NonEmptyText, Required),
            ("expectedSha256", CommaToolArgType::Sha256, Required),
            ("overwrite", CommaToolArgType::Boolean, Optional),
        ],
        CommaTool::ApplyPatch => &[
            ("patch", CommaToolArgType::NonEmptyText, Required),
            ("expectedSha256ByPath", CommaToolArgType::Sha256ByPath, Optional),
            ("atomic", CommaToolArgType::Boolean, Optional),
        ],
    }
}

const EDIT_FIELD_SPECS: &[CommaToolArgSpec] = &[
    ("oldText", CommaToolArgType::NonEmptyText, Required),
    ("newText", CommaToolArgType::AnyText, Required),
    ("expectedOccurrences", CommaToolArgType::PositiveInteger, Optional),
    ("replaceAll", CommaToolArgType::Boolean, Optional),
];

#[derive(Debug, Clone, PartialEq, Eq)]
struct CommaToolArgIssue {
    path: String,
    message: String,
}

fn single_issue(path: &str, message: impl Into<String>) -> Vec<CommaToolArgIssue> {
    vec![CommaToolArgIssue { path: path.to_owned(), message: message.into() }]
}

#[derive(Debug, Clone, Copy)]
pub(super) struct CommaToolArgs<'a> {
    arguments: &'a Map<String, Value>,
}

impl<'a> CommaToolArgs<'a> {
    pub(super) fn validate(
        tool: CommaTool,
        tool_name: &str,
        arguments: &'a Map<String, Value>,
        edit_hash: EditBaseHashRule,
    ) -> Result<Self, String> {
        let check = |&(name, kind, presence): &CommaToolArgSpec| {
            let hash_of_edit = tool == CommaTool::EditFile && kind == CommaToolArgType::Sha256;
            let optional = hash_of_edit && edit_hash == EditBaseHashRule::Optional;
            check_field(arguments, name, (name, kind, if optional { Optional } else { presence }))
        };
        let issues: Vec<CommaToolArgIssue> = arg_specs(tool).iter().flat_map(check).collect();
        if issues.is_empty() {
            return Ok(Self { arguments });
        }
        let mut message = format!("Invalid arguments for `{tool_name}`:");
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

fn truncate_received(received: &str) -> String {
    match received.char_indices().nth(COMMA_ECHOED_ARGS_CHARS_MAX) {
        None => received.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &received[..end], received.len()),
    }
}

/// An integer argument may be written with a zero fraction, such as `2.0`.
pub(super) fn parse_whole_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number =
            value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=MAX_SAFE_INTEGER).contains(number))?;
        format!("{number:.0}").parse().ok()
    })
}

/// The largest safe integer of JavaScript, the language of the dialect's original code.
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

fn wrong_type_issue(path: &str, word: &str, value: &Value) -> Vec<CommaToolArgIssue> {
    single_issue(path, format!("Expected {word}, received {}", json_type_name(value)))
}

fn check_field(
    fields: &Map<String, Value>,
    path: &str,
    (name, kind, presence): CommaToolArgSpec,
) -> Vec<CommaToolArgIssue> {
    match (fields.get(name), presence) {
        (None, Required) => single_issue(path, "Required"),
        (None, Optional) => Vec::new(),
        (Some(value), _) => check_type(path, kind, value),
    }
}

fn check_type(path: &str, kind: CommaToolArgType, value: &Value) -> Vec<CommaToolArgIssue> {
    match (kind, value) {
        (CommaToolArgType::NonEmptyText, Value::String(text)) if text.is_empty() => {
            single_issue(path, "String must contain at least 1 character(s)")
        }
        (CommaToolArgType::NonEmptyText | CommaToolArgType::AnyText, Value::String(_)) => Vec::new(),
        (CommaToolArgType::Sha256, Value::String(text)) => {
            if is_sha256_hex(text) {
                return Vec::new();
            }
            let name = path.rsplit('.').next().unwrap_or(path);
            single_issue(path, format!("{name} must be a 64-character lowercase hex string"))
        }
        (CommaToolArgType::OneOf(words), value) => {
            let known = format!("'{}'", words.join("' | '"));
            match value.as_str() {
                Some(text) if words.contains(&text) => Vec::new(),
                Some(text) => single_issue(path, format!("Invalid enum value. Expected {known}, received '{text}'")),
                None => wrong_type_issue(path, &known, value),
            }
        }
        (CommaToolArgType::NonEmptyText | CommaToolArgType::AnyText | CommaToolArgType::Sha256, other) => {
            wrong_type_issue(path, "string", other)
        }
        (CommaToolArgType::PositiveInteger | CommaToolArgType::NonNegativeInteger, Value::Number(_)) => {
            check_number(path, kind, value)
        }
        (CommaToolArgType::PositiveInteger | CommaToolArgType::NonNegativeInteger, other) => {
            wrong_type_issue(path, "number", other)
        }
        (CommaToolArgType::Boolean, Value::Bool(_)) => Vec::new(),
        (CommaToolArgType::Boolean, other) => wrong_type_issue(path, "boolean", other),
        (CommaToolArgType::TextList, Value::Array(texts)) => {
            let each = |(index, text)| check_type(&format!("{path}.{index}"), CommaToolArgType::NonEmptyText, text);
            texts.iter().enumerate().flat_map(each).collect()
        }
        (CommaToolArgType::EditList, Value::Array(edits)) if edits.is_empty() => {
            single_issue(path, "Array must contain at least 1 element(s)")
        }
        (CommaToolArgType::EditList, Value::Array(edits)) => {
            edits.iter().enumerate().flat_map(|(index, edit)| check_edit(&format!("{path}.{index}"), edit)).collect()
        }
        (CommaToolArgType::TextList | CommaToolArgType::EditList, other) => wrong_type_issue(path, "array", other),
        (CommaToolArgType::Sha256ByPath, Value::Object(hashes)) => {
            let each = |(name, hash): (&String, &Value)| check_empty_or_hash(&format!("{path}.{name}"), hash);
            hashes.iter().flat_map(each).collect()
        }
        (CommaToolArgType::Sha256ByPath, other) => wrong_type_issue(path, "object", other),
    }
}

/// An empty string instead of a hash means that the file must not exist.
fn check_empty_or_hash(path: &str, value: &Value) -> Vec<CommaToolArgIssue> {
    let Value::String(text) = value else { return wrong_type_issue(path, "string", value) };
    if text.is_empty() || is_sha256_hex(text) {
        return Vec::new();
    }
    single_issue(path, "expectedSha256ByPath must hold 64-character lowercase hex strings, or \"\" for a new file")
}

fn check_number(path: &str, kind: CommaToolArgType, value: &Value) -> Vec<CommaToolArgIssue> {
    let number = value.as_f64().unwrap_or(f64::NAN);
    if number.fract() != 0.0 {
        return single_issue(path, "Expected integer, received float");
    }
    if kind == CommaToolArgType::PositiveInteger && number <= 0.0 {
        return single_issue(path, "Number must be greater than 0");
    }
    if number < 0.0 {
        return single_issue(path, "Number must be greater than or equal to 0");
    }
    Vec::new()
}

fn check_edit(path: &str, value: &Value) -> Vec<CommaToolArgIssue> {
    let Value::Object(fields) = value else { return wrong_type_issue(path, "object", value) };
    let check = |spec: &CommaToolArgSpec| check_field(fields, &format!("{path}.{}", spec.0), *spec);
    EDIT_FIELD_SPECS.iter().flat_map(check).collect()
}

fn is_sha256_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn validation_error(name: &str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { return String::new() };
        let tool = CommaTool::from_name(name).unwrap();
        CommaToolArgs::validate(tool, name, &arguments, EditBaseHashRule::Required).err().unwrap_or_default()
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
