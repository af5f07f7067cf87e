//! The dialect `jettson` has four tools that return plain objects. An error is returned as `{"error": "…"}`, with the
//! documented prefix and sentence. Replies contain the argument `path` as the caller wrote it.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, FileKind, ListingPageSizeAndDetail,
    ops::{ListArgs, ListOutcome, ListedEntryRow, ReadArgs, ReadOutcome, RemoveArgs, WriteArgs},
};
use stead_path::{AbsolutePathRule, DotDotRule, PathBackslashRule, PathSyntax, TrailingSlashRule};

use super::{
    Dialect, DialectConstructionResult, DialectOptionValuesByName, DialectReply, DialectToolCall,
    DialectWorkspaceRootPath,
    arguments::{ArgumentCheckResult, ArgumentIntegerSyntax, ArgumentIssue, tool_inputs},
};
use crate::{
    definition::{DialectDefinition, ToolDefinition},
    limits::{DIALECT_LIST_ENTRIES_MAX, JETTSON_READ_BYTES_MAX, JETTSON_WRITE_BYTES_MAX},
    native::without_nulls,
    prepared_call::{OutcomeWithBytes, PreparedCall},
};

const DEFINITION_JSON: &str = include_str!("../generated/jettson.json");
const ERROR_PREFIX: &str = "Jettson Files rejected the operation: ";
const PATH_ESCAPES_MESSAGE: &str = "path escapes /workspace or is empty.";

pub(super) struct JettsonDialect(DialectDefinition);

/// The only option of the `jettson` dialect has no effect, so the settings are ignored.
pub(super) fn build(
    _settings: &DialectOptionValuesByName,
    _location: &DialectWorkspaceRootPath,
) -> DialectConstructionResult {
    Ok(Arc::new(JettsonDialect(DialectDefinition::from_json(DEFINITION_JSON)?)))
}

tool_inputs! {
    JettsonToolInput with "snake_case" fields:
    "jettson_files_read" => Read(JettsonReadInput { path: String }),
    "jettson_files_write" => Write(JettsonWriteInput { path: String, content: String }),
    "jettson_files_list" => List(JettsonListInput { path: String }),
    "jettson_files_delete" => Delete(JettsonDeleteInput { path: String }),
}

impl JettsonToolInput {
    fn path(&self) -> &str {
        match self {
            JettsonToolInput::Read(input) => &input.path,
            JettsonToolInput::Write(input) => &input.path,
            JettsonToolInput::List(input) => &input.path,
            JettsonToolInput::Delete(input) => &input.path,
        }
    }

    fn translate(self: &Arc<Self>, options: CallOptions) -> PreparedCall<DialectReply> {
        let path = self.path().to_owned();
        match &**self {
            JettsonToolInput::Read(_) => {
                // The call reads only the first bytes of a long file. The outcome contains the size of the whole file,
                // which shows that the file is longer.
                let bytes = Some(format!("0-{}", JETTSON_READ_BYTES_MAX - 1));
                let arguments = ReadArgs { path: path.clone(), bytes, ..ReadArgs::default() };
                self.prepare(arguments, options, move |_, read| render_read(&path, &read))
            }
            JettsonToolInput::Write(input) => {
                let (content, encoding) = (input.content.clone(), Some("utf-8".to_owned()));
                let written = json!({ "path": path, "bytes_written": content.len() });
                let arguments =
                    WriteArgs { path, content, encoding, replace_without_base: true, ..WriteArgs::default() };
                self.prepare(arguments, options, |_, _| written)
            }
            JettsonToolInput::List(_) => {
                let arguments = ListArgs { path: Some(path.clone()), all: Some(true), ..ListArgs::default() };
                self.prepare(arguments, options, move |_, list| render_listing(&path, &list.outcome))
            }
            JettsonToolInput::Delete(_) => {
                let deleted = json!({ "path": path, "deleted": true });
                self.prepare(RemoveArgs { path, files_only: true, ..RemoveArgs::default() }, options, |_, _| deleted)
            }
        }
    }
}

impl DialectToolCall for JettsonToolInput {
    type Success = Value;

    fn render(&self, result: Result<Value, Error>) -> DialectReply {
        reply(result.map_err(|error| error_sentence(self, &error)))
    }
}

impl JettsonDialect {
    fn parse_call(&self, name: &str, arguments: &Map<String, Value>) -> Result<JettsonToolInput, String> {
        let tool = self.0.find_tool(name).ok_or_else(|| format!("there is no tool {name}."))?;
        let checked = ArgumentCheckResult::new(&self.0, tool, ArgumentIntegerSyntax::Integer, arguments);
        match checked.issues.first().map(ArgumentIssue::argument_name) {
            Some("path") => return Err(PATH_ESCAPES_MESSAGE.to_owned()),
            Some(name) => return Err(format!("{name} is required.")),
            None => {}
        }
        let input = checked.decode()?;
        if let JettsonToolInput::Write(write) = &input
            && write.content.len() > JETTSON_WRITE_BYTES_MAX
        {
            return Err("content exceeds 5 MB.".to_owned());
        }
        Ok(input)
    }
}

