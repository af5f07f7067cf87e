//! A message as a value, checked on the way: UTF-8, JSON, no member twice, bounded depth. Parsers disagree about members
//! that come twice, and what one judge reads another must not read differently.

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{
    code::{self, ErrorObject},
    message::{Refused, id_of},
};
use crate::limits::MESSAGE_DEPTH_MAX;

const TWICE: &str = "a member of an object comes twice";
const TOO_DEEP: &str = "the message is nested too deeply";

/// Reads one message.
pub(crate) fn read(bytes: &[u8]) -> Result<Value, Refused> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        parse_error(format!("the message is not UTF-8: byte {} does not fit", error.valid_up_to()))
    })?;
    let fault = Cell::new(None);
    let mut parser = serde_json::Deserializer::from_str(text);
    let value = Strict { depth: 0, fault: &fault }
        .deserialize(&mut parser)
        .and_then(|value| parser.end().map(|()| value))
        .map_err(|error| parse_error(format!("the message is not JSON: {error}")))?;
    match fault.get() {
        None => Ok(value),
        Some(fault) => {
            let id = value.get("id").and_then(id_of);
            Err(Refused { id, error: ErrorObject::new(code::INVALID_REQUEST, fault) })
        }
    }
}

fn parse_error(message: String) -> Refused {
    Refused { id: None, error: ErrorObject::new(code::PARSE_ERROR, message) }
}

/// Builds a value and remembers what is wrong with it although it is JSON.
#[derive(Clone, Copy)]
struct Strict<'a> {
    depth: usize,
    fault: &'a Cell<Option<&'static str>>,
}

impl Strict<'_> {
    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth < MESSAGE_DEPTH_MAX {
            return deserializer.deserialize_any(self);
        }
        // Passing over needs no stack, so even a hostile depth ends here.
        self.fault.set(Some(TOO_DEEP));
        deserializer.deserialize_ignored_any(IgnoredAny).map(|_| Value::Null)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            let value = map.next_value_seed(self.below())?;
            if fields.insert(name, value).is_some() {
                self.fault.set(Some(TWICE));
            }
        }
        Ok(Value::Object(fields))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.below())? {
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

    fn refused(text: &str) -> (i64, Option<Value>) {
        let refused = read(text.as_bytes()).expect_err("this is no message");
        (refused.error.code, refused.id)
    }

    #[test]
    fn what_is_json_is_read_as_it_is() {
        let text = r#"{"id":"a","params":{"x":[1,null,true,-1.5,"ä\n",18446744073709551615]}}"#;
        assert_eq!(read(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn what_is_not_json_is_a_parse_error() {
        for text in ["{", "nonsense", "{\"a\":1} x", "{\"a\":\"\\ud800\"}", "", "[1,]", "1e999"] {
            assert_eq!(refused(text), (code::PARSE_ERROR, None), "{text}");
        }
        assert_eq!(read(b"{\"a\":\"\xc3\x28\"}").unwrap_err().error.code, code::PARSE_ERROR);
    }

    #[test]
    fn ambiguity_and_depth_are_refused_and_the_sender_is_told() {
        let one = Some(json!(1));
        assert_eq!(refused(r#"{"method":"a","method":"b","id":1}"#), (code::INVALID_REQUEST, one.clone()));
        assert_eq!(refused(r#"{"params":{"a":{"b":1,"\u0062":2}},"id":1}"#), (code::INVALID_REQUEST, one));
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        assert!(read(deep(MESSAGE_DEPTH_MAX - 1).as_bytes()).is_ok());
        for levels in [MESSAGE_DEPTH_MAX, 1_000, 1_000_000] {
            assert_eq!(refused(&deep(levels)), (code::INVALID_REQUEST, None), "{levels}");
        }
    }
}
