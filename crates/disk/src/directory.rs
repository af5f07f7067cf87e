//! Changes files by a single name in an open directory, so that no path is resolved twice. No call on a directory
//! follows a link, enters a mount that is not allowed, or reaches a hidden directory. The kernel checks atomically with
//! a rename whether the target exists.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use rustix::{fs::RenameFlags, io::Errno};
use stead_path::FileName;

use crate::{
    DiskError, DiskErrorKind, DiskStat, FileType, InodeId, OpenFile,
    confinement::{ConfinedPathResolver, OPathFdWithStat},
    errors::none_if_missing,
    sys,
    sys::file_io,
};

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskDirectoryEntry {
    pub name: FileName,
    /// The type at the time of the listing.
    pub file_type: FileType,
}

/// What a rename does if the target name already exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingTargetPolicy {
    /// The rename fails with the error `Exists` if the target name exists.
    Refuse,
    /// The source and the target exchange their names.
    Exchange,
    Replace,
}

impl ExistingTargetPolicy {
    fn rename_flags(self) -> RenameFlags {
        match self {
            Self::Refuse => RenameFlags::NOREPLACE,
            Self::Exchange => RenameFlags::EXCHANGE,
            Self::Replace => RenameFlags::empty(),
        }
    }
}

/// An open directory in a workspace or a state directory.
#[derive(Debug)]
pub struct DirectoryHandle {
    opened: OPathFdWithStat,
    confinement: Arc<ConfinedPathResolver>,
}

impl DirectoryHandle {
    pub(crate) fn from_path_handle(
        opened: OPathFdWithStat,
        confinement: Arc<ConfinedPathResolver>,
    ) -> Result<Self, DiskError> {
        Ok(Self { opened: opened.ensure_directory()?, confinement })
    }

