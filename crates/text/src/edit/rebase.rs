//! Edits written against an older text.
//!
//! Owns the rule for a stale base: every quoted match must be unchanged and unambiguous in the current text. A change
//! beside a match does not touch it; a change within its lines does, even of white space only. Promises that applied
//! edits replace only lines that the author saw. Never merges: see [`crate::merge`].

use std::ops::RangeInclusive;

use super::select::{EditSelection, SelectedMatches};
use super::{
    EditError, EditErrorKind, EditRules, EditedText, MatchMethod, NotFoundRecovery, OccurrenceSelector, QuotedEdit,
    RESULT_BYTES_MAX, Splice, apply_selections, apply_splices, replacement, select,
};
use crate::diff::{self, Hunk};
use crate::locate::{MatchOptions, MatchPass, QuoteMatch, SearchableText};

/// A quoted match that changed since the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StaleQuote {
    /// The lines in the base, 1-based; `None` if the quote is missing or ambiguous there.
    pub base_lines: Option<RangeInclusive<usize>>,
    /// The current lines at that position; `None` if they were removed.
    pub lines: Option<RangeInclusive<usize>>,
}

/// Applies edits written against `base` to `current`, if every quoted match is unchanged.
///
/// # Errors
///
/// The error of each edit that cannot be applied, in the order given.
pub fn apply_to_newer_text(
    base: &str,
    current: &str,
    edits: &[QuotedEdit<'_>],
    rules: EditRules,
) -> Result<EditedText, Vec<EditError>> {
    apply_to_newer_text_with(base, current, edits, rules, WhitespaceRule::Significant)
}

/// Like [`apply_to_newer_text`], but lines in which only white space changed count as unchanged. Lines that an edit
/// repeats keep their new form.
///
/// # Errors
///
/// The error of each edit that cannot be applied, in the order given.
pub fn apply_ignoring_whitespace(
    base: &str,
    current: &str,
    edits: &[QuotedEdit<'_>],
    rules: EditRules,
) -> Result<EditedText, Vec<EditError>> {
    apply_to_newer_text_with(base, current, edits, rules, WhitespaceRule::Ignored)
}

/// Whether a white-space change makes a match stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WhitespaceRule {
    Significant,
    Ignored,
}

fn apply_to_newer_text_with(
    base: &str,
    current: &str,
    edits: &[QuotedEdit<'_>],
    rules: EditRules,
    spacing: WhitespaceRule,
) -> Result<EditedText, Vec<EditError>> {
    let hunks = diff::hunks(base, current);
    let (base, current) = (SearchableText::new(base), SearchableText::new(current));
    let mut outcomes = Vec::new();
    let mut refusals = Vec::new();
    for index in 0..edits.len() {
        match rebase_edit(&base, &current, &hunks, edits, index, rules) {
            Ok(outcome) => outcomes.push(outcome),
            Err(reason @ EditErrorKind::StaleQuote(_)) if spacing == WhitespaceRule::Ignored => {
                match match_after_reformatting(&base, &current, &hunks, edits, index, rules) {
                    Some(selected) => outcomes.push(EditSelection::Replace(selected)),
                    None => refusals.push(EditError { edit_index: index, reason }),
                }
            }
            Err(reason) => refusals.push(EditError { edit_index: index, reason }),
        }
    }
    if refusals.is_empty() { apply_selections(&current, &outcomes) } else { Err(refusals) }
}

/// The lines of `current` that correspond to the 1-based `lines` of `base`; `None` if they were removed.
#[must_use]
pub fn map_lines(base: &str, current: &str, lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let hunks = diff::hunks(base, current);
    let last = crate::lines::count_lines(current.as_bytes());
    let (first, end) = map_surrounding_lines(&hunks, lines)?.into_inner();
    (first <= last).then(|| first..=end.min(last))
}

fn rebase_edit(
    base: &SearchableText<'_>,
    current: &SearchableText<'_>,
    hunks: &[Hunk],
    edits: &[QuotedEdit<'_>],
    index: usize,
    rules: EditRules,
) -> Result<EditSelection, EditErrorKind> {
    let then = select::select_matches(base, edits, index, rules);
    let mut moved = edits.to_vec();
    if let OccurrenceSelector::NearestToLine(line) = edits[index].occurrence {
        // The line number refers to the base.
        moved[index].occurrence = OccurrenceSelector::NearestToLine(map_nearest_line(hunks, line));
    }
    let now = select::select_matches(current, &moved, index, rules);
    let was = match then {
        Ok(EditSelection::Replace(selected)) => selected,
        Ok(outcome @ (EditSelection::Unchanged | EditSelection::AlreadyApplied(_))) => {
            return now.or(Ok(outcome));
        }
        // The quote is ambiguous in the base: one match may have changed and another remained.
        Err(EditErrorKind::Ambiguous { .. } | EditErrorKind::WrongCount { .. }) if !hunks.is_empty() => {
            return reject_ambiguous_match(now);
        }
        // The quote is not in the base: if the current text has it, the author saw that text.
        Err(_) => return match_only_in_current(now, hunks),
    };
    let mapped: Option<Vec<_>> = was.matches.iter().map(|target| map_unchanged_lines(hunks, &target.lines)).collect();
    let first = was.matches.first().map(|target| target.lines.clone());
    let touched = |lines: Option<RangeInclusive<usize>>| StaleQuote { base_lines: first.clone(), lines };
    let whereabouts = || first.as_ref().and_then(|lines| map_surrounding_lines(hunks, lines));
    match (now, mapped) {
        (Ok(EditSelection::Replace(is)), Some(mapped)) => {
            let stands = is.matches.iter().map(|target| target.lines.clone()).eq(mapped);
            if stands { Ok(EditSelection::Replace(is)) } else { Err(EditErrorKind::StaleQuote(touched(whereabouts()))) }
        }
        (Ok(EditSelection::AlreadyApplied(lines)), _) => Ok(EditSelection::AlreadyApplied(lines)),
        (Ok(EditSelection::Replace(_) | EditSelection::Unchanged), _) => {
            Err(EditErrorKind::StaleQuote(touched(whereabouts())))
        }
        (Err(EditErrorKind::NotFound(_)), _) => match find_equivalent_change(base, current, hunks, &was) {
            Some(lines) if rules.recovery == NotFoundRecovery::UndoTypingSlips => {
                Ok(EditSelection::AlreadyApplied(lines))
            }
            Some(_) | None => Err(EditErrorKind::StaleQuote(touched(whereabouts()))),
        },
        (Err(reason), _) => Err(reason),
    }
}

/// The lines that equal the result of the edit on the base, if they replaced the quoted lines.
fn find_equivalent_change(
    base: &SearchableText<'_>,
    current: &SearchableText<'_>,
    hunks: &[Hunk],
    was: &SelectedMatches,
) -> Option<Vec<RangeInclusive<usize>>> {
    let [target] = was.matches.as_slice() else { return None };
    let splices =
        replacement::build_splices(base, was, &mut { RESULT_BYTES_MAX }).ok()?.into_iter().map(|(_, splice)| splice);
    let made = apply_splices(base.text(), &splices.collect::<Vec<_>>());
    let start = base.line_bytes(*target.lines.start()).start;
    let behind = base.text().len() - base.line_bytes(*target.lines.end()).end;
    let made = made.get(start..made.len().checked_sub(behind)?)?;
    let lines = map_surrounding_lines(hunks, &target.lines)?;
    let bytes = current.line_bytes(*lines.start()).start..current.line_bytes(*lines.end()).end;
    (!made.is_empty() && current.text().get(bytes) == Some(made)).then(|| vec![lines])
}

/// The match whose lines differ from the base in white space only, with the same number of lines.
fn match_after_reformatting(
    base: &SearchableText<'_>,
    current: &SearchableText<'_>,
    hunks: &[Hunk],
    edits: &[QuotedEdit<'_>],
    index: usize,
    rules: EditRules,
) -> Option<SelectedMatches> {
    let Ok(EditSelection::Replace(was)) = select::select_matches(base, edits, index, rules) else {
        return None;
    };
    let [target] = was.matches.as_slice() else { return None };
    let lines = map_surrounding_lines(hunks, &target.lines)?;
    let whole = |finder: &SearchableText<'_>, lines: &RangeInclusive<usize>| {
        finder.line_bytes(*lines.start()).start..finder.line_bytes(*lines.end()).end
    };
    let (then, now) = (whole(base, &target.lines), whole(current, &lines));
    let (old, text) = (&base.text()[then.clone()], &current.text()[now.clone()]);
    let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    if lines.clone().count() != target.lines.clone().count() || bare(old) != bare(text) {
        return None;
    }
    let splices = replacement::build_splices(base, &was, &mut { RESULT_BYTES_MAX }).ok()?;
    let shift = |at: usize| at - then.start;
    let moved = splices
        .into_iter()
        .map(|(_, made)| Splice { bytes: shift(made.bytes.start)..shift(made.bytes.end), text: made.text });
    let new = apply_splices(old, &moved.collect::<Vec<_>>());
    let how = MatchOptions { passes: &[MatchPass::Indentation], ..MatchOptions::WHOLE_LINES };
    let found = current.find(old, how).matches.into_iter().find(|found| found.bytes.start == now.start);
    Some(SelectedMatches {
        method: MatchMethod::Pass(MatchPass::Indentation),
        matches: vec![QuoteMatch {
            bytes: now,
            lines,
            indentation_shift: found.and_then(|found| found.indentation_shift),
        }],
        old: old.to_owned(),
        new,
        terminators: rules.terminator_rule,
    })
}

/// Checks a quote that only the current text has: it must match as given.
fn match_only_in_current(
    now: Result<EditSelection, EditErrorKind>,
    hunks: &[Hunk],
) -> Result<EditSelection, EditErrorKind> {
    let outcome = now?;
    let is_plain = |selected: &SelectedMatches| {
        matches!(selected.method, MatchMethod::Pass(MatchPass::Exact | MatchPass::LineEndings))
    };
    match &outcome {
        EditSelection::Replace(selected) if !is_plain(selected) && !hunks.is_empty() => {
            let lines = selected.matches.first().map(|target| target.lines.clone());
            Err(EditErrorKind::StaleQuote(StaleQuote { base_lines: None, lines }))
        }
        EditSelection::Replace(_) | EditSelection::Unchanged | EditSelection::AlreadyApplied(_) => Ok(outcome),
    }
}

/// Rejects a quote that was ambiguous in the base: a single match now does not show which one was meant.
fn reject_ambiguous_match(now: Result<EditSelection, EditErrorKind>) -> Result<EditSelection, EditErrorKind> {
    match now? {
        EditSelection::Replace(selected) => {
            let lines = selected.matches.first().map(|target| target.lines.clone());
            Err(EditErrorKind::StaleQuote(StaleQuote { base_lines: None, lines }))
        }
        outcome @ (EditSelection::Unchanged | EditSelection::AlreadyApplied(_)) => Ok(outcome),
    }
}

/// The current position of unchanged base lines; `None` if a change lies within them.
fn map_unchanged_lines(hunks: &[Hunk], lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let (first, last) = (lines.start() - 1, *lines.end());
    let mut shift = 0_isize;
    for hunk in hunks {
        if hunk.old.start >= last {
            break;
        }
        let is_above = hunk.old.end <= first;
        if !is_above {
            return None;
        }
        shift += hunk.new.len().cast_signed() - hunk.old.len().cast_signed();
    }
    Some(first.checked_add_signed(shift)? + 1..=last.checked_add_signed(shift)?)
}

/// The current lines that replaced changed base lines; `None` if they were removed.
fn map_surrounding_lines(hunks: &[Hunk], lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let first = map_border(hunks, lines.start() - 1, RangeEdge::First);
    let last = map_border(hunks, *lines.end(), RangeEdge::Last);
    (first < last).then(|| first + 1..=last)
}

fn map_nearest_line(hunks: &[Hunk], line: usize) -> usize {
    map_border(hunks, line.saturating_sub(1), RangeEdge::First) + 1
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeEdge {
    First,
    Last,
}

/// The current position of the border before a 0-based base line. Within a change: its start or its end.
fn map_border(hunks: &[Hunk], border: usize, edge: RangeEdge) -> usize {
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
        apply_to_newer_text(BASE, current, &[QuotedEdit::new(old, new)], EditRules::NATIVE)
            .map(|edited| edited.text)
            .map_err(|mut refusals| refusals.remove(0).reason)
    }

    fn assert_stale_quote(
        base: RangeInclusive<usize>,
        lines: Option<RangeInclusive<usize>>,
    ) -> Result<String, EditErrorKind> {
        Err(EditErrorKind::StaleQuote(StaleQuote { base_lines: Some(base), lines }))
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
        let edits = [QuotedEdit::new("  a()\n  b()\n", "  a()\n  c()\n")];
        let text = |made: Result<EditedText, Vec<EditError>>| made.map(|edited| edited.text).ok();
        assert_eq!(text(apply_to_newer_text(base, current, &edits, EditRules::NATIVE)), None);
        let expected = Some("if x:\n    a()\n    c()\nend\n".to_owned());
        assert_eq!(text(apply_ignoring_whitespace(base, current, &edits, EditRules::NATIVE)), expected);
        let changed = "if x:\n    a()\n    B()\nend\n";
        assert_eq!(text(apply_ignoring_whitespace(base, changed, &edits, EditRules::NATIVE)), None);
        let joined = "if x:\n  a() b()\nend\n";
        assert_eq!(text(apply_ignoring_whitespace(base, joined, &edits, EditRules::NATIVE)), None);
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
        let edits = [QuotedEdit::new("x\n", "y\n")];
        let made = apply_to_newer_text("x\na\nx\n", "X\na\nx\n", &edits, EditRules::NATIVE);
        let reason = EditErrorKind::StaleQuote(StaleQuote { base_lines: None, lines: Some(3..=3) });
        assert_eq!(made, Err(vec![EditError { edit_index: 0, reason }]));
        let counted = QuotedEdit { occurrence: OccurrenceSelector::Exactly(1), ..edits[0] };
        assert!(apply_to_newer_text("x\na\nx\n", "X\na\nx\n", &[counted], EditRules::NATIVE).is_err());
    }

    #[test]
    fn text_added_since_the_base_can_be_quoted() {
        assert_eq!(rebase_and_apply("a\nb\nc\nd\nnew\n", "new\n", "N\n"), Ok("a\nb\nc\nd\nN\n".to_owned()));
        assert!(rebase_and_apply("a\nb\nc\nd\nnew \nx\n", "new\nx\n", "N\n").is_err());
    }
}
