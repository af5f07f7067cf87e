//! The Merkle tree of RFC 9162 over the hashes of journal entries.
//!
//! The hash of a leaf has the prefix byte 0x00, that of an inner node 0x01. The frontier of a tree is the list of the
//! roots of its full subtrees; appending a leaf needs no other hashes. A frontier has at most 64 hashes.

pub(crate) mod proof;

use crate::Digest;

const LEAF_PREFIX: [u8; 1] = [0x00];
const NODE_PREFIX: [u8; 1] = [0x01];

/// The largest tree size of a stored frontier, so that appending entries cannot overflow the size.
const MAX_TREE_SIZE: u64 = 1 << 62;
const SIZE_BYTES: usize = 8;
const DIGEST_BYTES: usize = 32;

/// The hash of a leaf of the Merkle tree. The type `MerkleLeafHash` ensures that every entry hash gets the leaf prefix
/// before it enters the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MerkleLeafHash(Digest);

impl MerkleLeafHash {
    /// Hashes the bytes of a leaf of the Merkle tree.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self(Digest::sha256_of_parts(&[&LEAF_PREFIX, bytes]))
    }

    /// The leaf hash of the journal entry with this chain hash.
    pub fn from_entry_hash(hash: &Digest) -> Self {
        Self::from_bytes(hash.as_bytes())
    }

    /// The leaf hash as a digest.
    pub fn digest(&self) -> Digest {
        self.0
    }
}

fn node_hash(left: &Digest, right: &Digest) -> Digest {
    Digest::sha256_of_parts(&[&NODE_PREFIX, left.as_bytes(), right.as_bytes()])
}

/// The hashes that are needed to append leaves to a growing Merkle tree and to compute its root.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MerkleFrontier {
    size: u64,
    /// The roots of the full subtrees, largest first: one root for each bit that is set in `size`.
    peaks: Vec<Digest>,
}

/// The error for bytes that are not a stored Merkle frontier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the bytes of a Merkle frontier")]
pub struct MerkleFrontierDecodeError;

impl MerkleFrontier {
    /// The frontier of the empty Merkle tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of leaves of the Merkle tree.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Appends a leaf to the Merkle tree.
    pub fn append(&mut self, leaf: MerkleLeafHash) {
        let mut peak = leaf.0;
        // Each trailing one bit of the old size stands for a full subtree. In each round, that subtree has the same
        // height as the new peak.
        for _height in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                peak = node_hash(&left, &peak);
            }
        }
        self.peaks.push(peak);
        self.size += 1;
    }

    /// The current root of the Merkle tree; the root of the empty tree is the hash of the empty string.
    pub fn root(&self) -> Digest {
        let folded = self.peaks.iter().rev().copied().reduce(|right, left| node_hash(&left, &right));
        folded.unwrap_or_else(|| Digest::sha256(b""))
    }

    /// Encodes the frontier for storage: the tree size, then the subtree roots.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.size.to_be_bytes().to_vec();
        bytes.extend(self.peaks.iter().flat_map(|peak| peak.0));
        bytes
    }

    /// Decodes the output of [`MerkleFrontier::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MerkleFrontierDecodeError> {
        let (size, rest) = bytes.split_first_chunk::<SIZE_BYTES>().ok_or(MerkleFrontierDecodeError)?;
        let size = u64::from_be_bytes(*size);
        let (peaks, odd) = rest.as_chunks::<DIGEST_BYTES>();
        if size > MAX_TREE_SIZE || !odd.is_empty() || peaks.len() != size.count_ones() as usize {
            return Err(MerkleFrontierDecodeError);
        }
        Ok(Self { size, peaks: peaks.iter().copied().map(Digest).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frontier_with_leaves(count: u8) -> MerkleFrontier {
        let mut frontier = MerkleFrontier::new();
        for index in 0..count {
            frontier.append(MerkleLeafHash::from_bytes(&[index]));
        }
        frontier
    }

    #[test]
    fn small_trees_match_hand_computed_roots() {
        let leaf: Vec<Digest> = (0..5).map(|index| MerkleLeafHash::from_bytes(&[index]).digest()).collect();
        let two = node_hash(&leaf[0], &leaf[1]);
        let four = node_hash(&two, &node_hash(&leaf[2], &leaf[3]));
        let expected = [Digest::sha256(b""), leaf[0], two, node_hash(&two, &leaf[2]), four, node_hash(&four, &leaf[4])];
        for (count, root) in expected.iter().enumerate() {
            assert_eq!(frontier_with_leaves(count as u8).root(), *root, "{count}");
        }
        assert_eq!(leaf[0], Digest::sha256(&[0x00, 0]));
        assert_eq!(two, Digest::sha256(&[&[0x01][..], &leaf[0].0, &leaf[1].0].concat()));
    }

    #[test]
    fn a_stored_frontier_grows_like_the_original() {
        for cut in 0..40 {
            let stored = frontier_with_leaves(cut).to_bytes();
            assert_eq!(stored.len(), 8 + 32 * cut.count_ones() as usize);
            let mut again = MerkleFrontier::from_bytes(&stored).unwrap();
            for index in cut..40 {
                again.append(MerkleLeafHash::from_bytes(&[index]));
            }
            assert_eq!(again, frontier_with_leaves(40));
        }
    }

    #[test]
    fn malformed_frontier_bytes_are_rejected() {
        let good = frontier_with_leaves(7).to_bytes();
        let too_large = [&u64::MAX.to_be_bytes()[..], &[0; 64 * 32]].concat();
        for bytes in [&[][..], &good[..7], &good[..good.len() - 1], &good[..good.len() - 32], &too_large] {
            assert_eq!(MerkleFrontier::from_bytes(bytes), Err(MerkleFrontierDecodeError));
        }
    }
}
