//! The state directory, where the server stores its data about a workspace, and its lock file. The state directory
//! belongs to the server's user, is closed to other users, and is on a local file system. A
//! [`StateDirectoryAccessError`] is always about the server's own files, so a failure in the workspace never looks like
//! a broken state directory.
//!
//! A lock covers one byte of the lock file (a slot) and belongs to an open file description, not to a process. Threads
//! that share one [`MultiSlotLockFile`] share its locks, so threads that must exclude each other open the lock file
//! separately.

use std::{
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};
use stead_path::{FileName, RelPath};

use crate::{
    DirectoryHandle, DiskError, DiskErrorKind, DiskSpace, InodeId, RootDirectory, RootDirectoryOptions,
    confinement::OPathFdWithStat,
    errors::none_if_missing,
    mounts, sys,
    sys::{file_io::lock_range, inotify_calls},
};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
const LOCK_FILE_NAME: &str = "locks";

/// The error of a failed access to the server's own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct StateDirectoryAccessError(pub(crate) DiskError);

impl StateDirectoryAccessError {
    /// The cause of the failed access to the server's own files.
    pub fn kind(&self) -> DiskErrorKind {
        self.0.kind
    }
}

impl From<StateDirectoryAccessError> for DiskError {
    fn from(error: StateDirectoryAccessError) -> Self {
        error.0
    }
}

/// A directory that only the server uses, either in the state directory or hidden in the workspace.
#[derive(Debug)]
pub struct ServerOnlyDirectoryHandle(DirectoryHandle);

impl ServerOnlyDirectoryHandle {
    /// Wraps a directory that is in the workspace but hidden from all callers, such as a trash directory.
    pub fn hidden_in_workspace(directory: DirectoryHandle) -> Self {
        Self(directory)
    }

    /// Runs `work`, whose errors become a [`StateDirectoryAccessError`]; `work` must access only this directory.
    pub fn with<T>(
        &self,
        work: impl FnOnce(&DirectoryHandle) -> Result<T, DiskError>,
    ) -> Result<T, StateDirectoryAccessError> {
        work(&self.0).map_err(StateDirectoryAccessError)
    }

    /// Opens a subdirectory of this server-only directory.
    pub fn open_directory(&self, name: &FileName) -> Result<Self, StateDirectoryAccessError> {
        self.with(|directory| directory.open_directory(name)).map(Self)
    }

    /// The plain handle of this directory, for calls that also access the workspace, such as moving a file here.
    pub fn as_directory(&self) -> &DirectoryHandle {
        &self.0
    }

    /// Converts a server-only directory handle into the plain handle of the directory.
    pub fn into_directory(self) -> DirectoryHandle {
        self.0
    }
}

/// An open state directory, where the server stores its data about a workspace.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    root: RootDirectory,
    path: PathBuf,
}

