//! Finds the request id in a message that is too long to be read: a scan that keeps the id and nothing else.

use serde_json::Value;

use crate::limits::ID_BYTES_MAX;

/// Longest member name that matters: `id` with its quotes.
const KEY_BYTES_MAX: usize = 4;

/// Where the scan is in the outermost object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Part {
    #[default]
    Key,
    Value,
}

/// Reads a message piece by piece.
#[derive(Debug, Default)]
pub(crate) struct IdScout {
    depth: usize,
    in_string: bool,
    escaped: bool,
    part: Part,
    key: Vec<u8>,
    value: Vec<u8>,
    found: Option<Vec<u8>>,
}

impl IdScout {
    /// Reads on.
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            self.step(byte);
        }
    }

    /// The id, if one was found and is one.
    pub(crate) fn id(self) -> Option<Value> {
        let value: Value = serde_json::from_slice(&self.found?).ok()?;
        (value.is_string() || value.is_i64()).then_some(value)
    }

    fn step(&mut self, byte: u8) {
        if self.in_string {
            self.keep(byte);
            if self.escaped {
                self.escaped = false;
            } else if byte == b'\\' {
                self.escaped = true;
            } else if byte == b'"' {
                self.in_string = false;
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.keep(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.end_of_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.part = Part::Value,
            b',' => self.end_of_member(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.keep(byte),
        }
    }

    /// Keeps a byte of the outermost object, as far as it can belong to an id.
    fn keep(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        let (kept, max) = match self.part {
            Part::Key => (&mut self.key, KEY_BYTES_MAX + 1),
            Part::Value => (&mut self.value, ID_BYTES_MAX + 1),
        };
        if kept.len() < max {
            kept.push(byte);
        }
    }

    fn end_of_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.key == b"\"id\"" && self.value.len() <= ID_BYTES_MAX {
            self.found = Some(std::mem::take(&mut self.value));
        }
        self.key.clear();
        self.value.clear();
        self.part = Part::Key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(message: &str) -> Option<Value> {
        let mut scout = IdScout::default();
        for piece in message.as_bytes().chunks(3) {
            scout.feed(piece);
        }
        scout.id()
    }

    #[test]
    fn the_id_is_found_wherever_it_is() {
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"params":{"id":9}}"#), Some(7.into()));
        assert_eq!(id(r#"{"params":{"id":9,"x":[1,{"id":3}]},"id" : "a\",b" }"#), Some("a\",b".into()));
        assert_eq!(id(r#"{"params":"\",\"id\":5"}"#), None);
        assert_eq!(id(r#"{"id":null}"#), None);
        assert_eq!(id(r#"{"id":{"a":1}}"#), None);
        assert_eq!(id("[1,2"), None);
        assert_eq!(id("}}}]]"), None);
    }
}
