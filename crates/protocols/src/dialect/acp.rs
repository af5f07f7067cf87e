//! The dialect `acp` has the two file methods of the Agent Client Protocol, with absolute paths and ACP errors. Only
//! the ACP proxy uses the dialect `acp`, because MCP clients do not accept tool names with a slash. A path outside the
//! root directory gets the same ACP error as a missing file.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, LineEndingAndBomPolicy,
    ops::{BeginTurnArgs, ReadArgs, ReadOutcome, StaleWriteHandling, WriteArgs},
};
use stead_path::{DotDotRule, ParsedPath, PathBackslashRule, PathKindImpliedBySpelling, PathSyntax, RelPath};

use crate::{
    acp::{AcpError, WriteEncodingPolicy, WriteFormatPolicy, WriteLineEndingPolicy},
    prepared_call::{OutcomeWithBytes, PreparedCall, TypedCallResult},
};

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
        dot_dot: DotDotRule::FoldAbsolute,
        backslash: PathBackslashRule::Literal,
        ..PathSyntax::default()
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
pub(crate) fn read_call(engine_path: &str) -> PreparedCall<Result<OutcomeWithBytes<ReadOutcome>, Error>> {
    let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..call_options(READ_METHOD) };
    let arguments = ReadArgs { path: engine_path.to_owned(), ..ReadArgs::default() };
    PreparedCall::new(arguments, options, |result| OutcomeWithBytes::from_reply(result?))
}

/// The engine merges a write with changes that others made since the caller read the file. An ACP write overwrites a
/// file that the caller has not read.
pub(crate) fn write_call(
    engine_path: &str,
    content: String,
    format: WriteFormatPolicy,
    known_text: Option<Arc<str>>,
) -> PreparedCall<TypedCallResult<WriteArgs>> {
    let replacement_format = match format.line_endings {
        WriteLineEndingPolicy::Keep => LineEndingAndBomPolicy::MatchLineEndings,
        WriteLineEndingPolicy::AsGiven => LineEndingAndBomPolicy::AsGiven,
    };
    let arguments = WriteArgs {
        path: engine_path.to_owned(),
        content,
        encoding: (format.encoding == WriteEncodingPolicy::Utf8).then(|| "utf-8".to_owned()),
        mode: StaleWriteHandling::Merge,
        replace_without_base: true,
        replacement_format,
        known_text,
        ..WriteArgs::default()
    };
    let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..call_options(WRITE_METHOD) };
    PreparedCall::new(arguments, options, |result| result)
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

#[cfg(test)]
mod tests {
    use super::{super::arguments::tests::example_arguments, *};
    use crate::definition::DialectDefinition;

    #[test]
    fn declared_arguments_decode() {
        let definition = DialectDefinition::from_json(include_str!("../generated/acp.json")).unwrap();
        let arguments = |method: &str| Value::Object(example_arguments(definition.find_tool(method).unwrap()));
        assert!(serde_json::from_value::<AcpReadParams>(arguments(READ_METHOD)).is_ok());
        assert!(serde_json::from_value::<AcpWriteParams>(arguments(WRITE_METHOD)).is_ok());
    }
}
