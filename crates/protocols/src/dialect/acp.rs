//! The dialect `acp` has the two file methods of the Agent Client Protocol, with absolute paths and ACP errors. Only
//! the ACP proxy uses the dialect `acp`, because MCP clients do not accept tool names with a slash. A path outside the
//! root directory gets the same ACP error as a missing file.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, LineEndingAndBomPolicy,
    ops::{BeginTurnArgs, ReadArgs, ReadOutcome, StaleWriteHandling, WriteArgs},
};
use stead_path::{
    AbsolutePathRule, DotDotRule, EmptyPathRule, ParsedPath, PathBackslashRule, PathKindImpliedBySpelling, PathSyntax,
    RelPath, TrailingSlashRule,
};

use super::{Dialect, DialectReply};
use crate::{
    acp::{AcpError, WriteEncodingPolicy, WriteFormatPolicy, WriteLineEndingPolicy, select_lines},
    definition::{DialectDefinition, DialectDefinitionParseError},
    prepared_call::{OutcomeWithBytes, PreparedCall, TypedCallResult},
};

const DEFINITION_JSON: &str = include_str!("../generated/acp.json");
const NAME: &str = "acp";
pub(crate) const READ_METHOD: &str = "fs/read_text_file";
pub(crate) const WRITE_METHOD: &str = "fs/write_text_file";

/// The request `session/prompt` starts a turn.
pub(crate) const PROMPT_METHOD: &str = "session/prompt";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcpReadParams {
    pub(crate) session_id: String,
    pub(crate) path: String,
    pub(crate) line: Option<u32>,
    pub(crate) limit: Option<u32>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AcpWriteParams {
    pub(crate) session_id: String,
    pub(crate) path: String,
    pub(crate) content: String,
    #[serde(rename = "_meta")]
    pub(crate) meta: Option<Value>,
}

/// Converts an absolute path to a path below a root; a path outside the root gives `None`. The list `root_paths`
/// contains all known absolute paths of one root directory. The parser resolves `.` and `..` before any file is
/// accessed.
pub(crate) fn path_beneath_root(path: &str, root_paths: &[String]) -> Option<ParsedPath> {
    if !path.starts_with('/') {
        return None;
    }
    let syntax = PathSyntax {
        default_directory: RelPath::root(),
        dot_dot: DotDotRule::FoldAbsolute,
        absolute_paths: AbsolutePathRule::BelowRoot,
        backslash: PathBackslashRule::Literal,
        trailing_slash: TrailingSlashRule::RequiresDirectory,
        empty_path: EmptyPathRule::Refuse,
    };
    let beneath = |root| stead_path::parse_path(path, std::slice::from_ref(root), &syntax).ok();
    root_paths.iter().find_map(beneath)
}

pub(crate) fn engine_path(path: &RelPath, trailing: PathKindImpliedBySpelling) -> String {
    match trailing {
        PathKindImpliedBySpelling::Any => path.to_wire().into_owned(),
        PathKindImpliedBySpelling::Directory => format!("{}/", path.to_wire()),
    }
}

type AcpReadResult = Result<OutcomeWithBytes<ReadOutcome>, Error>;

/// The engine call for an ACP read reads the whole file, and the requested lines are selected from its result.
pub(crate) fn read_call(engine_path: &str) -> PreparedCall<AcpReadResult> {
    let (arguments, options) = read_arguments(engine_path.to_owned());
    PreparedCall::new(arguments, options, |result| OutcomeWithBytes::from_reply(result?))
}

fn read_arguments(path: String) -> (ReadArgs, CallOptions) {
    let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..call_options(READ_METHOD) };
    (ReadArgs { path, ..ReadArgs::default() }, options)
}

pub(crate) fn write_call(
    engine_path: &str,
    content: String,
    format: WriteFormatPolicy,
    known_text: Option<Arc<str>>,
) -> PreparedCall<TypedCallResult<WriteArgs>> {
    let (arguments, options) = write_arguments(engine_path.to_owned(), content, format);
    PreparedCall::new(WriteArgs { known_text, ..arguments }, options, |result| result)
}

/// The engine merges a write with changes that others made since the caller read the file. An ACP write overwrites a
/// file that the caller has not read.
fn write_arguments(path: String, content: String, format: WriteFormatPolicy) -> (WriteArgs, CallOptions) {
    let encoding = (format.encoding == WriteEncodingPolicy::Utf8).then(|| "utf-8".to_owned());
    let replacement_format = match format.line_endings {
        WriteLineEndingPolicy::Keep => LineEndingAndBomPolicy::MatchLineEndings,
        WriteLineEndingPolicy::AsGiven => LineEndingAndBomPolicy::AsGiven,
    };
    let (mode, replace_without_base) = (StaleWriteHandling::Merge, true);
    let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..call_options(WRITE_METHOD) };
    let arguments =
        WriteArgs { path, content, encoding, mode, replace_without_base, replacement_format, ..WriteArgs::default() };
    (arguments, options)
}

