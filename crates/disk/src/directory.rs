//! An open directory. All changes of the workspace are made here, by parent handle and one name, so that no path is
//! resolved twice. Promises: no call follows a link, enters a mount that is not allowed, or reaches a hidden
//! directory. Never joins strings to paths.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::Arc,
};

use stead_path::FileName;

use crate::{
    DiskError, DiskErrorKind, DiskStat, FileType, InodeId, OpenFile,
    confinement::{Confinement, PathHandle, duplicate_handle},
    sys,
    sys::file_io,
};

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskDirectoryEntry {
    /// Its name.
    pub name: FileName,
    /// Its type, as the directory lists it.
    pub file_type: FileType,
}

/// An open directory below a root.
#[derive(Debug)]
pub struct DirectoryHandle {
    path_handle: OwnedFd,
    id: InodeId,
    mount_id: Option<u64>,
    confinement: Arc<Confinement>,
}

impl DirectoryHandle {
    pub(crate) fn from_path_handle(opened: PathHandle, rules: Arc<Confinement>) -> Result<Self, DiskError> {
        let opened = opened.ensure_directory()?;
        Ok(Self {
            id: opened.meta.id(),
            mount_id: opened.meta.mount_id,
            path_handle: opened.handle,
            confinement: rules,
        })
    }

