//! Content-addressed storage: one file per SHA-256 in the state directory, in 256 subdirectories. Promises: a blob was
//! complete when it got its name. Never trusts a copy of a file that may change: it is hashed again. After a power cut
//! a blob stored with [`BlobSync::Later`] may be torn, so readers compare the hash.

use std::os::fd::AsFd;

use stead_path::{FileName, RelPath};

use crate::{
    AttributeSource, ContentSource, DirectoryHandle, DiskError, DiskErrorKind, ExistingTarget, OpenFile,
    PrivateDirectory, StagedFile, StateDirectory, StateError, state_directory::invalid_name_error, sys, sys::file_io,
};

const BLOBS_DIRECTORY: &str = "blobs";
/// Characters of a digest that name the directory of a blob.
const FAN_OUT_CHARACTERS: usize = 2;
const DIGEST_CHARACTERS: usize = 64;
/// Blobs are read-only.
const BLOB_MODE: u32 = 0o400;

/// When a blob must be on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobSync {
    /// Before the call returns.
    Now,
    /// When the file system is synced.
    Later,
}

struct BlobLocation {
    fan_out_directory: String,
    name: FileName,
}

impl BlobLocation {
    fn from_digest(digest_hex: &str) -> Result<Self, DiskError> {
        let is_digest = digest_hex.len() == DIGEST_CHARACTERS
            && digest_hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_digest {
            return Err(invalid_name_error());
        }
        let name = FileName::new(digest_hex.as_bytes()).map_err(|_| invalid_name_error())?;
        Ok(Self { fan_out_directory: digest_hex[..FAN_OUT_CHARACTERS].to_owned(), name })
    }

    /// The directory of the blob, created if missing.
    fn create_directory(&self, state: &StateDirectory) -> Result<DirectoryHandle, DiskError> {
        Ok(state.create_subdirectory(&format!("{BLOBS_DIRECTORY}/{}", self.fan_out_directory))?.into_directory())
    }

    /// The directory of the blob, if it exists.
    fn existing_directory(&self, state: &StateDirectory) -> Result<Option<DirectoryHandle>, DiskError> {
        Ok(state
            .existing_subdirectory(&format!("{BLOBS_DIRECTORY}/{}", self.fan_out_directory))?
            .map(PrivateDirectory::into_directory))
    }
}

impl StateDirectory {
    /// Stores bytes under their SHA-256. An existing blob stays. `ChangedConcurrently` if the content of a file does
    /// not (or no longer) have that hash.
    pub fn put_blob(&self, digest_hex: &str, source: ContentSource<'_>, durable: BlobSync) -> Result<(), DiskError> {
        let slot = BlobLocation::from_digest(digest_hex)?;
        let directory = slot.create_directory(self)?;
        if directory.stat(&slot.name)?.is_some() {
            return ensure_durable(self, &directory, &slot.name, durable);
        }
        let staged = directory.stage_file(source, AttributeSource::New { mode: BLOB_MODE })?;
        let placed = verify_digest(&staged, source, digest_hex).and_then(|()| {
            if durable == BlobSync::Now {
                staged.sync()?;
            }
            directory.rename_staged_to_new(&staged, &slot.name)
        });
        match placed {
            Ok(()) => sync_directories(self, &directory, durable),
            Err(error) => {
                staged.discard(&directory).unwrap_or_default();
                if error.kind == DiskErrorKind::Exists {
                    ensure_durable(self, &directory, &slot.name, durable)
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Turns a file into a blob and removes its name from `from`. The file is moved if possible; it is copied if it is
    /// on another mount or has further hard links, through which it could be changed.
    pub fn adopt_blob(&self, digest_hex: &str, from: &DirectoryHandle, name: &FileName) -> Result<(), DiskError> {
        let slot = BlobLocation::from_digest(digest_hex)?;
        let directory = slot.create_directory(self)?;
        let opened = from.open_path_handle(name)?.ensure_file()?;
        if opened.meta.stat.hard_links > 1 {
            return self.copy_then_unlink(digest_hex, from, name);
        }
        match from.rename(name, &directory, &slot.name, ExistingTarget::Refuse) {
            Ok(()) => {
                // Best effort: a file of another owner keeps its mode, inside a private directory.
                sys::set_mode_by_path_handle(opened.handle.as_fd(), BLOB_MODE).unwrap_or_default();
                Ok(())
            }
            Err(error) if error.kind == DiskErrorKind::Exists => from.remove_file(name),
            Err(error) if matches!(error.kind, DiskErrorKind::CrossesMount | DiskErrorKind::Unsupported) => {
                self.copy_then_unlink(digest_hex, from, name)
            }
            Err(error) => Err(error),
        }
    }

    fn copy_then_unlink(&self, digest_hex: &str, from: &DirectoryHandle, name: &FileName) -> Result<(), DiskError> {
        self.put_blob(digest_hex, ContentSource::File(&from.open_file(name)?), BlobSync::Later)?;
        from.remove_file(name)
    }

    /// Opens a blob; `None` if it does not exist.
    pub fn open_blob(&self, digest_hex: &str) -> Result<Option<OpenFile>, StateError> {
        self.find_blob(digest_hex).map_err(StateError::new)
    }

    /// The content of a blob, at most `limit_bytes`; `None` if it does not exist.
    pub fn read_blob(&self, digest_hex: &str, limit_bytes: u64) -> Result<Option<Vec<u8>>, StateError> {
        let file = self.open_blob(digest_hex)?;
        file.map(|file| file.read_all(limit_bytes)).transpose().map_err(StateError::new)
    }

    fn find_blob(&self, digest_hex: &str) -> Result<Option<OpenFile>, DiskError> {
        let slot = BlobLocation::from_digest(digest_hex)?;
        let Some(directory) = slot.existing_directory(self)? else { return Ok(None) };
        match directory.open_file(&slot.name) {
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// Removes a blob; `false` if it did not exist.
    pub fn remove_blob(&self, digest_hex: &str) -> Result<bool, StateError> {
        let slot = BlobLocation::from_digest(digest_hex).map_err(StateError::new)?;
        let Some(directory) = slot.existing_directory(self).map_err(StateError::new)? else {
            return Ok(false);
        };
        match directory.remove_file(&slot.name) {
            Ok(()) => Ok(true),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(false),
            Err(error) => Err(StateError::new(error)),
        }
    }
}

/// Verifies the hash of a staged file: a file may have changed while it was copied; bytes in memory cannot.
fn verify_digest(staged: &StagedFile, source: ContentSource<'_>, digest_hex: &str) -> Result<(), DiskError> {
    match source {
        ContentSource::Bytes(_) => Ok(()),
        ContentSource::File(_) => {
            let (digest, _) = staged.hash()?;
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            if hex == digest_hex { Ok(()) } else { Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "put blob")) }
        }
    }
}

/// Syncs an existing blob, which may have been stored with [`BlobSync::Later`].
fn ensure_durable(
    state: &StateDirectory,
    directory: &DirectoryHandle,
    name: &FileName,
    durable: BlobSync,
) -> Result<(), DiskError> {
    if durable == BlobSync::Now {
        file_io::sync_content(directory.open_file(name)?.handle())?;
    }
    sync_directories(state, directory, durable)
}

/// Syncs the directory of a blob and its parents.
fn sync_directories(state: &StateDirectory, directory: &DirectoryHandle, durable: BlobSync) -> Result<(), DiskError> {
    if durable == BlobSync::Later {
        return Ok(());
    }
    directory.sync()?;
    state.create_subdirectory(BLOBS_DIRECTORY)?.as_directory().sync()?;
    state.root().open_directory(&RelPath::root())?.sync()
}
