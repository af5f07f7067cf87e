//! Checks the next steps of the errors that the tests of every crate produce.

#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};
use stead_engine::{
    Error, NextStep, SuggestedArgument, SuggestedArgumentValue, SuggestedCall, for_each_operation, ops,
};
use stead_protocols::{
    definition::{DialectDefinition, ToolArgumentType, ToolDefinition},
    native::CallStyle,
};

pub(crate) static DEFINITION: LazyLock<DialectDefinition> =
    LazyLock::new(|| DialectDefinition::native().expect("the native definition"));

/// The details of an error as the protocols send them.
pub trait ErrorDetailsJson {
    /// The details as a JSON object.
    fn details_json(&self) -> serde_json::Value;
}

impl ErrorDetailsJson for Error {
    fn details_json(&self) -> serde_json::Value {
        serde_json::to_value(&self.details).unwrap_or_default()
    }
}

/// The JSON form of an error, as MCP and JSON-RPC send it.
pub fn error_json(error: &Error) -> Value {
    CallStyle::ToolCall.error_to_json(error)
}

/// The hint of an error as a model reads it; empty if there is none.
pub fn hint_text(error: &Error) -> String {
    CallStyle::ToolCall.render_hint(error).unwrap_or_default()
}

/// Panics unless a caller can take the next step of an error: each suggested call decodes and has an endpoint, and the
/// operation that failed has each argument that a repeated call needs.
pub fn check_next_step(operation: &str, error: &Error) {
    if let Some(step) = &error.next_step {
        check_step(operation, step);
    }
}

fn check_step(operation: &str, step: &NextStep) {
    match step {
        NextStep::Call { call, .. } => check_call(call),
        NextStep::Repeat { argument: Some(argument), .. } => check_argument(operation, argument),
        NextStep::Both(steps, _) => steps.iter().for_each(|step| check_step(operation, step)),
        NextStep::Advice(sentence) | NextStep::AskPerson(sentence) => {
            let names_call =
                sentence.starts_with("call ") || sentence.contains(" call ") && sentence.contains(" with ");
            assert!(!names_call && !sentence.contains("run: "), "a call must be data: {sentence}");
        }
        NextStep::Repeat { argument: None, .. } | NextStep::PersonCommand { .. } => {}
    }
}

fn check_call(call: &SuggestedCall) {
    let Ok(Value::Object(arguments)) = serde_json::to_value(call) else { panic!("{call:?} has no arguments") };
    let decoded = decode_call(call.operation(), &arguments);
    assert!(decoded.is_ok(), "{call:?}: {decoded:?}");
    let known = native_tool(call.operation());
    for name in arguments.keys() {
        assert!(known.inputs.iter().any(|input| input.name == *name), "{} has no argument {name}", call.operation());
    }
}

fn check_argument(operation: &str, argument: &SuggestedArgument) {
    let Some(tool) = DEFINITION.find_tool(operation) else { return };
    let input = tool.inputs.iter().find(|input| input.name == argument.name);
    let input = input.unwrap_or_else(|| panic!("{operation} has no argument {}", argument.name));
    assert_eq!(input.positional, None, "{operation} {}: a command has no such flag", argument.name);
    let is_flag = matches!(argument.value, SuggestedArgumentValue::True);
    assert!(!is_flag || input.kind == ToolArgumentType::Boolean, "{operation} {} is no flag", argument.name);
}

/// `POST /v1/{operation}` exists for each tool of the native definition.
fn native_tool(operation: &str) -> &'static ToolDefinition {
    DEFINITION.find_tool(operation).unwrap_or_else(|| panic!("there is no endpoint for {operation}"))
}

macro_rules! decode_call {
    ($($name:literal $effect:ident $args:ident => $outcome:ident $(as $text:ident)? $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
        fn decode_call(operation: &str, arguments: &Map<String, Value>) -> Result<(), serde_json::Error> {
            match operation {
                $($name => ops::$args::deserialize(arguments).map(drop),)+
                _ => panic!("there is no operation {operation}"),
            }
        }
    };
}

for_each_operation!(decode_call);
