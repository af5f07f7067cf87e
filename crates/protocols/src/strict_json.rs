//! Parses JSON from clients strictly: UTF-8, one JSON value, no duplicate members, limited nesting. JSON with duplicate
//! members is rejected, because two parsers could use different values of the same member. The parser checks the whole
//! message and builds only the parts that the caller keeps.

use std::{borrow::Cow, cell::Cell, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use crate::limits::MESSAGE_DEPTH_MAX;

const DUPLICATE_MEMBER: &str = "an object has a duplicate member";
const NESTED_TOO_DEEPLY: &str = "the message is nested too deeply";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StrictJsonParserReturnedPart {
    Everything,
    /// The parser returns only the listed members of a JSON object, and null for a value that is not an object.
    Members(&'static [&'static str]),
    Nothing,
}

impl StrictJsonParserReturnedPart {
    fn of_member(self, name: &str) -> Self {
        match self {
            StrictJsonParserReturnedPart::Everything => StrictJsonParserReturnedPart::Everything,
            StrictJsonParserReturnedPart::Members(names) if names.contains(&name) => {
                StrictJsonParserReturnedPart::Everything
            }
            StrictJsonParserReturnedPart::Members(_) | StrictJsonParserReturnedPart::Nothing => {
                StrictJsonParserReturnedPart::Nothing
            }
        }
    }

    fn of_item(self) -> Self {
        match self {
            StrictJsonParserReturnedPart::Everything => StrictJsonParserReturnedPart::Everything,
            StrictJsonParserReturnedPart::Members(_) | StrictJsonParserReturnedPart::Nothing => {
                StrictJsonParserReturnedPart::Nothing
            }
        }
    }
}

#[derive(Debug)]
pub(crate) enum StrictJsonError {
    /// The message is not UTF-8 or not JSON.
    Malformed { reason: String },
    /// The message is JSON with a duplicate member or too deep nesting. The error response to a rejected message takes
    /// its request id from `kept`.
    Rejected { reason: &'static str, kept: Value },
}

pub(crate) fn parse_strict(bytes: &[u8], part: StrictJsonParserReturnedPart) -> Result<Value, StrictJsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| StrictJsonError::Malformed {
        reason: format!("the message is not UTF-8: invalid byte at {}", error.valid_up_to()),
    })?;
    let fault = Cell::new(None);
    let mut parser = serde_json::Deserializer::from_str(text);
    let kept = StrictJsonVisitor { depth: 0, part, fault: &fault }
        .deserialize(&mut parser)
        .and_then(|kept| parser.end().map(|()| kept))
        .map_err(|error| StrictJsonError::Malformed { reason: format!("the message is not JSON: {error}") })?;
    match fault.get() {
        None => Ok(kept),
        Some(reason) => Err(StrictJsonError::Rejected { reason, kept }),
    }
}

/// The name of a JSON member, borrowed from the message if the name has no escapes.
#[derive(PartialEq, Eq, PartialOrd, Ord, Deserialize)]
struct JsonMemberName<'t>(#[serde(borrow)] Cow<'t, str>);

/// Builds the part of a JSON value that the caller keeps. The visitor continues after a duplicate member or too deep
/// nesting, and stores the reason in `fault`.
#[derive(Clone, Copy)]
struct StrictJsonVisitor<'a> {
    /// The number of objects and arrays that enclose the visited value.
    depth: usize,
    part: StrictJsonParserReturnedPart,
    fault: &'a Cell<Option<&'static str>>,
}

impl StrictJsonVisitor<'_> {
    fn nested(self, part: StrictJsonParserReturnedPart) -> Self {
        Self { depth: self.depth + 1, part, ..self }
    }

    fn keep<E>(self, value: impl Into<Value>) -> Result<Value, E> {
        match self.part {
            StrictJsonParserReturnedPart::Everything => Ok(value.into()),
            StrictJsonParserReturnedPart::Members(_) | StrictJsonParserReturnedPart::Nothing => Ok(Value::Null),
        }
    }
}

