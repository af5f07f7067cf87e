//! Errors of edits, with the details their author needs to correct the call.
//!
//! Owns the structure of an error; callers choose the wording. Promises edit indexes as given, 1-based lines, and a
//! bound on every list.

use std::ops::RangeInclusive;

use super::{MatchMethod, QuotedEdit};
use crate::locate::{
    DisambiguatingContext, EnclosingDefinition, LocateLimit, MatchPass, NearestCandidate, QuoteMatch, SearchableText,
};

/// The most matches that an error describes; further ones are only counted.
pub const DESCRIBED_MATCHES_MAX: usize = 20;

/// One edit that cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditError {
    /// The 0-based index of the edit.
    pub edit_index: usize,
    /// Why it cannot be applied.
    pub reason: EditErrorKind,
}

/// Why an edit cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EditErrorKind {
    /// The quote is empty.
    EmptyOld,
    /// The quote is not in the text.
    NotFound(Box<QuoteNotFound>),
    /// The quote matches more than once, and one match is required.
    Ambiguous {
        /// The pass that found the matches.
        pass: MatchPass,
        /// The number of matches.
        total: usize,
        /// The first matches.
        matches: Vec<MatchDescription>,
    },
    /// The number of matches differs from the number the edit requires.
    WrongCount {
        /// The required number.
        expected: usize,
        /// The number of matches.
        total: usize,
        /// The first matches.
        matches: Vec<MatchDescription>,
    },
    /// The edit overlaps an earlier one.
    Overlap {
        /// The index of the other edit.
        other_edit: usize,
        /// The lines where they overlap.
        lines: RangeInclusive<usize>,
    },
    /// The new text has a placeholder instead of code.
    ElisionInNewText {
        /// The line of the new text, 1-based.
        line: usize,
        /// The placeholder line.
        text: String,
    },
    /// The quote is indented deeper than the text, and a line of the new text cannot be shifted left by as much.
    Unindentable {
        /// The line of the new text, 1-based.
        line: usize,
        /// How the quote was found.
        method: MatchMethod,
    },
    /// The result would exceed [`RESULT_BYTES_MAX`](super::RESULT_BYTES_MAX).
    TooLong,
    /// The quoted lines changed since the base.
    StaleQuote(super::StaleQuote),
}

/// Details about a quote that is not in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuoteNotFound {
    /// The most likely position.
    pub nearest: Option<NearestCandidate>,
    /// Another edit of the same call whose new text contains the quote: edits do not see each other.
    pub produced_by_edit: Option<usize>,
    /// The lines of the new text, if it is present but not clearly at this position.
    pub new_text_lines: Vec<RangeInclusive<usize>>,
    /// A line of the quote that is a placeholder for other lines.
    pub elision_line: Option<String>,
    /// The limit that ended the search early.
    pub limit: Option<LocateLimit>,
}

/// One of several matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchDescription {
    /// The bytes of the match in the text.
    pub bytes: std::ops::Range<usize>,
    /// The lines of the match.
    pub lines: RangeInclusive<usize>,
    /// The definition around the match.
    pub enclosing_definition: Option<EnclosingDefinition>,
    /// Text to add to the quote so that it matches only here.
    pub disambiguating_context: Option<DisambiguatingContext>,
}

/// Describes the first matches of `found_matches`.
#[must_use]
pub fn describe_matches(finder: &SearchableText<'_>, found_matches: &[QuoteMatch]) -> Vec<MatchDescription> {
    let describe = |found: &QuoteMatch| MatchDescription {
        bytes: found.bytes.clone(),
        lines: found.lines.clone(),
        enclosing_definition: finder.enclosing_definition(*found.lines.start()),
        disambiguating_context: finder.disambiguating_context(found, found_matches),
    };
    found_matches.iter().take(DESCRIBED_MATCHES_MAX).map(describe).collect()
}

/// Details about the quote of edit `index`, which is not in the text.
pub(super) fn describe_missing_quote(
    finder: &SearchableText<'_>,
    edits: &[QuotedEdit<'_>],
    index: usize,
    new_at: Vec<RangeInclusive<usize>>,
    limit: Option<LocateLimit>,
) -> QuoteNotFound {
    let old = edits[index].old;
    let makes = |(other, edit): (usize, &QuotedEdit<'_>)| {
        (other != index && !old.trim().is_empty() && edit.new.contains(old)).then_some(other)
    };
    QuoteNotFound {
        nearest: finder.nearest_candidate(old),
        produced_by_edit: edits.iter().enumerate().find_map(makes),
        new_text_lines: new_at,
        elision_line: super::elision::find_elision(old, "").map(|(_, line)| line),
        limit,
    }
}
