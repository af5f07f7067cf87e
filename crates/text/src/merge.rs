//! Three-way merging, line by line.
//!
//! Owns the rule of what may be merged: changes that touch neither the same lines nor neighbouring ones, and changes
//! that are the same on both sides. Promises that every byte of a clean result comes from one of the two sides,
//! terminators included, and that unchanged lines stay as they are. Never writes conflict markers and never picks a
//! winner: what it cannot merge it gives back as ranges.
//!
//! Where lines repeat, a change can be aligned with the base in more than one way, and a merge come out clean in more
//! than one way. Two alignments are tried; if both are clean and they disagree, that is a conflict.

use std::ops::{Index, Range};

use crate::diff::{Alignment, Hunk, aligned_hunks};
use crate::lines;

/// What came of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged<T> {
    /// Both changes in one text.
    Clean(T),
    /// The places where the changes meet, in order; at least one.
    Conflict(Vec<ConflictRange>),
}

/// A place where both sides changed the same or neighbouring lines, differently. Line indexes are 0-based.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConflictRange {
    /// The lines in the text that both sides started from.
    pub base: Range<usize>,
    /// What became of them in ours.
    pub ours: Range<usize>,
    /// What became of them in theirs.
    pub theirs: Range<usize>,
}

/// Merges the change from `base` to `ours` with the change from `base` to `theirs`.
#[must_use]
pub fn merge(base: &str, ours: &str, theirs: &str) -> Merged<String> {
    match assemble(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
        Ok(pieces) => Merged::Clean(pieces.iter().map(|piece| piece.of(ours, theirs)).collect()),
        Err(conflicts) => Merged::Conflict(conflicts),
    }
}

