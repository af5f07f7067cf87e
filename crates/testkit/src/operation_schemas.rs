//! The JSON Schemas of the arguments and results of the operations, derived from their Rust types. A golden file holds
//! the schemas; `cargo xtask generate` joins them with the descriptions in `definitions/stead.yaml`.

#![expect(clippy::panic, reason = "a test fails by panicking")]

use std::sync::LazyLock;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};
use stead_engine::{for_each_operation, ops};

use crate::next_steps::DEFINITION;

static SCHEMAS: LazyLock<Map<String, Value>> = LazyLock::new(derive_operation_schemas);

/// The keywords that come from doc comments and Rust types, and that mean nothing to a caller.
const STRIPPED_KEYWORDS: &[&str] =
    &["$schema", "title", "description", "format", "minimum", "maximum", "default", "writeOnly"];

/// The only field of every outcome that the journal returned again for a repeated call.
const REPLAYED: &str = "replayed";

/// Whether a schema describes what callers send or what they receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SchemaContract {
    Arguments,
    Result,
}

/// Whether a value may be null. A caller leaves out an optional argument, and an optional field of a result is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NullValue {
    Accepted,
    Refused,
}

macro_rules! derive_schemas {
    ($($name:literal $effect:ident $args:ident => $outcome:ident $(as $text:ident)? $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
        /// Derives the schemas of every operation, in documentation order.
        pub fn derive_operation_schemas() -> Map<String, Value> {
            let derived = [$(($name, json!({
                "arguments": derive_schema::<ops::$args>(SchemaContract::Arguments),
                "result": derive_schema::<ops::$outcome>(SchemaContract::Result),
            })),)+];
            derived.into_iter().map(|(name, schemas)| (name.to_owned(), schemas)).collect()
        }
    };
}

for_each_operation!(derive_schemas);

fn derive_schema<T: JsonSchema>(contract: SchemaContract) -> Value {
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    let settings = match contract {
        SchemaContract::Arguments => settings.for_deserialize(),
        SchemaContract::Result => settings.for_serialize(),
    };
    simplify(settings.into_generator().into_root_schema_for::<T>().as_value(), contract, NullValue::Refused)
}

/// Leaves only what a caller must know, in the form in which the tool lists of other programs write it.
fn simplify(schema: &Value, contract: SchemaContract, null: NullValue) -> Value {
    // The schema `true` accepts every value.
    let Value::Object(keywords) = schema else { return json!({}) };
    let is_required = |name: &String| {
        keywords.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|known| known == name))
    };
    let null_of_property = |name: &String| match contract {
        SchemaContract::Result if is_required(name) => NullValue::Accepted,
        SchemaContract::Result | SchemaContract::Arguments => NullValue::Refused,
    };
    let mut simple = Map::new();
    for (keyword, value) in keywords {
        let value = match (keyword.as_str(), value) {
            (stripped, _) if STRIPPED_KEYWORDS.contains(&stripped) => continue,
            // Tool lists stay short; the error for an unknown argument lists the known ones.
            ("additionalProperties", Value::Bool(_)) => continue,
            ("items" | "additionalProperties", nested) => simplify(nested, contract, NullValue::Accepted),
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, property)| (name.clone(), simplify(property, contract, null_of_property(name))))
                .collect(),
            ("anyOf" | "oneOf" | "allOf", Value::Array(branches)) => {
                branches.iter().map(|branch| simplify(branch, contract, NullValue::Accepted)).collect()
            }
            _ => value.clone(),
        };
        simple.insert(keyword.clone(), value);
    }
    if null == NullValue::Refused {
        remove_null(&mut simple);
    }
    collapse_string_choices(&mut simple);
    Value::Object(simple)
}

fn remove_null(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = schema.get_mut(keyword) else { continue };
        branches.retain(|branch| *branch != json!({ "type": "null" }));
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            schema.remove(keyword);
            schema.extend(only);
        }
    }
}

/// Documented variants of an enum become a choice of constants, which is one list of strings.
fn collapse_string_choices(schema: &mut Map<String, Value>) {
    let words_of = |branch: &Value| match (&branch["const"], &branch["enum"]) {
        (Value::String(word), _) => Some(vec![word.clone().into()]),
        (_, Value::Array(words)) if branch["type"] == "string" => Some(words.clone()),
        _ => None,
    };
    for keyword in ["anyOf", "oneOf"] {
        let Some(branches) = schema.get(keyword).and_then(Value::as_array) else { continue };
        let Some(words) = branches.iter().map(words_of).collect::<Option<Vec<Vec<Value>>>>() else { continue };
        schema.remove(keyword);
        schema.insert("type".to_owned(), "string".into());
        schema.insert("enum".to_owned(), words.concat().into());
    }
}

