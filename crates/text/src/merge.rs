//! Three-way merge by lines.
//!
//! Owns the rule for a clean merge: changes that touch neither the same nor adjacent lines, and changes that are equal
//! on both sides. Promises that every byte of a clean result comes from one of the two sides, terminators included,
//! and that unchanged lines stay as they are. Never writes conflict markers and never picks a winner: conflicts are
//! returned as ranges.
//!
//! With repeated lines, a change can align with the base in more than one way, and so can a clean merge. Two
//! alignments are tried; if both are clean and the results differ, the merge is a conflict.

use std::ops::{Index, Range};

use crate::diff::{DiffAlgorithm, Hunk, hunks_with_algorithm};
use crate::lines;

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult<T> {
    /// Both changes in one text.
    Clean(T),
    /// The conflicting ranges, in order; at least one.
    Conflict(Vec<ConflictRange>),
}

/// A range that both sides changed differently, in the same or adjacent lines. Line indexes are 0-based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictRange {
    /// The lines in the common base.
    pub base: Range<usize>,
    /// The corresponding lines in ours.
    pub ours: Range<usize>,
    /// The corresponding lines in theirs.
    pub theirs: Range<usize>,
}

/// Merges the change from `base` to `ours` with the change from `base` to `theirs`.
#[must_use]
pub fn merge(base: &str, ours: &str, theirs: &str) -> MergeResult<String> {
    match merge_segments(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
        Ok(pieces) => MergeResult::Clean(pieces.iter().map(|piece| piece.bytes_of_side(ours, theirs)).collect()),
        Err(conflicts) => MergeResult::Conflict(conflicts),
    }
}

/// [`merge`] for texts in any encoding that keeps ASCII bytes as they are.
#[must_use]
pub fn merge_bytes(base: &[u8], ours: &[u8], theirs: &[u8]) -> MergeResult<Vec<u8>> {
    match merge_segments(base, ours, theirs) {
        Ok(pieces) => {
            MergeResult::Clean(pieces.iter().flat_map(|piece| piece.bytes_of_side(ours, theirs)).copied().collect())
        }
        Err(conflicts) => MergeResult::Conflict(conflicts),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergeSide {
    Ours,
    Theirs,
}

/// Bytes of the result, by origin. Boundaries are line boundaries, hence character boundaries.
#[derive(Debug, Clone)]
struct MergedSegment {
    side: MergeSide,
    bytes: Range<usize>,
}

impl MergedSegment {
    fn bytes_of_side<'a, T: Index<Range<usize>, Output = T> + ?Sized>(&self, ours: &'a T, theirs: &'a T) -> &'a T {
        match self.side {
            MergeSide::Ours => &ours[self.bytes.clone()],
            MergeSide::Theirs => &theirs[self.bytes.clone()],
        }
    }
}

/// One side with its hunks from the base, read from start to end.
struct HunkCursor<'a> {
    text: &'a [u8],
    /// The start of each line, and the end of the text.
    starts: Vec<usize>,
    hunks: std::iter::Peekable<std::vec::IntoIter<Hunk>>,
    /// The next base line and the next line of this side.
    base: usize,
    line: usize,
}

impl<'a> HunkCursor<'a> {
    fn new(base: &[u8], text: &'a [u8], alignment: DiffAlgorithm) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(lines::iter_bytes(text).map(|line| {
            end += line.len();
            end
        }));
        let hunks = hunks_with_algorithm(base, text, alignment).into_iter().peekable();
        Self { text, starts, hunks, base: 0, line: 0 }
    }

    /// The base line where the next hunk starts.
    fn next_hunk_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old.start)
    }

    /// Advances over unchanged lines to the base line `base`; returns those lines.
    fn copy_unchanged_to(&mut self, base: usize) -> Range<usize> {
        let from = self.line;
        self.line += base - self.base;
        self.base = base;
        from..self.line
    }

    /// Consumes the next hunk if it touches the group that ends at base line `end`; returns the group's new end.
    fn take_overlapping_hunks(&mut self, end: usize) -> Option<usize> {
        let hunk = self.hunks.next_if(|hunk| hunk.old.start <= end)?;
        self.base = hunk.old.end;
        self.line = hunk.new.end;
        Some(end.max(hunk.old.end))
    }

    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.starts[lines.start]..self.starts[lines.end]
    }
}

