//! Streams the text of a large file. Owns decoding, the maximum line length and the time limit.
//!
//! Memory is bounded regardless of file and line length; cancellation takes effect inside a file;
//! [`LargeFileReader::into_end`] reports anything that was not searched.

use std::{
    io::{self, Read},
    time::Instant,
};

use stead_text::encoding::{
    ChunkFinality, DetectedContent, Encoding, StreamDecoder, detect_from_prefix, starts_like_binary,
};

use super::incomplete::IncompleteReason;
use crate::{
    control::CallControl,
    errors::{Error, ErrorKind},
    limits,
    workspace::FileReader,
};

/// Bytes per read; the first piece also determines the encoding.
const PIECE_BYTES: usize = 256 << 10;
/// Replaces the rest of a truncated line, so that no match is taken to reach the end of the line.
const CUT_LINE_MARK: &str = "…";

/// How far the reader got.
#[derive(Debug)]
pub(super) enum LargeFileEnd {
    Complete,
    /// To the end, except for the rest of long lines.
    LinesCut,
    Stopped(IncompleteReason),
    /// Not valid text in its encoding, from the piece at this offset on.
    NotText(u64),
    /// A read error, or the call was cancelled.
    Failed(Error),
}

#[derive(Clone, Copy)]
pub(super) struct LargeFileLimits<'a> {
    pub(super) control: &'a CallControl<'a>,
    /// Large files are skipped after this time, so that the outcome arrives in time.
    pub(super) deadline: Instant,
}

pub(super) struct LargeFileReader<'a> {
    file: &'a dyn FileReader,
    limits: LargeFileLimits<'a>,
    stream: StreamDecoder,
    raw: Vec<u8>,
    offset: u64,
    decoded: String,
    /// Consumed bytes of `ready`.
    consumed: usize,
    /// Length of the current line so far.
    line_bytes: usize,
    has_non_ascii: bool,
    end: Option<LargeFileEnd>,
    has_cut_line: bool,
}

impl<'a> LargeFileReader<'a> {
    pub(super) fn new(file: &'a dyn FileReader, encoding: Encoding, limits: LargeFileLimits<'a>) -> Self {
        Self {
            file,
            limits,
            stream: StreamDecoder::new(encoding),
            raw: vec![0; PIECE_BYTES],
            offset: 0,
            decoded: String::new(),
            consumed: 0,
            line_bytes: 0,
            has_non_ascii: false,
            end: None,
            has_cut_line: false,
        }
    }

    pub(super) fn into_end(self) -> LargeFileEnd {
        match self.end {
            Some(LargeFileEnd::Complete) | None if self.has_cut_line => LargeFileEnd::LinesCut,
            Some(end) => end,
            None => LargeFileEnd::Complete,
        }
    }

    /// Why it stopped so far.
    pub(super) fn stop_reason(&self) -> Option<&LargeFileEnd> {
        self.end.as_ref()
    }

    pub(super) fn bytes_read(&self) -> u64 {
        self.offset
    }

    /// The legacy encoding after the offset where UTF-8 ended, if everything before it is ASCII.
    pub(super) fn detect_other_encoding(&self, path: u64) -> Result<Option<Encoding>, Error> {
        if self.has_non_ascii || self.stream.encoding() != Encoding::Utf8 {
            return Ok(None);
        }
        let mut raw = vec![0; PIECE_BYTES];
        let count = self.file.read_at(path, &mut raw)?;
        match detect_from_prefix(&raw[..count]) {
            DetectedContent::Text { encoding } if encoding != Encoding::Utf8 => Ok(Some(encoding)),
            DetectedContent::Text { .. } | DetectedContent::Binary => Ok(None),
        }
    }

    /// Reads the next piece of text.
    fn fill_buffer(&mut self) -> Result<(), LargeFileEnd> {
        self.limits.control.check().map_err(LargeFileEnd::Failed)?;
        if Instant::now() > self.limits.deadline {
            return Err(LargeFileEnd::Stopped(IncompleteReason::OutOfTime));
        }
        if self.offset > limits::SEARCH_LARGE_BYTES_MAX {
            return Err(LargeFileEnd::Stopped(IncompleteReason::FileTooLarge));
        }
        let count = self.file.read_at(self.offset, &mut self.raw).map_err(LargeFileEnd::Failed)?;
        let part = if count == 0 { ChunkFinality::Last } else { ChunkFinality::MoreFollows };
        self.consumed = 0;
        self.decoded.clear();
        let pushed = self.stream.push(&self.raw[..count], part, &mut self.decoded);
        pushed.map_err(|_| LargeFileEnd::NotText(self.offset))?;
        self.has_non_ascii |= !self.decoded.is_ascii();
        self.offset += count as u64;
        self.cut_long_lines();
        if count == 0 { Err(LargeFileEnd::Complete) } else { Ok(()) }
    }

    /// Truncates long lines. A piece is shorter than the maximum line, so only its first line can exceed it.
    fn cut_long_lines(&mut self) {
        let first = memchr::memchr(b'\n', self.decoded.as_bytes());
        let over = self.line_bytes.saturating_add(first.unwrap_or(self.decoded.len()));
        if over > limits::SEARCH_LINE_BYTES_MAX {
            let mark = if self.line_bytes > limits::SEARCH_LINE_BYTES_MAX { "" } else { CUT_LINE_MARK };
            self.decoded.replace_range(..first.unwrap_or(self.decoded.len()), mark);
            self.has_cut_line = true;
        }
        self.line_bytes = match memchr::memrchr(b'\n', self.decoded.as_bytes()) {
            Some(last) => self.decoded.len() - last - 1,
            None => over,
        };
    }
}

impl Read for LargeFileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.consumed == self.decoded.len() {
            match self.end {
                Some(LargeFileEnd::Complete) => return Ok(0),
                Some(_) => return Err(io::ErrorKind::Other.into()),
                None => self.end = self.fill_buffer().err(),
            }
        }
        let left = &self.decoded.as_bytes()[self.consumed..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.consumed += count;
        Ok(count)
    }
}

/// The encoding of a large file by its first bytes; `None` if it is not text.
pub(super) fn detect_encoding(pieces: &dyn FileReader) -> Result<Option<Encoding>, Error> {
    let mut first = vec![0; PIECE_BYTES];
    let mut count = 0;
    while count < first.len() {
        match pieces.read_at(count as u64, &mut first[count..])? {
            0 => break,
            more => count += more,
        }
    }
    let first = &first[..count];
    if starts_like_binary(first) {
        return Ok(None);
    }
    Ok(match detect_from_prefix(first) {
        DetectedContent::Text { encoding } => Some(encoding),
        DetectedContent::Binary => None,
    })
}

/// Whether an error concerns the file only, not the whole call.
pub(super) fn is_file_error(error: &Error) -> bool {
    !matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Deadline)
}
