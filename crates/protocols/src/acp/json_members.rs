//! Finds and changes single members of a JSON message without parsing the other members. A change keeps every byte
//! outside the changed member. The scanner checks only the structure of the JSON, and allows any nesting depth. The ACP
//! proxy does not use the parser `strict_json`, because the proxy forwards unread values byte for byte.
//!
//! The feature `raw_value` of serde_json could also find the ranges of members, but must stay off. With `raw_value`,
//! serde_json parses the string value of a member with a reserved name as JSON. A client could use the reserved member
//! name of `raw_value` to pass JSON that `strict_json` has not checked.

use std::{borrow::Cow, ops::Range};

use serde_json::Value;

use crate::limits::ACP_OBJECT_MEMBERS_MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonMemberNameAndValueRanges {
    /// The byte range of a member's name includes the quotes.
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedJsonObjectError;

pub(super) fn scan_members(text: &[u8]) -> Result<Vec<JsonMemberNameAndValueRanges>, MalformedJsonObjectError> {
    let mut scan = JsonScanner { text, position: 0 };
    scan.skip_whitespace();
    scan.expect_byte(b'{')?;
    let mut members = Vec::new();
    scan.skip_whitespace();
    if scan.peek() == Some(b'}') {
        scan.position += 1;
        return scan.expect_end().map(|()| members);
    }
    loop {
        scan.skip_whitespace();
        let name = scan.scan_string()?;
        scan.skip_whitespace();
        scan.expect_byte(b':')?;
        scan.skip_whitespace();
        let value = scan.scan_value()?;
        if members.len() == ACP_OBJECT_MEMBERS_MAX {
            return Err(MalformedJsonObjectError);
        }
        members.push(JsonMemberNameAndValueRanges { name, value });
        scan.skip_whitespace();
        match scan.next_byte()? {
            b',' => {}
            b'}' => return scan.expect_end().map(|()| members),
            _ => return Err(MalformedJsonObjectError),
        }
    }
}

pub(super) fn member_name<'t>(text: &'t [u8], member: &JsonMemberNameAndValueRanges) -> Cow<'t, str> {
    let quoted = &text[member.name.clone()];
    let plain = &quoted[1..quoted.len() - 1];
    match std::str::from_utf8(plain) {
        Ok(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        Ok(_) => Cow::Owned(serde_json::from_slice(quoted).unwrap_or_default()),
        Err(_) => Cow::Borrowed(""),
    }
}

/// If several members of a JSON object have the same name, the last one counts.
pub(super) fn find_member(text: &[u8], name: &str) -> Option<Range<usize>> {
    let members = scan_members(text).ok()?;
    members.iter().rfind(|member| member_name(text, member) == name).map(|member| member.value.clone())
}

pub(super) fn find_path(text: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let mut range = 0..text.len();
    for name in path {
        let found = find_member(&text[range.clone()], name)?;
        range = range.start + found.start..range.start + found.end;
    }
    Some(range)
}

/// Sets the value at a path of member names. Missing parent objects are created, and a parent that is not an object is
/// replaced by an object.
pub(super) fn set_member(text: &[u8], path: &[&str], value: &Value) -> Result<Vec<u8>, MalformedJsonObjectError> {
    let Some((name, rest)) = path.split_first() else { return Ok(value.to_string().into_bytes()) };
    let members = scan_members(text)?;
    let existing = members.iter().rfind(|member| member_name(text, member) == *name);
    match existing {
        Some(member) => {
            let old = &text[member.value.clone()];
            let new = set_member(old, rest, value).or_else(|_| set_member(b"{}", rest, value))?;
            Ok(replace_range(text, &member.value, &new))
        }
        None => {
            let new = set_member(b"{}", rest, value)?;
            let name = Value::from(*name).to_string();
            let pair = [name.as_bytes(), b":", &new].concat();
            match members.last() {
                Some(last) => Ok(insert_at(text, last.value.end, &[b",", pair.as_slice()].concat())),
                None => {
                    let brace = memchr::memchr(b'{', text).ok_or(MalformedJsonObjectError)?;
                    Ok(insert_at(text, brace + 1, &pair))
                }
            }
        }
    }
}

/// Appends a value to a JSON array. A JSON text that is not an array is replaced by an array with only the new value.
pub(super) fn push_to_array(text: &[u8], value: &Value) -> Vec<u8> {
    let value = value.to_string().into_bytes();
    let inner = text.trim_ascii().strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]"));
    match inner.map(<[u8]>::trim_ascii) {
        None | Some(b"") => [b"[", value.as_slice(), b"]"].concat(),
        Some(inner) => [b"[", inner, b",", &value, b"]"].concat(),
    }
}

pub(super) fn replace_range(text: &[u8], range: &Range<usize>, new: &[u8]) -> Vec<u8> {
    [&text[..range.start], new, &text[range.end..]].concat()
}

fn insert_at(text: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    replace_range(text, &(at..at), new)
}

fn is_json_whitespace(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

struct JsonScanner<'t> {
    text: &'t [u8],
    position: usize,
}

