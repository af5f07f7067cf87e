//! Implements the engine's `Tree` trait for a directory on disk. Lookups convert types of the disk crate to types of the
//! engine. A lookup never writes and never follows a symlink.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use stead_disk::{
    DirectoryHandle, DiskDirectoryEntry, DiskErrorKind, DiskStat, EntryHandle, FileType, InodeFingerprint, InodeId,
    OpenFile,
};
use stead_engine::{
    DirectoryEntry, DirectoryReader, Error, FileIdentity, FileKind, FileOwnerAndCreationTime, FileReader, FileStamp,
    FileStat, FileStatLookupResult, FinalSymlink, ImmutableWorkspaceProperties, LocateRequest, LocatedPath,
    OpenDirectoryWithEntries, Tree, TreeEntry, index::FileSearchIndex,
};
use stead_path::{FileName, RelPath, TEMPORARY_PREFIX};

use crate::{errors, open::LocalWorkspace, store::lock_ignoring_poison};

/// The most retries of a path lookup when a symlink replaces a directory of the path meanwhile.
const LOOKUP_RETRIES_MAX: usize = 16;
const LEFTOVER_DIRECTORIES_MAX: usize = 1_000;

/// What the open entries of a workspace share with it.
#[derive(Debug, Default)]
pub(crate) struct LocalTreeContext {
    /// User names by uid, read before the Landlock sandbox is activated.
    pub(crate) user_names: HashMap<u32, String>,
    pub(crate) directories_with_leftovers: Mutex<HashSet<RelPath>>,
}

impl LocalTreeContext {
    pub(crate) fn new(user_names: HashMap<u32, String>) -> Arc<Self> {
        Arc::new(Self { user_names, directories_with_leftovers: Mutex::default() })
    }

    fn remember_leftovers_in(&self, path: &RelPath) {
        let mut directories = lock_ignoring_poison(&self.directories_with_leftovers);
        if directories.len() < LEFTOVER_DIRECTORIES_MAX {
            directories.insert(path.clone());
        }
    }

    /// Staged files are left out of a directory listing, and their directory is noted for cleanup.
    fn to_engine_listing(&self, path: &RelPath, entries: Vec<DiskDirectoryEntry>) -> Vec<DirectoryEntry> {
        let mut names: Vec<DirectoryEntry> = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes()) {
                self.remember_leftovers_in(path);
            } else {
                names.push(DirectoryEntry { name: entry.name, kind: to_engine_file_type(entry.file_type) });
            }
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        names
    }
}

impl Tree for LocalWorkspace {
    fn profile(&self) -> &ImmutableWorkspaceProperties {
        &self.syntax_profile
    }

    fn locate(&self, request: &LocateRequest<'_>) -> Result<LocatedPath, Error> {
        let (path, handle) = match *request {
            LocateRequest::Resolve(path, last) => self.resolve_symlinks(path, last)?,
            LocateRequest::LinkFree(path) => match self.root.open_entry(path) {
                Err(error) if error.kind == DiskErrorKind::NotFound => (path.clone(), None),
                opened => (path.clone(), Some(opened.map_err(errors::at_path(path))?)),
            },
        };
        let entry = handle.map(|handle| -> Arc<dyn TreeEntry> {
            Arc::new(LocalTreeEntry { handle, path: path.clone(), context: Arc::clone(&self.tree) })
        });
        Ok(LocatedPath { path, entry })
    }

    fn search_index(&self) -> Option<&dyn FileSearchIndex> {
        Some(self)
    }
}

impl LocalWorkspace {
    fn resolve_symlinks(&self, path: &RelPath, last: FinalSymlink) -> Result<(RelPath, Option<EntryHandle>), Error> {
        let mut retries = 0;
        loop {
            match self.root.locate(path, last) {
                Err(error) if error.kind == DiskErrorKind::ChangedConcurrently && retries < LOOKUP_RETRIES_MAX => {
                    retries += 1
                }
                located => return located.map_err(errors::at_path(path)),
            }
        }
    }
}

/// The bytes of identities and stamps must never change, because the digests of pending approvals contain them.
pub(crate) fn to_engine_identity(id: InodeId) -> FileIdentity {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&id.dev.to_be_bytes());
    bytes[8..].copy_from_slice(&id.ino.to_be_bytes());
    FileIdentity(bytes)
}

pub(crate) fn to_engine_stamp(fingerprint: &InodeFingerprint) -> FileStamp {
    let mut bytes = [0; 56];
    bytes[..16].copy_from_slice(&to_engine_identity(fingerprint.id).0);
    bytes[16..24].copy_from_slice(&fingerprint.size.to_be_bytes());
    bytes[24..40].copy_from_slice(&fingerprint.modified_ns.to_be_bytes());
    bytes[40..].copy_from_slice(&fingerprint.changed_ns.to_be_bytes());
    FileStamp(bytes)
}

