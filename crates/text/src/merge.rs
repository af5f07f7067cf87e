//! Three-way merge by lines.
//!
//! A merge is clean if the two sides change neither the same nor adjacent lines, or make the same change. Conflicts are
//! returned as line ranges; the merge writes no conflict markers and prefers no side.
//!
//! If the base repeats a line, two diff algorithms can assign a change to different copies of the line. A merge is a
//! conflict if two diff algorithms give clean but different results.

use std::ops::{Index, Range};

use crate::diff::{DiffAlgorithm, DiffHunkRanges, hunks_with_algorithm};
use crate::lines;

/// The result of a three-way merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult<T> {
    /// The merge is clean, with this merged text that has the changes of both sides.
    Clean(T),
    /// The merge failed, with at least one range of lines in conflict, in order of position.
    Conflict(Vec<MergeConflictLineRanges>),
}

/// A merge conflict: both sides changed the same or adjacent lines in different ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeConflictLineRanges {
    /// The 0-based lines of the common base that are in conflict.
    pub base: Range<usize>,
    /// The 0-based lines of our text that are in conflict.
    pub ours: Range<usize>,
    /// The 0-based lines of their text that are in conflict.
    pub theirs: Range<usize>,
}

/// Merges the change from `base` to `ours` with the change from `base` to `theirs`.
pub fn merge(base: &str, ours: &str, theirs: &str) -> MergeResult<String> {
    match merge_segments(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
        Ok(segments) => MergeResult::Clean(segments.iter().map(|segment| segment.content(ours, theirs)).collect()),
        Err(conflicts) => MergeResult::Conflict(conflicts),
    }
}

/// Merges like [`merge`], for texts in any encoding that keeps ASCII bytes as they are.
pub fn merge_bytes(base: &[u8], ours: &[u8], theirs: &[u8]) -> MergeResult<Vec<u8>> {
    match merge_segments(base, ours, theirs) {
        Ok(segments) => MergeResult::Clean(joined_bytes(&segments, ours, theirs)),
        Err(conflicts) => MergeResult::Conflict(conflicts),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MergeSide {
    Ours,
    Theirs,
}

/// A part of the merged text: a byte range of whole lines in the text of one side.
#[derive(Debug, Clone)]
struct MergedTextSegment {
    side: MergeSide,
    bytes: Range<usize>,
}

impl MergedTextSegment {
    fn content<'a, T: Index<Range<usize>, Output = T> + ?Sized>(&self, ours: &'a T, theirs: &'a T) -> &'a T {
        match self.side {
            MergeSide::Ours => &ours[self.bytes.clone()],
            MergeSide::Theirs => &theirs[self.bytes.clone()],
        }
    }
}

fn joined_bytes(segments: &[MergedTextSegment], ours: &[u8], theirs: &[u8]) -> Vec<u8> {
    segments.iter().flat_map(|segment| segment.content(ours, theirs)).copied().collect()
}

struct MergeSideCursor<'a> {
    text: &'a [u8],
    /// The byte offset of each line start, followed by the length of the text.
    starts: Vec<usize>,
    hunks: std::iter::Peekable<std::vec::IntoIter<DiffHunkRanges>>,
    base: usize,
    line: usize,
}

impl<'a> MergeSideCursor<'a> {
    fn new(base: &[u8], text: &'a [u8], algorithm: DiffAlgorithm) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(lines::iter_bytes(text).map(|line| {
            end += line.len();
            end
        }));
        let hunks = hunks_with_algorithm(base, text, algorithm).into_iter().peekable();
        Self { text, starts, hunks, base: 0, line: 0 }
    }

    fn next_hunk_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old.start)
    }

    fn copy_unchanged_to(&mut self, base: usize) -> Range<usize> {
        let from = self.line;
        self.line += base - self.base;
        self.base = base;
        from..self.line
    }

    /// Consumes the next hunk of a side if the hunk starts at or before base line `end`.
    fn take_overlapping_hunk(&mut self, end: usize) -> Option<usize> {
        let hunk = self.hunks.next_if(|hunk| hunk.old.start <= end)?;
        self.base = hunk.old.end;
        self.line = hunk.new.end;
        Some(end.max(hunk.old.end))
    }

    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.starts[lines.start]..self.starts[lines.end]
    }
}

fn merge_segments(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
) -> Result<Vec<MergedTextSegment>, Vec<MergeConflictLineRanges>> {
    let segments = merge_with_algorithm(base, ours, theirs, DiffAlgorithm::Histogram)?;
    match merge_with_algorithm(base, ours, theirs, DiffAlgorithm::Myers) {
        Ok(others) if joined_bytes(&others, ours, theirs) != joined_bytes(&segments, ours, theirs) => {
            let whole = |text: &[u8]| 0..lines::count_lines(text);
            Err(vec![MergeConflictLineRanges { base: whole(base), ours: whole(ours), theirs: whole(theirs) }])
        }
        Ok(_) | Err(_) => Ok(segments),
    }
}

/// Hunks of the two sides that overlap or are adjacent are merged as one.
fn merge_with_algorithm(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    algorithm: DiffAlgorithm,
) -> Result<Vec<MergedTextSegment>, Vec<MergeConflictLineRanges>> {
    let base_lines = lines::count_lines(base);
    let mut ours = MergeSideCursor::new(base, ours, algorithm);
    let mut theirs = MergeSideCursor::new(base, theirs, algorithm);
    let mut segments = Vec::new();
    let mut conflicts = Vec::new();
    loop {
        let starts = [ours.next_hunk_start(), theirs.next_hunk_start()];
        let Some(start) = starts.into_iter().flatten().min() else { break };
        let unchanged = ours.copy_unchanged_to(start);
        theirs.copy_unchanged_to(start);
        segments.push(MergedTextSegment { side: MergeSide::Ours, bytes: ours.bytes(&unchanged) });
        match merge_overlapping_hunks(&mut ours, &mut theirs, start) {
            Ok(segment) => segments.push(segment),
            Err(conflict) => conflicts.push(conflict),
        }
    }
    let unchanged = ours.copy_unchanged_to(base_lines);
    segments.push(MergedTextSegment { side: MergeSide::Ours, bytes: ours.bytes(&unchanged) });
    if conflicts.is_empty() { Ok(segments) } else { Err(conflicts) }
}

/// Consumes the hunks of both sides that overlap or adjoin each other, from base line `start` on.
fn merge_overlapping_hunks(
    ours: &mut MergeSideCursor<'_>,
    theirs: &mut MergeSideCursor<'_>,
    start: usize,
) -> Result<MergedTextSegment, MergeConflictLineRanges> {
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
    let (our_bytes, their_bytes) = (ours.bytes(&our_lines), theirs.bytes(&their_lines));
    if !they_changed || ours.text[our_bytes.clone()] == theirs.text[their_bytes.clone()] {
        Ok(MergedTextSegment { side: MergeSide::Ours, bytes: our_bytes })
    } else if !we_changed {
        Ok(MergedTextSegment { side: MergeSide::Theirs, bytes: their_bytes })
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
        let merged = |algorithm| {
            let bytes = [base, ours, theirs].map(str::as_bytes);
            let segments = merge_with_algorithm(bytes[0], bytes[1], bytes[2], algorithm).unwrap();
            segments.iter().map(|segment| segment.content(ours, theirs)).collect::<String>()
        };
        assert_ne!(merged(DiffAlgorithm::Histogram), merged(DiffAlgorithm::Myers));
        let whole = MergeConflictLineRanges { base: 0..4, ours: 0..5, theirs: 0..3 };
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
