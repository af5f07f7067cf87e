//! Renders the compact JSON that `stead-protocols` embeds, and the examples that its tests run.

use serde::Serialize;
use serde_json::{Value, json};

use super::definition::{DeclaredExample, DeclaredOperation, DialectDefinitionYaml};

pub(crate) fn runtime_definition(definition: &DialectDefinitionYaml) -> Result<String, String> {
    let operations: Vec<Value> = definition.operations.iter().map(operation_json).collect();
    let mut whole = json!({
        "dialect": definition.dialect,
        "instructions": definition.instructions,
        "options": definition.options,
        "operations": operations,
    });
    if !definition.errors.is_empty() {
        whole["errors"] = json!(definition.errors);
    }
    if !definition.common_outputs.is_empty() {
        whole["common_outputs"] = json!(definition.common_outputs);
    }
    json_line(&whole)
}

fn operation_json(operation: &DeclaredOperation) -> Value {
    let mut fields = json!({
        "name": operation.name,
        "title": operation.title,
        "summary": operation.summary,
        "use": operation.when,
        "effect": operation.effect,
        "becomes": operation.becomes,
        "hints": operation.hints,
        "inputs": operation.inputs,
        "outputs": operation.outputs,
        "errors": operation.errors,
    });
    if let Some(tier) = operation.tier {
        fields["tier"] = json!(tier);
    }
    if let Some(version) = &operation.version {
        fields["version"] = version.clone().into();
    }
    if !operation.side_effects.is_empty() {
        fields["side_effects"] = json!(operation.side_effects);
    }
    if !operation.patterns.is_empty() {
        fields["patterns"] = json!(operation.patterns);
    }
    if !operation.tags.is_empty() {
        fields["tags"] = json!(operation.tags);
    }
    if !operation.listed {
        fields["listed"] = false.into();
    }
    fields
}

pub(crate) fn runtime_examples(definition: &DialectDefinitionYaml) -> Result<String, String> {
    #[derive(Serialize)]
    struct DialectExampleJsonRow<'a> {
        operation: &'a str,
        #[serde(flatten)]
        example: &'a DeclaredExample,
    }
    let rows: Vec<DialectExampleJsonRow<'_>> = definition
        .operations
        .iter()
        .flat_map(|operation| {
            operation.examples.iter().map(|example| DialectExampleJsonRow { operation: &operation.name, example })
        })
        .collect();
    json_line(&json!({ "examples": rows }))
}

fn json_line(value: &Value) -> Result<String, String> {
    serde_json::to_string(value).map(|text| text + "\n").map_err(|error| error.to_string())
}
