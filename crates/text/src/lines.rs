//! Lines and their terminators.
//!
//! Owns the one definition of a line used everywhere: bytes up to and including `\n`, `\r\n` or a lone `\r`, or the
//! unterminated rest at the end. Promises that the lines of a text, put together, are the text. Never copies text and
//! never changes a terminator.
//!
//! Line numbers given to or by this module are 1-based, as people count. Everything works on bytes, which is right
//! for any encoding that keeps ASCII bytes as they are (UTF-8 does); the `&str` functions are the same code.

use std::iter::FusedIterator;
use std::ops::{Range, RangeInclusive};

/// The way the lines of a text end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Every terminator is `\n`.
    Lf,
    /// Every terminator is `\r\n`.
    Crlf,
    /// Every terminator is a lone `\r`.
    Cr,
    /// More than one kind of terminator.
    Mixed,
    /// No terminator at all.
    None,
}

impl Ending {
    /// The name shown to callers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lf => "lf",
            Self::Crlf => "crlf",
            Self::Cr => "cr",
            Self::Mixed => "mixed",
            Self::None => "none",
        }
    }

    /// The terminator itself, where there is exactly one kind.
    #[must_use]
    pub fn terminator(self) -> Option<&'static str> {
        match self {
            Self::Lf => Some("\n"),
            Self::Crlf => Some("\r\n"),
            Self::Cr => Some("\r"),
            Self::Mixed | Self::None => None,
        }
    }
}

/// How often each terminator occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Endings {
    /// Terminators that are `\n`.
    pub lf: usize,
    /// Terminators that are `\r\n`.
    pub crlf: usize,
    /// Terminators that are a lone `\r`.
    pub cr: usize,
}

impl Endings {
    /// All terminators together.
    #[must_use]
    pub fn total(self) -> usize {
        self.lf + self.crlf + self.cr
    }

    /// The ending of the whole text, `Mixed` when kinds disagree.
    #[must_use]
    pub fn ending(self) -> Ending {
        match (self.lf, self.crlf, self.cr) {
            (0, 0, 0) => Ending::None,
            (_, 0, 0) => Ending::Lf,
            (0, _, 0) => Ending::Crlf,
            (0, 0, _) => Ending::Cr,
            (_, _, _) => Ending::Mixed,
        }
    }

    /// The most frequent ending, for new lines in a mixed text. Never `Mixed`; on a tie LF, then CRLF.
    #[must_use]
    pub fn dominant(self) -> Ending {
        if self.total() == 0 {
            Ending::None
        } else if self.lf >= self.crlf && self.lf >= self.cr {
            Ending::Lf
        } else if self.crlf >= self.cr {
            Ending::Crlf
        } else {
            Ending::Cr
        }
    }
}

/// Counts lines and terminators of a text that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    endings: Endings,
    last: Option<u8>,
}

impl Counter {
    /// Takes the next piece. A `\r\n` may be split between two pieces.
    pub fn feed(&mut self, piece: &[u8]) {
        let Some(&last) = piece.last() else { return };
        let mut rest = piece;
        if self.last == Some(b'\r')
            && let Some((b'\n', tail)) = piece.split_first()
        {
            self.endings.cr -= 1;
            self.endings.crlf += 1;
            rest = tail;
        }
        let mut lf = memchr::memchr_iter(b'\n', rest).count();
        for at in memchr::memchr_iter(b'\r', rest) {
            if rest.get(at + 1) == Some(&b'\n') {
                self.endings.crlf += 1;
                lf -= 1;
            } else {
                self.endings.cr += 1;
            }
        }
        self.endings.lf += lf;
        self.last = Some(last);
    }

    /// The terminators so far.
    #[must_use]
    pub fn endings(&self) -> Endings {
        self.endings
    }

    /// The lines so far; an unterminated last line counts.
    #[must_use]
    pub fn lines(&self) -> usize {
        let open = matches!(self.last, Some(byte) if byte != b'\n' && byte != b'\r');
        self.endings.total() + usize::from(open)
    }
}

/// How often each terminator occurs in `text`.
#[must_use]
pub fn endings(text: &[u8]) -> Endings {
    let mut counter = Counter::default();
    counter.feed(text);
    counter.endings()
}

/// The number of lines in `text`; an unterminated last line counts, an empty text has none.
#[must_use]
pub fn count(text: &[u8]) -> usize {
    let mut counter = Counter::default();
    counter.feed(text);
    counter.lines()
}

/// The 1-based line that holds the byte at `offset`. An offset at or past the end is on the line that the next byte
/// would be written to.
#[must_use]
pub fn line_at(text: &[u8], offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    let mut ended = endings(before).total();
    if before.last() == Some(&b'\r') && text.get(before.len()) == Some(&b'\n') {
        // Between `\r` and its `\n` the line has not ended yet.
        ended -= 1;
    }
    ended + 1
}

/// The bytes that the lines `lines` (1-based, inclusive) take up in `text`, found without reading past them.
///
/// `None` when the first line is 0, past the last line of the text, or after the last one asked for. An end past
/// the last line means the last line.
#[must_use]
pub fn byte_range(text: &[u8], lines: RangeInclusive<usize>) -> Option<Range<usize>> {
    let (first, last) = lines.into_inner();
    if first == 0 || first > last {
        return None;
    }
    let start = skip(text, 0, first - 1);
    if start == text.len() {
        return None;
    }
    Some(start..skip(text, start, last - (first - 1)))
}

