//! Renders the compact JSON that `stead-protocols` embeds, and the examples that its tests run.

use serde::Serialize;
use serde_json::json;

use super::definition::schema::{DialectDefinition, ToolExample};

pub(crate) fn runtime_definition(definition: &DialectDefinition) -> Result<String, String> {
    json_line(definition)
}

pub(crate) fn runtime_examples(definition: &DialectDefinition) -> Result<String, String> {
    #[derive(Serialize)]
    struct DialectExampleJsonRow<'a> {
        operation: &'a str,
        #[serde(flatten)]
        example: &'a ToolExample,
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

fn json_line(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map(|text| text + "\n").map_err(|error| error.to_string())
}
