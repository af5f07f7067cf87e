//! The state directory: where a workspace keeps what is not the workspace. Promises: it is owned by who runs the server,
//! closed to everybody else, not reached through a link in its last component, and on a file system of this machine.

use std::{
    os::fd::{AsFd, OwnedFd},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use path::{Name, RelPath};
use rustix::{fs::OFlags, io::Errno};

use crate::{
    Attributes, Directory, DiskError, ErrorKind, FileId, LockFile, Root, RootOptions, Source, confines::Held,
    network, sys,
};

/// The mode of every directory in it.
const DIRECTORY_MODE: u32 = 0o700;
/// The mode of every file in it.
const FILE_MODE: u32 = 0o600;
/// The file whose bytes are locks.
const LOCK_FILE_NAME: &str = "locks";
/// Largest secret that is read back.
const SECRET_BYTES_MAX: u64 = 1024 * 1024;

/// An open state directory.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    root: Root,
    path: PathBuf,
}

impl StateDirectory {
    /// Opens a state directory, and makes it when it is missing.
    pub fn open(path: &Path) -> Result<Self, DiskError> {
        let path = std::path::absolute(path).map_err(|error| from_std("state directory", &error))?;
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(DIRECTORY_MODE)
            .create(&path)
            .map_err(|error| from_std("state directory", &error))?;
        let held = Held::look(sys::open_trusted(&path, sys::PLACE)?)?.need_directory()?;
        let stat = held.meta.stat;
        if stat.uid != rustix::process::geteuid().as_raw() {
            return Err(DiskError::new(ErrorKind::Denied, "state directory owner"));
        }
        network::refuse_network(held.handle.as_fd(), &held.meta)?;
        if stat.mode & 0o077 != 0 {
            sys::set_mode_of_place(held.handle.as_fd(), DIRECTORY_MODE)?;
        }
        let root = Root::open(&path, RootOptions::default())?;
        if root.id() != held.meta.id() {
            return Err(DiskError::new(ErrorKind::Moved, "state directory"));
        }
        Ok(Self { root, path })
    }

    /// Which directory this is; for hiding it from a workspace that it lies in.
    pub fn id(&self) -> FileId {
        self.root.id()
    }

    /// Its absolute path, for the embedded database, which opens its own files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The room on its file system.
    pub fn space(&self) -> Result<crate::Space, DiskError> {
        self.root.space()
    }

    /// A directory in it, made when it is missing. `sub` may have several components.
    pub fn directory(&self, sub: &str) -> Result<Directory, DiskError> {
        let path = RelPath::from_components(sub.split('/').map(str::as_bytes)).map_err(|_| bad_name())?;
        Ok(self.root.make_directories(&path, DIRECTORY_MODE)?.0)
    }

    /// A directory in it if it is there.
    pub fn existing_directory(&self, sub: &str) -> Result<Option<Directory>, DiskError> {
        let path = RelPath::from_components(sub.split('/').map(str::as_bytes)).map_err(|_| bad_name())?;
        match self.root.open_directory(&path) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    /// Makes everything on its file system durable.
    pub fn sync_file_system(&self) -> Result<(), DiskError> {
        self.root.sync_file_system()
    }

    pub(crate) fn root(&self) -> &Root {
        &self.root
    }

    /// The directory itself, for watching what other processes do in it.
    pub fn top(&self) -> Result<Directory, DiskError> {
        self.root.open_directory(&RelPath::root())
    }

    /// Opens the lock file once more: every call gives locks of their own.
    pub fn lock_file(&self) -> Result<LockFile, DiskError> {
        let top = self.top()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file: OwnedFd =
            sys::open_name(top.place(), LOCK_FILE_NAME.as_bytes(), flags, FILE_MODE).map_err(|error| {
                if error.is_errno(Errno::LOOP) { error.seen_as(ErrorKind::IsLink) } else { error }
            })?;
        Ok(LockFile::new(Held::look(file)?.need_file()?.handle))
    }

    /// Writes a small private file: all or nothing, and durable when this returns.
    pub fn write_secret(&self, name: &str, bytes: &[u8]) -> Result<(), DiskError> {
        let name = Name::new(name.as_bytes()).map_err(|_| bad_name())?;
        let top = self.top()?;
        let staged = top.stage(Source::Bytes(bytes), Attributes::New { mode: FILE_MODE })?;
        let placed = staged.sync().and_then(|()| top.replace(&staged, &name));
        if let Err(error) = placed {
            staged.discard(&top).unwrap_or_default();
            return Err(error);
        }
        top.sync()
    }

    /// Reads a small private file; nothing when it is not there.
    pub fn read_secret(&self, name: &str) -> Result<Option<Vec<u8>>, DiskError> {
        let name = Name::new(name.as_bytes()).map_err(|_| bad_name())?;
        match self.top()?.open_file(&name) {
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            other => other?.read_all(SECRET_BYTES_MAX).map(Some),
        }
    }
}

pub(crate) fn bad_name() -> DiskError {
    DiskError::from_errno("state name", Errno::INVAL)
}

pub(crate) fn from_std(call: &'static str, error: &std::io::Error) -> DiskError {
    match error.raw_os_error() {
        Some(number) => DiskError::from_errno(call, Errno::from_raw_os_error(number)),
        None => DiskError::new(ErrorKind::Io, call),
    }
}
