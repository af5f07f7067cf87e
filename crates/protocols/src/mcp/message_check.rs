//! Checks a line before it is parsed as a message: UTF-8, JSON, one object, no duplicate members, limited nesting, a
//! valid id. A message with duplicate members is rejected, because two parsers could use different values of the
//! duplicated member.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    fmt,
};

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::limits::{ID_BYTES_MAX, MESSAGE_DEPTH_MAX};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

#[derive(Debug, Default)]
pub(crate) struct McpMessageIdAndMethod {
    /// The request id; `None` in a notification.
    pub(crate) id: Option<RequestId>,
    /// The method name; `None` in a response.
    pub(crate) method: Option<String>,
}

#[derive(Debug)]
pub(crate) struct McpMessageError {
    /// The id of the rejected request, if the id is known.
    pub(crate) id: Option<RequestId>,
    pub(crate) error: ErrorData,
}

impl McpMessageError {
    pub(super) fn invalid_request(id: Option<RequestId>, message: impl Into<Cow<'static, str>>) -> Self {
        Self { id, error: ErrorData::new(ErrorCode::INVALID_REQUEST, message, None) }
    }

    fn parse_error(message: String) -> Self {
        Self { id: None, error: ErrorData::new(ErrorCode::PARSE_ERROR, message, None) }
    }
}

pub(super) fn strip_byte_order_mark(line: &[u8]) -> &[u8] {
    line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
}

pub(crate) fn check_line(line: &[u8]) -> Result<McpMessageIdAndMethod, McpMessageError> {
    let text = std::str::from_utf8(line).map_err(|error| {
        McpMessageError::parse_error(format!("the message is not UTF-8: invalid byte at {}", error.valid_up_to()))
    })?;
    let (fault, header) = (Cell::new(None), RefCell::default());
    let mut parser = serde_json::Deserializer::from_str(text);
    McpMessageCheckVisitor { depth: 0, header: &header, fault: &fault }
        .deserialize(&mut parser)
        .and_then(|()| parser.end())
        .map_err(|error| McpMessageError::parse_error(format!("the message is not JSON: {error}")))?;
    let header = header.into_inner();
    let id = header.id.as_ref().and_then(request_id);
    if let Some(fault) = fault.get() {
        return Err(McpMessageError::invalid_request(id, fault));
    }
    if header.id.is_some() && id.is_none() {
        return Err(McpMessageError::invalid_request(None, "the id must be a short string or an integer"));
    }
    Ok(McpMessageIdAndMethod { id, method: header.method })
}

pub(super) fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(text) if text.len() <= ID_BYTES_MAX => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Why a message must be rejected although it is valid JSON.
type JsonFaultCell<'a> = &'a Cell<Option<&'static str>>;

const DUPLICATE_MEMBER: &str = "an object has a duplicate member";
const NESTED_TOO_DEEPLY: &str = "the message is nested too deeply";
const NOT_AN_OBJECT: &str = "a message must be one JSON object";
const METHOD_NOT_TEXT: &str = "the method must be a string";

#[derive(Debug, Default)]
struct RawMcpIdAndMethod {
    id: Option<Value>,
    method: Option<String>,
}

/// Visits a message without storing it, except for the id and the method in the outermost object.
#[derive(Clone, Copy)]
struct McpMessageCheckVisitor<'a> {
    /// The number of objects and arrays that enclose the visited value. The depth of the whole message is 0.
    depth: usize,
    header: &'a RefCell<RawMcpIdAndMethod>,
    fault: JsonFaultCell<'a>,
}

impl McpMessageCheckVisitor<'_> {
    fn nested(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    fn visit_scalar<E>(self) -> Result<(), E> {
        if self.depth == 0 {
            self.fault.set(Some(NOT_AN_OBJECT));
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for McpMessageCheckVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth < MESSAGE_DEPTH_MAX {
            return deserializer.deserialize_any(self);
        }
        // The value is skipped. The parser skips a value without recursion, so even a deeply nested value cannot
        // overflow the stack.
        self.fault.set(Some(NESTED_TOO_DEEPLY));
        deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ())
    }
}

impl<'de> Visitor<'de> for McpMessageCheckVisitor<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut names = Vec::new();
        while let Some(name) = map.next_key_seed(JsonMemberNameSeed)? {
            match (self.depth, &*name) {
                (0, "id") => self.header.borrow_mut().id = Some(map.next_value()?),
                (0, "method") => match map.next_value()? {
                    Value::String(method) => self.header.borrow_mut().method = Some(method),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        self.fault.set(Some(METHOD_NOT_TEXT));
                    }
                },
                _ => map.next_value_seed(self.nested())?,
            }
            names.push(name);
        }
        flag_duplicates(names, self.fault);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        if self.depth == 0 {
            self.fault.set(Some(NOT_AN_OBJECT));
            while seq.next_element::<IgnoredAny>()?.is_some() {}
        }
        while seq.next_element_seed(self.nested())?.is_some() {}
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.visit_scalar()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.visit_scalar()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.visit_scalar()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.visit_scalar()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.visit_scalar()
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.visit_scalar()
    }
}

fn flag_duplicates(mut names: Vec<Cow<'_, str>>, fault: JsonFaultCell<'_>) {
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        fault.set(Some(DUPLICATE_MEMBER));
    }
}

/// Deserializes a member name, which is borrowed from the message if it has no escapes.
struct JsonMemberNameSeed;

impl<'de> DeserializeSeed<'de> for JsonMemberNameSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for JsonMemberNameSeed {
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

    fn check_failure(line: &[u8]) -> (i32, Option<RequestId>) {
        let rejection = check_line(line).expect_err("the message is invalid");
        (rejection.error.code.0, rejection.id)
    }

    #[test]
    fn valid_message_is_accepted() {
        let header =
            check_line(br#"{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":[1,null,true,-1.5]}}"#).unwrap();
        assert_eq!(header.id, Some(RequestId::String("a".into())));
        assert_eq!(header.method.as_deref(), Some("ping"));
    }

    #[test]
    fn invalid_json_is_a_parse_error() {
        for line in
            [&b"{"[..], b"nonsense", b"{\"a\":1} x", b"\xff\xfe", b"{\"a\":\"\xc3\x28\"}", b"{\"a\":\"\\ud800\"}"]
        {
            assert_eq!(check_failure(line), (-32700, None), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn ambiguous_or_non_object_is_an_invalid_request() {
        for line in ["[]", "7", "\"x\"", "null", "true", "{\"id\":null}", "{\"id\":1.5}", "{\"id\":{}}"] {
            assert_eq!(check_failure(line.as_bytes()).0, -32600, "{line}");
        }
        let one = Some(RequestId::Number(1));
        assert_eq!(check_failure(br#"{"method":"a","method":"b","id":1}"#), (-32600, one.clone()));
        assert_eq!(check_failure(br#"{"params":{"a":{"path":1,"p\u0061th":2}},"id":1}"#), (-32600, one.clone()));
        assert_eq!(check_failure(br#"{"method":5,"id":1}"#), (-32600, one));
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = |levels: usize| format!(r#"{{"params":{}1{},"id":1}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(check_line(deep(MESSAGE_DEPTH_MAX - 2).as_bytes()).is_ok());
        assert_eq!(check_failure(deep(MESSAGE_DEPTH_MAX + 1).as_bytes()), (-32600, Some(RequestId::Number(1))));
        assert_eq!(check_failure(deep(1_000_000).as_bytes()).0, -32600);
    }
}
