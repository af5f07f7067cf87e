//! Seals on what the index reads back: a keyed hash over every block, its kind, its file and its place there. The key is
//! a secret of this workspace's store, bound to the workspace, to its root directory and to the format.
//!
//! Promises: a block that was cut, changed, moved, or comes from another file, workspace, directory or build is noticed
//! before anything in it is used. Says nothing about whether it is still true: stamps do that.

use disk::Root;
use engine::Failure;
use rusqlite::{OptionalExtension, params};
use sha2::{Digest, Sha256};

use crate::{
    failure,
    options::Durability,
    store::{Store, Sync},
};

/// Bytes of a seal.
pub(super) const SEAL_BYTES: usize = 16;
/// How the index is written; any change makes older ones unusable, which costs a new one.
const FORMAT: u32 = 1;
/// Under which name the secret is kept.
const SECRET: &str = "index";

/// The name of one file of the index.
pub(super) type FileName = [u8; 16];

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The list of segments.
    Manifest,
    /// The end of a segment.
    Trailer,
    /// What is where in a segment.
    Contents,
    /// The files of one directory.
    Shelf,
    /// Lists of files by gram.
    Grams,
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Self::Manifest => 1,
            Self::Trailer => 2,
            Self::Contents => 3,
            Self::Shelf => 4,
            Self::Grams => 5,
        }
    }
}

/// The key of one workspace's index.
#[derive(Clone)]
pub(super) struct Key([u8; 32]);

impl Key {
    /// The key of a workspace, with a new secret if there is none yet.
    pub(super) fn of(store: &Store, root: &Root, workspace: &str) -> Result<Self, Failure> {
        let secret = match secret(store)? {
            Some(secret) => secret,
            None => make_secret(store)?,
        };
        let mut hasher = Sha256::new();
        hasher.update(secret);
        hasher.update(FORMAT.to_le_bytes());
        hasher.update(engine::index::MEANING.to_le_bytes());
        hasher.update(engine::limits::SEARCH_FILE_BYTES_MAX.to_le_bytes());
        hasher.update(root.id().dev.to_le_bytes());
        hasher.update(root.id().ino.to_le_bytes());
        hasher.update(workspace.as_bytes());
        Ok(Self(hasher.finalize().into()))
    }

    /// The seal of a block at a place of a file.
    pub(super) fn seal(&self, kind: Kind, file: &FileName, offset: u64, bytes: &[u8]) -> [u8; SEAL_BYTES] {
        let mut hasher = Sha256::new();
        // Everything of variable length comes last and its length before it, so no two blocks read the same.
        hasher.update(self.0);
        hasher.update([kind.number()]);
        hasher.update(file);
        hasher.update(offset.to_le_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
        let whole: [u8; 32] = hasher.finalize().into();
        let mut seal = [0; SEAL_BYTES];
        seal.copy_from_slice(&whole[..SEAL_BYTES]);
        seal
    }

    /// The bytes of a sealed block, if its seal is right.
    pub(super) fn open<'a>(
        &self,
        kind: Kind,
        file: &FileName,
        offset: u64,
        sealed: &'a [u8],
    ) -> Option<&'a [u8]> {
        let (bytes, seal) = sealed.split_at_checked(sealed.len().checked_sub(SEAL_BYTES)?)?;
        (self.seal(kind, file, offset, bytes) == seal).then_some(bytes)
    }
}

fn secret(store: &Store) -> Result<Option<Vec<u8>>, Failure> {
    store.look(|connection| {
        connection
            .prepare_cached("SELECT value FROM meta WHERE name = ?1")?
            .query_row(params![SECRET], |row| row.get(0))
            .optional()
    })
}

fn make_secret(store: &Store) -> Result<Vec<u8>, Failure> {
    let fresh: [u8; 32] = disk::random_bytes().map_err(|error| failure::own(&error))?;
    store.transact(Sync::Later, Durability::Fast, |transaction| {
        transaction
            .execute("INSERT OR IGNORE INTO meta VALUES (?1, ?2)", params![SECRET, fresh.as_slice()])
            .map_err(|error| failure::store(&error))
    })?;
    // Another process may have been faster: its secret stands.
    Ok(secret(store)?.unwrap_or_else(|| fresh.to_vec()))
}
