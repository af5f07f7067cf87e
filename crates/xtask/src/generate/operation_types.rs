//! Joins the native definition, which describes the arguments and results of the operations, with the schemas that are
//! derived from the Rust types of the operations.

use std::{fs, path::Path};

use serde_json::{Map, Value, json};

/// The golden file of a test in the engine, which derives the schemas.
const SCHEMAS_FILE: &str = "crates/engine/tests/pins/operation_schemas.json";
const REFRESH_COMMAND: &str = "UPDATE_PINS=1 cargo nextest run -p stead-engine -E 'test(operation_schemas)'";

/// The keys that come from the Rust type of an argument or of a field of a result.
const DERIVED_KEYS: [&str; 5] = ["type", "values", "schema", "required", "nullable"];

/// The fields that a type shares with another operation or with a dialect, and that the operation never returns.
const NEVER_RETURNED: &[(&str, &[&str])] = &[
    ("read", &["modified"]),
    ("stat", &["created", "owner"]),
    ("search", &["hits", "unsaved"]),
    ("move", &["trash"]),
    ("restore", &["replaced"]),
    ("redo", &["undone"]),
    ("diff", &["next"]),
    ("alert", &["answer", "answered_by", "answered"]),
    ("alerts", &["next"]),
    ("approvals", &["next"]),
    ("buffer.list", &["next"]),
    ("review", &["next"]),
    ("workspace.create", WORKSPACE_SIZE_FIELDS),
    ("workspace.fork", WORKSPACE_SIZE_FIELDS),
    ("workspace.destroy", WORKSPACE_SIZE_FIELDS),
    ("workspace.restore", WORKSPACE_SIZE_FIELDS),
    ("workspace.import", WORKSPACE_SIZE_FIELDS),
];
const WORKSPACE_SIZE_FIELDS: &[&str] = &["head", "files", "directories", "bytes", "truncated"];

/// Adds the types of all arguments and fields to the native definition. Fails unless the definition has exactly the
/// arguments and fields of the types; arguments also have the same order.
pub(super) fn add_types(root: &Path, definition: &mut Value) -> Result<(), String> {
    let text = fs::read_to_string(root.join(SCHEMAS_FILE)).map_err(|error| format!("{SCHEMAS_FILE}: {error}"))?;
    let schemas = serde_json::from_str(&text).map_err(|error| format!("{SCHEMAS_FILE}: {error}"))?;
    join(definition, &schemas).map_err(|problem| {
        format!("{problem}; if a type has changed, first run `{REFRESH_COMMAND}`, which writes {SCHEMAS_FILE}")
    })
}

fn join(definition: &mut Value, schemas: &Value) -> Result<(), String> {
    let common: Vec<String> = names(&definition["common_outputs"]).map(str::to_owned).collect();
    for operation in definition["operations"].as_array_mut().into_iter().flatten() {
        let name = operation["name"].as_str().unwrap_or_default().to_owned();
        let schema = schemas.get(&name).ok_or_else(|| format!("no operation has the name {name}"))?;
        join_arguments(&mut operation["inputs"], &schema["arguments"])
            .and_then(|()| join_result(&mut operation["outputs"], &name, &schema["result"], &common))
            .map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(())
}

fn names(rows: &Value) -> impl Iterator<Item = &str> {
    rows.as_array().into_iter().flatten().filter_map(|row| row["name"].as_str())
}

fn join_arguments(inputs: &mut Value, schema: &Value) -> Result<(), String> {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let (described, typed): (Vec<&str>, Vec<&String>) = (names(inputs).collect(), properties.keys().collect());
    if described != typed {
        return Err(format!("the inputs are {described:?}, and the arguments of the type are {typed:?}"));
    }
    let is_required = |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|n| n == name));
    for (input, (name, property)) in rows_mut(inputs).zip(properties) {
        add_keys(input, name, argument_keys(property))?;
        if is_required(name) {
            input.insert("required".to_owned(), true.into());
        }
    }
    Ok(())
}

fn rows_mut(rows: &mut Value) -> impl Iterator<Item = &mut Map<String, Value>> {
    rows.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut)
}

fn add_keys(row: &mut Map<String, Value>, name: &str, keys: Value) -> Result<(), String> {
    if let Some(key) = DERIVED_KEYS.iter().find(|key| row.contains_key(**key)) {
        return Err(format!("{name}: `{key}` comes from the Rust type"));
    }
    row.extend(keys.as_object().cloned().unwrap_or_default());
    Ok(())
}

fn argument_keys(schema: &Value) -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    match schema["type"].as_str() {
        Some("string") if schema["enum"].is_array() => json!({ "type": "enum", "values": schema["enum"] }),
        Some(simple @ ("string" | "integer" | "boolean")) => json!({ "type": simple }),
        _ if *schema == texts => json!({ "type": "strings" }),
        _ if schema["anyOf"] == json!([text, texts]) => json!({ "type": "texts" }),
        _ => json!({ "type": "json", "schema": schema }),
    }
}

