//! A pattern matcher that searches a text in pieces, so that a call can be cancelled in the middle of a file.
//!
//! Patterns never backtrack, but the search time per byte grows with the size of the pattern. Searching in pieces finds
//! the same hits as searching the whole text, except in slow lines, which are skipped and counted.

use std::{
    cell::{Cell, RefCell},
    fmt,
    time::Instant,
};

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;

use crate::{
    control::CallControl,
    errors::Error,
    limits::{INDEXED_LINE_BYTES_MAX, SEARCH_LINE_TIME_MAX},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchPatternCostClass {
    /// A search for plain text takes hardly more time than reading the file.
    Literal,
    Light,
    Heavy,
}

impl SearchPatternCostClass {
    /// The minimum size in bytes of a piece that is searched at once; a piece ends at a line end.
    fn piece_bytes(self) -> usize {
        match self {
            Self::Literal | Self::Light => 64 << 10,
            Self::Heavy => 4 << 10,
        }
    }

    /// The length in bytes up to which a line is always searched; a longer line may be skipped.
    fn line_bytes(self) -> usize {
        match self {
            Self::Literal => usize::MAX,
            Self::Light => 256 << 10,
            // The index relies on the rule that lines up to this length are never skipped.
            Self::Heavy => INDEXED_LINE_BYTES_MAX,
        }
    }
}

/// The number of bytes of a long line that are searched first to estimate its search time.
const COST_TRIAL_BYTES: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct SearchInterrupted;

impl fmt::Display for SearchInterrupted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the search was interrupted")
    }
}

pub(super) struct InterruptibleMatcher<'a> {
    pattern: &'a RegexMatcher,
    cost: SearchPatternCostClass,
    control: &'a CallControl<'a>,
    error: RefCell<Option<Error>>,
    skipped_lines: Cell<usize>,
}

impl<'a> InterruptibleMatcher<'a> {
    pub(super) fn new(pattern: &'a RegexMatcher, cost: SearchPatternCostClass, control: &'a CallControl<'a>) -> Self {
        Self { pattern, cost, control, error: RefCell::default(), skipped_lines: Cell::new(0) }
    }

    pub(super) fn interruption_error(&self) -> Option<Error> {
        self.error.borrow_mut().take()
    }

    pub(super) fn skipped_lines(&self) -> usize {
        self.skipped_lines.get()
    }

    fn check(&self) -> Result<(), SearchInterrupted> {
        self.control.check().map_err(|error| {
            self.error.replace(Some(error));
            SearchInterrupted
        })
    }

    fn is_affordable(&self, line: &[u8]) -> Result<bool, SearchInterrupted> {
        if line.len() <= self.cost.line_bytes() {
            return Ok(true);
        }
        match self.cost {
            SearchPatternCostClass::Literal => Ok(true),
            SearchPatternCostClass::Heavy => Ok(false),
            SearchPatternCostClass::Light => {
                let started = Instant::now();
                infallible(self.pattern.find_candidate_line(&line[..COST_TRIAL_BYTES.min(line.len())]))?;
                let parts = u32::try_from(line.len() / COST_TRIAL_BYTES).unwrap_or(u32::MAX);
                let expected = started.elapsed().saturating_mul(parts);
                let remaining = self.control.deadline().saturating_duration_since(Instant::now());
                Ok(expected <= SEARCH_LINE_TIME_MAX.min(remaining))
            }
        }
    }
}

fn infallible<T>(result: Result<T, grep_matcher::NoError>) -> Result<T, SearchInterrupted> {
    result.map_err(|_| SearchInterrupted)
}

