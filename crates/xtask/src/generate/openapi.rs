//! Renders the OpenAPI document: the file endpoints and one endpoint per operation.

use serde_json::{Map, Value, json};

mod workspaces;

use super::{
    definition::{
        NATIVE_DIALECT,
        schema::{DialectDefinition, ToolDefinition, ToolExample},
    },
    openrpc,
};

const OPENAPI_VERSION: &str = "3.1.0";

/// The server also embeds `docs/reference/openapi.json`.
pub(crate) fn openapi_document(definitions: &[DialectDefinition]) -> String {
    let native = definitions.iter().find(|definition| definition.dialect == NATIVE_DIALECT);
    let operations = native.map(|native| native.operations.as_slice()).unwrap_or_default();
    let mut paths: Map<String, Value> = operations
        .iter()
        .map(|operation| (format!("/v1/{}", operation.name), operation_path_item(operation)))
        .collect();
    paths.insert("/v1/files/{path}".to_owned(), file_path_item());
    paths.extend(workspaces::workspace_paths());
    paths.insert("/health".to_owned(), json!({ "get": health_path_item() }));
    let document = json!({
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "stead",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "File server between AI agents and a workspace, over HTTP.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": { "Failure": error_schema() },
            "responses": { "Failed": error_response() },
        },
    });
    format!("{document:#}\n")
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": {
            "type": "object",
            "required": ["kind", "detail"],
            "properties": {
                "kind": { "type": "string", "description": "Error kind, for programs." },
                "detail": { "type": "string", "description": "Message for people." },
                "hint": { "type": "string", "description": "The next step." },
            },
        } },
    })
}

fn error_response() -> Value {
    json!({
        "description": "The call was refused or failed; status and kind give the reason.",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Failure" } } },
    })
}

fn responses(good: &[(&str, Value)]) -> Value {
    let mut answers: Map<String, Value> =
        good.iter().map(|(status, answer)| ((*status).to_owned(), answer.clone())).collect();
    answers.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Failed" }));
    answers.into()
}

fn header_parameter(name: &str, description: &str) -> Value {
    header_with_schema(name, description, json!({ "type": "string" }))
}

fn header_with_schema(name: &str, description: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "description": description, "schema": schema })
}

fn idempotency_key_header() -> Value {
    let description = "A repeated request with the same key returns the first result and makes no second change.";
    header_with_schema("Idempotency-Key", description, json!({ "type": "string", "minLength": 1, "maxLength": 200 }))
}

fn make_nullable(mut schema: Map<String, Value>) -> Map<String, Value> {
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

fn request_examples(operation: &ToolDefinition) -> Map<String, Value> {
    let value_of_example = |example: &ToolExample| (example.title.clone(), json!({ "value": example.arguments }));
    operation.examples.iter().map(value_of_example).collect()
}

fn operation_path_item(operation: &ToolDefinition) -> Value {
    let properties: Map<String, Value> = operation
        .inputs
        .iter()
        .map(|input| {
            let schema = openrpc::input_schema(input);
            let mut schema = if input.required { schema } else { make_nullable(schema) };
            schema.insert("description".to_owned(), input.description.clone().into());
            (input.name.clone(), schema.into())
        })
        .collect();
    let required: Vec<&str> =
        operation.inputs.iter().filter(|input| input.required).map(|input| input.name.as_str()).collect();
    let outputs: Map<String, Value> =
        operation.outputs.iter().map(|output| (output.name.clone(), openrpc::output_schema(output))).collect();
    let mut arguments = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        arguments["required"] = json!(required);
    }
    json!({ "post": {
        "operationId": operation.name,
        "summary": operation.summary,
        "description": operation.when_to_use,
        "tags": ["operations"],
        "parameters": [idempotency_key_header(), header_parameter("Stead-Session", "Session of the call.")],
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": arguments, "examples": request_examples(operation) } },
        },
        "responses": responses(&[("200", json!({
            "description": "Result of the operation.",
            "content": { "application/json": { "schema": { "type": "object", "properties": outputs } } },
        }))]),
    } })
}

fn file_path_item() -> Value {
    let path = json!({
        "name": "path", "in": "path", "required": true, "description": "Path of the file, relative to the workspace root.",
        "schema": { "type": "string", "minLength": 1 },
    });
    let bytes = json!({ "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } });
    let tag = json!({ "ETag": { "description": "Version of the file, in quotes.", "schema": { "type": "string" } } });
    let object = json!({ "application/json": { "schema": { "type": "object" } } });
    let seen = header_with_schema(
        "If-Match",
        "Version that was read, in quotes. 412 if the file has another version.",
        json!({ "type": "string", "pattern": "^\"[0-9a-f]{64}\"$" }),
    );
    let absent = header_with_schema(
        "If-None-Match",
        "* = the file must not exist. Not together with If-Match.",
        json!({ "type": "string", "enum": ["*"] }),
    );
    // RFC 9110 requires that invalid ranges are ignored, so the schema has no pattern.
    let range = header_parameter("Range", "One byte range. 416 if it is beyond the end of the file.");
    json!({
        "parameters": [path],
        "get": {
            "operationId": "getFile", "summary": "Read a file.", "tags": ["files"],
            "parameters": [
                header_parameter("If-None-Match", "Known versions, in quotes. 304 if the file has one of them."),
                range,
            ],
            "responses": responses(&[
                ("200", json!({ "description": "Content of the file.", "headers": tag, "content": bytes })),
                ("206", json!({ "description": "The requested range.", "headers": tag, "content": bytes })),
                ("304", json!({ "description": "The file has a known version." })),
            ]),
        },
        "put": {
            "operationId": "putFile", "summary": "Write a whole file.", "tags": ["files"],
            "parameters": [seen, absent, idempotency_key_header()],
            "requestBody": { "required": true, "content": bytes },
            "responses": responses(&[
                ("200", json!({ "description": "Written.", "headers": tag, "content": object })),
                ("201", json!({ "description": "Created.", "headers": tag, "content": object })),
            ]),
        },
        "delete": {
            "operationId": "deleteFile", "summary": "Move a file to the trash.", "tags": ["files"],
            "parameters": [seen, idempotency_key_header()],
            "responses": responses(&[("200", json!({ "description": "Removed.", "content": object }))]),
        },
    })
}

fn health_path_item() -> Value {
    json!({
        "operationId": "health", "summary": "Report whether the server accepts requests.", "security": [], "tags": ["server"],
        "responses": responses(&[("200", json!({
            "description": "The server accepts requests.", "content": { "application/json": { "schema": { "type": "object" } } },
        }))]),
    })
}
