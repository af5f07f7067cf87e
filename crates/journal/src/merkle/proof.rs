//! Inclusion and consistency proofs of Merkle trees, as in RFC 9162, section 2.1.
//!
//! Creating a proof reads the leaves once, in order, and keeps a logarithmic number of hashes, so the leaves can be
//! streamed from a database. Verifying a proof needs no leaves.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{MerkleFrontier, MerkleLeafHash, node_hash};
use crate::Digest;

/// A proof that a Merkle tree has a certain leaf at a certain index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct InclusionProof {
    /// The 0-based index of the leaf, which is the entry number minus one.
    pub index: u64,
    /// The number of leaves in the Merkle tree.
    pub size: u64,
    /// The hashes of the siblings on the way from the leaf up to the root.
    pub path: Vec<Digest>,
}

/// A proof that a Merkle tree is a prefix of a later, larger tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsistencyProof {
    /// Leaves of the earlier tree.
    pub from: u64,
    /// Leaves of the later tree.
    pub to: u64,
    /// The subtree hashes of the consistency proof, in the order of RFC 9162.
    pub path: Vec<Digest>,
}

/// The error for a Merkle proof that does not lead to the expected root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proof does not lead to the expected root")]
pub struct InvalidMerkleProofError;

/// The reason why a Merkle proof cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MerkleProofCreationError<E> {
    #[error("the requested proof is outside a tree of {size} entries")]
    OutOfRange { size: u64 },
    #[error("only {found} leaves are available")]
    TooFewLeaves { found: u64 },
    #[error("a leaf could not be read")]
    Source(E),
}

/// Creates an inclusion proof from the first `size` leaves, which must come in order.
pub fn inclusion_proof<E>(
    index: u64,
    size: u64,
    leaves: impl IntoIterator<Item = Result<MerkleLeafHash, E>>,
) -> Result<InclusionProof, MerkleProofCreationError<E>> {
    if index >= size {
        return Err(MerkleProofCreationError::OutOfRange { size });
    }
    let mut ranges = Vec::new();
    let mut within = 0..size;
    while within.end - within.start > 1 {
        let (left, right) = split_range(&within);
        if left.contains(&index) {
            ranges.push(right);
            within = left;
        } else {
            ranges.push(left);
            within = right;
        }
    }
    ranges.reverse();
    Ok(InclusionProof { index, size, path: subtree_roots(&ranges, size, leaves)? })
}

/// Creates a consistency proof from the first `to` leaves, which must come in order.
pub fn consistency_proof<E>(
    from: u64,
    to: u64,
    leaves: impl IntoIterator<Item = Result<MerkleLeafHash, E>>,
) -> Result<ConsistencyProof, MerkleProofCreationError<E>> {
    if from > to {
        return Err(MerkleProofCreationError::OutOfRange { size: to });
    }
    let mut ranges = Vec::new();
    let mut within = 0..to;
    while from > 0 && within.end > from {
        let (left, right) = split_range(&within);
        if from <= left.end {
            ranges.push(right);
            within = left;
        } else {
            ranges.push(left);
            within = right;
        }
    }
    // The range `within` now ends at `from`. If the range is the whole earlier tree, the verifier already has its root.
    if within.start > 0 {
        ranges.push(within);
    }
    ranges.reverse();
    Ok(ConsistencyProof { from, to, path: subtree_roots(&ranges, to, leaves)? })
}

/// Splits a range of leaves into a left and a right part by the rule of RFC 9162.
fn split_range(range: &Range<u64>) -> (Range<u64>, Range<u64>) {
    let length = range.end - range.start;
    let middle = range.start + (1 << (u64::BITS - 1 - (length - 1).leading_zeros()));
    (range.start..middle, middle..range.end)
}

