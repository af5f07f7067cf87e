//! The dialect `jettson` has four tools that return plain objects. An error is returned as `{"error": "…"}`, with the
//! documented prefix and sentence. Replies contain the argument `path` as the caller wrote it.

use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, CallOutcome, DirectoryRemovalPermission, Error, ErrorKind,
    ListingPageSizeAndDetail, MissingBaseVersionPolicy,
};
use stead_path::{
    AbsolutePathRule, DotDotRule, EmptyPathRule, PathBackslashRule, PathSyntax, RelPath, TrailingSlashRule,
};

use super::{
    CallResult, Dialect, DialectConstructionResult, DialectReply, DialectSettings, DialectWorkspaceRootPath,
    TranslatedCall,
    rendering::{CallOutcomeFieldsExt, error_detail},
};
use crate::{
    definition::DialectDefinition,
    limits::{DIALECT_LIST_ENTRIES_MAX, JETTSON_READ_BYTES_MAX, JETTSON_WRITE_BYTES_MAX},
};

const DEFINITION_JSON: &str = include_str!("../generated/jettson.json");
const ERROR_PREFIX: &str = "Jettson Files rejected the operation: ";
const PATH_ESCAPES_MESSAGE: &str = "path escapes /workspace or is empty.";

pub(super) struct JettsonDialect(DialectDefinition);

/// The only option of the `jettson` dialect has no effect, so the settings are ignored.
pub(super) fn build(_settings: &DialectSettings, _location: &DialectWorkspaceRootPath) -> DialectConstructionResult {
    Ok(Box::new(JettsonDialect(DialectDefinition::from_json(DEFINITION_JSON)?)))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JettsonTool {
    Read,
    Write,
    List,
    Delete,
}

impl JettsonTool {
    fn from_name(name: &str) -> Option<Self> {
        match name {
            "jettson_files_read" => Some(JettsonTool::Read),
            "jettson_files_write" => Some(JettsonTool::Write),
            "jettson_files_list" => Some(JettsonTool::List),
            "jettson_files_delete" => Some(JettsonTool::Delete),
            _ => None,
        }
    }

    fn engine_operation(self) -> &'static str {
        match self {
            JettsonTool::Read => "read",
            JettsonTool::Write => "write",
            JettsonTool::List => "list",
            JettsonTool::Delete => "remove",
        }
    }
}

struct JettsonCall<'a> {
    tool: JettsonTool,
    path: &'a str,
    content: &'a str,
}

impl<'a> JettsonCall<'a> {
    fn validate(tool: &str, arguments: &'a Map<String, Value>) -> Result<Self, String> {
        let tool = JettsonTool::from_name(tool).ok_or_else(|| format!("there is no tool {tool}."))?;
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let path = match (tool, text("path")) {
            (_, Some(path)) => path,
            (JettsonTool::List, None) if !arguments.contains_key("path") => ".",
            (JettsonTool::Read | JettsonTool::Write | JettsonTool::List | JettsonTool::Delete, None) => {
                return Err(PATH_ESCAPES_MESSAGE.to_owned());
            }
        };
        let content = match (tool, text("content")) {
            (JettsonTool::Write, None) => return Err("content is required.".to_owned()),
            (JettsonTool::Write, Some(content)) if content.len() > JETTSON_WRITE_BYTES_MAX => {
                return Err("content exceeds 5 MB.".to_owned());
            }
            (JettsonTool::Read | JettsonTool::Write | JettsonTool::List | JettsonTool::Delete, content) => {
                content.unwrap_or_default()
            }
        };
        Ok(Self { tool, path, content })
    }

    fn engine_arguments(&self) -> Value {
        match self.tool {
            // The call reads only the first bytes of a long file. The outcome contains the size of the whole file,
            // which shows that the file is longer.
            JettsonTool::Read => json!({ "path": self.path, "bytes": format!("0-{}", JETTSON_READ_BYTES_MAX - 1) }),
            JettsonTool::Write => json!({ "path": self.path, "content": self.content, "encoding": "utf-8" }),
            JettsonTool::List => json!({ "path": self.path, "all": true }),
            JettsonTool::Delete => json!({ "path": self.path }),
        }
    }
}

impl Dialect for JettsonDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.0
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        let syntax = PathSyntax {
            default_directory: RelPath::root(),
            dot_dot: DotDotRule::Fold,
            absolute_paths: AbsolutePathRule::Refuse,
            backslash: PathBackslashRule::Literal,
            trailing_slash: TrailingSlashRule::Ignored,
            empty_path: EmptyPathRule::Refuse,
        };
        let options = CallOptions {
            tool: self.full_name(tool),
            path_spelling: syntax,
            missing_base: MissingBaseVersionPolicy::Overwrite,
            directory_removal: DirectoryRemovalPermission::Refuse,
            listing_style: ListingPageSizeAndDetail::DetailedEntries(DIALECT_LIST_ENTRIES_MAX),
            before_after: BeforeAfterContentInclusion::Include,
            ..CallOptions::default()
        };
        match JettsonCall::validate(tool, arguments) {
            Ok(call) => TranslatedCall::new(call.tool.engine_operation(), call.engine_arguments(), options),
            Err(reason) => {
                let operation = JettsonTool::from_name(tool).map_or("unknown", JettsonTool::engine_operation);
                TranslatedCall::rejected(operation, arguments, Error::new(ErrorKind::BadRequest, reason), options)
            }
        }
    }

    fn render_reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: CallResult) -> DialectReply {
        let result = JettsonCall::validate(tool, arguments).and_then(|call| match outcome {
            Ok(outcome) => Ok(render_success(&call, &outcome)),
            Err(error) => Err(error_sentence(&call, &error)),
        });
        DialectReply::from_json(result.map_err(|reason| json!({ "error": format!("{ERROR_PREFIX}{reason}") })))
    }
}

