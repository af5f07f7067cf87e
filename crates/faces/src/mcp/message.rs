//! One line, checked before anything believes it: UTF-8, JSON, one object, no member twice, bounded depth, an id that
//! is one. Parsers disagree about members that come twice, and what one judge reads another must not read differently.

use std::{borrow::Cow, cell::Cell, fmt};

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::limits::{ID_BYTES_MAX, MESSAGE_DEPTH_MAX};

/// The byte order mark that a parser may ignore.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What the outermost object says.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// The request id; nothing for a notification.
    pub(crate) id: Option<RequestId>,
    /// The method; nothing for a response.
    pub(crate) method: Option<String>,
}

/// Why a line is not a message.
#[derive(Debug)]
pub(crate) struct Refused {
    /// Whom to tell.
    pub(crate) id: Option<RequestId>,
    /// What to tell.
    pub(crate) error: ErrorData,
}

impl Refused {
    pub(super) fn request(id: Option<RequestId>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { id, error: ErrorData::new(ErrorCode::INVALID_REQUEST, message, None) }
    }

    fn parse(message: String) -> Self {
        Self { id: None, error: ErrorData::new(ErrorCode::PARSE_ERROR, message, None) }
    }
}

/// The line without a byte order mark.
pub(super) fn bare(line: &[u8]) -> &[u8] {
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

/// Checks one line.
pub(crate) fn inspect(line: &[u8]) -> Result<Envelope, Refused> {
    let text = std::str::from_utf8(line).map_err(|error| {
        Refused::parse(format!("the message is not UTF-8: byte {} does not fit", error.valid_up_to()))
    })?;
    let fault = Cell::new(None);
    let mut top = Top::default();
    let mut parser = serde_json::Deserializer::from_str(text);
    let walked =
        Outermost { top: &mut top, fault: &fault }.deserialize(&mut parser).and_then(|()| parser.end());
    if let Err(error) = walked {
        return Err(Refused::parse(format!("the message is not JSON: {error}")));
    }
    let id = top.id.as_ref().and_then(request_id);
    if let Some(fault) = fault.get() {
        return Err(Refused::request(id, fault));
    }
    if top.id.is_some() && id.is_none() {
        return Err(Refused::request(None, "the id must be a short string or a whole number"));
    }
    Ok(Envelope { id, method: top.method })
}

/// A JSON value as a request id, if it is one.
pub(super) fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(text) if text.len() <= ID_BYTES_MAX => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[derive(Debug, Default)]
struct Top {
    id: Option<Value>,
    method: Option<String>,
}

/// The first thing found wrong in a message that is JSON all the same.
type Found<'a> = &'a Cell<Option<&'static str>>;

const TWICE: &str = "a member of an object comes twice";
const TOO_DEEP: &str = "the message is nested too deeply";
const NOT_AN_OBJECT: &str = "a message is one JSON object";
const METHOD_NOT_TEXT: &str = "the method must be a string";

struct Outermost<'a> {
    top: &'a mut Top,
    fault: Found<'a>,
}

impl<'de> DeserializeSeed<'de> for Outermost<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Outermost<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = Vec::new();
        while let Some(name) = map.next_key_seed(Name)? {
            match &*name {
                "id" => self.top.id = Some(map.next_value()?),
                "method" => match map.next_value()? {
                    Value::String(method) => self.top.method = Some(method),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        self.fault.set(Some(METHOD_NOT_TEXT));
                    }
                },
                _ => map.next_value_seed(Inner { depth: 1, fault: self.fault })?,
            }
            names.push(name);
        }
        note_twice(names, self.fault);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.fault.set(Some(NOT_AN_OBJECT));
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        not_an_object(self.fault)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        not_an_object(self.fault)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        not_an_object(self.fault)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        not_an_object(self.fault)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        not_an_object(self.fault)
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        not_an_object(self.fault)
    }
}

fn not_an_object<E>(fault: Found<'_>) -> Result<(), E> {
    fault.set(Some(NOT_AN_OBJECT));
    Ok(())
}

/// Everything below the outermost object: looked at, never kept.
#[derive(Clone, Copy)]
struct Inner<'a> {
    depth: usize,
    fault: Found<'a>,
}

impl<'de> DeserializeSeed<'de> for Inner<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth < MESSAGE_DEPTH_MAX {
            return deserializer.deserialize_any(self);
        }
        // Passing over needs no stack, so even a hostile depth ends here.
        self.fault.set(Some(TOO_DEEP));
        deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ())
    }
}

impl<'de> Visitor<'de> for Inner<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = Vec::new();
        while let Some(name) = map.next_key_seed(Name)? {
            names.push(name);
            map.next_value_seed(Inner { depth: self.depth + 1, ..self })?;
        }
        note_twice(names, self.fault);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(Inner { depth: self.depth + 1, ..self })?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

fn note_twice(mut names: Vec<Cow<'_, str>>, fault: Found<'_>) {
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        fault.set(Some(TWICE));
    }
}

/// A member's name, borrowed where it needs no unescaping.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a member's name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(line: &[u8]) -> (i32, Option<RequestId>) {
        let refused = inspect(line).expect_err("this is no message");
        (refused.error.code.0, refused.id)
    }

    #[test]
    fn a_message_is_read() {
        let envelope =
            inspect(br#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":[1,null,true,-1.5]}}"#)
                .unwrap();
        assert_eq!(envelope.id, Some(RequestId::String("a".into())));
        assert_eq!(envelope.method.as_deref(), Some("ping"));
    }

    #[test]
    fn what_is_not_json_is_a_parse_error() {
        for line in [
            &b"{"[..],
            b"nonsense",
            b"{\"a\":1} x",
            b"\xff\xfe",
            b"{\"a\":\"\xc3\x28\"}",
            b"{\"a\":\"\\ud800\"}",
        ] {
            assert_eq!(refused(line), (-32700, None), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn what_is_not_one_clear_object_is_an_invalid_request() {
        for line in ["[]", "7", "\"x\"", "null", "true", "{\"id\":null}", "{\"id\":1.5}", "{\"id\":{}}"] {
            assert_eq!(refused(line.as_bytes()).0, -32600, "{line}");
        }
        let one = Some(RequestId::Number(1));
        assert_eq!(refused(br#"{"method":"a","method":"b","id":1}"#), (-32600, one.clone()));
        assert_eq!(refused(br#"{"params":{"a":{"path":1,"p\u0061th":2}},"id":1}"#), (-32600, one.clone()));
        assert_eq!(refused(br#"{"method":5,"id":1}"#), (-32600, one));
    }

    #[test]
    fn depth_is_bounded_without_a_deep_stack() {
        let deep =
            |levels: usize| format!(r#"{{"params":{}1{},"id":1}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(inspect(deep(MESSAGE_DEPTH_MAX - 2).as_bytes()).is_ok());
        assert_eq!(refused(deep(MESSAGE_DEPTH_MAX + 1).as_bytes()), (-32600, Some(RequestId::Number(1))));
        assert_eq!(refused(deep(1_000_000).as_bytes()).0, -32600);
    }
}
