//! Renders the OpenAPI description of the endpoints that manage hosted workspaces.

use serde_json::{Map, Value, json};

use super::responses;

pub(super) fn workspace_paths() -> Map<String, Value> {
    let below = |rest: &str| format!("/v1/workspaces/{{name}}{rest}");
    Map::from_iter([
        ("/v1/workspaces".to_owned(), json!({ "get": list_operation(), "post": create_operation() })),
        (below(""), with_name_parameter(json!({ "get": show_operation(), "delete": destroy_operation() }))),
        (below("/fork"), with_name_parameter(json!({ "post": fork_operation() }))),
        (below("/export"), with_name_parameter(json!({ "get": export_operation() }))),
        (below("/import"), with_name_parameter(json!({ "put": import_operation() }))),
        (below("/restore"), with_name_parameter(json!({ "post": restore_operation() }))),
        (
            below("/tokens"),
            with_name_parameter(json!({ "get": list_tokens_operation(), "post": create_token_operation() })),
        ),
        (below("/tokens/{id}"), with_name_parameter(json!({ "delete": revoke_token_operation() }))),
    ])
}

fn with_name_parameter(mut item: Value) -> Value {
    item["parameters"] = json!([{
        "name": "name", "in": "path", "required": true, "description": "Name of the workspace.",
        "schema": { "type": "string", "minLength": 1 },
    }]);
    item
}

fn operation_object(id: &str, summary: &str, good: &str, schema: &Value) -> Value {
    let answer = json!({
        "description": summary,
        "content": { "application/json": { "schema": schema } },
    });
    json!({
        "operationId": id,
        "summary": summary,
        "description": "Requires an admin token. 404 if the server serves a single workspace.",
        "tags": ["workspaces"],
        "responses": responses(&[(good, answer)]),
    })
}

fn workspace_schema() -> Value {
    json!({ "type": "object", "required": ["name", "id", "lasting", "state"], "properties": {
        "name": { "type": "string" },
        "id": { "type": "string", "description": "Unique id; names can be reused." },
        "lasting": { "enum": ["kept", "ephemeral"] },
        "label": { "type": "string" },
        "maker": { "type": "string", "description": "Principal that created it." },
        "created_ms": { "type": "integer" },
        "used_ms": { "type": "integer" },
        "ends_ms": { "type": "integer", "description": "When it is deleted from the trash." },
        "state": { "enum": ["open", "idle", "trash", "gone"] },
        "origin": { "type": "object", "description": "Source of a fork or import." },
        "head": { "type": "object", "description": "Number and hash of the last journal entry." },
        "files": { "type": "integer" },
        "directories": { "type": "integer" },
        "bytes": { "type": "integer" },
        "truncated": { "type": "boolean", "description": "True when the counts are incomplete." },
    } })
}

fn new_workspace_properties() -> Map<String, Value> {
    let properties = json!({
        "lasting": { "enum": ["kept", "ephemeral"], "default": "kept" },
        "label": { "type": "string", "maxLength": 200 },
        "bytes_max": { "type": "integer", "minimum": 0 },
        "files_max": { "type": "integer", "minimum": 0 },
        "policy": { "type": "string", "description": "Text of the policy file." },
    });
    properties.as_object().cloned().unwrap_or_default()
}

fn request_body(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn with_name_property(mut properties: Map<String, Value>) -> Map<String, Value> {
    let name = json!({ "type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" });
    properties.insert("name".to_owned(), name);
    properties
}

fn query_parameter(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "schema": schema })
}

fn list_operation() -> Value {
    let page = json!({ "type": "object", "required": ["workspaces", "truncated"], "properties": {
        "workspaces": { "type": "array", "items": workspace_schema() },
        "truncated": { "type": "boolean" },
        "cursor": { "type": ["string", "null"], "description": "Cursor of the next page." },
    } });
    let mut list = operation_object("workspaces.list", "List workspaces by name, one page.", "200", &page);
    list["parameters"] = json!([
        query_parameter("limit", &json!({ "type": "integer", "minimum": 1, "maximum": 1000 })),
        query_parameter("cursor", &json!({ "type": "string" })),
        query_parameter("trash", &json!({ "type": "boolean" })),
    ]);
    list
}

