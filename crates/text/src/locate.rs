//! Searches a text for a quote, which is a piece of text that a caller gives.
//!
//! Matching passes compare the quote with the text, first byte for byte and then more and more leniently. A search
//! stops at the first matching pass that finds a match, and returns all matches of this pass.

mod align;
mod context;
mod fold;
mod indent;
mod nearest;
mod occurrences;

use std::cell::OnceCell;
use std::ops::{Range, RangeInclusive};

pub use context::{DisambiguatingContextPosition, EnclosingDefinition, SuggestedDisambiguatingLines};
pub(crate) use fold::replace_look_alikes;
pub use indent::IndentationShift;
pub use nearest::{NearestQuoteCandidate, QuoteLineDifference};

use crate::lines::{self, LineEnding};
use fold::NormalizedText;
use indent::IndentedLines;

/// The longest text, in bytes, that the lenient matching passes search. A text longer than the limit is searched only
/// byte for byte.
pub const LENIENT_BYTES_MAX: usize = 64 << 20;

/// The most matches that a search for a quote returns.
pub const MATCHES_MAX: usize = 1 << 20;

/// A matching pass: one way to compare a quote with the text. A search tries the matching passes in the order of their
/// declaration. Each matching pass also ignores the differences that the earlier passes ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FuzzyTextMatchPass {
    /// The exact pass requires that the bytes of the quote and the text are equal. In a text with mixed terminators, a
    /// search may skip the exact pass and start with the line-ending pass.
    Exact,
    /// All line terminators count as equal, and the final terminator of the text may be missing.
    LineEndings,
    /// Spaces and tabs at the end of a line are ignored in the comparison.
    TrailingSpace,
    /// Dashes, quotation marks and spaces count as the ASCII character that they look like.
    LookAlike,
    /// The indentation of quote and text may differ by the same amount on all non-blank lines.
    Indentation,
}

impl FuzzyTextMatchPass {
    /// All matching passes, from the strictest to the most lenient.
    pub const ALL: &'static [Self] =
        &[Self::Exact, Self::LineEndings, Self::TrailingSpace, Self::LookAlike, Self::Indentation];

    /// Returns the name of the matching pass in replies to callers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::LineEndings => "endings",
            Self::TrailingSpace => "trailing_space",
            Self::LookAlike => "look_alike",
            Self::Indentation => "indentation",
        }
    }
}

/// Whether a search for a quote counts matches that overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchOverlapRule {
    /// Overlapping matches are counted: `aa` occurs twice in `aaa`.
    Overlapping,
    /// Matches are counted from left to right without overlaps: `aa` occurs once in `aaa`.
    NonOverlapping,
}

/// Where in a line the match of a quote may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchBoundaryRule {
    Anywhere,
    WholeLines,
}

/// The options of a search for a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuoteSearchOptions {
    /// The matching passes that a search for a quote tries, from first to last.
    pub passes: &'static [FuzzyTextMatchPass],
    pub overlap_rule: MatchOverlapRule,
    pub boundary: MatchBoundaryRule,
}

impl QuoteSearchOptions {
    /// The search options that try every matching pass and count overlapping matches anywhere in the text.
    pub const LENIENT: Self = Self {
        passes: FuzzyTextMatchPass::ALL,
        overlap_rule: MatchOverlapRule::Overlapping,
        boundary: MatchBoundaryRule::Anywhere,
    };

    /// The search options that try every matching pass but match only whole lines.
    pub const WHOLE_LINES: Self = Self { boundary: MatchBoundaryRule::WholeLines, ..Self::LENIENT };
}

/// One match of a quote in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteMatch {
    pub bytes: Range<usize>,
    /// The 1-based lines of the quote match in the text.
    pub lines: RangeInclusive<usize>,
    /// The indentation difference of quote and text, if [`FuzzyTextMatchPass::Indentation`] found the match.
    pub indentation_shift: Option<IndentationShift>,
}

/// The limit that ended a search for a quote early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReachedQuoteSearchLimit {
    /// The text is longer than [`LENIENT_BYTES_MAX`], so only the exact pass was tried.
    Bytes,
    /// The quote has more than [`MATCHES_MAX`] matches.
    Matches,
    /// The search stopped because it had to compare the indentation of too many candidate blocks.
    Work,
}

