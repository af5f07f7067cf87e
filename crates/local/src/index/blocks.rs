//! The blocks of search index files: their hashes, and the encoding of their contents.
//!
//! Each block has a keyed hash over its bytes, its kind, the id of its file and its offset in the file. The hash key is
//! derived from a secret in the workspace's store, the workspace id, the root directory and the index format. The hash
//! detects a block that was truncated, modified or moved, or that belongs to another file, workspace, directory or
//! format. The hash of a block does not show whether its data is current; the timestamps of the files show that.
//!
//! Numbers in an index file are encoded as LEB128. A byte string in an index file is encoded as its length, followed by
//! its bytes. Decoding never reads beyond its input and never allocates memory for a length that it has not checked.

use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};
use stead_disk::RootDirectory;
use stead_engine::Error;
use stead_journal::{read_leb128, write_leb128};

use crate::{
    options::Durability,
    store::{SqliteStore, TransactionSyncPolicy},
    token::random_bytes,
};

pub(super) const BLOCK_HASH_BYTES: usize = 16;
/// The format version of the search index; if it changes, existing indexes cannot be read and are built again.
const FORMAT: u32 = 1;
/// The name of the index secret in the database table `meta`.
const INDEX_SECRET_NAME: &str = "index";

/// The random id of an index file.
pub(super) type RandomIndexFileId = [u8; 16];

/// The kind of a block of an index file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexBlockKind {
    /// The list of all segments of the index.
    Manifest,
    /// The last block of a segment file, which contains the offset of the table of contents.
    Trailer,
    /// The table of contents of a segment file.
    Contents,
    DirectoryFiles,
    /// The posting lists of some trigrams: for each trigram the files that contain it.
    Grams,
}

impl IndexBlockKind {
    fn tag(self) -> u8 {
        match self {
            Self::Manifest => 1,
            Self::Trailer => 2,
            Self::Contents => 3,
            Self::DirectoryFiles => 4,
            Self::Grams => 5,
        }
    }
}

/// The hash key for the index blocks of one workspace.
#[derive(Clone)]
pub(super) struct SearchIndexBlockHashKey([u8; 32]);

impl SearchIndexBlockHashKey {
    /// Derives the key of a workspace, and creates the secret if there is none.
    pub(super) fn load_or_create(store: &SqliteStore, root: &RootDirectory, workspace: &str) -> Result<Self, Error> {
        let secret = match load_secret(store)? {
            Some(secret) => secret,
            None => create_secret(store)?,
        };
        let mut hasher = Sha256::new();
        hasher.update(secret);
        hasher.update(FORMAT.to_le_bytes());
        hasher.update(stead_engine::index::INDEX_FORMAT_VERSION.to_le_bytes());
        hasher.update(stead_engine::limits::SEARCH_IN_MEMORY_BYTES_MAX.to_le_bytes());
        hasher.update(root.id().dev.to_le_bytes());
        hasher.update(root.id().ino.to_le_bytes());
        hasher.update(workspace.as_bytes());
        Ok(Self(hasher.finalize().into()))
    }

    /// Computes the hash of a block at this offset of an index file.
    pub(super) fn hash_block(
        &self,
        kind: IndexBlockKind,
        file: &RandomIndexFileId,
        offset: u64,
        bytes: &[u8],
    ) -> [u8; BLOCK_HASH_BYTES] {
        let mut hasher = Sha256::new();
        // The part of variable length comes last, after its length, so that the hash inputs of two different blocks are
        // never equal.
        hasher.update(self.0);
        hasher.update([kind.tag()]);
        hasher.update(file);
        hasher.update(offset.to_le_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
        let whole: [u8; 32] = hasher.finalize().into();
        let mut hash = [0; BLOCK_HASH_BYTES];
        hash.copy_from_slice(&whole[..BLOCK_HASH_BYTES]);
        hash
    }

    /// Returns the bytes of a block without its hash, or `None` if the hash is wrong.
    pub(super) fn verify_block<'a>(
        &self,
        kind: IndexBlockKind,
        file: &RandomIndexFileId,
        offset: u64,
        block: &'a [u8],
    ) -> Option<&'a [u8]> {
        let (bytes, hash) = block.split_at_checked(block.len().checked_sub(BLOCK_HASH_BYTES)?)?;
        (self.hash_block(kind, file, offset, bytes) == hash).then_some(bytes)
    }
}

fn load_secret(store: &SqliteStore) -> Result<Option<Vec<u8>>, Error> {
    store.run_query(|connection| {
        connection
            .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
            .query_row(params![INDEX_SECRET_NAME], |row| row.get(0))
            .optional()
    })
}

fn create_secret(store: &SqliteStore) -> Result<Vec<u8>, Error> {
    let fresh: [u8; 32] = random_bytes()?;
    store.run_transaction(TransactionSyncPolicy::Later, Durability::Fast, |transaction| {
        transaction.execute("INSERT OR IGNORE INTO meta VALUES (?1, ?2)", params![INDEX_SECRET_NAME, fresh.as_slice()])
    })?;
    // If another process has stored a secret first, that secret is used.
    Ok(load_secret(store)?.unwrap_or_else(|| fresh.to_vec()))
}

pub(super) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_leb128(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes the values of an index block; returns `None` at the end of the block and for malformed bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct IndexByteReader<'a> {
    remaining: &'a [u8],
}

impl<'a> IndexByteReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { remaining: bytes }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.remaining.is_empty()
    }

    /// The number of input bytes that are not decoded yet.
    pub(super) fn len(&self) -> usize {
        self.remaining.len()
    }

    pub(super) fn read_number(&mut self) -> Option<u64> {
        read_leb128(&mut self.remaining).ok()
    }

    /// Reads a number, which must fit into 32 bits.
    pub(super) fn read_number_u32(&mut self) -> Option<u32> {
        u32::try_from(self.read_number()?).ok()
    }

    pub(super) fn read_byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.remaining.split_first()?;
        self.remaining = rest;
        Some(*byte)
    }

    pub(super) fn take_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.remaining.split_at_checked(count)?;
        self.remaining = rest;
        Some(taken)
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = usize::try_from(self.read_number()?).ok()?;
        self.take_bytes(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_values_are_rejected() {
        assert_eq!(IndexByteReader::new(&[0xff; 10]).read_number(), None);
        let mut long = Vec::new();
        write_leb128(&mut long, u64::MAX);
        assert_eq!(IndexByteReader::new(&long).bytes(), None);
        assert_eq!(IndexByteReader::new(&long).read_number_u32(), None);
    }
}
