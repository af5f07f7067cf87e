//! Proxy chains: a conductor owns every connection, and messages for the successor are wrapped in an envelope. Ids stay,
//! because each side of a connection has its own id space.
//!
//! Translates lines; makes no decisions.

use std::sync::OnceLock;

use super::{
    json_splice,
    message::{AcpMessage, AcpMessageKind},
    router::CANCEL_METHOD,
};

/// The conductor's `initialize` method and its envelope method. Before version 5 of the official library both began with
/// an underscore.
const CONDUCTOR_METHODS: &[(&str, &str)] =
    &[("proxy/initialize", "proxy/successor"), ("_proxy/initialize", "_proxy/successor")];

/// Wraps and unwraps lines.
#[derive(Default)]
pub(super) struct SuccessorEnvelope {
    envelope: OnceLock<&'static str>,
}

/// The origin of a line that the conductor sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ConductorLine {
    /// The editor, or the predecessor in the chain.
    FromEditor(Vec<u8>),
    /// The agent, or the successor in the chain.
    FromAgent(Vec<u8>),
    /// A response from either side to a forwarded request.
    Response(Vec<u8>),
}

impl SuccessorEnvelope {
    /// Wraps a line for the successor. Responses and cancellations need no envelope.
    pub(super) fn wrap_line(&self, line: Vec<u8>) -> Vec<u8> {
        let Ok(message) = AcpMessage::parse(&line) else { return line };
        let (id, method) = match &message.kind {
            AcpMessageKind::Response { .. } => return line,
            AcpMessageKind::Notification { method } if method == CANCEL_METHOD => return line,
            AcpMessageKind::Notification { method } => (None, method),
            AcpMessageKind::Request { id, method } => (Some(id), method),
        };
        let envelope = self.envelope.get().unwrap_or(&CONDUCTOR_METHODS[0].1);
        let id = id.map(|id| format!("\"id\":{},", id.0)).unwrap_or_default();
        let method = serde_json::Value::from(method.as_str());
        let head = format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{envelope}\",\"params\":{{\"method\":{method}");
        let params = match &message.params {
            Some(range) => [b",\"params\":", &line[range.clone()]].concat(),
            None => Vec::new(),
        };
        [head.as_bytes(), &params, b"}}\n"].concat()
    }

    /// Determines the origin of a line and unwraps it.
    pub(super) fn unwrap_line(&self, line: Vec<u8>) -> ConductorLine {
        let Ok(message) = AcpMessage::parse(&line) else { return ConductorLine::FromEditor(line) };
        let (id, method) = match &message.kind {
            AcpMessageKind::Response { .. } => return ConductorLine::Response(line),
            AcpMessageKind::Notification { method } if method == CANCEL_METHOD => {
                return ConductorLine::FromAgent(line);
            }
            AcpMessageKind::Notification { method } => (None, method.as_str()),
            AcpMessageKind::Request { id, method } => (Some(id), method.as_str()),
        };
        if let Some((_, envelope)) = CONDUCTOR_METHODS.iter().find(|(opening, _)| *opening == method) {
            // The first one wins.
            self.envelope.get_or_init(|| envelope);
            let plain = json_splice::set_member(&line, &["method"], &"initialize".into());
            return ConductorLine::FromEditor(plain.unwrap_or(line));
        }
        if !CONDUCTOR_METHODS.iter().any(|(_, envelope)| *envelope == method) {
            return ConductorLine::FromEditor(line);
        }
        let inner = message.params_bytes(&line);
        let Some(method) = super::json_scan::find_member(inner, "method").map(|range| &inner[range]) else {
            return ConductorLine::FromAgent(line);
        };
        let id = id.map(|id| format!("\"id\":{},", id.0)).unwrap_or_default();
        let params = match super::json_scan::find_member(inner, "params") {
            Some(range) => [b",\"params\":", &inner[range]].concat(),
            None => Vec::new(),
        };
        ConductorLine::FromAgent(
            [b"{\"jsonrpc\":\"2.0\",", id.as_bytes(), b"\"method\":", method, &params, b"}"].concat(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrap_line_of(envelope: &SuccessorEnvelope, line: &str) -> (&'static str, String) {
        let (side, line) = match envelope.unwrap_line(line.as_bytes().to_vec()) {
            ConductorLine::FromEditor(line) => ("editor", line),
            ConductorLine::FromAgent(line) => ("agent", line),
            ConductorLine::Response(line) => ("response", line),
        };
        (side, String::from_utf8(line).unwrap())
    }

    fn wrap_line_of(envelope: &SuccessorEnvelope, line: &str) -> String {
        String::from_utf8(envelope.wrap_line(line.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn enveloped_lines_come_from_the_agent() {
        let envelope = SuccessorEnvelope::default();
        let enveloped =
            r#"{"jsonrpc":"2.0","id":7,"method":"proxy/successor","params":{"method":"x/y","params":{"a": 1.0}}}"#;
        let plain = r#"{"jsonrpc":"2.0","id":7,"method":"x/y","params":{"a": 1.0}}"#;
        assert_eq!(unwrap_line_of(&envelope, enveloped), ("agent", plain.to_owned()));
        assert_eq!(wrap_line_of(&envelope, plain), format!("{enveloped}\n"));
        assert_eq!(unwrap_line_of(&envelope, plain).0, "editor");
        let response = r#"{"id":7,"result":{}}"#;
        assert_eq!(unwrap_line_of(&envelope, response), ("response", response.to_owned()));
        assert_eq!(wrap_line_of(&envelope, response), response);
        let cancel = r#"{"method":"$/cancel_request","params":{"requestId":7}}"#;
        assert_eq!(unwrap_line_of(&envelope, cancel), ("agent", cancel.to_owned()));
        assert_eq!(wrap_line_of(&envelope, cancel), cancel);
    }

    #[test]
    fn envelope_follows_conductor_version() {
        let envelope = SuccessorEnvelope::default();
        let (side, line) = unwrap_line_of(&envelope, r#"{"id":0,"method":"_proxy/initialize","params":{}}"#);
        assert_eq!((side, line.as_str()), ("editor", r#"{"id":0,"method":"initialize","params":{}}"#));
        assert_eq!(
            wrap_line_of(&envelope, r#"{"method":"n"}"#),
            "{\"jsonrpc\":\"2.0\",\"method\":\"_proxy/successor\",\"params\":{\"method\":\"n\"}}\n"
        );
    }
}
