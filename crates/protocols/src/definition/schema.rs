//! The shape of a dialect definition. The tool `cargo xtask generate` reads the YAML source and writes the generated
//! JSON with the same structs. The generated JSON contains the fields of a struct in the order of their declaration. A
//! definition with unknown keys is rejected.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::SupervisionTier;

/// The definition of one dialect.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialectDefinition {
    pub dialect: String,
    pub instructions: String,
    /// The dialect's settings that `--dialect-option` accepts.
    #[serde(default)]
    pub options: Vec<DialectOptionDefinition>,
    pub operations: Vec<ToolDefinition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ToolErrorDefinition>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub common_outputs: Vec<ToolResultFieldDefinition>,
    /// The error kinds that the document of the dialect publishes. The generated JSON of a dialect definition omits the
    /// published error kinds.
    #[serde(default, skip_serializing)]
    pub kinds: Vec<DialectPublishedErrorKind>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown_arguments: UnknownArgumentRule,
}

/// One documented setting of a dialect.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialectOptionDefinition {
    pub name: String,
    /// The values that the dialect setting accepts. An empty list means that the dialect setting accepts every value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The value of the dialect setting if the user does not give a value.
    pub default: String,
    pub description: String,
}

/// The definition of one tool of a dialect.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolDefinition {
    pub name: String,
    pub title: String,
    pub summary: String,
    /// The situations in which a model should choose the tool.
    #[serde(rename = "use")]
    pub when_to_use: String,
    pub effect: ToolFileEffect,
    /// The engine operation that the tool calls. If the definition names no operation, the tool calls the engine
    /// operation with the tool's own name.
    #[serde(default, rename = "becomes")]
    pub operation: Option<String>,
    pub hints: ToolHints,
    /// The help of the command of the same name. An operation without this help has no command of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandHelpDefinition>,
    pub inputs: Vec<ToolArgumentDefinition>,
    pub outputs: Vec<ToolResultFieldDefinition>,
    pub errors: Vec<ToolErrorDefinition>,
    /// The supervision tier of the tool; a policy can require a stricter tier. A tool without a declared supervision
    /// tier is autonomous.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<SupervisionTier>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub side_effects: Vec<DocumentedToolSideEffect>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<RecommendedToolSequence>,
    /// The keywords by which a search of the tool list finds the tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub listed: ToolVisibility,
    /// The right that the operation needs; without a name, it needs the right to use files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<String>,
    /// Further HTTP endpoints of the operation, besides `POST /v1/{operation}`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<ToolRouteDefinition>,
    /// The stream of bytes that the operation writes or reads beside its arguments and result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<ToolStreamDirection>,
    /// Example calls of the tool. Only the YAML source of a definition contains example calls.
    #[serde(default, skip_serializing)]
    pub examples: Vec<ToolExample>,
}

/// The help of an operation's command, for people at a terminal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandHelpDefinition {
    /// The words of the command, if they differ from the name of the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    pub about: String,
    /// Further sentences for the long help of the command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub details: String,
    /// An example of the command that can be pasted into a shell.
    pub example: String,
    /// The help of each argument of the command, by its name. Without help, an argument has its description.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, String>,
    /// The list in the result whose items the command prints as one JSON object per line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<String>,
    /// The flag of the file that the command writes or reads as a stream. An empty name stands for a position.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// A published HTTP endpoint of an operation.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRouteDefinition {
    pub method: String,
    /// The path of the endpoint, with the names of arguments in braces.
    pub path: String,
    /// The status code of a successful response, if it is not 200.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The direction of the stream of bytes that belongs to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStreamDirection {
    Input,
    Output,
}

/// An effect of a tool call besides its result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentedToolSideEffect {
    pub description: String,
    pub reversible: bool,
}

/// A sequence of calls that uses several tools together.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecommendedToolSequence {
    /// The purpose of a recommended sequence of tool calls, for example "Read a large file in pieces".
    pub description: String,
    pub steps: Vec<String>,
}

/// Whether tool lists contain a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum ToolVisibility {
    /// Every tool list contains the tool.
    #[default]
    Listed,
    /// No tool list contains the tool, but the command line and JSON-RPC offer it.
    Unlisted,
}

impl From<bool> for ToolVisibility {
    fn from(listed: bool) -> Self {
        if listed { ToolVisibility::Listed } else { ToolVisibility::Unlisted }
    }
}

impl From<ToolVisibility> for bool {
    fn from(visibility: ToolVisibility) -> Self {
        visibility == ToolVisibility::Listed
    }
}

/// The declared effect of a tool on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFileEffect {
    Read,
    Write,
    Destroy,
}

