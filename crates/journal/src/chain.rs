//! The hash chain: each entry's hash covers its bytes and the hash before it.
//!
//! Promises: a hash of one purpose can never be taken for one of another (fixed-length domain prefixes), and two
//! workspaces never share a chain, because the first link is bound to the workspace.

use crate::{Digest, Origin};

/// Domain of an entry's hash. Its length is fixed, and so is that of the hash after it.
const LINK_DOMAIN: &[u8; 16] = b"stead entry v1\0\0";
/// Domain of the hash that stands before the first entry.
const GENESIS_DOMAIN: &[u8; 16] = b"stead genesis 1\0";

/// The hash of an entry: its canonical bytes bound to the hash of the entry before it.
pub fn link_hash(previous: &Digest, canonical: &[u8]) -> Digest {
    Digest::of_parts(&[LINK_DOMAIN, previous.as_bytes(), canonical])
}

/// What stands before the first entry of a workspace.
pub fn genesis(origin: &Origin) -> Digest {
    Digest::of_parts(&[GENESIS_DOMAIN, origin.line().as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_covers_bytes_place_and_workspace() {
        let one = genesis(&Origin::new("one").unwrap());
        let two = genesis(&Origin::new("two").unwrap());
        let hashes = [one, two, link_hash(&one, b"a"), link_hash(&one, b"b"), link_hash(&two, b"a")];
        for (place, hash) in hashes.iter().enumerate() {
            assert!(!hashes[place + 1..].contains(hash));
        }
    }

    /// Computed with another implementation of SHA-256; a change here breaks every existing journal.
    #[test]
    fn known_answers() {
        let one = genesis(&Origin::new("one").unwrap());
        assert_eq!(one.to_string(), "3611b7bb87173e49cef636cbac45632036307a9e7320de1a8e68e9c6e2f80761");
        assert_eq!(
            link_hash(&one, b"a").to_string(),
            "591efdd4153ed4c3847c1a0be11af2289ab8c335b08a14fdc7436b9a3fcdd62a"
        );
    }
}
