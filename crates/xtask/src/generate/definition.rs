//! Reads and checks `definitions/<dialect>.yaml`. A dialect definition is rejected if its declarations contradict each
//! other.

use std::{collections::BTreeSet, fs, path::Path};

use serde::{Deserialize, Serialize};

#[path = "../../../protocols/src/definition/schema.rs"]
#[expect(unreachable_pub, reason = "the file belongs to stead-protocols, where the types are public")]
pub(super) mod schema;

use schema::{
    CommandHelpDefinition, DialectDefinition, ToolArgumentDefinition, ToolArgumentType, ToolDefinition, ToolFileEffect,
};

use super::{error_table::DeclaredErrorRow, operation_types};
// The schema uses the tier of the engine. A definition may declare only the tiers that do not block a tool.
use DeclaredApprovalTier as SupervisionTier;

pub(crate) const NATIVE_DIALECT: &str = "stead";

/// The summary of an operation must fit one line of help.
const SUMMARY_CHARS_MAX: usize = 79;

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

impl ToolFileEffect {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ToolFileEffect::Read => "read",
            ToolFileEffect::Write => "write",
            ToolFileEffect::Destroy => "destroy",
        }
    }
}

impl ToolArgumentType {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ToolArgumentType::String => "string",
            ToolArgumentType::StringOrList => "string or array of strings",
            ToolArgumentType::StringList => "array of strings",
            ToolArgumentType::Integer => "integer",
            ToolArgumentType::Boolean => "boolean",
            ToolArgumentType::Enum => "one of",
            ToolArgumentType::Json => "JSON",
        }
    }
}

impl DialectDefinition {
    /// The native dialect uses the errors in `error_table`, and every other dialect declares its own errors.
    pub(crate) fn load(root: &Path, file: &str, error_table: &[DeclaredErrorRow]) -> Result<Self, String> {
        let shown = format!("definitions/{file}.yaml");
        let text = fs::read_to_string(root.join(&shown)).map_err(|error| format!("{shown}: {error}"))?;
        let read = || -> Result<Self, String> {
            let definition: Self = if file == NATIVE_DIALECT {
                let mut described = serde_yaml_ng::from_str(&text).map_err(|error| error.to_string())?;
                operation_types::add_types(root, &mut described)?;
                serde_json::from_value(described).map_err(|error| error.to_string())?
            } else {
                serde_yaml_ng::from_str(&text).map_err(|error| error.to_string())?
            };
            definition.check(error_table)?;
            Ok(definition)
        };
        read().map_err(|problem| format!("{shown}: {problem}"))
    }

    fn check(&self, error_table: &[DeclaredErrorRow]) -> Result<(), String> {
        let mut names = BTreeSet::new();
        let error_kinds: Vec<&str> = match self.dialect.as_str() {
            NATIVE_DIALECT => error_table.iter().map(|row| row.kind.as_str()).collect(),
            _ => self.kinds.iter().map(|row| row.kind.as_str()).collect(),
        };
        for operation in &self.operations {
            if (self.dialect == NATIVE_DIALECT) == operation.operation.is_some() {
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

impl ToolDefinition {
    fn check(&self, error_kinds: &[&str]) -> Result<(), String> {
        if self.summary.chars().count() > SUMMARY_CHARS_MAX {
            return Err(format!("the summary is longer than {SUMMARY_CHARS_MAX} characters"));
        }
        if self.hints.read_only != (self.effect == ToolFileEffect::Read) {
            return Err("the read_only hint contradicts the effect".to_owned());
        }
        let mut positions: Vec<usize> = self.inputs.iter().filter_map(|input| input.positional).collect();
        positions.sort_unstable();
        if positions.iter().copied().ne(1..=positions.len()) {
            return Err("positions must be 1, 2, …".to_owned());
        }
        if let Some(command) = &self.command {
            command.check(&self.inputs).map_err(|problem| format!("command: {problem}"))?;
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
        if self.examples.is_empty() {
            return Err("give at least one example".to_owned());
        }
        match self.examples.iter().find(|example| example.answer.is_some() == example.error.is_some()) {
            Some(example) => Err(format!("the example '{}' needs an answer or an error", example.title)),
            None => Ok(()),
        }
    }
}

impl CommandHelpDefinition {
    /// Checks that each argument has help, and that each help text is one line without a full stop.
    fn check(&self, inputs: &[ToolArgumentDefinition]) -> Result<(), String> {
        let helped: BTreeSet<&str> = self.arguments.keys().map(String::as_str).collect();
        if !helped.is_empty() && helped != inputs.iter().map(|input| input.name.as_str()).collect() {
            return Err("give help for exactly the arguments of the operation".to_owned());
        }
        let is_bad = |text: &&String| text.is_empty() || text.contains('\n') || text.ends_with('.');
        match self.arguments.values().chain([&self.about, &self.example]).find(is_bad) {
            Some(text) => Err(format!("not one line without a full stop: {text:?}")),
            None => Ok(()),
        }
    }
}

impl ToolArgumentDefinition {
    fn check(&self) -> Result<(), String> {
        if (self.kind == ToolArgumentType::Enum) == self.values.is_empty() {
            return Err("`values` is required for an enum and only allowed there".to_owned());
        }
        if (self.kind == ToolArgumentType::Json) == self.schema.is_none() {
            return Err("`schema` is required for JSON and only allowed there".to_owned());
        }
        if self.required && self.default.is_some() {
            return Err("a required input has no default".to_owned());
        }
        Ok(())
    }
}
