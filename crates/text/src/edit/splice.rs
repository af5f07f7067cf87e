//! Replacing spans of a text, and taking that back.
//!
//! Owns the one way a text is changed. Promises that bytes outside the spans stay as they are, and that the inverse
//! of what was applied brings the text back. Never looks at what it replaces.

use std::ops::{Range, RangeInclusive};

use super::Changed;
use crate::locate::{Finder, Place};

/// A span and what takes its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    /// The bytes that go, on character borders.
    pub bytes: Range<usize>,
    /// What comes instead.
    pub text: String,
}

/// `text` with every splice applied. They are in order and do not overlap; one that does is left out.
#[must_use]
pub fn apply(text: &str, splices: &[Splice]) -> String {
    let grown: usize = splices.iter().map(|splice| splice.text.len()).sum();
    let mut result = String::with_capacity(text.len() + grown);
    let mut at = 0;
    for splice in splices {
        if let Some(kept) = text.get(at..splice.bytes.start)
            && splice.bytes.end >= splice.bytes.start
        {
            result.push_str(kept);
            result.push_str(&splice.text);
            at = splice.bytes.end;
        }
    }
    result.push_str(text.get(at..).unwrap_or_default());
    result
}

/// The splices that turn the result of applying `splices` to `text` back into `text`.
#[must_use]
pub fn inverse(text: &str, splices: &[Splice]) -> Vec<Splice> {
    let (mut gone, mut come) = (0, 0);
    splices
        .iter()
        .map(|splice| {
            let start = splice.bytes.start - gone + come;
            gone += splice.bytes.len();
            come += splice.text.len();
            let old = text.get(splice.bytes.clone()).unwrap_or_default().to_owned();
            Splice { bytes: start..start + splice.text.len(), text: old }
        })
        .collect()
}

/// Where places of the old text stand in the new one.
pub(super) struct Shift<'s> {
    after: Finder<'s>,
    splices: &'s [Splice],
    /// Before each splice: how many bytes of the old text went, and how many came.
    sums: Vec<(usize, usize)>,
}

impl<'s> Shift<'s> {
    pub(super) fn new(after: &'s str, splices: &'s [Splice]) -> Self {
        let mut sum = (0, 0);
        let mut sums = vec![sum];
        for splice in splices {
            sum = (sum.0 + splice.bytes.len(), sum.1 + splice.text.len());
            sums.push(sum);
        }
        Self { after: Finder::new(after), splices, sums }
    }

    /// The lines of a place before and after.
    pub(super) fn changed(&self, place: &Place) -> Changed {
        let start = self
            .offset(place.bytes.start, self.splices.partition_point(|s| s.bytes.start < place.bytes.start));
        let end =
            self.offset(place.bytes.end, self.splices.partition_point(|s| s.bytes.end <= place.bytes.end));
        Changed { before: place.lines.clone(), after: self.lines(start..end.max(start)) }
    }

    fn offset(&self, at: usize, applied: usize) -> usize {
        let (gone, come) = self.sums[applied];
        (at + come).saturating_sub(gone)
    }

    fn lines(&self, bytes: Range<usize>) -> RangeInclusive<usize> {
        let last = bytes.end.saturating_sub(1).max(bytes.start);
        self.after.line_at(bytes.start)..=self.after.line_at(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_applied_can_be_taken_back() {
        let text = "abcdef";
        let splice = |bytes, text: &str| Splice { bytes, text: text.to_owned() };
        let splices = [splice(0..1, "XX"), splice(2..4, ""), splice(6..6, "end")];
        let result = apply(text, &splices);
        assert_eq!(result, "XXbefend");
        assert_eq!(apply(&result, &inverse(text, &splices)), text);
    }
}
