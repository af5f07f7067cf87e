//! Search for a quoted block in a text.
//!
//! Owns the matching passes, from byte for byte to increasingly lenient, and the diagnosis when none matches. Promises
//! every match of the first pass that has any, as byte ranges of the original text, with the name of the pass, in
//! bounded time. Never treats similar text as equal, and never changes the text.

mod align;
mod context;
mod fold;
mod indent;
mod nearest;
mod occurrences;

use std::cell::OnceCell;
use std::ops::{Range, RangeInclusive};

pub use context::{ContextSide, DisambiguatingContext, EnclosingDefinition};
pub(crate) use fold::replace_look_alikes;
pub use indent::IndentationShift;
pub use nearest::{LineDifference, NearestCandidate};

use crate::lines::{self, LineEnding};
use fold::{FoldLevel, FoldedText};
use indent::IndentedLines;

/// Texts longer than this are searched byte for byte only.
pub const LENIENT_BYTES_MAX: usize = 64 << 20;

/// The most matches that are listed.
pub const MATCHES_MAX: usize = 1 << 20;

/// A comparison, in the order in which they are tried. Each also ignores the differences that the earlier ones ignore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MatchPass {
    /// Byte for byte. In a text with mixed terminators, a quote with `\n` is counted together with
    /// [`Self::LineEndings`].
    Exact,
    /// Line terminators are equal, and the final one may be missing.
    LineEndings,
    /// Spaces and tabs at the end of a line are ignored.
    TrailingSpace,
    /// Dashes, quotation marks and spaces equal the ASCII character they look like.
    LookAlike,
    /// All non-blank lines are shifted by the same indentation.
    Indentation,
}

impl MatchPass {
    /// Every pass, in order.
    pub const ALL: &'static [Self] =
        &[Self::Exact, Self::LineEndings, Self::TrailingSpace, Self::LookAlike, Self::Indentation];

    /// The name shown to callers.
    #[must_use]
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

/// How matches that share bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OverlapRule {
    /// All of them: `aa` occurs twice in `aaa`.
    Overlapping,
    /// Left to right without overlaps: `aa` occurs once in `aaa`.
    NonOverlapping,
}

/// Where a match may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchBoundary {
    /// Anywhere, also within a line.
    Anywhere,
    /// At line boundaries only.
    WholeLines,
}

/// The conditions of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchOptions {
    /// The passes to try, in this order.
    pub passes: &'static [MatchPass],
    /// How matches are counted.
    pub overlap_rule: OverlapRule,
    /// Where a match may begin and end.
    pub boundary: MatchBoundary,
}

impl MatchOptions {
    /// Every pass, overlaps counted, anywhere.
    pub const LENIENT: Self =
        Self { passes: MatchPass::ALL, overlap_rule: OverlapRule::Overlapping, boundary: MatchBoundary::Anywhere };

    /// Byte for byte, counted left to right, anywhere.
    pub const EXACT: Self = Self {
        passes: &[MatchPass::Exact],
        overlap_rule: OverlapRule::NonOverlapping,
        boundary: MatchBoundary::Anywhere,
    };

    /// Every pass, whole lines only.
    pub const WHOLE_LINES: Self =
        Self { passes: MatchPass::ALL, overlap_rule: OverlapRule::Overlapping, boundary: MatchBoundary::WholeLines };
}

/// One match of a quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteMatch {
    /// The bytes of the match.
    pub bytes: Range<usize>,
    /// The lines it touches, 1-based.
    pub lines: RangeInclusive<usize>,
    /// The indentation shift, if [`MatchPass::Indentation`] found it.
    pub indentation_shift: Option<IndentationShift>,
}

/// A limit that ended a search early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LocateLimit {
    /// The text is longer than [`LENIENT_BYTES_MAX`]; only the exact pass ran.
    Bytes,
    /// There are more than [`MATCHES_MAX`] matches.
    Matches,
    /// Too many candidate blocks had to be compared by indentation.
    Work,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteMatches {
    /// The pass that found the matches; if there are none, the last one tried.
    pub pass: MatchPass,
    /// All matches, in order.
    pub matches: Vec<QuoteMatch>,
    /// The limit that ended the search early, if any.
    pub limit: Option<LocateLimit>,
}

/// A text prepared for several searches.
#[derive(Debug)]
pub struct SearchableText<'t> {
    text: &'t str,
    line_starts: Vec<usize>,
    ending: OnceCell<LineEnding>,
    folded_endings: OnceCell<FoldedText>,
    folded_trailing_space: OnceCell<FoldedText>,
    folded_look_alikes: OnceCell<FoldedText>,
    indented: OnceCell<IndentedLines<'t>>,
}

