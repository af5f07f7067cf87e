//! All access to a workspace starts from the open handle of its root directory, whose path is never resolved again.
//! Functions on the root directory take a canonical path, which [`RootDirectory::canonicalize`] returns.

use std::{
    ffi::OsStr,
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::fs::OFlags;
use stead_path::{FileName, RelPath};

use crate::{
    DirectoryHandle, DiskError, DiskErrorKind, DiskSpace, DiskStat, FinalSymlink, InodeId, OpenFile,
    PathResolutionMethod,
    canonical::resolve_canonical,
    confinement::{ConfinedPathResolver, OPathFdWithStat},
    directory::link_target,
    errors::none_if_missing,
    sys,
    sys::file_io,
};

/// The options for opening a root directory.
#[derive(Debug, Clone, Default)]
pub struct RootDirectoryOptions {
    pub resolver: PathResolutionMethod,
    /// The mount points inside the root directory that paths may cross; no other mount may be crossed.
    pub allowed_mounts: Vec<RelPath>,
    /// The device and inode of each directory that no path may enter or name, such as the state directory.
    pub hidden_inodes: Vec<InodeId>,
}

/// An open root directory of a workspace.
#[derive(Debug, Clone)]
pub struct RootDirectory {
    confinement: Arc<ConfinedPathResolver>,
    absolute_path: Arc<str>,
    equivalent_paths: Arc<[String]>,
    /// The absolute paths of the root directory, by which absolute targets of symbolic links are recognised.
    equivalent_path_bytes: Arc<[Vec<u8>]>,
}

impl RootDirectory {
    /// Opens a root directory; symbolic links in `path` are followed, so the path must be trusted.
    pub fn open(path: &Path, options: RootDirectoryOptions) -> Result<Self, DiskError> {
        let handle = sys::open_trusted(path, OFlags::PATH | OFlags::DIRECTORY)?;
        let opened = OPathFdWithStat::from_handle(handle)?;
        let raw_spellings = find_equivalent_paths(path, opened.meta.id());
        let confines =
            ConfinedPathResolver::new(opened, options.resolver, options.allowed_mounts, options.hidden_inodes)?;
        let absolute = raw_spellings.first().map(|raw| String::from_utf8_lossy(raw)).unwrap_or_default();
        Ok(Self {
            absolute_path: absolute.into(),
            equivalent_paths: raw_spellings.iter().filter_map(|raw| String::from_utf8(raw.clone()).ok()).collect(),
            equivalent_path_bytes: raw_spellings.into(),
            confinement: Arc::new(confines),
        })
    }

    /// The device and inode numbers of the root directory.
    pub fn id(&self) -> InodeId {
        self.confinement.root().meta.id()
    }

    /// The absolute path of the root directory as given, to display it and to convert absolute paths to relative ones.
    pub fn absolute_path(&self) -> &str {
        &self.absolute_path
    }

    /// The absolute path of the root directory with all symbolic links resolved.
    pub fn canonical_path(&self) -> PathBuf {
        let raw = self.equivalent_path_bytes.last().map(Vec::as_slice).unwrap_or_default();
        PathBuf::from(OsStr::from_bytes(raw))
    }

    /// The absolute paths of the root directory, as given and with symbolic links resolved, that are valid UTF-8.
    pub fn equivalent_paths(&self) -> &[String] {
        &self.equivalent_paths
    }

    /// The path resolution method in use: `Kernel` or `Walker`, never `Auto`.
    pub fn resolver(&self) -> PathResolutionMethod {
        self.confinement.resolver()
    }

    /// Resolves the symbolic links in a path and returns the canonical path. Path components that do not exist are kept
    /// as written.
    pub fn canonicalize(&self, path: &RelPath, last: FinalSymlink) -> Result<RelPath, DiskError> {
        self.locate(path, last).map(|(canonical, _)| canonical)
    }

    /// Resolves a path like [`Self::canonicalize`], and opens what is there; `None` if the path does not exist.
    pub fn locate(&self, path: &RelPath, last: FinalSymlink) -> Result<(RelPath, Option<EntryHandle>), DiskError> {
        let (canonical, opened) = resolve_canonical(&self.confinement, &self.equivalent_path_bytes, path, last)?;
        let handle = opened.map(|opened| self.entry_handle(&canonical, opened));
        Ok((canonical, handle))
    }

    /// Opens what is at a canonical path, which may be a symbolic link itself.
    pub fn open_entry(&self, path: &RelPath) -> Result<EntryHandle, DiskError> {
        Ok(self.entry_handle(path, self.confinement.open(path)?))
    }

    fn entry_handle(&self, path: &RelPath, opened: OPathFdWithStat) -> EntryHandle {
        EntryHandle { opened, path: path.clone(), confinement: Arc::clone(&self.confinement) }
    }

    /// The metadata of a path without following a symbolic link; `None` if the path does not exist.
    pub fn stat(&self, path: &RelPath) -> Result<Option<DiskStat>, DiskError> {
        none_if_missing(self.confinement.open(path).map(|opened| opened.meta.stat))
    }

    /// Opens a regular file of the workspace for reading.
    pub fn open_file(&self, path: &RelPath) -> Result<OpenFile, DiskError> {
        self.open_entry(path)?.open_file()
    }

    /// Opens a directory of the workspace.
    pub fn open_directory(&self, path: &RelPath) -> Result<DirectoryHandle, DiskError> {
        DirectoryHandle::from_path_handle(self.confinement.open(path)?, Arc::clone(&self.confinement))
    }

    /// Opens a directory, creates the missing directories on its path, and returns the paths of the created ones.
    pub fn create_directories(&self, path: &RelPath, mode: u32) -> Result<(DirectoryHandle, Vec<RelPath>), DiskError> {
        match self.open_directory(path) {
            Err(error) if error.kind == DiskErrorKind::NotFound => {}
            other => return other.map(|directory| (directory, Vec::new())),
        }
        let mut current = self.open_directory(&RelPath::root())?;
        let mut at = RelPath::root();
        let mut created = Vec::new();
        for bytes in path.components() {
            let too_long = DiskError::new(DiskErrorKind::NameTooLong, "make directories");
            let name = FileName::new(bytes).map_err(|_| too_long)?;
            at = at.join(&name).map_err(|_| too_long)?;
            current = match current.open_directory(&name) {
                Err(error) if error.kind == DiskErrorKind::NotFound => {
                    match current.create_directory(&name, mode) {
                        Ok(()) => created.push(at.clone()),
                        // Another program has created the directory meanwhile, which is not an error here.
                        Err(error) if error.kind == DiskErrorKind::Exists => {}
                        Err(error) => return Err(error),
                    }
                    current.open_directory(&name)?
                }
                Err(error) if error.kind == DiskErrorKind::IsSymlink && at != *path => {
                    return Err(error.with_kind(DiskErrorKind::ChangedConcurrently));
                }
                other => other?,
            };
        }
        Ok((current, created))
    }

    /// The target of a symbolic link of the workspace, exactly as stored.
    pub fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, DiskError> {
        self.open_entry(path)?.read_link()
    }

    /// Syncs the file systems of the root and of every allowed mount.
    pub fn sync_file_system(&self) -> Result<(), DiskError> {
        let root = RelPath::root();
        for path in std::iter::once(&root).chain(self.confinement.allowed_mounts()) {
            match self.open_directory(path) {
                Err(error) if error.kind == DiskErrorKind::NotFound && !path.is_root() => {}
                other => file_io::sync_file_system(other?.reopen_for_listing()?.as_fd())?,
            }
        }
        Ok(())
    }

    /// The free and total space of the root directory's file system.
    pub fn disk_space(&self) -> Result<DiskSpace, DiskError> {
        sys::disk_space(self.confinement.root().handle.as_fd())
    }
}

/// An open file, directory, symbolic link or special file of the workspace. It can be used without looking up its path
/// again, even if another program renames it.
#[derive(Debug)]
pub struct EntryHandle {
    opened: OPathFdWithStat,
    path: RelPath,
    confinement: Arc<ConfinedPathResolver>,
}

impl EntryHandle {
    /// The metadata that the entry had when it was opened.
    pub fn stat(&self) -> DiskStat {
        self.opened.meta.stat
    }

    /// Opens the entry, which must be a regular file, for reading.
    pub fn open_file(&self) -> Result<OpenFile, DiskError> {
        OpenFile::from_path_handle(&self.opened, || {
            let (parent, name) = self.path.split().ok_or(DiskError::new(DiskErrorKind::IsDirectory, "open file"))?;
            let parent = self.confinement.open(&parent)?;
            sys::open_name(parent.handle.as_fd(), name.as_bytes(), sys::READ_FLAGS, 0)
        })
    }

    /// Opens the entry, which must be a directory.
    pub fn open_directory(&self) -> Result<DirectoryHandle, DiskError> {
        DirectoryHandle::from_path_handle(self.opened.try_clone()?, Arc::clone(&self.confinement))
    }

    /// The target of the entry, which must be a symbolic link, exactly as stored.
    pub fn read_link(&self) -> Result<Vec<u8>, DiskError> {
        link_target(&self.opened)
    }
}

fn find_equivalent_paths(path: &Path, id: InodeId) -> Vec<Vec<u8>> {
    let given = std::path::absolute(path).ok();
    let real = std::fs::canonicalize(path).ok();
    let mut spellings: Vec<Vec<u8>> = Vec::new();
    for spelling in [given, real].into_iter().flatten() {
        let bytes = without_trailing_slash(spelling.as_os_str());
        let means_root = sys::open_trusted(&spelling, OFlags::PATH | OFlags::DIRECTORY)
            .and_then(OPathFdWithStat::from_handle)
            .is_ok_and(|opened| opened.meta.id() == id);
        if means_root && !spellings.contains(&bytes) {
            spellings.push(bytes);
        }
    }
    spellings
}

fn without_trailing_slash(path: &OsStr) -> Vec<u8> {
    let bytes = path.as_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/').map_or(1, |at| at + 1);
    bytes[..end.min(bytes.len())].to_vec()
}
