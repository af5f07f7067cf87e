//! Three-way merge by lines.
//!
//! A merge is clean if the two sides change neither the same nor adjacent lines, or make the same change. Conflicts are
//! returned as line ranges; the merge writes no conflict markers and prefers no side.
//!
//! If the base repeats a line, two diff algorithms can assign a change to different copies of the line. A merge is a
//! conflict if two diff algorithms give clean but different results.

use std::ops::Range;

use imara_diff::Algorithm;

use crate::diff::{DiffHunkRanges, hunks_with_algorithm};
use crate::lines;

/// The result of a three-way merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
    Clean(String),
    /// The merge failed, with at least one range of lines in conflict, in order of position.
    Conflict(Vec<MergeConflictLineRanges>),
}

/// A merge conflict: both sides changed the same or adjacent lines in different ways. Lines are counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflictLineRanges {
    pub base: Range<usize>,
    pub ours: Range<usize>,
    pub theirs: Range<usize>,
}

/// Merges the change from `base` to `ours` with the change from `base` to `theirs`.
pub fn merge(base: &str, ours: &str, theirs: &str) -> MergeResult {
    match merge_with_algorithm(base, ours, theirs, Algorithm::Histogram) {
        MergeResult::Clean(text) => match merge_with_algorithm(base, ours, theirs, Algorithm::Myers) {
            MergeResult::Clean(other) if other != text => {
                let whole = |text: &str| 0..lines::count_lines(text.as_bytes());
                let ranges = MergeConflictLineRanges { base: whole(base), ours: whole(ours), theirs: whole(theirs) };
                MergeResult::Conflict(vec![ranges])
            }
            MergeResult::Clean(_) | MergeResult::Conflict(_) => MergeResult::Clean(text),
        },
        conflict @ MergeResult::Conflict(_) => conflict,
    }
}

struct MergeSideCursor<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
    hunks: std::iter::Peekable<std::vec::IntoIter<DiffHunkRanges>>,
    base: usize,
    line: usize,
}

impl<'a> MergeSideCursor<'a> {
    fn new(base: &str, text: &'a str, algorithm: Algorithm) -> Self {
        let hunks = hunks_with_algorithm(base, text, algorithm).into_iter().peekable();
        Self { text, line_starts: lines::starts(text.as_bytes()), hunks, base: 0, line: 0 }
    }

    fn next_hunk_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old.start)
    }

    /// Advances the side to base line `base` and returns the passed text.
    fn copy_unchanged_to(&mut self, base: usize) -> &'a str {
        let from = self.line;
        self.line += base - self.base;
        self.base = base;
        self.text_of(&(from..self.line))
    }

    /// Consumes the next hunk of a side if the hunk starts at or before base line `end`.
    fn take_overlapping_hunk(&mut self, end: usize) -> Option<usize> {
        let hunk = self.hunks.next_if(|hunk| hunk.old.start <= end)?;
        self.base = hunk.old.end;
        self.line = hunk.new.end;
        Some(end.max(hunk.old.end))
    }

    fn text_of(&self, lines: &Range<usize>) -> &'a str {
        &self.text[self.line_starts[lines.start]..self.line_starts[lines.end]]
    }
}

/// Hunks of the two sides that overlap or are adjacent are merged as one.
fn merge_with_algorithm(base: &str, ours: &str, theirs: &str, algorithm: Algorithm) -> MergeResult {
    let mut ours = MergeSideCursor::new(base, ours, algorithm);
    let mut theirs = MergeSideCursor::new(base, theirs, algorithm);
    let mut merged = String::new();
    let mut conflicts = Vec::new();
    loop {
        let starts = [ours.next_hunk_start(), theirs.next_hunk_start()];
        let Some(start) = starts.into_iter().flatten().min() else { break };
        merged.push_str(ours.copy_unchanged_to(start));
        theirs.copy_unchanged_to(start);
        match merge_overlapping_hunks(&mut ours, &mut theirs, start) {
            Ok(text) => merged.push_str(text),
            Err(conflict) => conflicts.push(conflict),
        }
    }
    merged.push_str(ours.copy_unchanged_to(lines::count_lines(base.as_bytes())));
    if conflicts.is_empty() { MergeResult::Clean(merged) } else { MergeResult::Conflict(conflicts) }
}

