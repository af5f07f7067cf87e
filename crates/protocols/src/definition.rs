//! Definitions of the dialects: their tools with arguments, results and errors. The definitions are generated from
//! `definitions/`, compiled into the program as JSON, and parsed when a dialect is built.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stead_engine::{OperationEffectClass, SupervisionTier};

const NATIVE_DEFINITION_JSON: &str = include_str!("generated/stead.json");

/// The replacement for dots in tool names, for clients that do not accept dots.
const DOT_REPLACEMENT: &str = "__";

/// A definition compiled into this program cannot be parsed, so the build is broken.
#[derive(Debug, thiserror::Error)]
#[error("cannot parse a definition compiled into this program: {0}")]
pub struct DialectDefinitionParseError(#[from] serde_json::Error);

/// The definition of one dialect.
#[derive(Debug, Deserialize)]
pub struct DialectDefinition {
    /// The name of the dialect.
    pub dialect: String,
    /// Instructions for the model that uses the tools.
    pub instructions: String,
    /// The settings that `--dialect-option` accepts.
    #[serde(default)]
    pub options: Vec<DialectOptionDefinition>,
    /// The fields that the result of every tool of the dialect may have.
    #[serde(default)]
    pub common_outputs: Vec<ToolResultFieldDefinition>,
    /// Errors that every tool of the dialect may return.
    #[serde(default)]
    pub errors: Vec<ToolErrorDefinition>,
    /// The tools of the dialect, in documentation order.
    pub operations: Vec<ToolDefinition>,
}

/// One documented setting of a dialect.
#[derive(Debug, Deserialize)]
pub struct DialectOptionDefinition {
    /// The name of the dialect setting.
    pub name: String,
    /// The accepted values. An empty list means that the setting accepts every value.
    #[serde(default)]
    pub values: Vec<String>,
    /// The value of the setting if the user does not give a value.
    pub default: String,
    /// A description of the setting's effect, for people.
    pub description: String,
}

/// One tool of a dialect.
#[derive(Debug, Deserialize)]
pub struct ToolDefinition {
    /// The name of the tool in every protocol.
    pub name: String,
    /// A short name of the tool for people.
    pub title: String,
    /// A description of the tool in one line.
    pub summary: String,
    /// The situations in which a model should choose the tool.
    #[serde(rename = "use")]
    pub when_to_use: String,
    /// Whether the tool reads, writes or deletes files.
    pub effect: ToolFileEffect,
    /// The engine operation that the tool calls. `None` means that the operation has the same name as the tool.
    #[serde(default, rename = "becomes")]
    pub operation: Option<String>,
    /// The policy tier of the tool. `None` means autonomous. A policy can require a stricter tier.
    #[serde(default)]
    pub tier: Option<SupervisionTier>,
    /// Whether tool lists contain the tool.
    #[serde(default)]
    pub listed: ToolVisibility,
    /// The MCP annotations of the tool.
    pub hints: ToolHints,
    /// The arguments of the tool.
    pub inputs: Vec<ToolArgumentDefinition>,
    /// The fields of the tool's result.
    pub outputs: Vec<ToolResultFieldDefinition>,
    /// The errors of the tool that callers should handle.
    pub errors: Vec<ToolErrorDefinition>,
    /// The version of the tool's arguments and results.
    #[serde(default)]
    pub version: Option<String>,
    /// The effects of a tool call besides its result.
    #[serde(default)]
    pub side_effects: Vec<ToolSideEffectDefinition>,
    /// Sequences of calls that use the tool together with other tools.
    #[serde(default)]
    pub patterns: Vec<RecommendedToolSequence>,
    /// Keywords for searching the list of tools.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// An effect of a tool call besides its result.
#[derive(Debug, Deserialize, Serialize)]
pub struct ToolSideEffectDefinition {
    /// A description of the side effect.
    pub description: String,
    /// Whether the side effect can be undone.
    pub reversible: bool,
}

/// A sequence of calls that uses several tools together.
#[derive(Debug, Deserialize, Serialize)]
pub struct RecommendedToolSequence {
    /// The purpose of the call sequence.
    pub description: String,
    /// The steps of the call sequence, in order.
    pub steps: Vec<String>,
}

/// Whether tool lists contain a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "bool")]
pub enum ToolVisibility {
    /// Every tool list contains the tool.
    #[default]
    Listed,
    /// No tool list contains the tool. The tool is available on the command line and over JSON-RPC.
    Unlisted,
}

impl From<bool> for ToolVisibility {
    fn from(listed: bool) -> Self {
        if listed { ToolVisibility::Listed } else { ToolVisibility::Unlisted }
    }
}

/// The declared effect of a tool on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolFileEffect {
    /// The tool changes no file.
    Read,
    /// The tool creates or changes files.
    Write,
    /// The tool deletes files.
    Destroy,
}

impl From<ToolFileEffect> for OperationEffectClass {
    fn from(declared: ToolFileEffect) -> Self {
        match declared {
            ToolFileEffect::Read => OperationEffectClass::None,
            ToolFileEffect::Write => OperationEffectClass::Write,
            ToolFileEffect::Destroy => OperationEffectClass::Destroy,
        }
    }
}

/// The four tool annotations of MCP.
#[derive(Debug, Clone, Copy, Deserialize)]
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

/// One argument of a tool.
#[derive(Debug, Deserialize)]
pub struct ToolArgumentDefinition {
    /// The name of the tool argument.
    pub name: String,
    /// The type of the tool argument.
    #[serde(rename = "type")]
    pub kind: ToolArgumentType,
    /// The accepted values of an enum argument.
    #[serde(default)]
    pub values: Vec<String>,
    /// JSON Schema of a structured argument.
    #[serde(default)]
    pub schema: Option<Map<String, Value>>,
    /// Whether the argument is required.
    #[serde(default)]
    pub required: bool,
    /// The value of the argument if a call does not contain it.
    pub default: Option<Value>,
    /// The position of the argument on the command line, counted from 1. `None` means that the argument is a flag.
    pub positional: Option<usize>,
    /// Whether the command line reads the argument from standard input.
    #[serde(default)]
    pub stdin: bool,
    /// A short description of the argument for models.
    pub note: Option<String>,
    /// Whether tool lists omit the argument, because it is not meant for models.
    #[serde(default)]
    pub unlisted: bool,
    /// A description of the argument for people.
    pub description: String,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolArgumentType {
    /// A string.
    String,
    /// The argument is a string or a list of strings.
    #[serde(rename = "texts")]
    StringOrList,
    /// A non-negative integer.
    Integer,
    /// A boolean.
    Boolean,
    /// The argument is one of the strings in `values`.
    Enum,
    /// The argument is any JSON value that matches `schema`.
    Json,
}

/// One field of a tool's result.
#[derive(Debug, Deserialize)]
pub struct ToolResultFieldDefinition {
    /// The name of the result field.
    pub name: String,
    /// The JSON type of the result field.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the result field may be null.
    #[serde(default)]
    pub nullable: bool,
    /// A description of the result field.
    pub description: String,
}

/// An error of a tool that callers should handle.
#[derive(Debug, Deserialize, Serialize)]
pub struct ToolErrorDefinition {
    /// The error kind, as the tool reports it.
    pub kind: String,
    /// Advice in one line for a caller that gets the error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recovery: String,
    /// Actions that recover from the error; each action contains the tool call that the caller should make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<ErrorRecoveryAction>,
}

/// One recovery action for an error.
#[derive(Debug, Deserialize, Serialize)]
pub struct ErrorRecoveryAction {
    /// The name of the recovery action.
    pub action: String,
    /// A description of the recovery action.
    pub description: String,
    /// The tool that the recovery action calls; `None` means the tool that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The arguments of the tool call in a recovery action, with placeholders.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

impl DialectDefinition {
    /// Parses the definition of the native dialect.
    pub fn native() -> Result<Self, DialectDefinitionParseError> {
        Self::from_json(NATIVE_DEFINITION_JSON)
    }

    pub(crate) fn from_json(generated: &str) -> Result<Self, DialectDefinitionParseError> {
        Ok(serde_json::from_str(generated)?)
    }

    /// Finds a tool by name.
    pub fn find_tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.operations.iter().find(|tool| tool.name == name)
    }
}

impl ToolDefinition {
    /// The engine operation that the tool calls.
    pub fn engine_operation(&self) -> &str {
        self.operation.as_deref().unwrap_or(&self.name)
    }

    /// The name of the tool with each dot replaced by `__`, for clients that do not accept dots.
    pub fn dotless_name(&self) -> String {
        self.name.replace('.', DOT_REPLACEMENT)
    }

    /// Whether `name` is the name of this tool, with dots or with `__` instead of dots.
    pub fn matches_name(&self, name: &str) -> bool {
        self.name == name || (name.contains(DOT_REPLACEMENT) && self.dotless_name() == name)
    }

    /// The JSON Schema of the tool's arguments. An optional argument is left out, never null. The schema omits
    /// `additionalProperties: false` to keep tool lists short; the error for an unknown argument lists the known ones.
    pub fn input_schema(&self) -> Map<String, Value> {
        let listed = self.inputs.iter().filter(|input| !input.unlisted);
        let mut schema = object_schema(listed.map(|input| (input.name.clone(), input.schema().into())).collect());
        let required: Vec<Value> =
            self.inputs.iter().filter(|input| input.required).map(|input| input.name.clone().into()).collect();
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema
    }

    /// The JSON Schema of the tool's result, with every possible field. `common` are the fields that the result of any
    /// tool may have.
    pub fn output_schema(&self, common: &[ToolResultFieldDefinition]) -> Map<String, Value> {
        let property = |output: &ToolResultFieldDefinition| {
            let kind = json!({ "type": output.kind });
            // Some clients do not understand the shorter form of a nullable type, which is a list of two types.
            let schema = if output.nullable { json!({ "anyOf": [kind, { "type": "null" }] }) } else { kind };
            (output.name.clone(), schema)
        };
        object_schema(self.outputs.iter().chain(common).map(property).collect())
    }
}

fn object_schema(properties: Map<String, Value>) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), "object".into()), ("properties".to_owned(), properties.into())])
}

