//! Changes single members of a JSON message and keeps every other byte.

use std::ops::Range;

use serde_json::Value;

use super::json_scan::{self, MalformedObject};

/// Sets the value at a path of member names. Missing parent objects are created; parents of another type are replaced.
pub(super) fn set_member(text: &[u8], path: &[&str], value: &Value) -> Result<Vec<u8>, MalformedObject> {
    let Some((name, rest)) = path.split_first() else { return Ok(value.to_string().into_bytes()) };
    let members = json_scan::scan_members(text)?;
    let existing = members.iter().rfind(|member| json_scan::member_name(text, member) == *name);
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
            // After the last member, or after the opening brace.
            match members.last() {
                Some(last) => Ok(insert_at(text, last.value.end, &[b",", pair.as_slice()].concat())),
                None => {
                    let brace = memchr::memchr(b'{', text).ok_or(MalformedObject)?;
                    Ok(insert_at(text, brace + 1, &pair))
                }
            }
        }
    }
}

/// Appends a value to a JSON array. Any other text is replaced by a new array.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        assert_eq!(set_member(b"[]", &["a"], &json!(1)), Err(MalformedObject));
    }

    #[test]
    fn appends_to_arrays() {
        let push = |text: &str| String::from_utf8(push_to_array(text.as_bytes(), &json!(9))).unwrap();
        assert_eq!(push("[]"), "[9]");
        assert_eq!(push(" [ 1, 2 ] "), "[1, 2,9]");
        assert_eq!(push("null"), "[9]");
    }
}
