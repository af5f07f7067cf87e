//! Edits that were written against an older text.
//!
//! Owns when an old base does no harm: every quoted place stands, untouched and unmistakable, in the current text. A
//! change beside a place does not touch it; a change within its lines does, even if it only moved white space. Promises
//! that what is applied is what the author saw. Never merges: that is [`crate::merge`].

use std::ops::RangeInclusive;

use super::select::{Outcome, Selected};
use super::{
    Edit, Edited, How, RESULT_BYTES_MAX, Reason, Refusal, Rescue, Rules, Splice, Wanted, apply, finish,
    replacement, select,
};
use crate::diff::{self, Hunk};
use crate::locate::{Finder, Matching, Pass, Place};

/// A quoted place that changed since the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    /// Its lines in the base, 1-based; none when the base does not hold the quote clearly.
    pub base_lines: Option<RangeInclusive<usize>>,
    /// The lines that stand there now; none when they went away.
    pub lines: Option<RangeInclusive<usize>>,
}

/// Applies edits that were written against `base` to `current`, if every place they quote is untouched.
///
/// # Errors
///
/// What is wrong with each edit that cannot be applied, in the order given.
pub fn anchored(base: &str, current: &str, edits: &[Edit<'_>], rules: Rules) -> Result<Edited, Vec<Refusal>> {
    anchored_with(base, current, edits, rules, Spacing::Counts)
}

/// Like [`anchored`], but a place in whose lines only white space changed since counts as untouched. Lines that an edit
/// leaves alone keep their new form.
///
/// # Errors
///
/// What is wrong with each edit that cannot be applied, in the order given.
pub fn reformatted(
    base: &str,
    current: &str,
    edits: &[Edit<'_>],
    rules: Rules,
) -> Result<Edited, Vec<Refusal>> {
    anchored_with(base, current, edits, rules, Spacing::Overlooked)
}

/// Whether a change of white space touches a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    Counts,
    Overlooked,
}

fn anchored_with(
    base: &str,
    current: &str,
    edits: &[Edit<'_>],
    rules: Rules,
    spacing: Spacing,
) -> Result<Edited, Vec<Refusal>> {
    let hunks = diff::hunks(base, current);
    let (base, current) = (Finder::new(base), Finder::new(current));
    let mut outcomes = Vec::new();
    let mut refusals = Vec::new();
    for index in 0..edits.len() {
        match judge(&base, &current, &hunks, edits, index, rules) {
            Ok(outcome) => outcomes.push(outcome),
            Err(reason @ Reason::Touched(_)) if spacing == Spacing::Overlooked => {
                match respaced(&base, &current, &hunks, edits, index, rules) {
                    Some(selected) => outcomes.push(Outcome::Replace(selected)),
                    None => refusals.push(Refusal { edit: index, reason }),
                }
            }
            Err(reason) => refusals.push(Refusal { edit: index, reason }),
        }
    }
    if refusals.is_empty() { finish(&current, &outcomes) } else { Err(refusals) }
}

/// Where the lines `lines` (1-based) of `base` stand in `current`, or what stands in their place; nothing if that went
/// away.
#[must_use]
pub fn whereabouts(
    base: &str,
    current: &str,
    lines: &RangeInclusive<usize>,
) -> Option<RangeInclusive<usize>> {
    let hunks = diff::hunks(base, current);
    let last = crate::lines::count(current.as_bytes());
    let (first, end) = around(&hunks, lines)?.into_inner();
    (first <= last).then(|| first..=end.min(last))
}

fn judge(
    base: &Finder<'_>,
    current: &Finder<'_>,
    hunks: &[Hunk],
    edits: &[Edit<'_>],
    index: usize,
    rules: Rules,
) -> Result<Outcome, Reason> {
    let then = select::select(base, edits, index, rules);
    let mut moved = edits.to_vec();
    if let Wanted::Near(line) = edits[index].wanted {
        // The line was counted in the base.
        moved[index].wanted = Wanted::Near(nearest_line(hunks, line));
    }
    let now = select::select(current, &moved, index, rules);
    let was = match then {
        Ok(Outcome::Replace(selected)) => selected,
        Ok(outcome @ (Outcome::Unchanged | Outcome::Already(_))) => return now.or(Ok(outcome)),
        // The base holds the quote, but not clearly: one of its places may have changed, and another be left.
        Err(Reason::Ambiguous { .. } | Reason::WrongCount { .. }) if !hunks.is_empty() => {
            return unclear(now);
        }
        // The base does not hold the quote: then its author has seen the current text, if that does.
        Err(_) => return seen_since(now, hunks),
    };
    let mapped: Option<Vec<_>> = was.places.iter().map(|place| map(hunks, &place.lines)).collect();
    let first = was.places.first().map(|place| place.lines.clone());
    let touched = |lines: Option<RangeInclusive<usize>>| Touched { base_lines: first.clone(), lines };
    let whereabouts = || first.as_ref().and_then(|lines| around(hunks, lines));
    match (now, mapped) {
        (Ok(Outcome::Replace(is)), Some(mapped)) => {
            let stands = is.places.iter().map(|place| place.lines.clone()).eq(mapped);
            if stands { Ok(Outcome::Replace(is)) } else { Err(Reason::Touched(touched(whereabouts()))) }
        }
        (Ok(Outcome::Already(lines)), _) => Ok(Outcome::Already(lines)),
        (Ok(Outcome::Replace(_) | Outcome::Unchanged), _) => Err(Reason::Touched(touched(whereabouts()))),
        (Err(Reason::NotFound(_)), _) => match made_since(base, current, hunks, &was) {
            Some(lines) if rules.rescue == Rescue::Typing => Ok(Outcome::Already(lines)),
            Some(_) | None => Err(Reason::Touched(touched(whereabouts()))),
        },
        (Err(reason), _) => Err(reason),
    }
}

/// Where the lines stand that the edit would have made of the base, if they stand in the place of those it quotes.
fn made_since(
    base: &Finder<'_>,
    current: &Finder<'_>,
    hunks: &[Hunk],
    was: &Selected,
) -> Option<Vec<RangeInclusive<usize>>> {
    let [place] = was.places.as_slice() else { return None };
    let splices = replacement::splices(base, was, &mut { RESULT_BYTES_MAX })
        .ok()?
        .into_iter()
        .map(|(_, splice)| splice);
    let made = apply(base.text(), &splices.collect::<Vec<_>>());
    let start = base.line_bytes(*place.lines.start()).start;
    let behind = base.text().len() - base.line_bytes(*place.lines.end()).end;
    let made = made.get(start..made.len().checked_sub(behind)?)?;
    let lines = around(hunks, &place.lines)?;
    let bytes = current.line_bytes(*lines.start()).start..current.line_bytes(*lines.end()).end;
    (!made.is_empty() && current.text().get(bytes) == Some(made)).then(|| vec![lines])
}

/// The place of an edit whose lines are the same in number and in everything but white space.
fn respaced(
    base: &Finder<'_>,
    current: &Finder<'_>,
    hunks: &[Hunk],
    edits: &[Edit<'_>],
    index: usize,
    rules: Rules,
) -> Option<Selected> {
    let Ok(Outcome::Replace(was)) = select::select(base, edits, index, rules) else { return None };
    let [place] = was.places.as_slice() else { return None };
    let lines = around(hunks, &place.lines)?;
    let whole = |finder: &Finder<'_>, lines: &RangeInclusive<usize>| {
        finder.line_bytes(*lines.start()).start..finder.line_bytes(*lines.end()).end
    };
    let (then, now) = (whole(base, &place.lines), whole(current, &lines));
    let (old, text) = (&base.text()[then.clone()], &current.text()[now.clone()]);
    let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    if lines.clone().count() != place.lines.clone().count() || bare(old) != bare(text) {
        return None;
    }
    let splices = replacement::splices(base, &was, &mut { RESULT_BYTES_MAX }).ok()?;
    let shift = |at: usize| at - then.start;
    let moved = splices
        .into_iter()
        .map(|(_, made)| Splice { bytes: shift(made.bytes.start)..shift(made.bytes.end), text: made.text });
    let new = apply(old, &moved.collect::<Vec<_>>());
    let how = Matching { passes: &[Pass::Indentation], ..Matching::LINES };
    let found = current.find(old, how).places.into_iter().find(|found| found.bytes.start == now.start);
    Some(Selected {
        how: How::Pass(Pass::Indentation),
        places: vec![Place { bytes: now, lines, delta: found.and_then(|found| found.delta) }],
        old: old.to_owned(),
        new,
        terminators: rules.terminators,
    })
}

/// Judges a quote that only the current text holds: it must be there as it was given.
fn seen_since(now: Result<Outcome, Reason>, hunks: &[Hunk]) -> Result<Outcome, Reason> {
    let outcome = now?;
    let is_plain = |selected: &Selected| matches!(selected.how, How::Pass(Pass::Exact | Pass::Endings));
    match &outcome {
        Outcome::Replace(selected) if !is_plain(selected) && !hunks.is_empty() => {
            let lines = selected.places.first().map(|place| place.lines.clone());
            Err(Reason::Touched(Touched { base_lines: None, lines }))
        }
        Outcome::Replace(_) | Outcome::Unchanged | Outcome::Already(_) => Ok(outcome),
    }
}

/// Judges a quote that was not clear in the base: that it is now says nothing about which place was meant.
fn unclear(now: Result<Outcome, Reason>) -> Result<Outcome, Reason> {
    match now? {
        Outcome::Replace(selected) => {
            let lines = selected.places.first().map(|place| place.lines.clone());
            Err(Reason::Touched(Touched { base_lines: None, lines }))
        }
        outcome @ (Outcome::Unchanged | Outcome::Already(_)) => Ok(outcome),
    }
}

/// Where untouched base lines stand now; nothing if a change lies within them.
fn map(hunks: &[Hunk], lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
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

/// The current lines at the place of base lines that changed; nothing if they went away.
fn around(hunks: &[Hunk], lines: &RangeInclusive<usize>) -> Option<RangeInclusive<usize>> {
    let first = position(hunks, lines.start() - 1, Edge::First);
    let last = position(hunks, *lines.end(), Edge::Last);
    (first < last).then(|| first + 1..=last)
}

fn nearest_line(hunks: &[Hunk], line: usize) -> usize {
    position(hunks, line.saturating_sub(1), Edge::First) + 1
}

/// Which end of a range is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    First,
    Last,
}

/// Where the border before the 0-based base line stands now. Within a change: its start, or its end.
fn position(hunks: &[Hunk], border: usize, edge: Edge) -> usize {
    let mut shift = 0_isize;
    for hunk in hunks {
        let is_past = match edge {
            Edge::First => hunk.old.start >= border && !(hunk.old.start == border && hunk.old.is_empty()),
            Edge::Last => hunk.old.start >= border,
        };
        if is_past {
            break;
        }
        if hunk.old.end > border || (edge == Edge::Last && hunk.old.end == border) {
            return match edge {
                Edge::First => hunk.new.start,
                Edge::Last => hunk.new.end,
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

    fn rebased(current: &str, old: &str, new: &str) -> Result<String, Reason> {
        anchored(BASE, current, &[Edit::new(old, new)], Rules::NATIVE)
            .map(|edited| edited.text)
            .map_err(|mut refusals| refusals.remove(0).reason)
    }

    fn touched(base: RangeInclusive<usize>, lines: Option<RangeInclusive<usize>>) -> Result<String, Reason> {
        Err(Reason::Touched(Touched { base_lines: Some(base), lines }))
    }

    #[test]
    fn other_lines_may_change() {
        assert_eq!(rebased("A\nx\nb\nc\nd\ne\n", "c\n", "C\n"), Ok("A\nx\nb\nC\nd\ne\n".to_owned()));
        assert_eq!(rebased("a\nb\nc\nd\n", "c\n", "C\n"), Ok("a\nb\nC\nd\n".to_owned()));
    }

    #[test]
    fn a_change_beside_a_place_does_not_touch_it() {
        assert_eq!(rebased("a\nB\nc\nD\ne\n", "c\n", "C\n"), Ok("a\nB\nC\nD\ne\n".to_owned()));
        assert_eq!(rebased("a\nb\nnew\nc\nd\ne\n", "c\n", "C\n"), Ok("a\nb\nnew\nC\nd\ne\n".to_owned()));
    }

    #[test]
    fn a_change_within_a_place_does() {
        assert_eq!(rebased("a\nb\nX\nd\ne\n", "c\n", "C\n"), touched(3..=3, Some(3..=3)));
        assert_eq!(rebased("a\nb\n  c\nd\ne\n", "c\n", "C\n"), touched(3..=3, Some(3..=3)));
        assert_eq!(rebased("a\nb\nd\ne\n", "c\n", "C\n"), touched(3..=3, None));
        assert_eq!(rebased("a\nb\nnew\nc\nd\ne\n", "b\nc\n", "C\n"), touched(2..=3, Some(2..=4)));
    }

    #[test]
    fn a_change_of_white_space_can_be_overlooked() {
        let base = "if x:\n  a()\n  b()\nend\n";
        let current = "if x:\n    a()\n    b()\nend\n";
        let edits = [Edit::new("  a()\n  b()\n", "  a()\n  c()\n")];
        let text = |made: Result<Edited, Vec<Refusal>>| made.map(|edited| edited.text).ok();
        assert_eq!(text(anchored(base, current, &edits, Rules::NATIVE)), None);
        let expected = Some("if x:\n    a()\n    c()\nend\n".to_owned());
        assert_eq!(text(reformatted(base, current, &edits, Rules::NATIVE)), expected);
        let changed = "if x:\n    a()\n    B()\nend\n";
        assert_eq!(text(reformatted(base, changed, &edits, Rules::NATIVE)), None);
        let joined = "if x:\n  a() b()\nend\n";
        assert_eq!(text(reformatted(base, joined, &edits, Rules::NATIVE)), None);
    }

    #[test]
    fn a_copy_made_since_makes_a_place_mistakable() {
        assert!(matches!(
            rebased("a\nb\nc\nd\ne\nc\n", "c\n", "C\n"),
            Err(Reason::Ambiguous { total: 2, .. })
        ));
    }

    #[test]
    fn a_place_that_was_one_of_two_is_never_taken_for_the_one_meant() {
        let edits = [Edit::new("x\n", "y\n")];
        let made = anchored("x\na\nx\n", "X\na\nx\n", &edits, Rules::NATIVE);
        let reason = Reason::Touched(Touched { base_lines: None, lines: Some(3..=3) });
        assert_eq!(made, Err(vec![Refusal { edit: 0, reason }]));
        let counted = Edit { wanted: Wanted::Count(1), ..edits[0] };
        assert!(anchored("x\na\nx\n", "X\na\nx\n", &[counted], Rules::NATIVE).is_err());
    }

    #[test]
    fn text_that_came_since_may_be_quoted_as_it_is() {
        assert_eq!(rebased("a\nb\nc\nd\nnew\n", "new\n", "N\n"), Ok("a\nb\nc\nd\nN\n".to_owned()));
        assert!(rebased("a\nb\nc\nd\nnew \nx\n", "new\nx\n", "N\n").is_err());
    }
}
