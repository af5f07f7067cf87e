//! Where a quoted block stands in a text.
//!
//! Owns the passes by which a quote is found, from byte for byte to ever more forgiving ones, and what to say when
//! none finds it. Promises every place of the first pass that finds any, as byte ranges of the text as it is, with the
//! name of the pass, in bounded time. Never accepts similarity for sameness, and never changes anything: a pass finds.

mod align;
mod fold;
mod indent;
mod nearest;
mod occurrences;
mod surround;

use std::cell::OnceCell;
use std::ops::{Range, RangeInclusive};

pub(crate) use fold::plain_body;
pub use indent::Delta;
pub use nearest::{Difference, Nearest};
pub use surround::{Definition, Extra, Side};

use crate::lines::{self, Ending};
use fold::{Fold, Folded};
use indent::Indented;

/// Texts longer than this are searched byte for byte only.
pub const LENIENT_BYTES_MAX: usize = 64 << 20;

/// The most places that are listed.
pub const PLACES_MAX: usize = 1 << 20;

/// A way to compare, in the order in which they are tried. Each also overlooks what the ones before overlook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pass {
    /// Byte for byte. In a text that mixes terminators, a quote with `\n` is counted together with [`Self::Endings`].
    Exact,
    /// Line terminators count as equal, and the one at the very end may be missing.
    Endings,
    /// Space and tab at the end of a line do not count.
    TrailingSpace,
    /// Dashes, quotation marks and spaces count as the ASCII one they look like.
    LookAlike,
    /// All lines that are not blank stand deeper or shallower by the same.
    Indentation,
}

impl Pass {
    /// Every pass, in order.
    pub const ALL: &'static [Self] =
        &[Self::Exact, Self::Endings, Self::TrailingSpace, Self::LookAlike, Self::Indentation];

    /// The name shown to callers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Endings => "endings",
            Self::TrailingSpace => "trailing_space",
            Self::LookAlike => "look_alike",
            Self::Indentation => "indentation",
        }
    }
}

/// How places that share bytes are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Counting {
    /// Each counts: `aa` is twice in `aaa`.
    Overlapping,
    /// Left to right, each byte in one place at most: `aa` is once in `aaa`.
    Separate,
}

/// Where a quote may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Borders {
    /// Anywhere, also within a line.
    Anywhere,
    /// At the start of a line, and at the end of one.
    WholeLines,
}

/// What counts as a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matching {
    /// The passes to try, in this order.
    pub passes: &'static [Pass],
    /// How places are counted.
    pub counting: Counting,
    /// Where a place may begin and end.
    pub borders: Borders,
}

impl Matching {
    /// Every pass, overlaps counted, anywhere.
    pub const LENIENT: Self =
        Self { passes: Pass::ALL, counting: Counting::Overlapping, borders: Borders::Anywhere };

    /// Byte for byte, counted left to right, anywhere.
    pub const EXACT: Self =
        Self { passes: &[Pass::Exact], counting: Counting::Separate, borders: Borders::Anywhere };

    /// Every pass, whole lines only.
    pub const LINES: Self =
        Self { passes: Pass::ALL, counting: Counting::Overlapping, borders: Borders::WholeLines };
}

/// One place of a quote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its bytes in the text.
    pub bytes: Range<usize>,
    /// The lines it touches, 1-based.
    pub lines: RangeInclusive<usize>,
    /// How its indentation differs, if it was found by [`Pass::Indentation`].
    pub delta: Option<Delta>,
}

/// A named limit that ended a search early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The text is longer than [`LENIENT_BYTES_MAX`]; only the exact pass ran.
    Bytes,
    /// There are more than [`PLACES_MAX`] places.
    Places,
    /// Too many candidate blocks had to be compared for their indentation.
    Work,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The pass that found the places; the last one tried if there are none.
    pub pass: Pass,
    /// Every place, in order.
    pub places: Vec<Place>,
    /// What ended the search early, if anything did.
    pub limit: Option<Limit>,
}

/// A text made ready to be searched more than once.
#[derive(Debug)]
pub struct Finder<'t> {
    text: &'t str,
    starts: Vec<usize>,
    ending: OnceCell<Ending>,
    endings: OnceCell<Folded>,
    trailing: OnceCell<Folded>,
    look_alike: OnceCell<Folded>,
    indented: OnceCell<Indented<'t>>,
}

/// Every place of `quote` in `text`. For several quotes, make one [`Finder`].
#[must_use]
pub fn locate(text: &str, quote: &str, how: Matching) -> Found {
    Finder::new(text).find(quote, how)
}

