//! The proxy as one of a chain: a conductor owns every connection, and what is meant for the next in the chain is put
//! into an envelope. Ids stay as they are, because on one connection they are one side's own.
//!
//! Translates lines; decides nothing.

use std::sync::OnceLock;

use super::{
    message::{Kind, Message},
    router::CANCEL_REQUEST,
    splice,
};

/// What a conductor sends in the place of `initialize`, and the envelope that goes with it. Before the fifth version of
/// the official library both had an underscore.
const WORDS: &[(&str, &str)] =
    &[("proxy/initialize", "proxy/successor"), ("_proxy/initialize", "_proxy/successor")];

/// Puts lines into envelopes.
#[derive(Default)]
pub(super) struct Wrap {
    envelope: OnceLock<&'static str>,
}

/// Whom a line of the conductor's is from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The editor, or what stands for it.
    Editor(Vec<u8>),
    /// The agent, or what stands for it.
    Agent(Vec<u8>),
    /// Either: an answer to something that was sent on.
    Answer(Vec<u8>),
}

impl Wrap {
    /// A line for the next in the chain. Answers, and what is about requests themselves, need no envelope.
    pub(super) fn around(&self, line: Vec<u8>) -> Vec<u8> {
        let Ok(message) = Message::read(&line) else { return line };
        let (id, method) = match &message.kind {
            Kind::Answer { .. } => return line,
            Kind::Notification { method } if method == CANCEL_REQUEST => return line,
            Kind::Notification { method } => (None, method),
            Kind::Request { id, method } => (Some(id), method),
        };
        let envelope = self.envelope.get().unwrap_or(&WORDS[0].1);
        let id = id.map(|id| format!("\"id\":{},", id.0)).unwrap_or_default();
        let method = serde_json::Value::from(method.as_str());
        let head =
            format!("{{\"jsonrpc\":\"2.0\",{id}\"method\":\"{envelope}\",\"params\":{{\"method\":{method}");
        let params = match &message.params {
            Some(place) => [b",\"params\":", &line[place.clone()]].concat(),
            None => Vec::new(),
        };
        [head.as_bytes(), &params, b"}}\n"].concat()
    }

    /// Tells whom a line is from, and takes it out of its envelope.
    pub(super) fn open(&self, line: Vec<u8>) -> From {
        let Ok(message) = Message::read(&line) else { return From::Editor(line) };
        let (id, method) = match &message.kind {
            Kind::Answer { .. } => return From::Answer(line),
            Kind::Notification { method } if method == CANCEL_REQUEST => return From::Agent(line),
            Kind::Notification { method } => (None, method.as_str()),
            Kind::Request { id, method } => (Some(id), method.as_str()),
        };
        if let Some((_, envelope)) = WORDS.iter().find(|(opening, _)| *opening == method) {
            // Said once; a second one changes nothing.
            self.envelope.get_or_init(|| envelope);
            let plain = splice::put(&line, &["method"], &"initialize".into());
            return From::Editor(plain.unwrap_or(line));
        }
        if !WORDS.iter().any(|(_, envelope)| *envelope == method) {
            return From::Editor(line);
        }
        let inner = message.params(&line);
        let Some(method) = super::scan::find(inner, "method").map(|place| &inner[place]) else {
            return From::Agent(line);
        };
        let id = id.map(|id| format!("\"id\":{},", id.0)).unwrap_or_default();
        let params = match super::scan::find(inner, "params") {
            Some(place) => [b",\"params\":", &inner[place]].concat(),
            None => Vec::new(),
        };
        From::Agent([b"{\"jsonrpc\":\"2.0\",", id.as_bytes(), b"\"method\":", method, &params, b"}"].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(wrap: &Wrap, line: &str) -> (&'static str, String) {
        let (side, line) = match wrap.open(line.as_bytes().to_vec()) {
            From::Editor(line) => ("editor", line),
            From::Agent(line) => ("agent", line),
            From::Answer(line) => ("answer", line),
        };
        (side, String::from_utf8(line).unwrap())
    }

    fn around(wrap: &Wrap, line: &str) -> String {
        String::from_utf8(wrap.around(line.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn what_is_in_an_envelope_is_the_agent_s() {
        let wrap = Wrap::default();
        let enveloped = r#"{"jsonrpc":"2.0","id":7,"method":"proxy/successor","params":{"method":"x/y","params":{"a": 1.0}}}"#;
        let plain = r#"{"jsonrpc":"2.0","id":7,"method":"x/y","params":{"a": 1.0}}"#;
        assert_eq!(opened(&wrap, enveloped), ("agent", plain.to_owned()));
        assert_eq!(around(&wrap, plain), format!("{enveloped}\n"));
        assert_eq!(opened(&wrap, plain).0, "editor");
        let answer = r#"{"id":7,"result":{}}"#;
        assert_eq!(opened(&wrap, answer), ("answer", answer.to_owned()));
        assert_eq!(around(&wrap, answer), answer);
        let cancel = r#"{"method":"$/cancel_request","params":{"requestId":7}}"#;
        assert_eq!(opened(&wrap, cancel), ("agent", cancel.to_owned()));
        assert_eq!(around(&wrap, cancel), cancel);
    }

    #[test]
    fn the_envelope_is_the_one_the_conductor_speaks() {
        let wrap = Wrap::default();
        let (side, line) = opened(&wrap, r#"{"id":0,"method":"_proxy/initialize","params":{}}"#);
        assert_eq!((side, line.as_str()), ("editor", r#"{"id":0,"method":"initialize","params":{}}"#));
        assert_eq!(
            around(&wrap, r#"{"method":"n"}"#),
            "{\"jsonrpc\":\"2.0\",\"method\":\"_proxy/successor\",\"params\":{\"method\":\"n\"}}\n"
        );
    }
}
