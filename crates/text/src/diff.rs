//! What changed between two texts, line by line.
//!
//! Owns the choice of algorithm and its bound. Promises that replacing each hunk's old lines by its new lines turns
//! the old text into the new one, that hunks are in order, and that at least one unchanged line lies between two of
//! them. A terminator is part of its line, so a changed ending is a changed line. Never looks inside a line.
//!
//! Time is bounded: a text too large to be compared at once is first cut into blocks at lines that occur once on
//! each side, and what still costs too much is given as one hunk, which is coarse but true.

mod blocks;

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

use crate::lines;

/// The largest product of differing old and new lines (equal lines at both ends set aside) that is compared in one
/// piece. Real texts stay far below; the worst case is about two nanoseconds per pair of lines.
pub const DETAIL_MAX: u64 = 25_000_000;

/// The most pairs of lines compared in one call over all blocks of a larger text. A block beyond it becomes one
/// coarse hunk.
pub const WORK_MAX: u64 = 500_000_000;

/// Texts with more lines than this get one coarse hunk, as their line numbers do not fit the algorithm.
const LINES_MAX: usize = i32::MAX as usize / 2;

/// Lines replaced by lines; either range may be empty, never both. Line indexes are 0-based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The lines of the old text that went away.
    pub old: Range<usize>,
    /// The lines of the new text that came in their place.
    pub new: Range<usize>,
}

/// The size of a change in lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Lines only in the new text.
    pub added: usize,
    /// Lines only in the old text.
    pub removed: usize,
}

/// The hunks that turn `old` into `new`.
#[must_use]
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    byte_hunks(old.as_bytes(), new.as_bytes())
}

/// The hunks that turn `old` into `new`, for texts in any encoding that keeps ASCII bytes as they are.
#[must_use]
pub fn byte_hunks(old: &[u8], new: &[u8]) -> Vec<Hunk> {
    if old == new {
        return Vec::new();
    }
    let old: Vec<&[u8]> = lines::iter_bytes(old).collect();
    let new: Vec<&[u8]> = lines::iter_bytes(new).collect();
    line_hunks(&old, &new)
}

/// How many lines `new` has that `old` has not, and the other way round.
#[must_use]
pub fn summary(old: &str, new: &str) -> Change {
    summarise(&hunks(old, new))
}

/// The lines added and removed by `hunks`.
#[must_use]
pub fn summarise(hunks: &[Hunk]) -> Change {
    hunks.iter().fold(Change::default(), |change, hunk| Change {
        added: change.added + hunk.new.len(),
        removed: change.removed + hunk.old.len(),
    })
}

/// Which of the ways to align two texts is taken, where there are several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alignment {
    /// By the lines that are rarest, which is how people see it.
    Rarest,
    /// By as few differing lines as possible.
    Fewest,
}

/// [`byte_hunks`] by one of the alignments.
pub(crate) fn aligned_hunks(old: &[u8], new: &[u8], alignment: Alignment) -> Vec<Hunk> {
    let old: Vec<&[u8]> = lines::iter_bytes(old).collect();
    let new: Vec<&[u8]> = lines::iter_bytes(new).collect();
    hunks_within(&old, &new, &Bounds { alignment, ..Bounds::DEFAULT })
}

/// The hunks between texts that are already split, however the caller splits them.
pub(crate) fn line_hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<Hunk> {
    hunks_within(old, new, &Bounds::DEFAULT)
}

/// How many pairs of lines may be compared, in one piece, in a block, and in all blocks together; and how.
struct Bounds {
    detail: u64,
    block: u64,
    total: u64,
    alignment: Alignment,
}

impl Bounds {
    const DEFAULT: Self = Self {
        detail: DETAIL_MAX,
        block: blocks::WORK_TARGET,
        total: WORK_MAX,
        alignment: Alignment::Rarest,
    };
}

fn hunks_within(old: &[&[u8]], new: &[&[u8]], bounds: &Bounds) -> Vec<Hunk> {
    let middle = differing_middle(old, new);
    if middle.old.is_empty() && middle.new.is_empty() {
        return Vec::new();
    }
    if old.len().max(new.len()) > LINES_MAX {
        return vec![middle];
    }
    if work(&middle) <= bounds.detail {
        return detailed(old, new, bounds.alignment);
    }
    let mut left = bounds.total;
    let mut found = Vec::new();
    for block in blocks::cut(old, new, &middle, bounds.block) {
        let (old, new) = (&old[block.old.clone()], &new[block.new.clone()]);
        let differing = differing_middle(old, new);
        let hunks = match left.checked_sub(work(&differing)) {
            Some(rest) => {
                left = rest;
                detailed(old, new, bounds.alignment)
            }
            None => vec![differing],
        };
        found.extend(hunks.into_iter().map(|hunk| shifted(&hunk, &block)));
    }
    joined(found)
}

/// The best hunks, however long it takes.
fn detailed(old: &[&[u8]], new: &[&[u8]], alignment: Alignment) -> Vec<Hunk> {
    let algorithm = match alignment {
        Alignment::Rarest => Algorithm::Histogram,
        Alignment::Fewest => Algorithm::Myers,
    };
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let mut diff = Diff::compute(algorithm, &input);
    diff.postprocess_lines(&input);
    let widen = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| Hunk { old: widen(hunk.before), new: widen(hunk.after) }).collect()
}