/// The result of a search for a quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteMatches {
    /// The matching pass that found the matches, or the last matching pass that was tried.
    pub pass: FuzzyTextMatchPass,
    /// All matches of the quote, in the order of their positions in the text.
    pub matches: Vec<QuoteMatch>,
    pub limit: Option<ReachedQuoteSearchLimit>,
}

/// A text that is prepared for several searches for quotes.
#[derive(Debug)]
pub struct QuoteSearchHaystack<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    ending: OnceCell<LineEnding>,
    folded: [OnceCell<NormalizedText>; FuzzyTextMatchPass::ALL.len()],
    indented: OnceCell<IndentedLines<'t>>,
}

impl<'t> QuoteSearchHaystack<'t> {
    /// Prepares `text` for searching. Data for the lenient matching passes is built when a search first needs it.
    pub fn new(text: &'t str) -> Self {
        let mut line_starts = lines::starts(text.as_bytes());
        line_starts.pop();
        Self { text, line_starts, ending: OnceCell::new(), folded: Default::default(), indented: OnceCell::new() }
    }

    /// Returns the text that is searched for quotes.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// Returns the number of lines in the searched text.
    pub fn line_count(&self) -> usize {
        self.line_starts.len()
    }

    /// Returns the byte range of the line with the 1-based number `line`, including the line terminator. For a line
    /// number past the last line, the range is empty and at the end of the text.
    pub fn line_bytes(&self, line: usize) -> Range<usize> {
        let start = |at: usize| self.line_starts.get(at).copied().unwrap_or(self.text.len());
        line.checked_sub(1).map_or(0..0, |at| start(at)..start(at + 1))
    }

    /// Returns the byte range of the 1-based `lines`, including the last line terminator.
    pub(crate) fn bytes_of_lines(&self, lines: &RangeInclusive<usize>) -> Range<usize> {
        self.line_bytes(*lines.start()).start..self.line_bytes(*lines.end()).end
    }

