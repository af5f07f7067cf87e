//! Dialect definitions: plain values, generated from `definitions/` and parsed once.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use stead_engine::{FileEffect, PolicyTier};

const NATIVE_DEFINITION_JSON: &str = include_str!("generated/stead.json");

/// Replaces dots in tool names for clients that do not accept them.
const DOT_REPLACEMENT: &str = "__";

/// The embedded definitions cannot be parsed: the build is broken.
#[derive(Debug, thiserror::Error)]
#[error("the embedded definitions are broken: {0}")]
pub struct DefinitionError(#[from] serde_json::Error);

/// The definition of one dialect.
#[derive(Debug, Deserialize)]
pub struct DialectDefinition {
    /// Name of the dialect.
    pub dialect: String,
    /// Instructions for the client's model.
    pub instructions: String,
    /// Settings for `--dialect-option`.
    #[serde(default)]
    pub options: Vec<DialectOption>,
    /// Fields that any result may have.
    #[serde(default)]
    pub common_outputs: Vec<ToolOutput>,
    /// Errors that any operation may return.
    #[serde(default)]
    pub errors: Vec<ToolErrorDefinition>,
    /// The tools, in documentation order.
    pub operations: Vec<ToolDefinition>,
}

/// One documented setting of a dialect.
#[derive(Debug, Deserialize)]
pub struct DialectOption {
    /// Name of the setting.
    pub name: String,
    /// The accepted values; any value if empty.
    #[serde(default)]
    pub values: Vec<String>,
    /// Value used if the setting is absent.
    pub default: String,
    /// What the setting does.
    pub description: String,
}

/// One tool.
#[derive(Debug, Deserialize)]
pub struct ToolDefinition {
    /// Name in every protocol.
    pub name: String,
    /// Short name for people.
    pub title: String,
    /// One-line description.
    pub summary: String,
    /// When a model chooses the tool.
    #[serde(rename = "use")]
    pub when_to_use: String,
    /// Its effect on files.
    pub effect: ToolEffect,
    /// The engine operation behind a dialect's tool; `None` if the tool is the operation itself.
    #[serde(default)]
    #[serde(rename = "becomes")]
    pub operation: Option<String>,
    /// The default tier; `None` means autonomous.
    #[serde(default)]
    pub tier: Option<PolicyTier>,
    /// Whether tool lists contain it.
    #[serde(default)]
    pub listed: ToolVisibility,
    /// Its MCP annotations.
    pub hints: ToolHints,
    /// Arguments.
    pub inputs: Vec<ToolInput>,
    /// Fields of the result.
    pub outputs: Vec<ToolOutput>,
    /// Errors that callers should handle.
    pub errors: Vec<ToolErrorDefinition>,
    /// Version of the interface.
    #[serde(default)]
    pub version: Option<String>,
    /// Effects besides the result.
    #[serde(default)]
    pub side_effects: Vec<ToolSideEffect>,
    /// How it is combined with other tools.
    #[serde(default)]
    pub patterns: Vec<ToolUsagePattern>,
    /// Search keywords.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// An effect of an operation besides its result.
#[derive(Debug, Deserialize, Serialize)]
pub struct ToolSideEffect {
    /// Description of the effect.
    pub description: String,
    /// Whether the effect can be undone.
    pub reversible: bool,
}

/// A sequence in which operations are used together.
#[derive(Debug, Deserialize, Serialize)]
pub struct ToolUsagePattern {
    /// Purpose of the sequence.
    pub description: String,
    /// The steps, in order.
    pub steps: Vec<String>,
}

/// Whether tool lists contain an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "bool")]
pub enum ToolVisibility {
    /// In every tool list.
    #[default]
    Listed,
    /// Only on the command line and in JSON-RPC.
    Unlisted,
}

impl From<bool> for ToolVisibility {
    fn from(listed: bool) -> Self {
        if listed { ToolVisibility::Listed } else { ToolVisibility::Unlisted }
    }
}

/// Declared effect of an operation on files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Changes nothing.
    Read,
    /// Adds or changes files.
    Write,
    /// Deletes files.
    Destroy,
}

impl From<ToolEffect> for FileEffect {
    fn from(declared: ToolEffect) -> Self {
        match declared {
            ToolEffect::Read => FileEffect::None,
            ToolEffect::Write => FileEffect::Write,
            ToolEffect::Destroy => FileEffect::Destroy,
        }
    }
}

/// The four tool annotations of MCP.
#[derive(Debug, Clone, Copy, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has these four")]
pub struct ToolHints {
    /// Changes nothing.
    pub read_only: bool,
    /// May overwrite or delete.
    pub destructive: bool,
    /// Repeating the call changes nothing more.
    pub idempotent: bool,
    /// Reaches beyond the workspace.
    pub open_world: bool,
}

/// One argument of a tool.
#[derive(Debug, Deserialize)]
pub struct ToolInput {
    /// Name of the argument.
    pub name: String,
    /// Type of the value.
    #[serde(rename = "type")]
    pub kind: ToolInputType,
    /// The accepted words of an enum.
    #[serde(default)]
    pub values: Vec<String>,
    /// JSON Schema of a structured argument.
    #[serde(default)]
    pub schema: Option<Map<String, Value>>,
    /// Whether the argument is required.
    #[serde(default)]
    pub required: bool,
    /// Value used if the argument is absent.
    pub default: Option<Value>,
    /// Position on the command line, from 1; without it the argument is a flag.
    pub positional: Option<usize>,
    /// Whether the command line reads it from standard input.
    #[serde(default)]
    pub stdin: bool,
    /// Short description for models.
    pub note: Option<String>,
    /// Left out of tool lists, because it is not for models.
    #[serde(default)]
    pub unlisted: bool,
    /// Description for people.
    pub description: String,
}

/// Type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolInputType {
    /// A string.
    String,
    /// A string or a list of strings.
    #[serde(rename = "texts")]
    StringOrList,
    /// A non-negative integer.
    Integer,
    /// A boolean.
    Boolean,
    /// One of the words in `values`.
    Enum,
    /// Any JSON that matches `schema`.
    Json,
}

