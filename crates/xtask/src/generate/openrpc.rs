//! Renders the OpenRPC document of the JSON-RPC methods. The file `docs/reference/openrpc.json` is the OpenRPC document
//! for the default dialects.

use serde_json::{Map, Value, json};

use super::definition::schema::{
    DialectDefinition, ToolArgumentDefinition, ToolArgumentType, ToolDefinition, ToolResultFieldDefinition,
};

const OPENRPC_VERSION: &str = "1.3.2";
/// The dialects that `stead rpc` serves by default.
const DEFAULT_DIALECTS: &[&str] = &["stead", "krux"];

/// Renders the parts from which a server assembles the OpenRPC document of its dialects.
pub(crate) fn openrpc_parts(definitions: &[DialectDefinition]) -> String {
    let dialects: Map<String, Value> = definitions
        .iter()
        .map(|definition| (definition.dialect.clone(), Value::Array(dialect_methods(definition))))
        .collect();
    format!("{}\n", json!({ "frame": document_frame(), "face": protocol_methods(), "dialects": dialects }))
}

pub(crate) fn openrpc_document(definitions: &[DialectDefinition]) -> String {
    let mut all = protocol_methods();
    for definition in definitions.iter().filter(|definition| DEFAULT_DIALECTS.contains(&definition.dialect.as_str())) {
        all.extend(dialect_methods(definition));
    }
    let mut document = document_frame();
    document["methods"] = all.into();
    format!("{document:#}\n")
}

