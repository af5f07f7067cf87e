//! Inclusion and consistency proofs of RFC 9162, section 2.1.
//!
//! Making a proof reads the leaves once, in order, and keeps only logarithmically many hashes, so it works on a
//! stream from a store. Checking a proof needs no leaves at all.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Frontier, Leaf, node};
use crate::Digest;

/// Proof that a leaf stands at an index of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    /// Index of the leaf from 0: an entry's number less one.
    pub index: u64,
    /// Number of leaves in the tree.
    pub size: u64,
    /// Sibling hashes from the leaf up to the root.
    pub path: Vec<Digest>,
}

/// Proof that a tree is the beginning of a later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyProof {
    /// Size of the earlier tree.
    pub from: u64,
    /// Size of the later tree.
    pub to: u64,
    /// Subtree hashes in the order of RFC 9162.
    pub path: Vec<Digest>,
}

/// A proof that does not prove its claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not lead to the expected root")]
pub struct BadProof;

/// Why a proof could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofError<E> {
    /// The leaf is not in the tree, or the earlier tree is larger than the later one.
    #[error("there is no such proof in a tree of {size} entries")]
    OutOfRange {
        /// Size of the tree asked about.
        size: u64,
    },
    /// The leaves ended before the tree was complete.
    #[error("the leaves end after {found}")]
    TooFewLeaves {
        /// How many there were.
        found: u64,
    },
    /// Reading a leaf failed.
    #[error("a leaf could not be read")]
    Source(E),
}

/// Makes an inclusion proof from the first `size` leaves in order.
pub fn inclusion_proof<E>(
    index: u64,
    size: u64,
    leaves: impl IntoIterator<Item = Result<Leaf, E>>,
) -> Result<InclusionProof, ProofError<E>> {
    if index >= size {
        return Err(ProofError::OutOfRange { size });
    }
    let mut ranges = Vec::new();
    let mut within = 0..size;
    while within.end - within.start > 1 {
        let (left, right) = split(&within);
        if left.contains(&index) {
            ranges.push(right);
            within = left;
        } else {
            ranges.push(left);
            within = right;
        }
    }
    ranges.reverse();
    Ok(InclusionProof { index, size, path: roots(&ranges, size, leaves)? })
}

/// Makes a consistency proof from the first `to` leaves in order.
pub fn consistency_proof<E>(
    from: u64,
    to: u64,
    leaves: impl IntoIterator<Item = Result<Leaf, E>>,
) -> Result<ConsistencyProof, ProofError<E>> {
    if from > to {
        return Err(ProofError::OutOfRange { size: to });
    }
    let mut ranges = Vec::new();
    let mut within = 0..to;
    while from > 0 && within.end > from {
        let (left, right) = split(&within);
        if from <= left.end {
            ranges.push(right);
            within = left;
        } else {
            ranges.push(left);
            within = right;
        }
    }
    // What is left ends at `from`. If it is the whole earlier tree the checker knows its root already.
    if within.start > 0 {
        ranges.push(within);
    }
    ranges.reverse();
    Ok(ConsistencyProof { from, to, path: roots(&ranges, to, leaves)? })
}

/// Splits a range of more than one leaf where RFC 9162 does: at the largest power of two below its length.
fn split(range: &Range<u64>) -> (Range<u64>, Range<u64>) {
    let length = range.end - range.start;
    let middle = range.start + (1 << (u64::BITS - 1 - (length - 1).leading_zeros()));
    (range.start..middle, middle..range.end)
}

/// The subtree roots of some disjoint ranges, in their order, from one pass over the leaves.
fn roots<E>(
    ranges: &[Range<u64>],
    size: u64,
    leaves: impl IntoIterator<Item = Result<Leaf, E>>,
) -> Result<Vec<Digest>, ProofError<E>> {
    let mut subtrees = vec![Frontier::new(); ranges.len()];
    let mut leaves = leaves.into_iter();
    for found in 0..size {
        let leaf = leaves.next().ok_or(ProofError::TooFewLeaves { found })?.map_err(ProofError::Source)?;
        if let Some(place) = ranges.iter().position(|range| range.contains(&found)) {
            subtrees[place].append(leaf);
        }
    }
    Ok(subtrees.iter().map(Frontier::root).collect())
}

impl InclusionProof {
    /// Checks that `leaf` stands at the claimed index of the tree with this root.
    pub fn verify(&self, leaf: &Leaf, root: &Digest) -> Result<(), BadProof> {
        if self.index >= self.size {
            return Err(BadProof);
        }
        let mut walk = Walk { node: self.index, last: self.size - 1 };
        let mut hash = leaf.digest();
        for sibling in &self.path {
            hash = match walk.step()? {
                Side::Left => node(sibling, &hash),
                Side::Right => node(&hash, sibling),
            };
        }
        if walk.last == 0 && hash == *root { Ok(()) } else { Err(BadProof) }
    }
}

impl ConsistencyProof {
    /// Checks that the tree with `from_root` is the beginning of the tree with `to_root`.
    pub fn verify(&self, from_root: &Digest, to_root: &Digest) -> Result<(), BadProof> {
        if self.from == 0 || self.from == self.to {
            let known = if self.from == self.to { to_root } else { &Frontier::new().root() };
            return if self.path.is_empty() && from_root == known { Ok(()) } else { Err(BadProof) };
        }
        if self.from > self.to {
            return Err(BadProof);
        }
        let mut walk = Walk { node: self.from - 1, last: self.to - 1 };
        while walk.node & 1 == 1 {
            walk.up();
        }
        // A full earlier tree is itself the first subtree, and then it is not repeated in the path.
        let (first, rest) = if self.from.is_power_of_two() {
            (from_root, self.path.as_slice())
        } else {
            self.path.split_first().ok_or(BadProof)?
        };
        let (mut earlier, mut later) = (*first, *first);
        for sibling in rest {
            match walk.step()? {
                Side::Left => {
                    earlier = node(sibling, &earlier);
                    later = node(sibling, &later);
                }
                Side::Right => later = node(&later, sibling),
            }
        }
        let proven = walk.last == 0 && earlier == *from_root && later == *to_root;
        if proven { Ok(()) } else { Err(BadProof) }
    }
}

/// On which side of the path's node the sibling stands.
enum Side {
    Left,
    Right,
}

/// A walk from a node towards the root of a tree that need not be full.
struct Walk {
    node: u64,
    last: u64,
}

impl Walk {
    /// Uses up one sibling; an error if the root has been reached already.
    fn step(&mut self) -> Result<Side, BadProof> {
        if self.last == 0 {
            return Err(BadProof);
        }
        let side = if self.node & 1 == 1 || self.node == self.last {
            // On the right edge, levels without a left sibling are passed over.
            while self.node & 1 == 0 && self.node != 0 {
                self.up();
            }
            Side::Left
        } else {
            Side::Right
        };
        self.up();
        Ok(side)
    }

    fn up(&mut self) {
        self.node >>= 1;
        self.last >>= 1;
    }
}
