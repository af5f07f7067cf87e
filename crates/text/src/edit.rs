//! Edits of one text: each edit quotes the text to replace, and the quote is matched against the original text.
//!
//! Either all edits of a call apply or none. Bytes outside the replaced text stay as they are, and the order of the
//! edits does not matter. A line that is the same in the quote and in the new text keeps its original bytes.

mod elision;
mod errors;
mod rebase;
mod replacement;
mod select;
mod similarity;
mod splice;
mod typing_slips;

use std::ops::RangeInclusive;

pub(crate) use select::is_distinctive;
pub(crate) use typing_slips::decode_leading_tabs;

pub use errors::{
    AmbiguousQuoteCandidate, DESCRIBED_MATCHES_MAX, EditError, EditErrorKind, QuoteNotFoundDetails, describe_matches,
};
pub use rebase::{StaleQuoteLineRanges, apply_ignoring_whitespace, apply_to_newer_text, map_lines};
pub use similarity::QuoteSimilarityRule;
pub use splice::{TextSplice, apply_splices};

use crate::locate::{FuzzyTextMatchPass, MatchOverlapRule, QuoteSearchHaystack};
use select::{PlannedEditReplacement, PlannedTextEditEffect};

/// An edit of a text: the quoted text and its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FindReplaceEdit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub occurrence: OccurrenceSelector,
}

impl<'a> FindReplaceEdit<'a> {
    /// Creates an edit that replaces the only match of the quote `old` with `new`.
    pub fn new(old: &'a str, new: &'a str) -> Self {
        Self { old, new, occurrence: OccurrenceSelector::Only }
    }
}

/// Which matches of a quote an edit replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OccurrenceSelector {
    /// The edit requires exactly one match of its quote and replaces this match.
    Only,
    /// The edit requires exactly this number of matches of its quote and replaces all of them.
    Exactly(usize),
    /// The edit replaces all matches of its quote and requires at least one match.
    All,
    /// The edit replaces only the match of its quote that is nearest to this 1-based line.
    NearestToLine(usize),
}

/// What an edit does if its quote is not found in the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuoteNotFoundPolicy {
    /// The edit fails, and its quote is reported as not found.
    None,
    /// If a quote is not found, the edit removes typing slips from the quote, such as pasted line numbers, and retries.
    /// An edit whose new text is already in the text succeeds. A placeholder for omitted code in the new text is
    /// rejected, even if the quote is found.
    UndoTypingSlips,
    /// An edit whose quote is not found replaces the only block that resembles the quote. Replacing a similar block can
    /// hit the wrong text, but some dialects require it.
    AcceptSimilar,
}

/// The rule for an edit with an empty quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EmptyQuoteRule {
    /// An empty quote is rejected, except in an empty text.
    Reject,
    /// An empty quote matches between all characters and at both ends of the text.
    MatchEverywhere,
}

/// The rule for the line terminators in the new text of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NewTextLineTerminatorRule {
    /// Each line of the new text gets the terminator of the old line that it replaces or follows. If an edit replaces
    /// whole lines, a missing terminator of its last new line is added.
    ReplacedLines,
    /// Each line of the new text gets the terminator of the old line that it replaces or follows, and no terminator is
    /// added.
    NeighbouringLines,
    /// The new text of the edit keeps the line terminators with which it was given.
    AsGiven,
}

/// The rules for matching the quotes of edits and for writing their new text. The edit rules are the only difference
/// between the edits of different dialects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EditMatchingRules {
    /// The matching passes that are tried for the quote of an edit, from first to last.
    pub passes: &'static [FuzzyTextMatchPass],
    pub overlap_rule: MatchOverlapRule,
    pub recovery: QuoteNotFoundPolicy,
    pub empty_quote: EmptyQuoteRule,
    pub terminator_rule: NewTextLineTerminatorRule,
}

impl EditMatchingRules {
    /// The native edit rules: all matching passes are tried, overlapping matches count, and typing slips are undone.
    pub const NATIVE: Self = Self {
        passes: FuzzyTextMatchPass::ALL,
        overlap_rule: MatchOverlapRule::Overlapping,
        recovery: QuoteNotFoundPolicy::UndoTypingSlips,
        empty_quote: EmptyQuoteRule::Reject,
        terminator_rule: NewTextLineTerminatorRule::ReplacedLines,
    };

    /// The edit rules of a literal replacement: quotes match byte for byte, and new text is written as given. Matches
    /// of a quote are counted from left to right and do not overlap.
    pub const LITERAL: Self = Self {
        passes: &[FuzzyTextMatchPass::Exact],
        overlap_rule: MatchOverlapRule::NonOverlapping,
        recovery: QuoteNotFoundPolicy::None,
        empty_quote: EmptyQuoteRule::MatchEverywhere,
        terminator_rule: NewTextLineTerminatorRule::AsGiven,
    };