pub(crate) fn turn_mark_call() -> PreparedCall<()> {
    PreparedCall::new(BeginTurnArgs {}, call_options(PROMPT_METHOD), |_| ())
}

pub(crate) fn call_options(tool: &str) -> CallOptions {
    CallOptions { tool: Some(format!("{NAME}/{tool}")), ..CallOptions::default() }
}

/// A file that is not UTF-8 is an error, because writing its text back would change bytes of the file.
pub(crate) fn outcome_text(read: OutcomeWithBytes<ReadOutcome>) -> Result<String, AcpError> {
    let bytes = read.before_after.into_iter().next().and_then(|file| file.before).unwrap_or_default();
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        AcpError::internal_error(format!(
            "not_text: the file is not UTF-8: byte {at} does not fit; reading it would damage it"
        ))
    })
}

/// A caller that may not read the path gets the error that the file was not found.
pub(crate) fn read_error(error: &Error, path: &str) -> AcpError {
    if [ErrorKind::OutOfScope, ErrorKind::ProtectedPath].contains(&error.kind) {
        return AcpError::file_not_found(path);
    }
    AcpError::from_error(error, path)
}

/// The `acp` dialect for one root directory.
pub struct AcpDialect {
    definition: DialectDefinition,
    root_paths: Vec<String>,
}

impl AcpDialect {
    /// Creates the `acp` dialect for one root directory; `root_paths` are all known absolute paths of the directory.
    pub fn new(root_paths: Vec<String>) -> Result<Self, DialectDefinitionParseError> {
        Ok(Self { definition: DialectDefinition::from_json(DEFINITION_JSON)?, root_paths })
    }

    fn parse_call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<PreparedCall<DialectReply>, AcpError> {
        let params_json = Value::Object(arguments.clone());
        let invalid_params = |error: serde_json::Error| AcpError::invalid_params(error.to_string());
        let resolve = |path: &str| {
            let parsed = path_beneath_root(path, &self.root_paths).ok_or_else(|| AcpError::file_not_found(path))?;
            Ok(engine_path(&parsed.path, parsed.required_kind))
        };
        match tool {
            READ_METHOD => {
                let AcpReadParams { path, line, limit, .. } =
                    serde_json::from_value(params_json).map_err(invalid_params)?;
                let (arguments, options) = read_arguments(resolve(&path)?);
                Ok(PreparedCall::for_dialect(arguments, options, move |result| {
                    let text = result.map_err(|error| read_error(&error, &path)).and_then(outcome_text);
                    reply(text.and_then(|text| Ok(json!({ "content": select_lines(&text, line, limit)? }))))
                }))
            }
            WRITE_METHOD => {
                let AcpWriteParams { path, content, .. } =
                    serde_json::from_value(params_json).map_err(invalid_params)?;
                let (arguments, options) = write_arguments(resolve(&path)?, content, WriteFormatPolicy::default());
                Ok(PreparedCall::for_dialect(arguments, options, move |result| {
                    reply(result.map(|_| json!({})).map_err(|error| AcpError::from_error(&error, &path)))
                }))
            }
            other => Err(AcpError::method_not_found(other)),
        }
    }
}

fn reply(result: Result<Value, AcpError>) -> DialectReply {
    DialectReply::from_json(result.map_err(|error| error.to_json()))
}

impl Dialect for AcpDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(self: Arc<Self>, tool: &str, arguments: &Map<String, Value>) -> PreparedCall<DialectReply> {
        self.parse_call(tool, arguments).unwrap_or_else(|error| {
            let message = Error::new(ErrorKind::BadRequest, error.to_json().to_string());
            let operation = if tool == WRITE_METHOD { "write" } else { "read" };
            PreparedCall::rejected(operation, arguments, message, call_options(tool), |_| reply(Err(error)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::arguments::tests::example_arguments, *};

    #[test]
    fn declared_arguments_decode() {
        let definition = DialectDefinition::from_json(DEFINITION_JSON).unwrap();
        let arguments = |method: &str| Value::Object(example_arguments(definition.find_tool(method).unwrap()));
        assert!(serde_json::from_value::<AcpReadParams>(arguments(READ_METHOD)).is_ok());
        assert!(serde_json::from_value::<AcpWriteParams>(arguments(WRITE_METHOD)).is_ok());
    }
}
