//! Changes of single members in a message that otherwise stays as it came, byte for byte.

use std::ops::Range;

use serde_json::Value;

use super::scan::{self, Misshapen};

/// Puts a value at a path of names in the object that the text is. Objects on the way that are missing, or are something
/// else, are made.
pub(super) fn put(text: &[u8], path: &[&str], value: &Value) -> Result<Vec<u8>, Misshapen> {
    let Some((name, below)) = path.split_first() else { return Ok(value.to_string().into_bytes()) };
    let members = scan::members(text)?;
    let there = members.iter().rfind(|member| scan::name_of(text, member) == *name);
    match there {
        Some(member) => {
            let old = &text[member.value.clone()];
            let new = put(old, below, value).or_else(|_| put(b"{}", below, value))?;
            Ok(replaced(text, &member.value, &new))
        }
        None => {
            let new = put(b"{}", below, value)?;
            let name = Value::from(*name).to_string();
            let pair = [name.as_bytes(), b":", &new].concat();
            // Behind the last member, or behind the brace that opens the object.
            match members.last() {
                Some(last) => Ok(inserted(text, last.value.end, &[b",", pair.as_slice()].concat())),
                None => {
                    let brace = memchr::memchr(b'{', text).ok_or(Misshapen)?;
                    Ok(inserted(text, brace + 1, &pair))
                }
            }
        }
    }
}

/// Adds a value at the end of the array that the text is. What is no array becomes one.
pub(super) fn pushed(text: &[u8], value: &Value) -> Vec<u8> {
    let value = value.to_string().into_bytes();
    let inner = text.trim_ascii().strip_prefix(b"[").and_then(|text| text.strip_suffix(b"]"));
    match inner.map(<[u8]>::trim_ascii) {
        None | Some(b"") => [b"[", value.as_slice(), b"]"].concat(),
        Some(inner) => [b"[", inner, b",", &value, b"]"].concat(),
    }
}

/// The text with one range replaced.
pub(super) fn replaced(text: &[u8], place: &Range<usize>, new: &[u8]) -> Vec<u8> {
    [&text[..place.start], new, &text[place.end..]].concat()
}

fn inserted(text: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    replaced(text, &(at..at), new)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put_text(text: &str, path: &[&str], value: &Value) -> String {
        String::from_utf8(put(text.as_bytes(), path, value).unwrap()).unwrap()
    }

    #[test]
    fn only_what_is_meant_changes() {
        let odd = r#"{ "x": 1.50, "caps":{"fs": {"r":false , "n":1e2}}, "y":"\u0061" }"#;
        assert_eq!(
            put_text(odd, &["caps", "fs", "r"], &json!(true)),
            r#"{ "x": 1.50, "caps":{"fs": {"r":true , "n":1e2}}, "y":"\u0061" }"#
        );
        assert_eq!(
            put_text(odd, &["caps", "fs", "w"], &json!(true)),
            r#"{ "x": 1.50, "caps":{"fs": {"r":false , "n":1e2,"w":true}}, "y":"\u0061" }"#
        );
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        assert_eq!(put_text("{}", &["a", "b"], &json!(1)), r#"{"a":{"b":1}}"#);
        assert_eq!(put_text(r#"{"a":null,"c":2}"#, &["a", "b"], &json!(1)), r#"{"a":{"b":1},"c":2}"#);
        assert_eq!(put(b"[]", &["a"], &json!(1)), Err(Misshapen));
    }

    #[test]
    fn an_array_gets_one_more() {
        let push = |text: &str| String::from_utf8(pushed(text.as_bytes(), &json!(9))).unwrap();
        assert_eq!(push("[]"), "[9]");
        assert_eq!(push(" [ 1, 2 ] "), "[1, 2,9]");
        assert_eq!(push("null"), "[9]");
    }
}