    /// Returns the line with the 1-based number `line`, without its terminator. A line number outside the text gives an
    /// empty line.
    pub fn line(&self, line: usize) -> &'t str {
        lines::split_terminator(&self.text[self.line_bytes(line)]).0
    }

    /// Returns the 1-based number of the line that contains the byte at `offset`. An offset at or past the end of the
    /// text gives the number of the last line.
    pub fn line_at(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).max(1)
    }

    /// Finds all matches of `quote` in the first matching pass that has a match. An empty quote has no match.
    pub fn find(&self, quote: &str, options: QuoteSearchOptions) -> QuoteMatches {
        let mut found = QuoteMatches { pass: FuzzyTextMatchPass::Exact, matches: Vec::new(), limit: None };
        if quote.is_empty() {
            return found;
        }
        let is_blank = quote.trim().is_empty();
        let exact_may_miss_matches = self.exact_may_miss_matches(quote, options);
        for &pass in options.passes {
            if pass == FuzzyTextMatchPass::Exact && exact_may_miss_matches {
                continue;
            }
            if pass > FuzzyTextMatchPass::LineEndings && is_blank {
                // A quote of white space only would match everywhere.
                break;
            }
            if pass != FuzzyTextMatchPass::Exact && self.text.len() > LENIENT_BYTES_MAX {
                found.limit = Some(ReachedQuoteSearchLimit::Bytes);
                break;
            }
            found.pass = pass;
            let (ranges, limit) = self.find_with_pass(quote, pass, options);
            found.limit = limit.or(found.limit);
            found.matches = ranges.into_iter().map(|(bytes, delta)| self.quote_match(bytes, delta)).collect();
            if !found.matches.is_empty() {
                break;
            }
        }
        let is_literal = |found_match: &QuoteMatch| self.text[found_match.bytes.clone()] == *quote;
        if exact_may_miss_matches
            && found.pass == FuzzyTextMatchPass::LineEndings
            && found.matches.iter().all(is_literal)
        {
            found.pass = FuzzyTextMatchPass::Exact;
        }
        found
    }

    /// Whether the exact pass would miss lines of a text with mixed terminators, because the quote has only `\n`. A
    /// quote with `\r` shows that its author distinguishes line terminators.
    fn exact_may_miss_matches(&self, quote: &str, options: QuoteSearchOptions) -> bool {
        options.passes.contains(&FuzzyTextMatchPass::LineEndings)
            && self.text.len() <= LENIENT_BYTES_MAX
            && quote.contains('\n')
            && !quote.contains('\r')
            && *self.ending.get_or_init(|| lines::count_endings(self.text.as_bytes()).uniform_ending())
                == LineEnding::Mixed
    }

    fn quote_match(&self, bytes: Range<usize>, delta: Option<IndentationShift>) -> QuoteMatch {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        QuoteMatch { lines: self.line_at(bytes.start)..=self.line_at(last), bytes, indentation_shift: delta }
    }

    fn find_with_pass(
        &self,
        quote: &str,
        pass: FuzzyTextMatchPass,
        options: QuoteSearchOptions,
    ) -> (Vec<MatchRangeAndIndentation>, Option<ReachedQuoteSearchLimit>) {
        match pass {
            FuzzyTextMatchPass::Exact => {
                let starts =
                    occurrences::in_text(self.text.as_bytes(), quote.as_bytes(), options.overlap_rule, MATCHES_MAX + 1);
                let literal = !options.passes.contains(&FuzzyTextMatchPass::LineEndings);
                let ranges = starts.into_iter().map(|at| at..at + quote.len()).filter(|bytes| {
                    let splits = self.splits_crlf(bytes.end) && !quote.ends_with('\r');
                    literal || !(self.splits_crlf(bytes.start) || splits)
                });
                self.filter_by_boundary(ranges, options)
            }
            FuzzyTextMatchPass::LineEndings | FuzzyTextMatchPass::TrailingSpace | FuzzyTextMatchPass::LookAlike => {
                self.find_in_folded_text(quote, pass, options)
            }
            FuzzyTextMatchPass::Indentation => self.find_with_other_indentation(quote, options),
        }
    }

    fn find_in_folded_text(
        &self,
        quote: &str,
        pass: FuzzyTextMatchPass,
        options: QuoteSearchOptions,
    ) -> (Vec<MatchRangeAndIndentation>, Option<ReachedQuoteSearchLimit>) {
        let text = self.folded[pass as usize].get_or_init(|| NormalizedText::new(self.text, pass));
        let original = quote;
        let quote = NormalizedText::new(quote, pass);
        let mut starts =
            occurrences::in_text(text.text.as_bytes(), quote.text.as_bytes(), options.overlap_rule, MATCHES_MAX + 1);
        let mut length = quote.text.len();
        if starts.is_empty()
            && !text.text.ends_with('\n')
            && let Some(unterminated) = quote.text.strip_suffix('\n')
            && !unterminated.is_empty()
            && text.text.ends_with(unterminated)
        {
            // The quote ends with a newline, but the text does not.
            length = unterminated.len();
            starts.push(text.text.len() - length);
        }
        let ends_line = |end: usize| matches!(text.text.as_bytes().get(end), None | Some(b'\n'));
        let ranges = starts
            .into_iter()
            .map(|at| at..at + length)
            .filter(|range| !quote.tail_dropped || ends_line(range.end))
            .map(|range| text.original_range(&range))
            .filter(|bytes| self.has_quoted_terminator(bytes, original));
        self.filter_by_boundary(ranges, options)
    }

    fn find_with_other_indentation(
        &self,
        quote: &str,
        options: QuoteSearchOptions,
    ) -> (Vec<MatchRangeAndIndentation>, Option<ReachedQuoteSearchLimit>) {
        let indented = self.indented.get_or_init(|| IndentedLines::new(self.text));
        let count = lines::iter(quote).count();
        let is_terminated = quote.ends_with(['\n', '\r']);
        let blocks = indented.find_matches(quote, MATCHES_MAX);
        let mut end = 0;
        let mut located = Vec::new();
        for (first, delta) in blocks.found {
            let start = self.line_bytes(first + 1).start;
            if options.overlap_rule == MatchOverlapRule::NonOverlapping && start < end {
                continue;
            }
            let last = self.line_bytes(first + count);
            end = if is_terminated {
                last.end
            } else {
                let body = lines::split_terminator(&self.text[last.clone()]).0;
                last.start + body.trim_end_matches([' ', '\t']).len()
            };
            if self.has_quoted_terminator(&(start..end), quote) {
                located.push((start..end, Some(delta)));
            }
        }
        (located, blocks.exhausted.then_some(ReachedQuoteSearchLimit::Work))
    }

    fn filter_by_boundary(
        &self,
        ranges: impl Iterator<Item = Range<usize>>,
        options: QuoteSearchOptions,
    ) -> (Vec<MatchRangeAndIndentation>, Option<ReachedQuoteSearchLimit>) {
        let mut located: Vec<MatchRangeAndIndentation> = ranges
            .filter(|bytes| options.boundary == MatchBoundaryRule::Anywhere || self.is_whole_lines(bytes))
            .map(|bytes| (bytes, None))
            .collect();
        let limit = (located.len() > MATCHES_MAX).then_some(ReachedQuoteSearchLimit::Matches);
        located.truncate(MATCHES_MAX);
        (located, limit)
    }

    fn is_whole_lines(&self, bytes: &Range<usize>) -> bool {
        let ends = bytes.end == self.text.len() || self.line_starts.binary_search(&bytes.end).is_ok() || {
            let line = self.line_bytes(self.line_at(bytes.end));
            let rest = &self.text[bytes.end..line.end];
            // A match covers the whole line even if ignored white space at the line end is not part of it.
            lines::split_terminator(rest).0.chars().all(|c| fold::plain_look_alike(c).unwrap_or(c).is_whitespace())
        };
        ends && self.line_starts.binary_search(&bytes.start).is_ok()
    }

    /// If the quote ends with `\r`, the `\n` of a `\r\n` does not belong to the match.
    fn has_quoted_terminator(&self, bytes: &Range<usize>, quote: &str) -> bool {
        !(quote.ends_with('\r') && self.text[bytes.clone()].ends_with('\n'))
    }

    /// Whether the byte `offset` is between a `\r` and its `\n`.
    pub(crate) fn splits_crlf(&self, offset: usize) -> bool {
        let bytes = self.text.as_bytes();
        offset > 0 && bytes[offset - 1] == b'\r' && bytes.get(offset) == Some(&b'\n')
    }
}

