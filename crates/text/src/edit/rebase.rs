//! Applies edits that were written for an older version of the text, called the base.
//!
//! An edit is rejected if a line of its quoted match changed since the base. No edit replaces a line that its author
//! has not seen. Changes of the text next to a quoted match are allowed.

use std::ops::RangeInclusive;

use super::select::{PlannedEditReplacement, PlannedTextEditEffect};
use super::{
    EditError, EditErrorKind, EditMatchingRules, EditedText, FindReplaceEdit, OccurrenceSelector, QuoteMatchMethod,
    QuoteNotFoundPolicy, RESULT_BYTES_MAX, TextSplice, apply_selections, apply_splices, plan_each_edit, replacement,
    select,
};
use crate::diff::{self, DiffHunkRanges};
use crate::locate::{FuzzyTextMatchPass, QuoteMatch, QuoteSearchHaystack, QuoteSearchOptions};

/// The position of a quoted match whose lines changed since the base version of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleQuoteLineRanges {
    /// The 1-based lines of the first quoted match in the base version. `None` means that the quote is missing or
    /// ambiguous in the base version.
    pub base_lines: Option<RangeInclusive<usize>>,
    /// The current lines that correspond to the quoted match; `None` if the quoted lines were removed.
    pub lines: Option<RangeInclusive<usize>>,
}

