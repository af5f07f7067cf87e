//! Finds the request id in an oversized message without buffering the message.

use serde_json::Value;

use crate::limits::ID_BYTES_MAX;

/// Length of the only relevant member name: `id` with its quotes.
const MEMBER_NAME_BYTES_MAX: usize = 4;

/// Position of the scan in the outermost object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum JsonMemberPart {
    #[default]
    Key,
    Value,
}

/// Scans a message chunk by chunk.
#[derive(Debug, Default)]
pub(crate) struct RequestIdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    part: JsonMemberPart,
    key: Vec<u8>,
    value: Vec<u8>,
    id_json: Option<Vec<u8>>,
}

impl RequestIdScanner {
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            self.scan_byte(byte);
        }
    }

    /// The id, if one was found and is a string or an integer.
    pub(crate) fn into_id(self) -> Option<Value> {
        let value: Value = serde_json::from_slice(&self.id_json?).ok()?;
        (value.is_string() || value.is_i64()).then_some(value)
    }

    fn scan_byte(&mut self, byte: u8) {
        if self.in_string {
            self.buffer_byte(byte);
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
                self.buffer_byte(byte);
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                self.finish_member();
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => self.part = JsonMemberPart::Value,
            b',' => self.finish_member(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.buffer_byte(byte),
        }
    }

    /// Buffers a byte of the outermost object if it can belong to an id.
    fn buffer_byte(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        let (buffer, max) = match self.part {
            JsonMemberPart::Key => (&mut self.key, MEMBER_NAME_BYTES_MAX + 1),
            JsonMemberPart::Value => (&mut self.value, ID_BYTES_MAX + 1),
        };
        if buffer.len() < max {
            buffer.push(byte);
        }
    }

    fn finish_member(&mut self) {
        if self.depth != 1 {
            return;
        }
        if self.key == b"\"id\"" && self.value.len() <= ID_BYTES_MAX {
            self.id_json = Some(std::mem::take(&mut self.value));
        }
        self.key.clear();
        self.value.clear();
        self.part = JsonMemberPart::Key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan_id(message: &str) -> Option<Value> {
        let mut scanner = RequestIdScanner::default();
        for piece in message.as_bytes().chunks(3) {
            scanner.feed(piece);
        }
        scanner.into_id()
    }

    #[test]
    fn finds_id_at_any_position() {
        assert_eq!(scan_id(r#"{"jsonrpc":"2.0","id":7,"params":{"id":9}}"#), Some(7.into()));
        assert_eq!(scan_id(r#"{"params":{"id":9,"x":[1,{"id":3}]},"id" : "a\",b" }"#), Some("a\",b".into()));
        assert_eq!(scan_id(r#"{"params":"\",\"id\":5"}"#), None);
        assert_eq!(scan_id(r#"{"id":null}"#), None);
        assert_eq!(scan_id(r#"{"id":{"a":1}}"#), None);
        assert_eq!(scan_id("[1,2"), None);
        assert_eq!(scan_id("}}}]]"), None);
    }
}
