//! The inputs of a call, held against what the capability declares: nothing unknown, nothing missing, nothing of
//! another type.

use engine::{Failure, Kind};
use serde_json::{Map, Value};

use crate::definition::{Input, InputType, Operation};

/// How much of an input's name is shown back.
const SHOWN_CHARS_MAX: usize = 64;

/// Inputs that fit.
pub(super) struct Asked<'a>(&'a Map<String, Value>);

impl<'a> Asked<'a> {
    pub(super) fn read(declared: &Operation, given: &'a Map<String, Value>) -> Result<Self, Failure> {
        for (name, value) in given {
            let Some(input) = declared.inputs.iter().find(|input| input.name == *name) else {
                let shown: String = name.chars().take(SHOWN_CHARS_MAX).collect();
                return Err(misfit(&shown, "the capability has no such input"));
            };
            fits(input, value)?;
        }
        match declared.inputs.iter().find(|input| input.required && !given.contains_key(&input.name)) {
            Some(input) => Err(misfit(&input.name, "is required")),
            None => Ok(Self(given)),
        }
    }

    /// A text, if it is given.
    pub(super) fn maybe(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str)
    }

    /// A text; empty when it is not given.
    pub(super) fn text(&self, name: &str) -> &'a str {
        self.maybe(name).unwrap_or_default()
    }

    /// Whatever is given.
    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    /// Whether something is asked for; no when nothing is said.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    /// Whether something is refused in so many words.
    pub(super) fn is_unset(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(false))
    }
}

fn fits(input: &Input, value: &Value) -> Result<(), Failure> {
    let (fits, expected) = match input.kind {
        InputType::String => (value.is_string(), "must be a string".to_owned()),
        InputType::Texts => {
            let texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
            let fits = value.is_string() || value.as_array().is_some_and(texts);
            (fits, "must be a string or several".to_owned())
        }
        InputType::Integer => (value.is_u64(), "must be a whole number that is not negative".to_owned()),
        InputType::Boolean => (value.is_boolean(), "must be true or false".to_owned()),
        InputType::Enum => (
            value.as_str().is_some_and(|word| input.values.iter().any(|known| known == word)),
            format!("must be one of {}", input.values.join(", ")),
        ),
        InputType::Json => (true, String::new()),
    };
    if fits { Ok(()) } else { Err(misfit(&input.name, &expected)) }
}

/// What is said of an input that does not fit.
pub(super) fn misfit(field: &str, reason: &str) -> Failure {
    Failure::new(Kind::BadRequest, format!("Invalid input: field '{field}' -- {reason}")).fact(FIELD, field)
}

/// The fact that names the input.
pub(super) const FIELD: &str = "field";
