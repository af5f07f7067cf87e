//! Lines out of a byte stream, bounded. A line that is too long is passed over, and only its request id is kept, so
//! that its sender can be told. Never holds more than one message and one chunk.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::oversize::IdScout;
use crate::limits::{LINE_BUFFER_BYTES_KEPT, MESSAGE_BYTES_MAX, READ_CHUNK_BYTES};

/// From which length on a line is handed over with its room. Copying a shorter one costs less than new room does.
const LARGE_LINE_BYTES: usize = READ_CHUNK_BYTES;

/// What came next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// A line; [`LineReader::line`] shows it until the next call.
    Line,
    /// A line that was too long, with the request id found in it.
    Oversize(Option<Value>),
    /// The peer closed its side.
    End,
}

/// Splits a byte stream into lines.
pub(crate) struct LineReader<R> {
    input: R,
    limit_bytes: usize,
    buffer: Vec<u8>,
    /// The line shown last.
    line: std::ops::Range<usize>,
    /// Where the next line begins.
    start: usize,
    /// Up to where no line end was found.
    scanned: usize,
    /// Set while an over-long line is passed over.
    passing: Option<IdScout>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_limit(input, MESSAGE_BYTES_MAX)
    }

    fn with_limit(input: R, limit_bytes: usize) -> Self {
        Self { input, limit_bytes, buffer: Vec::new(), line: 0..0, start: 0, scanned: 0, passing: None }
    }

    /// The line that [`LineReader::next`] announced, without its end.
    pub(crate) fn line(&self) -> &[u8] {
        let line = self.buffer.get(self.line.clone()).unwrap_or_default();
        line.strip_suffix(b"\r").unwrap_or(line)
    }

    /// The same line as a value. A large one is not copied: it takes the room it was read into along.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        if self.line.len() < LARGE_LINE_BYTES {
            return self.line().to_vec();
        }
        let rest = self.buffer[self.start..].to_vec();
        let mut line = std::mem::replace(&mut self.buffer, rest);
        line.truncate(self.line.end);
        line.drain(..self.line.start);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        (self.line, self.start, self.scanned) = (0..0, 0, 0);
        line
    }

    /// What comes next. Loses nothing when dropped half-way.
    pub(crate) async fn next(&mut self) -> Next {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let end = self.scanned + at;
                let line = self.start..end;
                self.start = end + 1;
                self.scanned = self.start;
                match self.passing.take() {
                    Some(mut scout) => {
                        scout.feed(&self.buffer[line]);
                        return Next::Oversize(scout.id());
                    }
                    None if line.len() > self.limit_bytes => {
                        let mut scout = IdScout::default();
                        scout.feed(&self.buffer[line]);
                        return Next::Oversize(scout.id());
                    }
                    None => {
                        self.line = line;
                        return Next::Line;
                    }
                }
            }
            self.pass_or_compact();
            self.buffer.reserve(READ_CHUNK_BYTES);
            match self.input.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return self.rest(),
                Ok(_) => {}
            }
        }
    }

    /// Makes room: what is consumed goes, and so does the part of a line that is already too long.
    fn pass_or_compact(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.line = 0..0;
        if self.passing.is_some() || self.buffer.len() > self.limit_bytes {
            self.passing.get_or_insert_default().feed(&self.buffer);
            self.buffer.clear();
        }
        self.scanned = self.buffer.len();
        if self.buffer.len() < LINE_BUFFER_BYTES_KEPT && self.buffer.capacity() > LINE_BUFFER_BYTES_KEPT {
            self.buffer.shrink_to(LINE_BUFFER_BYTES_KEPT);
        }
    }

    /// What is left when the peer closed: a last line may lack its end.
    fn rest(&mut self) -> Next {
        if let Some(scout) = self.passing.take() {
            return Next::Oversize(scout.id());
        }
        if self.start >= self.buffer.len() {
            return Next::End;
        }
        self.line = self.start..self.buffer.len();
        self.start = self.buffer.len();
        self.scanned = self.start;
        Next::Line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &[u8], limit_bytes: usize) -> Vec<Result<String, Option<Value>>> {
        let mut reader = LineReader::with_limit(input, limit_bytes);
        let mut found = Vec::new();
        loop {
            match reader.next().await {
                Next::Line => found.push(Ok(String::from_utf8_lossy(reader.line()).into_owned())),
                Next::Oversize(id) => found.push(Err(id)),
                Next::End => return found,
            }
        }
    }

    #[tokio::test]
    async fn lines_end_at_line_ends_and_at_the_end() {
        assert_eq!(
            all(b"a\r\nb\n\nc", 10).await,
            [Ok("a".into()), Ok("b".into()), Ok(String::new()), Ok("c".into())]
        );
        assert_eq!(all(b"", 10).await, []);
    }

    #[tokio::test]
    async fn a_large_line_is_taken_with_its_room_and_the_next_one_is_whole() {
        let large = "x".repeat(LARGE_LINE_BYTES + 7);
        let input = format!("a\n{large}\r\nb\n{large}\nc");
        let mut reader = LineReader::new(input.as_bytes());
        for expected in ["a", &large, "b", &large, "c"] {
            assert_eq!(reader.next().await, Next::Line);
            assert_eq!(reader.take(), expected.as_bytes());
        }
        assert_eq!(reader.next().await, Next::End);
    }

    #[tokio::test]
    async fn a_line_too_long_is_passed_over_and_the_next_is_read() {
        let long = format!("{{\"params\":\"{}\",\"id\":7}}\nok\n", "x".repeat(300_000));
        assert_eq!(all(long.as_bytes(), 1000).await, [Err(Some(7.into())), Ok("ok".into())]);
        assert_eq!(all(b"0123456789\nok\n", 5).await, [Err(None), Ok("ok".into())]);
    }
}
