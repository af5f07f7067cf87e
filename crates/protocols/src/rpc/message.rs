//! Parses requests and builds responses.

use serde_json::{Map, Value, json};

use super::errors::{self, RpcError};
use crate::limits::ID_BYTES_MAX;

const JSONRPC_VERSION: &str = "2.0";

/// A request, or a notification if it has no id.
#[derive(Debug, PartialEq)]
pub(super) struct RpcRequest {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct RpcMessageError {
    /// The request that gets the error.
    pub(super) id: Option<Value>,
    pub(super) error: RpcError,
}

impl RpcMessageError {
    pub(super) fn invalid_request(id: Option<Value>, message: &'static str) -> Self {
        Self { id, error: RpcError::new(errors::INVALID_REQUEST, message) }
    }

    /// The protocol requires a null id if it is unknown.
    pub(super) fn into_response(self) -> Value {
        response(self.id.unwrap_or_default(), Err(self.error))
    }
}

/// Accepts an id that can be echoed exactly: null, a short string or an integer.
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
            RpcMessageError::invalid_request(None, "the id must be null, a whole number or a short string")
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
        Some(Value::Object(params)) => Ok(RpcRequest { id, method, params }),
        Some(Value::Array(params)) if params.is_empty() => Ok(RpcRequest { id, method, params: Map::new() }),
        Some(Value::Array(_)) => {
            let error = RpcError::new(errors::INVALID_PARAMS, "parameters are given by name, as an object");
            Err(RpcMessageError { id, error })
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Err(RpcMessageError::invalid_request(id, "the params must be an object"))
        }
    }
}

pub(super) fn response(id: Value, result: Result<Value, RpcError>) -> Value {
    match result {
        Ok(value) => json!({ "jsonrpc": JSONRPC_VERSION, "id": id, "result": value }),
        Err(error) => json!({ "jsonrpc": JSONRPC_VERSION, "id": id, "error": error.to_json() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn echoes_ids_and_rejects_unusable_ones() {
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
    fn invalid_requests_get_a_reason() {
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
}
