//! Every operation that takes a path, with every way out of the workspace, at every kind of thing that may be there:
//! one verdict for each way, whatever the operation and whatever is outside.

use std::io;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::case::{Case, Group};

/// The name of the generated group.
pub const MATRIX: &str = "matrix";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    about: String,
    setup: Vec<Value>,
    forms: Vec<Form>,
    things: Vec<String>,
    operations: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    name: String,
    spelling: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    operation: String,
    arguments: Map<String, Value>,
}

/// The matrix as one group; all of its cases share one setup and change nothing.
pub fn matrix() -> io::Result<Group> {
    let table: Table = serde_json::from_str(include_str!("../../cases/attacks/matrix.json"))?;
    let mut cases = Vec::new();
    for row in &table.operations {
        for form in &table.forms {
            for thing in &table.things {
                cases.push(cell(&table, row, form, thing)?);
            }
        }
    }
    Ok(Group {
        group: MATRIX.to_owned(),
        about: table.about,
        trees: std::iter::once(("all".to_owned(), table.setup)).collect(),
        cases,
        waiting: Vec::new(),
    })
}

fn cell(table: &Table, row: &Row, form: &Form, thing: &str) -> io::Result<Case> {
    let spelling = form.spelling.replace("{thing}", thing);
    let arguments = row.arguments.iter().map(|(name, value)| {
        let value = match value {
            Value::String(text) => Value::String(text.replace("{place}", &spelling)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                value.clone()
            }
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
