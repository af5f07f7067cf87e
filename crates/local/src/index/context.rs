//! The dependencies of the index: the indexed root, its directory and its key. Shared by searches and the background
//! thread, so that neither needs the workspace.

use std::time::Duration;

use stead_disk::{DirectoryHandle, FileType, LockFile, RootDirectory, StateDirectory};
use stead_engine::{DirectoryEntry, limits};
use stead_path::{RelPath, TEMPORARY_PREFIX};

use super::block_hash::IndexKey;
use crate::lookup;

/// The directory of the index in the state directory.
pub(super) const INDEX_DIRECTORY: &str = "index";
/// The builder's slot of the lock file, above every path slot.
const BUILDER_SLOT: u64 = (1 << 62) + 1;

pub(super) struct IndexContext {
    pub(super) root: RootDirectory,
    pub(super) state: StateDirectory,
    pub(super) key: IndexKey,
    /// How long a file must be unmodified before its stamp is reliable.
    pub(super) min_file_age: Duration,
    /// Limit of watched directories.
    pub(super) watches_max: usize,
    /// Number of mount points that may be crossed.
    pub(super) mount_count: usize,
}

/// Excludes other builders until it is dropped.
pub(super) struct IndexBuildLock {
    _lock: LockFile,
}

impl IndexContext {
    /// The directory of the index; `None` if it is missing or not a directory.
    pub(super) fn open_directory(&self) -> Option<DirectoryHandle> {
        Some(self.state.existing_subdirectory(INDEX_DIRECTORY).ok()??.into_directory())
    }

    pub(super) fn create_directory(&self) -> Result<DirectoryHandle, stead_disk::StateError> {
        Ok(self.state.create_subdirectory(INDEX_DIRECTORY)?.into_directory())
    }

    /// Locks the index for building; `None` if another process holds the lock.
    pub(super) fn try_lock_for_build(&self) -> Result<Option<IndexBuildLock>, stead_disk::StateError> {
        let lock = self.state.open_lock_file()?;
        Ok(lock.try_lock(BUILDER_SLOT, stead_disk::LockMode::Exclusive)?.then_some(IndexBuildLock { _lock: lock }))
    }

    /// Lists a directory as a walk does, in byte order.
    pub(super) fn list_directory(
        &self,
        directory: &DirectoryHandle,
    ) -> Result<Vec<DirectoryEntry>, stead_disk::DiskError> {
        let temporary = |name: &stead_path::FileName| name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
        let listed = directory.list()?.into_iter().filter(|entry| !temporary(&entry.name));
        let mut listed: Vec<DirectoryEntry> = listed
            .map(|entry| DirectoryEntry { name: entry.name, kind: lookup::to_engine_file_type(entry.file_type) })
            .collect();
        listed.sort_unstable_by(|one, two| one.name.cmp(&two.name));
        Ok(listed)
    }

    pub(super) fn read_ignore_file(&self, path: &RelPath) -> Option<Vec<u8>> {
        let file = self.root.open_file(path).ok()?;
        let mut bytes = Vec::new();
        file.read_into(&mut bytes, limits::IGNORE_FILE_BYTES_MAX, &|_| true).ok()?;
        Some(bytes)
    }
}

pub(super) fn is_regular_file(stat: &stead_disk::DiskStat) -> bool {
    stat.file_type == FileType::File
}