/// One field of a result.
#[derive(Debug, Deserialize)]
pub struct ToolOutput {
    /// Name of the field.
    pub name: String,
    /// JSON type of the field.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether the field may be null.
    #[serde(default)]
    pub nullable: bool,
    /// Description of the field.
    pub description: String,
}

/// An error that callers should handle.
#[derive(Debug, Deserialize, Serialize)]
pub struct ToolErrorDefinition {
    /// Error kind.
    pub kind: String,
    /// One-line advice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recovery: String,
    /// Recovery actions, each with the call to make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<RecoveryAction>,
}

/// One recovery action for an error.
#[derive(Debug, Deserialize, Serialize)]
pub struct RecoveryAction {
    /// Name of the action.
    pub action: String,
    /// Description of the action.
    pub description: String,
    /// The tool to call; without it, the failed tool is called again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Arguments of the call, with placeholders.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

impl DialectDefinition {
    /// Parses the native dialect.
    pub fn native() -> Result<Self, DefinitionError> {
        Self::from_json(NATIVE_DEFINITION_JSON)
    }

    /// Parses a generated definition.
    pub(crate) fn from_json(generated: &str) -> Result<Self, DefinitionError> {
        Ok(serde_json::from_str(generated)?)
    }

    /// Finds a tool by name.
    pub fn find_tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.operations.iter().find(|operation| operation.name == name)
    }
}

impl ToolDefinition {
    /// The engine operation behind the tool.
    pub fn engine_operation(&self) -> &str {
        self.operation.as_deref().unwrap_or(&self.name)
    }

    /// The name for clients that do not accept dots.
    pub fn dotless_name(&self) -> String {
        self.name.replace('.', DOT_REPLACEMENT)
    }

    /// Whether `name` means this tool, with or without dots.
    pub fn matches_name(&self, name: &str) -> bool {
        self.name == name || (name.contains(DOT_REPLACEMENT) && self.dotless_name() == name)
    }

    /// JSON Schema of the arguments, without null unions. It omits `additionalProperties: false` to keep tool lists
    /// short; the error for an unknown argument names the right one.
    pub fn input_schema(&self) -> Map<String, Value> {
        let properties: Map<String, Value> = self
            .inputs
            .iter()
            .filter(|input| !input.unlisted)
            .map(|input| (input.name.clone(), Value::Object(input.schema())))
            .collect();
        let required: Vec<Value> =
            self.inputs.iter().filter(|input| input.required).map(|input| input.name.clone().into()).collect();
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema
    }

    /// JSON Schema of the result: every possible field with its type. `common` are the fields of any result.
    pub fn output_schema(&self, common: &[ToolOutput]) -> Map<String, Value> {
        let property = |output: &ToolOutput| {
            let kind = json!({ "type": output.kind });
            // Some clients cannot read the equivalent list of types.
            let schema = if output.nullable { json!({ "anyOf": [kind, { "type": "null" }] }) } else { kind };
            (output.name.clone(), schema)
        };
        let properties: Map<String, Value> = self.outputs.iter().chain(common).map(property).collect();
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        schema
    }
}

impl ToolInput {
    fn schema(&self) -> Map<String, Value> {
        let mut schema = self.schema.clone().unwrap_or_default();
        let kind = match self.kind {
            ToolInputType::String | ToolInputType::Enum => Some(json!("string")),
            ToolInputType::Integer => Some(json!("integer")),
            ToolInputType::Boolean => Some(json!("boolean")),
            ToolInputType::StringOrList | ToolInputType::Json => None,
        };
        if let Some(kind) = kind {
            schema.insert("type".into(), kind);
        }
        if self.kind == ToolInputType::StringOrList {
            let text = json!({ "type": "string" });
            schema.insert("anyOf".into(), json!([text, { "type": "array", "items": text }]));
        }
        if !self.values.is_empty() {
            schema.insert("enum".into(), self.values.clone().into());
        }
        if let Some(note) = &self.note {
            schema.insert("description".into(), note.clone().into());
        }
        // Only defaults that a model would not guess.
        if let Some(default) = self.default.as_ref().filter(|default| default.as_str().is_some_and(|text| text != "."))
        {
            schema.insert("default".into(), default.clone());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_definitions_parse() {
        let definition = DialectDefinition::native().unwrap();
        assert_eq!(definition.dialect, "stead");
        assert!(definition.find_tool("read").is_some());
        assert!(definition.find_tool("ls").is_none());
    }

    #[test]
    fn schemas_contain_no_null() {
        for operation in &DialectDefinition::native().unwrap().operations {
            let schema = Value::Object(operation.input_schema());
            assert!(!schema.to_string().contains("null"), "{}", operation.name);
        }
    }
}