impl JsonScanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    fn next_byte(&mut self) -> Result<u8, MalformedJsonObjectError> {
        let byte = self.peek().ok_or(MalformedJsonObjectError)?;
        self.position += 1;
        Ok(byte)
    }

    fn expect_byte(&mut self, wanted: u8) -> Result<(), MalformedJsonObjectError> {
        if self.next_byte()? == wanted { Ok(()) } else { Err(MalformedJsonObjectError) }
    }

    fn skip_whitespace(&mut self) {
        while self.peek().is_some_and(is_json_whitespace) {
            self.position += 1;
        }
    }

    fn expect_end(&mut self) -> Result<(), MalformedJsonObjectError> {
        self.skip_whitespace();
        if self.position == self.text.len() { Ok(()) } else { Err(MalformedJsonObjectError) }
    }

    fn scan_string(&mut self) -> Result<Range<usize>, MalformedJsonObjectError> {
        let start = self.position;
        self.expect_byte(b'"')?;
        loop {
            let found = memchr::memchr2(b'"', b'\\', &self.text[self.position..]).ok_or(MalformedJsonObjectError)?;
            self.position += found;
            if self.next_byte()? == b'"' {
                return Ok(start..self.position);
            }
            self.next_byte()?;
        }
    }

    fn scan_value(&mut self) -> Result<Range<usize>, MalformedJsonObjectError> {
        let start = self.position;
        let mut depth = 0_usize;
        loop {
            match self.peek().ok_or(MalformedJsonObjectError)? {
                b'"' => {
                    self.scan_string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.position += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(MalformedJsonObjectError)?;
                    self.position += 1;
                }
                b',' | b':' if depth == 0 => return Err(MalformedJsonObjectError),
                byte if byte == b',' || byte == b':' || is_json_whitespace(byte) => self.position += 1,
                _ => self.scan_literal(),
            }
            if depth == 0 {
                return Ok(start..self.position);
            }
        }
    }

    fn scan_literal(&mut self) {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b'"') || is_json_whitespace(*byte);
        let rest = &self.text[self.position..];
        self.position += rest.iter().position(ends).unwrap_or(rest.len());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found_text(text: &str, path: &[&str]) -> Option<String> {
        find_path(text.as_bytes(), path).map(|range| text[range].to_owned())
    }

    #[test]
    fn finds_members_at_any_depth() {
        let text = r#" {"id" : 7, "params":{"a":["}",{"b":"\"]"}],"c":null} ,"last":"x\\"} "#;
        assert_eq!(found_text(text, &["id"]).unwrap(), "7");
        assert_eq!(found_text(text, &["params", "a"]).unwrap(), r#"["}",{"b":"\"]"}]"#);
        assert_eq!(found_text(text, &["params", "c"]).unwrap(), "null");
        assert_eq!(found_text(text, &["last"]).unwrap(), r#""x\\""#);
        assert_eq!(found_text(text, &["params", "b"]), None);
        assert_eq!(found_text(text, &["id", "b"]), None);
        assert_eq!(found_text(r#"{"\u0069d":1}"#, &["id"]).unwrap(), "1");
        assert_eq!(found_text(r#"{"a":1,"a":2}"#, &["a"]).unwrap(), "2");
        assert_eq!(scan_members(b"{}"), Ok(Vec::new()));
    }

    #[test]
    fn rejects_text_that_is_not_an_object() {
        for text in [
            "",
            "1",
            "[]",
            "{",
            "{\"a\"",
            "{\"a\":",
            "{\"a\":1",
            "{\"a\":1,}",
            "{\"a\":1}}",
            "{\"a\":1} x",
            "{a:1}",
            "{\"a\":}",
            "{\"a\":,}",
            "{\"a\" 1}",
            "{\"a\":\"",
            "{\"a\":\"\\",
            "{\"a\":]}",
            "{,}",
            "{\"a\":1 2}",
        ] {
            assert_eq!(scan_members(text.as_bytes()), Err(MalformedJsonObjectError), "{text}");
        }
        let many = format!("{{{}\"z\":1}}", "\"a\":1,".repeat(ACP_OBJECT_MEMBERS_MAX));
        assert_eq!(scan_members(many.as_bytes()), Err(MalformedJsonObjectError));
        let deep = format!("{{\"a\":{}}}", "[".repeat(1_000_000));
        assert_eq!(scan_members(deep.as_bytes()), Err(MalformedJsonObjectError));
    }

    fn set_member_in_text(text: &str, path: &[&str], value: &Value) -> String {
        String::from_utf8(set_member(text.as_bytes(), path, value).unwrap()).unwrap()
    }

    #[test]
    fn changes_only_the_targeted_member() {
        let odd = r#"{ "x": 1.50, "caps":{"fs": {"r":false , "n":1e2}}, "y":"\u0061" }"#;
        assert_eq!(
            set_member_in_text(odd, &["caps", "fs", "r"], &json!(true)),
            r#"{ "x": 1.50, "caps":{"fs": {"r":true , "n":1e2}}, "y":"\u0061" }"#
        );
        assert_eq!(
            set_member_in_text(odd, &["caps", "fs", "w"], &json!(true)),
            r#"{ "x": 1.50, "caps":{"fs": {"r":false , "n":1e2,"w":true}}, "y":"\u0061" }"#
        );
    }

    #[test]
    fn creates_missing_parent_objects() {
        assert_eq!(set_member_in_text("{}", &["a", "b"], &json!(1)), r#"{"a":{"b":1}}"#);
        assert_eq!(set_member_in_text(r#"{"a":null,"c":2}"#, &["a", "b"], &json!(1)), r#"{"a":{"b":1},"c":2}"#);
        assert_eq!(set_member(b"[]", &["a"], &json!(1)), Err(MalformedJsonObjectError));
    }

    #[test]
    fn appends_to_arrays() {
        let push = |text: &str| String::from_utf8(push_to_array(text.as_bytes(), &json!(9))).unwrap();
        assert_eq!(push("[]"), "[9]");
        assert_eq!(push(" [ 1, 2 ] "), "[1, 2,9]");
        assert_eq!(push("null"), "[9]");
    }
}