/// Applies edits that were written for the text `base` to the newer text `current`. An edit fails if a line of its
/// quoted match changed between `base` and `current`. The errors are in the order of the given edits.
pub fn apply_to_newer_text(
    base: &str,
    current: &str,
    edits: &[FindReplaceEdit<'_>],
    rules: EditMatchingRules,
) -> Result<EditedText, Vec<EditError>> {
    let versions = TextVersions::new(base, current);
    let planned = plan_each_edit(edits, |index| versions.rebase_edit(edits, index, rules))?;
    apply_selections(&versions.current, &planned)
}

/// Applies edits like [`apply_to_newer_text`], but accepts changes of white space in the quoted lines. Lines that the
/// edit does not change keep the white space that they have in `current`.
pub fn apply_ignoring_whitespace(
    base: &str,
    current: &str,
    edits: &[FindReplaceEdit<'_>],
    rules: EditMatchingRules,
) -> Result<EditedText, Vec<EditError>> {
    let versions = TextVersions::new(base, current);
    let planned = plan_each_edit(edits, |index| match versions.rebase_edit(edits, index, rules) {
        Err(stale @ EditErrorKind::StaleQuote(_)) => {
            let selected = versions.match_after_reformatting(edits, index, rules);
            selected.map(PlannedTextEditEffect::Replace).ok_or(stale)
        }
        planned => planned,
    })?;
    apply_selections(&versions.current, &planned)
}

/// Maps the 1-based `lines` of the text `base` to the corresponding lines of `current`. The function returns `None` if
/// `current` has no corresponding lines.
pub fn map_lines(base: &str, current: &str, lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let hunks = diff::hunks(base, current);
    let last = crate::lines::count_lines(current.as_bytes());
    let (first, end) = map_surrounding_lines(&hunks, lines)?.into_inner();
    (first <= last).then(|| first..=end.min(last))
}

struct TextVersions<'t> {
    base: QuoteSearchHaystack<'t>,
    current: QuoteSearchHaystack<'t>,
    hunks: Vec<DiffHunkRanges>,
}

impl<'t> TextVersions<'t> {
    fn new(base: &'t str, current: &'t str) -> Self {
        let hunks = diff::hunks(base, current);
        Self { base: QuoteSearchHaystack::new(base), current: QuoteSearchHaystack::new(current), hunks }
    }

    fn rebase_edit(
        &self,
        edits: &[FindReplaceEdit<'_>],
        index: usize,
        rules: EditMatchingRules,
    ) -> Result<PlannedTextEditEffect, EditErrorKind> {
        let in_base = select::select_matches(&self.base, edits, index, rules);
        let mut moved = edits.to_vec();
        if let OccurrenceSelector::NearestToLine(line) = edits[index].occurrence {
            let before = map_border(&self.hunks, line.saturating_sub(1), RangeEdge::First);
            moved[index].occurrence = OccurrenceSelector::NearestToLine(before + 1);
        }
        let in_current = select::select_matches(&self.current, &moved, index, rules);
        let in_base = match in_base {
            Ok(PlannedTextEditEffect::Replace(selected)) => selected,
            Ok(outcome @ (PlannedTextEditEffect::Unchanged | PlannedTextEditEffect::AlreadyApplied(_))) => {
                return in_current.or(Ok(outcome));
            }
            Err(_) if self.hunks.is_empty() => return in_current,
            Err(base_error) => return accept_match_only_in_current(in_current, &base_error),
        };
        let mapped: Option<Vec<_>> =
            in_base.matches.iter().map(|target| map_unchanged_lines(&self.hunks, &target.lines)).collect();
        let stale = || {
            let base_lines = in_base.matches.first().map(|target| target.lines.clone());
            let lines = base_lines.as_ref().and_then(|lines| map_surrounding_lines(&self.hunks, lines));
            Err(EditErrorKind::StaleQuote(StaleQuoteLineRanges { base_lines, lines }))
        };
        match (in_current, mapped) {
            (Ok(PlannedTextEditEffect::Replace(selected)), Some(mapped)) => {
                let is_same_place = selected.matches.iter().map(|target| target.lines.clone()).eq(mapped);
                if is_same_place { Ok(PlannedTextEditEffect::Replace(selected)) } else { stale() }
            }
            (Ok(PlannedTextEditEffect::AlreadyApplied(lines)), _) => Ok(PlannedTextEditEffect::AlreadyApplied(lines)),
            (Ok(PlannedTextEditEffect::Replace(_) | PlannedTextEditEffect::Unchanged), _) => stale(),
            (Err(EditErrorKind::NotFound(_)), _) => match self.find_equivalent_change(&in_base) {
                Some(lines) if rules.recovery == QuoteNotFoundPolicy::UndoTypingSlips => {
                    Ok(PlannedTextEditEffect::AlreadyApplied(lines))
                }
                Some(_) | None => stale(),
            },
            (Err(reason), _) => Err(reason),
        }
    }

    /// Finds the lines in which another writer already made the change that the edit requests.
    fn find_equivalent_change(&self, in_base: &PlannedEditReplacement) -> Option<Vec<RangeInclusive<usize>>> {
        let [target] = in_base.matches.as_slice() else { return None };
        let edited = apply_splices(self.base.text(), &splices_of(&self.base, in_base)?);
        let replaced = self.base.bytes_of_lines(&target.lines);
        let length_after = self.base.text().len() - replaced.end;
        let edited = edited.get(replaced.start..edited.len().checked_sub(length_after)?)?;
        let lines = map_surrounding_lines(&self.hunks, &target.lines)?;
        let current = self.current.text().get(self.current.bytes_of_lines(&lines));
        (!edited.is_empty() && current == Some(edited)).then(|| vec![lines])
    }

    /// Finds the lines to replace if the quoted lines and the current text differ only in white space.
    fn match_after_reformatting(
        &self,
        edits: &[FindReplaceEdit<'_>],
        index: usize,
        rules: EditMatchingRules,
    ) -> Option<PlannedEditReplacement> {
        let Ok(PlannedTextEditEffect::Replace(in_base)) = select::select_matches(&self.base, edits, index, rules)
        else {
            return None;
        };
        let [target] = in_base.matches.as_slice() else { return None };
        let lines = map_surrounding_lines(&self.hunks, &target.lines)?;
        let (base_bytes, bytes) = (self.base.bytes_of_lines(&target.lines), self.current.bytes_of_lines(&lines));
        let (old, text) = (&self.base.text()[base_bytes.clone()], &self.current.text()[bytes.clone()]);
        let without_space = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        if lines.clone().count() != target.lines.clone().count() || without_space(old) != without_space(text) {
            return None;
        }
        let mut splices = splices_of(&self.base, &in_base)?;
        for splice in &mut splices {
            splice.bytes = splice.bytes.start - base_bytes.start..splice.bytes.end - base_bytes.start;
        }
        let new = apply_splices(old, &splices);
        let options =
            QuoteSearchOptions { passes: &[FuzzyTextMatchPass::Indentation], ..QuoteSearchOptions::WHOLE_LINES };
        let found = self.current.find(old, options).matches.into_iter().find(|found| found.bytes.start == bytes.start);
        let indentation_shift = found.and_then(|found| found.indentation_shift);
        Some(PlannedEditReplacement {
            method: QuoteMatchMethod::Pass(FuzzyTextMatchPass::Indentation),
            matches: vec![QuoteMatch { bytes, lines, indentation_shift }],
            old: old.to_owned(),
            new,
            terminators: rules.terminator_rule,
        })
    }
}

fn splices_of(finder: &QuoteSearchHaystack<'_>, selected: &PlannedEditReplacement) -> Option<Vec<TextSplice>> {
    let splices = replacement::build_splices(finder, selected, &mut { RESULT_BYTES_MAX }).ok()?;
    Some(splices.into_iter().map(|(_, splice)| splice).collect())
}

/// Checks an edit whose quote is missing or ambiguous in the base version. If only the current text contains the quote,
/// then the author of the edit saw the current text, unless the quote and its match differ in more than line
/// terminators. If the quote has several matches in the base, then the author may have meant a match that no longer
/// exists.
fn accept_match_only_in_current(
    in_current: Result<PlannedTextEditEffect, EditErrorKind>,
    base_error: &EditErrorKind,
) -> Result<PlannedTextEditEffect, EditErrorKind> {
    let Ok(PlannedTextEditEffect::Replace(selected)) = &in_current else { return in_current };
    let is_ambiguous = matches!(base_error, EditErrorKind::Ambiguous { .. } | EditErrorKind::WrongCount { .. });
    let is_same_text =
        matches!(selected.method, QuoteMatchMethod::Pass(FuzzyTextMatchPass::Exact | FuzzyTextMatchPass::LineEndings));
    if is_same_text && !is_ambiguous {
        return in_current;
    }
    let lines = selected.matches.first().map(|target| target.lines.clone());
    Err(EditErrorKind::StaleQuote(StaleQuoteLineRanges { base_lines: None, lines }))
}

/// Maps base lines to their position in the current text. The function returns `None` if one of the base lines changed.
fn map_unchanged_lines(hunks: &[DiffHunkRanges], lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let (first, last) = (lines.start() - 1, *lines.end());
    let mut shift = 0_isize;
    for hunk in hunks {
        if hunk.old.start >= last {
            break;
        }
        if hunk.old.end > first {
            return None;
        }
        shift += hunk.new.len().cast_signed() - hunk.old.len().cast_signed();
    }
    Some(first.checked_add_signed(shift)? + 1..=last.checked_add_signed(shift)?)
}

/// Maps base lines to the current lines that correspond to them or replaced them.
fn map_surrounding_lines(hunks: &[DiffHunkRanges], lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let first = map_border(hunks, lines.start() - 1, RangeEdge::First);
    let last = map_border(hunks, *lines.end(), RangeEdge::Last);
    (first < last).then(|| first + 1..=last)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeEdge {
    First,
    Last,
}

/// Maps the position before a 0-based base line to a position in the current text. A position within changed lines is
/// mapped to the start or the end of the new lines, as `edge` says.
fn map_border(hunks: &[DiffHunkRanges], border: usize, edge: RangeEdge) -> usize {
    let mut shift = 0_isize;
    for hunk in hunks {
        let is_past = match edge {
            RangeEdge::First => hunk.old.start >= border && !(hunk.old.start == border && hunk.old.is_empty()),
            RangeEdge::Last => hunk.old.start >= border,
        };
        if is_past {
            break;
        }
        if hunk.old.end > border || (edge == RangeEdge::Last && hunk.old.end == border) {
            return match edge {
                RangeEdge::First => hunk.new.start,
                RangeEdge::Last => hunk.new.end,
            };
        }
        shift += hunk.new.len().cast_signed() - hunk.old.len().cast_signed();
    }
    border.saturating_add_signed(shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "a\nb\nc\nd\ne\n";

    fn rebase_and_apply(current: &str, old: &str, new: &str) -> Result<String, EditErrorKind> {
        apply_to_newer_text(BASE, current, &[FindReplaceEdit::new(old, new)], EditMatchingRules::NATIVE)
            .map(|edited| edited.text)
            .map_err(|mut refusals| refusals.remove(0).reason)
    }

    fn assert_stale_quote(
        base: RangeInclusive<usize>,
        lines: Option<RangeInclusive<usize>>,
    ) -> Result<String, EditErrorKind> {
        Err(EditErrorKind::StaleQuote(StaleQuoteLineRanges { base_lines: Some(base), lines }))
    }

    #[test]
    fn changes_to_other_lines_do_not_conflict() {
        assert_eq!(rebase_and_apply("A\nx\nb\nc\nd\ne\n", "c\n", "C\n"), Ok("A\nx\nb\nC\nd\ne\n".to_owned()));
        assert_eq!(rebase_and_apply("a\nb\nc\nd\n", "c\n", "C\n"), Ok("a\nb\nC\nd\n".to_owned()));
    }

    #[test]
    fn changes_to_adjacent_lines_do_not_conflict() {
        assert_eq!(rebase_and_apply("a\nB\nc\nD\ne\n", "c\n", "C\n"), Ok("a\nB\nC\nD\ne\n".to_owned()));
        assert_eq!(rebase_and_apply("a\nb\nnew\nc\nd\ne\n", "c\n", "C\n"), Ok("a\nb\nnew\nC\nd\ne\n".to_owned()));
    }

    #[test]
    fn changes_within_the_quoted_lines_conflict() {
        assert_eq!(rebase_and_apply("a\nb\nX\nd\ne\n", "c\n", "C\n"), assert_stale_quote(3..=3, Some(3..=3)));
        assert_eq!(rebase_and_apply("a\nb\n  c\nd\ne\n", "c\n", "C\n"), assert_stale_quote(3..=3, Some(3..=3)));
        assert_eq!(rebase_and_apply("a\nb\nd\ne\n", "c\n", "C\n"), assert_stale_quote(3..=3, None));
        assert_eq!(rebase_and_apply("a\nb\nnew\nc\nd\ne\n", "b\nc\n", "C\n"), assert_stale_quote(2..=3, Some(2..=4)));
    }

    #[test]
    fn whitespace_changes_can_be_ignored() {
        let base = "if x:\n  a()\n  b()\nend\n";
        let current = "if x:\n    a()\n    b()\nend\n";
        let edits = [FindReplaceEdit::new("  a()\n  b()\n", "  a()\n  c()\n")];
        let text = |result: Result<EditedText, Vec<EditError>>| result.map(|edited| edited.text).ok();
        assert_eq!(text(apply_to_newer_text(base, current, &edits, EditMatchingRules::NATIVE)), None);
        let expected = Some("if x:\n    a()\n    c()\nend\n".to_owned());
        assert_eq!(text(apply_ignoring_whitespace(base, current, &edits, EditMatchingRules::NATIVE)), expected);
        let changed = "if x:\n    a()\n    B()\nend\n";
        assert_eq!(text(apply_ignoring_whitespace(base, changed, &edits, EditMatchingRules::NATIVE)), None);
        let joined = "if x:\n  a() b()\nend\n";
        assert_eq!(text(apply_ignoring_whitespace(base, joined, &edits, EditMatchingRules::NATIVE)), None);
    }

    #[test]
    fn a_later_copy_of_the_quote_makes_it_ambiguous() {
        assert!(matches!(
            rebase_and_apply("a\nb\nc\nd\ne\nc\n", "c\n", "C\n"),
            Err(EditErrorKind::Ambiguous { total: 2, .. })
        ));
    }

    #[test]
    fn a_quote_ambiguous_in_the_base_stays_ambiguous() {
        let edits = [FindReplaceEdit::new("x\n", "y\n")];
        let result = apply_to_newer_text("x\na\nx\n", "X\na\nx\n", &edits, EditMatchingRules::NATIVE);
        let reason = EditErrorKind::StaleQuote(StaleQuoteLineRanges { base_lines: None, lines: Some(3..=3) });
        assert_eq!(result, Err(vec![EditError { edit_index: 0, reason }]));
        let counted = FindReplaceEdit { occurrence: OccurrenceSelector::Exactly(1), ..edits[0] };
        assert!(apply_to_newer_text("x\na\nx\n", "X\na\nx\n", &[counted], EditMatchingRules::NATIVE).is_err());
    }

    #[test]
    fn text_added_since_the_base_can_be_quoted() {
        assert_eq!(rebase_and_apply("a\nb\nc\nd\nnew\n", "new\n", "N\n"), Ok("a\nb\nc\nd\nN\n".to_owned()));
        assert!(rebase_and_apply("a\nb\nc\nd\nnew \nx\n", "new\nx\n", "N\n").is_err());
    }
}
