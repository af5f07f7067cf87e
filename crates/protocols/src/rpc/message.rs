//! JSON-RPC messages: parsing requests, building responses, and the error codes.

use std::{borrow::Cow, cell::Cell, fmt};

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value, json};
use stead_engine::{Error, ErrorKind};

use crate::{
    error_rows::error_row,
    limits::{ID_BYTES_MAX, MESSAGE_DEPTH_MAX},
};

const JSONRPC_VERSION: &str = "2.0";
const DUPLICATE_MEMBER: &str = "an object has a duplicate member";
const NESTED_TOO_DEEPLY: &str = "the message is nested too deeply";

/// JSON-RPC error codes.
pub mod errors {
    /// The message is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The message is not a valid JSON-RPC request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The parameters are invalid.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The server or the operating system failed.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The caller exceeded its rate limit. `data.error.retry_after_ms` says when to retry.
    pub const RATE_LIMITED: i64 = -32000;
    /// A policy rule denies the call.
    pub const POLICY_DENIED: i64 = -32001;
    /// The call needs approval. The client should repeat the call unchanged after it is approved.
    pub const APPROVAL_PENDING: i64 = -32002;
    /// The client is not authenticated.
    pub const AUTHENTICATION_FAILED: i64 = -32003;
    /// The call failed; the `data` of the JSON-RPC error is the error object of the dialect.
    pub const CALL_FAILED: i64 = -32004;
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: Cow<'static, str>,
    pub(super) data: Option<Box<Value>>,
}

impl RpcError {
    pub(super) fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub(super) fn with_data(mut self, data: impl Into<Value>) -> Self {
        self.data = Some(Box::new(data.into()));
        self
    }

    pub(super) fn from_error(error: &Error, data: impl Into<Value>) -> Self {
        Self::new(error_row(error.kind).rpc, error.message.clone()).with_data(data)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(data) = &self.data {
            error["data"] = data.as_ref().clone();
        }
        error
    }
}

/// Whether errors of this kind stay JSON-RPC errors even in `capabilities.invoke`, which wraps other errors in a
/// result.
pub(super) fn has_protocol_code(kind: ErrorKind) -> bool {
    matches!(error_row(kind).rpc, errors::RATE_LIMITED | errors::POLICY_DENIED | errors::APPROVAL_PENDING)
}

/// A JSON-RPC request; a notification is a request without an id.
#[derive(Debug, PartialEq)]
pub(super) struct RpcRequest {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct RpcMessageError {
    /// The id of the rejected request, if the id is known.
    pub(super) id: Option<Value>,
    pub(super) error: RpcError,
}

impl RpcMessageError {
    pub(super) fn invalid_request(id: Option<Value>, message: &'static str) -> Self {
        Self { id, error: RpcError::new(errors::INVALID_REQUEST, message) }
    }

    /// The error response. If the id of the request is unknown, the id of the response is null, as JSON-RPC requires.
    pub(super) fn into_response(self) -> Value {
        response(self.id.unwrap_or_default(), Err(self.error))
    }
}

/// The id of a request if it is null, a short string or an integer, so that the response can repeat it exactly.
pub(super) fn echoable_id(value: &Value) -> Option<Value> {
    let fits = match value {
        Value::Null => true,
        Value::String(text) => text.len() <= ID_BYTES_MAX,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    };
    fits.then(|| value.clone())
}

pub(super) fn parse_request(value: Value) -> Result<RpcRequest, RpcMessageError> {
    let Value::Object(mut fields) = value else {
        return Err(RpcMessageError::invalid_request(None, "a request must be one JSON object"));
    };
    let id = match fields.remove("id") {
        None => None,
        Some(given) => Some(echoable_id(&given).ok_or_else(|| {
            RpcMessageError::invalid_request(None, "the id must be null, an integer or a short string")
        })?),
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some(JSONRPC_VERSION) {
        return Err(RpcMessageError::invalid_request(id, "jsonrpc must be \"2.0\""));
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        return Err(RpcMessageError::invalid_request(id, "the method must be a string"));
    };
    match fields.remove("params") {
        None => Ok(RpcRequest { id, method, params: Map::new() }),
        Some(Value::Array(params)) if params.is_empty() => Ok(RpcRequest { id, method, params: Map::new() }),
        Some(Value::Object(params)) => Ok(RpcRequest { id, method, params }),
        Some(Value::Array(_)) => {
            let error = RpcError::new(
                errors::INVALID_PARAMS,
                "params must be an object with the parameters by name, not an array",
            );
            Err(RpcMessageError { id, error })
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Err(RpcMessageError::invalid_request(id, "params must be an object"))
        }
    }
}

pub(super) fn response(id: Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(value) => json!({ "jsonrpc": JSONRPC_VERSION, "id": id, "result": value }),
        Err(error) => json!({ "jsonrpc": JSONRPC_VERSION, "id": id, "error": error.to_json() }),
    }
}

/// Parses a message strictly: UTF-8, JSON, no duplicate members, limited nesting. A message with duplicate members is
/// rejected, because two parsers could use different values of the duplicated member.
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

/// Builds a JSON value from a message. If the message must be rejected although it is valid JSON, the visitor stores
/// the reason in `fault`.
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
        // The value is skipped. The parser skips a value without recursion, so even a deeply nested value cannot
        // overflow the stack.
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

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: de::Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_returned_as_given_and_unusable_ones_rejected() {
        for id in [json!(null), json!(0), json!(-7), json!(u64::MAX), json!(""), json!("a\"b")] {
            let request = parse_request(json!({ "jsonrpc": "2.0", "id": id, "method": "m" })).unwrap();
            assert_eq!(request.id, Some(id));
        }
        for id in [json!(1.5), json!(1e300), json!({}), json!([]), json!(true), json!("x".repeat(257))] {
            let error = parse_request(json!({ "jsonrpc": "2.0", "id": id, "method": "m" })).unwrap_err();
            assert_eq!((error.id, error.error.code), (None, errors::INVALID_REQUEST), "{id}");
        }
        assert_eq!(parse_request(json!({ "jsonrpc": "2.0", "method": "m" })).unwrap().id, None);
    }

    #[test]
    fn each_invalid_request_gets_its_error_code() {
        let codes = [
            (json!(1), errors::INVALID_REQUEST),
            (json!({}), errors::INVALID_REQUEST),
            (json!({ "jsonrpc": "1.0", "id": 1, "method": "m" }), errors::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": 1 }), errors::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), errors::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": "x" }), errors::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": [1] }), errors::INVALID_PARAMS),
        ];
        for (message, code) in codes {
            assert_eq!(parse_request(message.clone()).unwrap_err().error.code, code, "{message}");
        }
        assert!(parse_request(json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": [] })).is_ok());
    }

    fn parse_failure(text: &str) -> (i64, Option<Value>) {
        let rejection = parse_strict(text.as_bytes()).expect_err("the message is invalid");
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
    fn duplicate_members_and_deep_nesting_are_rejected_with_the_request_id() {
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