pub(crate) fn to_engine_file_type(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Link,
        FileType::Fifo | FileType::Socket | FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => {
            FileKind::Special
        }
    }
}

fn to_engine_stat(stat: &DiskStat) -> FileStat {
    let kind = to_engine_file_type(stat.file_type);
    FileStat {
        kind,
        size: if kind == FileKind::Directory { 0 } else { stat.size },
        mode: stat.mode,
        link_count: stat.hard_links,
        modified_ms: i64::try_from(stat.modified_ns / 1_000_000).unwrap_or(i64::MAX),
        identity: to_engine_identity(stat.fingerprint.id),
        stamp: to_engine_stamp(&stat.fingerprint),
    }
}

#[derive(Debug)]
struct LocalTreeEntry {
    handle: EntryHandle,
    path: RelPath,
    context: Arc<LocalTreeContext>,
}

impl TreeEntry for LocalTreeEntry {
    fn stat(&self) -> FileStat {
        to_engine_stat(&self.handle.stat())
    }

    fn details(&self) -> FileOwnerAndCreationTime {
        let stat = self.handle.stat();
        FileOwnerAndCreationTime {
            created_ms: stat.created_ns.and_then(|created_ns| i64::try_from(created_ns / 1_000_000).ok()),
            owner: Some(self.context.user_names.get(&stat.uid).cloned().unwrap_or_else(|| stat.uid.to_string())),
        }
    }

    fn read_link(&self) -> Result<Vec<u8>, Error> {
        self.handle.read_link().map_err(errors::at_path(&self.path))
    }

    fn open_file(&self) -> Result<Box<dyn FileReader>, Error> {
        let file = self.handle.open_file().map_err(errors::at_path(&self.path))?;
        Ok(Box::new(LocalFileReader { file, path: self.path.clone() }))
    }

    fn open_directory(&self) -> Result<Box<dyn DirectoryReader>, Error> {
        let directory = self.handle.open_directory().map_err(errors::at_path(&self.path))?;
        let context = Arc::clone(&self.context);
        Ok(Box::new(LocalDirectoryReader { directory, path: self.path.clone(), context }))
    }
}

struct LocalDirectoryReader {
    directory: DirectoryHandle,
    path: RelPath,
    context: Arc<LocalTreeContext>,
}

impl DirectoryReader for LocalDirectoryReader {
    fn list(&self) -> Result<Vec<DirectoryEntry>, Error> {
        let entries = self.directory.list().map_err(errors::at_path(&self.path))?;
        Ok(self.context.to_engine_listing(&self.path, entries))
    }

    fn open_subdirectory(&self, name: &FileName) -> Result<OpenDirectoryWithEntries, Error> {
        let path = self.path.join(name)?;
        let (directory, entries) = self.directory.open_and_list(name).map_err(errors::at_path(&path))?;
        let entries = self.context.to_engine_listing(&path, entries);
        Ok((Box::new(Self { directory, path, context: Arc::clone(&self.context) }), entries))
    }

    fn stat(&self, name: &FileName) -> FileStatLookupResult {
        match self.directory.stat(name) {
            Ok(stat) => Ok(stat.map(|stat| to_engine_stat(&stat))),
            Err(error) => Err(errors::error_at_path(&self.path.join(name)?, error)),
        }
    }

    fn read_without_version(
        &self,
        name: &FileName,
        limit_bytes: u64,
        may_continue: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let file = self.directory.open_listed_file(name);
        file.and_then(|file| file.read_into(bytes, limit_bytes, may_continue))
            .map_err(|error| self.path.join(name).map_or_else(Error::from, |path| errors::error_at_path(&path, error)))
    }

    fn open_file(&self, name: &FileName) -> Result<Box<dyn FileReader>, Error> {
        let path = self.path.join(name)?;
        let file = self.directory.open_listed_file(name).map_err(errors::at_path(&path))?;
        Ok(Box::new(LocalFileReader { file, path }))
    }
}

struct LocalFileReader {
    file: OpenFile,
    path: RelPath,
}

impl FileReader for LocalFileReader {
    fn stat(&self) -> FileStat {
        to_engine_stat(&self.file.stat())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error> {
        self.file.read_at(offset, buffer).map_err(errors::at_path(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_and_stamps_keep_the_bytes_of_stored_digests() {
        let id = InodeId { dev: 1, ino: 0x0203 };
        let stamp = to_engine_stamp(&InodeFingerprint { id, size: 4, modified_ns: -1, changed_ns: 0x0506 });
        let expected = [&[0; 7][..], &[1], &[0; 6], &[2, 3], &[0; 7], &[4], &[255; 16], &[0; 14], &[5, 6]].concat();
        assert_eq!((&stamp.0[..], &to_engine_identity(id).0[..]), (&expected[..], &expected[..16]));
    }
}
