//! The native dialect: engine operations, passed through.

use serde_json::{Map, Value};
use stead_engine::{CallOptions, CallOutcome, Error};

use super::{Dialect, DialectError, DialectReply, DialectSettings, ReplyStatus, TranslatedCall, WorkspaceLocation};
use crate::definition::{DefinitionError, DialectDefinition};

pub(super) struct NativeDialect(DialectDefinition);

pub(super) fn build(
    _settings: &DialectSettings,
    _location: &WorkspaceLocation,
) -> Result<Box<dyn Dialect>, DialectError> {
    Ok(Box::new(NativeDialect::new()?))
}

impl NativeDialect {
    pub(super) fn new() -> Result<Self, DefinitionError> {
        Ok(Self(DialectDefinition::native()?))
    }
}

impl Dialect for NativeDialect {
    fn definition(&self) -> &DialectDefinition {
        &self.0
    }

    fn translate(&self, tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
        native_call(tool, arguments)
    }

    fn full_name(&self, _tool: &str) -> Option<String> {
        None
    }

    fn render_reply(
        &self,
        _tool: &str,
        _arguments: &Map<String, Value>,
        outcome: Result<CallOutcome, Error>,
    ) -> DialectReply {
        native_reply(outcome)
    }
}

fn native_call(tool: &str, arguments: &Map<String, Value>) -> TranslatedCall {
    TranslatedCall { operation: tool.to_owned(), arguments: arguments.clone(), options: CallOptions::default() }
}

fn native_reply(outcome: Result<CallOutcome, Error>) -> DialectReply {
    match outcome {
        Ok(outcome) => DialectReply { json: outcome.json, text: outcome.text, status: ReplyStatus::Success },
        Err(error) => {
            DialectReply { text: error_text(&error), json: error_to_json(&error), status: ReplyStatus::Error }
        }
    }
}

fn error_to_json(error: &Error) -> Map<String, Value> {
    match error.to_json() {
        Value::Object(fields) => fields,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Map::from_iter([("error".to_owned(), other)])
        }
    }
}

/// The error, and below it the next step.
pub(crate) fn error_text(error: &Error) -> String {
    let mut text = format!("{}: {}", error.kind.code(), error.message);
    if let Some(excerpt) = error.excerpt() {
        text.push('\n');
        text.push_str(excerpt.trim_end_matches('\n'));
    }
    match &error.next_step {
        Some(hint) => format!("{text}\nNext step: {hint}"),
        None => text,
    }
}
