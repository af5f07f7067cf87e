//! Splices replace byte ranges of a text.

use std::ops::{Range, RangeInclusive};

use super::ReplacedMatchLineRanges;
use crate::locate::{QuoteMatch, QuoteSearchHaystack};

/// A splice: a byte range of a text and the text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextSplice {
    /// The byte range that the splice replaces, on character boundaries.
    pub bytes: Range<usize>,
    pub text: String,
}

/// Applies splices, which must be in order of position, to a text. A splice that overlaps an earlier splice is skipped.
pub fn apply_splices(text: &str, splices: &[TextSplice]) -> String {
    let inserted: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut result = String::with_capacity(text.len() + inserted);
    let mut at = 0;
    for splice in splices {
        if let Some(unchanged) = text.get(at..splice.bytes.start)
            && splice.bytes.end >= splice.bytes.start
        {
            result.push_str(unchanged);
            result.push_str(&splice.text);
            at = splice.bytes.end;
        }
    }
    result.push_str(text.get(at..).unwrap_or_default());
    result
}

pub(super) struct LineMapping<'s> {
    new_text: QuoteSearchHaystack<'s>,
    splices: &'s [TextSplice],
    /// The element at index n counts the bytes that the first n splices remove and insert.
    byte_totals: Vec<(usize, usize)>,
}

impl<'s> LineMapping<'s> {
    pub(super) fn new(after: &'s str, splices: &'s [TextSplice]) -> Self {
        let mut sum = (0, 0);
        let mut byte_totals = vec![sum];
        for splice in splices {
            sum = (sum.0 + splice.bytes.len(), sum.1 + splice.text.len());
            byte_totals.push(sum);
        }
        Self { new_text: QuoteSearchHaystack::new(after), splices, byte_totals }
    }

    pub(super) fn changed_lines(&self, found: &QuoteMatch) -> ReplacedMatchLineRanges {
        let start =
            self.map_offset(found.bytes.start, self.splices.partition_point(|s| s.bytes.start < found.bytes.start));
        let end = self.map_offset(found.bytes.end, self.splices.partition_point(|s| s.bytes.end <= found.bytes.end));
        ReplacedMatchLineRanges { before: found.lines.clone(), after: self.lines(start..end.max(start)) }
    }

    fn map_offset(&self, at: usize, applied: usize) -> usize {
        let (removed, inserted) = self.byte_totals[applied];
        (at + inserted).saturating_sub(removed)
    }

    fn lines(&self, bytes: Range<usize>) -> RangeInclusive<usize> {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        self.new_text.line_at(bytes.start)..=self.new_text.line_at(last)
    }
}
