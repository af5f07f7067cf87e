//! Stores each distinct file content once in the state directory, as a file (a blob) that is named by its SHA-256. The
//! content of a blob is complete before the blob gets its name. A blob that was stored with [`BlobSyncTiming::Later`]
//! may be incomplete after a power cut, so readers compare the hash.

use std::os::fd::AsFd;

use stead_path::FileName;

use crate::{
    DirectoryHandle, DiskError, DiskErrorKind, ExistingTargetPolicy, FileAttributeSource, OpenFile,
    ServerOnlyDirectoryHandle, StagedContentSource, StagedFile, StateDirectory, StateDirectoryAccessError,
    errors::none_if_missing, state_directory::invalid_name_error, sys, sys::file_io,
};

const BLOBS_DIRECTORY: &str = "blobs";
const FAN_OUT_CHARACTERS: usize = 2;
const DIGEST_CHARACTERS: usize = 64;
const BLOB_MODE: u32 = 0o400;

/// Whether a blob is synced to disk at once or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlobSyncTiming {
    /// The blob is synced to disk before the call that stores the blob returns.
    Now,
    /// The blob reaches the disk with the next sync of the whole file system.
    Later,
}

struct BlobFilePath {
    directory: String,
    name: FileName,
}

impl BlobFilePath {
    fn from_digest(digest_hex: &str) -> Result<Self, DiskError> {
        let is_digest = digest_hex.len() == DIGEST_CHARACTERS
            && digest_hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !is_digest {
            return Err(invalid_name_error());
        }
        let name = FileName::new(digest_hex.as_bytes()).map_err(|_| invalid_name_error())?;
        Ok(Self { directory: format!("{BLOBS_DIRECTORY}/{}", &digest_hex[..FAN_OUT_CHARACTERS]), name })
    }

    fn create_directory(&self, state: &StateDirectory) -> Result<DirectoryHandle, DiskError> {
        Ok(state.create_subdirectory(&self.directory)?.into_directory())
    }

    fn existing_directory(&self, state: &StateDirectory) -> Result<Option<DirectoryHandle>, DiskError> {
        Ok(state.existing_subdirectory(&self.directory)?.map(ServerOnlyDirectoryHandle::into_directory))
    }
}

impl StateDirectory {
    /// Stores content as a blob named by its SHA-256, unless the blob already exists. Storing a file as a blob fails
    /// with `ChangedConcurrently` if the file no longer has the hash `digest_hex`.
    pub fn put_blob(
        &self,
        digest_hex: &str,
        source: StagedContentSource<'_>,
        durable: BlobSyncTiming,
    ) -> Result<(), DiskError> {
        let slot = BlobFilePath::from_digest(digest_hex)?;
        let directory = slot.create_directory(self)?;
        if directory.stat(&slot.name)?.is_some() {
            return ensure_durable(self, &directory, &slot.name, durable);
        }
        let staged = directory.stage_file(source, FileAttributeSource::New { mode: BLOB_MODE })?;
        let placed = verify_digest(&staged, source, digest_hex).and_then(|()| {
            if durable == BlobSyncTiming::Now {
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

    /// Moves the file `name` out of the directory `from` and makes the file a blob. A file on another mount or with
    /// several hard links is copied to the blob and then removed.
    pub fn adopt_blob(&self, digest_hex: &str, from: &DirectoryHandle, name: &FileName) -> Result<(), DiskError> {
        let slot = BlobFilePath::from_digest(digest_hex)?;
        let directory = slot.create_directory(self)?;
        let opened = from.open_path_handle(name)?.ensure_file()?;
        if opened.meta.stat.hard_links > 1 {
            return self.copy_then_unlink(digest_hex, from, name);
        }
        match from.rename(name, &directory, &slot.name, ExistingTargetPolicy::Refuse) {
            Ok(()) => {
                // Setting the mode may fail for a file of another user. The error is ignored, because the blob
                // directory is private.
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
        self.put_blob(digest_hex, StagedContentSource::File(&from.open_file(name)?), BlobSyncTiming::Later)?;
        from.remove_file(name)
    }

    /// Opens a blob, or returns `None` if the blob does not exist.
    pub fn open_blob(&self, digest_hex: &str) -> Result<Option<OpenFile>, StateDirectoryAccessError> {
        let open = |slot: BlobFilePath| match slot.existing_directory(self)? {
            Some(directory) => none_if_missing(directory.open_file(&slot.name)),
            None => Ok(None),
        };
        BlobFilePath::from_digest(digest_hex).and_then(open).map_err(StateDirectoryAccessError)
    }

    /// Reads the content of a blob, or returns `None` if the blob does not exist. Reading a blob fails with `TooLarge`
    /// if its content exceeds `limit_bytes`.
    pub fn read_blob(&self, digest_hex: &str, limit_bytes: u64) -> Result<Option<Vec<u8>>, StateDirectoryAccessError> {
        let file = self.open_blob(digest_hex)?;
        file.map(|file| file.read_all(limit_bytes)).transpose().map_err(StateDirectoryAccessError)
    }

    /// Removes a blob and returns whether the blob existed.
    pub fn remove_blob(&self, digest_hex: &str) -> Result<bool, StateDirectoryAccessError> {
        let remove = |slot: BlobFilePath| match slot.existing_directory(self)? {
            Some(directory) => none_if_missing(directory.remove_file(&slot.name)),
            None => Ok(None),
        };
        let removed = BlobFilePath::from_digest(digest_hex).and_then(remove).map_err(StateDirectoryAccessError)?;
        Ok(removed.is_some())
    }
}

fn verify_digest(staged: &StagedFile, source: StagedContentSource<'_>, digest_hex: &str) -> Result<(), DiskError> {
    match source {
        StagedContentSource::Bytes(_) => Ok(()),
        StagedContentSource::File(_) => {
            let (digest, _) = staged.hash()?;
            let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            if hex == digest_hex { Ok(()) } else { Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "put blob")) }
        }
    }
}

/// An existing blob is synced, because an earlier call may have stored the blob without a sync.
fn ensure_durable(
    state: &StateDirectory,
    directory: &DirectoryHandle,
    name: &FileName,
    durable: BlobSyncTiming,
) -> Result<(), DiskError> {
    if durable == BlobSyncTiming::Now {
        file_io::sync_content(directory.open_file(name)?.handle())?;
    }
    sync_directories(state, directory, durable)
}

fn sync_directories(
    state: &StateDirectory,
    directory: &DirectoryHandle,
    durable: BlobSyncTiming,
) -> Result<(), DiskError> {
    if durable == BlobSyncTiming::Later {
        return Ok(());
    }
    directory.sync()?;
    state.create_subdirectory(BLOBS_DIRECTORY)?.as_directory().sync()?;
    state.root_directory()?.sync()
}
