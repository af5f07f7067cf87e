//! `jettson`: four tools that answer plain objects, and every error as `{"error": "…"}` with the documented prefix.
//! Owns that translation. Promises the documented sentences, and `path` as it was given.

use engine::{Answer, Evidence, Failure, Kind, Listing, Removable, Terms, Unseen};
use path::{Absolute, Backslash, Dots, Empty, Ending, Reading, RelPath};
use serde_json::{Map, Value, json};

use super::{Dialect, DialectError, Place, Reply, Request, Settings, Verdict};
use crate::definition::Definition;

/// What was generated for it.
const GENERATED: &str = include_str!("../generated/jettson.json");
/// Most bytes of a file that one read returns: the document's 1 MB.
const READ_BYTES_MAX: usize = 1_048_576;
/// Most bytes that one write takes: the document's 5 MB.
const WRITE_BYTES_MAX: usize = 5_242_880;
/// Most entries of one listing.
const LIST_ENTRIES_MAX: usize = 100_000;
/// How every error begins.
const REJECTED: &str = "Jettson Files rejected the operation: ";
const ESCAPES: &str = "path escapes /workspace or is empty.";

/// The vocabulary.
pub(super) struct Jettson(Definition);

/// Makes it; its one setting changes nothing.
pub(super) fn make(_settings: &Settings, _place: &Place) -> Result<Box<dyn Dialect>, DialectError> {
    Ok(Box::new(Jettson(Definition::read(GENERATED)?)))
}

/// The tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tool {
    Read,
    Write,
    List,
    Delete,
}

impl Tool {
    fn named(name: &str) -> Option<Self> {
        match name {
            "jettson_files_read" => Some(Tool::Read),
            "jettson_files_write" => Some(Tool::Write),
            "jettson_files_list" => Some(Tool::List),
            "jettson_files_delete" => Some(Tool::Delete),
            _ => None,
        }
    }

    fn operation(self) -> &'static str {
        match self {
            Tool::Read => "read",
            Tool::Write => "write",
            Tool::List => "list",
            Tool::Delete => "remove",
        }
    }
}

/// A call whose arguments fit.
struct Asked<'a> {
    tool: Tool,
    path: &'a str,
    content: &'a str,
}

impl<'a> Asked<'a> {
    fn read(tool: &str, arguments: &'a Map<String, Value>) -> Result<Self, String> {
        let tool = Tool::named(tool).ok_or_else(|| format!("there is no tool {tool}."))?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let path = match (tool, text("path")) {
            (_, Some(path)) => path,
            (Tool::List, None) if !arguments.contains_key("path") => ".",
            (Tool::Read | Tool::Write | Tool::List | Tool::Delete, None) => return Err(ESCAPES.to_owned()),
        };
        let content = match (tool, text("content")) {
            (Tool::Write, None) => return Err("content is required.".to_owned()),
            (Tool::Write, Some(content)) if content.len() > WRITE_BYTES_MAX => {
                return Err("content exceeds 5 MB.".to_owned());
            }
            (Tool::Read | Tool::Write | Tool::List | Tool::Delete, content) => content.unwrap_or_default(),
        };
        Ok(Self { tool, path, content })
    }

    fn arguments(&self) -> Map<String, Value> {
        let whole = match self.tool {
            // One byte more than is shown tells nothing new: the size is in the answer.
            Tool::Read => json!({ "path": self.path, "bytes": format!("0-{}", READ_BYTES_MAX - 1) }),
            Tool::Write => json!({ "path": self.path, "content": self.content, "encoding": "utf-8" }),
            Tool::List => json!({ "path": self.path, "all": true }),
            Tool::Delete => json!({ "path": self.path }),
        };
        whole.as_object().cloned().unwrap_or_default()
    }
}

impl Dialect for Jettson {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn request(&self, tool: &str, arguments: &Map<String, Value>) -> Request {
        let reading = Reading {
            home: RelPath::root(),
            dots: Dots::Fold,
            absolute: Absolute::Refuse,
            backslash: Backslash::Plain,
            ending: Ending::Ignored,
            empty: Empty::Refuse,
        };
        let terms = Terms {
            tool: self.full_name(tool),
            reading,
            unseen: Unseen::Yields,
            removable: Removable::NoDirectories,
            listing: Listing::Entries(LIST_ENTRIES_MAX),
            evidence: Evidence::Bytes,
            ..Terms::default()
        };
        match Asked::read(tool, arguments) {
            Ok(asked) => {
                Request { operation: asked.tool.operation().to_owned(), arguments: asked.arguments(), terms }
            }
            Err(reason) => {
                let objection = Some(Failure::new(Kind::BadRequest, reason));
                let operation = Tool::named(tool).map_or("unknown", Tool::operation).to_owned();
                Request { operation, arguments: arguments.clone(), terms: Terms { objection, ..terms } }
            }
        }
    }

