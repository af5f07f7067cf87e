//! The definitions against the code that decodes them.

use std::sync::Arc;

use engine::{Call, Caller, Effect, Engine, Failure, Fault, Kind, OPERATIONS, Principal};
use faces::definition::{Definition, Input, InputType};
use serde_json::{Map, Value, json};
use testkit::MemoryWorkspace;

fn ask(operation: &str, arguments: Map<String, Value>) -> Result<engine::Answer, Failure> {
    let engine = Engine::new(Arc::new(MemoryWorkspace::new()));
    let caller = Caller::new(Principal::Agent("tester".to_owned()), "test", "library");
    engine.call(&Call::new(&caller, operation, arguments))
}

fn fitting(input: &Input) -> Value {
    match input.kind {
        InputType::String => "x".into(),
        InputType::Texts => json!(["x", "y"]),
        InputType::Integer => 1.into(),
        InputType::Boolean => false.into(),
        InputType::Enum => input.values[0].clone().into(),
        InputType::Json => fitting_schema(&Value::Object(input.schema.clone().unwrap())),
    }
}

/// A value that a schema accepts.
fn fitting_schema(schema: &Value) -> Value {
    match schema["type"].as_str().unwrap() {
        "array" => json!([fitting_schema(&schema["items"])]),
        "object" => {
            let needed = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
            let one = |name: &Value| {
                let name = name.as_str().unwrap();
                (name.to_owned(), fitting_schema(&schema["properties"][name]))
            };
            Value::Object(needed.iter().map(one).collect())
        }
        "string" => "x".into(),
        "integer" => 1.into(),
        "boolean" => false.into(),
        other => unreachable!("no argument is of type {other}"),
    }
}

#[test]
fn names_order_and_effects_are_the_engine_s() {
    let definition = Definition::stead().unwrap();
    let declared: Vec<(&str, Effect)> = definition
        .operations
        .iter()
        .map(|operation| (operation.name.as_str(), operation.effect.into()))
        .collect();
    let known: Vec<(&str, Effect)> = OPERATIONS.iter().map(|row| (row.name, row.effect)).collect();
    assert_eq!(declared, known);
}

#[test]
fn arguments_are_the_ones_the_decoders_take() {
    for operation in &Definition::stead().unwrap().operations {
        let mut arguments: Map<String, Value> = Map::new();
        arguments.insert("no_such_argument".to_owned(), true.into());
        let failure = ask(&operation.name, arguments).expect_err("an unknown argument is refused");
        assert_eq!(failure.kind, Kind::BadRequest, "{}: {failure}", operation.name);
        // The decoder names what it takes between back ticks, after the name it does not take.
        let mut taken: Vec<&str> = failure.detail.split('`').skip(1).step_by(2).collect();
        assert_eq!(taken.remove(0), "no_such_argument", "{failure}");
        let declared: Vec<&str> = operation.inputs.iter().map(|input| input.name.as_str()).collect();
        assert_eq!(taken, declared, "{}", operation.name);
    }
}

#[test]
fn required_arguments_are_required_and_types_are_checked() {
    for operation in &Definition::stead().unwrap().operations {
        let whole: Map<String, Value> = operation
            .inputs
            .iter()
            .filter(|input| input.required)
            .map(|input| (input.name.clone(), fitting(input)))
            .collect();
        for input in &operation.inputs {
            let mut without = whole.clone();
            without.remove(&input.name);
            let outcome = ask(&operation.name, without);
            if input.required {
                let failure = outcome.expect_err("it is missing");
                assert_eq!(failure.kind, Kind::BadRequest, "{} without {}", operation.name, input.name);
                assert!(failure.detail.contains(&input.name), "{failure}");
            } else if let Err(failure) = outcome {
                assert!(!failure.detail.contains("missing argument"), "{}: {failure}", operation.name);
            }
            let mut wrong = whole.clone();
            wrong.insert(input.name.clone(), json!([1]));
            let failure = ask(&operation.name, wrong).expect_err("a list fits nowhere");
            assert_eq!(failure.kind, Kind::BadRequest, "{} with a list as {}", operation.name, input.name);
        }
    }
}

#[test]
fn enums_take_their_words_and_no_other() {
    for operation in &Definition::stead().unwrap().operations {
        for input in operation.inputs.iter().filter(|input| input.kind == InputType::Enum) {
            let with = |word: &str| {
                let mut arguments: Map<String, Value> = operation
                    .inputs
                    .iter()
                    .filter(|input| input.required)
                    .map(|input| (input.name.clone(), fitting(input)))
                    .collect();
                arguments.insert(input.name.clone(), word.into());
                ask(&operation.name, arguments).err().map(|failure| failure.kind)
            };
            assert_eq!(with("no such word"), Some(Kind::BadRequest));
            for word in &input.values {
                assert_ne!(with(word), Some(Kind::BadRequest), "{} {word}", operation.name);
            }
        }
    }
}

#[test]
fn kinds_are_the_engine_s_with_their_fault() {
    let generated: Value = serde_json::from_str(include_str!("../generated/stead.json")).unwrap();
    let declared: Vec<(&str, &str)> = generated["kinds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["kind"].as_str().unwrap(), row["fault"].as_str().unwrap()))
        .collect();
    let known: Vec<(&str, &str)> = Kind::ALL
        .iter()
        .map(|kind| {
            let fault = match kind.fault() {
                Fault::Refusal => "refusal",
                Fault::World => "world",
                Fault::Machine => "machine",
            };
            (kind.code(), fault)
        })
        .collect();
    assert_eq!(declared, known);
}
