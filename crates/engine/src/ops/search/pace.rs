//! A pattern that looks through a text piece by piece, so that a call can end in the middle of a file.
//!
//! A pattern never backtracks, but its time for one byte grows with the pattern. Owns how much is looked at in one go:
//! whole lines, fewer of them for a heavy pattern. Promises the same hits as the pattern alone, but for lines that are too
//! long for what the pattern costs: they are passed over and counted.

use std::{
    cell::{Cell, RefCell},
    fmt,
    time::{Duration, Instant},
};

use grep_matcher::{LineMatchKind, LineTerminator, Match, Matcher, NoCaptures};
use grep_regex::RegexMatcher;

use crate::{control::Control, failure::Failure, index::LINE_BYTES_MAX};

/// What a pattern may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cost {
    /// Plain texts: hardly more than reading.
    Text,
    /// A small expression.
    Light,
    /// A large one.
    Heavy,
}

impl Cost {
    /// Bytes that are looked at in one go, up to the end of a line.
    fn piece_bytes(self) -> usize {
        match self {
            Self::Text | Self::Light => 64 << 10,
            Self::Heavy => 4 << 10,
        }
    }

    /// Bytes of a line that is looked at without asking how long that will take.
    fn line_bytes(self) -> usize {
        match self {
            Self::Text => usize::MAX,
            Self::Light => 256 << 10,
            // What is no longer than this is never passed over, which an index relies on.
            Self::Heavy => LINE_BYTES_MAX,
        }
    }
}

/// The part of a long line that is tried first, and how long the whole may take by that.
const TRIAL_BYTES: usize = 16 << 10;
const LINE_TIME_MAX: Duration = Duration::from_secs(5);

/// The look was ended.
#[derive(Debug)]
pub(super) struct Ended;

impl fmt::Display for Ended {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the look was ended")
    }
}

/// A pattern at work on one text.
pub(super) struct Paced<'a> {
    pattern: &'a RegexMatcher,
    cost: Cost,
    control: &'a Control<'a>,
    failure: RefCell<Option<Failure>>,
    passed: Cell<usize>,
}

impl<'a> Paced<'a> {
    pub(super) fn new(pattern: &'a RegexMatcher, cost: Cost, control: &'a Control<'a>) -> Self {
        Self { pattern, cost, control, failure: RefCell::default(), passed: Cell::new(0) }
    }

    /// Why the look was ended, if it was.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.failure.borrow_mut().take()
    }

    /// How many lines were too long for the pattern.
    pub(super) fn passed(&self) -> usize {
        self.passed.get()
    }

    fn check(&self) -> Result<(), Ended> {
        self.control.check().map_err(|failure| {
            self.failure.replace(Some(failure));
            Ended
        })
    }

    /// Whether a line of this length is looked at.
    fn is_affordable(&self, line: &[u8]) -> Result<bool, Ended> {
        if line.len() <= self.cost.line_bytes() {
            return Ok(true);
        }
        match self.cost {
            Cost::Text => Ok(true),
            Cost::Heavy => Ok(false),
            Cost::Light => {
                let started = Instant::now();
                never(self.pattern.find_candidate_line(&line[..TRIAL_BYTES.min(line.len())]))?;
                let parts = u32::try_from(line.len() / TRIAL_BYTES).unwrap_or(u32::MAX);
                let expected = started.elapsed().saturating_mul(parts);
                let left = self.control.deadline().saturating_duration_since(Instant::now());
                Ok(expected <= LINE_TIME_MAX.min(left))
            }
        }
    }
}

/// The pattern itself cannot fail.
fn never<T>(found: Result<T, grep_matcher::NoError>) -> Result<T, Ended> {
    found.map_err(|_| Ended)
}

