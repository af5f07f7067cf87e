//! Parses JSON-RPC requests, builds responses, and defines the error codes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};
use stead_engine::{Error, ErrorKind};

use crate::{
    error_rows::error_row,
    limits::ID_BYTES_MAX,
    native::to_json_text,
    strict_json::{StrictJsonError, StrictJsonParserReturnedPart, parse_strict},
};

const JSONRPC_VERSION: &str = "2.0";

/// The error codes that the JSON-RPC server returns.
pub mod errors {
    /// The JSON-RPC error code for a message that is not JSON.
    pub const PARSE_ERROR: i64 = -32700;
    /// The JSON-RPC error code for a message that is not a valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// The JSON-RPC error code for a method that does not exist.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The JSON-RPC error code for invalid parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// The JSON-RPC error code for a failure of the server or the operating system.
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The JSON-RPC error code for a caller that exceeded its rate limit. The error member `data.error.retry_after_ms`
    /// says after how many milliseconds the client should retry.
    pub const RATE_LIMITED: i64 = -32000;
    /// The JSON-RPC error code for a call that a policy rule denies.
    pub const POLICY_DENIED: i64 = -32001;
    /// The JSON-RPC error code for a call that needs approval. A client should repeat the unchanged call after a person
    /// has approved it.
    pub const APPROVAL_PENDING: i64 = -32002;
    /// The JSON-RPC error code for a client that is not authenticated.
    pub const AUTHENTICATION_FAILED: i64 = -32003;
    /// The JSON-RPC error code for a failed call, whose `data` is the dialect's error object.
    pub const CALL_FAILED: i64 = -32004;
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RpcError {
    pub(super) code: i64,
    pub(super) message: Cow<'static, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
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
}

/// Returns whether `capabilities.invoke` reports an error kind as a JSON-RPC error, not as a result.
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
    pub(super) id: Option<Value>,
    pub(super) error: RpcError,
}

impl RpcMessageError {
    pub(super) fn invalid_request(id: Option<Value>, message: &'static str) -> Self {
        Self { id, error: RpcError::new(errors::INVALID_REQUEST, message) }
    }

    /// Builds the response to an invalid message. JSON-RPC requires a null id if the id of the request is unknown.
    pub(super) fn into_response(self) -> String {
        response(&self.id.unwrap_or_default(), Err(self.error))
    }
}

/// Returns an id that a response can repeat exactly: null, a short string or an integer.
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
            let message = "params must be an object with the parameters by name, not an array";
            Err(RpcMessageError { id, error: RpcError::new(errors::INVALID_PARAMS, message) })
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Err(RpcMessageError::invalid_request(id, "params must be an object"))
        }
    }
}

/// Builds the response to a request; a result is the text of a JSON value.
pub(super) fn response(id: &Value, result: Result<String, RpcError>) -> String {
    let (member, json) = match result {
        Ok(result) => ("result", result),
        Err(error) => ("error", to_json_text(&error)),
    };
    format!("{{\"jsonrpc\":\"{JSONRPC_VERSION}\",\"id\":{id},\"{member}\":{json}}}")
}

pub(super) fn parse_message(bytes: &[u8]) -> Result<Value, RpcMessageError> {
    parse_strict(bytes, StrictJsonParserReturnedPart::Everything).map_err(|error| match error {
        StrictJsonError::Malformed { reason } => {
            RpcMessageError { id: None, error: RpcError::new(errors::PARSE_ERROR, reason) }
        }
        StrictJsonError::Rejected { reason, kept } => {
            RpcMessageError::invalid_request(kept.get("id").and_then(echoable_id), reason)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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

    #[test]
    fn rejected_json_gets_its_error_code_and_the_request_id() {
        for (text, code, id) in [
            ("{", errors::PARSE_ERROR, None),
            (r#"{"method":"a","method":"b","id":1}"#, errors::INVALID_REQUEST, Some(json!(1))),
            (r#"{"params":{"a":{"b":1,"\u0062":2}},"id":"x"}"#, errors::INVALID_REQUEST, Some(json!("x"))),
            (r#"{"a":1,"a":2,"id":{}}"#, errors::INVALID_REQUEST, None),
        ] {
            let rejection = parse_message(text.as_bytes()).unwrap_err();
            assert_eq!((rejection.error.code, rejection.id), (code, id), "{text}");
        }
    }
}
