//! The OpenAPI document: files by their address and one address for every operation, with the schemas that every other
//! face shows.

use serde_json::{Map, Value, json};

mod workspaces;

use super::{
    definition::{Definition, Example, Operation},
    openrpc,
};

/// The version of OpenAPI that the document is written in.
const OPENAPI: &str = "3.1.0";
/// The dialect whose operations have addresses.
const NATIVE: &str = "stead";

/// `docs/reference/openapi.json`, and what the server answers.
pub(crate) fn document(definitions: &[Definition]) -> String {
    let native = definitions.iter().find(|definition| definition.dialect == NATIVE);
    let operations = native.map(|native| native.operations.as_slice()).unwrap_or_default();
    let mut paths: Map<String, Value> =
        operations.iter().map(|operation| (format!("/v1/{}", operation.name), address(operation))).collect();
    paths.insert("/v1/files/{path}".to_owned(), files());
    paths.extend(workspaces::paths());
    paths.insert("/health".to_owned(), json!({ "get": health() }));
    let document = json!({
        "openapi": OPENAPI,
        "info": {
            "title": "stead",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "The file server between AI agents and a workspace, over HTTP.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Failure": failure() },
            "responses": { "Failed": failed() },
        },
    });
    format!("{document:#}\n")
}

fn failure() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["kind", "detail"],
            "properties": {
                "kind": { "type": "string", "description": "For programs." },
                "detail": { "type": "string", "description": "For people." },
                "hint": { "type": "string", "description": "What to do next." },
            },
        } },
    })
}

fn failed() -> Value {
    json!({
        "description": "The call was refused or failed; the status and the kind say how.",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Failure" } } },
    })
}

/// Every status but those of success.
fn answers(good: &[(&str, Value)]) -> Value {
    let mut answers: Map<String, Value> =
        good.iter().map(|(status, answer)| ((*status).to_owned(), answer.clone())).collect();
    answers.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Failed" }));
    answers.into()
}

fn header(name: &str, description: &str) -> Value {
    header_of(name, description, json!({ "type": "string" }))
}

fn header_of(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

fn key() -> Value {
    let sent_again = "A change that is sent again with the same key is answered and not made again.";
    header_of("Idempotency-Key", sent_again, json!({ "type": "string", "minLength": 1, "maxLength": 200 }))
}

/// What an optional argument may be: left out, or nothing.
fn or_nothing(mut schema: Map<String, Value>) -> Map<String, Value> {
    if let Some(kind) = schema.get("type").cloned() {
        schema.insert("type".to_owned(), json!([kind, "null"]));
    }
    if let Some(Value::Array(choices)) = schema.get_mut("anyOf") {
        choices.push(json!({ "type": "null" }));
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    schema
}

/// The arguments of the examples in the definition, by their titles.
fn examples(operation: &Operation) -> Map<String, Value> {
    let told = |example: &Example| (example.title.clone(), json!({ "value": example.arguments }));
    operation.examples.iter().map(told).collect()
}

/// One operation.
fn address(operation: &Operation) -> Value {
    let properties: Map<String, Value> = operation
        .inputs
        .iter()
        .map(|input| {
            let schema = openrpc::schema(input);
            let mut schema = if input.required { schema } else { or_nothing(schema) };
            schema.insert("description".to_owned(), input.description.clone().into());
            (input.name.clone(), schema.into())
        })
        .collect();
    let required: Vec<&str> =
        operation.inputs.iter().filter(|input| input.required).map(|input| input.name.as_str()).collect();
    let outputs: Map<String, Value> =
        operation.outputs.iter().map(|output| (output.name.clone(), openrpc::property(output))).collect();
    let mut arguments = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        arguments["required"] = json!(required);
    }
    json!({ "post": {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.when,
        "tags": ["operations"],
        "parameters": [key(), header("Stead-Session", "The session the call belongs to.")],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": arguments, "examples": examples(operation) } },
        },
        "responses": answers(&[("200", json!({
            "description": "What the operation answers.",
            "content": { "application/json": { "schema": { "type": "object", "properties": outputs } } },
        }))]),
    } })
}

/// A file by its address.
fn files() -> Value {
    let path = json!({
        "name": "path", "in": "path", "required": true, "description": "The file, relative to the workspace.",
        "schema": { "type": "string", "minLength": 1 },
    });
    let bytes = json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
    let tag = json!({ "ETag": { "description": "The version, in quotes.", "schema": { "type": "string" } } });
    let object = json!({ "application/json": { "schema": { "type": "object" } } });
    let seen = header_of(
        "If-Match",
        "The version that was seen, in quotes: another one there now is refused with 412.",
        json!({ "type": "string", "pattern": "^\"[0-9a-f]{64}\"$" }),
    );
    let absent = header_of(
        "If-None-Match",
        "* where the file must not exist; not together with If-Match.",
        json!({ "type": "string", "enum": ["*"] }),
    );
    // What is no range is ignored, as the standard has it, so nothing is said of its form.
    let range = header("Range", "One range of bytes; 416 when the file has no such bytes.");
    json!({
        "parameters": [path],
        "get": {
            "operationId": "getFile", "summary": "Read the bytes of a file.", "tags": ["files"],
            "parameters": [
                header("If-None-Match", "Versions that are known; then the answer is 304."),
                range,
            ],
            "responses": answers(&[
                ("200", json!({ "description": "The bytes.", "headers": tag, "content": bytes })),
                ("206", json!({ "description": "Some of the bytes.", "headers": tag, "content": bytes })),
                ("304", json!({ "description": "The version is known." })),
            ]),
        },
        "put": {
            "operationId": "putFile", "summary": "Write a whole file.", "tags": ["files"],
            "parameters": [seen, absent, key()],
            "requestBody": { "required": true, "content": bytes },
            "responses": answers(&[
                ("200", json!({ "description": "Written.", "headers": tag, "content": object })),
                ("201", json!({ "description": "Written; it is new.", "headers": tag, "content": object })),
            ]),
        },
        "delete": {
            "operationId": "deleteFile", "summary": "Move a file to the trash.", "tags": ["files"],
            "parameters": [seen, key()],
            "responses": answers(&[("200", json!({ "description": "Removed.", "content": object }))]),
        },
    })
}

fn health() -> Value {
    json!({
        "operationId": "health", "summary": "Tell whether the server takes requests.", "security": [], "tags": ["server"],
        "responses": answers(&[("200", json!({
            "description": "It does.", "content": { "application/json": { "schema": { "type": "object" } } },
        }))]),
    })
}
