//! Lookups: translates disk values to engine values. Never writes, never follows a symlink.

use stead_disk::{DiskStat, FileType};
use stead_engine::{
    BytesToRead, DirectoryEntry, DirectoryReader, FileBytes, FileDetails, FileIdentity, FileKind, FileReader, FileStat,
    FinalSymlink, OpenedDirectory, StatResult, Version,
};
use stead_engine::{Error, ErrorKind};
use stead_journal::Digest;
use stead_path::{FileName, RelPath};

use crate::{errors, open::LocalWorkspace};

/// Retries of a lookup when a component became a symlink meanwhile.
const LOOKUP_RETRIES_MAX: usize = 16;

pub(crate) fn to_engine_fingerprint(stamp: &stead_disk::InodeFingerprint) -> FileIdentity {
    FileIdentity {
        device_and_inode: (stamp.id.dev, stamp.id.ino),
        size: stamp.size,
        modified_ns: stamp.modified_ns,
        changed_ns: stamp.changed_ns,
    }
}

pub(crate) fn to_engine_file_type(file_type: FileType) -> FileKind {
    match file_type {
        FileType::File => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharDevice | FileType::BlockDevice | FileType::Unknown => {
            FileKind::Special
        }
    }
}

pub(crate) fn to_engine_stat(stat: &DiskStat) -> FileStat {
    let top = to_engine_file_type(stat.file_type);
    FileStat {
        kind: top,
        size: if top == FileKind::Directory { 0 } else { stat.size },
        mode: stat.mode,
        link_count: stat.hard_links,
        modified_ms: i64::try_from(stat.modified_ns / 1_000_000).unwrap_or(i64::MAX),
        identity: to_engine_fingerprint(&stat.fingerprint),
    }
}

impl LocalWorkspace {
    pub(crate) fn resolve_path(
        &self,
        path: &RelPath,
        last: FinalSymlink,
    ) -> Result<(RelPath, Option<FileStat>), Error> {
        let mut tries = 0;
        loop {
            match self.root.canonicalize_with_stat(path, last) {
                Err(error)
                    if error.kind == stead_disk::DiskErrorKind::ChangedConcurrently && tries < LOOKUP_RETRIES_MAX =>
                {
                    tries += 1
                }
                Ok((resolved, seen)) => return Ok((resolved, seen.map(|stat| to_engine_stat(&stat)))),
                Err(error) => return Err(errors::error_at_path(path, &error)),
            }
        }
    }

    pub(crate) fn stat_path(&self, path: &RelPath) -> Result<Option<FileStat>, Error> {
        let stat = self.root.stat(path).map_err(|error| errors::error_at_path(path, &error))?;
        Ok(stat.map(|stat| to_engine_stat(&stat)))
    }

    pub(crate) fn read_file_details(&self, path: &RelPath) -> Result<FileDetails, Error> {
        let stat = self.root.stat(path).map_err(|error| errors::error_at_path(path, &error))?;
        Ok(stat.map_or_else(FileDetails::default, |stat| FileDetails {
            created_ms: stat.created_ns.and_then(|born_ns| i64::try_from(born_ns / 1_000_000).ok()),
            owner: Some(self.user_names.get(&stat.uid).cloned().unwrap_or_else(|| stat.uid.to_string())),
        }))
    }

    pub(crate) fn stat_children(&self, directory: &RelPath, names: &[FileName]) -> Result<Vec<StatResult>, Error> {
        let open = self.root.open_directory(directory).map_err(|error| errors::error_at_path(directory, &error))?;
        Ok(names
            .iter()
            .map(|name| match open.stat(name) {
                Ok(stat) => Ok(stat.map(|stat| to_engine_stat(&stat))),
                Err(error) => Err(errors::error_at_path(&directory.join(name)?, &error)),
            })
            .collect())
    }

