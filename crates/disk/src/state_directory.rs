//! The state directory: data about a workspace that is not part of it. Promises: it belongs to the user of the server,
//! is closed to others, is not a symbolic link, and is on a local file system.

use std::{
    os::fd::{AsFd, OwnedFd},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};
use stead_path::{FileName, RelPath};

use crate::{
    AttributeSource, ContentSource, DirectoryHandle, DiskError, DiskErrorKind, InodeId, LockFile, PrivateDirectory,
    RootDirectory, RootOptions, StateError, confinement::PathHandle, network, sys,
};

const DIRECTORY_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// The file whose bytes are locks.
const LOCK_FILE_NAME: &str = "locks";
/// The largest secret that is read.
const SECRET_BYTES_MAX: u64 = 1024 * 1024;

/// An open state directory.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    root: RootDirectory,
    path: PathBuf,
}

impl StateDirectory {
    /// Opens a state directory; creates it if missing.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let path = std::path::absolute(path).map_err(|error| from_io_error("state directory", &error))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&path)
            .map_err(|error| from_io_error("state directory", &error))?;
        let opened = PathHandle::from_handle(sys::open_trusted(&path, sys::PATH_HANDLE_FLAGS)?)?.ensure_directory()?;
        let stat = opened.meta.stat;
        if stat.uid != rustix::process::geteuid().as_raw() {
            return Err(DiskError::new(DiskErrorKind::PermissionDenied, "state directory owner"));
        }
        network::refuse_network_filesystem(opened.handle.as_fd(), &opened.meta)?;
        if stat.mode & 0o077 != 0 {
            sys::set_mode_by_path_handle(opened.handle.as_fd(), DIRECTORY_MODE)?;
        }
        let root = RootDirectory::open(&path, RootOptions::default())?;
        if root.id() != opened.meta.id() {
            return Err(DiskError::new(DiskErrorKind::ChangedConcurrently, "state directory"));
        }
        Ok(Self { root, path })
    }

    /// The identity of the directory, for hiding it from a workspace that contains it.
    pub fn id(&self) -> InodeId {
        self.root.id()
    }

    /// The absolute path, for the embedded database, which opens its own files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The space on its file system.
    pub fn disk_space(&self) -> Result<crate::DiskSpace, StateError> {
        self.root.disk_space().map_err(StateError::new)
    }

    /// A subdirectory, created if missing. `sub` may have several components.
    pub fn create_subdirectory(&self, sub: &str) -> Result<PrivateDirectory, StateError> {
        let made = path_of(sub)
            .and_then(|path| self.root.create_directories(&path, DIRECTORY_MODE))
            .map_err(StateError::new)?;
        Ok(PrivateDirectory::new(made.0))
    }

    /// A subdirectory, if it exists.
    pub fn existing_subdirectory(&self, sub: &str) -> Result<Option<PrivateDirectory>, StateError> {
        match path_of(sub).and_then(|path| self.root.open_directory(&path)) {
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            other => other.map(PrivateDirectory::new).map(Some).map_err(StateError::new),
        }
    }

    /// Syncs its file system.
    pub fn sync_file_system(&self) -> Result<(), StateError> {
        self.root.sync_file_system().map_err(StateError::new)
    }

    pub(crate) fn root(&self) -> &RootDirectory {
        &self.root
    }

    /// The directory, for watching changes of other processes.
    pub fn root_directory(&self) -> Result<DirectoryHandle, DiskError> {
        self.root.open_directory(&RelPath::root())
    }

    /// Opens the lock file again: each result holds its own locks.
    pub fn open_lock_file(&self) -> Result<LockFile, StateError> {
        self.try_open_lock_file().map_err(StateError::new)
    }

    fn try_open_lock_file(&self) -> Result<LockFile, DiskError> {
        let root = self.root_directory()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file: OwnedFd =
            sys::open_name(root.path_handle(), LOCK_FILE_NAME.as_bytes(), flags, FILE_MODE).map_err(|error| {
                if error.is_errno(Errno::LOOP) { error.with_kind(DiskErrorKind::IsSymlink) } else { error }
            })?;
        Ok(LockFile::new(PathHandle::from_handle(file)?.ensure_file()?.handle))
    }

    /// Writes a small private file, atomically and durably.
    pub fn write_secret(&self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        let name = FileName::new(name.as_bytes()).map_err(|_| invalid_name_error())?;
        let root = self.root_directory()?;
        let staged = root.stage_file(ContentSource::Bytes(bytes), AttributeSource::New { mode: FILE_MODE })?;
        let placed = staged.sync().and_then(|()| root.replace_with_staged(&staged, &name));
        if let Err(error) = placed {
            staged.discard(&root).unwrap_or_default();
            return Err(error);
        }
        root.sync()
    }

    /// Reads a small private file; `None` if it does not exist.
    pub fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, DiskError> {
        let name = FileName::new(name.as_bytes()).map_err(|_| invalid_name_error())?;
        match self.root_directory()?.open_file(&name) {
            Err(error) if error.kind == DiskErrorKind::NotFound => Ok(None),
            other => other?.read_all(SECRET_BYTES_MAX).map(Some),
        }
    }
}

fn path_of(sub: &str) -> Result<RelPath, DiskError> {
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