impl<'t> Finder<'t> {
    /// Prepares `text`; what a lenient pass needs is made when first needed, and once.
    #[must_use]
    pub fn new(text: &'t str) -> Self {
        let mut at = 0;
        let starts = lines::iter(text)
            .map(|line| {
                at += line.len();
                at - line.len()
            })
            .collect();
        Self {
            text,
            starts,
            ending: OnceCell::new(),
            endings: OnceCell::new(),
            trailing: OnceCell::new(),
            look_alike: OnceCell::new(),
            indented: OnceCell::new(),
        }
    }

    /// The text searched.
    #[must_use]
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// How many lines it has.
    #[must_use]
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// The bytes of the 1-based line, with its terminator; empty at the end if there is no such line.
    #[must_use]
    pub fn line_bytes(&self, line: usize) -> Range<usize> {
        let start = |at: usize| self.starts.get(at).copied().unwrap_or(self.text.len());
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
        self.starts.partition_point(|&start| start <= offset).max(1)
    }

    /// Every place of `quote`, by the first pass that finds any. An empty quote is nowhere.
    #[must_use]
    pub fn find(&self, quote: &str, how: Matching) -> Found {
        let mut found = Found { pass: Pass::Exact, places: Vec::new(), limit: None };
        if quote.is_empty() {
            return found;
        }
        let is_blank = quote.trim().is_empty();
        let hides_twins = self.hides_twins(quote, how);
        for &pass in how.passes {
            if pass == Pass::Exact && hides_twins {
                continue;
            }
            if pass > Pass::Endings && is_blank {
                // Forgiving white space in a quote of nothing else would find it everywhere.
                break;
            }
            if pass != Pass::Exact && self.text.len() > LENIENT_BYTES_MAX {
                found.limit = Some(Limit::Bytes);
                break;
            }
            found.pass = pass;
            let (ranges, limit) = self.ranges(quote, pass, how);
            found.limit = limit.or(found.limit);
            found.places = ranges.into_iter().map(|(bytes, delta)| self.place(bytes, delta)).collect();
            if !found.places.is_empty() {
                break;
            }
        }
        let is_literal = |place: &Place| self.text[place.bytes.clone()] == *quote;
        if hides_twins && found.pass == Pass::Endings && found.places.iter().all(is_literal) {
            found.pass = Pass::Exact;
        }
        found
    }

    /// Whether places byte for byte may have twins that differ in how their lines end: the text mixes terminators, and
    /// the quote has some. Whoever quotes a `\r` tells them apart.
    fn hides_twins(&self, quote: &str, how: Matching) -> bool {
        how.passes.contains(&Pass::Endings)
            && self.text.len() <= LENIENT_BYTES_MAX
            && quote.contains('\n')
            && !quote.contains('\r')
            && *self.ending.get_or_init(|| lines::endings(self.text.as_bytes()).ending()) == Ending::Mixed
    }

    fn place(&self, bytes: Range<usize>, delta: Option<Delta>) -> Place {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        Place { lines: self.line_at(bytes.start)..=self.line_at(last), bytes, delta }
    }

    fn ranges(&self, quote: &str, pass: Pass, how: Matching) -> (Vec<Located>, Option<Limit>) {
        match pass {
            Pass::Exact => {
                let starts = occurrences::in_text(
                    self.text.as_bytes(),
                    quote.as_bytes(),
                    how.counting,
                    PLACES_MAX + 1,
                );
                let literal = !how.passes.contains(&Pass::Endings);
                let ranges = starts.into_iter().map(|at| at..at + quote.len()).filter(|bytes| {
                    let splits = self.halves_pair(bytes.end) && !quote.ends_with('\r');
                    literal || !(self.halves_pair(bytes.start) || splits)
                });
                self.bordered(ranges, how)
            }
            Pass::Endings => self.folded_ranges(&self.endings, Fold::Endings, quote, how),
            Pass::TrailingSpace => self.folded_ranges(&self.trailing, Fold::TrailingSpace, quote, how),
            Pass::LookAlike => self.folded_ranges(&self.look_alike, Fold::LookAlike, quote, how),
            Pass::Indentation => self.indented_ranges(quote, how),
        }
    }