fn document_frame() -> Value {
    let error = |code: i64, message: &str| json!({ "code": code, "message": message });
    json!({
        "openrpc": OPENRPC_VERSION,
        "info": {
            "title": "stead",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "File server between AI agents and a workspace, over JSON-RPC 2.0. Parameters are passed by name. \
                Every method also accepts `_meta`, an object with `stead/key` (idempotency key), `stead/hold_ms` (how long the call \
                waits for an approval, in milliseconds) and `progressToken` (requests progress notifications).",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "methods": [],
        "components": {
            "errors": {
                "InvalidParams": error(-32602, "Invalid parameters."),
                "InternalError": error(-32603, "System failure."),
                "RateLimited": error(-32000, "Too many calls; retry later."),
                "PolicyDenied": error(-32001, "A rule of the policy blocks the call."),
                "ApprovalPending": error(-32002, "A person must approve the call; repeat the same call after the approval."),
                "AuthenticationFailed": error(-32003, "The transport could not authenticate the caller."),
                "Failed": error(-32004, "The call failed; data has the error."),
            },
        },
    })
}

/// Some JSON-RPC methods, such as `rpc.discover`, belong to no dialect.
fn protocol_methods() -> Vec<Value> {
    let text = json!({ "type": "string" });
    let any = json!({ "type": "object" });
    vec![
        method_object(
            "rpc.discover",
            "Return the OpenRPC document of the served methods.",
            vec![],
            &json!({ "type": "object", "description": "An OpenRPC document." }),
        ),
        method_object(
            "capabilities.list",
            "List every capability with its tier, inputs and outputs.",
            vec![parameter_object(
                "category",
                "Only capabilities whose name begins with this word and a dot.",
                ParameterPresence::Optional,
                &text,
            )],
            &json!({ "type": "object", "properties": { "capabilities": { "type": "array", "items": any } } }),
        ),
        method_object(
            "capabilities.describe",
            "Describe one capability in full.",
            vec![parameter_object("name", "Name of the capability.", ParameterPresence::Required, &text)],
            &any,
        ),
        method_object(
            "capabilities.invoke",
            "Call a capability; the result is wrapped in an envelope.",
            vec![
                parameter_object("capability", "Name of the capability.", ParameterPresence::Required, &text),
                parameter_object("arguments", "Inputs by name.", ParameterPresence::Optional, &any),
            ],
            &json!({ "type": "object", "required": ["success"], "properties": {
                "success": { "type": "boolean" },
                "data": { "type": "object", "description": "Outputs, on success." },
                "error": { "type": "object", "description": "type, message and recovery, on failure." },
            } }),
        ),
        method_object(
            "$/cancelRequest",
            "Cancel a running call, which then returns an error. Sent as a notification.",
            vec![parameter_object(
                "id",
                "Id of the request to cancel.",
                ParameterPresence::Required,
                &json!({ "type": ["string", "integer", "null"] }),
            )],
            &json!({ "type": "null" }),
        ),
    ]
}

fn dialect_methods(definition: &DialectDefinition) -> Vec<Value> {
    let method_of_operation = |operation: &ToolDefinition| {
        let params = operation.inputs.iter().map(|input| {
            parameter_object(
                &input.name,
                &input.description,
                ParameterPresence::of_input(input),
                &Value::Object(input_schema(input)),
            )
        });
        let properties: Map<String, Value> =
            operation.outputs.iter().map(|output| (output.name.clone(), output_schema(output))).collect();
        let answer = json!({ "type": "object", "properties": properties });
        let mut method = method_object(&operation.name, &operation.summary, params.collect(), &answer);
        method["description"] = operation.when_to_use.clone().into();
        if let Some(tier) = operation.tier {
            method["x-permission-tier"] = json!(tier);
        }
        method["tags"] = json!([{ "name": definition.dialect }, { "name": operation.effect.name() }]);
        method
    };
    definition.operations.iter().map(method_of_operation).collect()
}

pub(super) fn output_schema(output: &ToolResultFieldDefinition) -> Value {
    if output.nullable {
        return json!({ "type": [output.kind, "null"], "description": output.description });
    }
    json!({ "type": output.kind, "description": output.description })
}

fn method_object(name: &str, summary: &str, params: Vec<Value>, answer: &Value) -> Value {
    let errors = ["InvalidParams", "InternalError", "RateLimited", "PolicyDenied", "ApprovalPending", "Failed"]
        .map(|error| json!({ "$ref": format!("#/components/errors/{error}") }));
    // OpenRPC requires mandatory parameters first.
    let (mut first, rest): (Vec<Value>, Vec<Value>) = params.into_iter().partition(|param| param["required"] == true);
    first.extend(rest);
    json!({
        "name": name,
        "summary": summary,
        "paramStructure": "by-name",
        "params": first,
        "result": { "name": "answer", "schema": answer },
        "errors": errors,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParameterPresence {
    Required,
    Optional,
}

impl ParameterPresence {
    fn of_input(input: &ToolArgumentDefinition) -> Self {
        if input.required { ParameterPresence::Required } else { ParameterPresence::Optional }
    }
}

fn parameter_object(name: &str, description: &str, presence: ParameterPresence, schema: &Value) -> Value {
    json!({ "name": name, "description": description, "required": presence == ParameterPresence::Required, "schema": schema })
}

pub(super) fn input_schema(input: &ToolArgumentDefinition) -> Map<String, Value> {
    let mut schema = input.schema.clone().unwrap_or_default();
    let kind = match input.kind {
        ToolArgumentType::String | ToolArgumentType::Enum => Some(json!("string")),
        ToolArgumentType::Integer => Some(json!("integer")),
        ToolArgumentType::Boolean => Some(json!("boolean")),
        ToolArgumentType::StringList => Some(json!("array")),
        ToolArgumentType::StringOrList | ToolArgumentType::Json => None,
    };
    if let Some(kind) = kind {
        schema.insert("type".to_owned(), kind);
    }
    if input.kind == ToolArgumentType::StringOrList {
        let text = json!({ "type": "string" });
        schema.insert("anyOf".to_owned(), json!([text, { "type": "array", "items": text }]));
    }
    if input.kind == ToolArgumentType::StringList {
        schema.insert("items".to_owned(), json!({ "type": "string" }));
    }
    if input.kind == ToolArgumentType::Integer {
        schema.insert("minimum".to_owned(), 0.into());
    }
    if !input.values.is_empty() {
        schema.insert("enum".to_owned(), input.values.clone().into());
    }
    if let Some(default) = &input.default {
        schema.insert("default".to_owned(), default.clone());
    }
    schema
}
