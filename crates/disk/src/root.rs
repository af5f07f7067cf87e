//! The root of a workspace. Owns the one handle that everything starts from. Promises: after opening, the path of the
//! root is never resolved again, and every call takes a path in the link-free spelling that [`Root::canonical`] gives.

use std::{
    ffi::OsStr,
    os::{fd::AsFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use path::{Name, RelPath};
use rustix::fs::OFlags;

use crate::{
    Directory, DiskError, ErrorKind, FileId, Last, OpenFile, Resolver, Space, Stat,
    canonical::canonical,
    confines::{Confines, Held},
    directory::link_target,
    sys,
    sys::content,
};

/// What holds beneath a root.
#[derive(Debug, Clone, Default)]
pub struct RootOptions {
    /// How paths are resolved.
    pub resolver: Resolver,
    /// Mount points inside the root that may be crossed. No other mount is.
    pub mounts: Vec<RelPath>,
    /// Directories that no path may enter or name, such as the state directory.
    pub hidden: Vec<FileId>,
}

/// An open root.
#[derive(Debug, Clone)]
pub struct Root {
    confines: Arc<Confines>,
    absolute: Arc<str>,
    spellings: Arc<[String]>,
    /// The same spellings as bytes, for link targets.
    raw_spellings: Arc<[Vec<u8>]>,
}

impl Root {
    /// Opens a root. Its own path is trusted: links in it are followed.
    pub fn open(path: &Path, options: RootOptions) -> Result<Self, DiskError> {
        let handle = sys::open_trusted(path, OFlags::PATH | OFlags::DIRECTORY)?;
        let held = Held::look(handle)?;
        let raw_spellings = spellings_of(path, held.meta.id());
        let confines = Confines::new(held, options.resolver, options.mounts, options.hidden)?;
        let absolute = raw_spellings.first().map(|raw| String::from_utf8_lossy(raw)).unwrap_or_default();
        Ok(Self {
            absolute: absolute.into(),
            spellings: raw_spellings.iter().filter_map(|raw| String::from_utf8(raw.clone()).ok()).collect(),
            raw_spellings: raw_spellings.into(),
            confines: Arc::new(confines),
        })
    }

    /// Which directory this is.
    pub fn id(&self) -> FileId {
        self.confines.root().meta.id()
    }

    /// The absolute path as it was given; only for showing and for mapping absolute spellings.
    pub fn absolute(&self) -> &str {
        &self.absolute
    }

    /// The absolute path without links: the same for every spelling of the directory.
    pub fn real(&self) -> PathBuf {
        let raw = self.raw_spellings.last().map(Vec::as_slice).unwrap_or_default();
        PathBuf::from(OsStr::from_bytes(raw))
    }

    /// Every absolute spelling that means this root: as given, and without links. Those that are not UTF-8 are left out.
    pub fn spellings(&self) -> &[String] {
        &self.spellings
    }

    /// How paths are resolved here: `Kernel` or `Walker`.
    pub fn resolver(&self) -> Resolver {
        self.confines.resolver()
    }

    /// The link-free spelling of a path. What does not exist yet is kept as it is written.
    pub fn canonical(&self, path: &RelPath, last: Last) -> Result<RelPath, DiskError> {
        self.find(path, last).map(|(place, _)| place)
    }

    /// The same, with what is there where that was seen on the way: mostly, when there is no link in the path. Nothing says
    /// nothing about it.
    pub fn find(&self, path: &RelPath, last: Last) -> Result<(RelPath, Option<Stat>), DiskError> {
        canonical(&self.confines, &self.raw_spellings, path, last)
    }

    /// What is known about a path; nothing when it is not there. Never follows a link.
    pub fn stat(&self, path: &RelPath) -> Result<Option<Stat>, DiskError> {
        match self.confines.open(path) {
            Ok(held) => Ok(Some(held.meta.stat)),
            Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &RelPath) -> Result<OpenFile, DiskError> {
        OpenFile::from_held(self.confines.open(path)?, || {
            let (parent, name) = path.split().ok_or(DiskError::new(ErrorKind::IsDirectory, "open file"))?;
            let parent = self.confines.open(&parent)?;
            sys::open_name(parent.handle.as_fd(), name.as_bytes(), sys::READING, 0)
        })
    }

    /// Opens a directory.
    pub fn open_directory(&self, path: &RelPath) -> Result<Directory, DiskError> {
        Directory::from_held(self.confines.open(path)?, Arc::clone(&self.confines))
    }

    /// Opens a directory and makes what is missing on the way, one name at a time. Tells what was made.
    pub fn make_directories(
        &self,
        path: &RelPath,
        mode: u32,
    ) -> Result<(Directory, Vec<RelPath>), DiskError> {
        match self.open_directory(path) {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            other => return other.map(|directory| (directory, Vec::new())),
        }
        let mut current = self.open_directory(&RelPath::root())?;
        let mut at = RelPath::root();
        let mut created = Vec::new();
        for bytes in path.components() {
            let too_long = DiskError::new(ErrorKind::NameTooLong, "make directories");
            let name = Name::new(bytes).map_err(|_| too_long)?;
            at = at.join(&name).map_err(|_| too_long)?;
            current = match current.open_directory(&name) {
                Err(error) if error.kind == ErrorKind::NotFound => {
                    match current.make_directory(&name, mode) {
                        Ok(()) => created.push(at.clone()),
                        // Somebody else made it meanwhile: as good.
                        Err(error) if error.kind == ErrorKind::Exists => {}
                        Err(error) => return Err(error),
                    }
                    current.open_directory(&name)?
                }
                Err(error) if error.kind == ErrorKind::IsLink && at != *path => {
                    return Err(error.seen_as(ErrorKind::Moved));
                }
                other => other?,
            };
        }
        Ok((current, created))
    }

    /// The target of a link, as it is written.
    pub fn read_link(&self, path: &RelPath) -> Result<Vec<u8>, DiskError> {
        link_target(&self.confines.open(path)?)
    }

    /// Makes everything on the file system of the root, and of every allowed mount, durable.
    pub fn sync_file_system(&self) -> Result<(), DiskError> {
        let root = RelPath::root();
        for path in std::iter::once(&root).chain(self.confines.mounts()) {
            match self.open_directory(path) {
                // An allowed mount point that is not there now holds nothing of ours.
                Err(error) if error.kind == ErrorKind::NotFound && !path.is_root() => {}
                other => content::sync_file_system(other?.readable()?.as_fd())?,
            }
        }
        Ok(())
    }

    /// The room on the file system of the root.
    pub fn space(&self) -> Result<Space, DiskError> {
        sys::space(self.confines.root().handle.as_fd())
    }
}

/// The given path made absolute, and the same without links, if it still means the opened directory.
fn spellings_of(path: &Path, id: FileId) -> Vec<Vec<u8>> {
    let given = std::path::absolute(path).ok();
    let real = std::fs::canonicalize(path).ok();
    let mut spellings: Vec<Vec<u8>> = Vec::new();
    for spelling in [given, real].into_iter().flatten() {
        let bytes = without_trailing_slash(spelling.as_os_str());
        let means_root = sys::open_trusted(&spelling, OFlags::PATH | OFlags::DIRECTORY)
            .and_then(Held::look)
            .is_ok_and(|held| held.meta.id() == id);
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
