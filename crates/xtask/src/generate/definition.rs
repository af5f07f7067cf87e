//! The schema of `definitions/<dialect>.yaml`. A definition file with unknown keys or inconsistent declarations is
//! rejected.

use std::{collections::BTreeSet, fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error_table::DeclaredErrorRow;

/// The native dialect, whose tools are the operations of the engine.
pub(crate) const NATIVE_DIALECT: &str = "stead";

/// The most characters of the summary of an operation, so that it fits one line of help.
const SUMMARY_CHARS_MAX: usize = 79;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DialectDefinitionYaml {
    pub(crate) dialect: String,
    pub(crate) instructions: String,
    #[serde(default)]
    pub(crate) unknown_arguments: DeclaredUnknownArguments,
    #[serde(default)]
    pub(crate) options: Vec<DeclaredDialectOption>,
    #[serde(default)]
    pub(crate) kinds: Vec<DeclaredDialectError>,
    /// The fields that the result of every operation may have.
    #[serde(default)]
    pub(crate) common_outputs: Vec<DeclaredOutputField>,
    /// The errors that every operation of the dialect may return.
    #[serde(default)]
    pub(crate) errors: Vec<DeclaredError>,
    pub(crate) operations: Vec<DeclaredOperation>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeclaredUnknownArguments {
    #[default]
    Refused,
    Ignored,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredDialectOption {
    pub(crate) name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<String>,
    pub(crate) default: String,
    pub(crate) description: String,
}

/// An error that a dialect publishes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredDialectError {
    pub(crate) kind: String,
    pub(crate) meaning: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredOperation {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) summary: String,
    #[serde(rename = "use")]
    pub(crate) when: String,
    pub(crate) effect: DeclaredEffect,
    #[serde(default)]
    pub(crate) becomes: Option<String>,
    #[serde(default)]
    pub(crate) tier: Option<DeclaredApprovalTier>,
    #[serde(default = "default_listed")]
    pub(crate) listed: bool,
    pub(crate) hints: DeclaredToolHints,
    pub(crate) inputs: Vec<DeclaredInput>,
    pub(crate) outputs: Vec<DeclaredOutputField>,
    #[serde(default)]
    pub(crate) version: Option<String>,
    #[serde(default)]
    pub(crate) side_effects: Vec<DeclaredToolSideEffect>,
    #[serde(default)]
    pub(crate) patterns: Vec<DeclaredToolWorkflow>,
    #[serde(default)]
    pub(crate) tags: Vec<String>,
    pub(crate) errors: Vec<DeclaredError>,
    pub(crate) examples: Vec<DeclaredExample>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeclaredEffect {
    Read,
    Write,
    Destroy,
}

impl DeclaredEffect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            DeclaredEffect::Read => "read",
            DeclaredEffect::Write => "write",
            DeclaredEffect::Destroy => "destroy",
        }
    }
}

/// Whether an operation runs freely, is reported, or needs approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeclaredApprovalTier {
    Autonomous,
    Notify,
    ApprovalRequired,
}

impl DeclaredApprovalTier {
    pub(crate) fn name(self) -> &'static str {
        match self {
            DeclaredApprovalTier::Autonomous => "autonomous",
            DeclaredApprovalTier::Notify => "notify",
            DeclaredApprovalTier::ApprovalRequired => "approval required",
        }
    }
}

/// The four tool annotations of MCP.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredToolHints {
    pub(crate) read_only: bool,
    pub(crate) destructive: bool,
    pub(crate) idempotent: bool,
    pub(crate) open_world: bool,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredInput {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: DeclaredInputType,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DeclaredInputType {
    String,
    Texts,
    Integer,
    Boolean,
    Enum,
    Json,
}

impl DeclaredInputType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            DeclaredInputType::String => "string",
            DeclaredInputType::Texts => "string or array of strings",
            DeclaredInputType::Integer => "integer",
            DeclaredInputType::Boolean => "boolean",
            DeclaredInputType::Enum => "one of",
            DeclaredInputType::Json => "JSON",
        }
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredOutputField {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) nullable: bool,
    pub(crate) description: String,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredError {
    pub(crate) kind: String,
    /// A line of text that says how to recover from the error; not allowed together with `recoveries`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) recovery: String,
    /// Alternative ways to recover from the error, each with the tool call to make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) recoveries: Vec<DeclaredRecovery>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredRecovery {
    pub(crate) action: String,
    pub(crate) description: String,
    /// The tool to call to recover from an error; if absent, the tool that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capability: Option<String>,
    /// The arguments of the recovery call, in which `$path`, `$parent`, `$name`, `$workspace` and `$tool` stand for
    /// values of the failed call.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) inputs: Map<String, Value>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredToolSideEffect {
    pub(crate) description: String,
    pub(crate) reversible: bool,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredToolWorkflow {
    pub(crate) description: String,
    pub(crate) steps: Vec<String>,
}

/// An example call of an operation, with either the expected result fields or the expected error kind.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredExample {
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) tree: Map<String, Value>,
    #[serde(default)]
    pub(crate) before: Vec<DeclaredExampleSetupStep>,
    pub(crate) arguments: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) answer: Option<Map<String, Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
}

