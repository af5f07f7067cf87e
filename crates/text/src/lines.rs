//! Lines of a text and their terminators.
//!
//! A line is the bytes up to and including `\n`, `\r\n` or a lone `\r`, or the unterminated rest of the text.
//! Concatenating the lines of a text gives exactly the text. The functions for lines work in any encoding that keeps
//! ASCII bytes as they are.

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

/// The kind of line terminators in a whole text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineEnding {
    Lf,
    Crlf,
    Cr,
    Mixed,
    None,
}

impl LineEnding {
    /// Returns the name of the line ending in replies to callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lf => "lf",
            Self::Crlf => "crlf",
            Self::Cr => "cr",
            Self::Mixed => "mixed",
            Self::None => "none",
        }
    }
}

/// The number of line terminators of each kind in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineEndingCounts {
    pub lf: usize,
    pub crlf: usize,
    pub cr: usize,
}

impl LineEndingCounts {
    /// Returns the number of line terminators of all kinds.
    pub fn total(self) -> usize {
        self.lf + self.crlf + self.cr
    }

    /// Returns the kind of line ending of the whole text, or `Mixed` for several kinds.
    pub fn uniform_ending(self) -> LineEnding {
        match (self.lf, self.crlf, self.cr) {
            (0, 0, 0) => LineEnding::None,
            (_, 0, 0) => LineEnding::Lf,
            (0, _, 0) => LineEnding::Crlf,
            (0, 0, _) => LineEnding::Cr,
            (_, _, _) => LineEnding::Mixed,
        }
    }
}

/// A counter of the lines and line terminators of a text that arrives in chunks.
#[derive(Debug, Clone, Default)]
pub struct LineCounter {
    endings: LineEndingCounts,
    last: Option<u8>,
}

impl LineCounter {
    /// Counts the lines of the next chunk; a `\r\n` may be split between two chunks.
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

    /// Returns the number of line terminators of each kind that were counted so far.
    pub fn endings(&self) -> LineEndingCounts {
        self.endings
    }

    /// Returns the number of lines counted so far, including an unterminated last line.
    pub fn lines(&self) -> usize {
        let open = matches!(self.last, Some(byte) if byte != b'\n' && byte != b'\r');
        self.endings.total() + usize::from(open)
    }
}

/// Counts the line terminators of each kind in `text`.
pub fn count_endings(text: &[u8]) -> LineEndingCounts {
    let mut counter = LineCounter::default();
    counter.feed(text);
    counter.endings()
}

/// Converts `text` from LF to CRLF if `model` has only CRLF line endings and `text` only LF. A text that already has
/// CRLF or mixed line endings is returned unchanged.
pub fn adopt_line_endings<'t>(text: &'t str, model: &str) -> Cow<'t, str> {
    let (text_endings, model_endings) = (count_endings(text.as_bytes()), count_endings(model.as_bytes()));
    match (text_endings.uniform_ending(), model_endings.uniform_ending()) {
        (LineEnding::Lf, LineEnding::Crlf) => Cow::Owned(text.replace('\n', "\r\n")),
        _ => Cow::Borrowed(text),
    }
}

/// Counts the lines of `text`, including an unterminated last line; an empty text has 0 lines.
pub fn count_lines(text: &[u8]) -> usize {
    let mut counter = LineCounter::default();
    counter.feed(text);
    counter.lines()
}

/// Returns the byte range of the 1-based `lines` in `text`.
///
/// The result is `None` if the line range is empty, starts at line 0, or starts past the last line. A line range that
/// ends past the last line of the text is cut at the last line.
pub fn byte_range(text: &[u8], lines: RangeInclusive<usize>) -> Option<Range<usize>> {
    let (first, last) = lines.into_inner();
    if first == 0 || first > last {
        return None;
    }
    let start = skip_lines(text, 0, first - 1);
    if start == text.len() {
        return None;
    }
    Some(start..skip_lines(text, start, last - (first - 1)))
}

/// Returns the text of the 1-based `lines`, with line terminators, or `None` if [`byte_range`] returns `None`.
pub fn slice_lines(text: &str, lines: RangeInclusive<usize>) -> Option<&str> {
    // Line boundaries are next to ASCII bytes, so they are always character boundaries.
    text.get(byte_range(text.as_bytes(), lines)?)
}

