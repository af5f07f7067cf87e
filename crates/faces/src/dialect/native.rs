//! The native dialect: the engine's own words, passed through.

use engine::{Answer, Failure, Terms};
use serde_json::{Map, Value};

use super::{Dialect, DialectError, Place, Reply, Request, Settings, Verdict};
use crate::definition::{Broken, Definition};

/// The engine's own vocabulary.
pub(super) struct Native(Definition);

/// Makes it; it has no settings.
pub(super) fn make(_settings: &Settings, _place: &Place) -> Result<Box<dyn Dialect>, DialectError> {
    Ok(Box::new(Native::new()?))
}

impl Native {
    pub(super) fn new() -> Result<Self, Broken> {
        Ok(Self(Definition::stead()?))
    }
}

impl Dialect for Native {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn request(&self, tool: &str, arguments: &Map<String, Value>) -> Request {
        native_request(tool, arguments)
    }

    fn full_name(&self, _tool: &str) -> Option<String> {
        None
    }

    fn reply(&self, _tool: &str, _arguments: &Map<String, Value>, outcome: Result<Answer, Failure>) -> Reply {
        native_reply(outcome)
    }
}

/// A call in the engine's own words.
fn native_request(tool: &str, arguments: &Map<String, Value>) -> Request {
    Request { operation: tool.to_owned(), arguments: arguments.clone(), terms: Terms::default() }
}

/// An outcome in the engine's own words: the object as it is, and its text twin.
fn native_reply(outcome: Result<Answer, Failure>) -> Reply {
    match outcome {
        Ok(answer) => Reply { json: answer.json, text: answer.text, verdict: Verdict::Fine },
        Err(failure) => {
            Reply { text: failure_text(&failure), json: object(&failure), verdict: Verdict::Error }
        }
    }
}

fn object(failure: &Failure) -> Map<String, Value> {
    match failure.to_json() {
        Value::Object(fields) => fields,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Map::from_iter([("error".to_owned(), other)])
        }
    }
}

/// What happened, and below it what to do next.
pub(crate) fn failure_text(failure: &Failure) -> String {
    let mut happened = format!("{}: {}", failure.kind.code(), failure.detail);
    if let Some(shown) = failure.shown() {
        happened.push('\n');
        happened.push_str(shown.trim_end_matches('\n'));
    }
    match &failure.hint {
        Some(hint) => format!("{happened}\nNext step: {hint}"),
        None => happened,
    }
}