/// [`merge`] for texts in any encoding that keeps ASCII bytes as they are.
#[must_use]
pub fn merge_bytes(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merged<Vec<u8>> {
    match assemble(base, ours, theirs) {
        Ok(pieces) => {
            Merged::Clean(pieces.iter().flat_map(|piece| piece.of(ours, theirs)).copied().collect())
        }
        Err(conflicts) => Merged::Conflict(conflicts),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

/// Bytes of the result, by where they come from. Borders are line borders, hence character borders.
#[derive(Debug, Clone)]
struct Piece {
    side: Side,
    bytes: Range<usize>,
}

impl Piece {
    fn of<'a, T: Index<Range<usize>, Output = T> + ?Sized>(&self, ours: &'a T, theirs: &'a T) -> &'a T {
        match self.side {
            Side::Ours => &ours[self.bytes.clone()],
            Side::Theirs => &theirs[self.bytes.clone()],
        }
    }
}

/// One changed text with its hunks from the base, walked from start to end.
struct Walk<'a> {
    text: &'a [u8],
    /// Where each line starts, and the end of the text.
    starts: Vec<usize>,
    hunks: std::iter::Peekable<std::vec::IntoIter<Hunk>>,
    /// The base line and the line of this text that are next.
    base: usize,
    line: usize,
}

impl<'a> Walk<'a> {
    fn new(base: &[u8], text: &'a [u8], alignment: Alignment) -> Self {
        let mut starts = vec![0];
        let mut end = 0;
        starts.extend(lines::iter_bytes(text).map(|line| {
            end += line.len();
            end
        }));
        let hunks = aligned_hunks(base, text, alignment).into_iter().peekable();
        Self { text, starts, hunks, base: 0, line: 0 }
    }

    /// The base line where the next hunk starts.
    fn next_start(&mut self) -> Option<usize> {
        self.hunks.peek().map(|hunk| hunk.old.start)
    }

    /// Goes forward to the base line `base`, over unchanged lines only; gives the lines gone over.
    fn keep_to(&mut self, base: usize) -> Range<usize> {
        let from = self.line;
        self.line += base - self.base;
        self.base = base;
        from..self.line
    }

    /// Takes the next hunk if it touches the group that ends at base line `end`; gives the group's new end.
    fn take_touching(&mut self, end: usize) -> Option<usize> {
        let hunk = self.hunks.next_if(|hunk| hunk.old.start <= end)?;
        self.base = hunk.old.end;
        self.line = hunk.new.end;
        Some(end.max(hunk.old.end))
    }

    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.starts[lines.start]..self.starts[lines.end]
    }
}

/// Merges by both alignments.
fn assemble(base: &[u8], ours: &[u8], theirs: &[u8]) -> Result<Vec<Piece>, Vec<ConflictRange>> {
    let pieces = walk(base, ours, theirs, Alignment::Rarest)?;
    let text = |pieces: &[Piece]| -> Vec<u8> {
        pieces.iter().flat_map(|piece| piece.of(ours, theirs)).copied().collect()
    };
    match walk(base, ours, theirs, Alignment::Fewest) {
        Ok(others) if text(&others) != text(&pieces) => {
            let whole = |text: &[u8]| 0..lines::count(text);
            Err(vec![ConflictRange { base: whole(base), ours: whole(ours), theirs: whole(theirs) }])
        }
        Ok(_) | Err(_) => Ok(pieces),
    }
}

/// Walks both sides together, group by group of hunks that touch.
fn walk(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    alignment: Alignment,
) -> Result<Vec<Piece>, Vec<ConflictRange>> {
    let base_lines = lines::count(base);
    let mut ours = Walk::new(base, ours, alignment);
    let mut theirs = Walk::new(base, theirs, alignment);
    let mut pieces = Vec::new();
    let mut conflicts = Vec::new();
    loop {
        let start = match (ours.next_start(), theirs.next_start()) {
            (Some(a), Some(b)) => a.min(b),
            (Some(a), None) => a,
            (None, Some(b)) => b,
            (None, None) => break,
        };
        let kept = ours.keep_to(start);
        theirs.keep_to(start);
        pieces.push(Piece { side: Side::Ours, bytes: ours.bytes(&kept) });
        match group(&mut ours, &mut theirs, start) {
            Ok(piece) => pieces.push(piece),
            Err(conflict) => conflicts.push(conflict),
        }
    }
    let kept = ours.keep_to(base_lines);
    pieces.push(Piece { side: Side::Ours, bytes: ours.bytes(&kept) });
    if conflicts.is_empty() { Ok(pieces) } else { Err(conflicts) }
}

/// Takes every hunk that touches, directly or through others, the one at `start`, and decides between the sides.
fn group(ours: &mut Walk<'_>, theirs: &mut Walk<'_>, start: usize) -> Result<Piece, ConflictRange> {
    let (our_start, their_start) = (ours.line, theirs.line);
    let (mut we_changed, mut they_changed) = (false, false);
    let mut end = start;
    loop {
        if let Some(further) = ours.take_touching(end) {
            (end, we_changed) = (further, true);
        } else if let Some(further) = theirs.take_touching(end) {
            (end, they_changed) = (further, true);
        } else {
            break;
        }
    }
    ours.keep_to(end);
    theirs.keep_to(end);
    let (our_lines, their_lines) = (our_start..ours.line, their_start..theirs.line);
    let (our_bytes, their_bytes) = (ours.bytes(&our_lines), theirs.bytes(&their_lines));
    if !they_changed || ours.text[our_bytes.clone()] == theirs.text[their_bytes.clone()] {
        Ok(Piece { side: Side::Ours, bytes: our_bytes })
    } else if !we_changed {
        Ok(Piece { side: Side::Theirs, bytes: their_bytes })
    } else {
        Err(ConflictRange { base: start..end, ours: our_lines, theirs: their_lines })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = "1\n2\n3\n4\n5\n";

    fn clean(base: &str, ours: &str, theirs: &str) -> String {
        match merge(base, ours, theirs) {
            Merged::Clean(text) => text,
            Merged::Conflict(ranges) => panic!("{ranges:?}"),
        }
    }

    fn conflicts(base: &str, ours: &str, theirs: &str) -> Vec<ConflictRange> {
        match merge(base, ours, theirs) {
            Merged::Clean(text) => panic!("{text:?}"),
            Merged::Conflict(ranges) => ranges,
        }
    }

    #[test]
    fn distant_changes_merge() {
        assert_eq!(clean(BASE, "one\n2\n3\n4\n5\n", "1\n2\n3\n4\nfive\n"), "one\n2\n3\n4\nfive\n");
        assert_eq!(clean(BASE, "0\n1\n2\n3\n4\n5\n", "1\n2\n4\n5\n6\n"), "0\n1\n2\n4\n5\n6\n");
        assert_eq!(clean(BASE, "1\n2\nthree\n4\n5\n", "one\n2\n3\n4\nfive\n"), "one\n2\nthree\n4\nfive\n");
    }

    #[test]
    fn the_same_change_on_both_sides_merges() {
        assert_eq!(clean(BASE, "1\nx\n3\n4\n5\n", "1\nx\n3\n4\n5\n"), "1\nx\n3\n4\n5\n");
        assert_eq!(clean(BASE, "1\nx\n3\n4\n5\n", "1\nx\n3\n4\ny\n"), "1\nx\n3\n4\ny\n");
        assert_eq!(clean("", "a\n", "a\n"), "a\n");
    }

    #[test]
    fn the_same_lines_conflict() {
        let found = conflicts(BASE, "1\n2\nx\n4\n5\n", "1\n2\ny\nz\n4\n5\n");
        assert_eq!(found, [ConflictRange { base: 2..3, ours: 2..3, theirs: 2..4 }]);
        assert_eq!(conflicts("", "a\n", "b\n").len(), 1);
        assert_eq!(conflicts(BASE, "", "1\n2\n3\n4\nfive\n").len(), 1);
    }

    #[test]
    fn neighbouring_lines_conflict() {
        assert_eq!(
            conflicts(BASE, "1\nx\n3\n4\n5\n", "1\n2\ny\n4\n5\n"),
            [ConflictRange { base: 1..3, ours: 1..3, theirs: 1..3 }]
        );
        // An insertion beside a changed line.
        assert_eq!(conflicts(BASE, "1\nx\n3\n4\n5\n", "1\n2\nnew\n3\n4\n5\n").len(), 1);
        // Two different insertions at one place.
        assert_eq!(conflicts(BASE, "1\na\n2\n3\n4\n5\n", "1\nb\n2\n3\n4\n5\n").len(), 1);
    }

    #[test]
    fn a_chain_of_touching_changes_is_one_conflict() {
        let found = conflicts(BASE, "a\nb\n3\n4\ne\n", "1\nB\nC\nD\n5\n");
        assert_eq!(found, [ConflictRange { base: 0..5, ours: 0..5, theirs: 0..5 }]);
    }

    #[test]
    fn what_two_alignments_merge_differently_is_a_conflict() {
        let (base, ours, theirs) = ("a\n}\na\na\n", "x\na\na\n}\na\n", "a\na\na\n");
        let made = |alignment| {
            let walked = walk(base.as_bytes(), ours.as_bytes(), theirs.as_bytes(), alignment).unwrap();
            walked.iter().map(|piece| piece.of(ours, theirs)).collect::<String>()
        };
        assert_ne!(made(Alignment::Rarest), made(Alignment::Fewest));
        let whole = ConflictRange { base: 0..4, ours: 0..5, theirs: 0..3 };
        assert_eq!(conflicts(base, ours, theirs), [whole]);
    }

    #[test]
    fn terminators_stay() {
        assert_eq!(
            clean("1\r\n2\n3\r4\n5", "one\r\n2\n3\r4\n5", "1\r\n2\n3\r4\n5\r\n6"),
            "one\r\n2\n3\r4\n5\r\n6"
        );
        assert_eq!(
            merge_bytes(b"\xe9\na\nb", b"\xe8\na\nb", b"\xe9\na\nc"),
            Merged::Clean(b"\xe8\na\nc".to_vec())
        );
    }
}