fn render_success(call: &JettsonCall<'_>, outcome: &CallOutcome) -> Value {
    let path = call.path;
    match call.tool {
        JettsonTool::Read => {
            let (bytes, size) = (outcome.bytes_before(), outcome.number_field("size"));
            let truncated = size > JETTSON_READ_BYTES_MAX as u64;
            let complete = if truncated { trim_partial_character(bytes) } else { bytes };
            let content = String::from_utf8_lossy(complete);
            json!({ "path": path, "content": content, "size_bytes": size, "truncated": truncated })
        }
        JettsonTool::Write => json!({ "path": path, "bytes_written": call.content.len() }),
        JettsonTool::List => {
            let entries: Vec<Value> = outcome.list_field("entries").iter().map(render_entry).collect();
            let mut listing = json!({ "path": path, "entries": entries });
            if outcome.is_set("truncated") {
                listing["truncated"] = true.into();
            }
            listing
        }
        JettsonTool::Delete => json!({ "path": path, "deleted": true }),
    }
}

fn trim_partial_character(bytes: &[u8]) -> &[u8] {
    let Some(last) = bytes.utf8_chunks().last() else { return bytes };
    let cut = last.invalid();
    let begins = cut.first().is_some_and(|byte| *byte >= 0xc2);
    let incomplete = std::str::from_utf8(cut).is_err_and(|error| error.error_len().is_none());
    if begins && incomplete { &bytes[..bytes.len() - cut.len()] } else { bytes }
}

fn render_entry(entry: &Value) -> Value {
    let path = entry.get("path").and_then(Value::as_str).unwrap_or_default();
    let path = RelPath::from_wire(path).unwrap_or_default();
    let name = path.components().next_back().map(String::from_utf8_lossy).unwrap_or_default();
    // A symbolic link within the workspace is listed with the type and size of its target.
    let target = entry.get("leads_to").unwrap_or(entry);
    let kind = target.get("type").and_then(Value::as_str).unwrap_or_default();
    let size = target.get("size").and_then(Value::as_u64).filter(|_| kind == "file").unwrap_or_default();
    json!({ "name": name, "size_bytes": size, "is_dir": kind == "directory" })
}

fn error_sentence(call: &JettsonCall<'_>, error: &Error) -> String {
    let path = call.path;
    let is_root = error_detail(error, "path") == Some(".");
    let kind = if error.kind == ErrorKind::InvalidPath && is_root { ErrorKind::IsDirectory } else { error.kind };
    match (kind, call.tool) {
        (ErrorKind::InvalidPath | ErrorKind::PathEscape, _) => PATH_ESCAPES_MESSAGE.to_owned(),
        (ErrorKind::NotFound, _) => format!("no such file: {path}"),
        (ErrorKind::IsDirectory, JettsonTool::Delete) => {
            format!("{path} is a directory — use Jettson Shell with rmdir for that.")
        }
        (ErrorKind::IsDirectory, _) => format!("{path} is a directory."),
        (ErrorKind::NotDirectory, JettsonTool::Read | JettsonTool::Delete) => format!("no such file: {path}"),
        (ErrorKind::NotDirectory, JettsonTool::List) => format!("{path} is not a directory."),
        (ErrorKind::NotDirectory, JettsonTool::Write) => {
            let file = error_detail(error, "file").or_else(|| error_detail(error, "path"));
            format!("{} is not a directory.", file.unwrap_or(path))
        }
        (_, _) => format!("{}.", error.message.trim_end_matches('.')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_partial_character_and_keeps_invalid_bytes() {
        assert_eq!(trim_partial_character("aä".as_bytes().get(..2).unwrap()), b"a");
        assert_eq!(trim_partial_character("a€".as_bytes().get(..3).unwrap()), b"a");
        assert_eq!(trim_partial_character(b"a\xff"), b"a\xff");
        assert_eq!(trim_partial_character(b"ab"), b"ab");
        assert_eq!(trim_partial_character(b""), b"");
    }

    #[test]
    fn rejects_invalid_arguments_with_published_messages() {
        let validation_error = |tool: &str, arguments: Value| {
            JettsonCall::validate(tool, arguments.as_object().unwrap()).map(|_| ()).unwrap_err()
        };
        assert_eq!(validation_error("jettson_files_read", json!({})), PATH_ESCAPES_MESSAGE);
        assert_eq!(validation_error("jettson_files_read", json!({ "path": 1 })), PATH_ESCAPES_MESSAGE);
        assert_eq!(validation_error("jettson_files_write", json!({ "path": "a" })), "content is required.");
        let large = "x".repeat(JETTSON_WRITE_BYTES_MAX + 1);
        assert_eq!(
            validation_error("jettson_files_write", json!({ "path": "a", "content": large })),
            "content exceeds 5 MB."
        );
    }
}
