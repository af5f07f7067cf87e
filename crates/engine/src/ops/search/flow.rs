//! The text of a large file, as it flows by. Owns decoding, the longest line and the time that is left for it.
//!
//! Promises: memory does not grow with the file nor with its lines; a call that is cancelled ends here, in the middle of
//! a file; and whatever is not looked at is told by [`Flow::end`].

use std::{
    io::{self, Read},
    time::Instant,
};

use text::encoding::{Detected, Encoding, Part, Stream, begins_binary, detect_first};

use super::left::Why;
use crate::{
    control::Control,
    failure::{Failure, Kind},
    limits,
    workspace::Pieces,
};

/// Bytes that are read at once, and by which the encoding is judged.
const PIECE_BYTES: usize = 256 << 10;
/// Stands where the rest of a line is passed over, so that nothing is taken for the end of the line.
const CUT: &str = "…";

/// Where a flow came to.
#[derive(Debug)]
pub(super) enum End {
    /// To the end of the file.
    Whole,
    /// To the end, but for the rest of lines that are too long.
    Cut,
    /// Not to the end.
    Left(Why),
    /// It is not text in its encoding, from the piece at this place on.
    NotText(u64),
    /// It could not be read, or the call was ended.
    Failed(Failure),
}

/// What bounds a flow.
#[derive(Clone, Copy)]
pub(super) struct Bounds<'a> {
    pub(super) control: &'a Control<'a>,
    /// When large files are no longer looked into, so that an answer comes in time.
    pub(super) until: Instant,
}

/// A large file on its way through a search.
pub(super) struct Flow<'a> {
    pieces: &'a dyn Pieces,
    bounds: Bounds<'a>,
    stream: Stream,
    raw: Vec<u8>,
    offset: u64,
    ready: String,
    /// How much of `ready` was given away.
    given: usize,
    /// Bytes of the last line so far.
    line_bytes: usize,
    /// Whether a character came that is not ASCII.
    wide: bool,
    end: Option<End>,
    cut: bool,
}

impl<'a> Flow<'a> {
    pub(super) fn new(pieces: &'a dyn Pieces, encoding: Encoding, bounds: Bounds<'a>) -> Self {
        Self {
            pieces,
            bounds,
            stream: Stream::new(encoding),
            raw: vec![0; PIECE_BYTES],
            offset: 0,
            ready: String::new(),
            given: 0,
            line_bytes: 0,
            wide: false,
            end: None,
            cut: false,
        }
    }

    /// How far it came; nothing in between.
    pub(super) fn end(self) -> End {
        match self.end {
            Some(End::Whole) | None if self.cut => End::Cut,
            Some(end) => end,
            None => End::Whole,
        }
    }

    /// Why it came no further, so far.
    pub(super) fn stopped(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Bytes that were read.
    pub(super) fn bytes(&self) -> u64 {
        self.offset
    }

    /// The encoding from the piece on where UTF-8 ended, if all before it is ASCII and it is an older one.
    pub(super) fn other_encoding(&self, place: u64) -> Result<Option<Encoding>, Failure> {
        if self.wide || self.stream.encoding() != Encoding::Utf8 {
            return Ok(None);
        }
        let mut raw = vec![0; PIECE_BYTES];
        let count = self.pieces.read_at(place, &mut raw)?;
        match detect_first(&raw[..count]) {
            Detected::Text { encoding } if encoding != Encoding::Utf8 => Ok(Some(encoding)),
            Detected::Text { .. } | Detected::Binary => Ok(None),
        }
    }

    /// Brings the next piece of text.
    fn fill(&mut self) -> Result<(), End> {
        self.bounds.control.check().map_err(End::Failed)?;
        if Instant::now() > self.bounds.until {
            return Err(End::Left(Why::Time));
        }
        if self.offset > limits::SEARCH_LARGE_BYTES_MAX {
            return Err(End::Left(Why::Size));
        }
        let count = self.pieces.read_at(self.offset, &mut self.raw).map_err(End::Failed)?;
        let part = if count == 0 { Part::Last } else { Part::More };
        self.given = 0;
        self.ready.clear();
        let pushed = self.stream.push(&self.raw[..count], part, &mut self.ready);
        pushed.map_err(|_| End::NotText(self.offset))?;
        self.wide |= !self.ready.is_ascii();
        self.offset += count as u64;
        self.shorten();
        if count == 0 { Err(End::Whole) } else { Ok(()) }
    }

    /// Takes away what is too much of a line. A piece is shorter than the longest line, so only its first part can be.
    fn shorten(&mut self) {
        let first = memchr::memchr(b'\n', self.ready.as_bytes());
        let over = self.line_bytes.saturating_add(first.unwrap_or(self.ready.len()));
        if over > limits::SEARCH_LINE_BYTES_MAX {
            let mark = if self.line_bytes > limits::SEARCH_LINE_BYTES_MAX { "" } else { CUT };
            self.ready.replace_range(..first.unwrap_or(self.ready.len()), mark);
            self.cut = true;
        }
        self.line_bytes = match memchr::memrchr(b'\n', self.ready.as_bytes()) {
            Some(last) => self.ready.len() - last - 1,
            None => over,
        };
    }
}

impl Read for Flow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.given == self.ready.len() {
            match self.end {
                Some(End::Whole) => return Ok(0),
                Some(_) => return Err(io::ErrorKind::Other.into()),
                None => self.end = self.fill().err(),
            }
        }
        let left = &self.ready.as_bytes()[self.given..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.given += count;
        Ok(count)
    }
}

/// The encoding of a large file by its first bytes; nothing when it is not text.
pub(super) fn encoding(pieces: &dyn Pieces) -> Result<Option<Encoding>, Failure> {
    let mut first = vec![0; PIECE_BYTES];
    let mut count = 0;
    while count < first.len() {
        match pieces.read_at(count as u64, &mut first[count..])? {
            0 => break,
            more => count += more,
        }
    }
    let first = &first[..count];
    if begins_binary(first) {
        return Ok(None);
    }
    Ok(match detect_first(first) {
        Detected::Text { encoding } => Some(encoding),
        Detected::Binary => None,
    })
}

/// Whether a failure means that the file is out of reach, rather than that the call ends.
pub(super) fn is_of_file(failure: &Failure) -> bool {
    !matches!(failure.kind, Kind::Cancelled | Kind::Deadline)
}