fn join_result(outputs: &mut Value, operation: &str, schema: &Value, common: &[String]) -> Result<(), String> {
    let mut fields = Map::new();
    collect_fields(schema, &mut fields);
    let never = NEVER_RETURNED.iter().find(|(name, _)| *name == operation).map_or(&[][..], |(_, fields)| fields);
    if let Some(field) = never.iter().find(|field| fields.remove(**field).is_none()) {
        return Err(format!("the result has no field {field} that is never returned"));
    }
    for output in rows_mut(outputs) {
        let name = output.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let field = fields.remove(&name).ok_or_else(|| format!("the result of the type has no field {name}"))?;
        add_keys(output, &name, field_keys(&field))?;
    }
    match fields.keys().find(|field| !common.contains(*field)) {
        Some(field) => Err(format!("the outputs lack the field {field} of the type")),
        None => Ok(()),
    }
}

/// The fields of an outcome that is one of several types are in the branches of its schema.
fn collect_fields(schema: &Value, fields: &mut Map<String, Value>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        fields.entry(name.clone()).or_insert_with(|| property.clone());
    }
    for keyword in ["anyOf", "oneOf", "allOf"] {
        schema[keyword].as_array().into_iter().flatten().for_each(|branch| collect_fields(branch, fields));
    }
}

fn field_keys(schema: &Value) -> Value {
    let branches = schema["anyOf"].as_array().map_or(std::slice::from_ref(schema), Vec::as_slice);
    let types = branches.iter().map(|branch| &branch["type"]);
    let types = types.flat_map(|kind| kind.as_array().cloned().unwrap_or_else(|| vec![kind.clone()]));
    let (null, types): (Vec<Value>, Vec<Value>) = types.partition(|kind| kind == "null");
    let mut keys = json!({ "type": types.first() });
    if !null.is_empty() {
        keys["nullable"] = true.into();
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join_one(inputs: Value, outputs: Value) -> Result<Value, String> {
        let schemas = json!({ "read": {
            "arguments": { "properties": { "path": { "type": "string" }, "as": { "type": "string", "enum": ["text"] } }, "required": ["path"] },
            "result": {
                "properties": { "content": { "type": "string" }, "notices": { "type": "array" }, "modified": { "type": "string" } },
                "anyOf": [{ "properties": { "ends": { "type": ["string", "null"] } } }],
            },
        } });
        let operation = json!({ "name": "read", "inputs": inputs, "outputs": outputs });
        let mut definition = json!({ "operations": [operation], "common_outputs": [{ "name": "notices" }] });
        join(&mut definition, &schemas)?;
        Ok(definition["operations"][0].take())
    }

    fn rows(names: &[&str]) -> Value {
        names.iter().map(|name| json!({ "name": name })).collect()
    }

    #[test]
    fn types_are_joined_by_name() {
        let joined = join_one(rows(&["path", "as"]), rows(&["ends", "content"])).unwrap();
        assert_eq!(joined["inputs"][0], json!({ "name": "path", "type": "string", "required": true }));
        assert_eq!(joined["inputs"][1], json!({ "name": "as", "type": "enum", "values": ["text"] }));
        assert_eq!(joined["outputs"][0], json!({ "name": "ends", "type": "string", "nullable": true }));
        assert_eq!(joined["outputs"][1], json!({ "name": "content", "type": "string" }));
    }

    #[test]
    fn definition_must_have_the_fields_of_the_type() {
        let (inputs, outputs) = (["path", "as"], ["content", "ends"]);
        for (inputs, outputs, problem) in [
            (&inputs[..1], &outputs[..], "the inputs are"),
            (&["as", "path"], &outputs, "the inputs are"),
            (&["path", "as", "more"], &outputs, "the inputs are"),
            (&inputs, &outputs[..1], "lack the field ends"),
            (&inputs, &["content", "ends", "more"], "has no field more"),
            (&inputs, &["content", "ends", "modified"], "has no field modified"),
        ] {
            let error = join_one(rows(inputs), rows(outputs)).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
        let typed = json!([{ "name": "path", "type": "string" }, { "name": "as" }]);
        assert!(join_one(typed, rows(&outputs)).unwrap_err().contains("`type` comes from the Rust type"));
    }

    #[test]
    fn arguments_have_the_simplest_type() {
        let text = json!({ "type": "string" });
        let texts = json!({ "type": "array", "items": text });
        for (schema, expected) in [
            (json!({ "type": "integer" }), json!({ "type": "integer" })),
            (texts.clone(), json!({ "type": "strings" })),
            (json!({ "anyOf": [text, texts] }), json!({ "type": "texts" })),
            (json!({ "type": "object" }), json!({ "type": "json", "schema": { "type": "object" } })),
        ] {
            assert_eq!(argument_keys(&schema), expected);
        }
    }
}
