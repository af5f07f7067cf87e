//! The arguments of a call, held against what each tool takes. Everything that does not fit is told at once, one line
//! for each, in the published words; what no tool declares is passed over.

use serde_json::{Map, Value};

use super::tool::Tool;

/// What one argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Text with at least one character.
    Text,
    /// Any text.
    Content,
    /// A whole number above zero.
    Positive,
    /// A whole number, zero included.
    Count,
    /// Yes or no.
    Flag,
    /// A sha256 in lowercase hex.
    Hash,
    /// Texts.
    Texts,
    /// One of these words.
    Word(&'static [&'static str]),
    /// Quoted edits.
    Edits,
    /// A sha256, or the empty text, for each path.
    HashByPath,
}

/// Whether an argument must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

use Presence::{Optional, Required};

type Field = (&'static str, Shape, Presence);

/// Whether the version that was seen must be given for an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditHash {
    /// As the document has it.
    Required,
    /// As the origin's code has it.
    Optional,
}

fn fields(tool: Tool, edit_hash: EditHash) -> Vec<Field> {
    match tool {
        Tool::ReadFile | Tool::ListDirectory | Tool::SearchFiles | Tool::Glob => looking(tool),
        Tool::CreateFile => vec![
            ("path", Shape::Text, Required),
            ("content", Shape::Content, Required),
            ("createParentDirectories", Shape::Flag, Optional),
            ("createParents", Shape::Flag, Optional),
        ],
        Tool::WriteFile => vec![
            ("path", Shape::Text, Required),
            ("content", Shape::Content, Required),
            ("expectedSha256", Shape::Hash, Required),
        ],
        Tool::EditFile => {
            let hash = match edit_hash {
                EditHash::Required => Required,
                EditHash::Optional => Optional,
            };
            vec![
                ("path", Shape::Text, Required),
                ("expectedSha256", Shape::Hash, hash),
                ("edits", Shape::Edits, Required),
            ]
        }
        Tool::DeleteFile => vec![
            ("path", Shape::Text, Required),
            ("expectedSha256", Shape::Hash, Optional),
            ("permanent", Shape::Flag, Optional),
        ],
        Tool::RestoreFile => {
            vec![("trashedPath", Shape::Text, Required), ("targetPath", Shape::Text, Optional)]
        }
        Tool::MoveFile => vec![
            ("fromPath", Shape::Text, Required),
            ("toPath", Shape::Text, Required),
            ("expectedSha256", Shape::Hash, Required),
            ("overwrite", Shape::Flag, Optional),
        ],
        Tool::ApplyPatch => vec![
            ("patch", Shape::Text, Required),
            ("expectedSha256ByPath", Shape::HashByPath, Optional),
            ("atomic", Shape::Flag, Optional),
        ],
    }
}

/// The fields of the tools that only look.
fn looking(tool: Tool) -> Vec<Field> {
    match tool {
        Tool::ReadFile => vec![
            ("path", Shape::Text, Required),
            ("startLine", Shape::Positive, Optional),
            ("endLine", Shape::Positive, Optional),
            ("maxBytes", Shape::Positive, Optional),
            ("allowBinary", Shape::Flag, Optional),
        ],
        Tool::ListDirectory => vec![
            ("path", Shape::Text, Required),
            ("recursive", Shape::Flag, Optional),
            ("maxDepth", Shape::Positive, Optional),
            ("includeHidden", Shape::Flag, Optional),
        ],
        Tool::SearchFiles => vec![
            ("query", Shape::Text, Required),
            ("mode", Shape::Word(&["path", "text", "regex"]), Required),
            ("root", Shape::Text, Optional),
            ("includeGlobs", Shape::Texts, Optional),
            ("excludeGlobs", Shape::Texts, Optional),
            ("maxResults", Shape::Positive, Optional),
            ("contextLines", Shape::Count, Optional),
        ],
        Tool::Glob => vec![
            ("pattern", Shape::Text, Required),
            ("root", Shape::Text, Optional),
            ("excludeGlobs", Shape::Texts, Optional),
            ("maxResults", Shape::Positive, Optional),
        ],
        Tool::CreateFile
        | Tool::WriteFile
        | Tool::EditFile
        | Tool::DeleteFile
        | Tool::RestoreFile
        | Tool::MoveFile
        | Tool::ApplyPatch => Vec::new(),
    }
}

/// One argument that does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Issue {
    path: String,
    message: String,
}

fn issue(path: &str, message: impl Into<String>) -> Vec<Issue> {
    vec![Issue { path: path.to_owned(), message: message.into() }]
}

