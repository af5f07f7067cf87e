//! Quoted edits of one text, all checked against the same snapshot.
//!
//! Owns the form of an edit, the conditions under which it applies, and the errors. Promises that all edits apply or
//! none does, that bytes outside the replaced spans stay as they are, that the order of edits does not matter, and
//! that similarity alone never selects a match unless the rules ask for it. An error holds everything a caller needs
//! to correct the next call. Never reads or writes files; quoted lines that an edit repeats unchanged keep their
//! bytes.

mod elision;
mod errors;
mod rebase;
mod replacement;
mod select;
mod similarity;
mod splice;
mod typing_slips;

use std::ops::RangeInclusive;

pub use errors::{DESCRIBED_MATCHES_MAX, EditError, EditErrorKind, MatchDescription, QuoteNotFound, describe_matches};
pub use rebase::{StaleQuote, apply_ignoring_whitespace, apply_to_newer_text, map_lines};
pub use similarity::SimilarityMethod;
pub use splice::{Splice, apply_splices, inverse_splices};

use crate::locate::{MatchPass, OverlapRule, SearchableText};
use replacement::ReplacementError;
use select::{EditSelection, SelectedMatches};

/// One edit: the quoted text and its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuotedEdit<'a> {
    /// The quoted text.
    pub old: &'a str,
    /// The replacement.
    pub new: &'a str,
    /// Selects among the matches of `old`.
    pub occurrence: OccurrenceSelector,
}

impl<'a> QuotedEdit<'a> {
    /// An edit of the only match of `old`.
    #[must_use]
    pub fn new(old: &'a str, new: &'a str) -> Self {
        Self { old, new, occurrence: OccurrenceSelector::Only }
    }
}

/// Which matches of a quote an edit replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OccurrenceSelector {
    /// The only match.
    Only,
    /// All matches, which must be this many.
    Exactly(usize),
    /// All matches; at least one.
    All,
    /// The match nearest to this 1-based line.
    NearestToLine(usize),
}

/// The recovery when no pass finds a quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotFoundRecovery {
    /// Report the quote as not found.
    None,
    /// Undo typing slips (pasted line numbers, literal escapes) if the quote is then found. Also recognises an edit
    /// that is already applied and rejects a new text that elides code.
    UndoTypingSlips,
    /// Accept the only block that resembles the quote. Not safe; for dialects that require it.
    AcceptSimilar,
}

/// How an empty quote is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmptyQuoteRule {
    /// Rejected, except in an empty text.
    Reject,
    /// Matches between all characters and at both ends.
    MatchEverywhere,
}

/// Line terminators of the new text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineTerminatorRule {
    /// The terminator of the neighbouring line. A replacement of whole lines also ends its last line.
    ReplacedLines,
    /// The terminator of the neighbouring line.
    NeighbouringLines,
    /// As given.
    AsGiven,
}

/// How strictly edits are matched and applied; all differences between dialects are here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditRules {
    /// The passes to try.
    pub passes: &'static [MatchPass],
    /// How matches are counted.
    pub overlap_rule: OverlapRule,
    /// The recovery when no pass finds the quote.
    pub recovery: NotFoundRecovery,
    /// How an empty quote is handled.
    pub empty_quote: EmptyQuoteRule,
    /// Line terminators of the new text.
    pub terminator_rule: LineTerminatorRule,
}

impl EditRules {
    /// Every pass, overlapping matches counted, typing slips undone.
    pub const NATIVE: Self = Self {
        passes: MatchPass::ALL,
        overlap_rule: OverlapRule::Overlapping,
        recovery: NotFoundRecovery::UndoTypingSlips,
        empty_quote: EmptyQuoteRule::Reject,
        terminator_rule: LineTerminatorRule::ReplacedLines,
    };

    /// Byte for byte, counted left to right, written as given.
    pub const LITERAL: Self = Self {
        passes: &[MatchPass::Exact],
        overlap_rule: OverlapRule::NonOverlapping,
        recovery: NotFoundRecovery::None,
        empty_quote: EmptyQuoteRule::MatchEverywhere,
        terminator_rule: LineTerminatorRule::AsGiven,
    };

    /// As if the text had only `\n`, counted left to right; the text keeps its own terminators.
    pub const PLAIN: Self = Self {
        passes: &[MatchPass::Exact, MatchPass::LineEndings],
        overlap_rule: OverlapRule::NonOverlapping,
        recovery: NotFoundRecovery::None,
        empty_quote: EmptyQuoteRule::Reject,
        terminator_rule: LineTerminatorRule::NeighbouringLines,
    };
}

impl Default for EditRules {
    fn default() -> Self {
        Self::NATIVE
    }
}

/// How the quote of an edit was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchMethod {
    /// By a pass.
    Pass(MatchPass),
    /// By a pass, after removing line numbers from its lines.
    LineNumbersStripped(MatchPass),
    /// By a pass, after decoding literal escapes (`\n`, `\t`).
    EscapesDecoded(MatchPass),
    /// By similarity.
    Similarity(SimilarityMethod),
    /// Not searched: the edit changes nothing.
    NoChange,
    /// Not found, but the new text is present.
    AlreadyApplied,
}

impl MatchMethod {
    /// Whether the quote matched as given, or the edit needed no match.
    #[must_use]
    pub fn is_literal_match(&self) -> bool {
        match self {
            Self::Pass(pass) => *pass == MatchPass::Exact,
            Self::NoChange | Self::AlreadyApplied => true,
            Self::LineNumbersStripped(_) | Self::EscapesDecoded(_) | Self::Similarity(_) => false,
        }
    }

