//! Validates the inputs of a call against the capability's definition: none unknown, none missing, none of another
//! type.

use serde_json::{Map, Value};
use stead_engine::{Error, ErrorKind};

use crate::definition::{ToolDefinition, ToolInput, ToolInputType};

const ECHOED_NAME_CHARS_MAX: usize = 64;

/// Validated inputs.
pub(super) struct KruxInputs<'a>(&'a Map<String, Value>);

impl<'a> KruxInputs<'a> {
    pub(super) fn validate(declared: &ToolDefinition, given: &'a Map<String, Value>) -> Result<Self, Error> {
        for (name, value) in given {
            let Some(input) = declared.inputs.iter().find(|input| input.name == *name) else {
                let shown: String = name.chars().take(ECHOED_NAME_CHARS_MAX).collect();
                return Err(invalid_input(&shown, "the capability has no such input"));
            };
            check_input(input, value)?;
        }
        match declared.inputs.iter().find(|input| input.required && !given.contains_key(&input.name)) {
            Some(input) => Err(invalid_input(&input.name, "is required")),
            None => Ok(Self(given)),
        }
    }

    pub(super) fn optional_text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub(super) fn text_or_empty(&self, name: &str) -> &'a str {
        self.optional_text(name).unwrap_or_default()
    }

    pub(super) fn value(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.0.get(name).and_then(Value::as_u64)
    }

    pub(super) fn is_set(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(true))
    }

    pub(super) fn is_explicitly_false(&self, name: &str) -> bool {
        self.0.get(name) == Some(&Value::Bool(false))
    }
}

fn check_input(input: &ToolInput, value: &Value) -> Result<(), Error> {
    let (fits, expected) = match input.kind {
        ToolInputType::String => (value.is_string(), "must be a string".to_owned()),
        ToolInputType::StringOrList => {
            let texts = |items: &Vec<Value>| items.iter().all(Value::is_string);
            let fits = value.is_string() || value.as_array().is_some_and(texts);
            (fits, "must be a string or several".to_owned())
        }
        ToolInputType::Integer => (value.is_u64(), "must be a whole number that is not negative".to_owned()),
        ToolInputType::Boolean => (value.is_boolean(), "must be true or false".to_owned()),
        ToolInputType::Enum => (
            value.as_str().is_some_and(|word| input.values.iter().any(|known| known == word)),
            format!("must be one of {}", input.values.join(", ")),
        ),
        ToolInputType::Json => (true, String::new()),
    };
    if fits { Ok(()) } else { Err(invalid_input(&input.name, &expected)) }
}

pub(super) fn invalid_input(field: &str, reason: &str) -> Error {
    Error::new(ErrorKind::BadRequest, format!("Invalid input: field '{field}' -- {reason}"))
        .with_detail(FIELD_DETAIL, field)
}

/// Error detail that names the input.
pub(super) const FIELD_DETAIL: &str = "field";