/// Merges with both alignments.
fn merge_segments(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<MergedSegment>, Vec<ConflictRange>> {
    let pieces = merge_with_algorithm(base, ours, theirs, DiffAlgorithm::Histogram)?;
    let text = |pieces: &[MergedSegment]| -> Vec<u8> {
        pieces.iter().flat_map(|piece| piece.bytes_of_side(ours, theirs)).copied().collect()
    };
    match merge_with_algorithm(base, ours, theirs, DiffAlgorithm::Myers) {
        Ok(others) if text(&others) != text(&pieces) => {
            let whole = |text: &[u8]| 0..lines::count_lines(text);
            Err(vec![ConflictRange { base: whole(base), ours: whole(ours), theirs: whole(theirs) }])
        }
        Ok(_) | Err(_) => Ok(pieces),
    }
}

/// Reads both sides together, group by group of touching hunks.
fn merge_with_algorithm(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    alignment: DiffAlgorithm,
) -> Result<Vec<MergedSegment>, Vec<ConflictRange>> {
    let base_lines = lines::count_lines(base);
    let mut ours = HunkCursor::new(base, ours, alignment);
    let mut theirs = HunkCursor::new(base, theirs, alignment);
    let mut pieces = Vec::new();
    let mut conflicts = Vec::new();
    loop {
        let start = match (ours.next_hunk_start(), theirs.next_hunk_start()) {
            (Some(a), Some(b)) => a.min(b),
            (Some(a), None) => a,
            (None, Some(b)) => b,
            (None, None) => break,
        };
        let unchanged = ours.copy_unchanged_to(start);
        theirs.copy_unchanged_to(start);
        pieces.push(MergedSegment { side: MergeSide::Ours, bytes: ours.bytes(&unchanged) });
        match merge_overlapping_hunks(&mut ours, &mut theirs, start) {
            Ok(piece) => pieces.push(piece),
            Err(conflict) => conflicts.push(conflict),
        }
    }
    let unchanged = ours.copy_unchanged_to(base_lines);
    pieces.push(MergedSegment { side: MergeSide::Ours, bytes: ours.bytes(&unchanged) });
    if conflicts.is_empty() { Ok(pieces) } else { Err(conflicts) }
}

/// Consumes every hunk that touches the one at `start`, directly or through others, and chooses a side.
fn merge_overlapping_hunks(
    ours: &mut HunkCursor<'_>,
    theirs: &mut HunkCursor<'_>,
    start: usize,
) -> Result<MergedSegment, ConflictRange> {
    let (our_start, their_start) = (ours.line, theirs.line);
    let (mut we_changed, mut they_changed) = (false, false);
    let mut end = start;
    loop {
        if let Some(further) = ours.take_overlapping_hunks(end) {
            (end, we_changed) = (further, true);
        } else if let Some(further) = theirs.take_overlapping_hunks(end) {
            (end, they_changed) = (further, true);
        } else {
            break;
        }
    }
    ours.copy_unchanged_to(end);
    theirs.copy_unchanged_to(end);
    let (our_lines, their_lines) = (our_start..ours.line, their_start..theirs.line);
    let (our_bytes, their_bytes) = (ours.bytes(&our_lines), theirs.bytes(&their_lines));
    if !they_changed || ours.text[our_bytes.clone()] == theirs.text[their_bytes.clone()] {
        Ok(MergedSegment { side: MergeSide::Ours, bytes: our_bytes })
    } else if !we_changed {
        Ok(MergedSegment { side: MergeSide::Theirs, bytes: their_bytes })
    } else {
        Err(ConflictRange { base: start..end, ours: our_lines, theirs: their_lines })
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

    fn merge_conflicts(base: &str, ours: &str, theirs: &str) -> Vec<ConflictRange> {
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
        assert_eq!(found, [ConflictRange { base: 2..3, ours: 2..3, theirs: 2..4 }]);
        assert_eq!(merge_conflicts("", "a\n", "b\n").len(), 1);
        assert_eq!(merge_conflicts(BASE, "", "1\n2\n3\n4\nfive\n").len(), 1);
    }

    #[test]
    fn neighbouring_lines_conflict() {
        assert_eq!(
            merge_conflicts(BASE, "1\nx\n3\n4\n5\n", "1\n2\ny\n4\n5\n"),
            [ConflictRange { base: 1..3, ours: 1..3, theirs: 1..3 }]
        );
        // An insertion beside a changed line.
        assert_eq!(merge_conflicts(BASE, "1\nx\n3\n4\n5\n", "1\n2\nnew\n3\n4\n5\n").len(), 1);
        // Two different insertions at one position.
        assert_eq!(merge_conflicts(BASE, "1\na\n2\n3\n4\n5\n", "1\nb\n2\n3\n4\n5\n").len(), 1);
    }

    #[test]
    fn a_chain_of_touching_changes_is_one_conflict() {
        let found = merge_conflicts(BASE, "a\nb\n3\n4\ne\n", "1\nB\nC\nD\n5\n");
        assert_eq!(found, [ConflictRange { base: 0..5, ours: 0..5, theirs: 0..5 }]);
    }

    #[test]
    fn merges_that_differ_between_algorithms_conflict() {
        let (base, ours, theirs) = ("a\n}\na\na\n", "x\na\na\n}\na\n", "a\na\na\n");
        let made = |alignment| {
            let walked = merge_with_algorithm(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), alignment).unwrap();
            walked.iter().map(|piece| piece.bytes_of_side(ours, theirs)).collect::<String>()
        };
        assert_ne!(made(DiffAlgorithm::Histogram), made(DiffAlgorithm::Myers));
        let whole = ConflictRange { base: 0..4, ours: 0..5, theirs: 0..3 };
        assert_eq!(merge_conflicts(base, ours, theirs), [whole]);
    }

    #[test]
    fn line_terminators_are_preserved() {
        assert_eq!(
            merge_cleanly("1\r\n2\n3\r4\n5", "one\r\n2\n3\r4\n5", "1\r\n2\n3\r4\n5\r\n6"),
            "one\r\n2\n3\r4\n5\r\n6"
        );
        assert_eq!(
            merge_bytes(b"\xe9\na\nb", b"\xe8\na\nb", b"\xe9\na\nc"),
            MergeResult::Clean(b"\xe8\na\nc".to_vec())
        );
    }
}
