//! Where things are in a message, found without building it: a message of ten megabytes is looked through once and never
//! copied. Tells where the members of an object lie; says nothing about what they mean.
//!
//! Never recurses, so that no depth hurts. Looks at the shape only: what lies inside a value is for whoever reads it.

use std::{borrow::Cow, ops::Range};

/// Most members of one object that are looked at.
const MEMBERS_MAX: usize = 1_024;

/// One member of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name, with the quotes.
    pub(super) name: Range<usize>,
    /// Its value.
    pub(super) value: Range<usize>,
}

/// The text is not one JSON object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Misshapen;

/// The members of the object that the text is.
pub(super) fn members(text: &[u8]) -> Result<Vec<Member>, Misshapen> {
    let mut scan = Scan { text, at: 0 };
    scan.blank();
    scan.take(b'{')?;
    let mut members = Vec::new();
    scan.blank();
    if scan.peek() == Some(b'}') {
        scan.at += 1;
        return scan.end().map(|()| members);
    }
    loop {
        scan.blank();
        let name = scan.string()?;
        scan.blank();
        scan.take(b':')?;
        scan.blank();
        let value = scan.value()?;
        if members.len() == MEMBERS_MAX {
            return Err(Misshapen);
        }
        members.push(Member { name, value });
        scan.blank();
        match scan.next()? {
            b',' => {}
            b'}' => return scan.end().map(|()| members),
            _ => return Err(Misshapen),
        }
    }
}

/// The name of a member, without escapes.
pub(super) fn name_of<'t>(text: &'t [u8], member: &Member) -> Cow<'t, str> {
    let quoted = &text[member.name.clone()];
    let plain = &quoted[1..quoted.len() - 1];
    match std::str::from_utf8(plain) {
        Ok(plain) if !plain.contains('\\') => Cow::Borrowed(plain),
        Ok(_) => Cow::Owned(serde_json::from_slice(quoted).unwrap_or_default()),
        Err(_) => Cow::Borrowed(""),
    }
}

/// Where the value of the member of this name lies, in the object that the text is. The last one counts, as it does for
/// most readers.
pub(super) fn find(text: &[u8], name: &str) -> Option<Range<usize>> {
    let members = members(text).ok()?;
    members.iter().rfind(|member| name_of(text, member) == name).map(|member| member.value.clone())
}

/// Where the value at a path of names lies.
pub(super) fn find_at(text: &[u8], path: &[&str]) -> Option<Range<usize>> {
    let mut place = 0..text.len();
    for name in path {
        let found = find(&text[place.clone()], name)?;
        place = place.start + found.start..place.start + found.end;
    }
    Some(place)
}

/// Whether a byte may stand between values.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, Misshapen> {
        let byte = self.peek().ok_or(Misshapen)?;
        self.at += 1;
        Ok(byte)
    }

    fn take(&mut self, wanted: u8) -> Result<(), Misshapen> {
        if self.next()? == wanted { Ok(()) } else { Err(Misshapen) }
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(is_blank) {
            self.at += 1;
        }
    }

    /// Nothing but blanks may follow.
    fn end(&mut self) -> Result<(), Misshapen> {
        self.blank();
        if self.at == self.text.len() { Ok(()) } else { Err(Misshapen) }
    }

    fn string(&mut self) -> Result<Range<usize>, Misshapen> {
        let start = self.at;
        self.take(b'"')?;
        loop {
            let found = memchr::memchr2(b'"', b'\\', &self.text[self.at..]).ok_or(Misshapen)?;
            self.at += found;
            if self.next()? == b'"' {
                return Ok(start..self.at);
            }
            self.next()?;
        }
    }

    fn value(&mut self) -> Result<Range<usize>, Misshapen> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek().ok_or(Misshapen)? {
                b'"' => {
                    self.string()?;
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1).ok_or(Misshapen)?;
                    self.at += 1;
                }
                b',' | b':' if depth == 0 => return Err(Misshapen),
                byte if byte == b',' || byte == b':' || is_blank(byte) => self.at += 1,
                _ => self.word(),
            }
            if depth == 0 {
                return Ok(start..self.at);
            }
        }
    }

    /// A number, true, false or null.
    fn word(&mut self) {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b'"') || is_blank(*byte);
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(ends).unwrap_or(rest.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, path: &[&str]) -> Option<String> {
        find_at(text.as_bytes(), path).map(|place| text[place].to_owned())
    }

    #[test]
    fn members_are_found_where_they_are() {
        let text = r#" {"id" : 7, "params":{"a":["}",{"b":"\"]"}],"c":null} ,"last":"x\\"} "#;
        assert_eq!(found(text, &["id"]).unwrap(), "7");
        assert_eq!(found(text, &["params", "a"]).unwrap(), r#"["}",{"b":"\"]"}]"#);
        assert_eq!(found(text, &["params", "c"]).unwrap(), "null");
        assert_eq!(found(text, &["last"]).unwrap(), r#""x\\""#);
        assert_eq!(found(text, &["params", "b"]), None);
        assert_eq!(found(text, &["id", "b"]), None);
        assert_eq!(found(r#"{"\u0069d":1}"#, &["id"]).unwrap(), "1");
        assert_eq!(found(r#"{"a":1,"a":2}"#, &["a"]).unwrap(), "2");
        assert_eq!(members(b"{}"), Ok(Vec::new()));
    }

    #[test]
    fn what_is_no_object_is_said_to_be_none() {
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
            assert_eq!(members(text.as_bytes()), Err(Misshapen), "{text}");
        }
        let many = format!("{{{}\"z\":1}}", "\"a\":1,".repeat(MEMBERS_MAX));
        assert_eq!(members(many.as_bytes()), Err(Misshapen));
        let deep = format!("{{\"a\":{}}}", "[".repeat(1_000_000));
        assert_eq!(members(deep.as_bytes()), Err(Misshapen));
    }
}