fn subtree_roots<E>(
    ranges: &[Range<u64>],
    size: u64,
    leaves: impl IntoIterator<Item = Result<MerkleLeafHash, E>>,
) -> Result<Vec<Digest>, MerkleProofCreationError<E>> {
    let mut subtrees = vec![MerkleFrontier::new(); ranges.len()];
    let mut leaves = leaves.into_iter();
    for found in 0..size {
        let leaf = leaves
            .next()
            .ok_or(MerkleProofCreationError::TooFewLeaves { found })?
            .map_err(MerkleProofCreationError::Source)?;
        if let Some(range_index) = ranges.iter().position(|range| range.contains(&found)) {
            subtrees[range_index].append(leaf);
        }
    }
    Ok(subtrees.iter().map(MerkleFrontier::root).collect())
}

impl InclusionProof {
    /// Verifies that the tree with this root has `leaf` at the index that the proof states.
    pub fn verify(&self, leaf: &MerkleLeafHash, root: &Digest) -> Result<(), InvalidMerkleProofError> {
        if self.index >= self.size {
            return Err(InvalidMerkleProofError);
        }
        let mut walk = MerklePathCursor { position: self.index, last_position: self.size - 1 };
        let mut hash = leaf.digest();
        for sibling in &self.path {
            hash = match walk.next_side()? {
                SiblingSide::Left => node_hash(sibling, &hash),
                SiblingSide::Right => node_hash(&hash, sibling),
            };
        }
        if walk.last_position == 0 && hash == *root { Ok(()) } else { Err(InvalidMerkleProofError) }
    }
}

impl ConsistencyProof {
    /// Verifies that the tree with `from_root` is a prefix of the tree with `to_root`.
    pub fn verify(&self, from_root: &Digest, to_root: &Digest) -> Result<(), InvalidMerkleProofError> {
        if self.from == 0 || self.from == self.to {
            let known = if self.from == self.to { to_root } else { &MerkleFrontier::new().root() };
            return if self.path.is_empty() && from_root == known { Ok(()) } else { Err(InvalidMerkleProofError) };
        }
        if self.from > self.to {
            return Err(InvalidMerkleProofError);
        }
        let mut walk = MerklePathCursor { position: self.from - 1, last_position: self.to - 1 };
        while walk.position & 1 == 1 {
            walk.move_to_parent();
        }
        // If the earlier tree is full, its root is the first subtree hash, and the path does not repeat it.
        let (first, rest) = if self.from.is_power_of_two() {
            (from_root, self.path.as_slice())
        } else {
            self.path.split_first().ok_or(InvalidMerkleProofError)?
        };
        let (mut earlier, mut later) = (*first, *first);
        for sibling in rest {
            match walk.next_side()? {
                SiblingSide::Left => {
                    earlier = node_hash(sibling, &earlier);
                    later = node_hash(sibling, &later);
                }
                SiblingSide::Right => later = node_hash(&later, sibling),
            }
        }
        let proven = walk.last_position == 0 && earlier == *from_root && later == *to_root;
        if proven { Ok(()) } else { Err(InvalidMerkleProofError) }
    }
}

enum SiblingSide {
    Left,
    Right,
}

/// A cursor that walks from a leaf of a Merkle tree up to the root.
struct MerklePathCursor {
    position: u64,
    last_position: u64,
}

impl MerklePathCursor {
    /// Returns on which side the sibling of the current node is, and moves the cursor to the parent.
    fn next_side(&mut self) -> Result<SiblingSide, InvalidMerkleProofError> {
        if self.last_position == 0 {
            return Err(InvalidMerkleProofError);
        }
        let side = if self.position & 1 == 1 || self.position == self.last_position {
            // On the right edge, a level without a left sibling is skipped.
            while self.position & 1 == 0 && self.position != 0 {
                self.move_to_parent();
            }
            SiblingSide::Left
        } else {
            SiblingSide::Right
        };
        self.move_to_parent();
        Ok(side)
    }

    fn move_to_parent(&mut self) {
        self.position >>= 1;
        self.last_position >>= 1;
    }
}