    fn reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: Result<Answer, Failure>) -> Reply {
        let told = Asked::read(tool, arguments).and_then(|asked| match outcome {
            Ok(answer) => Ok(told(&asked, &answer)),
            Err(failure) => Err(sentence(&asked, &failure)),
        });
        let (json, verdict) = match told {
            Ok(json) => (json, Verdict::Fine),
            Err(reason) => (json!({ "error": format!("{REJECTED}{reason}") }), Verdict::Error),
        };
        let text = json.to_string();
        Reply { json: json.as_object().cloned().unwrap_or_default(), text, verdict }
    }
}

/// What a call that succeeded answers.
fn told(asked: &Asked<'_>, answer: &Answer) -> Value {
    let path = asked.path;
    match asked.tool {
        Tool::Read => {
            let bytes = answer.evidence.first().and_then(|held| held.before.as_deref()).unwrap_or_default();
            let size = answer.json.get("size").and_then(Value::as_u64).unwrap_or_default();
            let truncated = size > READ_BYTES_MAX as u64;
            let shown = if truncated { whole_characters(bytes) } else { bytes };
            let content = String::from_utf8_lossy(shown);
            json!({ "path": path, "content": content, "size_bytes": size, "truncated": truncated })
        }
        Tool::Write => json!({ "path": path, "bytes_written": asked.content.len() }),
        Tool::List => {
            let entries = answer.json.get("entries").and_then(Value::as_array);
            let entries: Vec<Value> = entries.into_iter().flatten().map(entry).collect();
            let mut listed = json!({ "path": path, "entries": entries });
            if answer.json.get("truncated") == Some(&Value::Bool(true)) {
                listed["truncated"] = true.into();
            }
            listed
        }
        Tool::Delete => json!({ "path": path, "deleted": true }),
    }
}

/// The bytes without a character that their end cuts in two.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let Some(last) = bytes.utf8_chunks().last() else { return bytes };
    let cut = last.invalid();
    let begins = cut.first().is_some_and(|byte| *byte >= 0xc2);
    let incomplete = std::str::from_utf8(cut).is_err_and(|error| error.error_len().is_none());
    if begins && incomplete { &bytes[..bytes.len() - cut.len()] } else { bytes }
}

fn entry(listed: &Value) -> Value {
    let place = listed.get("path").and_then(Value::as_str).unwrap_or_default();
    let place = RelPath::from_wire(place).unwrap_or_default();
    let name = place.components().next_back().map(String::from_utf8_lossy).unwrap_or_default();
    // A link counts as what it leads to, when that is inside.
    let counted = listed.get("leads_to").unwrap_or(listed);
    let kind = counted.get("type").and_then(Value::as_str).unwrap_or_default();
    let size = match kind {
        "file" => counted.get("size").and_then(Value::as_u64).unwrap_or_default(),
        _ => 0,
    };
    json!({ "name": name, "size_bytes": size, "is_dir": kind == "directory" })
}

/// What went wrong, behind the prefix.
fn sentence(asked: &Asked<'_>, failure: &Failure) -> String {
    let path = asked.path;
    let root = failure.facts.get("path").and_then(Value::as_str) == Some(".");
    let kind = if failure.kind == Kind::InvalidPath && root { Kind::IsDirectory } else { failure.kind };
    match (kind, asked.tool) {
        (Kind::InvalidPath | Kind::PathEscape, _) => ESCAPES.to_owned(),
        (Kind::NotFound, _) => format!("no such file: {path}"),
        (Kind::IsDirectory, Tool::Delete) => {
            format!("{path} is a directory — use Jettson Shell with rmdir for that.")
        }
        (Kind::IsDirectory, _) => format!("{path} is a directory."),
        (Kind::NotDirectory, Tool::Read | Tool::Delete) => format!("no such file: {path}"),
        (Kind::NotDirectory, Tool::List) => format!("{path} is not a directory."),
        (Kind::NotDirectory, Tool::Write) => {
            let file = failure.facts.get("file").or_else(|| failure.facts.get("path"));
            format!("{} is not a directory.", file.and_then(Value::as_str).unwrap_or(path))
        }
        (_, _) => format!("{}.", failure.detail.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_character_is_left_out_and_bad_bytes_stay() {
        assert_eq!(whole_characters("aä".as_bytes().get(..2).unwrap()), b"a");
        assert_eq!(whole_characters("a€".as_bytes().get(..3).unwrap()), b"a");
        assert_eq!(whole_characters(b"a\xff"), b"a\xff");
        assert_eq!(whole_characters(b"ab"), b"ab");
        assert_eq!(whole_characters(b""), b"");
    }

    #[test]
    fn what_does_not_fit_is_told_in_the_document_s_words() {
        let told = |tool: &str, arguments: Value| {
            Asked::read(tool, arguments.as_object().unwrap()).map(|_| ()).unwrap_err()
        };
        assert_eq!(told("jettson_files_read", json!({})), ESCAPES);
        assert_eq!(told("jettson_files_read", json!({ "path": 1 })), ESCAPES);
        assert_eq!(told("jettson_files_write", json!({ "path": "a" })), "content is required.");
        let large = "x".repeat(WRITE_BYTES_MAX + 1);
        assert_eq!(
            told("jettson_files_write", json!({ "path": "a", "content": large })),
            "content exceeds 5 MB."
        );
    }
}