    /// The name shown to callers.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass(pass) => pass.name(),
            Self::LineNumbersStripped(_) => "line_numbers_removed",
            Self::EscapesDecoded(_) => "escapes_read",
            Self::Similarity(fallback) => fallback.name(),
            Self::NoChange => "unchanged",
            Self::AlreadyApplied => "already_applied",
        }
    }
}

/// The lines of one changed match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedLines {
    /// The lines before the edit.
    pub before: RangeInclusive<usize>,
    /// The lines in the result; if everything was removed, the line that follows.
    pub after: RangeInclusive<usize>,
}

/// The result of one edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    /// How its quote was found.
    pub method: MatchMethod,
    /// The changed lines; for [`MatchMethod::AlreadyApplied`], the lines of the new text.
    pub changed_lines: Vec<ChangedLines>,
    /// Look-alike characters in which the quote and the text differ.
    pub look_alikes: Vec<char>,
    /// The matched text of the first match, if it is not the quote itself.
    pub matched_text: Option<String>,
}

/// The most bytes that the edits of one call may insert into a text.
pub const RESULT_BYTES_MAX: usize = 64 << 20;

/// The result of all edits together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedText {
    /// The text with every edit applied.
    pub text: String,
    /// The replacements, in order.
    pub splices: Vec<Splice>,
    /// The result of each edit, in the order given.
    pub applied: Vec<AppliedEdit>,
}

/// Applies every edit to `text`, or none.
///
/// # Errors
///
/// The error of each edit that cannot be applied, in the order given.
pub fn apply_edits(text: &str, edits: &[QuotedEdit<'_>], rules: EditRules) -> Result<EditedText, Vec<EditError>> {
    let finder = SearchableText::new(text);
    let selected = select_matches_of_all(&finder, edits, rules)?;
    apply_selections(&finder, &selected)
}

fn select_matches_of_all(
    finder: &SearchableText<'_>,
    edits: &[QuotedEdit<'_>],
    rules: EditRules,
) -> Result<Vec<EditSelection>, Vec<EditError>> {
    let mut outcomes = Vec::new();
    let mut refusals = Vec::new();
    for index in 0..edits.len() {
        match select::select_matches(finder, edits, index, rules) {
            Ok(outcome) => outcomes.push(outcome),
            Err(reason) => refusals.push(EditError { edit_index: index, reason }),
        }
    }
    if refusals.is_empty() { Ok(outcomes) } else { Err(refusals) }
}

fn apply_selections(finder: &SearchableText<'_>, outcomes: &[EditSelection]) -> Result<EditedText, Vec<EditError>> {
    reject_overlaps(outcomes)?;
    let mut splices = Vec::new();
    let mut refusals = Vec::new();
    let mut room = RESULT_BYTES_MAX;
    for (index, outcome) in outcomes.iter().enumerate() {
        let EditSelection::Replace(selected) = outcome else { continue };
        match replacement::build_splices(finder, selected, &mut room) {
            Ok(made) => splices.extend(made),
            Err(ReplacementError::Unindentable(line)) => {
                let reason = EditErrorKind::Unindentable { line, method: selected.method.clone() };
                refusals.push(EditError { edit_index: index, reason });
            }
            Err(ReplacementError::TooLong) => {
                refusals.push(EditError { edit_index: index, reason: EditErrorKind::TooLong });
                break;
            }
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // Two adjacent matches may both insert at the same offset: the earlier match goes first.
    splices.sort_by_key(|(found, splice)| (splice.bytes.start, splice.bytes.end, found.start, found.end));
    let splices: Vec<Splice> = splices.into_iter().map(|(_, splice)| splice).collect();
    let text = apply_splices(finder.text(), &splices);
    let lines = splice::LineMapping::new(&text, &splices);
    let applied = outcomes.iter().map(|outcome| outcome.to_applied_edit(finder, &lines)).collect();
    Ok(EditedText { text, splices, applied })
}

fn reject_overlaps(outcomes: &[EditSelection]) -> Result<(), Vec<EditError>> {
    let mut spans: Vec<(usize, &SelectedMatches, usize)> = Vec::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        if let EditSelection::Replace(selected) = outcome {
            spans.extend((0..selected.matches.len()).map(|found| (index, selected, found)));
        }
    }
    spans.sort_by_key(|(index, selected, found)| {
        let bytes = &selected.matches[*found].bytes;
        (bytes.start, bytes.end, *index)
    });
    let mut refusals: Vec<EditError> = Vec::new();
    for pair in spans.windows(2) {
        let [(first, one, a), (second, other, b)] = pair else { continue };
        let (one, other) = (&one.matches[*a], &other.matches[*b]);
        let is_same_point = one.bytes == other.bytes;
        if other.bytes.start < one.bytes.end || is_same_point {
            let (low, high) = (*first.min(second), *first.max(second));
            let reason = EditErrorKind::Overlap { other_edit: low, lines: other.lines.clone() };
            if refusals.iter().all(|refusal| refusal.edit_index != high || refusal.reason != reason) {
                refusals.push(EditError { edit_index: high, reason });
            }
        }
    }
    if refusals.is_empty() { Ok(()) } else { Err(refusals) }
}

#[cfg(test)]
mod tests;
