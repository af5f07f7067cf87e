//! The addresses of a server of many workspaces.

use serde_json::{Map, Value, json};

use super::answers;

/// Every address.
pub(super) fn paths() -> Map<String, Value> {
    let below = |rest: &str| format!("/v1/workspaces/{{name}}{rest}");
    Map::from_iter([
        ("/v1/workspaces".to_owned(), json!({ "get": list(), "post": create() })),
        (below(""), with_name(json!({ "get": show(), "delete": destroy() }))),
        (below("/fork"), with_name(json!({ "post": fork() }))),
        (below("/export"), with_name(json!({ "get": export() }))),
        (below("/import"), with_name(json!({ "put": import() }))),
        (below("/restore"), with_name(json!({ "post": restore() }))),
        (below("/tokens"), with_name(json!({ "get": tokens(), "post": make_token() }))),
        (below("/tokens/{id}"), with_name(json!({ "delete": revoke() }))),
    ])
}

fn with_name(mut item: Value) -> Value {
    item["parameters"] = json!([{
        "name": "name", "in": "path", "required": true, "description": "The workspace.",
        "schema": { "type": "string", "minLength": 1 },
    }]);
    item
}

fn operation(id: &str, summary: &str, good: &str, schema: &Value) -> Value {
    let answer = json!({
        "description": summary,
        "content": { "application/json": { "schema": schema } },
    });
    json!({
        "operationId": id,
        "summary": summary,
        "description": "Only for whoever administers an estate; 404 where the server serves one workspace.",
        "tags": ["workspaces"],
        "responses": answers(&[(good, answer)]),
    })
}

fn described() -> Value {
    json!({ "type": "object", "required": ["name", "id", "lasting", "state"], "properties": {
        "name": { "type": "string" },
        "id": { "type": "string", "description": "Tells it apart from others that had its name." },
        "lasting": { "enum": ["kept", "ephemeral"] },
        "label": { "type": "string" },
        "maker": { "type": "string", "description": "Who made it." },
        "created_ms": { "type": "integer" },
        "used_ms": { "type": "integer" },
        "ends_ms": { "type": "integer", "description": "When it leaves the trash." },
        "state": { "enum": ["open", "idle", "trash", "gone"] },
        "origin": { "type": "object", "description": "What it was made from." },
        "head": { "type": "object", "description": "Number and hash of the last entry of its journal." },
        "files": { "type": "integer" },
        "directories": { "type": "integer" },
        "bytes": { "type": "integer" },
        "truncated": { "type": "boolean", "description": "True when not everything was counted." },
    } })
}

/// How a new workspace shall be.
fn wanted() -> Map<String, Value> {
    let properties = json!({
        "lasting": { "enum": ["kept", "ephemeral"], "default": "kept" },
        "label": { "type": "string", "maxLength": 200 },
        "bytes_max": { "type": "integer", "minimum": 0 },
        "files_max": { "type": "integer", "minimum": 0 },
        "policy": { "type": "string", "description": "The text of its policy file." },
    });
    properties.as_object().cloned().unwrap_or_default()
}

fn body(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut schema = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    json!({ "required": true, "content": { "application/json": { "schema": schema } } })
}

fn named(mut properties: Map<String, Value>) -> Map<String, Value> {
    let name = json!({ "type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$" });
    properties.insert("name".to_owned(), name);
    properties
}

fn query(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "schema": schema })
}

fn list() -> Value {
    let page = json!({ "type": "object", "required": ["workspaces", "truncated"], "properties": {
        "workspaces": { "type": "array", "items": described() },
        "truncated": { "type": "boolean" },
        "cursor": { "type": ["string", "null"], "description": "Begins the next page." },
    } });
    let mut list = operation("workspaces.list", "A page of workspaces, by name.", "200", &page);
    list["parameters"] = json!([
        query("limit", &json!({ "type": "integer", "minimum": 1, "maximum": 1000 })),
        query("cursor", &json!({ "type": "string" })),
        query("trash", &json!({ "type": "boolean" })),
    ]);
    list
}

fn create() -> Value {
    let mut create = operation("workspaces.create", "Make an empty workspace.", "201", &described());
    create["requestBody"] = body(named(wanted()), &["name"]);
    create
}

fn show() -> Value {
    operation("workspaces.show", "Everything about one workspace.", "200", &described())
}

fn destroy() -> Value {
    operation("workspaces.destroy", "End a workspace.", "200", &described())
}

fn fork() -> Value {
    let summary = "Make a workspace that holds what this one holds now.";
    let mut fork = operation("workspaces.fork", summary, "201", &described());
    fork["requestBody"] = body(named(wanted()), &["name"]);
    fork
}

fn export() -> Value {
    let mut export = operation("workspaces.export", "The workspace as a tar archive.", "200", &json!({}));
    export["responses"]["200"] = json!({
        "description": "The archive.",
        "headers": { "Stead-Left-Out": {
            "description": "Links, pipes and the like, which it does not carry.", "schema": { "type": "integer" },
        } },
        "content": { "application/x-tar": {} },
    });
    export
}

fn import() -> Value {
    let summary = "Make a workspace of this name from a tar archive: all of it or nothing.";
    let mut import = operation("workspaces.import", summary, "201", &described());
    let parameters: Vec<Value> = wanted()
        .iter()
        .filter(|(name, _)| *name != "policy")
        .map(|(name, schema)| query(name, schema))
        .collect();
    import["parameters"] = parameters.into();
    let bytes = json!({ "schema": { "type": "string", "format": "binary" } });
    import["requestBody"] = json!({ "required": true, "content": { "application/octet-stream": bytes } });
    import
}

fn restore() -> Value {
    let mut restore =
        operation("workspaces.restore", "Take a workspace back from the trash.", "200", &described());
    restore["requestBody"] = body(named(Map::new()), &[]);
    restore
}

fn token() -> Value {
    json!({ "type": "object", "required": ["id", "principal"], "properties": {
        "id": { "type": "string" },
        "token": { "type": "string", "description": "Shown once, when it is made." },
        "principal": { "type": "string" },
        "read_only": { "type": "boolean" },
        "readable": { "type": "array", "items": { "type": "string" } },
        "writable": { "type": "array", "items": { "type": "string" } },
        "label": { "type": "string" },
        "created": { "type": "string" },
        "ends": { "type": ["string", "null"] },
    } })
}

fn tokens() -> Value {
    let all = json!({ "type": "object", "required": ["tokens"], "properties": {
        "tokens": { "type": "array", "items": token() },
    } });
    operation("workspaces.tokens", "The tokens of a workspace; never what they are.", "200", &all)
}

fn make_token() -> Value {
    let properties = json!({
        "principal": { "type": "string", "description": "user:NAME or agent:NAME" },
        "read_only": { "type": "boolean" },
        "readable": { "type": "array", "items": { "type": "string" } },
        "writable": { "type": "array", "items": { "type": "string" } },
        "lasts_seconds": { "type": "integer", "minimum": 0 },
        "label": { "type": "string", "maxLength": 100 },
    });
    let mut make = operation("workspaces.make_token", "Make a token of a workspace.", "201", &token());
    make["requestBody"] = body(properties.as_object().cloned().unwrap_or_default(), &["principal"]);
    make
}

fn revoke() -> Value {
    let mut revoke = operation("workspaces.revoke", "End a token now.", "200", &token());
    revoke["parameters"] = json!([{
        "name": "id", "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 },
    }]);
    revoke
}