/// Checks that the object of a successful call has only declared fields, and that it has the type of its outcome.
pub(crate) fn check_result(operation: &str, object: &Map<String, Value>) {
    let Some(tool) = DEFINITION.find_tool(operation) else { panic!("there is no definition of {operation}") };
    // Changes that an editor applies have an empty object.
    if object.is_empty() || object.contains_key(REPLAYED) {
        return;
    }
    let declared = || tool.outputs.iter().chain(&DEFINITION.common_outputs);
    if let Some(field) = object.keys().find(|field| declared().all(|output| output.name != **field)) {
        panic!("the definition of {operation} does not declare the field {field}");
    }
    if let Err(problem) = check_value(&SCHEMAS[operation]["result"], &Value::Object(object.clone())) {
        panic!("the result of {operation} does not match its type: {problem}");
    }
}

/// Checks a value against the keywords that the derived schemas use.
fn check_value(schema: &Value, value: &Value) -> Result<(), String> {
    let differs = |keyword: &str| Err(format!("{keyword} {} does not accept {value}", schema[keyword]));
    let types: Vec<&str> = match schema["type"].as_array() {
        Some(types) => types.iter().filter_map(Value::as_str).collect(),
        None => schema["type"].as_str().into_iter().collect(),
    };
    if !types.is_empty() && !types.iter().any(|kind| has_type(value, kind)) {
        return differs("type");
    }
    if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
        return differs("enum");
    }
    if schema.get("const").is_some_and(|constant| constant != value) {
        return differs("const");
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(branches) = schema[keyword].as_array() else { continue };
        let problems: Vec<String> = branches.iter().filter_map(|branch| check_value(branch, value).err()).collect();
        if problems.len() == branches.len() {
            return Err(format!("{keyword}: {}", problems.join("; ")));
        }
    }
    for branch in schema["allOf"].as_array().into_iter().flatten() {
        check_value(branch, value)?;
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.get(name).is_none() {
            return Err(format!("{name} is missing in {value}"));
        }
    }
    for item in value.as_array().into_iter().flatten() {
        check_value(&schema["items"], item)?;
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let property = schema["properties"].get(name).unwrap_or(&schema["additionalProperties"]);
        check_value(property, field).map_err(|problem| format!("{name}: {problem}"))?;
    }
    Ok(())
}

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the schemas have no type {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_lose_what_callers_do_not_need() {
        for (derived, expected) in [
            (json!({ "type": "integer", "format": "uint64", "minimum": 0 }), json!({ "type": "integer" })),
            (json!({ "type": ["string", "null"], "description": "A doc comment." }), json!({ "type": "string" })),
            (
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }] }),
                json!({ "type": "string", "enum": ["a"] }),
            ),
            (
                json!({ "oneOf": [{ "type": "string", "const": "a", "description": "One." }, { "type": "string", "enum": ["b", "c"] }] }),
                json!({ "type": "string", "enum": ["a", "b", "c"] }),
            ),
            (json!({ "type": "object", "additionalProperties": false }), json!({ "type": "object" })),
            (
                json!({ "type": "object", "additionalProperties": { "type": "string", "title": "Name" } }),
                json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            ),
            (json!(true), json!({})),
        ] {
            assert_eq!(simplify(&derived, SchemaContract::Arguments, NullValue::Refused), expected, "{derived}");
        }
    }

    #[test]
    fn only_required_fields_of_results_are_nullable() {
        let nullable = json!({ "type": ["string", "null"] });
        let schema = json!({ "properties": { "a": nullable, "b": nullable }, "required": ["a"] });
        let simple = simplify(&schema, SchemaContract::Result, NullValue::Refused);
        assert_eq!(simple["properties"], json!({ "a": nullable, "b": { "type": "string" } }));
    }

    #[test]
    fn values_are_checked_against_every_keyword() {
        let schema = json!({
            "type": "object", "required": ["n"],
            "properties": { "n": { "type": ["integer", "null"] }, "w": { "enum": ["a"] }, "l": { "items": { "type": "string" } } },
            "anyOf": [{ "required": ["w"] }, { "required": ["l"] }],
        });
        for good in [json!({ "n": 1, "w": "a" }), json!({ "n": null, "l": ["x"] })] {
            assert_eq!(check_value(&schema, &good), Ok(()));
        }
        for bad in [
            json!([]),
            json!({ "w": "a" }),
            json!({ "n": "1", "w": "a" }),
            json!({ "n": 1, "w": "b" }),
            json!({ "n": 1, "l": [1] }),
            json!({ "n": 1 }),
        ] {
            assert!(check_value(&schema, &bad).is_err(), "{bad}");
        }
    }
}
