//! The shape of `definitions/<dialect>.yaml`. Unknown keys and broken promises are refused here, so that everything
//! behind it can trust what it reads.

use std::{collections::BTreeSet, fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The dialect whose tools are the operations themselves.
pub(crate) const NATIVE: &str = "stead";

/// Longest summary: it must fit one line of help.
const SUMMARY_CHARS_MAX: usize = 79;

/// One dialect.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    pub(crate) dialect: String,
    pub(crate) instructions: String,
    #[serde(default)]
    pub(crate) unknown_arguments: UnknownArguments,
    #[serde(default)]
    pub(crate) options: Vec<DialectOption>,
    #[serde(default)]
    pub(crate) kinds: Vec<Kind>,
    /// Fields that any answer may have.
    #[serde(default)]
    pub(crate) common_outputs: Vec<Output>,
    /// Failures that any of the operations may have.
    #[serde(default)]
    pub(crate) errors: Vec<Recovery>,
    pub(crate) operations: Vec<Operation>,
}

/// What becomes of arguments that are not declared.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UnknownArguments {
    #[default]
    Refused,
    Ignored,
}

/// One documented setting of a dialect.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DialectOption {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<String>,
    pub(crate) default: String,
    pub(crate) description: String,
}

/// One kind of failure.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kind {
    pub(crate) kind: String,
    pub(crate) fault: Fault,
    pub(crate) meaning: String,
}

/// Whose doing a failure is.
#[derive(Debug, Clone, Copy, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Fault {
    Refusal,
    World,
    Machine,
}

/// One operation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Operation {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) summary: String,
    #[serde(rename = "use")]
    pub(crate) when: String,
    pub(crate) effect: Effect,
    #[serde(default)]
    pub(crate) becomes: Option<String>,
    #[serde(default)]
    pub(crate) tier: Option<Tier>,
    #[serde(default = "shown")]
    pub(crate) listed: bool,
    pub(crate) hints: Hints,
    pub(crate) inputs: Vec<Input>,
    pub(crate) outputs: Vec<Output>,
    #[serde(default)]
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) side_effects: Vec<SideEffect>,
    #[serde(default)]
    pub(crate) patterns: Vec<Pattern>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) errors: Vec<Recovery>,
    pub(crate) examples: Vec<Example>,
}

/// What an operation does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Effect {
    Read,
    Write,
    Destroy,
}

impl Effect {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Effect::Read => "read",
            Effect::Write => "write",
            Effect::Destroy => "destroy",
        }
    }
}

/// How far a caller may go alone. What is blocked is not declared at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tier {
    Autonomous,
    Notify,
    ApprovalRequired,
}

impl Tier {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Tier::Autonomous => "autonomous",
            Tier::Notify => "notify",
            Tier::ApprovalRequired => "approval required",
        }
    }
}

/// The four hints of MCP, all of them stated.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hints {
    pub(crate) read_only: bool,
    pub(crate) destructive: bool,
    pub(crate) idempotent: bool,
    pub(crate) open_world: bool,
}

/// One argument.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Input {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: InputType,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schema: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) required: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) positional: Option<usize>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) stdin: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) unlisted: bool,
    pub(crate) description: String,
}

/// What an argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputType {
    String,
    Texts,
    Integer,
    Boolean,
    Enum,
    Json,
}

impl InputType {
    pub(crate) fn word(self) -> &'static str {
        match self {
            InputType::String => "string",
            InputType::Texts => "string or array of strings",
            InputType::Integer => "integer",
            InputType::Boolean => "boolean",
            InputType::Enum => "one of",
            InputType::Json => "JSON",
        }
    }
}

/// One field of the answer.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Output {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Whether it may be null.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) nullable: bool,
    pub(crate) description: String,
}

/// One failure worth planning for.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recovery {
    pub(crate) kind: String,
    /// What to do, in one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) recovery: String,
    /// What can be done, each way with the call that does it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) recoveries: Vec<Way>,
}