/// Consumes the hunks of both sides that overlap or adjoin each other, from base line `start` on.
fn merge_overlapping_hunks<'a>(
    ours: &mut MergeSideCursor<'a>,
    theirs: &mut MergeSideCursor<'a>,
    start: usize,
) -> Result<&'a str, MergeConflictLineRanges> {
    let (our_start, their_start) = (ours.line, theirs.line);
    let (mut we_changed, mut they_changed) = (false, false);
    let mut end = start;
    loop {
        if let Some(new_end) = ours.take_overlapping_hunk(end) {
            (end, we_changed) = (new_end, true);
        } else if let Some(new_end) = theirs.take_overlapping_hunk(end) {
            (end, they_changed) = (new_end, true);
        } else {
            break;
        }
    }
    ours.copy_unchanged_to(end);
    theirs.copy_unchanged_to(end);
    let (our_lines, their_lines) = (our_start..ours.line, their_start..theirs.line);
    let (our_text, their_text) = (ours.text_of(&our_lines), theirs.text_of(&their_lines));
    if !they_changed || our_text == their_text {
        Ok(our_text)
    } else if !we_changed {
        Ok(their_text)
    } else {
        Err(MergeConflictLineRanges { base: start..end, ours: our_lines, theirs: their_lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "1\n2\n3\n4\n5\n";

    fn merge_cleanly(base: &str, ours: &str, theirs: &str) -> String {
        match merge(base, ours, theirs) {
            MergeResult::Clean(text) => text,
            MergeResult::Conflict(ranges) => panic!("{ranges:?}"),
        }
    }

    fn merge_conflicts(base: &str, ours: &str, theirs: &str) -> Vec<MergeConflictLineRanges> {
        match merge(base, ours, theirs) {
            MergeResult::Clean(text) => panic!("{text:?}"),
            MergeResult::Conflict(ranges) => ranges,
        }
    }

    #[test]
    fn distant_changes_merge() {
        assert_eq!(merge_cleanly(BASE, "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"), "one\n2\n3\n4\nfive\n");
        assert_eq!(merge_cleanly(BASE, "0\n1\n2\n3\n4\n5\n", "1\n2\n4\n5\n6\n"), "0\n1\n2\n4\n5\n6\n");
        assert_eq!(merge_cleanly(BASE, "1\n2\nthree\n4\n5\n", "one\n2\n3\n4\nfive\n"), "one\n2\nthree\n4\nfive\n");
    }

    #[test]
    fn the_same_change_on_both_sides_merges() {
        assert_eq!(merge_cleanly(BASE, "1\nx\n3\n4\n5\n", "1\nx\n3\n4\n5\n"), "1\nx\n3\n4\n5\n");
        assert_eq!(merge_cleanly(BASE, "1\nx\n3\n4\n5\n", "1\nx\n3\n4\ny\n"), "1\nx\n3\n4\ny\n");
        assert_eq!(merge_cleanly("", "a\n", "a\n"), "a\n");
    }

    #[test]
    fn the_same_lines_conflict() {
        let found = merge_conflicts(BASE, "1\n2\nx\n4\n5\n", "1\n2\ny\nz\n4\n5\n");
        assert_eq!(found, [MergeConflictLineRanges { base: 2..3, ours: 2..3, theirs: 2..4 }]);
        assert_eq!(merge_conflicts("", "a\n", "b\n").len(), 1);
        assert_eq!(merge_conflicts(BASE, "", "1\n2\n3\n4\nfive\n").len(), 1);
    }

    #[test]
    fn neighbouring_lines_conflict() {
        assert_eq!(
            merge_conflicts(BASE, "1\nx\n3\n4\n5\n", "1\n2\ny\n4\n5\n"),
            [MergeConflictLineRanges { base: 1..3, ours: 1..3, theirs: 1..3 }]
        );
        // One side inserts a line next to a line that the other side changes.
        assert_eq!(merge_conflicts(BASE, "1\nx\n3\n4\n5\n", "1\n2\nnew\n3\n4\n5\n").len(), 1);
        // Both sides insert different lines at the same position.
        assert_eq!(merge_conflicts(BASE, "1\na\n2\n3\n4\n5\n", "1\nb\n2\n3\n4\n5\n").len(), 1);
    }

    #[test]
    fn a_chain_of_touching_changes_is_one_conflict() {
        let found = merge_conflicts(BASE, "a\nb\n3\n4\ne\n", "1\nB\nC\nD\n5\n");
        assert_eq!(found, [MergeConflictLineRanges { base: 0..5, ours: 0..5, theirs: 0..5 }]);
    }

    #[test]
    fn merges_that_differ_between_algorithms_conflict() {
        let (base, ours, theirs) = ("a\n}\na\na\n", "x\na\na\n}\na\n", "a\na\na\n");
        let merged = |algorithm| merge_with_algorithm(base, ours, theirs, algorithm);
        assert!(matches!(merged(Algorithm::Histogram), MergeResult::Clean(_)));
        assert!(matches!(merged(Algorithm::Myers), MergeResult::Clean(_)));
        assert_ne!(merged(Algorithm::Histogram), merged(Algorithm::Myers));
        let whole = MergeConflictLineRanges { base: 0..4, ours: 0..5, theirs: 0..3 };
        assert_eq!(merge_conflicts(base, ours, theirs), [whole]);
    }

    #[test]
    fn line_terminators_are_preserved() {
        assert_eq!(
            merge_cleanly("1\r\n2\n3\r4\n5", "one\r\n2\n3\r4\n5", "1\r\n2\n3\r4\n5\r\n6"),
            "one\r\n2\n3\r4\n5\r\n6"
        );
    }
}