/// What is left when equal lines at the start and at the end are set aside.
fn differing_middle(old: &[&[u8]], new: &[&[u8]]) -> Hunk {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    Hunk { old: head..old.len() - tail, new: head..new.len() - tail }
}

fn work(hunk: &Hunk) -> u64 {
    (hunk.old.len() as u64).saturating_mul(hunk.new.len() as u64)
}

fn shifted(hunk: &Hunk, block: &Hunk) -> Hunk {
    let shift = |range: &Range<usize>, by: usize| range.start + by..range.end + by;
    Hunk { old: shift(&hunk.old, block.old.start), new: shift(&hunk.new, block.new.start) }
}

/// Makes one hunk of hunks without an unchanged line between them, which happens where blocks meet.
fn joined(hunks: Vec<Hunk>) -> Vec<Hunk> {
    let mut result: Vec<Hunk> = Vec::with_capacity(hunks.len());
    for hunk in hunks.into_iter().filter(|hunk| !hunk.old.is_empty() || !hunk.new.is_empty()) {
        match result.last_mut() {
            Some(last) if last.old.end == hunk.old.start && last.new.end == hunk.new.start => {
                last.old.end = hunk.old.end;
                last.new.end = hunk.new.end;
            }
            Some(_) | None => result.push(hunk),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hunk(old: Range<usize>, new: Range<usize>) -> Hunk {
        Hunk { old, new }
    }

    fn apply(old: &[&[u8]], new: &[&[u8]], hunks: &[Hunk]) -> Vec<u8> {
        let mut result = Vec::new();
        let mut at = 0;
        for hunk in hunks {
            result.extend(old[at..hunk.old.start].concat());
            result.extend(new[hunk.new.clone()].concat());
            at = hunk.old.end;
        }
        result.extend(old[at..].concat());
        result
    }

    #[test]
    fn hunks_say_what_changed() {
        assert_eq!(hunks("a\nb\nc\n", "a\nb\nc\n"), []);
        assert_eq!(hunks("a\nb\nc\n", "a\nB\nc\n"), [hunk(1..2, 1..2)]);
        assert_eq!(hunks("a\nc\n", "a\nb\nc\n"), [hunk(1..1, 1..2)]);
        assert_eq!(hunks("", "a\n"), [hunk(0..0, 0..1)]);
        assert_eq!(hunks("a\n", ""), [hunk(0..1, 0..0)]);
        assert_eq!(hunks("a\nb\n", "a\r\nb\n"), [hunk(0..1, 0..1)]);
        assert_eq!(hunks("a\rb\rc", "a\rB\rc"), [hunk(1..2, 1..2)]);
        assert_eq!(summary("a\nb\nc\n", "x\ny\nb\n"), Change { added: 2, removed: 2 });
    }

    #[test]
    fn a_large_text_with_distant_edits_keeps_small_hunks() {
        let old: String = (0..60_000).map(|line| format!("line {line}\n")).collect();
        let new = old.replacen("line 7\n", "seven\n", 1).replacen("line 59990\n", "", 1);
        assert_eq!(hunks(&old, &new), [hunk(7..8, 7..8), hunk(59_990..59_991, 59_990..59_990)]);
    }

    #[test]
    fn a_hopeless_text_becomes_one_true_hunk() {
        let old: Vec<&[u8]> = [&b"a\n"[..], b"b\n", b"b\n", b"a\n", b"b\n"].to_vec();
        let new: Vec<&[u8]> = [&b"a\n"[..], b"a\n", b"b\n", b"a\n", b"a\n", b"b\n"].to_vec();
        let none = Bounds { detail: 0, block: 0, total: 0, ..Bounds::DEFAULT };
        assert_eq!(hunks_within(&old, &new, &none), [hunk(1..3, 1..4)]);
    }

    proptest! {
        #[test]
        fn hunks_lead_from_old_to_new(
            old in "([a-e]\n|[f-z]\n|\r|\r\n){0,40}[a-c]?",
            new in "([a-e]\n|[f-z]\n|\r|\r\n){0,40}[a-c]?",
            detail in prop_oneof![Just(0_u64), Just(9), Just(DETAIL_MAX)],
            block in 0_u64..30,
            total in 0_u64..300,
        ) {
            let old: Vec<&[u8]> = lines::iter_bytes(old.as_bytes()).collect();
            let new: Vec<&[u8]> = lines::iter_bytes(new.as_bytes()).collect();
            let hunks = hunks_within(&old, &new, &Bounds { detail, block, total, ..Bounds::DEFAULT });
            prop_assert_eq!(apply(&old, &new, &hunks), new.concat());
            for pair in hunks.windows(2) {
                prop_assert!(pair[0].old.end < pair[1].old.start);
                prop_assert_eq!(pair[1].old.start - pair[0].old.end, pair[1].new.start - pair[0].new.end);
            }
        }
    }
}
