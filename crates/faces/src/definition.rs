//! What a dialect declares, as the faces carry it: generated from `definitions/` and read once. Pure values.

use engine::{Effect, Tier};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The native dialect, compact.
const STEAD: &str = include_str!("generated/stead.json");

/// How a dot is spelled where names take none.
const DOT_SPELLED: &str = "__";

/// The embedded definitions cannot be read: the build is broken.
#[derive(Debug, thiserror::Error)]
#[error("the embedded definitions are broken: {0}")]
pub struct Broken(#[from] serde_json::Error);

/// One dialect.
#[derive(Debug, Deserialize)]
pub struct Definition {
    /// Its name.
    pub dialect: String,
    /// What a client's model is told about the server.
    pub instructions: String,
    /// What can be set with `--dialect-option`.
    #[serde(default)]
    pub options: Vec<DialectOption>,
    /// Fields that any answer may have.
    #[serde(default)]
    pub common_outputs: Vec<Output>,
    /// Failures that any of the operations may have.
    #[serde(default)]
    pub errors: Vec<Recovery>,
    /// What can be asked, in documentation order.
    pub operations: Vec<Operation>,
}

/// One documented setting of a dialect.
#[derive(Debug, Deserialize)]
pub struct DialectOption {
    /// Its name.
    pub name: String,
    /// The words it may be; anything when there are none.
    #[serde(default)]
    pub values: Vec<String>,
    /// What is meant when it is absent.
    pub default: String,
    /// What it does.
    pub description: String,
}

/// One operation.
#[derive(Debug, Deserialize)]
pub struct Operation {
    /// Its name on every face.
    pub name: String,
    /// A short name for people.
    pub title: String,
    /// What it does, in one line.
    pub summary: String,
    /// When to choose it.
    #[serde(rename = "use")]
    pub when: String,
    /// What it does to the world.
    pub effect: DeclaredEffect,
    /// The engine's operation that a dialect's tool becomes; nothing where it is the operation itself.
    #[serde(default)]
    pub becomes: Option<String>,
    /// How far a caller may go alone with it; nothing is autonomous.
    #[serde(default)]
    pub tier: Option<Tier>,
    /// Whether models are shown it.
    #[serde(default)]
    pub listed: Listed,
    /// What clients are told about its danger.
    pub hints: Hints,
    /// Its arguments.
    pub inputs: Vec<Input>,
    /// The fields of its answer.
    pub outputs: Vec<Output>,
    /// The failures worth planning for.
    pub errors: Vec<Recovery>,
    /// The version of what it promises.
    #[serde(default)]
    pub version: Option<String>,
    /// What it does besides answering.
    #[serde(default)]
    pub side_effects: Vec<SideEffect>,
    /// How it is used together with others.
    #[serde(default)]
    pub patterns: Vec<Pattern>,
    /// Words to find it by.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// What an operation does besides answering.
#[derive(Debug, Deserialize, Serialize)]
pub struct SideEffect {
    /// What.
    pub description: String,
    /// Whether it can be taken back.
    pub reversible: bool,
}

/// A way operations are used together.
#[derive(Debug, Deserialize, Serialize)]
pub struct Pattern {
    /// What for.
    pub description: String,
    /// How, one after the other.
    pub steps: Vec<String>,
}

/// Whether models are shown an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(from = "bool")]
pub enum Listed {
    /// It is in every list of tools.
    #[default]
    Yes,
    /// It is for people and programs: the command line and JSON-RPC have it.
    No,
}

impl From<bool> for Listed {
    fn from(listed: bool) -> Self {
        if listed { Listed::Yes } else { Listed::No }
    }
}

/// What an operation does to the world, as declared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclaredEffect {
    /// Changes nothing.
    Read,
    /// Adds or changes.
    Write,
    /// Takes away.
    Destroy,
}

impl From<DeclaredEffect> for Effect {
    fn from(declared: DeclaredEffect) -> Self {
        match declared {
            DeclaredEffect::Read => Effect::Read,
            DeclaredEffect::Write => Effect::Write,
            DeclaredEffect::Destroy => Effect::Destroy,
        }
    }
}

/// The four hints of MCP.
#[derive(Debug, Clone, Copy, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol has these four")]
pub struct Hints {
    /// Changes nothing.
    pub read_only: bool,
    /// May replace or take away.
    pub destructive: bool,
    /// A second call changes nothing more.
    pub idempotent: bool,
    /// Reaches beyond the workspace.
    pub open_world: bool,
}

/// One argument.
#[derive(Debug, Deserialize)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// What it may be.
    #[serde(rename = "type")]
    pub kind: InputType,
    /// The words an enum may be.
    #[serde(default)]
    pub values: Vec<String>,
    /// The JSON Schema of an argument that is no plain value.
    #[serde(default)]
    pub schema: Option<Map<String, Value>>,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
    /// What is meant when it is absent.
    pub default: Option<Value>,
    /// Its place on the command line, counted from 1; without it, it is a flag.
    pub positional: Option<usize>,
    /// Whether the command line reads it from standard input.
    #[serde(default)]
    pub stdin: bool,
    /// The few words a model reads.
    pub note: Option<String>,
    /// Whether lists of tools leave it out: it is not for models.
    #[serde(default)]
    pub unlisted: bool,
    /// The sentence people read.
    pub description: String,
}

