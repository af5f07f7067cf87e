//! The hash chain: each entry's hash covers its bytes and the previous hash.
//!
//! Promises: hashes of different purposes cannot be confused (fixed-length domain prefixes), and two workspaces never
//! share a chain, because the genesis hash includes the workspace.

use crate::{Digest, JournalOrigin};

/// Domain of an entry's hash. Its length is fixed, and so is that of the hash after it.
const CHAIN_DOMAIN: &[u8; 16] = b"stead entry v1\0\0";
/// Domain of the hash before the first entry.
const GENESIS_DOMAIN: &[u8; 16] = b"stead genesis 1\0";

/// The hash of an entry: its canonical bytes and the hash of the previous entry.
pub fn chain_hash(previous: &Digest, canonical: &[u8]) -> Digest {
    Digest::sha256_of_parts(&[CHAIN_DOMAIN, previous.as_bytes(), canonical])
}

/// The hash before the first entry of a workspace.
pub fn genesis_hash(origin: &JournalOrigin) -> Digest {
    Digest::sha256_of_parts(&[GENESIS_DOMAIN, origin.line().as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_covers_bytes_position_and_workspace() {
        let one = genesis_hash(&JournalOrigin::new("one").unwrap());
        let two = genesis_hash(&JournalOrigin::new("two").unwrap());
        let hashes = [one, two, chain_hash(&one, b"a"), chain_hash(&one, b"b"), chain_hash(&two, b"a")];
        for (index, hash) in hashes.iter().enumerate() {
            assert!(!hashes[index + 1..].contains(hash));
        }
    }

    /// Computed with another implementation of SHA-256; a change here breaks every existing journal.
    #[test]
    fn known_answers() {
        let one = genesis_hash(&JournalOrigin::new("one").unwrap());
        assert_eq!(one.to_string(), "3611b7bb87173e49cef636cbac45632036307a9e7320de1a8e68e9c6e2f80761");
        assert_eq!(
            chain_hash(&one, b"a").to_string(),
            "591efdd4153ed4c3847c1a0be11af2289ab8c335b08a14fdc7436b9a3fcdd62a"
        );
    }
}