impl ToolArgumentDefinition {
    fn schema(&self) -> Map<String, Value> {
        let mut schema = self.schema.clone().unwrap_or_default();
        let text = json!({ "type": "string" });
        let constraint = match self.kind {
            ToolArgumentType::String | ToolArgumentType::Enum => Some(("type", json!("string"))),
            ToolArgumentType::Integer => Some(("type", json!("integer"))),
            ToolArgumentType::Boolean => Some(("type", json!("boolean"))),
            ToolArgumentType::StringOrList => Some(("anyOf", json!([text, { "type": "array", "items": text }]))),
            ToolArgumentType::Json => None,
        };
        schema.extend(constraint.map(|(keyword, value)| (keyword.to_owned(), value)));
        if !self.values.is_empty() {
            schema.insert("enum".into(), self.values.clone().into());
        }
        if let Some(note) = &self.note {
            schema.insert("description".into(), note.clone().into());
        }
        // The schema omits default values that a model can guess: the string `.`, and every value that is not a string.
        if let Some(default) = self.default.as_ref().and_then(Value::as_str).filter(|default| *default != ".") {
            schema.insert("default".into(), default.into());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn native_definition_parses() {
        let definition = DialectDefinition::native().unwrap();
        assert_eq!(definition.dialect, "stead");
        assert!(definition.find_tool("read").is_some());
        assert!(definition.find_tool("ls").is_none());
    }

    #[test]
    fn input_schemas_contain_no_null() {
        for operation in &DialectDefinition::native().unwrap().operations {
            let schema = Value::Object(operation.input_schema());
            assert!(!schema.to_string().contains("null"), "{}", operation.name);
        }
    }
}
