//! Bounded line reader. An oversized line is skipped; only its request id is kept, for the error response. Buffers at most
//! one message and one chunk.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::request_id_scanner::RequestIdScanner;
use crate::limits::{LINE_BUFFER_RETAINED_BYTES, MESSAGE_BYTES_MAX, READ_CHUNK_BYTES};

/// Lines of at least this length are returned with their buffer. Copying a shorter one is cheaper than a new buffer.
const LARGE_LINE_BYTES: usize = READ_CHUNK_BYTES;

#[derive(Debug, PartialEq)]
pub(crate) enum LineReaderEvent {
    /// A line; [`LineReader::line`] returns it until the next call.
    Line,
    /// An oversized line, with the request id found in it.
    Oversized(Option<Value>),
    /// The peer closed its side.
    End,
}

/// Splits a byte stream into lines.
pub(crate) struct LineReader<R> {
    input: R,
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// The line returned last.
    current_line: std::ops::Range<usize>,
    next_start: usize,
    /// The end of the part that contains no line end.
    scanned_to: usize,
    /// Set while an oversized line is skipped.
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

    /// The line that [`LineReader::next`] announced, without its terminator.
    pub(crate) fn line(&self) -> &[u8] {
        let line = self.buffer.get(self.current_line.clone()).unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// Takes the line. A large one is not copied: it takes the read buffer with it.
    pub(crate) fn take_line(&mut self) -> Vec<u8> {
        if self.current_line.len() < LARGE_LINE_BYTES {
            return self.line().to_vec();
        }
        let rest = self.buffer[self.next_start..].to_vec();
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(self.current_line.end);
        line.drain(..self.current_line.start);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (self.current_line, self.next_start, self.scanned_to) = (0..0, 0, 0);
        line
    }

    /// Reads the next line. Cancel safe.
    pub(crate) async fn next(&mut self) -> LineReaderEvent {
        loop {
            if let Some(offset) = memchr::memchr(b'\n', &self.buffer[self.scanned_to..]) {
                let end = self.scanned_to + offset;
                let line = self.next_start..end;
                self.next_start = end + 1;
                self.scanned_to = self.next_start;
                match self.oversized_scanner.take() {
                    Some(mut scanner) => {
                        scanner.feed(&self.buffer[line]);
                        return LineReaderEvent::Oversized(scanner.into_id());
                    }
                    None if line.len() > self.limit_bytes => {
                        let mut scanner = RequestIdScanner::default();
                        scanner.feed(&self.buffer[line]);
                        return LineReaderEvent::Oversized(scanner.into_id());
                    }
                    None => {
                        self.current_line = line;
                        return LineReaderEvent::Line;
                    }
                }
            }
            self.skip_or_compact();
            self.buffer.reserve(READ_CHUNK_BYTES);
            match self.input.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return self.final_line(),
                Ok(_) => {}
            }
        }
    }

    /// Drops consumed bytes, and the buffered part of an oversized line.
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

    /// The rest of the buffer at end of input: the last line may lack its terminator.
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
}
