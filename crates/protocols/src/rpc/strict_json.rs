//! Parses a message strictly: UTF-8, JSON, no duplicate members, bounded depth. Parsers disagree about duplicate
//! members, so a message with one could mean different things to different checks.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{
    errors::{self, RpcError},
    message::{RpcMessageError, echoable_id},
};
use crate::limits::MESSAGE_DEPTH_MAX;

const DUPLICATE_MEMBER: &str = "an object has a duplicate member";
const NESTED_TOO_DEEPLY: &str = "the message is nested too deeply";

pub(crate) fn parse_strict(bytes: &[u8]) -> Result<Value, RpcMessageError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| parse_error(format!("the message is not UTF-8: invalid byte at {}", error.valid_up_to())))?;
    let fault = Cell::new(None);
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = StrictJsonVisitor { depth: 0, fault: &fault }
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| parse_error(format!("the message is not JSON: {error}")))?;
    match fault.get() {
        None => Ok(value),
        Some(fault) => {
            let id = value.get("id").and_then(echoable_id);
            Err(RpcMessageError { id, error: RpcError::new(errors::INVALID_REQUEST, fault) })
        }
    }
}

fn parse_error(message: String) -> RpcMessageError {
    RpcMessageError { id: None, error: RpcError::new(errors::PARSE_ERROR, message) }
}

/// Builds a value and notes the first problem in a message that is valid JSON.
#[derive(Clone, Copy)]
struct StrictJsonVisitor<'a> {
    depth: usize,
    fault: &'a Cell<Option<&'static str>>,
}

impl StrictJsonVisitor<'_> {
    fn nested(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for StrictJsonVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth < MESSAGE_DEPTH_MAX {
            return deserializer.deserialize_any(self);
        }
        // Skipping needs no stack, so the depth of the rest does not matter.
        self.fault.set(Some(NESTED_TOO_DEEPLY));
        deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Value::Null)
    }
}

impl<'de> Visitor<'de> for StrictJsonVisitor<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.nested())?;
            if fields.insert(name, value).is_some() {
                self.fault.set(Some(DUPLICATE_MEMBER));
            }
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.nested())? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse_failure(text: &str) -> (i64, Option<Value>) {
        let rejection = parse_strict(text.as_bytes()).expect_err("this is no message");
        (rejection.error.code, rejection.id)
    }

    #[test]
    fn valid_json_is_parsed() {
        let text = r#"{"id":"a","params":{"x":[1,null,true,-1.5,"ä\n",18446744073709551615]}}"#;
        assert_eq!(parse_strict(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn invalid_json_is_a_parse_error() {
        for text in ["{", "nonsense", "{\"a\":1} x", "{\"a\":\"\\ud800\"}", "", "[1,]", "1e999"] {
            assert_eq!(parse_failure(text), (errors::PARSE_ERROR, None), "{text}");
        }
        assert_eq!(parse_strict(b"{\"a\":\"\xc3\x28\"}").unwrap_err().error.code, errors::PARSE_ERROR);
    }

    #[test]
    fn rejects_duplicates_and_depth_with_the_request_id() {
        let one = Some(json!(1));
        assert_eq!(parse_failure(r#"{"method":"a","method":"b","id":1}"#), (errors::INVALID_REQUEST, one.clone()));
        assert_eq!(parse_failure(r#"{"params":{"a":{"b":1,"\u0062":2}},"id":1}"#), (errors::INVALID_REQUEST, one));
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse_strict(deep(MESSAGE_DEPTH_MAX - 1).as_bytes()).is_ok());
        for levels in [MESSAGE_DEPTH_MAX, 1_000, 1_000_000] {
            assert_eq!(parse_failure(&deep(levels)), (errors::INVALID_REQUEST, None), "{levels}");
        }
    }
}
