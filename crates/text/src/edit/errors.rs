//! The errors of edits, with the details that a caller needs to correct the edit.
//!
//! Line numbers in edit errors are 1-based, and every list in an edit error is bounded.

use std::ops::RangeInclusive;

use super::{FindReplaceEdit, QuoteMatchMethod};
use crate::locate::{
    EnclosingDefinition, FuzzyTextMatchPass, NearestQuoteCandidate, QuoteMatch, QuoteSearchHaystack,
    ReachedQuoteSearchLimit, SuggestedDisambiguatingLines,
};

/// The most matches of a quote that an edit error describes; further matches are only counted.
pub const DESCRIBED_MATCHES_MAX: usize = 20;

/// The error of one edit that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditError {
    /// The 0-based index of the failed edit among the edits of the call.
    pub edit_index: usize,
    pub reason: EditErrorKind,
}

/// The reason why an edit cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditErrorKind {
    EmptyOld,
    NotFound(Box<QuoteNotFoundDetails>),
    Ambiguous {
        pass: FuzzyTextMatchPass,
        total: usize,
        /// The first matches of the ambiguous quote, at most [`DESCRIBED_MATCHES_MAX`].
        matches: Vec<AmbiguousQuoteCandidate>,
    },
    WrongCount {
        expected: usize,
        total: usize,
        /// The first matches of the quote, at most [`DESCRIBED_MATCHES_MAX`].
        matches: Vec<AmbiguousQuoteCandidate>,
    },
    Overlap {
        /// The index of the earlier edit that replaces some of the same text.
        other_edit: usize,
        /// The lines of the match that overlaps the match of another edit.
        lines: RangeInclusive<usize>,
    },
    /// The new text of the edit has a placeholder line, such as `... existing code ...`, instead of code.
    ElisionInNewText {
        line: usize,
        text: String,
    },
    /// A line of the new text has too little indentation for the shift to the left that the match requires. The new
    /// text is shifted left if the quote is indented more than the matched text.
    Unindentable {
        /// The 1-based number of the new line that cannot be shifted left.
        line: usize,
        method: QuoteMatchMethod,
    },
    /// The edited text would exceed [`RESULT_BYTES_MAX`](super::RESULT_BYTES_MAX).
    TooLong,
    /// The lines that the edit quotes have changed since the base version of the text.
    StaleQuote(super::StaleQuoteLineRanges),
}

/// Details about a quote that is not in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteNotFoundDetails {
    pub nearest: Option<NearestQuoteCandidate>,
    /// The index of another edit of the same call whose new text contains the missing quote. An edit cannot quote text
    /// that another edit inserts, because quotes are matched against the original text.
    pub produced_by_edit: Option<usize>,
    /// The lines of the text where the new text of the edit occurs. A match of the new text does not prove that the
    /// edit was already applied.
    pub new_text_lines: Vec<RangeInclusive<usize>>,
    /// A line of the missing quote that is a placeholder for omitted lines.
    pub elision_line: Option<String>,
    pub limit: Option<ReachedQuoteSearchLimit>,
}

/// A match of an ambiguous quote, as an edit error describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmbiguousQuoteCandidate {
    pub bytes: std::ops::Range<usize>,
    pub lines: RangeInclusive<usize>,
    pub enclosing_definition: Option<EnclosingDefinition>,
    pub disambiguating_context: Option<SuggestedDisambiguatingLines>,
}

/// Describes the first [`DESCRIBED_MATCHES_MAX`] matches of a quote for an edit error.
pub fn describe_matches(
    finder: &QuoteSearchHaystack<'_>,
    found_matches: &[QuoteMatch],
) -> Vec<AmbiguousQuoteCandidate> {
    let describe = |found: &QuoteMatch| AmbiguousQuoteCandidate {
        bytes: found.bytes.clone(),
        lines: found.lines.clone(),
        enclosing_definition: finder.enclosing_definition(*found.lines.start()),
        disambiguating_context: finder.disambiguating_context(found, found_matches),
    };
    found_matches.iter().take(DESCRIBED_MATCHES_MAX).map(describe).collect()
}

pub(super) fn describe_missing_quote(
    finder: &QuoteSearchHaystack<'_>,
    edits: &[FindReplaceEdit<'_>],
    index: usize,
    new_text_lines: Vec<RangeInclusive<usize>>,
    limit: Option<ReachedQuoteSearchLimit>,
) -> QuoteNotFoundDetails {
    let old = edits[index].old;
    let produces_quote = |(other, edit): &(usize, &FindReplaceEdit<'_>)| {
        *other != index && !old.trim().is_empty() && edit.new.contains(old)
    };
    QuoteNotFoundDetails {
        nearest: finder.nearest_candidate(old),
        produced_by_edit: edits.iter().enumerate().find(produces_quote).map(|(other, _)| other),
        new_text_lines,
        elision_line: super::elision::find_elision(old, "").map(|(_, line)| line),
        limit,
    }
}
