//! Tests Merkle trees and proofs with the published data of Certificate Transparency and for every small tree size.

use std::convert::Infallible;

use stead_journal::{
    ConsistencyProof, Digest, InclusionProof, InvalidMerkleProofError, MerkleFrontier, MerkleLeafHash,
    MerkleProofCreationError, consistency_proof, inclusion_proof,
};

/// The leaf inputs of the Certificate Transparency reference implementation.
const INPUTS: [&[u8]; 8] = [
    b"",
    b"\x00",
    b"\x10",
    b"\x20\x21",
    b"\x30\x31",
    b"\x40\x41\x42\x43",
    b"\x50\x51\x52\x53\x54\x55\x56\x57",
    b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
];

/// The published Merkle roots of the trees of the first one to eight leaf inputs.
const ROOTS: [&str; 8] = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

fn digests(texts: &[&str]) -> Vec<Digest> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn published_leaves() -> impl Iterator<Item = Result<MerkleLeafHash, Infallible>> {
    INPUTS.iter().map(|input| Ok(MerkleLeafHash::from_bytes(input)))
}

fn leaf(index: u64) -> MerkleLeafHash {
    MerkleLeafHash::from_bytes(&index.to_be_bytes())
}

fn leaves() -> impl Iterator<Item = Result<MerkleLeafHash, Infallible>> {
    (0..).map(|index| Ok(leaf(index)))
}

fn root(size: u64) -> Digest {
    let mut frontier = MerkleFrontier::new();
    (0..size).for_each(|index| frontier.append(leaf(index)));
    frontier.root()
}

#[test]
fn roots_match_the_published_ones() {
    let mut frontier = MerkleFrontier::new();
    assert_eq!(frontier.root(), Digest::sha256(b""));
    for (leaf, root) in published_leaves().zip(ROOTS) {
        frontier.append(leaf.unwrap());
        assert_eq!(frontier.root().to_string(), root);
    }
}

#[test]
fn proofs_match_the_published_ones() {
    let path = digests(&[
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]);
    assert_eq!(inclusion_proof(0, 8, published_leaves()).unwrap().path, path);
    assert_eq!(consistency_proof(1, 8, published_leaves()).unwrap().path, path);
    let path = digests(&[
        "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        ROOTS[3],
    ]);
    assert_eq!(consistency_proof(6, 8, published_leaves()).unwrap().path, path);
}

#[test]
fn small_trees_prove_exactly_their_inclusions() {
    for size in 1..=33 {
        let right = root(size);
        for index in 0..size {
            let proof = inclusion_proof(index, size, leaves()).unwrap();
            assert_eq!(proof.verify(&leaf(index), &right), Ok(()), "{index} of {size}");
            assert_eq!(proof.verify(&leaf(index + 1), &right), Err(InvalidMerkleProofError));
            assert_eq!(proof.verify(&leaf(index), &root(size + 1)), Err(InvalidMerkleProofError));
            for other in (0..=size).filter(|other| *other != index) {
                let moved = InclusionProof { index: other, ..proof.clone() };
                assert_eq!(moved.verify(&leaf(index), &right), Err(InvalidMerkleProofError));
            }
            let mut shorter = proof.clone();
            if shorter.path.pop().is_some() {
                assert_eq!(shorter.verify(&leaf(index), &right), Err(InvalidMerkleProofError));
            }
            let mut longer = proof.clone();
            longer.path.push(right);
            assert_eq!(longer.verify(&leaf(index), &right), Err(InvalidMerkleProofError));
        }
    }
}

#[test]
fn small_trees_prove_exactly_their_consistency() {
    for to in 0..=33 {
        for from in 0..=to {
            let proof = consistency_proof(from, to, leaves()).unwrap();
            assert_eq!(proof.verify(&root(from), &root(to)), Ok(()), "{from} to {to}");
            assert_eq!(proof.verify(&root(from + 1), &root(to)), Err(InvalidMerkleProofError));
            // The empty tree is a prefix of every tree, so only then is the later root irrelevant.
            if from > 0 {
                assert_eq!(proof.verify(&root(from), &root(to + 1)), Err(InvalidMerkleProofError));
            }
            for index in 0..proof.path.len() {
                let mut bent = proof.clone();
                bent.path[index].0[0] ^= 1;
                assert_eq!(bent.verify(&root(from), &root(to)), Err(InvalidMerkleProofError));
                bent.path.remove(index);
                assert_eq!(bent.verify(&root(from), &root(to)), Err(InvalidMerkleProofError));
            }
            let mut longer = proof.clone();
            longer.path.push(root(to));
            assert_eq!(longer.verify(&root(from), &root(to)), Err(InvalidMerkleProofError));
        }
    }
}

#[test]
fn proofs_that_end_below_the_claimed_root_are_rejected() {
    let proof = consistency_proof(4, 8, leaves()).unwrap();
    let claimed = ConsistencyProof { to: 16, ..proof };
    assert_eq!(claimed.verify(&root(4), &root(8)), Err(InvalidMerkleProofError));
}

#[test]
fn impossible_proofs_are_errors() {
    assert_eq!(inclusion_proof(5, 5, leaves()), Err(MerkleProofCreationError::OutOfRange { size: 5 }));
    assert_eq!(consistency_proof(6, 5, leaves()), Err(MerkleProofCreationError::OutOfRange { size: 5 }));
    assert_eq!(inclusion_proof(0, 5, leaves().take(3)), Err(MerkleProofCreationError::TooFewLeaves { found: 3 }));
    let failing = [Ok(leaf(0)), Err("gone")];
    assert_eq!(inclusion_proof(0, 2, failing), Err(MerkleProofCreationError::Source("gone")));
}

#[test]
fn proofs_round_trip_through_json() {
    let proof = inclusion_proof(3, 7, leaves()).unwrap();
    let json = serde_json::to_string(&proof).unwrap();
    assert_eq!(serde_json::from_str::<InclusionProof>(&json).unwrap(), proof);
}