    fn folded_ranges(
        &self,
        cell: &OnceCell<Folded>,
        fold: Fold,
        quote: &str,
        how: Matching,
    ) -> (Vec<Located>, Option<Limit>) {
        let text = cell.get_or_init(|| Folded::new(self.text, fold));
        let original = quote;
        let quote = Folded::new(quote, fold);
        let mut starts =
            occurrences::in_text(text.text.as_bytes(), quote.text.as_bytes(), how.counting, PLACES_MAX + 1);
        let mut length = quote.text.len();
        if starts.is_empty()
            && !text.text.ends_with('\n')
            && let Some(open) = quote.text.strip_suffix('\n')
            && !open.is_empty()
            && text.text.ends_with(open)
        {
            // The quote ends its last line, and the text does not end its own.
            length = open.len();
            starts.push(text.text.len() - length);
        }
        let ends_line = |end: usize| matches!(text.text.as_bytes().get(end), None | Some(b'\n'));
        let ranges = starts
            .into_iter()
            .map(|at| at..at + length)
            .filter(|range| !quote.tail_dropped || ends_line(range.end))
            .map(|range| text.original(&range))
            .filter(|bytes| self.ends_as_quoted(bytes, original));
        self.bordered(ranges, how)
    }

    fn indented_ranges(&self, quote: &str, how: Matching) -> (Vec<Located>, Option<Limit>) {
        let indented = self.indented.get_or_init(|| Indented::new(self.text));
        let count = lines::iter(quote).count();
        let is_terminated = quote.ends_with(['\n', '\r']);
        let blocks = indented.find(quote, PLACES_MAX);
        let mut end = 0;
        let mut located = Vec::new();
        for (first, delta) in blocks.found {
            let start = self.line_bytes(first + 1).start;
            if how.counting == Counting::Separate && start < end {
                continue;
            }
            let last = self.line_bytes(first + count);
            end = if is_terminated {
                last.end
            } else {
                let body = lines::split_terminator(&self.text[last.clone()]).0;
                last.start + body.trim_end_matches([' ', '\t']).len()
            };
            if self.ends_as_quoted(&(start..end), quote) {
                located.push((start..end, Some(delta)));
            }
        }
        (located, blocks.exhausted.then_some(Limit::Work))
    }

    /// Keeps the ranges that begin and end where they may.
    fn bordered(
        &self,
        ranges: impl Iterator<Item = Range<usize>>,
        how: Matching,
    ) -> (Vec<Located>, Option<Limit>) {
        let mut located: Vec<Located> = ranges
            .filter(|bytes| match how.borders {
                Borders::Anywhere => true,
                Borders::WholeLines => self.is_whole_lines(bytes),
            })
            .map(|bytes| (bytes, None))
            .collect();
        let limit = (located.len() > PLACES_MAX).then_some(Limit::Places);
        located.truncate(PLACES_MAX);
        (located, limit)
    }

    fn is_whole_lines(&self, bytes: &Range<usize>) -> bool {
        let ends = bytes.end == self.text.len() || self.starts.binary_search(&bytes.end).is_ok() || {
            let line = self.line_bytes(self.line_at(bytes.end));
            let rest = &self.text[bytes.end..line.end];
            // What a pass overlooked at the end of the line is not part of the place, nor in its way.
            lines::split_terminator(rest).0.chars().all(|c| fold::plain(c).unwrap_or(c).is_whitespace())
        };
        ends && self.starts.binary_search(&bytes.start).is_ok()
    }

    /// Whether the end of a place is no more than what was quoted: a `\r` at the end of a quote may be half of a `\r\n`,
    /// and then the `\n` is not part of it.
    fn ends_as_quoted(&self, bytes: &Range<usize>, quote: &str) -> bool {
        !(quote.ends_with('\r') && self.text[bytes.clone()].ends_with('\n'))
    }

    /// Whether `offset` lies between a `\r` and its `\n`.
    pub(crate) fn halves_pair(&self, offset: usize) -> bool {
        let bytes = self.text.as_bytes();
        offset > 0 && bytes[offset - 1] == b'\r' && bytes.get(offset) == Some(&b'\n')
    }
}

/// Where the lines `quote` stand among the lines `text`, overlaps included; lines are compared as they are.
pub(crate) fn blocks(text: &[&str], quote: &[&str]) -> Vec<usize> {
    occurrences::in_sequence(text, quote, PLACES_MAX)
}

/// Whether `character` is one that [`Pass::LookAlike`] takes for an ASCII one.
#[must_use]
pub fn is_look_alike(character: char) -> bool {
    fold::plain(character).is_some()
}

/// A range and its difference of indentation.
type Located = (Range<usize>, Option<Delta>);

#[cfg(test)]
mod tests;
