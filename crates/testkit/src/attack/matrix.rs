//! Generates an attack case for each combination of an operation, a way to leave the workspace and a kind of target.

use std::io;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::case::{AttackCase, AttackTestCaseGroup};

/// The name of the generated group of attack cases.
pub const MATRIX_GROUP: &str = "matrix";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttackMatrixDefinition {
    about: String,
    setup: Vec<Value>,
    forms: Vec<AttackMatrixPathSpelling>,
    things: Vec<String>,
    operations: Vec<AttackMatrixOperation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttackMatrixPathSpelling {
    name: String,
    spelling: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AttackMatrixOperation {
    name: String,
    operation: String,
    arguments: Map<String, Value>,
}

/// Generates an attack case for every combination in `matrix.json`, as one group with a common setup.
pub fn load_matrix() -> io::Result<AttackTestCaseGroup> {
    let table: AttackMatrixDefinition = serde_json::from_str(include_str!("../../cases/attacks/matrix.json"))?;
    let mut cases = Vec::new();
    for row in &table.operations {
        for form in &table.forms {
            for thing in &table.things {
                cases.push(matrix_case(&table, row, form, thing)?);
            }
        }
    }
    Ok(AttackTestCaseGroup {
        group: MATRIX_GROUP.to_owned(),
        about: table.about,
        trees: std::iter::once(("all".to_owned(), table.setup)).collect(),
        cases,
        waiting: Vec::new(),
    })
}

fn matrix_case(
    table: &AttackMatrixDefinition,
    row: &AttackMatrixOperation,
    form: &AttackMatrixPathSpelling,
    thing: &str,
) -> io::Result<AttackCase> {
    let spelling = form.spelling.replace("{thing}", thing);
    let arguments = row.arguments.iter().map(|(name, value)| {
        let value = match value {
            Value::String(text) => Value::String(text.replace("{place}", &spelling)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.clone(),
        };
        (name.clone(), value)
    });
    debug_assert!(!table.setup.is_empty());
    Ok(serde_json::from_value(serde_json::json!({
        "id": format!("MTX-{}-{}-{thing}", row.name, form.name),
        "setup": ["tree all"],
        "operation": row.operation,
        "arguments": arguments.collect::<Map<String, Value>>(),
        "expect": { "result": "deny", "kind": form.kind },
    }))?)
}