/// A call made before the example.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeclaredExampleSetupStep {
    pub(crate) operation: String,
    pub(crate) arguments: Map<String, Value>,
}

fn default_listed() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

impl DialectDefinitionYaml {
    /// Reads and checks one definition. The native dialect has the errors of `error_table`; others declare their own.
    pub(crate) fn load(path: &Path, error_table: &[DeclaredErrorRow]) -> Result<Self, String> {
        let shown = path.display();
        let text = fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
        let definition: Self = serde_yaml_ng::from_str(&text).map_err(|error| format!("{shown}: {error}"))?;
        definition.check(error_table).map_err(|problem| format!("{shown}: {problem}"))?;
        Ok(definition)
    }

    fn check(&self, error_table: &[DeclaredErrorRow]) -> Result<(), String> {
        let mut names = BTreeSet::new();
        let error_kinds: Vec<&str> = match self.dialect.as_str() {
            NATIVE_DIALECT => error_table.iter().map(|row| row.kind.as_str()).collect(),
            _ => self.kinds.iter().map(|row| row.kind.as_str()).collect(),
        };
        for operation in &self.operations {
            if (self.dialect == NATIVE_DIALECT) == operation.becomes.is_some() {
                return Err(format!(
                    "{}: `becomes` is required for dialect tools and not allowed for native operations",
                    operation.name
                ));
            }
            if !names.insert(&operation.name) {
                return Err(format!("{} is declared twice", operation.name));
            }
            let recoveries = operation.errors.iter().chain(&self.errors).flat_map(|error| &error.recoveries);
            let tools = recoveries.filter_map(|recovery| recovery.capability.as_ref());
            if let Some(tool) = tools.into_iter().find(|tool| !self.operations.iter().any(|known| known.name == **tool))
            {
                return Err(format!("{}: unknown recovery capability {tool}", operation.name));
            }
            operation.check(&error_kinds).map_err(|problem| format!("{}: {problem}", operation.name))?;
        }
        Ok(())
    }
}

impl DeclaredOperation {
    fn check(&self, error_kinds: &[&str]) -> Result<(), String> {
        if self.summary.chars().count() > SUMMARY_CHARS_MAX {
            return Err(format!("the summary is longer than {SUMMARY_CHARS_MAX} characters"));
        }
        if self.hints.read_only != (self.effect == DeclaredEffect::Read) {
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
        let kinds_used =
            self.errors.iter().map(|error| &error.kind).chain(self.examples.iter().filter_map(|e| e.error.as_ref()));
        for kind in kinds_used {
            if !error_kinds.contains(&kind.as_str()) {
                return Err(format!("unknown kind {kind}"));
            }
        }
        if let Some(error) = self.errors.iter().find(|error| error.recovery.is_empty() == error.recoveries.is_empty()) {
            return Err(format!("{}: give either `recovery` or `recoveries`", error.kind));
        }
        match self.examples.iter().find(|example| example.answer.is_some() == example.error.is_some()) {
            Some(example) => Err(format!("the example '{}' needs an answer or an error", example.title)),
            None => Ok(()),
        }
    }
}

impl DeclaredInput {
    fn check(&self) -> Result<(), String> {
        if (self.kind == DeclaredInputType::Enum) == self.values.is_empty() {
            return Err("`values` is required for an enum and only allowed there".to_owned());
        }
        if (self.kind == DeclaredInputType::Json) == self.schema.is_none() {
            return Err("`schema` is required for JSON and only allowed there".to_owned());
        }
        if self.required && self.default.is_some() {
            return Err("a required input has no default".to_owned());
        }
        Ok(())
    }
}