/// The lines `lines` (1-based, inclusive) of `text`, with their terminators. See [`byte_range`].
#[must_use]
pub fn slice(text: &str, lines: RangeInclusive<usize>) -> Option<&str> {
    // Line borders lie beside ASCII bytes, so they are always character borders.
    text.get(byte_range(text.as_bytes(), lines)?)
}

/// Where the line after the next `count` lines starts, from the line start `from`.
fn skip(text: &[u8], from: usize, count: usize) -> usize {
    let mut lines = iter_bytes(text.get(from..).unwrap_or_default());
    for _ in 0..count {
        if lines.next().is_none() {
            break;
        }
    }
    text.len() - lines.rest.len()
}

/// The lines of `text`, each with its terminator.
#[must_use]
pub fn iter(text: &str) -> Lines<'_> {
    Lines { rest: text }
}

/// The lines of `text`, each with its terminator.
#[must_use]
pub fn iter_bytes(text: &[u8]) -> ByteLines<'_> {
    ByteLines { rest: text }
}

/// A line taken apart: its body and its terminator (empty at the end of an unterminated text).
#[must_use]
pub fn split_terminator(line: &str) -> (&str, &str) {
    let length = if line.ends_with("\r\n") { 2 } else { usize::from(line.ends_with(['\n', '\r'])) };
    line.split_at(line.len() - length)
}

/// Iterator over the lines of a `&str`. See [`iter`].
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let (line, rest) = self.rest.split_at(line_length(self.rest.as_bytes())?);
        self.rest = rest;
        Some(line)
    }
}

impl FusedIterator for Lines<'_> {}

/// Iterator over the lines of a `&[u8]`. See [`iter_bytes`].
#[derive(Debug, Clone)]
pub struct ByteLines<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for ByteLines<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (line, rest) = self.rest.split_at(line_length(self.rest)?);
        self.rest = rest;
        Some(line)
    }
}

impl FusedIterator for ByteLines<'_> {}

/// The length of the first line of `text` with its terminator, `None` if there is no line.
fn line_length(text: &[u8]) -> Option<usize> {
    match memchr::memchr2(b'\n', b'\r', text) {
        Some(at) if text[at..].starts_with(b"\r\n") => Some(at + 2),
        Some(at) => Some(at + 1),
        None if text.is_empty() => None,
        None => Some(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIXED: &str = "a\nb\r\nc\rd\n\r\r\ne";

    #[test]
    fn lines_keep_their_terminators() {
        let lines: Vec<&str> = iter(MIXED).collect();
        assert_eq!(lines, ["a\n", "b\r\n", "c\r", "d\n", "\r", "\r\n", "e"]);
        assert_eq!(count(MIXED.as_bytes()), lines.len());
        assert_eq!(iter("").count(), 0);
        assert_eq!(iter("\n").count(), 1);
    }

    #[test]
    fn endings_are_counted_and_named() {
        assert_eq!(endings(MIXED.as_bytes()), Endings { lf: 2, crlf: 2, cr: 2 });
        assert_eq!(endings(MIXED.as_bytes()).dominant(), Ending::Lf);
        for (text, ending, dominant) in [
            ("", Ending::None, Ending::None),
            ("x", Ending::None, Ending::None),
            ("x\ny", Ending::Lf, Ending::Lf),
            ("x\r\ny\r\n", Ending::Crlf, Ending::Crlf),
            ("x\ry", Ending::Cr, Ending::Cr),
            ("x\r\ny\r\nz\n", Ending::Mixed, Ending::Crlf),
            ("x\ry\rz\r\n", Ending::Mixed, Ending::Cr),
        ] {
            let found = endings(text.as_bytes());
            assert_eq!((found.ending(), found.dominant()), (ending, dominant), "{text:?}");
        }
    }

    #[test]
    fn a_pair_split_between_pieces_is_one_terminator() {
        let mut counter = Counter::default();
        for piece in [&b"a\r"[..], b"", b"\nb\r", b"c"] {
            counter.feed(piece);
        }
        assert_eq!(counter.endings(), Endings { lf: 0, crlf: 1, cr: 1 });
        assert_eq!(counter.lines(), 3);
    }

    #[test]
    fn slices_are_one_based_inclusive_and_clamped_at_the_end() {
        assert_eq!(slice(MIXED, 1..=1), Some("a\n"));
        assert_eq!(slice(MIXED, 2..=3), Some("b\r\nc\r"));
        assert_eq!(slice(MIXED, 7..=usize::MAX), Some("e"));
        assert_eq!(slice(MIXED, 1..=usize::MAX), Some(MIXED));
        assert_eq!(slice(MIXED, 8..=9), None);
        assert_eq!(slice(MIXED, 0..=1), None);
        let (first, last) = (3, 2);
        assert_eq!(slice(MIXED, first..=last), None);
        assert_eq!(slice("", 1..=1), None);
        assert_eq!(slice("x\n", 2..=2), None);
    }

    #[test]
    fn an_offset_is_on_the_line_that_holds_its_byte() {
        let text = b"a\r\nb\n";
        let lines: Vec<usize> = (0..=6).map(|offset| line_at(text, offset)).collect();
        assert_eq!(lines, [1, 1, 1, 2, 2, 3, 3]);
        assert_eq!(line_at(b"", 0), 1);
    }

    #[test]
    fn a_line_splits_into_body_and_terminator() {
        assert_eq!(split_terminator("a\r\n"), ("a", "\r\n"));
        assert_eq!(split_terminator("a\r"), ("a", "\r"));
        assert_eq!(split_terminator("\n"), ("", "\n"));
        assert_eq!(split_terminator("a"), ("a", ""));
    }
}