/// Finds the indexes in `text` where the lines of `quote` occur one after another; occurrences may overlap.
pub(crate) fn find_line_runs(text: &[&str], quote: &[&str]) -> Vec<usize> {
    occurrences::in_sequence(text, quote, MATCHES_MAX)
}

/// Whether `character` is non-ASCII and [`FuzzyTextMatchPass::LookAlike`] replaces it by an ASCII character.
pub fn is_look_alike(character: char) -> bool {
    fold::plain_look_alike(character).is_some()
}

type MatchRangeAndIndentation = (Range<usize>, Option<IndentationShift>);

#[cfg(test)]
mod tests {
    use super::*;

    fn find_texts<'t>(text: &'t str, quote: &str, options: QuoteSearchOptions) -> (FuzzyTextMatchPass, Vec<&'t str>) {
        let found = QuoteSearchHaystack::new(text).find(quote, options);
        assert_eq!(found.limit, None);
        (found.pass, found.matches.into_iter().map(|found| &text[found.bytes]).collect())
    }

    #[test]
    fn each_pass_ignores_its_differences() {
        for (text, quote, pass, matches) in [
            ("abc", "b", FuzzyTextMatchPass::Exact, &["b"][..]),
            ("a b a", "a", FuzzyTextMatchPass::Exact, &["a", "a"]),
            ("aaa", "aa", FuzzyTextMatchPass::Exact, &["aa", "aa"]),
            ("a\r\nb\r\n", "a\nb\n", FuzzyTextMatchPass::LineEndings, &["a\r\nb\r\n"]),
            ("a\nb\n", "a\r\nb", FuzzyTextMatchPass::LineEndings, &["a\nb"]),
            ("a\rb\r\nc\n", "a\nb\nc", FuzzyTextMatchPass::LineEndings, &["a\rb\r\nc"]),
            ("a\r\nb", "a\r", FuzzyTextMatchPass::Exact, &["a\r"]),
            ("x\r\ny\nx\ny\n", "x\ny", FuzzyTextMatchPass::LineEndings, &["x\r\ny", "x\ny"]),
            ("x\r\nz\nx\ny\n", "x\ny", FuzzyTextMatchPass::Exact, &["x\ny"]),
            ("x\r\ny\nx\ny\n", "x\r\ny", FuzzyTextMatchPass::Exact, &["x\r\ny"]),
            ("a\r\nb", "\nb", FuzzyTextMatchPass::LineEndings, &["\r\nb"]),
            ("a\nb", "a\nb\n", FuzzyTextMatchPass::LineEndings, &["a\nb"]),
            ("a  \nb\n", "a\nb", FuzzyTextMatchPass::TrailingSpace, &["a  \nb"]),
            ("foobar\nfoo\n", "foo  ", FuzzyTextMatchPass::TrailingSpace, &["foo"]),
            (
                "x\u{a0}= \u{201c}y\u{201d}\n",
                "x = \"y\"",
                FuzzyTextMatchPass::LookAlike,
                &["x\u{a0}= \u{201c}y\u{201d}"],
            ),
            ("x - y", "x – y", FuzzyTextMatchPass::LookAlike, &["x - y"]),
            ("  a\n    b \n", "a\n  b\n", FuzzyTextMatchPass::Indentation, &["  a\n    b \n"]),
            ("  a\n    b \n", "a\n  b", FuzzyTextMatchPass::Indentation, &["  a\n    b"]),
        ] {
            assert_eq!(
                find_texts(text, quote, QuoteSearchOptions::LENIENT),
                (pass, matches.to_vec()),
                "{text:?} {quote:?}"
            );
        }
    }

    #[test]
    fn similar_text_does_not_match() {
        for (text, quote) in [
            ("begin\nother\nend\n", "begin\nbody\nend\n"),
            ("  a\n b\n", "a\nb\n"),
            ("a  b", "a b"),
            ("a\n\nb", "a\nb"),
            ("x", ""),
            ("a b", "   \n"),
            ("a\r\nb\r\n", "a\nb\r"),
            ("a\nb\n", "b\r"),
            ("  a\r\n    b\r\n", "a\r\n  b\r"),
            ("", "x"),
        ] {
            assert!(find_texts(text, quote, QuoteSearchOptions::LENIENT).1.is_empty(), "{text:?} {quote:?}");
        }
    }

    #[test]
    fn whole_line_boundary_rejects_partial_lines() {
        let lines = |text, quote| find_texts(text, quote, QuoteSearchOptions::WHOLE_LINES);
        assert_eq!(lines("ab\nb\nbc\n", "b"), (FuzzyTextMatchPass::Exact, vec!["b"]));
        assert_eq!(lines("ab\nb\nbc\n", "b\n"), (FuzzyTextMatchPass::Exact, vec!["b\n"]));
        assert_eq!(lines("xa\na \nb\n", "a\nb"), (FuzzyTextMatchPass::TrailingSpace, vec!["a \nb"]));
        assert_eq!(lines("a\r\nb\r\n", "b"), (FuzzyTextMatchPass::Exact, vec!["b"]));
        assert_eq!(lines("\tb\nb2", "b"), (FuzzyTextMatchPass::Indentation, vec!["\tb"]));
    }

    #[test]
    fn an_exact_search_takes_bytes_literally() {
        let exact = QuoteSearchOptions {
            passes: &[FuzzyTextMatchPass::Exact],
            overlap_rule: MatchOverlapRule::NonOverlapping,
            ..QuoteSearchOptions::LENIENT
        };
        assert_eq!(find_texts("aaa", "aa", exact).1, ["aa"]);
        assert_eq!(find_texts("a\r\nb", "a\r", exact).1, ["a\r"]);
        assert!(find_texts("a\r\nb", "a\nb", exact).1.is_empty());
    }

    #[test]
    fn matches_report_their_lines() {
        let lines = |text, quote| {
            QuoteSearchHaystack::new(text).find(quote, QuoteSearchOptions::LENIENT).matches[0].lines.clone()
        };
        assert_eq!(lines("a\nb\nc\n", "b\n"), 2..=2);
        assert_eq!(lines("a\nb\nc\n", "b\nc"), 2..=3);
        assert_eq!(lines("a\r\nb\r\nc", "a\nb"), 1..=2);
        let finder = QuoteSearchHaystack::new("a\r\nb\n");
        assert_eq!((finder.line_count(), finder.line(2), finder.line(3), finder.line(0)), (2, "b", "", ""));
        assert_eq!((finder.line_at(0), finder.line_at(2), finder.line_at(3), finder.line_at(5)), (1, 1, 2, 2));
    }
}
