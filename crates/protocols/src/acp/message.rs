//! Classifies a line as a request, a notification or a response, and finds its id and method. The proxy forwards no
//! message that two JSON parsers could interpret differently. A message is rejected if it contains a JSON-RPC member,
//! such as `id` or `method`, twice.

use std::ops::Range;

use serde_json::{Value, json};

use super::{
    errors::AcpError,
    json_members::{self, MalformedJsonObjectError},
};
use crate::lines::into_line;

const JSONRPC_VERSION: &str = "2.0";
/// The JSON-RPC members that determine the kind of a message.
const ENVELOPE_MEMBERS: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// A message id is stored as normalized JSON text, so that equal ids compare equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct AcpMessageId(pub(super) String);

impl AcpMessageId {
    pub(super) fn from_json(value: &Value) -> Self {
        Self(value.to_string())
    }
}

/// The params, the result and the error of a message are stored as byte ranges of its line.
#[derive(Debug, PartialEq)]
pub(super) struct AcpMessage {
    pub(super) kind: AcpMessageKind,
    pub(super) params: Option<Range<usize>>,
    pub(super) result: Option<Range<usize>>,
    pub(super) error: Option<Range<usize>>,
}

#[derive(Debug, PartialEq)]
pub(super) enum AcpMessageKind {
    Request { id: AcpMessageId, method: String },
    Notification { method: String },
    Response { id: AcpMessageId },
}

#[derive(Debug, PartialEq)]
pub(super) struct AcpMessageError {
    pub(super) id: Option<AcpMessageId>,
    pub(super) error: AcpError,
}

impl AcpMessage {
    pub(super) fn parse(line: &[u8]) -> Result<Self, AcpMessageError> {
        let members = json_members::scan_members(line)
            .map_err(|MalformedJsonObjectError| AcpMessageError { id: None, error: AcpError::parse_error() })?;
        let mut found: [Option<Range<usize>>; ENVELOPE_MEMBERS.len()] = Default::default();
        let mut is_duplicate = false;
        for member in members {
            let name = json_members::member_name(line, &member);
            if let Some(index) = ENVELOPE_MEMBERS.iter().position(|known| *known == name) {
                is_duplicate |= found[index].replace(member.value).is_some();
            }
        }
        let [_, id, method, params, result, error] = found;
        let value = |range: Range<usize>| serde_json::from_slice::<Value>(&line[range]).ok();
        let id =
            id.and_then(value).filter(|id| !id.is_object() && !id.is_array()).map(|id| AcpMessageId::from_json(&id));
        let rejected = |reason: &str, id: Option<AcpMessageId>| {
            Err(AcpMessageError { id, error: AcpError::invalid_request(reason) })
        };
        // Only a request gets a response. A reply to any other message could be mistaken for the response to another
        // request.
        let request_id = id.clone().filter(|_| method.is_some());
        if is_duplicate {
            return rejected("duplicate member", request_id);
        }
        let kind = match (method.and_then(value), id) {
            (Some(Value::String(method)), Some(id)) => AcpMessageKind::Request { id, method },
            (Some(Value::String(method)), None) => AcpMessageKind::Notification { method },
            (Some(_), id) => return rejected("the method must be a string", id),
            (None, Some(id)) if result.is_some() || error.is_some() => AcpMessageKind::Response { id },
            (None, _) => return rejected("the message has neither a method nor a result", None),
        };
        Ok(Self { kind, params, result, error })
    }

    /// The params of a message as JSON text, or an empty object if the message has no params.
    pub(super) fn params_bytes<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        self.params.clone().map_or(b"{}", |range| &line[range])
    }
}

pub(super) fn result_line(id: &AcpMessageId, result: Result<Value, AcpError>) -> Vec<u8> {
    match result {
        Ok(result) => {
            let id: Value = serde_json::from_str(&id.0).unwrap_or_default();
            into_line(json!({ "jsonrpc": JSONRPC_VERSION, "id": id, "result": result }).to_string())
        }
        Err(error) => error_line(Some(id), &error),
    }
}

pub(super) fn error_line(id: Option<&AcpMessageId>, error: &AcpError) -> Vec<u8> {
    let id: Value = id.and_then(|id| serde_json::from_str(&id.0).ok()).unwrap_or_default();
    into_line(json!({ "jsonrpc": JSONRPC_VERSION, "id": id, "error": error.to_json() }).to_string())
}

pub(super) fn request_line(id: &str, method: &str, params: &Value) -> Vec<u8> {
    into_line(json!({ "jsonrpc": JSONRPC_VERSION, "id": id, "method": method, "params": params }).to_string())
}

pub(super) fn notification_line(method: &str, params: &Value) -> Vec<u8> {
    into_line(json!({ "jsonrpc": JSONRPC_VERSION, "method": method, "params": params }).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_kind(line: &str) -> Result<AcpMessageKind, i64> {
        AcpMessage::parse(line.as_bytes()).map(|message| message.kind).map_err(|rejected| rejected.error.code())
    }

    #[test]
    fn classifies_lines_by_message_kind() {
        let id = |text: &str| AcpMessageId(text.to_owned());
        let method = || "m".to_owned();
        assert_eq!(
            parse_kind(r#"{"id":1,"method":"m"}"#),
            Ok(AcpMessageKind::Request { id: id("1"), method: method() })
        );
        assert_eq!(
            parse_kind(r#"{"\u0069d":"\u0061","m\u0065thod":"\u006d"}"#),
            Ok(AcpMessageKind::Request { id: id("\"a\""), method: method() })
        );
        assert_eq!(parse_kind(r#"{"method":"m","params":[]}"#), Ok(AcpMessageKind::Notification { method: method() }));
        assert_eq!(parse_kind(r#"{"id":null,"result":null}"#), Ok(AcpMessageKind::Response { id: id("null") }));
        assert_eq!(parse_kind(r#"{"id":"x","error":{}}"#), Ok(AcpMessageKind::Response { id: id("\"x\"") }));
    }

    #[test]
    fn ambiguous_messages_are_rejected() {
        for (line, code) in [
            ("", -32700),
            ("[]", -32700),
            ("log line", -32700),
            (r#"{"method":"session/update","method":"fs/write_text_file"}"#, -32600),
            (r#"{"id":1,"id":2,"method":"m"}"#, -32600),
            (r#"{"id":1,"method":"m","params":{},"p\u0061rams":{}}"#, -32600),
            (r#"{"id":1,"method":7}"#, -32600),
            (r#"{"id":1}"#, -32600),
            ("{}", -32600),
        ] {
            assert_eq!(parse_kind(line), Err(code), "{line}");
        }
    }
}