impl<'de> DeserializeSeed<'de> for StrictJsonVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.depth < MESSAGE_DEPTH_MAX {
            return deserializer.deserialize_any(self);
        }
        // The parser skips a value without recursion, so even a deeply nested value cannot overflow the stack.
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
        let (mut members, mut dropped_names) = (Map::new(), Vec::new());
        while let Some(name) = map.next_key::<JsonMemberName<'de>>()? {
            let part = self.part.of_member(&name.0);
            let value = map.next_value_seed(self.nested(part))?;
            if part == StrictJsonParserReturnedPart::Nothing {
                dropped_names.push(name);
            } else if members.insert(name.0.into_owned(), value).is_some() {
                self.fault.set(Some(DUPLICATE_MEMBER));
            }
        }
        dropped_names.sort_unstable();
        if dropped_names.windows(2).any(|pair| pair[0] == pair[1]) {
            self.fault.set(Some(DUPLICATE_MEMBER));
        }
        Ok(Value::Object(members))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let part = self.part.of_item();
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(self.nested(part))? {
            if part == StrictJsonParserReturnedPart::Everything {
                items.push(item);
            }
        }
        self.keep(items)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.keep(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.keep(value)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PARTS: [StrictJsonParserReturnedPart; 3] = [
        StrictJsonParserReturnedPart::Everything,
        StrictJsonParserReturnedPart::Members(&["id", "method"]),
        StrictJsonParserReturnedPart::Nothing,
    ];

    #[track_caller]
    fn check_rejected(text: &str, expected_reason: &str, expected_id: Option<&Value>) {
        for part in &PARTS[..2] {
            match parse_strict(text.as_bytes(), *part) {
                Err(StrictJsonError::Rejected { reason, kept }) => {
                    assert_eq!((reason, kept.get("id")), (expected_reason, expected_id), "{part:?}");
                }
                other => panic!("{part:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn the_kept_part_is_returned() {
        let text = r#"{"id":"a","params":{"x":[1,null,true,-1.5,"ä\n",18446744073709551615]},"m\u0065thod":"m"}"#;
        let parse = |part| parse_strict(text.as_bytes(), part).unwrap();
        assert_eq!(parse(StrictJsonParserReturnedPart::Everything), serde_json::from_str::<Value>(text).unwrap());
        assert_eq!(
            parse(StrictJsonParserReturnedPart::Members(&["id", "method"])),
            json!({ "id": "a", "method": "m" })
        );
        assert_eq!(parse(StrictJsonParserReturnedPart::Nothing), json!({}));
        for other in ["[1]", "7", "\"x\"", "null", "true"] {
            assert_eq!(
                parse_strict(other.as_bytes(), StrictJsonParserReturnedPart::Members(&["id"])).unwrap(),
                Value::Null,
                "{other}"
            );
        }
    }

    #[test]
    fn malformed_json_is_rejected() {
        let texts = ["{", "nonsense", "{\"a\":1} x", "{\"a\":\"\\ud800\"}", "", "[1,]", "1e999"];
        let malformed = texts.map(str::as_bytes).into_iter().chain([&b"\xff\xfe"[..], b"{\"a\":\"\xc3\x28\"}"]);
        for bytes in malformed {
            for part in PARTS {
                let error = parse_strict(bytes, part).unwrap_err();
                assert!(matches!(error, StrictJsonError::Malformed { .. }), "{}", String::from_utf8_lossy(bytes));
            }
        }
    }

    #[test]
    fn duplicate_members_are_rejected() {
        check_rejected(r#"{"method":"a","method":"b","id":1}"#, DUPLICATE_MEMBER, Some(&json!(1)));
        check_rejected(r#"{"id":1,"x":1,"\u0078":2}"#, DUPLICATE_MEMBER, Some(&json!(1)));
        check_rejected(r#"{"params":{"a":[{"path":1,"p\u0061th":2}]},"id":1}"#, DUPLICATE_MEMBER, Some(&json!(1)));
    }

    #[test]
    fn deep_nesting_is_rejected_without_stack_overflow() {
        let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
        for part in PARTS {
            assert!(parse_strict(deep(MESSAGE_DEPTH_MAX - 1).as_bytes(), part).is_ok());
        }
        for levels in [MESSAGE_DEPTH_MAX, 1_000, 1_000_000] {
            check_rejected(&deep(levels), NESTED_TOO_DEEPLY, None);
            check_rejected(&format!(r#"{{"a":{},"id":1}}"#, deep(levels)), NESTED_TOO_DEEPLY, Some(&json!(1)));
        }
    }
}