/// A call whose arguments fit its tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    arguments: &'a Map<String, Value>,
}

impl<'a> Asked<'a> {
    /// Reads a call, or answers the message that tells everything that is wrong with it.
    pub(super) fn read(
        tool: Tool,
        arguments: &'a Map<String, Value>,
        edit_hash: EditHash,
    ) -> Result<Self, String> {
        let issues: Vec<Issue> = fields(tool, edit_hash)
            .into_iter()
            .flat_map(|(name, shape, presence)| match (arguments.get(name), presence) {
                (None, Required) => issue(name, "Required"),
                (None, Optional) => Vec::new(),
                (Some(value), _) => misfits(name, shape, value),
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
        message.push_str(&format!("\nReceived: {}", shortened(&received)));
        Err(message)
    }

    /// A text, empty when it is not there.
    pub(super) fn text(&self, name: &str) -> &'a str {
        self.text_maybe(name).unwrap_or_default()
    }

    pub(super) fn text_maybe(&self, name: &str) -> Option<&'a str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.arguments.get(name).and_then(whole)
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

/// How much of the arguments a message shows back.
const RECEIVED_CHARS_MAX: usize = 2000;

fn shortened(received: &str) -> String {
    match received.char_indices().nth(RECEIVED_CHARS_MAX) {
        None => received.to_owned(),
        Some((end, _)) => format!("{}… ({} bytes)", &received[..end], received.len()),
    }
}

/// A whole number, also one that is written with a fraction of zero.
pub(super) fn whole(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number =
            value.as_f64().filter(|number| number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(number))?;
        format!("{number:.0}").parse().ok()
    })
}

/// The largest whole number that the origin's numbers hold exactly.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn expected(path: &str, word: &str, value: &Value) -> Vec<Issue> {
    issue(path, format!("Expected {word}, received {}", type_word(value)))
}

fn misfits(path: &str, shape: Shape, value: &Value) -> Vec<Issue> {
    match (shape, value) {
        (Shape::Text, Value::String(text)) if text.is_empty() => {
            issue(path, "String must contain at least 1 character(s)")
        }
        (Shape::Text | Shape::Content, Value::String(_)) => Vec::new(),
        (Shape::Hash, Value::String(text)) => {
            if is_hash(text) {
                return Vec::new();
            }
            let name = path.rsplit('.').next().unwrap_or(path);
            issue(path, format!("{name} must be a 64-character lowercase hex string"))
        }
        (Shape::Word(words), Value::String(text)) => {
            if words.contains(&text.as_str()) {
                return Vec::new();
            }
            let known: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            issue(path, format!("Invalid enum value. Expected {}, received '{text}'", known.join(" | ")))
        }
        (Shape::Word(words), other) => {
            let known: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            expected(path, &known.join(" | "), other)
        }
        (Shape::Text | Shape::Content | Shape::Hash, other) => expected(path, "string", other),
        (Shape::Positive | Shape::Count, Value::Number(_)) => number(path, shape, value),
        (Shape::Positive | Shape::Count, other) => expected(path, "number", other),
        (Shape::Flag, Value::Bool(_)) => Vec::new(),
        (Shape::Flag, other) => expected(path, "boolean", other),
        (Shape::Texts, Value::Array(texts)) => {
            let each = |(at, text)| misfits(&format!("{path}.{at}"), Shape::Text, text);
            texts.iter().enumerate().flat_map(each).collect()
        }
        (Shape::Edits, Value::Array(edits)) if edits.is_empty() => {
            issue(path, "Array must contain at least 1 element(s)")
        }
        (Shape::Edits, Value::Array(edits)) => {
            edits.iter().enumerate().flat_map(|(at, one)| edit(&format!("{path}.{at}"), one)).collect()
        }
        (Shape::Texts | Shape::Edits, other) => expected(path, "array", other),
        (Shape::HashByPath, Value::Object(hashes)) => {
            let each = |(name, hash): (&String, &Value)| sentinel_or_hash(&format!("{path}.{name}"), hash);
            hashes.iter().flat_map(each).collect()
        }
        (Shape::HashByPath, other) => expected(path, "object", other),
    }
}

/// The empty text asserts that nothing is there.
fn sentinel_or_hash(path: &str, value: &Value) -> Vec<Issue> {
    let Value::String(text) = value else { return expected(path, "string", value) };
    if text.is_empty() || is_hash(text) {
        return Vec::new();
    }
    issue(path, "expectedSha256ByPath must hold 64-character lowercase hex strings, or \"\" for a new file")
}