/// Returns the offset that is `count` lines after the line start `from`.
fn skip_lines(text: &[u8], from: usize, count: usize) -> usize {
    from + iter_bytes(&text[from..]).take(count).map(<[u8]>::len).sum::<usize>()
}

/// Iterates over the lines of the string `text`, each with its terminator.
pub fn iter(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (line, after) = rest.split_at(line_length(rest.as_bytes())?);
        rest = after;
        Some(line)
    })
}

pub(crate) fn iter_bytes(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (line, after) = rest.split_at(line_length(rest)?);
        rest = after;
        Some(line)
    })
}

/// Returns the byte offset of each line start, followed by the length of the text.
pub(crate) fn starts(text: &[u8]) -> Vec<usize> {
    let ends = iter_bytes(text).scan(0, |end, line| {
        *end += line.len();
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Splits a line into its body and its terminator; the terminator is empty for an unterminated line.
pub fn split_terminator(line: &str) -> (&str, &str) {
    let length = if line.ends_with("\r\n") { 2 } else { usize::from(line.ends_with(['\n', '\r'])) };
    line.split_at(line.len() - length)
}

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
        assert_eq!(count_lines(MIXED.as_bytes()), lines.len());
        assert_eq!(iter("").count(), 0);
        assert_eq!(iter("\n").count(), 1);
    }

    #[test]
    fn line_endings_are_counted_and_classified() {
        assert_eq!(count_endings(MIXED.as_bytes()), LineEndingCounts { lf: 2, crlf: 2, cr: 2 });
        for (text, ending) in [
            ("", LineEnding::None),
            ("x", LineEnding::None),
            ("x\ny", LineEnding::Lf),
            ("x\r\ny\r\n", LineEnding::Crlf),
            ("x\ry", LineEnding::Cr),
            ("x\r\ny\r\nz\n", LineEnding::Mixed),
            ("x\ry\rz\r\n", LineEnding::Mixed),
        ] {
            assert_eq!(count_endings(text.as_bytes()).uniform_ending(), ending, "{text:?}");
        }
    }

    #[test]
    fn crlf_split_between_chunks_counts_once() {
        let mut counter = LineCounter::default();
        for piece in [&b"a\r"[..], b"", b"\nb\r", b"c"] {
            counter.feed(piece);
        }
        assert_eq!(counter.endings(), LineEndingCounts { lf: 0, crlf: 1, cr: 1 });
        assert_eq!(counter.lines(), 3);
    }

    #[test]
    fn slices_are_one_based_inclusive_and_clamped_at_the_end() {
        assert_eq!(slice_lines(MIXED, 1..=1), Some("a\n"));
        assert_eq!(slice_lines(MIXED, 2..=3), Some("b\r\nc\r"));
        assert_eq!(slice_lines(MIXED, 7..=usize::MAX), Some("e"));
        assert_eq!(slice_lines(MIXED, 1..=usize::MAX), Some(MIXED));
        assert_eq!(slice_lines(MIXED, 8..=9), None);
        assert_eq!(slice_lines(MIXED, 0..=1), None);
        let (first, last) = (3, 2);
        assert_eq!(slice_lines(MIXED, first..=last), None);
        assert_eq!(slice_lines("", 1..=1), None);
        assert_eq!(slice_lines("x\n", 2..=2), None);
    }

    #[test]
    fn a_line_splits_into_body_and_terminator() {
        assert_eq!(split_terminator("a\r\n"), ("a", "\r\n"));
        assert_eq!(split_terminator("a\r"), ("a", "\r"));
        assert_eq!(split_terminator("\n"), ("", "\n"));
        assert_eq!(split_terminator("a"), ("a", ""));
    }

    #[test]
    fn adopts_only_uniform_line_endings() {
        for (text, model, expected) in [
            ("a\nb\n", "x\r\ny\r\n", "a\r\nb\r\n"),
            ("a\nb", "x\r\n", "a\r\nb"),
            ("a\r\nb\n", "x\r\ny\r\n", "a\r\nb\n"),
            ("a\rb\n", "x\r\n", "a\rb\n"),
            ("a\nb\n", "x\r\ny\n", "a\nb\n"),
            ("a\nb\n", "x\ny\n", "a\nb\n"),
            ("a\nb\n", "", "a\nb\n"),
            ("a", "x\r\n", "a"),
        ] {
            assert_eq!(adopt_line_endings(text, model), expected, "{text:?} {model:?}");
        }
    }
}
