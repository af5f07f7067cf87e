//! Searches files that are too large to hold in memory, as a stream with bounded memory and time. The outcome of a
//! search reports every large file that was not searched completely. For a dialect with its own outcome format, large
//! files are not searched, only counted.

use std::{
    io::{self, Read},
    time::Instant,
};

use stead_path::RelPath;
use stead_text::encoding::{ChunkFinality, Encoding, TextStreamDecoder, detect_from_prefix, starts_like_binary};

use crate::{
    call_options::BeforeAfterContentInclusion,
    control::CallControl,
    errors::{Error, ErrorKind},
    limits,
    ops::search::{
        FileToSearch, SearchPatternAndLimits, SearchResults, matcher::SearchHitsInOneText,
        results::IncompleteSearchReason,
    },
    tree::FileReader,
};

enum LargeFileSearchOutcome {
    Searched(SearchHitsInOneText, u64),
    /// The file is not UTF-8, and the search must be repeated with the given encoding.
    RetryWith(Encoding),
    NotText,
    Stopped(IncompleteSearchReason),
    Unreadable,
}

impl SearchPatternAndLimits<'_> {
    pub(super) fn search_large(&self, found: &mut SearchResults, source: &FileToSearch<'_, '_>) -> Result<(), Error> {
        let path = source.path();
        if self.context.options.before_after == BeforeAfterContentInclusion::Include {
            found.counts.add_incomplete(path, IncompleteSearchReason::FileTooLarge);
            return Ok(());
        }
        match self.search_large_file(path, source)? {
            LargeFileSearchOutcome::Searched(matched, bytes) => {
                found.counts.scanned += 1;
                found.bytes_searched += bytes;
                self.add_matches(found, path, matched);
            }
            LargeFileSearchOutcome::NotText | LargeFileSearchOutcome::RetryWith(_) => found.counts.binary += 1,
            LargeFileSearchOutcome::Stopped(reason) => found.counts.add_incomplete(path, reason),
            LargeFileSearchOutcome::Unreadable => found.counts.unreadable += 1,
        }
        Ok(())
    }

    fn search_large_file(
        &self,
        path: &RelPath,
        source: &FileToSearch<'_, '_>,
    ) -> Result<LargeFileSearchOutcome, Error> {
        let Ok(reader) = source.open_file(self.context) else { return Ok(LargeFileSearchOutcome::Unreadable) };
        let file = &*reader;
        if file.stat().size > limits::SEARCH_LARGE_BYTES_MAX {
            return Ok(LargeFileSearchOutcome::Stopped(IncompleteSearchReason::FileTooLarge));
        }
        let encoding = match detect_encoding(file) {
            Ok(Some(encoding)) => encoding,
            Ok(None) => return Ok(LargeFileSearchOutcome::NotText),
            Err(_) => return Ok(LargeFileSearchOutcome::Unreadable),
        };
        match self.search_with_encoding(path, file, encoding)? {
            LargeFileSearchOutcome::RetryWith(other) => self.search_with_encoding(path, file, other),
            result @ (LargeFileSearchOutcome::Searched(..)
            | LargeFileSearchOutcome::NotText
            | LargeFileSearchOutcome::Stopped(_)
            | LargeFileSearchOutcome::Unreadable) => Ok(result),
        }
    }

    fn search_with_encoding(
        &self,
        path: &RelPath,
        file: &dyn FileReader,
        encoding: Encoding,
    ) -> Result<LargeFileSearchOutcome, Error> {
        let control = self.context.control;
        let limits = LargeFileSearchDeadline { control, deadline: self.large_file_deadline };
        let ranker = self.ranker(path);
        let mut hit_limits = self.hit_limits(ranker.as_ref());
        loop {
            let mut reader = LargeFileReader::new(file, encoding, limits);
            let matched = self.pattern.find_hits_in_stream(&mut reader, hit_limits, control);
            // The call may have been cancelled while the pattern was matched.
            control.check()?;
            let bytes = reader.bytes_read();
            if let Some(LargeFileSearchStreamEnd::NotText(at)) = reader.stop_reason() {
                let other = reader.detect_other_encoding(*at).unwrap_or(None);
                return Ok(other.map_or(LargeFileSearchOutcome::NotText, LargeFileSearchOutcome::RetryWith));
            }
            return match (matched, reader.into_end()) {
                (Some(matched), LargeFileSearchStreamEnd::Complete) => {
                    Ok(LargeFileSearchOutcome::Searched(matched, bytes))
                }
                (Some(matched), LargeFileSearchStreamEnd::LinesCut) => Ok(LargeFileSearchOutcome::Searched(
                    SearchHitsInOneText { skipped_long_lines: true, ..matched },
                    bytes,
                )),
                (_, LargeFileSearchStreamEnd::Stopped(reason)) => Ok(LargeFileSearchOutcome::Stopped(reason)),
                (_, LargeFileSearchStreamEnd::NotText(_)) => Ok(LargeFileSearchOutcome::NotText),
                (_, LargeFileSearchStreamEnd::Failed(error)) if is_file_error(&error) => {
                    Ok(LargeFileSearchOutcome::Unreadable)
                }
                (_, LargeFileSearchStreamEnd::Failed(error)) => Err(error),
                // A line with its context lines does not fit into the buffer, so the file is searched again without
                // context.
                (None, LargeFileSearchStreamEnd::Complete | LargeFileSearchStreamEnd::LinesCut)
                    if hit_limits.context_lines > 0 =>
                {
                    hit_limits.context_lines = 0;
                    continue;
                }
                (None, LargeFileSearchStreamEnd::Complete | LargeFileSearchStreamEnd::LinesCut) => {
                    Ok(LargeFileSearchOutcome::Stopped(IncompleteSearchReason::LineTooLong))
                }
            };
        }
    }
}