/// All matches of `quote` in `text`. For several quotes, create one [`SearchableText`].
#[must_use]
pub fn find_quote(text: &str, quote: &str, how: MatchOptions) -> QuoteMatches {
    SearchableText::new(text).find(quote, how)
}

impl<'t> SearchableText<'t> {
    /// Prepares `text`. Data for the lenient passes is built once, when first needed.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        let mut at = 0;
        let line_starts = lines::iter(text)
            .map(|line| {
                at += line.len();
                at - line.len()
            })
            .collect();
        Self {
            text,
            line_starts,
            ending: OnceCell::new(),
            folded_endings: OnceCell::new(),
            folded_trailing_space: OnceCell::new(),
            folded_look_alikes: OnceCell::new(),
            indented: OnceCell::new(),
        }
    }

    /// The searched text.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The number of lines.
    #[must_use]
    pub fn line_count(&self) -> usize {
        self.line_starts.len()
    }

    /// The bytes of the 1-based line, with its terminator; empty at the end if there is no such line.
    #[must_use]
    pub fn line_bytes(&self, line: usize) -> Range<usize> {
        let start = |at: usize| self.line_starts.get(at).copied().unwrap_or(self.text.len());
        line.checked_sub(1).map_or(0..0, |at| start(at)..start(at + 1))
    }

    /// The 1-based line without its terminator; empty if there is no such line.
    #[must_use]
    pub fn line(&self, line: usize) -> &'t str {
        lines::split_terminator(&self.text[self.line_bytes(line)]).0
    }

    /// The 1-based line that holds the byte at `offset`; at the end of the text, the last line.
    #[must_use]
    pub fn line_at(&self, offset: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= offset).max(1)
    }

    /// All matches of `quote`, by the first pass that has any. An empty quote has no match.
    #[must_use]
    pub fn find(&self, quote: &str, how: MatchOptions) -> QuoteMatches {
        let mut found = QuoteMatches { pass: MatchPass::Exact, matches: Vec::new(), limit: None };
        if quote.is_empty() {
            return found;
        }
        let is_blank = quote.trim().is_empty();
        let hides_twins = self.may_miss_other_matches(quote, how);
        for &pass in how.passes {
            if pass == MatchPass::Exact && hides_twins {
                continue;
            }
            if pass > MatchPass::LineEndings && is_blank {
                // A quote of white space only would match everywhere.
                break;
            }
            if pass != MatchPass::Exact && self.text.len() > LENIENT_BYTES_MAX {
                found.limit = Some(LocateLimit::Bytes);
                break;
            }
            found.pass = pass;
            let (ranges, limit) = self.find_with_pass(quote, pass, how);
            found.limit = limit.or(found.limit);
            found.matches = ranges.into_iter().map(|(bytes, delta)| self.quote_match(bytes, delta)).collect();
            if !found.matches.is_empty() {
                break;
            }
        }
        let is_literal = |found_match: &QuoteMatch| self.text[found_match.bytes.clone()] == *quote;
        if hides_twins && found.pass == MatchPass::LineEndings && found.matches.iter().all(is_literal) {
            found.pass = MatchPass::Exact;
        }
        found
    }

    /// Whether exact matches may have equivalents with other terminators: the text mixes terminators, and the quote
    /// has `\n` without `\r`. A quote with `\r` distinguishes them.
    fn may_miss_other_matches(&self, quote: &str, how: MatchOptions) -> bool {
        how.passes.contains(&MatchPass::LineEndings)
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

    fn find_with_pass(&self, quote: &str, pass: MatchPass, how: MatchOptions) -> (Vec<RawMatch>, Option<LocateLimit>) {
        match pass {
            MatchPass::Exact => {
                let starts =
                    occurrences::in_text(self.text.as_bytes(), quote.as_bytes(), how.overlap_rule, MATCHES_MAX + 1);
                let literal = !how.passes.contains(&MatchPass::LineEndings);
                let ranges = starts.into_iter().map(|at| at..at + quote.len()).filter(|bytes| {
                    let splits = self.splits_crlf(bytes.end) && !quote.ends_with('\r');
                    literal || !(self.splits_crlf(bytes.start) || splits)
                });
                self.filter_by_boundary(ranges, how)
            }
            MatchPass::LineEndings => {
                self.find_in_folded_text(&self.folded_endings, FoldLevel::LineEndings, quote, how)
            }
            MatchPass::TrailingSpace => {
                self.find_in_folded_text(&self.folded_trailing_space, FoldLevel::TrailingSpace, quote, how)
            }
            MatchPass::LookAlike => {
                self.find_in_folded_text(&self.folded_look_alikes, FoldLevel::LookAlike, quote, how)
            }
            MatchPass::Indentation => self.find_with_other_indentation(quote, how),
        }
    }

    fn find_in_folded_text(
        &self,
        cell: &OnceCell<FoldedText>,
        fold: FoldLevel,
        quote: &str,
        how: MatchOptions,
    ) -> (Vec<RawMatch>, Option<LocateLimit>) {
        let text = cell.get_or_init(|| FoldedText::new(self.text, fold));
        let original = quote;
        let quote = FoldedText::new(quote, fold);
        let mut starts =
            occurrences::in_text(text.text.as_bytes(), quote.text.as_bytes(), how.overlap_rule, MATCHES_MAX + 1);
        let mut length = quote.text.len();
        if starts.is_empty()
            && !text.text.ends_with('\n')
            && let Some(open) = quote.text.strip_suffix('\n')
            && !open.is_empty()
            && text.text.ends_with(open)
        {
            // The quote ends with a newline, and the text does not.
            length = open.len();
            starts.push(text.text.len() - length);
        }
        let ends_line = |end: usize| matches!(text.text.as_bytes().get(end), None | Some(b'\n'));
        let ranges = starts
            .into_iter()
            .map(|at| at..at + length)
            .filter(|range| !quote.tail_dropped || ends_line(range.end))
            .map(|range| text.original_range(&range))
            .filter(|bytes| self.has_quoted_terminator(bytes, original));
        self.filter_by_boundary(ranges, how)
    }

    fn find_with_other_indentation(&self, quote: &str, how: MatchOptions) -> (Vec<RawMatch>, Option<LocateLimit>) {
        let indented = self.indented.get_or_init(|| IndentedLines::new(self.text));
        let count = lines::iter(quote).count();
        let is_terminated = quote.ends_with(['\n', '\r']);
        let blocks = indented.find_matches(quote, MATCHES_MAX);
        let mut end = 0;
        let mut located = Vec::new();
        for (first, delta) in blocks.found {
            let start = self.line_bytes(first + 1).start;
            if how.overlap_rule == OverlapRule::NonOverlapping && start < end {
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
        (located, blocks.exhausted.then_some(LocateLimit::Work))
    }

    /// Keeps the ranges that satisfy `how.boundary`.
    fn filter_by_boundary(
        &self,
        ranges: impl Iterator<Item = Range<usize>>,
        how: MatchOptions,
    ) -> (Vec<RawMatch>, Option<LocateLimit>) {
        let mut located: Vec<RawMatch> = ranges
            .filter(|bytes| match how.boundary {
                MatchBoundary::Anywhere => true,
                MatchBoundary::WholeLines => self.is_whole_lines(bytes),
            })
            .map(|bytes| (bytes, None))
            .collect();
        let limit = (located.len() > MATCHES_MAX).then_some(LocateLimit::Matches);
        located.truncate(MATCHES_MAX);
        (located, limit)
    }

    fn is_whole_lines(&self, bytes: &Range<usize>) -> bool {
        let ends = bytes.end == self.text.len() || self.line_starts.binary_search(&bytes.end).is_ok() || {
            let line = self.line_bytes(self.line_at(bytes.end));
            let rest = &self.text[bytes.end..line.end];
            // White space that a pass ignored at the end of the line is not part of the match and does not prevent it.
            lines::split_terminator(rest).0.chars().all(|c| fold::plain_look_alike(c).unwrap_or(c).is_whitespace())
        };
        ends && self.line_starts.binary_search(&bytes.start).is_ok()
    }

    /// Whether the match ends no later than the quote: a `\r` at the end of a quote may be half of a `\r\n`, and the
    /// `\n` is then not part of it.
    fn has_quoted_terminator(&self, bytes: &Range<usize>, quote: &str) -> bool {
        !(quote.ends_with('\r') && self.text[bytes.clone()].ends_with('\n'))
    }

    /// Whether `offset` lies between a `\r` and its `\n`.
    pub(crate) fn splits_crlf(&self, offset: usize) -> bool {
        let bytes = self.text.as_bytes();
        offset > 0 && bytes[offset - 1] == b'\r' && bytes.get(offset) == Some(&b'\n')
    }
}

/// The starts of the lines `quote` among the lines `text`, overlaps included, compared exactly.
pub(crate) fn find_line_runs(text: &[&str], quote: &[&str]) -> Vec<usize> {
    occurrences::in_sequence(text, quote, MATCHES_MAX)
}

/// Whether [`MatchPass::LookAlike`] treats `character` as an ASCII one.
#[must_use]
pub fn is_look_alike(character: char) -> bool {
    fold::plain_look_alike(character).is_some()
}

/// The bytes of a match and its indentation shift.
type RawMatch = (Range<usize>, Option<IndentationShift>);

#[cfg(test)]
mod tests;