    pub(crate) fn path_handle(&self) -> BorrowedFd<'_> {
        self.opened.handle.as_fd()
    }

    pub(crate) fn open_path_handle(&self, name: &FileName) -> Result<OPathFdWithStat, DiskError> {
        self.confinement.child(&self.opened, name.as_bytes())
    }

    /// Opens this directory again, because two listings must not share one read position.
    pub(crate) fn reopen_for_listing(&self) -> Result<OwnedFd, DiskError> {
        sys::open_name(self.path_handle(), b".", sys::LIST_FLAGS, 0)
    }

    pub(crate) fn refuse_hidden(&self, name: &FileName) -> Result<(), DiskError> {
        if !self.confinement.hides_anything() {
            return Ok(());
        }
        let meta = none_if_missing(sys::stat_name(self.path_handle(), name.as_bytes()))?;
        meta.map_or(Ok(()), |meta| self.confinement.refuse_hidden_inode(meta.id()))
    }

    /// The device and inode numbers that identify this directory.
    pub fn id(&self) -> InodeId {
        self.opened.meta.id()
    }

    /// Whether this directory and `other` are on the same mount, so that files can be renamed between them.
    pub fn shares_mount(&self, other: &Self) -> bool {
        let mount_id = self.opened.meta.mount_id;
        mount_id.is_some() && mount_id == other.opened.meta.mount_id
    }

    /// The metadata of this directory.
    pub fn stat_self(&self) -> Result<DiskStat, DiskError> {
        Ok(sys::stat_handle(self.path_handle())?.stat)
    }

    /// Opens a second handle for this directory.
    pub fn try_clone(&self) -> Result<Self, DiskError> {
        Ok(Self { opened: self.opened.try_clone()?, confinement: Arc::clone(&self.confinement) })
    }

    /// Lists the entries of this directory that are not hidden, in the order of the file system.
    pub fn list(&self) -> Result<Vec<DiskDirectoryEntry>, DiskError> {
        self.list_with_handle(self.reopen_for_listing()?.as_fd())
    }

    /// Opens a subdirectory of this directory and lists its entries through one handle.
    pub fn open_and_list(&self, name: &FileName) -> Result<(Self, Vec<DiskDirectoryEntry>), DiskError> {
        match self.confinement.open_child(&self.opened, name.as_bytes(), sys::LIST_FLAGS) {
            Err(error) if error.kind == DiskErrorKind::CrossesMount => {
                let entered = self.open_directory(name)?;
                let entries = entered.list()?;
                Ok((entered, entries))
            }
            opened => {
                let entered = Self::from_path_handle(opened?, Arc::clone(&self.confinement))?;
                let entries = entered.list_with_handle(entered.path_handle())?;
                Ok((entered, entries))
            }
        }
    }

    fn list_with_handle(&self, readable: BorrowedFd<'_>) -> Result<Vec<DiskDirectoryEntry>, DiskError> {
        let mut entries = Vec::new();
        sys::list_directory(readable, |bytes, file_type, ino| {
            // The kernel returns only valid names.
            let Ok(name) = FileName::new(bytes) else { return Ok(()) };
            if file_type != FileType::Unknown && !self.confinement.may_hide_inode(ino) {
                entries.push(DiskDirectoryEntry { name, file_type });
                return Ok(());
            }
            match sys::stat_name(self.path_handle(), bytes) {
                Ok(meta) if self.confinement.refuse_hidden_inode(meta.id()).is_err() => {}
                Ok(meta) => entries.push(DiskDirectoryEntry { name, file_type: meta.stat.file_type }),
                Err(error) if error.kind == DiskErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        Ok(entries)
    }

    /// The metadata of an entry of this directory without following a link; `None` if the entry does not exist.
    pub fn stat(&self, name: &FileName) -> Result<Option<DiskStat>, DiskError> {
        let meta = self.confinement.stat_child(&self.opened, name.as_bytes());
        none_if_missing(meta.map(|meta| meta.stat))
    }

    /// Opens a subdirectory of this directory.
    pub fn open_directory(&self, name: &FileName) -> Result<Self, DiskError> {
        Self::from_path_handle(self.open_path_handle(name)?, Arc::clone(&self.confinement))
    }

    /// Opens a regular file in this directory for reading.
    pub fn open_file(&self, name: &FileName) -> Result<OpenFile, DiskError> {
        OpenFile::from_path_handle(&self.open_path_handle(name)?, || {
            sys::open_name(self.path_handle(), name.as_bytes(), sys::READ_FLAGS, 0)
        })
    }

    /// Opens a file that a directory listing reported as a regular file; one system call suffices. If a FIFO or device
    /// replaced the listed file, opening fails without blocking.
    pub fn open_listed_file(&self, name: &FileName) -> Result<OpenFile, DiskError> {
        match self.confinement.open_child(&self.opened, name.as_bytes(), sys::READ_FLAGS) {
            Err(error) if error.kind == DiskErrorKind::CrossesMount => self.open_file(name),
            opened => OpenFile::from_open_handle(opened?),
        }
    }

    /// The target of a symbolic link in this directory, exactly as stored.
    pub fn read_link(&self, name: &FileName) -> Result<Vec<u8>, DiskError> {
        link_target(&self.open_path_handle(name)?)
    }

    /// Creates a subdirectory with the permission bits of `mode`, limited by the umask.
    pub fn create_directory(&self, name: &FileName, mode: u32) -> Result<(), DiskError> {
        sys::create_directory(self.path_handle(), name.as_bytes(), mode & 0o777)
    }

    /// Creates a symbolic link in this directory without checking its target.
    pub fn create_symlink(&self, name: &FileName, target: &[u8]) -> Result<(), DiskError> {
        sys::create_symlink(self.path_handle(), name.as_bytes(), target)
    }

    /// Renames an entry of this directory to `to_name` in the directory `to`. A rename fails with `CrossesMount` if
    /// `to` is on another mount. A rename fails with `Unsupported` if the file system does not support `if_exists`.
    pub fn rename(
        &self,
        name: &FileName,
        to: &Self,
        to_name: &FileName,
        if_exists: ExistingTargetPolicy,
    ) -> Result<(), DiskError> {
        self.refuse_hidden(name)?;
        to.refuse_hidden(to_name)?;
        let (from, from_name) = (self.path_handle(), name.as_bytes());
        match sys::rename(from, from_name, to.path_handle(), to_name.as_bytes(), if_exists.rename_flags()) {
            Err(error) if error.is_errno(Errno::INVAL) && if_exists != ExistingTargetPolicy::Replace => {
                Err(error.with_kind(DiskErrorKind::Unsupported))
            }
            other => other,
        }
    }

    /// Removes a file, symbolic link or special file from this directory.
    pub fn remove_file(&self, name: &FileName) -> Result<(), DiskError> {
        sys::unlink(self.path_handle(), name.as_bytes())
    }

    /// Removes an empty subdirectory of this directory.
    pub fn remove_directory(&self, name: &FileName) -> Result<(), DiskError> {
        self.refuse_hidden(name)?;
        sys::remove_directory(self.path_handle(), name.as_bytes())
    }

    /// Sets the permissions of a file or directory; a file loses its set-id bits, a directory keeps them.
    pub fn set_mode(&self, name: &FileName, mode: u32) -> Result<(), DiskError> {
        let opened = self.open_path_handle(name)?;
        let special_bits = match opened.file_type() {
            FileType::RegularFile => 0,
            FileType::Directory => opened.meta.stat.mode & 0o7000,
            FileType::Symlink => return Err(DiskError::new(DiskErrorKind::IsSymlink, "set mode")),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => {
                return Err(DiskError::new(DiskErrorKind::NotRegularFile, "set mode"));
            }
        };
        sys::set_mode_by_path_handle(opened.handle.as_fd(), special_bits | (mode & 0o777))
    }

    /// Syncs the list of entries of this directory to disk.
    pub fn sync(&self) -> Result<(), DiskError> {
        file_io::sync_all(self.reopen_for_listing()?.as_fd())
    }
}

/// Reading the target of a link fails with `ChangedConcurrently` if another file has replaced the link.
pub(crate) fn link_target(opened: &OPathFdWithStat) -> Result<Vec<u8>, DiskError> {
    if opened.file_type() != FileType::Symlink {
        return Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "read link"));
    }
    sys::read_link(opened.handle.as_fd())
}