    /// The edit rules that compare a quote as if the text had only `\n` terminators.
    pub const PLAIN: Self = Self {
        passes: &[FuzzyTextMatchPass::Exact, FuzzyTextMatchPass::LineEndings],
        overlap_rule: MatchOverlapRule::NonOverlapping,
        recovery: QuoteNotFoundPolicy::None,
        empty_quote: EmptyQuoteRule::Reject,
        terminator_rule: NewTextLineTerminatorRule::NeighbouringLines,
    };
}

impl Default for EditMatchingRules {
    fn default() -> Self {
        Self::NATIVE
    }
}

/// The way in which the quote of an edit was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuoteMatchMethod {
    /// A matching pass found the quote of the edit as it was given.
    Pass(FuzzyTextMatchPass),
    /// A matching pass found the quote after pasted line numbers were removed from the quote.
    LineNumbersStripped(FuzzyTextMatchPass),
    /// A matching pass found the quote after literal escapes in the quote (`\n`, `\t`) were decoded.
    EscapesDecoded(FuzzyTextMatchPass),
    /// No matching pass found the quote, but a block of the text resembles the quote.
    Similarity(QuoteSimilarityRule),
    /// The quote was not searched for, because it equals the new text of the edit.
    NoChange,
    /// The quote was not found, but the new text of the edit is already in the text.
    AlreadyApplied,
}

impl QuoteMatchMethod {
    /// Whether the quote of an edit matched byte for byte; also true if the edit needed no match.
    pub fn is_literal_match(&self) -> bool {
        match self {
            Self::Pass(pass) => *pass == FuzzyTextMatchPass::Exact,
            Self::NoChange | Self::AlreadyApplied => true,
            Self::LineNumbersStripped(_) | Self::EscapesDecoded(_) | Self::Similarity(_) => false,
        }
    }

    /// Returns the name of the quote match method in replies to callers.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pass(pass) => pass.name(),
            Self::LineNumbersStripped(_) => "line_numbers_removed",
            Self::EscapesDecoded(_) => "escapes_read",
            Self::Similarity(method) => method.name(),
            Self::NoChange => "unchanged",
            Self::AlreadyApplied => "already_applied",
        }
    }
}

/// The line range of one match of a quote and the line range of its replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplacedMatchLineRanges {
    /// The line range of the replaced match in the text before the edit.
    pub before: RangeInclusive<usize>,
    /// The line range of the replacement in the edited text. An empty replacement has the line after the removed text
    /// as its range.
    pub after: RangeInclusive<usize>,
}

/// The result of one applied edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdit {
    pub method: QuoteMatchMethod,
    /// The line ranges that the edit changed. If the new text was already present before the edit, the line ranges are
    /// those of the present text.
    pub changed_lines: Vec<ReplacedMatchLineRanges>,
    /// The look-alike characters that differ between the quote and the matched text.
    pub look_alikes: Vec<char>,
    /// The text of the first match of the quote, if this text differs from the quote.
    pub matched_text: Option<String>,
}

/// The most bytes that all edits of one call may insert into a text.
pub const RESULT_BYTES_MAX: usize = 64 << 20;

/// The result of all edits of one call together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditedText {
    pub text: String,
    /// The replacements that the edits make, in the order of their positions in the text.
    pub splices: Vec<TextSplice>,
    /// The result of each edit, in the order in which the edits were given.
    pub applied: Vec<AppliedEdit>,
}

