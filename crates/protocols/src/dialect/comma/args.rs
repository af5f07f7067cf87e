//! Validates the arguments of a call. All problems are reported together, one line each, with the published sentences.
//! Unknown arguments are ignored.

use serde_json::{Map, Value};

use super::CommaTool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaArgType {
    NonEmptyText,
    AnyText,
    PositiveInteger,
    NonNegativeInteger,
    Boolean,
    /// A hash in lowercase hex.
    Sha256,
    TextList,
    OneOf(&'static [&'static str]),
    EditList,
    /// An object with a hash, or the empty string, for each path.
    Sha256ByPath,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaArgPresence {
    Required,
    Optional,
}

use CommaArgPresence::{Optional, Required};

type CommaArgSpec = (&'static str, CommaArgType, CommaArgPresence);

/// Whether an edit must name the version it is based on: the document requires it, the original code does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditHashRule {
    Required,
    Optional,
}

/// The arguments of a tool. An option of the dialect makes the hash of an edit optional.
fn arg_specs(tool: CommaTool) -> &'static [CommaArgSpec] {
    match tool {
        CommaTool::ReadFile => &[
            ("path", CommaArgType::NonEmptyText, Required),
            ("startLine", CommaArgType::PositiveInteger, Optional),
            ("endLine", CommaArgType::PositiveInteger, Optional),
            ("maxBytes", CommaArgType::PositiveInteger, Optional),
            ("allowBinary", CommaArgType::Boolean, Optional),
        ],
        CommaTool::ListDirectory => &[
            ("path", CommaArgType::NonEmptyText, Required),
            ("recursive", CommaArgType::Boolean, Optional),
            ("maxDepth", CommaArgType::PositiveInteger, Optional),
            ("includeHidden", CommaArgType::Boolean, Optional),
        ],
        CommaTool::SearchFiles => &[
            ("query", CommaArgType::NonEmptyText, Required),
            ("mode", CommaArgType::OneOf(&["path", "text", "regex"]), Required),
            ("root", CommaArgType::NonEmptyText, Optional),
            ("includeGlobs", CommaArgType::TextList, Optional),
            ("excludeGlobs", CommaArgType::TextList, Optional),
            ("maxResults", CommaArgType::PositiveInteger, Optional),
            ("contextLines", CommaArgType::NonNegativeInteger, Optional),
        ],
        CommaTool::Glob => &[
            ("pattern", CommaArgType::NonEmptyText, Required),
            ("root", CommaArgType::NonEmptyText, Optional),
            ("excludeGlobs", CommaArgType::TextList, Optional),
            ("maxResults", CommaArgType::PositiveInteger, Optional),
        ],
        CommaTool::CreateFile => &[
            ("path", CommaArgType::NonEmptyText, Required),
            ("content", CommaArgType::AnyText, Required),
            ("createParentDirectories", CommaArgType::Boolean, Optional),
            ("createParents", CommaArgType::Boolean, Optional),
        ],
        CommaTool::WriteFile => &[
            ("path", CommaArgType::NonEmptyText, Required),
            ("content", CommaArgType::AnyText, Required),
            ("expectedSha256", CommaArgType::Sha256, Required),
        ],
        CommaTool::EditFile => &[
            ("path", CommaArgType::NonEmptyText, Required),
            ("expectedSha256", CommaArgType::Sha256, Required),
            ("edits", CommaArgType::EditList, Required),
        ],
        CommaTool::DeleteFile => &[
            ("path", CommaArgType::NonEmptyText, Required),
            ("expectedSha256", CommaArgType::Sha256, Optional),
            ("permanent", CommaArgType::Boolean, Optional),
        ],
        CommaTool::RestoreFile => &[
            ("trashedPath", CommaArgType::NonEmptyText, Required),
            ("targetPath", CommaArgType::NonEmptyText, Optional),
        ],
        CommaTool::MoveFile => &[
            ("fromPath", CommaArgType::NonEmptyText, Required),
            ("toPath", CommaArgType::NonEmptyText, Required),
            ("expectedSha256", CommaArgType::Sha256, Required),
            ("overwrite", CommaArgType::Boolean, Optional),
        ],
        CommaTool::ApplyPatch => &[
            ("patch", CommaArgType::NonEmptyText, Required),
            ("expectedSha256ByPath", CommaArgType::Sha256ByPath, Optional),
            ("atomic", CommaArgType::Boolean, Optional),
        ],
    }
}

const EDIT_FIELD_SPECS: &[CommaArgSpec] = &[
    ("oldText", CommaArgType::NonEmptyText, Required),
    ("newText", CommaArgType::AnyText, Required),
    ("expectedOccurrences", CommaArgType::PositiveInteger, Optional),
    ("replaceAll", CommaArgType::Boolean, Optional),
];

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
        tool_name: &str,
        arguments: &'a Map<String, Value>,
        edit_hash: EditHashRule,
    ) -> Result<Self, String> {
        let check = |&(name, kind, presence): &CommaArgSpec| {
            let hash_of_edit = tool == CommaTool::EditFile && kind == CommaArgType::Sha256;
            let optional = hash_of_edit && edit_hash == EditHashRule::Optional;
            check_field(arguments, name, (name, kind, if optional { Optional } else { presence }))
        };
        let issues: Vec<CommaArgIssue> = arg_specs(tool).iter().flat_map(check).collect();
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

const ECHOED_ARGS_CHARS_MAX: usize = 2000;

fn truncate_received(received: &str) -> String {
    match received.char_indices().nth(ECHOED_ARGS_CHARS_MAX) {
        None => received.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &received[..end], received.len()),
    }
}

/// A non-negative integer, which may be written with a zero fraction.
pub(super) fn parse_whole_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number =
            value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=MAX_SAFE_INTEGER).contains(number))?;
        format!("{number:.0}").parse().ok()
    })
}

/// The largest integer that a number of the original, a JavaScript double, represents exactly.
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

/// Checks one field of an object. `path` names the field in the error.
fn check_field(fields: &Map<String, Value>, path: &str, (name, kind, presence): CommaArgSpec) -> Vec<CommaArgIssue> {
    match (fields.get(name), presence) {
        (None, Required) => single_issue(path, "Required"),
        (None, Optional) => Vec::new(),
        (Some(value), _) => check_type(path, kind, value),
    }
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
        (CommaArgType::OneOf(words), value) => {
            let known = format!("'{}'", words.join("' | '"));
            match value.as_str() {
                Some(text) if words.contains(&text) => Vec::new(),
                Some(text) => single_issue(path, format!("Invalid enum value. Expected {known}, received '{text}'")),
                None => wrong_type_issue(path, &known, value),
            }
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

/// Checks a hash. The empty string is valid too: it asserts that the file does not exist.
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
    if kind == CommaArgType::PositiveInteger && number <= 0.0 {
        return single_issue(path, "Number must be greater than 0");
    }
    if number < 0.0 {
        return single_issue(path, "Number must be greater than or equal to 0");
    }
    Vec::new()
}

fn check_edit(path: &str, value: &Value) -> Vec<CommaArgIssue> {
    let Value::Object(fields) = value else { return wrong_type_issue(path, "object", value) };
    let check = |spec: &CommaArgSpec| check_field(fields, &format!("{path}.{}", spec.0), *spec);
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
        CommaArgs::validate(tool, name, &arguments, EditHashRule::Required).err().unwrap_or_default()
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