fn number(path: &str, shape: Shape, value: &Value) -> Vec<Issue> {
    let given = value.as_f64().unwrap_or(f64::NAN);
    if given.fract() != 0.0 {
        return issue(path, "Expected integer, received float");
    }
    match shape {
        Shape::Positive if given <= 0.0 => issue(path, "Number must be greater than 0"),
        Shape::Count if given < 0.0 => issue(path, "Number must be greater than or equal to 0"),
        Shape::Positive
        | Shape::Count
        | Shape::Text
        | Shape::Content
        | Shape::Flag
        | Shape::Hash
        | Shape::Texts
        | Shape::Word(_)
        | Shape::Edits
        | Shape::HashByPath => Vec::new(),
    }
}

fn edit(path: &str, value: &Value) -> Vec<Issue> {
    let Value::Object(fields) = value else { return expected(path, "object", value) };
    let shapes = [
        ("oldText", Shape::Text, Required),
        ("newText", Shape::Content, Required),
        ("expectedOccurrences", Shape::Positive, Optional),
        ("replaceAll", Shape::Flag, Optional),
    ];
    let judge = |(name, shape, presence): (&str, Shape, Presence)| {
        let path = format!("{path}.{name}");
        match (fields.get(name), presence) {
            (None, Required) => issue(&path, "Required"),
            (None, Optional) => Vec::new(),
            (Some(value), _) => misfits(&path, shape, value),
        }
    };
    shapes.into_iter().flat_map(judge).collect()
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(tool: Tool, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { return String::new() };
        let outcome = Asked::read(tool, &arguments, EditHash::Required).map(|_| ());
        outcome.err().unwrap_or_default()
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        assert_eq!(
            wrong(Tool::WriteFile, json!({ "path": "", "expectedSha256": "ABC" })),
            "Invalid arguments for `write_file`:\n\
             - `path`: String must contain at least 1 character(s)\n\
             - `content`: Required\n\
             - `expectedSha256`: expectedSha256 must be a 64-character lowercase hex string\n\
             Received: {\"path\":\"\",\"expectedSha256\":\"ABC\"}"
        );
    }

    #[test]
    fn every_shape_has_its_sentence() {
        for (tool, arguments, sentence) in [
            (Tool::ReadFile, json!({ "path": 1 }), "- `path`: Expected string, received number"),
            (Tool::ReadFile, json!({ "path": "a", "startLine": 0 }), "greater than 0"),
            (Tool::ReadFile, json!({ "path": "a", "startLine": 1.5 }), "Expected integer, received float"),
            (Tool::ReadFile, json!({ "path": "a", "startLine": null }), "Expected number, received null"),
            (
                Tool::SearchFiles,
                json!({ "query": "q", "mode": "x" }),
                "Expected 'path' | 'text' | 'regex', received 'x'",
            ),
            (Tool::SearchFiles, json!({ "query": "q", "mode": "text", "contextLines": -1 }), "or equal to 0"),
            (
                Tool::Glob,
                json!({ "pattern": "*", "excludeGlobs": [1] }),
                "- `excludeGlobs.0`: Expected string",
            ),
            (Tool::EditFile, json!({ "path": "a", "edits": [] }), "at least 1 element(s)"),
            (
                Tool::EditFile,
                json!({ "path": "a", "edits": [{ "oldText": "" }] }),
                "- `edits.0.newText`: Required",
            ),
            (
                Tool::ApplyPatch,
                json!({ "patch": "p", "expectedSha256ByPath": [] }),
                "Expected object, received array",
            ),
            (
                Tool::ApplyPatch,
                json!({ "patch": "p", "expectedSha256ByPath": { "a.txt": "ABC", "new": "" } }),
                "- `expectedSha256ByPath.a.txt`: expectedSha256ByPath must hold 64-character lowercase hex strings, \
                 or \"\" for a new file\nReceived",
            ),
            (
                Tool::ApplyPatch,
                json!({ "patch": "p", "expectedSha256ByPath": { "a.txt": 1 } }),
                "- `expectedSha256ByPath.a.txt`: Expected string, received number",
            ),
        ] {
            let message = wrong(tool, arguments);
            assert!(message.contains(sentence), "{message}");
        }
        let fitting = json!({ "patch": "p", "expectedSha256ByPath": { "a": "", "b": "0a".repeat(32) } });
        assert_eq!(wrong(Tool::ApplyPatch, fitting), "");
        assert_eq!(wrong(Tool::ReadFile, json!({ "path": "a", "startLine": 2.0, "other": [] })), "");
    }
}