/// Applies all edits to `text`, or none if one of the edits fails. On failure, the result lists the edit errors in the
/// order of the given edits.
pub fn apply_edits(
    text: &str,
    edits: &[FindReplaceEdit<'_>],
    rules: EditMatchingRules,
) -> Result<EditedText, Vec<EditError>> {
    let finder = QuoteSearchHaystack::new(text);
    let planned = plan_each_edit(edits, |index| select::select_matches(&finder, edits, index, rules))?;
    apply_selections(&finder, &planned)
}

fn plan_each_edit(
    edits: &[FindReplaceEdit<'_>],
    plan: impl Fn(usize) -> Result<PlannedTextEditEffect, EditErrorKind>,
) -> Result<Vec<PlannedTextEditEffect>, Vec<EditError>> {
    let mut outcomes = Vec::new();
    let mut refusals = Vec::new();
    for index in 0..edits.len() {
        match plan(index) {
            Ok(outcome) => outcomes.push(outcome),
            Err(reason) => refusals.push(EditError { edit_index: index, reason }),
        }
    }
    if refusals.is_empty() { Ok(outcomes) } else { Err(refusals) }
}

fn apply_selections(
    finder: &QuoteSearchHaystack<'_>,
    outcomes: &[PlannedTextEditEffect],
) -> Result<EditedText, Vec<EditError>> {
    reject_overlaps(outcomes)?;
    let mut splices = Vec::new();
    let mut refusals = Vec::new();
    let mut room = RESULT_BYTES_MAX;
    for (index, outcome) in outcomes.iter().enumerate() {
        let PlannedTextEditEffect::Replace(selected) = outcome else { continue };
        match replacement::build_splices(finder, selected, &mut room) {
            Ok(new_splices) => splices.extend(new_splices),
            Err(reason) => {
                let is_too_long = reason == EditErrorKind::TooLong;
                refusals.push(EditError { edit_index: index, reason });
                if is_too_long {
                    break;
                }
            }
        }
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // Two adjacent matches may insert text at the same offset; the splice of the earlier match then comes first.
    splices.sort_by_key(|(found, splice)| (splice.bytes.start, splice.bytes.end, found.start, found.end));
    let splices: Vec<TextSplice> = splices.into_iter().map(|(_, splice)| splice).collect();
    let text = apply_splices(finder.text(), &splices);
    let lines = splice::LineMapping::new(&text, &splices);
    let applied = outcomes.iter().map(|outcome| outcome.to_applied_edit(finder, &lines)).collect();
    Ok(EditedText { text, splices, applied })
}

fn reject_overlaps(outcomes: &[PlannedTextEditEffect]) -> Result<(), Vec<EditError>> {
    let mut spans: Vec<(usize, &PlannedEditReplacement, usize)> = Vec::new();
    for (index, outcome) in outcomes.iter().enumerate() {
        if let PlannedTextEditEffect::Replace(selected) = outcome {
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
        if other.bytes.start < one.bytes.end || one.bytes == other.bytes {
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
mod tests {
    use super::*;

    #[test]
    fn reports_changed_lines_before_and_after() {
        let text = "a\nb\nc\nd\n";
        let edits = [
            FindReplaceEdit::new("d\n", "D\n"),
            FindReplaceEdit::new("a\n", "A\nA2\n"),
            FindReplaceEdit::new("b\n", ""),
        ];
        let edited = apply_edits(text, &edits, EditMatchingRules::NATIVE).unwrap();
        assert_eq!(edited.text, "A\nA2\nc\nD\n");
        let lines: Vec<_> = edited
            .applied
            .iter()
            .map(|applied| (applied.changed_lines[0].before.clone(), applied.changed_lines[0].after.clone()))
            .collect();
        assert_eq!(lines, [(4..=4, 4..=4), (1..=1, 1..=2), (2..=2, 3..=3)]);
    }

    #[test]
    fn reports_every_rejected_edit() {
        let refusals = apply_edits(
            "a a",
            &[FindReplaceEdit::new("a", "b"), FindReplaceEdit::new("", "b"), FindReplaceEdit::new("x", "b")],
            EditMatchingRules::NATIVE,
        )
        .unwrap_err();
        assert_eq!(refusals.iter().map(|refusal| refusal.edit_index).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_large_text_is_searched_in_bounded_time() {
        let mut text = "    some_call(with, arguments);\n".repeat(300_000);
        text.push_str("the needle\n");
        let replace = |old, new| apply_edits(&text, &[FindReplaceEdit::new(old, new)], EditMatchingRules::NATIVE);
        assert!(replace("the needle", "found").unwrap().text.ends_with("found\n"));
        let refusals = replace("some_call(with,\n    arguments);", "x").unwrap_err();
        assert!(matches!(refusals[0].reason, EditErrorKind::NotFound(_)));
        let refusals = replace("some_call(", "x").unwrap_err();
        assert!(
            matches!(&refusals[0].reason, EditErrorKind::Ambiguous { total: 300_000, matches, .. } if matches.len() == DESCRIBED_MATCHES_MAX)
        );
    }

    /// Edits with too large a result must be rejected before the result is built.
    #[test]
    fn rejects_results_over_the_size_limit() {
        let text = "a".repeat(10_000);
        let new = "b".repeat(100_000);
        let all = FindReplaceEdit { occurrence: OccurrenceSelector::All, ..FindReplaceEdit::new("a", &new) };
        let refused = apply_edits(&text, &[all], EditMatchingRules::default()).unwrap_err();
        assert_eq!(refused, [EditError { edit_index: 0, reason: EditErrorKind::TooLong }]);
        let lines = "a\n".repeat(10_000);
        let several = format!("{}\n", "c\n".repeat(50_000));
        let all = FindReplaceEdit { occurrence: OccurrenceSelector::All, ..FindReplaceEdit::new("a\n", &several) };
        let refused = apply_edits(&lines, &[FindReplaceEdit::new("not there", ""), all], EditMatchingRules::default())
            .unwrap_err();
        assert_eq!(refused.len(), 1, "only the first error is reported");
        let refused = apply_edits(&lines, &[all], EditMatchingRules::default()).unwrap_err();
        assert_eq!(refused, [EditError { edit_index: 0, reason: EditErrorKind::TooLong }]);
    }
}