    pub(crate) fn path_handle(&self) -> BorrowedFd<'_> {
        self.path_handle.as_fd()
    }

    /// A path handle for one name, not followed.
    pub(crate) fn open_path_handle(&self, name: &FileName) -> Result<PathHandle, DiskError> {
        self.confinement.child_of(self.path_handle(), self.mount_id, name.as_bytes())
    }

    /// A handle for listing and syncing, with its own cursor.
    pub(crate) fn reopen_for_listing(&self) -> Result<OwnedFd, DiskError> {
        sys::open_name(self.path_handle(), b".", sys::LIST_FLAGS, 0)
    }

    /// Refuses the name of a hidden directory.
    pub(crate) fn refuse_hidden(&self, name: &FileName) -> Result<(), DiskError> {
        if !self.confinement.hides_anything() {
            return Ok(());
        }
        match sys::stat_name(self.path_handle(), name.as_bytes()) {
            Ok(meta) => self.confinement.refuse_hidden_inode(meta.id()),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The identity of the directory.
    pub fn id(&self) -> InodeId {
        self.id
    }

    /// Whether a rename between the two is possible: no rename crosses a mount, not even within one file system.
    pub fn shares_mount(&self, other: &Self) -> bool {
        self.mount_id.is_some() && self.mount_id == other.mount_id
    }

    /// The stat of the directory.
    pub fn stat_self(&self) -> Result<DiskStat, DiskError> {
        Ok(sys::stat_handle(self.path_handle())?.stat)
    }

    /// A second handle for the same directory.
    pub fn try_clone(&self) -> Result<Self, DiskError> {
        let duplicate = duplicate_handle(self.path_handle())?;
        Ok(Self {
            path_handle: duplicate,
            id: self.id,
            mount_id: self.mount_id,
            confinement: Arc::clone(&self.confinement),
        })
    }

    /// All entries except hidden ones, in the order of the file system.
    pub fn list(&self) -> Result<Vec<DiskDirectoryEntry>, DiskError> {
        self.list_with_handle(self.reopen_for_listing()?.as_fd())
    }

    /// Opens a child directory and lists it: [`DirectoryHandle::open_directory`] and [`DirectoryHandle::list`] with
    /// one handle.
    pub fn open_and_list(&self, name: &FileName) -> Result<(Self, Vec<DiskDirectoryEntry>), DiskError> {
        match self.confinement.open_child(self.path_handle(), self.mount_id, name.as_bytes(), sys::LIST_FLAGS) {
            Ok(opened) => {
                let entered = Self::from_path_handle(opened, Arc::clone(&self.confinement))?;
                let entries = entered.list_with_handle(entered.path_handle())?;
                Ok((entered, entries))
            }
            Err(error) if error.kind == DiskErrorKind::CrossesMount => {
                let entered = self.open_directory(name)?;
                let entries = entered.list()?;
                Ok((entered, entries))
            }
            Err(error) => Err(error),
        }
    }

    /// Lists with a handle whose cursor is not shared.
    fn list_with_handle(&self, readable: BorrowedFd<'_>) -> Result<Vec<DiskDirectoryEntry>, DiskError> {
        let mut entries = Vec::new();
        sys::list_directory(readable, |bytes, file_type, ino| {
            // The kernel returns only valid names.
            let Ok(name) = FileName::new(bytes) else { return Ok(()) };
            let may_hide = self.confinement.may_hide_inode(ino);
            if file_type != FileType::Unknown && !may_hide {
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

    /// The stat of a name; `None` if it does not exist. Never follows a link.
    pub fn stat(&self, name: &FileName) -> Result<Option<DiskStat>, DiskError> {
        match self.confinement.stat_child(self.path_handle(), self.mount_id, name.as_bytes()) {
            Ok(meta) => Ok(Some(meta.stat)),
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a child directory.
    pub fn open_directory(&self, name: &FileName) -> Result<Self, DiskError> {
        Self::from_path_handle(self.open_path_handle(name)?, Arc::clone(&self.confinement))
    }

    /// Opens a regular file in this directory for reading.
    pub fn open_file(&self, name: &FileName) -> Result<OpenFile, DiskError> {
        OpenFile::from_path_handle(self.open_path_handle(name)?, || {
            sys::open_name(self.path_handle(), name.as_bytes(), sys::READ_FLAGS, 0)
        })
    }

    /// Opens a file that a listing showed as regular, in one step instead of two: for reading many files. If it is no
    /// longer a regular file, it is opened without blocking, rejected, and never read.
    pub fn open_listed_file(&self, name: &FileName) -> Result<OpenFile, DiskError> {
        match self.confinement.open_child(self.path_handle(), self.mount_id, name.as_bytes(), sys::READ_FLAGS) {
            Ok(opened) => OpenFile::from_open_handle(opened),
            Err(error) if error.kind == DiskErrorKind::CrossesMount => self.open_file(name),
            Err(error) => Err(error),
        }
    }

    /// The target of a link in this directory, as stored.
    pub fn read_link(&self, name: &FileName) -> Result<Vec<u8>, DiskError> {
        link_target(&self.open_path_handle(name)?)
    }

    /// Creates a directory; the umask applies to `mode`. Set-id bits are never set.
    pub fn create_directory(&self, name: &FileName, mode: u32) -> Result<(), DiskError> {
        sys::create_directory(self.path_handle(), name.as_bytes(), mode & 0o777)
    }

    /// Creates a symbolic link; the target is not checked.
    pub fn create_symlink(&self, name: &FileName, target: &[u8]) -> Result<(), DiskError> {
        sys::create_symlink(self.path_handle(), name.as_bytes(), target)
    }

    /// Removes a name that is not a directory.
    pub fn remove_file(&self, name: &FileName) -> Result<(), DiskError> {
        sys::unlink(self.path_handle(), name.as_bytes())
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, name: &FileName) -> Result<(), DiskError> {
        self.refuse_hidden(name)?;
        sys::remove_directory(self.path_handle(), name.as_bytes())
    }

    /// Sets the permission bits of a file or directory. Set-id bits of files are cleared, never set; those of
    /// directories are kept.
    pub fn set_mode(&self, name: &FileName, mode: u32) -> Result<(), DiskError> {
        let opened = self.open_path_handle(name)?;
        let kept = match opened.file_type() {
            FileType::File => 0,
            FileType::Directory => opened.meta.stat.mode & 0o7000,
            FileType::Symlink => return Err(DiskError::new(DiskErrorKind::IsSymlink, "set mode")),
            FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice | FileType::Unknown => {
                return Err(DiskError::new(DiskErrorKind::NotRegularFile, "set mode"));
            }
        };
        sys::set_mode_by_path_handle(opened.handle.as_fd(), kept | (mode & 0o777))
    }

    /// Syncs the entries of this directory.
    pub fn sync(&self) -> Result<(), DiskError> {
        file_io::sync_all(self.reopen_for_listing()?.as_fd())
    }
}

/// The target of an open link.
pub(crate) fn link_target(opened: &PathHandle) -> Result<Vec<u8>, DiskError> {
    match opened.file_type() {
        FileType::Symlink => sys::read_link(opened.handle.as_fd()),
        FileType::File
        | FileType::Directory
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharDevice
        | FileType::BlockDevice
        // The caller has seen a link there.
        | FileType::Unknown => Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "read link")),
    }
}
