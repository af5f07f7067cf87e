//! A staged file has its new content and attributes, but still a temporary name in its final directory; a rename then
//! gives it its final name. A staged file is created exclusively, never reached through a link, and removed if staging
//! fails. Staging neither syncs the staged file nor touches the file to be replaced.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use stead_path::FileName;

use crate::{
    DirectoryHandle, DiskError, DiskErrorKind, DiskStat, ExistingTargetPolicy, FileAttributeSource, LostAttribute,
    OpenFile, TEMPORARY_PREFIX, attributes,
    errors::none_if_missing,
    open_file::{CHUNK_BYTES, hash_first_bytes},
    random_bytes, sys,
    sys::file_io,
};

/// No two characters of a temporary name differ only in case, because some file systems ignore case in names.
const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Ten characters give a temporary name 50 random bits.
const TEMP_NAME_LETTERS: usize = 10;
const TEMP_NAME_TRIES_MAX: u32 = 8;
const COPY_BYTES_MAX: usize = 64 * 1024 * 1024;
const OWNER_ONLY_MODE: u32 = 0o600;

/// The source of the content of a staged file.
#[derive(Debug, Clone, Copy)]
pub enum StagedContentSource<'a> {
    Bytes(&'a [u8]),
    /// The content of the staged file is copied from an open file; if possible, the copy shares the blocks of the open
    /// file.
    File(&'a OpenFile),
}

/// A file with new content under a temporary name, kept open so that it can be synced and identified.
#[derive(Debug)]
pub struct StagedFile {
    name: FileName,
    file: OwnedFd,
    stat: DiskStat,
    lost_attributes: Vec<LostAttribute>,
}

impl StagedFile {
    /// The temporary name of the staged file.
    pub fn name(&self) -> &FileName {
        &self.name
    }

    /// The metadata that the staged file had when it got its content and attributes.
    pub fn stat(&self) -> &DiskStat {
        &self.stat
    }

    /// The attributes that could not be copied from the replaced file to the staged file.
    pub fn lost_attributes(&self) -> &[LostAttribute] {
        &self.lost_attributes
    }

    /// Returns the SHA-256 and the length of the staged content.
    pub fn hash(&self) -> Result<([u8; 32], u64), DiskError> {
        hash_first_bytes(self.file.as_fd(), self.stat.size)
    }

    /// Appends bytes to a staged file, for content that arrives in chunks.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), DiskError> {
        file_io::write_all_at(self.file.as_fd(), bytes, self.stat.size)?;
        self.stat.size += bytes.len() as u64;
        Ok(())
    }

    /// Syncs the content of the staged file to disk.
    pub fn sync(&self) -> Result<(), DiskError> {
        file_io::sync_content(self.file.as_fd())
    }

    /// Removes the file under the temporary name: the staged file or, after an exchange of names, the replaced file.
    pub fn discard(self, directory: &DirectoryHandle) -> Result<(), DiskError> {
        none_if_missing(directory.remove_file(&self.name)).map(|_| ())
    }
}

impl DirectoryHandle {
    /// Writes new content to a file with a temporary name in this directory, which becomes a staged file.
    pub fn stage_file(
        &self,
        content: StagedContentSource<'_>,
        attributes: FileAttributeSource<'_>,
    ) -> Result<StagedFile, DiskError> {
        let mode = match attributes {
            FileAttributeSource::New { mode } => mode & 0o777,
            FileAttributeSource::CopyFrom(_) => OWNER_ONLY_MODE,
        };
        let (name, file) = self.create_temp_file(mode)?;
        let filled = write_content(file.as_fd(), content).and_then(|()| match attributes {
            FileAttributeSource::New { .. } => Ok(Vec::new()),
            FileAttributeSource::CopyFrom(model) => attributes::copy_attributes(file.as_fd(), model),
        });
        let staged = filled.and_then(|lost_attributes| {
            let stat = sys::stat_handle(file.as_fd())?.stat;
            Ok(StagedFile { name: name.clone(), file, stat, lost_attributes })
        });
        if staged.is_err() {
            // The first error is reported. If removing the file also fails, the prefix of its name identifies the
            // leftover file.
            self.remove_file(&name).unwrap_or_default();
        }
        staged
    }

    /// Gives a staged file its final name; fails with `Exists` if a file with that name exists.
    pub fn rename_staged_to_new(&self, staged: &StagedFile, name: &FileName) -> Result<(), DiskError> {
        match self.rename(staged.name(), self, name, ExistingTargetPolicy::Refuse) {
            Err(error) if error.kind == DiskErrorKind::Unsupported => {
                // On every file system, creating a hard link fails if the target exists.
                let (directory, temp) = (self.path_handle(), staged.name().as_bytes());
                sys::hard_link(directory, temp, directory, name.as_bytes())?;
                sys::unlink(directory, temp)
            }
            other => other,
        }
    }

    /// Renames a staged file to `name`, and replaces the file that has this name.
    pub fn replace_with_staged(&self, staged: &StagedFile, name: &FileName) -> Result<(), DiskError> {
        self.rename(staged.name(), self, name, ExistingTargetPolicy::Replace)
    }

    /// Writes a small file atomically and durably, with the permissions `mode`.
    pub fn write_file(&self, name: &FileName, bytes: &[u8], mode: u32) -> Result<(), DiskError> {
        let staged = self.stage_file(StagedContentSource::Bytes(bytes), FileAttributeSource::New { mode })?;
        if let Err(error) = staged.sync().and_then(|()| self.replace_with_staged(&staged, name)) {
            staged.discard(self).unwrap_or_default();
            return Err(error);
        }
        self.sync()
    }

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

pub(crate) fn random_temp_name() -> Result<FileName, DiskError> {
    let bytes = random_bytes::<TEMP_NAME_LETTERS>()?;
    let mut name = TEMPORARY_PREFIX.as_bytes().to_vec();
    name.extend(bytes.iter().map(|byte| LETTERS[usize::from(byte % 32)]));
    FileName::new(&name).map_err(|_| DiskError::new(DiskErrorKind::NameTooLong, "random"))
}

fn write_content(to: BorrowedFd<'_>, source: StagedContentSource<'_>) -> Result<(), DiskError> {
    match source {
        StagedContentSource::Bytes(bytes) => file_io::write_all_at(to, bytes, 0),
        StagedContentSource::File(from) => copy_file(from, to),
    }
}

/// Bytes beyond the size that the source file had when it was opened are not copied.
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
            // If there is no space, copying in user space also fails. Any other error may be a limit of this system
            // call.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_names_differ_and_have_the_prefix() {
        let (one, two) = (random_temp_name().unwrap(), random_temp_name().unwrap());
        assert_ne!(one, two);
        assert!(one.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()));
        assert_eq!(one.as_bytes().len(), TEMPORARY_PREFIX.len() + TEMP_NAME_LETTERS);
    }
}
