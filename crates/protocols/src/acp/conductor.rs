//! Connections to ACP peers, and proxy chains. In a proxy chain, one conductor owns every connection, and messages for
//! the next link (the successor) are wrapped in an envelope. An envelope keeps the id of the wrapped message, because
//! each side of a connection has its own ids.

use std::{
    io,
    ops::Range,
    sync::{Arc, OnceLock},
};

use super::{
    json_members,
    message::{AcpMessage, AcpMessageId, AcpMessageKind},
    proxy::BoxedAcpMessageWriter,
    router::CANCEL_METHOD,
};
use crate::lines::Outbox;

/// The method names that the conductor of a proxy chain uses for initialization and for envelopes. Before version 5 of
/// the official ACP library, the method names of a conductor started with an underscore.
const CONDUCTOR_METHODS: &[(&str, &str)] =
    &[("proxy/initialize", "proxy/successor"), ("_proxy/initialize", "_proxy/successor")];

#[derive(Default)]
pub(super) struct AcpConductorEnvelopeCodec {
    /// The conductor's initialization request determines the method name of the envelopes.
    method: OnceLock<&'static str>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineFromAcpConductor {
    FromEditor(Vec<u8>),
    FromAgent(Vec<u8>),
    Response(Vec<u8>),
}

impl AcpConductorEnvelopeCodec {
    /// Wraps a message for the next link of the proxy chain (the successor) into an envelope. The proxy sends responses
    /// and cancellations to its successor without an envelope.
    pub(super) fn wrap_line(&self, line: Vec<u8>) -> Vec<u8> {
        let Ok(message) = AcpMessage::parse(&line) else { return line };
        let (id, method) = match &message.kind {
            AcpMessageKind::Response { .. } => return line,
            AcpMessageKind::Notification { method } if method == CANCEL_METHOD => return line,
            AcpMessageKind::Notification { method } => (None, method),
            AcpMessageKind::Request { id, method } => (Some(id), method),
        };
        let envelope = self.method.get().unwrap_or(&CONDUCTOR_METHODS[0].1);
        let id = id_member(id);
        let method = serde_json::Value::from(method.as_str());
        let head = format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{envelope}\",\"params\":{{\"method\":{method}");
        let params = params_member(&line, message.params.clone());
        [head.as_bytes(), &params, b"}}\n"].concat()
    }

    pub(super) fn unwrap_line(&self, line: Vec<u8>) -> LineFromAcpConductor {
        let Ok(message) = AcpMessage::parse(&line) else { return LineFromAcpConductor::FromEditor(line) };
        let (id, method) = match &message.kind {
            AcpMessageKind::Response { .. } => return LineFromAcpConductor::Response(line),
            AcpMessageKind::Notification { method } if method == CANCEL_METHOD => {
                return LineFromAcpConductor::FromAgent(line);
            }
            AcpMessageKind::Notification { method } => (None, method.as_str()),
            AcpMessageKind::Request { id, method } => (Some(id), method.as_str()),
        };
        if let Some((_, envelope)) = CONDUCTOR_METHODS.iter().find(|(opening, _)| *opening == method) {
            self.method.get_or_init(|| envelope);
            let plain = json_members::set_member(&line, &["method"], &"initialize".into());
            return LineFromAcpConductor::FromEditor(plain.unwrap_or(line));
        }
        if !CONDUCTOR_METHODS.iter().any(|(_, envelope)| *envelope == method) {
            return LineFromAcpConductor::FromEditor(line);
        }
        let inner = message.params_bytes(&line);
        let Some(method) = json_members::find_member(inner, "method").map(|range| &inner[range]) else {
            return LineFromAcpConductor::FromAgent(line);
        };
        let (id, params) = (id_member(id), params_member(inner, json_members::find_member(inner, "params")));
        let line = [b"{\"jsonrpc\":\"2.0\",", id.as_bytes(), b"\"method\":", method, &params, b"}"].concat();
        LineFromAcpConductor::FromAgent(line)
    }
}

fn id_member(id: Option<&AcpMessageId>) -> String {
    id.map(|id| format!("\"id\":{},", id.0)).unwrap_or_default()
}

fn params_member(text: &[u8], params: Option<Range<usize>>) -> Vec<u8> {
    params.map(|range| [b",\"params\":", &text[range]].concat()).unwrap_or_default()
}

pub(super) struct AcpPeerWriter {
    outbox: Arc<Outbox<BoxedAcpMessageWriter>>,
    envelope: Option<Arc<AcpConductorEnvelopeCodec>>,
}

impl AcpPeerWriter {
    pub(super) fn new(output: BoxedAcpMessageWriter) -> Self {
        Self { outbox: Arc::new(Outbox::new(output)), envelope: None }
    }

    pub(super) fn for_successor(&self, envelope: Arc<AcpConductorEnvelopeCodec>) -> Self {
        Self { outbox: self.outbox.clone(), envelope: Some(envelope) }
    }

    pub(super) async fn send(&self, line: Vec<u8>) -> io::Result<()> {
        match &self.envelope {
            Some(envelope) => self.outbox.send(envelope.wrap_line(line)).await,
            None => self.outbox.send(line).await,
        }
    }

    pub(super) async fn flush(&self) -> io::Result<()> {
        self.outbox.flush().await
    }

    /// The editor or agent reads the end of its input after the proxy has closed the connection.
    pub(super) async fn close(&self) {
        self.outbox.replace(Box::new(tokio::io::sink())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unwrap_line_of(envelope: &AcpConductorEnvelopeCodec, line: &str) -> (&'static str, String) {
        let (side, line) = match envelope.unwrap_line(line.as_bytes().to_vec()) {
            LineFromAcpConductor::FromEditor(line) => ("editor", line),
            LineFromAcpConductor::FromAgent(line) => ("agent", line),
            LineFromAcpConductor::Response(line) => ("response", line),
        };
        (side, String::from_utf8(line).unwrap())
    }

    fn wrap_line_of(envelope: &AcpConductorEnvelopeCodec, line: &str) -> String {
        String::from_utf8(envelope.wrap_line(line.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn enveloped_lines_come_from_the_agent() {
        let envelope = AcpConductorEnvelopeCodec::default();
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
    fn envelope_method_matches_the_conductor_version() {
        let envelope = AcpConductorEnvelopeCodec::default();
        let (side, line) = unwrap_line_of(&envelope, r#"{"id":0,"method":"_proxy/initialize","params":{}}"#);
        assert_eq!((side, line.as_str()), ("editor", r#"{"id":0,"method":"initialize","params":{}}"#));
        assert_eq!(
            wrap_line_of(&envelope, r#"{"method":"n"}"#),
            "{\"jsonrpc\":\"2.0\",\"method\":\"_proxy/successor\",\"params\":{\"method\":\"n\"}}\n"
        );
    }
}
