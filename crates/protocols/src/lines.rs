//! Reads and writes line-delimited messages over a byte stream. The reader skips a line that exceeds the length limit
//! and keeps only the request id of the line.

use std::{mem, ops::Range};

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::limits::{ID_BYTES_MAX, LINE_BUFFER_RETAINED_BYTES, MESSAGE_BYTES_MAX, READ_CHUNK_BYTES};

mod outbox;

pub(crate) use outbox::Outbox;

/// Appends the newline that ends a message.
pub(crate) fn into_line(message: impl Into<Vec<u8>>) -> Vec<u8> {
    let mut line = message.into();
    line.push(b'\n');
    line
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The line length in bytes from which [`LineReader::take_line`] returns the read buffer instead of a copy. Copying a
/// short line is cheaper than allocating a new read buffer.
const LARGE_LINE_BYTES: usize = READ_CHUNK_BYTES;

#[derive(Debug, PartialEq)]
pub(crate) enum LineReaderEvent {
    Line,
    /// The reader skipped a line that exceeded the length limit; the value is the request id in the line.
    Oversized(Option<Value>),
    End,
}

pub(crate) struct LineReader<R> {
    input: R,
    limit_bytes: usize,
    buffer: Vec<u8>,
    current_line: Range<usize>,
    next_start: usize,
    /// The offset in the buffer up to which the reader has searched for a newline.
    scanned_to: usize,
    oversized_scanner: Option<RequestIdScanner>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_limit(input, MESSAGE_BYTES_MAX)
    }

    fn with_limit(input: R, limit_bytes: usize) -> Self {
        Self {
            input,
            limit_bytes,
            buffer: Vec::new(),
            current_line: 0..0,
            next_start: 0,
            scanned_to: 0,
            oversized_scanner: None,
        }
    }

    fn line(&self) -> &[u8] {
        let line = self.buffer.get(self.current_line.clone()).unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    pub(crate) fn message(&self) -> &[u8] {
        self.line().strip_prefix(BYTE_ORDER_MARK).unwrap_or(self.line())
    }

    pub(crate) fn take_line(&mut self) -> Vec<u8> {
        if self.current_line.len() < LARGE_LINE_BYTES {
            return self.line().to_vec();
        }
        let rest = self.buffer[self.next_start..].to_vec();
        let mut line = mem::replace(&mut self.buffer, rest);
        line.truncate(self.current_line.end);
        line.drain(..self.current_line.start);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (self.current_line, self.next_start, self.scanned_to) = (0..0, 0, 0);
        line
    }

    /// Reads the next line; dropping the returned future loses no input.
    pub(crate) async fn next(&mut self) -> LineReaderEvent {
        loop {
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned_to..]) {
                let end = self.scanned_to + offset;
                let line = self.next_start..end;
                self.next_start = end + 1;
                self.scanned_to = self.next_start;
                if self.oversized_scanner.is_some() || line.len() > self.limit_bytes {
                    let mut scanner = self.oversized_scanner.take().unwrap_or_default();
                    scanner.feed(&self.buffer[line]);
                    return LineReaderEvent::Oversized(scanner.into_id());
                }
                self.current_line = line;
                return LineReaderEvent::Line;
            }
            self.skip_or_compact();
            self.buffer.reserve(READ_CHUNK_BYTES);
            match self.input.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return self.final_line(),
                Ok(_) => {}
            }
        }
    }

    fn skip_or_compact(&mut self) {
        self.buffer.drain(..self.next_start);
        self.next_start = 0;
        self.current_line = 0..0;
        if self.oversized_scanner.is_some() || self.buffer.len() > self.limit_bytes {
            self.oversized_scanner.get_or_insert_default().feed(&self.buffer);
            self.buffer.clear();
        }
        self.scanned_to = self.buffer.len();
        if self.buffer.len() < LINE_BUFFER_RETAINED_BYTES && self.buffer.capacity() > LINE_BUFFER_RETAINED_BYTES {
            self.buffer.shrink_to(LINE_BUFFER_RETAINED_BYTES);
        }
    }

    fn final_line(&mut self) -> LineReaderEvent {
        if let Some(scanner) = self.oversized_scanner.take() {
            return LineReaderEvent::Oversized(scanner.into_id());
        }
        if self.next_start >= self.buffer.len() {
            return LineReaderEvent::End;
        }
        self.current_line = self.next_start..self.buffer.len();
        self.next_start = self.buffer.len();
        self.scanned_to = self.next_start;
        LineReaderEvent::Line
    }
}

/// The length of the JSON member name `"id"` in bytes, quotes included.
const MEMBER_NAME_BYTES_MAX: usize = 4;

/// Finds the request id in an oversized message without buffering the message.
#[derive(Debug, Default)]
struct RequestIdScanner {
    depth: usize,
    in_string: bool,
    escaped: bool,
    in_value: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    id_json: Option<Vec<u8>>,
}

impl RequestIdScanner {
    fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            self.scan_byte(byte);
        }
    }

    fn into_id(self) -> Option<Value> {
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
            b':' if self.depth == 1 => self.in_value = true,
            b',' => self.finish_member(),
            byte if byte.is_ascii_whitespace() => {}
            byte => self.buffer_byte(byte),
        }
    }

    /// Buffers a byte of a member in the outermost JSON object, and cuts members that are too long for an id.
    fn buffer_byte(&mut self, byte: u8) {
        if self.depth != 1 {
            return;
        }
        let (buffer, max) = match self.in_value {
            false => (&mut self.key, MEMBER_NAME_BYTES_MAX + 1),
            true => (&mut self.value, ID_BYTES_MAX + 1),
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
            self.id_json = Some(mem::take(&mut self.value));
        }
        self.key.clear();
        self.value.clear();
        self.in_value = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all_lines(input: &[u8], limit_bytes: usize) -> Vec<Result<String, Option<Value>>> {
        let mut reader = LineReader::with_limit(input, limit_bytes);
        let mut found = Vec::new();
        loop {
            match reader.next().await {
                LineReaderEvent::Line => found.push(Ok(String::from_utf8_lossy(reader.line()).into_owned())),
                LineReaderEvent::Oversized(id) => found.push(Err(id)),
                LineReaderEvent::End => return found,
            }
        }
    }

    #[tokio::test]
    async fn splits_at_newlines_and_at_eof() {
        assert_eq!(
            read_all_lines(b"a\r\nb\n\nc", 10).await,
            [Ok("a".into()), Ok("b".into()), Ok(String::new()), Ok("c".into())]
        );
        assert_eq!(read_all_lines(b"", 10).await, []);
    }

    #[tokio::test]
    async fn takes_large_line_without_copy_and_reads_next() {
        let large = "x".repeat(LARGE_LINE_BYTES + 7);
        let input = format!("a\n{large}\r\nb\n{large}\nc");
        let mut reader = LineReader::new(input.as_bytes());
        for expected in ["a", &large, "b", &large, "c"] {
            assert_eq!(reader.next().await, LineReaderEvent::Line);
            assert_eq!(reader.take_line(), expected.as_bytes());
        }
        assert_eq!(reader.next().await, LineReaderEvent::End);
    }

    #[tokio::test]
    async fn skips_oversized_line_and_reads_next() {
        let long = format!("{{\"params\":\"{}\",\"id\":7}}\nok\n", "x".repeat(300_000));
        assert_eq!(read_all_lines(long.as_bytes(), 1000).await, [Err(Some(7.into())), Ok("ok".into())]);
        assert_eq!(read_all_lines(b"0123456789\nok\n", 5).await, [Err(None), Ok("ok".into())]);
    }

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
