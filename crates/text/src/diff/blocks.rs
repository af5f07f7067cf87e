//! Splits two large texts into pairs of blocks that a diff can compare separately.
//!
//! The texts are cut at anchors: lines that occur exactly once in each text, in the same order in both texts. The
//! blocks cover the given line range without gaps.

use std::collections::HashMap;

use super::{DiffHunkRanges, comparison_work};

/// The target size of a block, in pairs of an old and a new line.
pub(super) const WORK_TARGET: u64 = 1_000_000;

/// An anchor: the indexes of a line that occurs once in the old and once in the new text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct UniqueLinePair {
    old: usize,
    new: usize,
}

pub(super) fn split_into_blocks(
    old: &[&[u8]],
    new: &[&[u8]],
    whole: &DiffHunkRanges,
    target: u64,
) -> Vec<DiffHunkRanges> {
    let mut blocks = Vec::new();
    let mut start = UniqueLinePair { old: whole.old.start, new: whole.new.start };
    let mut last = start;
    let block =
        |from: UniqueLinePair, to: UniqueLinePair| DiffHunkRanges { old: from.old..to.old, new: from.new..to.new };
    let end = UniqueLinePair { old: whole.old.end, new: whole.new.end };
    for anchor in longest_increasing_subsequence(&unique_pairs(old, new, whole)).into_iter().chain([end]) {
        if comparison_work(&block(start, anchor)) > target {
            if last != start {
                blocks.push(block(start, last));
                start = last;
            }
            // Many lines without an anchor become a separate block; the block before is then still compared in detail.
            if comparison_work(&block(start, anchor)) > target {
                blocks.push(block(start, anchor));
                start = anchor;
            }
        }
        last = anchor;
    }
    if start != end {
        blocks.push(block(start, end));
    }
    blocks
}

/// Returns the lines that occur exactly once in each text, in the order of the new text.
fn unique_pairs(old: &[&[u8]], new: &[&[u8]], whole: &DiffHunkRanges) -> Vec<UniqueLinePair> {
    let mut once: HashMap<&[u8], Option<usize>> = HashMap::with_capacity(whole.old.len());
    for index in whole.old.clone() {
        once.entry(old[index]).and_modify(|position| *position = None).or_insert(Some(index));
    }
    let mut pairs: HashMap<&[u8], Option<UniqueLinePair>> = HashMap::new();
    for index in whole.new.clone() {
        if let Some(&Some(position)) = once.get(new[index]) {
            pairs
                .entry(new[index])
                .and_modify(|pair| *pair = None)
                .or_insert(Some(UniqueLinePair { old: position, new: index }));
        }
    }
    let mut pairs: Vec<UniqueLinePair> = pairs.into_values().flatten().collect();
    pairs.sort_unstable_by_key(|pair| pair.new);
    pairs
}

/// Finds the longest run of anchors with increasing old line indexes, by patience sorting.
fn longest_increasing_subsequence(pairs: &[UniqueLinePair]) -> Vec<UniqueLinePair> {
    // `ends[n]` indexes the pair with the smallest old index that ends an increasing sequence of n + 1 pairs.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, pair) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].old < pair.old);
        previous.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(index);
        } else {
            ends[length] = index;
        }
    }
    let mut run = Vec::with_capacity(ends.len());
    let mut at = ends.last().copied();
    while let Some(index) = at {
        run.push(pairs[index]);
        at = previous[index];
    }
    run.reverse();
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_unique_and_increasing() {
        let old: Vec<&[u8]> = vec![b"a", b"x", b"b", b"x", b"c", b"d"];
        let new: Vec<&[u8]> = vec![b"d", b"a", b"x", b"b", b"b2", b"c"];
        let whole = DiffHunkRanges { old: 0..6, new: 0..6 };
        let found: Vec<(usize, usize)> =
            longest_increasing_subsequence(&unique_pairs(&old, &new, &whole)).iter().map(|a| (a.old, a.new)).collect();
        assert_eq!(found, [(0, 1), (2, 3), (4, 5)]);
    }

    #[test]
    fn blocks_cover_the_hunk_in_order() {
        let lines: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let old: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
        let new: Vec<&[u8]> = old.iter().copied().filter(|line| *line != b"50").collect();
        let whole = DiffHunkRanges { old: 3..90, new: 3..89 };
        let blocks = split_into_blocks(&old, &new, &whole, 25);
        assert!(blocks.len() > 10);
        assert_eq!((blocks[0].old.start, blocks[0].new.start), (3, 3));
        for pair in blocks.windows(2) {
            assert_eq!((pair[0].old.end, pair[0].new.end), (pair[1].old.start, pair[1].new.start));
        }
        assert_eq!(blocks.last().map(|block| (block.old.end, block.new.end)), Some((90, 89)));
        assert!(blocks.iter().all(|block| comparison_work(block) <= 25));
    }
}
