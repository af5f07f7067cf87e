//! The Merkle tree of RFC 9162 over the entries' hashes.
//!
//! Owns leaf and node hashing (prefix bytes 0x00 and 0x01) and the frontier: the roots of the full subtrees that a
//! growing tree needs, at most 64 of them. Proofs are in `proof`.
//! Promises: memory of a frontier does not grow with the tree beyond its logarithm.

pub(crate) mod proof;

use crate::Digest;

const LEAF_PREFIX: [u8; 1] = [0x00];
const NODE_PREFIX: [u8; 1] = [0x01];

/// The largest tree a stored frontier may claim; far beyond use, and small enough that sizes never overflow.
const MAX_TREE_SIZE: u64 = 1 << 62;
const SIZE_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;

/// The hash of a leaf. Its own type, so that an entry's hash is never put in the tree unprefixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leaf(Digest);

impl Leaf {
    /// The leaf of some bytes.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self(Digest::of_parts(&[&LEAF_PREFIX, bytes]))
    }

    /// The leaf of an entry, from its hash in the chain.
    pub fn of_entry(hash: &Digest) -> Self {
        Self::of_bytes(hash.as_bytes())
    }

    /// The hash itself.
    pub fn digest(&self) -> Digest {
        self.0
    }
}

/// The hash of an inner node.
fn node(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[&NODE_PREFIX, left.as_bytes(), right.as_bytes()])
}

/// The right edge of a growing tree: enough to append and to tell the root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Frontier {
    size: u64,
    /// Roots of the full subtrees, largest first: one for each bit set in `size`.
    peaks: Vec<Digest>,
}

/// Bytes that are not a stored frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the bytes of a Merkle frontier")]
pub struct BadFrontier;

impl Frontier {
    /// The empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds a leaf at the right.
    pub fn append(&mut self, leaf: Leaf) {
        let mut peak = leaf.0;
        // Each trailing one bit of the old size is a full subtree of the same height as the new peak.
        for _height in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                peak = node(&left, &peak);
            }
        }
        self.peaks.push(peak);
        self.size += 1;
    }

    /// The root of the tree as it is. The root of the empty tree is the hash of nothing.
    pub fn root(&self) -> Digest {
        let folded = self.peaks.iter().rev().copied().reduce(|right, left| node(&left, &right));
        folded.unwrap_or_else(|| Digest::of(b""))
    }

    /// Compact bytes to store: the size and then the peaks.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.size.to_be_bytes().to_vec();
        bytes.extend(self.peaks.iter().flat_map(|peak| peak.0));
        bytes
    }

    /// Reads what [`Frontier::to_bytes`] made.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BadFrontier> {
        let (size, rest) = bytes.split_first_chunk::<SIZE_BYTES>().ok_or(BadFrontier)?;
        let size = u64::from_be_bytes(*size);
        let (peaks, odd) = rest.as_chunks::<DIGEST_BYTES>();
        if size > MAX_TREE_SIZE || !odd.is_empty() || peaks.len() != size.count_ones() as usize {
            return Err(BadFrontier);
        }
        Ok(Self { size, peaks: peaks.iter().copied().map(Digest).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(count: u8) -> Frontier {
        let mut frontier = Frontier::new();
        for place in 0..count {
            frontier.append(Leaf::of_bytes(&[place]));
        }
        frontier
    }

    #[test]
    fn small_trees_by_hand() {
        let leaf: Vec<Digest> = (0..5).map(|place| Leaf::of_bytes(&[place]).digest()).collect();
        let two = node(&leaf[0], &leaf[1]);
        let four = node(&two, &node(&leaf[2], &leaf[3]));
        let expected = [Digest::of(b""), leaf[0], two, node(&two, &leaf[2]), four, node(&four, &leaf[4])];
        for (count, root) in expected.iter().enumerate() {
            assert_eq!(grown(count as u8).root(), *root, "{count}");
        }
        assert_eq!(leaf[0], Digest::of(&[0x00, 0]));
        assert_eq!(two, Digest::of(&[&[0x01][..], &leaf[0].0, &leaf[1].0].concat()));
    }

    #[test]
    fn a_stored_frontier_goes_on_growing_alike() {
        for cut in 0..40 {
            let stored = grown(cut).to_bytes();
            assert_eq!(stored.len(), 8 + 32 * cut.count_ones() as usize);
            let mut again = Frontier::from_bytes(&stored).unwrap();
            for place in cut..40 {
                again.append(Leaf::of_bytes(&[place]));
            }
            assert_eq!(again, grown(40));
        }
    }

    #[test]
    fn bytes_that_no_frontier_makes_are_refused() {
        let good = grown(7).to_bytes();
        let too_large = [&u64::MAX.to_be_bytes()[..], &[0; 64 * 32]].concat();
        for bytes in [&[][..], &good[..7], &good[..good.len() - 1], &good[..good.len() - 32], &too_large] {
            assert_eq!(Frontier::from_bytes(bytes), Err(BadFrontier));
        }
    }
}
