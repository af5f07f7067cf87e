//! Computes line differences between two texts, in bounded time.
//!
//! Replacing the old lines of each hunk by its new lines turns the old text into the new text. Hunks are in order, and
//! an unchanged line lies between two neighbouring hunks. A line terminator is part of its line, so a changed
//! terminator makes a changed line.

mod blocks;

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput};

use crate::lines;

/// The most pairs of an old and a new line that a diff compares without cutting the texts into blocks. Equal lines at
/// the start and at the end of both texts are not counted. Comparing one pair of lines takes about two nanoseconds in
/// the worst case.
pub const DETAILED_WORK_MAX: u64 = 25_000_000;

/// The most pairs of an old and a new line that one diff of two large texts compares. A block whose comparison would
/// exceed the limit of pairs becomes one large hunk.
pub const WORK_MAX: u64 = 500_000_000;

/// The most lines of a text that the diff algorithm supports; a longer text gets one large hunk.
const LINES_MAX: usize = i32::MAX as usize / 2;

/// A diff hunk: a range of old lines and the range of new lines that replaces it. The line indexes of a diff hunk are
/// 0-based. The range of new lines is empty if the hunk only removes lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHunkRanges {
    pub old: Range<usize>,
    pub new: Range<usize>,
}

/// The number of lines that a diff adds and removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiffStat {
    pub added: usize,
    pub removed: usize,
}

/// Computes the diff hunks that turn the text `old` into the text `new`. The histogram algorithm pairs the rarest equal
/// lines, which gives the most readable hunks.
pub fn hunks(old: &str, new: &str) -> Vec<DiffHunkRanges> {
    if old == new { Vec::new() } else { hunks_with_algorithm(old, new, Algorithm::Histogram) }
}

/// Counts the lines that a diff from `old` to `new` adds and removes.
pub fn diff_stat(old: &str, new: &str) -> DiffStat {
    count_changed_lines(&hunks(old, new))
}

/// Counts the lines that the diff hunks `hunks` add and remove.
pub fn count_changed_lines(hunks: &[DiffHunkRanges]) -> DiffStat {
    hunks.iter().fold(DiffStat::default(), |change, hunk| DiffStat {
        added: change.added + hunk.new.len(),
        removed: change.removed + hunk.old.len(),
    })
}

pub(crate) fn hunks_with_algorithm(old: &str, new: &str, algorithm: Algorithm) -> Vec<DiffHunkRanges> {
    let old: Vec<&[u8]> = lines::iter_bytes(old.as_bytes()).collect();
    let new: Vec<&[u8]> = lines::iter_bytes(new.as_bytes()).collect();
    hunks_within(&old, &new, &DiffAlgorithmAndLimits { algorithm, ..DiffAlgorithmAndLimits::DEFAULT })
}

pub(crate) fn line_hunks(old: &[&[u8]], new: &[&[u8]]) -> Vec<DiffHunkRanges> {
    hunks_within(old, new, &DiffAlgorithmAndLimits::DEFAULT)
}

struct DiffAlgorithmAndLimits {
    detailed_work: u64,
    block_work: u64,
    total_work: u64,
    algorithm: Algorithm,
}

impl DiffAlgorithmAndLimits {
    const DEFAULT: Self = Self {
        detailed_work: DETAILED_WORK_MAX,
        block_work: blocks::WORK_TARGET,
        total_work: WORK_MAX,
        algorithm: Algorithm::Histogram,
    };
}

fn hunks_within(old: &[&[u8]], new: &[&[u8]], budget: &DiffAlgorithmAndLimits) -> Vec<DiffHunkRanges> {
    let middle = differing_middle(old, new);
    if middle.old.is_empty() && middle.new.is_empty() {
        return Vec::new();
    }
    if old.len().max(new.len()) > LINES_MAX {
        return vec![middle];
    }
    if comparison_work(&middle) <= budget.detailed_work {
        return detailed_hunks(old, new, budget.algorithm);
    }
    let mut remaining_work = budget.total_work;
    let mut found = Vec::new();
    for block in blocks::split_into_blocks(old, new, &middle, budget.block_work) {
        let (old, new) = (&old[block.old.clone()], &new[block.new.clone()]);
        let differing = differing_middle(old, new);
        let hunks = match remaining_work.checked_sub(comparison_work(&differing)) {
            Some(rest) => {
                remaining_work = rest;
                detailed_hunks(old, new, budget.algorithm)
            }
            None => vec![differing],
        };
        found.extend(hunks.into_iter().map(|hunk| shift_hunk(&hunk, &block)));
    }
    merge_adjacent_hunks(found)
}

/// Runs the diff algorithm without a limit on its work.
fn detailed_hunks(old: &[&[u8]], new: &[&[u8]], algorithm: Algorithm) -> Vec<DiffHunkRanges> {
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    let mut diff = Diff::compute(algorithm, &input);
    diff.postprocess_lines(&input);
    let widen = |range: Range<u32>| range.start as usize..range.end as usize;
    diff.hunks().map(|hunk| DiffHunkRanges { old: widen(hunk.before), new: widen(hunk.after) }).collect()
}

