//! The dialect `acp` has the two file methods of the Agent Client Protocol, with absolute paths and ACP errors. Only
//! the ACP proxy uses the dialect `acp`, because MCP clients do not accept tool names with a slash. A path outside the
//! root directory gets the same ACP error as a missing file.

use crate::native::RenderedOutcome;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, LineEndingAndBomPolicy, MissingBaseVersionPolicy,
};
use stead_path::{
    AbsolutePathRule, DotDotRule, EmptyPathRule, ParsedPath, PathBackslashRule, PathKindImpliedBySpelling, PathSyntax,
    RelPath, TrailingSlashRule,
};

use super::{CallResult, Dialect, DialectReply, TranslatedCall};
use crate::{
    acp::{AcpError, WriteEncodingPolicy, WriteFormatPolicy, WriteLineEndingPolicy, select_lines},
    definition::{DialectDefinition, DialectDefinitionParseError},
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

/// The engine call for an ACP read reads the whole file, and the requested lines are selected from its result.
pub(crate) fn read_call(engine_path: &str) -> TranslatedCall {
    let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..call_options(READ_METHOD) };
    TranslatedCall::new("read", json!({ "path": engine_path }), options)
}

/// The engine merges a write with changes that others made since the caller read the file. An ACP write overwrites a
/// file that the caller has not read.
pub(crate) fn write_call(engine_path: &str, content: String, format: WriteFormatPolicy) -> TranslatedCall {
    let mut arguments = json!({ "path": engine_path, "content": content, "mode": "merge" });
    if format.encoding == WriteEncodingPolicy::Utf8 {
        arguments["encoding"] = "utf-8".into();
    }
    let replacement_format = match format.line_endings {
        WriteLineEndingPolicy::Keep => LineEndingAndBomPolicy::MatchLineEndings,
        WriteLineEndingPolicy::AsGiven => LineEndingAndBomPolicy::AsGiven,
    };
    let options = CallOptions {
        missing_base: MissingBaseVersionPolicy::Overwrite,
        replacement_format,
        before_after: BeforeAfterContentInclusion::Include,
        ..call_options(WRITE_METHOD)
    };
    TranslatedCall::new("write", arguments, options)
}

pub(crate) fn turn_mark_call() -> TranslatedCall {
    TranslatedCall::new("turn", json!({}), call_options(PROMPT_METHOD))
}

pub(crate) fn call_options(tool: &str) -> CallOptions {
    CallOptions { tool: Some(format!("{NAME}/{tool}")), ..CallOptions::default() }
}

/// A file that is not UTF-8 is an error, because writing its text back would change bytes of the file.
pub(crate) fn outcome_text(outcome: RenderedOutcome) -> Result<String, AcpError> {
    let bytes = outcome.before_after.into_iter().next().and_then(|file| file.before).unwrap_or_default();
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

    fn parse_call(&self, tool: &str, arguments: &Map<String, Value>) -> Result<TranslatedCall, AcpError> {
        let params_json = Value::Object(arguments.clone());
        let invalid_params = |error: serde_json::Error| AcpError::invalid_params(error.to_string());
        let resolve = |path: &str| {
            let parsed = path_beneath_root(path, &self.root_paths).ok_or_else(|| AcpError::file_not_found(path))?;
            Ok(engine_path(&parsed.path, parsed.required_kind))
        };
        match tool {
            READ_METHOD => {
                let params: AcpReadParams = serde_json::from_value(params_json).map_err(invalid_params)?;
                resolve(&params.path).map(|engine_path| read_call(&engine_path))
            }
            WRITE_METHOD => {
                let params: AcpWriteParams = serde_json::from_value(params_json).map_err(invalid_params)?;
                resolve(&params.path)
                    .map(|engine_path| write_call(&engine_path, params.content, WriteFormatPolicy::default()))
            }
            other => Err(AcpError::method_not_found(other)),
        }
    }
}

impl Dialect for AcpDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.definition
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        self.parse_call(tool, arguments).unwrap_or_else(|error| {
            let error = Error::new(ErrorKind::BadRequest, error.to_json().to_string());
            let operation = if tool == WRITE_METHOD { "write" } else { "read" };
            TranslatedCall::rejected(operation, arguments, error, call_options(tool))
        })
    }

    fn render_reply(&self, tool: &str, arguments: &Map<String, Value>, outcome: CallResult) -> DialectReply {
        let path = arguments.get("path").and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| arguments.get(name).and_then(Value::as_u64).and_then(|it| it.try_into().ok());
        let result = self.parse_call(tool, arguments).and_then(|_| match (tool, outcome) {
            (READ_METHOD, Ok(outcome)) => {
                let text = outcome_text(outcome)?;
                Ok(json!({ "content": select_lines(&text, number("line"), number("limit"))? }))
            }
            (READ_METHOD, Err(error)) => Err(read_error(&error, path)),
            (_, Ok(_)) => Ok(json!({})),
            (_, Err(error)) => Err(AcpError::from_error(&error, path)),
        });
        DialectReply::from_json(result.map_err(|error| error.to_json()))
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