/// One way out of a failure.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Way {
    pub(crate) action: String,
    pub(crate) description: String,
    /// The tool to call; without it, the one that failed is called again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capability: Option<String>,
    /// Its arguments. `$path`, `$parent`, `$name`, `$workspace` and `$tool` stand for what the failed call was about.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) inputs: Map<String, Value>,
}

/// What an operation does besides answering.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SideEffect {
    pub(crate) description: String,
    pub(crate) reversible: bool,
}

/// A way operations are used together.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pattern {
    pub(crate) description: String,
    pub(crate) steps: Vec<String>,
}

/// One worked example: either the fields of an answer, or a kind of failure.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Example {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) tree: Map<String, Value>,
    #[serde(default)]
    pub(crate) before: Vec<Step>,
    pub(crate) arguments: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// One call made before an example.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) operation: String,
    pub(crate) arguments: Map<String, Value>,
}

fn shown() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl Definition {
    /// Reads one definition and holds it to its promises.
    pub(crate) fn load(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let definition: Self = serde_yaml_ng::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
        definition.check().map_err(|problem| format!("{shown}: {problem}"))?;
        Ok(definition)
    }

    fn check(&self) -> Result<(), String> {
        let mut names = BTreeSet::new();
        for operation in &self.operations {
            if (self.dialect == NATIVE) == operation.becomes.is_some() {
                return Err(format!("{}: a dialect's tool says what it becomes", operation.name));
            }
            if !names.insert(&operation.name) {
                return Err(format!("{} is declared twice", operation.name));
            }
            let ways = operation.errors.iter().chain(&self.errors).flat_map(|error| &error.recoveries);
            let tools = ways.filter_map(|way| way.capability.as_ref());
            if let Some(tool) =
                tools.into_iter().find(|tool| !self.operations.iter().any(|known| known.name == **tool))
            {
                return Err(format!("{}: there is no {tool} to recover with", operation.name));
            }
            operation.check(&self.kinds).map_err(|problem| format!("{}: {problem}", operation.name))?;
        }
        Ok(())
    }
}

impl Operation {
    fn check(&self, kinds: &[Kind]) -> Result<(), String> {
        if self.summary.chars().count() > SUMMARY_CHARS_MAX {
            return Err(format!("the summary is longer than {SUMMARY_CHARS_MAX} characters"));
        }
        if self.hints.read_only != (self.effect == Effect::Read) {
            return Err("the read_only hint contradicts the effect".to_owned());
        }
        let mut positions: Vec<usize> = self.inputs.iter().filter_map(|input| input.positional).collect();
        positions.sort_unstable();
        if positions.iter().copied().ne(1..=positions.len()) {
            return Err("positions must be 1, 2, …".to_owned());
        }
        for input in &self.inputs {
            input.check().map_err(|problem| format!("{}: {problem}", input.name))?;
        }
        let named = self
            .errors
            .iter()
            .map(|error| &error.kind)
            .chain(self.examples.iter().filter_map(|e| e.error.as_ref()));
        for kind in named {
            if !kinds.iter().any(|known| known.kind == *kind) {
                return Err(format!("there is no kind {kind}"));
            }
        }
        if let Some(error) =
            self.errors.iter().find(|error| error.recovery.is_empty() == error.recoveries.is_empty())
        {
            return Err(format!("{} says in one of two ways what to do", error.kind));
        }
        match self.examples.iter().find(|example| example.answer.is_some() == example.error.is_some()) {
            Some(example) => Err(format!("the example '{}' needs an answer or an error", example.title)),
            None => Ok(()),
        }
    }
}

impl Input {
    fn check(&self) -> Result<(), String> {
        if (self.kind == InputType::Enum) == self.values.is_empty() {
            return Err("values belong to an enum, and only there".to_owned());
        }
        if (self.kind == InputType::Json) == self.schema.is_none() {
            return Err("a schema belongs to JSON, and only there".to_owned());
        }
        if self.required && self.default.is_some() {
            return Err("what is required has no default".to_owned());
        }
        Ok(())
    }
}