/// The end of the piece that begins at `start`: behind a line feed, or the end of the text.
fn piece_end(text: &[u8], start: usize, length: usize) -> usize {
    let least = start.saturating_add(length);
    let rest = text.get(least..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(text.len(), |at| least + at + 1)
}

impl Matcher for Paced<'_> {
    type Captures = NoCaptures;
    type Error = Ended;

    fn find_at(&self, haystack: &[u8], at: usize) -> Result<Option<Match>, Ended> {
        never(self.pattern.find_at(haystack, at))
    }

    fn new_captures(&self) -> Result<NoCaptures, Ended> {
        Ok(NoCaptures::new())
    }

    fn shortest_match_at(&self, haystack: &[u8], at: usize) -> Result<Option<usize>, Ended> {
        never(self.pattern.shortest_match_at(haystack, at))
    }

    fn line_terminator(&self) -> Option<LineTerminator> {
        self.pattern.line_terminator()
    }

    fn find_candidate_line(&self, haystack: &[u8]) -> Result<Option<LineMatchKind>, Ended> {
        let mut start = 0;
        while start < haystack.len() {
            self.check()?;
            let mut end = piece_end(haystack, start, self.cost.piece_bytes());
            if end - start > self.cost.line_bytes() {
                // One line is long: those before it are looked at first.
                let before = &haystack[start..end - 1];
                let long = memchr::memrchr(b'\n', before).map_or(start, |at| start + at + 1);
                if long > start {
                    end = long;
                } else if !self.is_affordable(&haystack[start..end])? {
                    self.passed.set(self.passed.get() + 1);
                    start = end;
                    continue;
                }
            }
            let piece = &haystack[start..end];
            // Behind the last line feed of a piece begins the next one, which is not empty.
            let is_inside = |at: usize| at < piece.len() || end == haystack.len();
            match never(self.pattern.find_candidate_line(piece))? {
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

    fn pattern(query: &str) -> RegexMatcher {
        RegexMatcherBuilder::new().multi_line(true).line_terminator(Some(b'\n')).build(query).unwrap()
    }

    fn lines(matcher: impl Matcher, text: &str) -> Vec<u64> {
        let mut lines = Vec::new();
        let sink = UTF8(|number, _| {
            lines.push(number);
            Ok(true)
        });
        SearcherBuilder::new().build().search_slice(matcher, text.as_bytes(), sink).unwrap();
        lines
    }

    #[test]
    fn pieces_have_the_hits_of_the_whole() {
        let mut text = String::new();
        for number in 0..20_000_u32 {
            let mixed = number.wrapping_mul(2_654_435_761) >> 16;
            text.push_str(&"ab c".repeat((mixed % 7) as usize));
            text.push('\n');
        }
        text.push_str("ab without an end");
        let control = Control::default();
        for query in ["^$", "$", "^", "c$", "^ab", "b c", "(ab c){6}", "x*", "without|^$", "end$", "nowhere"]
        {
            let whole = pattern(query);
            let expected = lines(&whole, &text);
            for cost in [Cost::Text, Cost::Light, Cost::Heavy] {
                let paced = Paced::new(&whole, cost, &control);
                assert_eq!(lines(&paced, &text), expected, "{query} {cost:?}");
                assert_eq!(paced.passed(), 0);
            }
        }
    }

    #[test]
    fn a_line_that_costs_too_much_is_passed_over_and_counted() {
        let long = "ab".repeat(20 << 10);
        let text = format!("ab\n{long}\nab\n{long}");
        let (whole, control) = (pattern("a[a-z]"), Control::default());
        for (cost, found) in
            [(Cost::Text, &[1, 2, 3, 4][..]), (Cost::Light, &[1, 2, 3, 4]), (Cost::Heavy, &[1, 3])]
        {
            let paced = Paced::new(&whole, cost, &control);
            assert_eq!(lines(&paced, &text), found, "{cost:?}");
            assert_eq!(paced.passed() > 0, cost == Cost::Heavy);
        }
    }

    #[test]
    fn a_look_ends_between_two_pieces() {
        let (whole, text) = (pattern("z"), "a\n".repeat(1 << 20));
        let control = Control::new(Instant::now(), crate::control::Cancel::default(), None);
        std::thread::sleep(Duration::from_millis(1));
        let paced = Paced::new(&whole, Cost::Text, &control);
        assert!(paced.find_candidate_line(text.as_bytes()).is_err());
        assert_eq!(paced.failure().map(|failure| failure.kind.code()), Some("deadline"));
    }
}
