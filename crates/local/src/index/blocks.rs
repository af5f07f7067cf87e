//! The blocks of search index files: their hashes and the encoding of their contents.
//!
//! A block's keyed hash covers the block's bytes, its kind, its file's id and its offset. The hash key depends on a
//! secret in the store, the workspace id, the root directory and the index format. A block's hash does not show whether
//! its data is current; the timestamps of the indexed files show that.
//!
//! Decoding an index block never reads beyond its input and never allocates memory for an unchecked length.

use rusqlite::params;
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
/// The format version of the search index. The server rebuilds an index that has a different format version.
const FORMAT: u32 = 1;
const INDEX_SECRET_NAME: &str = "index";

pub(super) type RandomIndexFileId = [u8; 16];

/// The number of a block's kind is part of the block's hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexBlockKind {
    Manifest = 1,
    Trailer = 2,
    Contents = 3,
    DirectoryFiles = 4,
    Grams = 5,
}

#[derive(Clone)]
pub(super) struct SearchIndexBlockHashKey([u8; 32]);

impl SearchIndexBlockHashKey {
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

    pub(super) fn hash_block(
        &self,
        kind: IndexBlockKind,
        file: &RandomIndexFileId,
        offset: u64,
        bytes: &[u8],
    ) -> [u8; BLOCK_HASH_BYTES] {
        let mut hasher = Sha256::new();
        // The length precedes the block's bytes, so that two different blocks never have the same hash input.
        hasher.update(self.0);
        hasher.update([kind as u8]);
        hasher.update(file);
        hasher.update(offset.to_le_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
        let whole: [u8; 32] = hasher.finalize().into();
        std::array::from_fn(|at| whole[at])
    }

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
    store.query_optional("SELECT value FROM meta WHERE name = ?1", params![INDEX_SECRET_NAME], |row| row.get(0))
}

fn create_secret(store: &SqliteStore) -> Result<Vec<u8>, Error> {
    let fresh: [u8; 32] = random_bytes()?;
    store.run_transaction(TransactionSyncPolicy::Later, Durability::Fast, |transaction| {
        transaction.execute("INSERT OR IGNORE INTO meta VALUES (?1, ?2)", params![INDEX_SECRET_NAME, fresh.as_slice()])
    })?;
    Ok(load_secret(store)?.unwrap_or_else(|| fresh.to_vec()))
}

pub(super) fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_leb128(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Every method of the index block reader returns `None` at the end of the block and for malformed bytes.
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

    pub(super) fn len(&self) -> usize {
        self.remaining.len()
    }

    pub(super) fn read_number(&mut self) -> Option<u64> {
        read_leb128(&mut self.remaining).ok()
    }

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
