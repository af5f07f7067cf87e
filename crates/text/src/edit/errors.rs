//! Errors of edits, with the details that a caller needs to correct the edit.
//!
//! This module owns the structure of the errors; callers of the crate choose the wording. In errors, edits are numbered
//! as given, lines are 1-based, and every list is bounded.

use std::ops::RangeInclusive;

use super::{FindReplaceEdit, QuoteMatchMethod};
use crate::locate::{
    EnclosingDefinition, FuzzyTextMatchPass, NearestQuoteCandidate, QuoteMatch, QuoteSearchHaystack,
    ReachedQuoteSearchLimit, SuggestedDisambiguatingLines,
};

/// The most matches of a quote that an error describes; further matches are only counted.
pub const DESCRIBED_MATCHES_MAX: usize = 20;

/// One edit that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditError {
    /// The 0-based index of the edit among the edits of the call.
    pub edit_index: usize,
    /// Why the edit cannot be applied.
    pub reason: EditErrorKind,
}

/// Why an edit cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditErrorKind {
    /// The quote of the edit is empty.
    EmptyOld,
    /// The quote of the edit is not in the text.
    NotFound(Box<QuoteNotFoundDetails>),
    /// The quote matches more than once, but exactly one match is required.
    Ambiguous {
        /// The matching pass that found the matches.
        pass: FuzzyTextMatchPass,
        /// The number of matches that the quote has.
        total: usize,
        /// The first matches.
        matches: Vec<AmbiguousQuoteCandidate>,
    },
    /// The number of matches of the quote differs from the number that the edit requires.
    WrongCount {
        /// The number of matches that the edit requires.
        expected: usize,
        /// The number of matches that the quote has.
        total: usize,
        /// The first matches.
        matches: Vec<AmbiguousQuoteCandidate>,
    },
    /// The edit overlaps an earlier edit of the same call.
    Overlap {
        /// The index of the earlier edit that the edit overlaps.
        other_edit: usize,
        /// The lines of the text where the two edits overlap.
        lines: RangeInclusive<usize>,
    },
    /// The new text of the edit has a placeholder line instead of code.
    ElisionInNewText {
        /// The 1-based number of the placeholder line in the new text.
        line: usize,
        /// The placeholder line.
        text: String,
    },
    /// The quote is indented more than the matched text, so the new text must be shifted left; but one of its lines has
    /// too little indentation for that.
    Unindentable {
        /// The 1-based number of the line with too little indentation in the new text.
        line: usize,
        /// How the quote was found.
        method: QuoteMatchMethod,
    },
    /// The edited text would exceed [`RESULT_BYTES_MAX`](super::RESULT_BYTES_MAX).
    TooLong,
    /// The lines that the edit quotes changed since the base version.
    StaleQuote(super::StaleQuoteLineRanges),
}

/// Details about a quote that is not in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteNotFoundDetails {
    /// The part of the text that resembles the quote most.
    pub nearest: Option<NearestQuoteCandidate>,
    /// The index of another edit of the same call whose new text contains the quote. All edits are matched against the
    /// original text, so an edit cannot quote text that another edit inserts.
    pub produced_by_edit: Option<usize>,
    /// The lines where the new text of the edit occurs. They do not prove that the edit was already applied.
    pub new_text_lines: Vec<RangeInclusive<usize>>,
    /// A line of the quote that is a placeholder for omitted lines.
    pub elision_line: Option<String>,
    /// The limit that ended the search for the quote early.
    pub limit: Option<ReachedQuoteSearchLimit>,
}

/// One of several matches of a quote, described for an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmbiguousQuoteCandidate {
    /// The byte range of the match in the text.
    pub bytes: std::ops::Range<usize>,
    /// The 1-based lines of the match.
    pub lines: RangeInclusive<usize>,
    /// The definition, such as a function, that contains the match.
    pub enclosing_definition: Option<EnclosingDefinition>,
    /// Lines next to the match that make the quote unique if they are added to it.
    pub disambiguating_context: Option<SuggestedDisambiguatingLines>,
}

/// Describes the first [`DESCRIBED_MATCHES_MAX`] of `found_matches` for an error.
#[must_use]
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

/// The error details for edit `index`, whose quote is not in the text.
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
