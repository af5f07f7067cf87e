//! Keyed hashes of the index blocks. A hash covers the block, its kind, its file and its offset. The key is a secret of
//! the workspace's store, bound to the workspace, its root directory and the format.
//!
//! Promises: a truncated, modified or moved block, or one from another file, workspace, directory or build is detected
//! before use. Says nothing about whether the data is current: stamps do that.

use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};
use stead_disk::RootDirectory;
use stead_engine::Error;

use crate::{
    errors,
    options::Durability,
    store::{SqliteStore, SyncRequirement},
};

pub(super) const BLOCK_HASH_BYTES: usize = 16;
/// Format of the index; a change makes existing indexes unusable, and they are rebuilt.
const FORMAT: u32 = 1;
/// Name of the secret in the store.
const INDEX_SECRET_NAME: &str = "index";

/// The id of one index file.
pub(super) type IndexFileId = [u8; 16];

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexBlockKind {
    /// The list of segments.
    Manifest,
    /// The end of a segment.
    Trailer,
    /// The table of contents of a segment.
    Contents,
    DirectoryFiles,
    /// Posting lists by trigram.
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

/// The key of one workspace's index.
#[derive(Clone)]
pub(super) struct IndexKey([u8; 32]);

impl IndexKey {
    /// The key of a workspace; creates the secret if there is none.
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

    /// The hash of a block at an offset of a file.
    pub(super) fn hash_block(
        &self,
        kind: IndexBlockKind,
        file: &IndexFileId,
        offset: u64,
        bytes: &[u8],
    ) -> [u8; BLOCK_HASH_BYTES] {
        let mut hasher = Sha256::new();
        // Variable-length parts come last, after their length, so that no two blocks hash the same input.
        hasher.update(self.0);
        hasher.update([kind.tag()]);
        hasher.update(file);
        hasher.update(offset.to_le_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
        let whole: [u8; 32] = hasher.finalize().into();
        let mut seal = [0; BLOCK_HASH_BYTES];
        seal.copy_from_slice(&whole[..BLOCK_HASH_BYTES]);
        seal
    }

    /// The bytes of a block without its hash, if the hash is correct.
    pub(super) fn verify_block<'a>(
        &self,
        kind: IndexBlockKind,
        file: &IndexFileId,
        offset: u64,
        sealed: &'a [u8],
    ) -> Option<&'a [u8]> {
        let (bytes, seal) = sealed.split_at_checked(sealed.len().checked_sub(BLOCK_HASH_BYTES)?)?;
        (self.hash_block(kind, file, offset, bytes) == seal).then_some(bytes)
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
    let fresh: [u8; 32] = crate::random::random_bytes()?;
    store.run_transaction(SyncRequirement::Later, Durability::Fast, |transaction| {
        transaction
            .execute("INSERT OR IGNORE INTO meta VALUES (?1, ?2)", params![INDEX_SECRET_NAME, fresh.as_slice()])
            .map_err(|error| errors::store_error(&error))
    })?;
    // Another process may have stored its secret first; that one counts.
    Ok(load_secret(store)?.unwrap_or_else(|| fresh.to_vec()))
}
