//! What the index stands on: the root it describes, the directory it lives in, its key. Shared by whoever asks it and by
//! the thread that builds it; neither needs the workspace for more.

use std::time::Duration;

use disk::{Directory, FileType, LockFile, Root, StateDirectory};
use engine::{Listed, limits};
use path::{RelPath, TEMPORARY_PREFIX};

use super::seal::Key;
use crate::look;

/// The directory of the index in the state directory.
pub(super) const PLACE: &str = "index";
/// The slot of the lock file that whoever builds holds. Places of files have lower numbers.
const BUILDER_SLOT: u64 = (1 << 62) + 1;

/// What the index stands on.
pub(super) struct Ground {
    pub(super) root: Root,
    pub(super) state: StateDirectory,
    pub(super) key: Key,
    /// How long a file must have stood still before its stamp is relied on.
    pub(super) settled: Duration,
    /// How many directories may be watched.
    pub(super) watches_max: usize,
    /// Mount points that may be crossed.
    pub(super) mounts: usize,
}

/// Nobody else builds while this is there.
pub(super) struct Building {
    _lock: LockFile,
}

impl Ground {
    /// The directory of the index; nothing when there is none, or something else is there.
    pub(super) fn place(&self) -> Option<Directory> {
        self.state.existing_directory(PLACE).ok().flatten()
    }

    /// The same, made when it is missing.
    pub(super) fn make_place(&self) -> Result<Directory, disk::DiskError> {
        self.state.directory(PLACE)
    }

    /// Takes the right to build; nothing when another process has it.
    pub(super) fn build(&self) -> Result<Option<Building>, disk::DiskError> {
        let lock = self.state.lock_file()?;
        Ok(lock.try_lock(BUILDER_SLOT, disk::Mode::Exclusive)?.then_some(Building { _lock: lock }))
    }

    /// The names in a directory as a walk sees them, in byte order.
    pub(super) fn list(&self, directory: &Directory) -> Result<Vec<Listed>, disk::DiskError> {
        let temporary = |name: &path::Name| name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes());
        let listed = directory.list()?.into_iter().filter(|entry| !temporary(&entry.name));
        let mut listed: Vec<Listed> =
            listed.map(|entry| Listed { name: entry.name, top: look::top(entry.file_type) }).collect();
        listed.sort_unstable_by(|one, two| one.name.cmp(&two.name));
        Ok(listed)
    }

    /// The bytes of an ignore file.
    pub(super) fn ignore_file(&self, path: &RelPath) -> Option<Vec<u8>> {
        let file = self.root.open_file(path).ok()?;
        let mut bytes = Vec::new();
        file.read_into(&mut bytes, limits::IGNORE_FILE_BYTES_MAX, &|_| true).ok()?;
        Some(bytes)
    }
}

/// Whether a stat is that of a regular file.
pub(super) fn is_file(stat: &disk::Stat) -> bool {
    stat.file_type == FileType::File
}
