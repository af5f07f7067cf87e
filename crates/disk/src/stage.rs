//! Staged files: new content with its attributes, under a temporary name in its final directory. Owns temporary names
//! and the copying of bytes. Promises: a staged file is created exclusively, never reached through a link, and removed
//! if staging fails. Never syncs on its own and never touches the final name.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use stead_path::FileName;

use crate::{
    AttributeSource, DirectoryHandle, DiskError, DiskErrorKind, InodeFingerprint, InodeId, LostAttribute, OpenFile,
    attributes,
    open_file::{CHUNK_BYTES, hash_first_bytes},
    random::random_temp_name,
    sys,
    sys::file_io,
};

/// How often another name is tried when one is taken.
const TEMP_NAME_TRIES_MAX: u32 = 8;
/// The most bytes of one copy in the kernel.
const COPY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The mode of a file before its attributes are set.
const OWNER_ONLY_MODE: u32 = 0o600;

/// The source of new content.
#[derive(Debug, Clone, Copy)]
pub enum ContentSource<'a> {
    /// From memory.
    Bytes(&'a [u8]),
    /// From an open file: blocks are shared if the file system supports it, else copied.
    File(&'a OpenFile),
}

/// New content under a temporary name. The handle stays open, so that the file can be synced and identified.
#[derive(Debug)]
pub struct StagedFile {
    name: FileName,
    file: OwnedFd,
    id: InodeId,
    created_ns: Option<i128>,
    size: u64,
    lost_attributes: Vec<LostAttribute>,
}

impl StagedFile {
    fn from_file(name: FileName, file: OwnedFd, lost: Vec<LostAttribute>) -> Result<Self, DiskError> {
        let stat = sys::stat_handle(file.as_fd())?.stat;
        Ok(Self {
            name,
            file,
            id: stat.fingerprint.id,
            created_ns: stat.created_ns,
            size: stat.size,
            lost_attributes: lost,
        })
    }

    /// The temporary name.
    pub fn name(&self) -> &FileName {
        &self.name
    }

    /// The identity of the file, also after a rename.
    pub fn id(&self) -> InodeId {
        self.id
    }

    /// The creation time, if the file system records it.
    pub fn created_ns(&self) -> Option<i128> {
        self.created_ns
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Attributes that could not be copied from the model file.
    pub fn lost_attributes(&self) -> &[LostAttribute] {
        &self.lost_attributes
    }

    /// The current fingerprint; a rename changes it.
    pub fn fingerprint(&self) -> Result<InodeFingerprint, DiskError> {
        Ok(sys::stat_handle(self.file.as_fd())?.stat.fingerprint)
    }

    /// The SHA-256 of the staged content and its length.
    pub fn hash(&self) -> Result<([u8; 32], u64), DiskError> {
        hash_first_bytes(self.file.as_fd(), self.size)
    }

    /// Appends bytes, for content that arrives in chunks. Only for files staged from bytes.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        file_io::write_all_at(self.file.as_fd(), bytes, self.size)?;
        self.size += bytes.len() as u64;
        Ok(())
    }

    /// Syncs the content. `PermissionDenied` for an adopted file that the server may not read.
    pub fn sync(&self) -> Result<(), DiskError> {
        file_io::sync_content(self.file.as_fd()).map_err(|error| {
            if error.is_errno(Errno::BADF) { error.with_kind(DiskErrorKind::PermissionDenied) } else { error }
        })
    }

    /// Removes the temporary name, whatever file it now refers to.
    pub fn discard(self, directory: &DirectoryHandle) -> Result<(), DiskError> {
        match directory.remove_file(&self.name) {
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(()),
            other => other,
        }
    }
}

impl DirectoryHandle {
    /// Writes new content under a temporary name in this directory.
    pub fn stage_file(
        &self,
        content: ContentSource<'_>,
        attributes: AttributeSource<'_>,
    ) -> Result<StagedFile, DiskError> {
        let mode = match attributes {
            AttributeSource::New { mode } => mode & 0o777,
            AttributeSource::CopyFrom(_) => OWNER_ONLY_MODE,
        };
        let (name, file) = self.create_temp_file(mode)?;
        let filled = write_content(file.as_fd(), content).and_then(|()| match attributes {
            AttributeSource::New { .. } => Ok(Vec::new()),
            AttributeSource::CopyFrom(model) => attributes::copy_attributes(file.as_fd(), model),
        });
        let staged = filled.and_then(|lost| StagedFile::from_file(name.clone(), file, lost));
        if staged.is_err() {
            // The first error is reported; a leftover is recognised by its prefix.
            self.remove_file(&name).unwrap_or_default();
        }
        staged
    }

    /// Reopens a staged file by its recorded name; `None` if it is gone.
    pub fn reopen_staged(&self, name: &FileName) -> Result<Option<StagedFile>, DiskError> {
        let path_handle = match self.open_path_handle(name) {
            Err(error) if error.kind == DiskErrorKind::NotFound => return Ok(None),
            other => other?.ensure_file()?,
        };
        let id = path_handle.meta.id();
        let file = match sys::reopen_path_handle(path_handle.handle.as_fd(), sys::READ_FLAGS) {
            // An old file under the temporary name may be unreadable; it can still be identified and moved.
            Err(error) if error.kind == DiskErrorKind::PermissionDenied => path_handle.handle,
            other => other?,
        };
        let staged = StagedFile::from_file(name.clone(), file, Vec::new())?;
        if staged.id == id {
            Ok(Some(staged))
        } else {
            Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "adopt staged"))
        }
    }

    /// An empty file under an unused name.
    fn create_temp_file(&self, mode: u32) -> Result<(FileName, OwnedFd), DiskError> {
        let mut tries = 1;
        loop {
            let name = random_temp_name()?;
            match sys::open_name(self.path_handle(), name.as_bytes(), sys::CREATE_FLAGS, mode) {
                Err(error) if error.kind == DiskErrorKind::Exists && tries < TEMP_NAME_TRIES_MAX => tries += 1,
                other => return Ok((name, other?)),
            }
        }
    }
}