impl Dialect for JettsonDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.0
    }

    fn translate(self: Arc<Self>, tool: &str, arguments: &Map<String, Value>) -> PreparedCall<DialectReply> {
        let syntax = PathSyntax {
            dot_dot: DotDotRule::Fold,
            absolute_paths: AbsolutePathRule::Refuse,
            backslash: PathBackslashRule::Literal,
            trailing_slash: TrailingSlashRule::Ignored,
            ..PathSyntax::default()
        };
        let options = CallOptions {
            tool: self.full_name(tool),
            path_spelling: syntax,
            listing_style: ListingPageSizeAndDetail::DetailedEntries(DIALECT_LIST_ENTRIES_MAX),
            before_after: BeforeAfterContentInclusion::Include,
            ..CallOptions::default()
        };
        let operation = self.0.find_tool(tool).map_or("unknown", ToolDefinition::engine_operation);
        match self.parse_call(tool, arguments) {
            Ok(input) => Arc::new(input).translate(options),
            Err(reason) => {
                let error = Error::new(ErrorKind::BadRequest, &*reason);
                PreparedCall::rejected(operation, arguments, error, options, |_| reply(Err(reason)))
            }
        }
    }
}

fn reply(result: Result<Value, String>) -> DialectReply {
    DialectReply::from_json(result.map_err(|reason| json!({ "error": format!("{ERROR_PREFIX}{reason}") })))
}

fn render_read(path: &str, read: &OutcomeWithBytes<ReadOutcome>) -> Value {
    let (bytes, size) = (read.bytes_before(), read.outcome.size);
    let truncated = size > JETTSON_READ_BYTES_MAX as u64;
    let complete = if truncated { trim_partial_character(bytes) } else { bytes };
    let content = String::from_utf8_lossy(complete);
    json!({ "path": path, "content": content, "size_bytes": size, "truncated": truncated })
}

fn render_listing(path: &str, list: &ListOutcome) -> Value {
    let entries: Vec<Value> = list.entries.iter().map(render_entry).collect();
    let truncated = list.completeness.is_truncated().then_some(true);
    without_nulls(json!({ "path": path, "entries": entries, "truncated": truncated }))
}

fn trim_partial_character(bytes: &[u8]) -> &[u8] {
    let Some(last) = bytes.utf8_chunks().last() else { return bytes };
    let cut = last.invalid();
    let begins = cut.first().is_some_and(|byte| *byte >= 0xc2);
    let incomplete = std::str::from_utf8(cut).is_err_and(|error| error.error_len().is_none());
    if begins && incomplete { &bytes[..bytes.len() - cut.len()] } else { bytes }
}

fn render_entry(entry: &ListedEntryRow) -> Value {
    let name = entry.path.components().next_back().map(String::from_utf8_lossy).unwrap_or_default();
    // A symbolic link within the workspace is listed with the type and size of its target.
    let target = entry.leads_to.as_ref();
    let (kind, size) = target.map_or((entry.kind, entry.size), |target| (target.kind, Some(target.size)));
    let size = size.filter(|_| kind == FileKind::File).unwrap_or_default();
    json!({ "name": name, "size_bytes": size, "is_dir": kind == FileKind::Directory })
}

fn error_sentence(input: &JettsonToolInput, error: &Error) -> String {
    let path = input.path();
    let is_root = error.details.path.as_deref() == Some(".");
    let kind = if error.kind == ErrorKind::InvalidPath && is_root { ErrorKind::IsDirectory } else { error.kind };
    match (kind, input) {
        (ErrorKind::InvalidPath | ErrorKind::PathEscape, _) => PATH_ESCAPES_MESSAGE.to_owned(),
        (ErrorKind::NotFound, _) => format!("no such file: {path}"),
        (ErrorKind::IsDirectory, JettsonToolInput::Delete(_)) => {
            format!("{path} is a directory — use Jettson Shell with rmdir for that.")
        }
        (ErrorKind::IsDirectory, _) => format!("{path} is a directory."),
        (ErrorKind::NotDirectory, JettsonToolInput::Read(_) | JettsonToolInput::Delete(_)) => {
            format!("no such file: {path}")
        }
        (ErrorKind::NotDirectory, JettsonToolInput::List(_)) => format!("{path} is not a directory."),
        (ErrorKind::NotDirectory, JettsonToolInput::Write(_)) => {
            let file = error.details.file.as_deref().or(error.details.path.as_deref());
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
    fn inputs_match_definition() {
        super::super::arguments::tests::assert_inputs_match_definition::<JettsonToolInput>(DEFINITION_JSON);
    }

    #[test]
    fn rejects_invalid_arguments_with_published_messages() {
        let validation_error = |tool: &str, arguments: Value| {
            let dialect = JettsonDialect(DialectDefinition::from_json(DEFINITION_JSON).unwrap());
            dialect.parse_call(tool, arguments.as_object().unwrap()).unwrap_err()
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