    pub(crate) fn read_file(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytes, Error> {
        let at = |error: stead_disk::DiskError| errors::error_at_path(path, &error);
        let file = self.root.open_file(path).map_err(at)?;
        let node = to_engine_stat(&file.stat());
        let (bytes, hash) = match want {
            BytesToRead::Whole { limit_bytes } => file.read_and_hash(limit_bytes).map_err(at)?,
            BytesToRead::VersionOnly => (Vec::new(), file.hash().map_err(at)?.0),
            // A range that covers the whole file needs only one pass.
            BytesToRead::Range { offset: 0, length } if length >= node.size => {
                file.read_and_hash(length).map_err(at)?
            }
            BytesToRead::Range { offset, length } => {
                let length = usize::try_from(length.min(node.size.saturating_sub(offset)))
                    .map_err(|_| Error::new(ErrorKind::TooLarge, "the range is too long"))?;
                (file.read_range(offset, length).map_err(at)?, file.hash().map_err(at)?.0)
            }
        };
        Ok(FileBytes { bytes, version: Version(Digest(hash)), stat: node })
    }

    pub(crate) fn read_for_search(&self, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Error> {
        let at = |error: stead_disk::DiskError| errors::error_at_path(path, &error);
        let file = self.root.open_file(path).map_err(at)?;
        let mut bytes = Vec::new();
        file.read_into(&mut bytes, limit_bytes, &|_| true).map_err(at)?;
        Ok(bytes)
    }

    pub(crate) fn open_file_reader(&self, path: &RelPath) -> Result<Box<dyn FileReader>, Error> {
        let file = self.root.open_file(path).map_err(|error| errors::error_at_path(path, &error))?;
        Ok(Box::new(LocalFileReader { file, path: path.clone() }))
    }

    pub(crate) fn list_directory(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error> {
        let at = |error: stead_disk::DiskError| errors::error_at_path(path, &error);
        let directory = self.root.open_directory(path).map_err(at)?;
        Ok(self.to_engine_listing(path, directory.list().map_err(at)?))
    }

    pub(crate) fn open_walk_directory(&self, path: &RelPath) -> Result<OpenedDirectory<'_>, Error> {
        let at = |error: stead_disk::DiskError| errors::error_at_path(path, &error);
        let directory = self.root.open_directory(path).map_err(at)?;
        let listed = self.to_engine_listing(path, directory.list().map_err(at)?);
        Ok((Box::new(LocalWalkDirectory { workspace: self, directory, path: path.clone() }), listed))
    }

    /// Names in byte order. Staged files are left out, and their directory is remembered for cleanup.
    fn to_engine_listing(&self, path: &RelPath, entries: Vec<stead_disk::DiskDirectoryEntry>) -> Vec<DirectoryEntry> {
        let mut names: Vec<DirectoryEntry> = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.name.as_bytes().starts_with(stead_path::TEMPORARY_PREFIX.as_bytes()) {
                self.remember_leftovers_in(path);
            } else {
                names.push(DirectoryEntry { name: entry.name, kind: to_engine_file_type(entry.file_type) });
            }
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        names
    }
}

struct LocalWalkDirectory<'w> {
    workspace: &'w LocalWorkspace,
    directory: stead_disk::DirectoryHandle,
    path: RelPath,
}

impl<'w> DirectoryReader<'w> for LocalWalkDirectory<'w> {
    fn open_subdirectory(&self, name: &FileName) -> Result<OpenedDirectory<'w>, Error> {
        let path = self.path.join(name)?;
        let (directory, entries) =
            self.directory.open_and_list(name).map_err(|error| errors::error_at_path(&path, &error))?;
        let listed = self.workspace.to_engine_listing(&path, entries);
        Ok((Box::new(LocalWalkDirectory { workspace: self.workspace, directory, path }), listed))
    }

    fn stat(&self, name: &FileName) -> StatResult {
        match self.directory.stat(name) {
            Ok(stat) => Ok(stat.map(|stat| to_engine_stat(&stat))),
            Err(error) => Err(errors::error_at_path(&self.path.join(name)?, &error)),
        }
    }

    fn read_without_version(
        &self,
        name: &FileName,
        limit_bytes: u64,
        goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let file = self.directory.open_listed_file(name);
        file.and_then(|file| file.read_into(bytes, limit_bytes, goes_on))
            .map_err(|error| self.path.join(name).map_or_else(Error::from, |path| errors::error_at_path(&path, &error)))
    }
    fn open_file(&self, name: &FileName) -> Result<Box<dyn FileReader>, Error> {
        let path = self.path.join(name)?;
        let file = self.directory.open_listed_file(name).map_err(|error| errors::error_at_path(&path, &error))?;
        Ok(Box::new(LocalFileReader { file, path }))
    }
}

struct LocalFileReader {
    file: stead_disk::OpenFile,
    path: RelPath,
}

impl FileReader for LocalFileReader {
    fn size(&self) -> u64 {
        self.file.stat().size
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.file.read_at(offset, buffer).map_err(|error| errors::error_at_path(&self.path, &error))
    }
}
