//! Checks each MCP message before the MCP library parses it. A line must be one object in strict JSON with a valid id.

use std::borrow::Cow;

use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde_json::Value;

use crate::{
    limits::ID_BYTES_MAX,
    strict_json::{StrictJsonError, StrictJsonParserReturnedPart, parse_strict},
};

#[derive(Debug, Default)]
pub(crate) struct McpMessageIdAndMethod {
    pub(crate) id: Option<RequestId>,
    pub(crate) method: Option<String>,
}

#[derive(Debug)]
pub(crate) struct McpMessageError {
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

pub(crate) fn check_line(line: &[u8]) -> Result<McpMessageIdAndMethod, McpMessageError> {
    let (message, fault) = match parse_strict(line, StrictJsonParserReturnedPart::Members(&["id", "method"])) {
        Ok(message) => (message, None),
        Err(StrictJsonError::Rejected { reason, kept }) => (kept, Some(reason)),
        Err(StrictJsonError::Malformed { reason }) => return Err(McpMessageError::parse_error(reason)),
    };
    let Value::Object(mut members) = message else {
        return Err(McpMessageError::invalid_request(None, "a message must be one JSON object"));
    };
    let given_id = members.remove("id");
    let id = given_id.as_ref().and_then(request_id);
    if let Some(fault) = fault {
        return Err(McpMessageError::invalid_request(id, fault));
    }
    let method = match members.remove("method") {
        None => None,
        Some(Value::String(method)) => Some(method),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            return Err(McpMessageError::invalid_request(id, "the method must be a string"));
        }
    };
    if given_id.is_some() && id.is_none() {
        return Err(McpMessageError::invalid_request(None, "the id must be a short string or an integer"));
    }
    Ok(McpMessageIdAndMethod { id, method })
}

pub(super) fn request_id(value: &Value) -> Option<RequestId> {
    match value {
        Value::String(text) if text.len() <= ID_BYTES_MAX => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
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
        for line in [&b"{"[..], b"\xff\xfe"] {
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
}