/// Returns the line ranges between the common prefix and the common suffix of two texts.
fn differing_middle(old: &[&[u8]], new: &[&[u8]]) -> DiffHunkRanges {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    DiffHunkRanges { old: head..old.len() - tail, new: head..new.len() - tail }
}

fn comparison_work(hunk: &DiffHunkRanges) -> u64 {
    (hunk.old.len() as u64).saturating_mul(hunk.new.len() as u64)
}

fn shift_hunk(hunk: &DiffHunkRanges, block: &DiffHunkRanges) -> DiffHunkRanges {
    let shift = |range: &Range<usize>, by: usize| range.start + by..range.end + by;
    DiffHunkRanges { old: shift(&hunk.old, block.old.start), new: shift(&hunk.new, block.new.start) }
}

/// Merges hunks that have no unchanged line between them; such hunks occur where two blocks meet.
fn merge_adjacent_hunks(hunks: Vec<DiffHunkRanges>) -> Vec<DiffHunkRanges> {
    let mut result: Vec<DiffHunkRanges> = Vec::with_capacity(hunks.len());
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

    fn hunk(old: Range<usize>, new: Range<usize>) -> DiffHunkRanges {
        DiffHunkRanges { old, new }
    }

    fn apply(old: &[&[u8]], new: &[&[u8]], hunks: &[DiffHunkRanges]) -> Vec<u8> {
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
    fn hunks_describe_the_changed_lines() {
        assert_eq!(hunks("a\nb\nc\n", "a\nb\nc\n"), []);
        assert_eq!(hunks("a\nb\nc\n", "a\nB\nc\n"), [hunk(1..2, 1..2)]);
        assert_eq!(hunks("a\nc\n", "a\nb\nc\n"), [hunk(1..1, 1..2)]);
        assert_eq!(hunks("", "a\n"), [hunk(0..0, 0..1)]);
        assert_eq!(hunks("a\n", ""), [hunk(0..1, 0..0)]);
        assert_eq!(hunks("a\nb\n", "a\r\nb\n"), [hunk(0..1, 0..1)]);
        assert_eq!(hunks("a\rb\rc", "a\rB\rc"), [hunk(1..2, 1..2)]);
        assert_eq!(diff_stat("a\nb\nc\n", "x\ny\nb\n"), DiffStat { added: 2, removed: 2 });
    }

    #[test]
    fn a_large_text_with_distant_edits_keeps_small_hunks() {
        let old: String = (0..60_000).map(|line| format!("line {line}\n")).collect();
        let new = old.replacen("line 7\n", "seven\n", 1).replacen("line 59990\n", "", 1);
        assert_eq!(hunks(&old, &new), [hunk(7..8, 7..8), hunk(59_990..59_991, 59_990..59_990)]);
    }

    #[test]
    fn texts_over_budget_become_one_correct_hunk() {
        let old: Vec<&[u8]> = [&b"a\n"[..], b"b\n", b"b\n", b"a\n", b"b\n"].to_vec();
        let new: Vec<&[u8]> = [&b"a\n"[..], b"a\n", b"b\n", b"a\n", b"a\n", b"b\n"].to_vec();
        let none = DiffAlgorithmAndLimits {
            detailed_work: 0,
            block_work: 0,
            total_work: 0,
            ..DiffAlgorithmAndLimits::DEFAULT
        };
        assert_eq!(hunks_within(&old, &new, &none), [hunk(1..3, 1..4)]);
    }

    proptest! {
        #[test]
        fn applying_hunks_to_old_gives_new(
            old in "([a-e]\n|[f-z]\n|\r|\r\n){0,40}[a-c]?",
            new in "([a-e]\n|[f-z]\n|\r|\r\n){0,40}[a-c]?",
            detail in prop_oneof![Just(0_u64), Just(9), Just(DETAILED_WORK_MAX)],
            block in 0_u64..30,
            total in 0_u64..300,
        ) {
            let old: Vec<&[u8]> = lines::iter_bytes(old.as_bytes()).collect();
            let new: Vec<&[u8]> = lines::iter_bytes(new.as_bytes()).collect();
            let hunks = hunks_within(&old, &new, &DiffAlgorithmAndLimits { detailed_work: detail, block_work: block, total_work: total, ..DiffAlgorithmAndLimits::DEFAULT });
            prop_assert_eq!(apply(&old, &new, &hunks), new.concat());
            for pair in hunks.windows(2) {
                prop_assert!(pair[0].old.end < pair[1].old.start);
                prop_assert_eq!(pair[1].old.start - pair[0].old.end, pair[1].new.start - pair[0].new.end);
            }
        }
    }
}