/// What an argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputType {
    /// Text.
    String,
    /// A text, or a list of texts.
    Texts,
    /// A whole number that is not negative.
    Integer,
    /// Yes or no.
    Boolean,
    /// One of the words in `values`.
    Enum,
    /// Whatever `schema` says.
    Json,
}

/// One field of an answer.
#[derive(Debug, Deserialize)]
pub struct Output {
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it may be null.
    #[serde(default)]
    pub nullable: bool,
    /// What it means.
    pub description: String,
}

/// One failure worth planning for.
#[derive(Debug, Deserialize, Serialize)]
pub struct Recovery {
    /// Its kind.
    pub kind: String,
    /// What to do, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub recovery: String,
    /// What can be done, each way with the call that does it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<Way>,
}

/// One way out of a failure.
#[derive(Debug, Deserialize, Serialize)]
pub struct Way {
    /// Its name.
    pub action: String,
    /// What it does.
    pub description: String,
    /// The tool to call; without it, the one that failed is called again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// Its arguments, with places to be filled in.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inputs: Map<String, Value>,
}

impl Definition {
    /// The native dialect.
    pub fn stead() -> Result<Self, Broken> {
        Self::read(STEAD)
    }

    /// A dialect from what was generated for it.
    pub(crate) fn read(generated: &str) -> Result<Self, Broken> {
        Ok(serde_json::from_str(generated)?)
    }

    /// The operation of this name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }
}

impl Operation {
    /// The engine's operation behind it.
    pub fn operation(&self) -> &str {
        self.becomes.as_deref().unwrap_or(&self.name)
    }

    /// Its name for clients that take no dots.
    pub fn plain_name(&self) -> String {
        self.name.replace('.', DOT_SPELLED)
    }

    /// Whether a client means it by this name, with or without dots.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || (name.contains(DOT_SPELLED) && self.plain_name() == name)
    }

    /// The JSON Schema of the arguments: no null unions. It does not say that others are refused: whoever tries one is
    /// told the right name, and every list of tools is shorter.
    pub fn input_schema(&self) -> Map<String, Value> {
        let properties: Map<String, Value> = self
            .inputs
            .iter()
            .filter(|input| !input.unlisted)
            .map(|input| (input.name.clone(), Value::Object(input.schema())))
            .collect();
        let required: Vec<Value> = self
            .inputs
            .iter()
            .filter(|input| input.required)
            .map(|input| input.name.clone().into())
            .collect();
        let mut schema = Map::new();
        schema.insert("type".into(), "object".into());
        schema.insert("properties".into(), properties.into());
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema
    }

    /// The JSON Schema of the answer: every field that may be there, with its type. `common` are those of any answer.
    pub fn output_schema(&self, common: &[Output]) -> Map<String, Value> {
        let property = |output: &Output| {
            let kind = json!({ "type": output.kind });
            // A list of types says the same, and some clients cannot read it.
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

impl Input {
    fn schema(&self) -> Map<String, Value> {
        let mut schema = self.schema.clone().unwrap_or_default();
        let kind = match self.kind {
            InputType::String | InputType::Enum => Some(json!("string")),
            InputType::Integer => Some(json!("integer")),
            InputType::Boolean => Some(json!("boolean")),
            InputType::Texts | InputType::Json => None,
        };
        if let Some(kind) = kind {
            schema.insert("type".into(), kind);
        }
        if self.kind == InputType::Texts {
            let text = json!({ "type": "string" });
            schema.insert("anyOf".into(), json!([text, { "type": "array", "items": text }]));
        }
        if !self.values.is_empty() {
            schema.insert("enum".into(), self.values.clone().into());
        }
        if let Some(note) = &self.note {
            schema.insert("description".into(), note.clone().into());
        }
        // What nobody would guess; the usual nothing is not worth a word.
        if let Some(default) =
            self.default.as_ref().filter(|default| default.as_str().is_some_and(|text| text != "."))
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
    fn the_embedded_definitions_can_be_read() {
        let definition = Definition::stead().unwrap();
        assert_eq!(definition.dialect, "stead");
        assert!(definition.operation("read").is_some());
        assert!(definition.operation("ls").is_none());
    }

    #[test]
    fn schemas_have_no_null() {
        for operation in &Definition::stead().unwrap().operations {
            let schema = Value::Object(operation.input_schema());
            assert!(!schema.to_string().contains("null"), "{}", operation.name);
        }
    }
}
