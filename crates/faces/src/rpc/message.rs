//! One request out of a value, and one answer as a value.

use serde_json::{Map, Value, json};

use super::code::{self, ErrorObject};
use crate::limits::ID_BYTES_MAX;

/// The version that every message names.
const VERSION: &str = "2.0";

/// A request, or a notification where there is no id.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) id: Option<Value>,
    pub(super) method: String,
    pub(super) params: Map<String, Value>,
}

/// Why a message is no request.
#[derive(Debug, PartialEq)]
pub(crate) struct Refused {
    /// Whom to tell.
    pub(super) id: Option<Value>,
    /// What to tell.
    pub(super) error: ErrorObject,
}

impl Refused {
    pub(super) fn request(id: Option<Value>, message: &'static str) -> Self {
        Self { id, error: ErrorObject::new(code::INVALID_REQUEST, message) }
    }

    /// An unknown id is null, as the protocol wants it.
    pub(super) fn answer(self) -> Value {
        answer(self.id.unwrap_or_default(), Err(self.error))
    }
}

/// An id that can be echoed exactly: null, a short string or a whole number.
pub(super) fn id_of(value: &Value) -> Option<Value> {
    let fits = match value {
        Value::Null => true,
        Value::String(text) => text.len() <= ID_BYTES_MAX,
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
    };
    fits.then(|| value.clone())
}

/// Reads one request.
pub(super) fn request(value: Value) -> Result<Request, Refused> {
    let Value::Object(mut fields) = value else {
        return Err(Refused::request(None, "a request is one JSON object"));
    };
    let id = match fields.remove("id") {
        None => None,
        Some(given) => Some(id_of(&given).ok_or_else(|| {
            Refused::request(None, "the id must be null, a whole number or a short string")
        })?),
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some(VERSION) {
        return Err(Refused::request(id, "jsonrpc must be \"2.0\""));
    }
    let Some(Value::String(method)) = fields.remove("method") else {
        return Err(Refused::request(id, "the method must be a string"));
    };
    match fields.remove("params") {
        None => Ok(Request { id, method, params: Map::new() }),
        Some(Value::Object(params)) => Ok(Request { id, method, params }),
        Some(Value::Array(params)) if params.is_empty() => Ok(Request { id, method, params: Map::new() }),
        Some(Value::Array(_)) => {
            let error = ErrorObject::new(code::INVALID_PARAMS, "parameters are given by name, as an object");
            Err(Refused { id, error })
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            Err(Refused::request(id, "the params must be an object"))
        }
    }
}

/// An answer to this id.
pub(super) fn answer(id: Value, outcome: Result<Value, ErrorObject>) -> Value {
    match outcome {
        Ok(result) => json!({ "jsonrpc": VERSION, "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": VERSION, "id": id, "error": error.json() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_kept_and_what_cannot_be_echoed_is_refused() {
        for id in [json!(null), json!(0), json!(-7), json!(u64::MAX), json!(""), json!("a\"b")] {
            let read = request(json!({ "jsonrpc": "2.0", "id": id, "method": "m" })).unwrap();
            assert_eq!(read.id, Some(id));
        }
        for id in [json!(1.5), json!(1e300), json!({}), json!([]), json!(true), json!("x".repeat(257))] {
            let refused = request(json!({ "jsonrpc": "2.0", "id": id, "method": "m" })).unwrap_err();
            assert_eq!((refused.id, refused.error.code), (None, code::INVALID_REQUEST), "{id}");
        }
        assert_eq!(request(json!({ "jsonrpc": "2.0", "method": "m" })).unwrap().id, None);
    }

    #[test]
    fn what_is_no_request_is_told_why() {
        let codes = [
            (json!(1), code::INVALID_REQUEST),
            (json!({}), code::INVALID_REQUEST),
            (json!({ "jsonrpc": "1.0", "id": 1, "method": "m" }), code::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": 1 }), code::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "result": {} }), code::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": "x" }), code::INVALID_REQUEST),
            (json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": [1] }), code::INVALID_PARAMS),
        ];
        for (message, code) in codes {
            assert_eq!(request(message.clone()).unwrap_err().error.code, code, "{message}");
        }
        assert!(request(json!({ "jsonrpc": "2.0", "id": 1, "method": "m", "params": [] })).is_ok());
    }
}