/// Writes the content to an empty file.
fn write_content(to: BorrowedFd<'_>, source: ContentSource<'_>) -> Result<(), DiskError> {
    match source {
        ContentSource::Bytes(bytes) => file_io::write_all_at(to, bytes, 0),
        ContentSource::File(from) => copy_file(from, to),
    }
}

/// Shares blocks, copies in the kernel, or copies in user space; at most the size seen when `from` was opened.
fn copy_file(from: &OpenFile, to: BorrowedFd<'_>) -> Result<(), DiskError> {
    let size = from.stat().size;
    if size == 0 || file_io::clone_file(from.handle(), to).is_ok() {
        return Ok(());
    }
    let mut offset = 0;
    while offset < size {
        let chunk_size = usize::try_from(size - offset).unwrap_or(COPY_BYTES_MAX).min(COPY_BYTES_MAX);
        match file_io::copy_range(from.handle(), to, offset, chunk_size) {
            Ok(0) => break,
            Ok(count) => offset += count as u64,
            // Copying in user space does not help if there is no space; other errors may be limits of the call.
            Err(error) if matches!(error.kind, DiskErrorKind::NoSpace | DiskErrorKind::QuotaExceeded) => {
                return Err(error);
            }
            Err(_) => break,
        }
    }
    copy_by_reading(from, to, offset, size)
}

fn copy_by_reading(from: &OpenFile, to: BorrowedFd<'_>, start: u64, size: u64) -> Result<(), DiskError> {
    let mut offset = start;
    let mut buffer = Vec::new();
    while offset < size {
        let chunk_size = usize::try_from(size - offset).unwrap_or(CHUNK_BYTES).min(CHUNK_BYTES);
        buffer.resize(chunk_size, 0);
        let count = file_io::read_at(from.handle(), &mut buffer, offset)?;
        if count == 0 {
            break;
        }
        file_io::write_all_at(to, &buffer[..count], offset)?;
        offset += count as u64;
    }
    Ok(())
}
