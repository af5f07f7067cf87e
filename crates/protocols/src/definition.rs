//! Definitions of the dialects: their tools with arguments, results and errors. Dialect definitions are generated from
//! `definitions/` and compiled into the program as JSON.

use serde_json::{Map, Value, json};
use stead_engine::{OperationEffectClass, SupervisionTier};

mod schema;

pub use schema::{
    CommandHelpDefinition, DialectDefinition, DialectOptionDefinition, DialectPublishedErrorKind,
    DocumentedToolSideEffect, ErrorRecoveryAction, RecommendedToolSequence, ToolArgumentDefinition,
    ToolArgumentStringFormat, ToolArgumentType, ToolDefinition, ToolErrorDefinition, ToolExample, ToolExampleSetupCall,
    ToolFileEffect, ToolHints, ToolResultFieldDefinition, ToolRouteDefinition, ToolStreamDirection, ToolVisibility,
    UnknownArgumentRule, UnpublishedToolArgumentConstraints,
};

const NATIVE_DEFINITION_JSON: &str = include_str!("generated/stead.json");

/// The text that replaces each dot in a tool name, because some clients do not accept dots.
const DOT_REPLACEMENT: &str = "__";

/// The error for a dialect definition that is compiled into the program but cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[error("cannot parse a definition compiled into this program: {0}")]
pub struct DialectDefinitionParseError(#[from] serde_json::Error);

impl From<ToolFileEffect> for OperationEffectClass {
    fn from(declared: ToolFileEffect) -> Self {
        match declared {
            ToolFileEffect::Read => OperationEffectClass::None,
            ToolFileEffect::Write => OperationEffectClass::Write,
            ToolFileEffect::Destroy => OperationEffectClass::Destroy,
        }
    }
}

impl DialectDefinition {
    /// Parses the definition of the native dialect.
    pub fn native() -> Result<Self, DialectDefinitionParseError> {
        Self::from_json(NATIVE_DEFINITION_JSON)
    }

    pub(crate) fn from_json(generated: &str) -> Result<Self, DialectDefinitionParseError> {
        Ok(serde_json::from_str(generated)?)
    }

    /// Finds a tool of the dialect by its name.
    pub fn find_tool(&self, name: &str) -> Option<&ToolDefinition> {
        self.operations.iter().find(|tool| tool.name == name)
    }
}

impl ToolDefinition {
    /// The name of the engine operation that the tool calls.
    pub fn engine_operation(&self) -> &str {
        self.operation.as_deref().unwrap_or(&self.name)
    }

    /// The words of the command that runs the operation.
    pub fn command_words(&self) -> &str {
        self.command.as_ref().and_then(|command| command.words.as_deref()).unwrap_or(&self.name)
    }

    /// The name of the tool with each dot replaced by `__`, for clients that do not accept dots.
    pub fn dotless_name(&self) -> String {
        self.name.replace('.', DOT_REPLACEMENT)
    }

    /// Whether `name` is the tool's name, written with dots or with `__` in place of each dot.
    pub fn matches_name(&self, name: &str) -> bool {
        self.name == name || (name.contains(DOT_REPLACEMENT) && self.dotless_name() == name)
    }

    /// The JSON Schema of the tool's arguments. A caller leaves out an optional argument and never sends null for it.
    /// The argument schema of a tool omits `additionalProperties: false`, so that tool lists stay short. The error for
    /// an unknown argument lists the known arguments of the tool.
    pub fn input_schema(&self) -> Map<String, Value> {
        let listed = self.inputs.iter().filter(|input| !input.unlisted);
        let mut schema = object_schema(listed.map(|input| (input.name.clone(), input.schema())).collect());
        let required: Vec<Value> =
            self.inputs.iter().filter(|input| input.required).map(|input| input.name.clone().into()).collect();
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema
    }

    /// The JSON Schema of the tool's result, with every possible field. The fields in `common` can occur in the result
    /// of every tool of the dialect.
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
    pub(crate) fn schema(&self) -> Value {
        let text = json!({ "type": "string" });
        let mut schema = match self.kind {
            ToolArgumentType::String => text,
            ToolArgumentType::Enum => json!({ "type": "string", "enum": self.values }),
            ToolArgumentType::Integer => json!({ "type": "integer" }),
            ToolArgumentType::Boolean => json!({ "type": "boolean" }),
            ToolArgumentType::StringOrList => json!({ "anyOf": [text, { "type": "array", "items": text }] }),
            ToolArgumentType::StringList => json!({ "type": "array", "items": text }),
            ToolArgumentType::Json => json!(self.schema),
        };
        if let Some(note) = &self.note {
            schema["description"] = note.clone().into();
        }
        // The schema omits default values that a model can guess: the string `.`, and every value that is not a string.
        if let Some(default) = self.default.as_ref().and_then(Value::as_str).filter(|default| *default != ".") {
            schema["default"] = default.into();
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
