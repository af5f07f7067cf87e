//! Checks that the definition of the native dialect matches the engine's operations, arguments, values and error kinds.

use serde_json::{Map, Value, json};
use stead_engine::{Error, ErrorKind, OPERATIONS, OperationEffectClass, RequiredAuthority};
use stead_protocols::definition::{DialectDefinition, ToolArgumentDefinition, ToolArgumentType};
use testkit::engine_fixture::EngineFixture;

fn call_engine(operation: &str, arguments: Map<String, Value>) -> Result<testkit::native::RenderedOutcome, Error> {
    EngineFixture::new().call(operation, json!(arguments))
}

fn example_value(input: &ToolArgumentDefinition) -> Value {
    match input.kind {
        ToolArgumentType::String => "x".into(),
        ToolArgumentType::StringOrList => json!(["x", "y"]),
        ToolArgumentType::StringList => json!(["x"]),
        ToolArgumentType::Integer => 1.into(),
        ToolArgumentType::Boolean => false.into(),
        ToolArgumentType::Enum => input.values[0].clone().into(),
        ToolArgumentType::Json => example_for_schema(&Value::Object(input.schema.clone().unwrap())),
    }
}

fn example_for_schema(schema: &Value) -> Value {
    match schema["type"].as_str().unwrap() {
        "array" => json!([example_for_schema(&schema["items"])]),
        "object" => {
            let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            let property = |name: &Value| {
                let name = name.as_str().unwrap();
                (name.to_owned(), example_for_schema(&schema["properties"][name]))
            };
            Value::Object(required.iter().map(property).collect())
        }
        "string" => "x".into(),
        "integer" => 1.into(),
        "boolean" => false.into(),
        other => unreachable!("no argument is of type {other}"),
    }
}

#[test]
fn operations_match_engine_names_order_and_effects() {
    let definition = DialectDefinition::native().unwrap();
    let declared: Vec<(&str, OperationEffectClass, Option<&str>)> = definition
        .operations
        .iter()
        .map(|operation| (operation.name.as_str(), operation.effect.into(), operation.authority.as_deref()))
        .collect();
    let right = |authority: RequiredAuthority| match authority {
        RequiredAuthority::Use => None,
        RequiredAuthority::Administer => Some("administer"),
        RequiredAuthority::AdministerConfirmed => Some("administer_confirmed"),
        RequiredAuthority::Export => Some("export"),
        RequiredAuthority::IssueSecret => Some("issue_secret"),
        RequiredAuthority::SetSecret => Some("set_secret"),
    };
    let known: Vec<(&str, OperationEffectClass, Option<&str>)> =
        OPERATIONS.iter().map(|row| (row.name, row.effect, right(row.authority))).collect();
    assert_eq!(declared, known);
}

#[test]
fn declared_arguments_match_decoders() {
    for operation in &DialectDefinition::native().unwrap().operations {
        let mut arguments: Map<String, Value> = Map::new();
        arguments.insert("no_such_argument".to_owned(), true.into());
        let error = call_engine(&operation.name, arguments).expect_err("an unknown argument must be rejected");
        assert_eq!(error.kind, ErrorKind::BadRequest, "{}: {error}", operation.name);
        // The error lists the accepted names in backticks, after the rejected name.
        let mut accepted: Vec<&str> = error.message.split('`').skip(1).step_by(2).collect();
        assert_eq!(accepted.remove(0), "no_such_argument", "{error}");
        let declared: Vec<&str> = operation.inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(accepted, declared, "{}", operation.name);
    }
}

#[test]
fn required_arguments_and_types_are_enforced() {
    for operation in &DialectDefinition::native().unwrap().operations {
        let complete: Map<String, Value> = operation
            .inputs
            .iter()
            .filter(|input| input.required)
            .map(|input| (input.name.clone(), example_value(input)))
            .collect();
        for input in &operation.inputs {
            let mut without = complete.clone();
            without.remove(&input.name);
            let outcome = call_engine(&operation.name, without);
            if input.required {
                let error = outcome.expect_err("a required argument is missing");
                assert_eq!(error.kind, ErrorKind::BadRequest, "{} without {}", operation.name, input.name);
                assert!(error.message.contains(&input.name), "{error}");
            } else if let Err(error) = outcome {
                assert!(!error.message.contains("missing argument"), "{}: {error}", operation.name);
            }
            let mut wrong = complete.clone();
            wrong.insert(input.name.clone(), json!([1]));
            let error = call_engine(&operation.name, wrong).expect_err("no argument accepts a list of numbers");
            assert_eq!(error.kind, ErrorKind::BadRequest, "{} with a list as {}", operation.name, input.name);
        }
    }
}

#[test]
fn enum_arguments_accept_only_declared_values() {
    for operation in &DialectDefinition::native().unwrap().operations {
        for input in operation.inputs.iter().filter(|input| input.kind == ToolArgumentType::Enum) {
            let with = |word: &str| {
                let mut arguments: Map<String, Value> = operation
                    .inputs
                    .iter()
                    .filter(|input| input.required)
                    .map(|input| (input.name.clone(), example_value(input)))
                    .collect();
                arguments.insert(input.name.clone(), word.into());
                call_engine(&operation.name, arguments).err().map(|error| error.kind)
            };
            assert_eq!(with("no such word"), Some(ErrorKind::BadRequest));
            for word in &input.values {
                assert_ne!(with(word), Some(ErrorKind::BadRequest), "{} {word}", operation.name);
            }
        }
    }
}
