//! `rpc.discover`: the OpenRPC document of the served methods, assembled from generated parts.

use serde_json::Value;

use super::OpenRpcError;
use crate::definition::DialectDefinition;

/// Frame of the document, JSON-RPC's own methods, and the methods of every dialect.
const OPENRPC_JSON: &str = include_str!("../generated/openrpc.json");

/// Builds the OpenRPC document of these dialects.
pub fn openrpc_document<'a>(definitions: impl Iterator<Item = &'a DialectDefinition>) -> Result<Value, OpenRpcError> {
    let mut generated: Value = serde_json::from_str(OPENRPC_JSON)?;
    let mut methods = into_array(generated["face"].take());
    for definition in definitions {
        methods.extend(into_array(generated["dialects"][definition.dialect.as_str()].take()));
    }
    let mut document = generated["frame"].take();
    document["methods"] = methods.into();
    Ok(document)
}

fn into_array(methods: Value) -> Vec<Value> {
    match methods {
        Value::Array(methods) => methods,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => Vec::new(),
    }
}
