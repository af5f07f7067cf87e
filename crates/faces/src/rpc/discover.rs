//! `rpc.discover`: the OpenRPC document of what is served, put together from what was generated for every dialect.

use serde_json::Value;

use super::Broken;
use crate::definition::Definition;

/// What was generated: the frame of the document, the methods of this face, and those of every dialect.
const GENERATED: &str = include_str!("../generated/openrpc.json");

/// The document for these dialects.
pub fn document<'a>(served: impl Iterator<Item = &'a Definition>) -> Result<Value, Broken> {
    let mut generated: Value = serde_json::from_str(GENERATED)?;
    let mut methods = taken(generated["face"].take());
    for definition in served {
        methods.extend(taken(generated["dialects"][definition.dialect.as_str()].take()));
    }
    let mut document = generated["frame"].take();
    document["methods"] = methods.into();
    Ok(document)
}

fn taken(methods: Value) -> Vec<Value> {
    match methods {
        Value::Array(methods) => methods,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => Vec::new(),
    }
}