/// The bytes that one read of a large file requests; the first read also determines the encoding.
const PIECE_BYTES: usize = 256 << 10;
/// The text that replaces the rest of a truncated line, so that a pattern `end$` does not match at the cut.
const CUT_LINE_MARK: &str = "…";

#[derive(Debug)]
enum LargeFileSearchStreamEnd {
    Complete,
    /// The file was read to its end, but long lines were truncated.
    LinesCut,
    Stopped(IncompleteSearchReason),
    /// The file's bytes at this offset are not valid in the detected encoding.
    NotText(u64),
    Failed(Error),
}

#[derive(Clone, Copy)]
struct LargeFileSearchDeadline<'a> {
    control: &'a CallControl<'a>,
    deadline: Instant,
}

struct LargeFileReader<'a> {
    file: &'a dyn FileReader,
    limits: LargeFileSearchDeadline<'a>,
    stream: TextStreamDecoder,
    raw: Vec<u8>,
    offset: u64,
    decoded: String,
    consumed: usize,
    line_bytes: usize,
    has_non_ascii: bool,
    end: Option<LargeFileSearchStreamEnd>,
    has_cut_line: bool,
}

impl<'a> LargeFileReader<'a> {
    fn new(file: &'a dyn FileReader, encoding: Encoding, limits: LargeFileSearchDeadline<'a>) -> Self {
        Self {
            file,
            limits,
            stream: TextStreamDecoder::new(encoding),
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

    fn into_end(self) -> LargeFileSearchStreamEnd {
        match self.end {
            Some(LargeFileSearchStreamEnd::Complete) | None if self.has_cut_line => LargeFileSearchStreamEnd::LinesCut,
            Some(end) => end,
            None => LargeFileSearchStreamEnd::Complete,
        }
    }

    fn stop_reason(&self) -> Option<&LargeFileSearchStreamEnd> {
        self.end.as_ref()
    }

    fn bytes_read(&self) -> u64 {
        self.offset
    }

    /// Detects the encoding of a file that is not UTF-8 from `offset` on; `None` unless all earlier bytes are ASCII.
    fn detect_other_encoding(&self, offset: u64) -> Result<Option<Encoding>, Error> {
        if self.has_non_ascii || self.stream.encoding() != Encoding::Utf8 {
            return Ok(None);
        }
        let mut raw = vec![0; PIECE_BYTES];
        let count = self.file.read_at(offset, &mut raw)?;
        Ok(detect_from_prefix(&raw[..count]).filter(|encoding| *encoding != Encoding::Utf8))
    }

    fn fill_buffer(&mut self) -> Result<(), LargeFileSearchStreamEnd> {
        self.limits.control.check().map_err(LargeFileSearchStreamEnd::Failed)?;
        if Instant::now() > self.limits.deadline {
            return Err(LargeFileSearchStreamEnd::Stopped(IncompleteSearchReason::OutOfTime));
        }
        if self.offset > limits::SEARCH_LARGE_BYTES_MAX {
            return Err(LargeFileSearchStreamEnd::Stopped(IncompleteSearchReason::FileTooLarge));
        }
        let count = self.file.read_at(self.offset, &mut self.raw).map_err(LargeFileSearchStreamEnd::Failed)?;
        let part = if count == 0 { ChunkFinality::Last } else { ChunkFinality::MoreFollows };
        self.consumed = 0;
        self.decoded.clear();
        let pushed = self.stream.push(&self.raw[..count], part, &mut self.decoded);
        pushed.map_err(|_| LargeFileSearchStreamEnd::NotText(self.offset))?;
        self.has_non_ascii |= !self.decoded.is_ascii();
        self.offset += count as u64;
        self.cut_long_lines();
        if count == 0 { Err(LargeFileSearchStreamEnd::Complete) } else { Ok(()) }
    }

    /// Truncates the first line in `decoded` if it is too long; later lines of one read are always short enough.
    fn cut_long_lines(&mut self) {
        let first = memchr::memchr(b'\n', self.decoded.as_bytes());
        let length = self.line_bytes.saturating_add(first.unwrap_or(self.decoded.len()));
        if length > limits::SEARCH_LINE_BYTES_MAX {
            let mark = if self.line_bytes > limits::SEARCH_LINE_BYTES_MAX { "" } else { CUT_LINE_MARK };
            self.decoded.replace_range(..first.unwrap_or(self.decoded.len()), mark);
            self.has_cut_line = true;
        }
        self.line_bytes = match memchr::memrchr(b'\n', self.decoded.as_bytes()) {
            Some(last) => self.decoded.len() - last - 1,
            None => length,
        };
    }
}

impl Read for LargeFileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.consumed == self.decoded.len() {
            match self.end {
                Some(LargeFileSearchStreamEnd::Complete) => return Ok(0),
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

fn detect_encoding(file: &dyn FileReader) -> Result<Option<Encoding>, Error> {
    let mut first = vec![0; PIECE_BYTES];
    let mut count = 0;
    while count < first.len() {
        match file.read_at(count as u64, &mut first[count..])? {
            0 => break,
            more => count += more,
        }
    }
    let first = &first[..count];
    if starts_like_binary(first) {
        return Ok(None);
    }
    Ok(detect_from_prefix(first))
}

fn is_file_error(error: &Error) -> bool {
    !matches!(error.kind, ErrorKind::Cancelled | ErrorKind::Deadline)
}