fn piece_end(text: &[u8], start: usize, length: usize) -> usize {
    let least = start.saturating_add(length);
    let rest = text.get(least..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(text.len(), |at| least + at + 1)
}

impl Matcher for InterruptibleMatcher<'_> {
    type Captures = NoCaptures;
    type Error = SearchInterrupted;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, SearchInterrupted> {
        infallible(self.pattern.find_at(haystack, at))
    }

    fn new_captures(&self) -> Result<NoCaptures, SearchInterrupted> {
        Ok(NoCaptures::new())
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, SearchInterrupted> {
        infallible(self.pattern.shortest_match_at(haystack, at))
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.pattern.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, SearchInterrupted> {
        let mut start = 0;
        while start < haystack.len() {
            self.check()?;
            let mut end = piece_end(haystack, start, self.cost.piece_bytes());
            if end - start > self.cost.line_bytes() {
                // The last line of the piece is long, so the lines before it are searched first.
                let before = &haystack[start..end - 1];
                let long = memchr::memrchr(b'\n', before).map_or(start, |at| start + at + 1);
                if long > start {
                    end = long;
                } else if !self.is_affordable(&haystack[start..end])? {
                    self.skipped_lines.set(self.skipped_lines.get() + 1);
                    start = end;
                    continue;
                }
            }
            let piece = &haystack[start..end];
            // A match after the last line feed belongs to the next piece, unless the text ends with this piece.
            let is_inside = |at: usize| at < piece.len() || end == haystack.len();
            match infallible(self.pattern.find_candidate_line(piece))? {
                Some(LineMatchKind::Confirmed(at)) if is_inside(at) => {
                    return Ok(Some(LineMatchKind::Confirmed(start + at)));
                }
                Some(LineMatchKind::Candidate(at)) if is_inside(at) => {
                    return Ok(Some(LineMatchKind::Candidate(start + at)));
                }
                Some(LineMatchKind::Confirmed(_) | LineMatchKind::Candidate(_)) | None => start = end,
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use grep_regex::RegexMatcherBuilder;
    use grep_searcher::{SearcherBuilder, sinks::UTF8};

    use super::*;

    fn compile_test_pattern(query: &str) -> RegexMatcher {
        RegexMatcherBuilder::new().multi_line(true).line_terminator(Some(b'\n')).build(query).unwrap()
    }

    fn matched_lines(matcher: impl Matcher, text: &str) -> Vec<u64> {
        let mut lines = Vec::new();
        let sink = UTF8(|number, _| {
            lines.push(number);
            Ok(true)
        });
        SearcherBuilder::new().build().search_slice(matcher, text.as_bytes(), sink).unwrap();
        lines
    }

    #[test]
    fn piecewise_matching_equals_whole_matching() {
        let mut text = String::new();
        for number in 0..20_000_u32 {
            let mixed = number.wrapping_mul(2_654_435_761) >> 16;
            text.push_str(&"ab c".repeat((mixed % 7) as usize));
            text.push('\n');
        }
        text.push_str("ab without an end");
        let control = CallControl::default();
        for query in ["^$", "$", "^", "c$", "^ab", "b c", "(ab c){6}", "x*", "without|^$", "end$", "nowhere"] {
            let whole = compile_test_pattern(query);
            let expected = matched_lines(&whole, &text);
            for cost in [SearchPatternCostClass::Literal, SearchPatternCostClass::Light, SearchPatternCostClass::Heavy]
            {
                let interruptible = InterruptibleMatcher::new(&whole, cost, &control);
                assert_eq!(matched_lines(&interruptible, &text), expected, "{query} {cost:?}");
                assert_eq!(interruptible.skipped_lines(), 0);
            }
        }
    }

    #[test]
    fn too_expensive_lines_are_skipped_and_counted() {
        let long = "ab".repeat(20 << 10);
        let text = format!("ab\n{long}\nab\n{long}");
        let (whole, control) = (compile_test_pattern("a[a-z]"), CallControl::default());
        for (cost, found) in [
            (SearchPatternCostClass::Literal, &[1, 2, 3, 4][..]),
            (SearchPatternCostClass::Light, &[1, 2, 3, 4]),
            (SearchPatternCostClass::Heavy, &[1, 3]),
        ] {
            let interruptible = InterruptibleMatcher::new(&whole, cost, &control);
            assert_eq!(matched_lines(&interruptible, &text), found, "{cost:?}");
            assert_eq!(interruptible.skipped_lines() > 0, cost == SearchPatternCostClass::Heavy);
        }
    }

    #[test]
    fn cancellation_stops_between_pieces() {
        let (whole, text) = (compile_test_pattern("z"), "a\n".repeat(1 << 20));
        let past = Instant::now().checked_sub(std::time::Duration::from_millis(1)).unwrap();
        let control = CallControl::new(past, crate::control::CancelToken::default(), None);
        let interruptible = InterruptibleMatcher::new(&whole, SearchPatternCostClass::Literal, &control);
        assert!(interruptible.find_candidate_line(text.as_bytes()).is_err());
        assert_eq!(interruptible.interruption_error().map(|error| error.kind.code()), Some("deadline"));
    }
}
