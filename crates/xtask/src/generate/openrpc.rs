//! The OpenRPC document: what can be asked over JSON-RPC, in a form that other programs read. The faces put it together
//! for the dialects they serve; the reference has the one that is served when nothing is said.

use serde_json::{Map, Value, json};

use super::definition::{Definition, Input, InputType, Operation, Output};

/// The version of OpenRPC that the document is written in.
const OPENRPC: &str = "1.3.2";
/// The dialects that `stead rpc` serves when nothing is said.
const USUAL: &[&str] = &["stead", "krux"];

/// Everything the faces need: the frame, the methods of the face itself, and those of every dialect.
pub(crate) fn parts(definitions: &[Definition]) -> String {
    let dialects: Map<String, Value> = definitions
        .iter()
        .map(|definition| (definition.dialect.clone(), Value::Array(methods(definition))))
        .collect();
    format!("{}\n", json!({ "frame": frame(), "face": face(), "dialects": dialects }))
}

/// `docs/reference/openrpc.json`.
pub(crate) fn document(definitions: &[Definition]) -> String {
    let mut all = face();
    for definition in definitions.iter().filter(|definition| USUAL.contains(&definition.dialect.as_str())) {
        all.extend(methods(definition));
    }
    let mut document = frame();
    document["methods"] = all.into();
    format!("{document:#}\n")
}

fn frame() -> Value {
    let error = |code: i64, message: &str| json!({ "code": code, "message": message });
    json!({
        "openrpc": OPENRPC,
        "info": {
            "title": "stead",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The file server between AI agents and a workspace, over JSON-RPC 2.0. Parameters are given by \
                name. Any method also takes `_meta`, an object whose `stead/key` is an idempotency key and whose `stead/hold_ms` says how long the call waits \
                for a person, when one has to approve it; with a `progressToken` a long call tells how far it has come.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "methods": [],
        "components": {
            "errors": {
                "InvalidParams": error(-32602, "The parameters do not fit the method."),
                "InternalError": error(-32603, "The machine could not do it."),
                "RateLimited": error(-32000, "The caller asks too often."),
                "PolicyDenied": error(-32001, "A rule of the policy forbids it."),
                "ApprovalPending": error(-32002, "A person has to approve it first; the same call runs afterwards."),
                "AuthenticationFailed": error(-32003, "The transport does not know who asks."),
                "Failed": error(-32004, "The call failed; data says how."),
            },
        },
    })
}

/// The methods that belong to the face and to no dialect.
fn face() -> Vec<Value> {
    let text = json!({ "type": "string" });
    let any = json!({ "type": "object" });
    vec![
        method(
            "rpc.discover",
            "Describe every method that is served.",
            vec![],
            &json!({ "type": "object", "description": "An OpenRPC document." }),
        ),
        method(
            "capabilities.list",
            "List every capability with its tier, inputs and outputs.",
            vec![parameter(
                "category",
                "Only those whose name begins with this word and a dot.",
                Presence::Optional,
                &text,
            )],
            &json!({ "type": "object", "properties": { "capabilities": { "type": "array", "items": any } } }),
        ),
        method(
            "capabilities.describe",
            "Tell everything that is declared of one capability.",
            vec![parameter("name", "The capability.", Presence::Required, &text)],
            &any,
        ),
        method(
            "capabilities.invoke",
            "Call a capability; its outcome comes in an envelope.",
            vec![
                parameter("capability", "The capability.", Presence::Required, &text),
                parameter("arguments", "Its inputs by name.", Presence::Optional, &any),
            ],
            &json!({ "type": "object", "required": ["success"], "properties": {
                "success": { "type": "boolean" },
                "data": { "type": "object", "description": "The outputs, when it succeeded." },
                "error": { "type": "object", "description": "type, message and recovery, when it did not." },
            } }),
        ),
        method(
            "$/cancelRequest",
            "Stop a running call; it ends with an error of its own. Sent as a notification.",
            vec![parameter(
                "id",
                "The id of the request to stop.",
                Presence::Required,
                &json!({ "type": ["string", "integer", "null"] }),
            )],
            &json!({ "type": "null" }),
        ),
    ]
}

fn methods(definition: &Definition) -> Vec<Value> {
    let one = |operation: &Operation| {
        let params = operation.inputs.iter().map(|input| {
            parameter(&input.name, &input.description, Presence::of(input), &Value::Object(schema(input)))
        });
        let properties: Map<String, Value> =
            operation.outputs.iter().map(|output| (output.name.clone(), property(output))).collect();
        let answer = json!({ "type": "object", "properties": properties });
        let mut method = method(&operation.name, &operation.summary, params.collect(), &answer);
        method["description"] = operation.when.clone().into();
        if let Some(tier) = operation.tier {
            method["x-permission-tier"] = json!(tier);
        }
        method["tags"] = json!([{ "name": definition.dialect }, { "name": operation.effect.word() }]);
        method
    };
    definition.operations.iter().map(one).collect()
}

/// The JSON Schema of one field of an answer.
pub(super) fn property(output: &Output) -> Value {
    if output.nullable {
        return json!({ "type": [output.kind, "null"], "description": output.description });
    }
    json!({ "type": output.kind, "description": output.description })
}

fn method(name: &str, summary: &str, params: Vec<Value>, answer: &Value) -> Value {
    let errors =
        ["InvalidParams", "InternalError", "RateLimited", "PolicyDenied", "ApprovalPending", "Failed"]
            .map(|error| json!({ "$ref": format!("#/components/errors/{error}") }));
    // What must be given comes before what may be.
    let (mut first, rest): (Vec<Value>, Vec<Value>) =
        params.into_iter().partition(|param| param["required"] == true);
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

/// Whether a parameter must be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

impl Presence {
    fn of(input: &Input) -> Self {
        if input.required { Presence::Required } else { Presence::Optional }
    }
}

fn parameter(name: &str, description: &str, presence: Presence, schema: &Value) -> Value {
    json!({ "name": name, "description": description, "required": presence == Presence::Required, "schema": schema })
}

/// The JSON Schema of one argument, said in full.
pub(super) fn schema(input: &Input) -> Map<String, Value> {
    let mut schema = input.schema.clone().unwrap_or_default();
    let kind = match input.kind {
        InputType::String | InputType::Enum => Some(json!("string")),
        InputType::Integer => Some(json!("integer")),
        InputType::Boolean => Some(json!("boolean")),
        InputType::Texts | InputType::Json => None,
    };
    if let Some(kind) = kind {
        schema.insert("type".to_owned(), kind);
    }
    if input.kind == InputType::Texts {
        let text = json!({ "type": "string" });
        schema.insert("anyOf".to_owned(), json!([text, { "type": "array", "items": text }]));
    }
    if input.kind == InputType::Integer {
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
