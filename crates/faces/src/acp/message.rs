//! What a line is, as far as a proxy must know: a request, a notification or an answer, with its id and its method.
//!
//! Promises that a line which two readers could read differently is never passed on: a member that decides what the
//! message is comes once, or the line is refused.

use std::ops::Range;

use serde_json::{Value, json};

use super::{
    scan::{self, Misshapen},
    sorry::Sorry,
};

/// The version that every message of ours names.
const VERSION: &str = "2.0";
/// The members that decide what a message is.
const DECIDING: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];

/// An id, spelled in one way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Id(pub(super) String);

impl Id {
    pub(super) fn of(value: &Value) -> Self {
        Self(value.to_string())
    }
}

/// One line.
#[derive(Debug, PartialEq)]
pub(super) struct Message {
    pub(super) kind: Kind,
    /// Where its params are.
    pub(super) params: Option<Range<usize>>,
    /// Where its result is.
    pub(super) result: Option<Range<usize>>,
    /// Where its error is.
    pub(super) error: Option<Range<usize>>,
}

/// What a line is.
#[derive(Debug, PartialEq)]
pub(super) enum Kind {
    Request { id: Id, method: String },
    Notification { method: String },
    Answer { id: Id },
}

/// Why a line goes nowhere, and whom to tell.
#[derive(Debug, PartialEq)]
pub(super) struct Refused {
    pub(super) id: Option<Id>,
    pub(super) sorry: Sorry,
}

impl Message {
    /// Reads a line.
    pub(super) fn read(line: &[u8]) -> Result<Self, Refused> {
        let members =
            scan::members(line).map_err(|Misshapen| Refused { id: None, sorry: Sorry::unreadable() })?;
        let mut found: [Option<Range<usize>>; DECIDING.len()] = Default::default();
        let mut twice = false;
        for member in members {
            let name = scan::name_of(line, &member);
            if let Some(at) = DECIDING.iter().position(|known| *known == name) {
                twice |= found[at].replace(member.value).is_some();
            }
        }
        let [_, id, method, params, result, error] = found;
        let value = |place: Range<usize>| serde_json::from_slice::<Value>(&line[place]).ok();
        let id = id.and_then(value).filter(|id| !id.is_object() && !id.is_array()).map(|id| Id::of(&id));
        let refused = |why: &str, id: Option<Id>| Err(Refused { id, sorry: Sorry::request(why) });
        // Only a request has an answer: under the id of one, whatever else it is would be taken for one.
        let asker = id.clone().filter(|_| method.is_some());
        if twice {
            return refused("a member comes twice", asker);
        }
        let kind = match (method.and_then(value), id) {
            (Some(Value::String(method)), Some(id)) => Kind::Request { id, method },
            (Some(Value::String(method)), None) => Kind::Notification { method },
            (Some(_), id) => return refused("the method must be a string", id),
            (None, Some(id)) if result.is_some() || error.is_some() => Kind::Answer { id },
            (None, _) => return refused("neither a method nor a result", None),
        };
        Ok(Self { kind, params, result, error })
    }

    /// Its params as bytes; an empty object where there are none.
    pub(super) fn params<'l>(&self, line: &'l [u8]) -> &'l [u8] {
        self.params.clone().map_or(b"{}", |place| &line[place])
    }
}

/// The line that answers a request with a result.
pub(super) fn answer(id: &Id, result: &Value) -> Vec<u8> {
    let id: Value = serde_json::from_str(&id.0).unwrap_or_default();
    lined(&json!({ "jsonrpc": VERSION, "id": id, "result": result }))
}

/// The line that answers a request with an error; an unknown id is null.
pub(super) fn refusal(id: Option<&Id>, sorry: &Sorry) -> Vec<u8> {
    let id: Value = id.and_then(|id| serde_json::from_str(&id.0).ok()).unwrap_or_default();
    lined(&json!({ "jsonrpc": VERSION, "id": id, "error": sorry.json() }))
}

/// The line of a request of ours.
pub(super) fn request(id: &str, method: &str, params: &Value) -> Vec<u8> {
    lined(&json!({ "jsonrpc": VERSION, "id": id, "method": method, "params": params }))
}

/// The line of a notification of ours.
pub(super) fn notification(method: &str, params: &Value) -> Vec<u8> {
    lined(&json!({ "jsonrpc": VERSION, "method": method, "params": params }))
}

fn lined(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> Result<Kind, i64> {
        Message::read(line.as_bytes()).map(|message| message.kind).map_err(|refused| refused.sorry.code())
    }

    #[test]
    fn lines_are_told_apart() {
        let id = |text: &str| Id(text.to_owned());
        let method = || "m".to_owned();
        assert_eq!(kind(r#"{"id":1,"method":"m"}"#), Ok(Kind::Request { id: id("1"), method: method() }));
        assert_eq!(
            kind(r#"{"\u0069d":"\u0061","m\u0065thod":"\u006d"}"#),
            Ok(Kind::Request { id: id("\"a\""), method: method() })
        );
        assert_eq!(kind(r#"{"method":"m","params":[]}"#), Ok(Kind::Notification { method: method() }));
        assert_eq!(kind(r#"{"id":null,"result":null}"#), Ok(Kind::Answer { id: id("null") }));
        assert_eq!(kind(r#"{"id":"x","error":{}}"#), Ok(Kind::Answer { id: id("\"x\"") }));
    }

    #[test]
    fn what_two_readers_could_read_differently_goes_nowhere() {
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
            assert_eq!(kind(line), Err(code), "{line}");
        }
    }
}