impl StateDirectory {
    /// Opens a state directory, and creates the state directory if it is missing.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let path = std::path::absolute(path).map_err(|error| from_io_error("state directory", &error))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&path)
            .map_err(|error| from_io_error("state directory", &error))?;
        let opened =
            OPathFdWithStat::from_handle(sys::open_trusted(&path, sys::PATH_HANDLE_FLAGS)?)?.ensure_directory()?;
        let stat = opened.meta.stat;
        if stat.uid != rustix::process::geteuid().as_raw() {
            return Err(DiskError::new(DiskErrorKind::PermissionDenied, "state directory owner"));
        }
        mounts::refuse_network_filesystem(opened.handle.as_fd(), &opened.meta)?;
        if stat.mode & 0o077 != 0 {
            sys::set_mode_by_path_handle(opened.handle.as_fd(), DIRECTORY_MODE)?;
        }
        let root = RootDirectory::open(&path, RootDirectoryOptions::default())?;
        if root.id() != opened.meta.id() {
            return Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "state directory"));
        }
        Ok(Self { root, path })
    }

    /// The device and inode numbers by which a workspace recognises and hides a state directory inside it.
    pub fn id(&self) -> InodeId {
        self.root.id()
    }

    /// The absolute path of the state directory, for the embedded database, which opens its files itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The free and total space of the file system of the state directory.
    pub fn disk_space(&self) -> Result<DiskSpace, StateDirectoryAccessError> {
        self.root.disk_space().map_err(StateDirectoryAccessError)
    }

    /// Opens a subdirectory of the state directory, and creates it if it is missing; `sub` may have several components.
    pub fn create_subdirectory(&self, sub: &str) -> Result<ServerOnlyDirectoryHandle, StateDirectoryAccessError> {
        subdirectory_path(sub)
            .and_then(|path| self.root.create_directories(&path, DIRECTORY_MODE))
            .map(|(directory, _)| ServerOnlyDirectoryHandle(directory))
            .map_err(StateDirectoryAccessError)
    }

    /// Opens a subdirectory of the state directory, or returns `None` if the subdirectory does not exist.
    pub fn existing_subdirectory(
        &self,
        sub: &str,
    ) -> Result<Option<ServerOnlyDirectoryHandle>, StateDirectoryAccessError> {
        let opened = subdirectory_path(sub).and_then(|path| self.root.open_directory(&path));
        none_if_missing(opened.map(ServerOnlyDirectoryHandle)).map_err(StateDirectoryAccessError)
    }

    /// Syncs the file system of the state directory.
    pub fn sync_file_system(&self) -> Result<(), StateDirectoryAccessError> {
        self.root.sync_file_system().map_err(StateDirectoryAccessError)
    }

    /// Opens a handle of the state directory, to watch it for changes by other processes.
    pub fn root_directory(&self) -> Result<DirectoryHandle, DiskError> {
        self.root.open_directory(&RelPath::root())
    }

    /// Opens the lock file of the state directory; each returned [`MultiSlotLockFile`] holds its own locks.
    pub fn open_lock_file(&self) -> Result<MultiSlotLockFile, StateDirectoryAccessError> {
        let open = |root: DirectoryHandle| {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
            let file: OwnedFd =
                sys::open_name(root.path_handle(), LOCK_FILE_NAME.as_bytes(), flags, FILE_MODE).map_err(|error| {
                    if error.is_errno(Errno::LOOP) { error.with_kind(DiskErrorKind::IsSymlink) } else { error }
                })?;
            Ok(MultiSlotLockFile { file: OPathFdWithStat::from_handle(file)?.ensure_file()?.handle })
        };
        self.root_directory().and_then(open).map_err(StateDirectoryAccessError)
    }
}

/// Whether a lock on a slot of the lock file is shared or exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Several processes can hold a shared lock on the same slot of the lock file.
    Shared,
    /// An exclusive lock excludes all other locks on the same slot of the lock file.
    Exclusive,
}

/// An open lock file, whose locks are released when it is dropped.
#[derive(Debug)]
pub struct MultiSlotLockFile {
    file: OwnedFd,
}

impl MultiSlotLockFile {
    /// Locks a slot of the lock file without waiting, or changes the mode of a lock that is already held. Locking a
    /// slot returns `false` if another process holds a conflicting lock on the slot. The largest slot number is
    /// `i64::MAX - 1`.
    pub fn try_lock(&self, slot: u64, mode: LockMode) -> Result<bool, StateDirectoryAccessError> {
        lock_range(self.file.as_fd(), slot, 1, Some(mode)).map_err(StateDirectoryAccessError)
    }

    /// Releases the lock on a slot of the lock file, if the lock is held.
    pub fn unlock(&self, slot: u64) -> Result<(), StateDirectoryAccessError> {
        lock_range(self.file.as_fd(), slot, 1, None).map(|_| ()).map_err(StateDirectoryAccessError)
    }

    /// Notifies every process that watches the lock file. A notification of the lock file can be missed, so watching
    /// processes also poll.
    pub fn notify_watchers(&self) {
        inotify_calls::update_timestamps(self.file.as_fd());
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for MultiSlotLockFile {
    fn drop(&mut self) {
        // Closing the file does not always release the locks: a child process that is being started may still share the
        // handle.
        lock_range(self.file.as_fd(), 0, 0, None).unwrap_or_default();
    }
}

fn subdirectory_path(sub: &str) -> Result<RelPath, DiskError> {
    RelPath::from_components(sub.split('/').map(str::as_bytes)).map_err(|_| invalid_name_error())
}

pub(crate) fn invalid_name_error() -> DiskError {
    DiskError::from_errno("state name", Errno::INVAL)
}

pub(crate) fn from_io_error(call: &'static str, error: &std::io::Error) -> DiskError {
    match error.raw_os_error() {
        Some(number) => DiskError::from_errno(call, Errno::from_raw_os_error(number)),
        None => DiskError::new(DiskErrorKind::Io, call),
    }
}