/// The four tool annotations of MCP.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "MCP defines these four flags")]
pub struct ToolHints {
    /// The tool changes nothing (MCP `readOnlyHint`).
    pub read_only: bool,
    /// The tool may overwrite or delete files (MCP `destructiveHint`).
    pub destructive: bool,
    /// A repeated call of the tool has no further effect (MCP `idempotentHint`).
    pub idempotent: bool,
    /// The tool reaches beyond the workspace (MCP `openWorldHint`).
    pub open_world: bool,
}

/// The definition of one argument of a tool.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolArgumentDefinition {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: ToolArgumentType,
    /// The accepted values of a tool argument that is an enum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The JSON Schema of a structured tool argument.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Map<String, Value>>,
    /// Checks of the tool argument that its published JSON Schema does not mention.
    #[serde(default, skip_serializing_if = "is_default")]
    pub check: UnpublishedToolArgumentConstraints,
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The position of the tool argument on the command line, counted from 1. With `None`, the tool argument is a flag
    /// on the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub positional: Option<usize>,
    /// The flag of the tool argument on the command line, if it differs from the argument's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flag: Option<String>,
    /// The word for the value of the tool argument in the help of the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Whether the value of the flag is a file whose content is the tool argument.
    #[serde(default, skip_serializing_if = "is_default")]
    pub file: bool,
    /// The value that a flag without a value stands for; the flag has the name of this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<String>,
    /// The field of the result that the command writes to the file that is the value of the flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<String>,
    /// Whether the flag of the tool argument belongs to a command above the command of the operation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub inherited: bool,
    /// Whether the command line reads the tool argument from standard input.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stdin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether tool lists omit the tool argument, because it is not meant for models.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unlisted: bool,
    pub description: String,
}

/// The type of a tool argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolArgumentType {
    String,
    /// The tool argument is a string or a list of strings.
    #[serde(rename = "texts")]
    StringOrList,
    /// The tool argument is a list of strings, and can be repeated on the command line.
    #[serde(rename = "strings")]
    StringList,
    /// The tool argument is a non-negative integer.
    Integer,
    Boolean,
    /// The tool argument is one of the strings in `values`.
    Enum,
    /// The tool argument is any JSON value that matches `schema`.
    Json,
}

/// Checks of a tool argument, or of a value in it, that the published JSON Schema does not mention.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UnpublishedToolArgumentConstraints {
    #[serde(skip_serializing_if = "is_default")]
    pub min: u64,
    /// Whether the tool argument must not be an empty string.
    #[serde(skip_serializing_if = "is_default")]
    pub non_empty: bool,
    /// The form that a string in the tool argument must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<ToolArgumentStringFormat>,
    /// The check of every list item, or of every map value, in the tool argument.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Box<UnpublishedToolArgumentConstraints>>,
    /// The checks of an object's fields in the tool argument, by field name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, UnpublishedToolArgumentConstraints>,
}

/// The form that a string in a tool argument must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolArgumentStringFormat {
    /// The argument string must have 64 lowercase hexadecimal digits.
    Sha256,
    /// The argument string must have 64 lowercase hexadecimal digits or be empty.
    Sha256OrEmpty,
}

/// The definition of one field of a tool's result.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResultFieldDefinition {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub nullable: bool,
    pub description: String,
}

/// An error of a tool that callers should handle.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolErrorDefinition {
    /// The error kind, as the tool reports it.
    pub kind: String,
    /// Advice in one line for a caller that gets the error. A tool error's definition has either the advice `recovery`
    /// or a list of `recoveries`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recovery: String,
    /// Actions that recover from the tool error, each with the tool call that the caller should make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<ErrorRecoveryAction>,
}

/// One action that recovers from a tool error.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorRecoveryAction {
    pub action: String,
    pub description: String,
    /// The tool that the recovery action calls. With `None`, the recovery action calls the tool that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The arguments of the recovery action's tool call. The placeholders `$path`, `$parent`, `$name`, `$watch`,
    /// `$workspace` and `$tool` in the arguments stand for values of the failed call.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

/// An error kind that the document of a dialect publishes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DialectPublishedErrorKind {
    pub kind: String,
    pub meaning: String,
}

/// The rule for arguments that a tool does not declare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownArgumentRule {
    /// The dialect rejects a call with unknown arguments.
    #[default]
    Refused,
    /// The dialect ignores unknown arguments.
    Ignored,
}

/// An example call of a tool, with either the expected result fields or the expected error kind.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolExample {
    pub title: String,
    /// The files of the workspace before the example call, by path.
    #[serde(default)]
    pub tree: Map<String, Value>,
    #[serde(default)]
    pub before: Vec<ToolExampleSetupCall>,
    pub arguments: Map<String, Value>,
    /// Some fields of the result that the example call should return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Map<String, Value>>,
    /// The error kind that the example call should return.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A call that is made before an example call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolExampleSetupCall {
    pub operation: String,
    pub arguments: Map<String, Value>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