fn create_operation() -> Value {
    let mut create = operation_object("workspaces.create", "Create an empty workspace.", "201", &workspace_schema());
    create["requestBody"] = request_body(with_name_property(new_workspace_properties()), &["name"]);
    create
}

fn show_operation() -> Value {
    operation_object("workspaces.show", "Show one workspace.", "200", &workspace_schema())
}

fn destroy_operation() -> Value {
    operation_object("workspaces.destroy", "Delete a workspace.", "200", &workspace_schema())
}

fn fork_operation() -> Value {
    let summary = "Create a workspace with the current content of this one.";
    let mut fork = operation_object("workspaces.fork", summary, "201", &workspace_schema());
    fork["requestBody"] = request_body(with_name_property(new_workspace_properties()), &["name"]);
    fork
}

fn export_operation() -> Value {
    let mut export = operation_object("workspaces.export", "Export the workspace as a tar archive.", "200", &json!({}));
    export["responses"]["200"] = json!({
        "description": "The archive.",
        "headers": { "Stead-Left-Out": {
            "description": "Number of entries left out, such as links and pipes.", "schema": { "type": "integer" },
        } },
        "content": { "application/x-tar": {} },
    });
    export
}

fn import_operation() -> Value {
    let summary = "Create a workspace with this name from a tar archive, all or nothing.";
    let mut import = operation_object("workspaces.import", summary, "201", &workspace_schema());
    let parameters: Vec<Value> = new_workspace_properties()
        .iter()
        .filter(|(name, _)| *name != "policy")
        .map(|(name, schema)| query_parameter(name, schema))
        .collect();
    import["parameters"] = parameters.into();
    let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
    import["requestBody"] = json!({ "required": true, "content": { "application/octet-stream": bytes } });
    import
}

fn restore_operation() -> Value {
    let mut restore =
        operation_object("workspaces.restore", "Restore a workspace from the trash.", "200", &workspace_schema());
    restore["requestBody"] = request_body(with_name_property(Map::new()), &[]);
    restore
}

fn token_schema() -> Value {
    json!({ "type": "object", "required": ["id", "principal"], "properties": {
        "id": { "type": "string" },
        "token": { "type": "string", "description": "Returned once, at creation." },
        "principal": { "type": "string" },
        "read_only": { "type": "boolean" },
        "readable": { "type": "array", "items": { "type": "string" } },
        "writable": { "type": "array", "items": { "type": "string" } },
        "label": { "type": "string" },
        "created": { "type": "string" },
        "ends": { "type": ["string", "null"] },
    } })
}

fn list_tokens_operation() -> Value {
    let all = json!({ "type": "object", "required": ["tokens"], "properties": {
        "tokens": { "type": "array", "items": token_schema() },
    } });
    operation_object("workspaces.tokens", "List the tokens of a workspace, without their secrets.", "200", &all)
}

fn create_token_operation() -> Value {
    let properties = json!({
        "principal": { "type": "string", "description": "user:NAME or agent:NAME" },
        "read_only": { "type": "boolean" },
        "readable": { "type": "array", "items": { "type": "string" } },
        "writable": { "type": "array", "items": { "type": "string" } },
        "lasts_seconds": { "type": "integer", "minimum": 0 },
        "label": { "type": "string", "maxLength": 100 },
    });
    let mut make = operation_object("workspaces.make_token", "Create a token for a workspace.", "201", &token_schema());
    make["requestBody"] = request_body(properties.as_object().cloned().unwrap_or_default(), &["principal"]);
    make
}

fn revoke_token_operation() -> Value {
    let mut revoke = operation_object("workspaces.revoke", "Revoke a token.", "200", &token_schema());
    revoke["parameters"] = json!([{
        "name": "id", "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 },
    }]);
    revoke
}
