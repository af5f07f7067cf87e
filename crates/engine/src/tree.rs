//! [`Tree`], the trait between the engine and the files of a workspace.
//!
//! [`Tree::locate`] finds and opens the entry at a path; everything else about an entry is read from its open
//! [`TreeEntry`], so that a path is looked up only once. Nothing here writes.

use std::{fmt, ops::Range, sync::Arc};

use sha2::{Digest as _, Sha256};
use stead_journal::Digest;
pub use stead_path::FinalSymlink;
use stead_path::{FileName, RelPath};

use crate::{
    errors::{Error, ErrorKind},
    index::FileSearchIndex,
    next_step::NextStep,
    ops::{ListArgs, ReadArgs},
    plan::{FileKind, PlanTimeFileVersion},
    version::Version,
};

/// A value by which a workspace recognises a file, directory or symlink under any of its names, whatever its content.
/// Only the workspace that made the value knows what its bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity(pub [u8; 16]);

/// A value that changes whenever a file is replaced or written, or its metadata changes. A commit does not hash a file
/// again if its stamp is the same as during planning. Only the workspace that made the value knows what its bytes mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp(pub [u8; 56]);

/// The attributes of one file, directory, symlink or special file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStat {
    pub kind: FileKind,
    /// The size of the file in bytes; a directory has the size zero.
    pub size: u64,
    /// The permission bits of the file.
    pub mode: u32,
    pub link_count: u64,
    pub modified_ms: i64,
    pub identity: FileIdentity,
    pub stamp: FileStamp,
}

/// The creation time and the owner of a file, which few operations need.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileOwnerAndCreationTime {
    pub created_ms: Option<i64>,
    /// The user name of the file's owner, or the owner's user id if the user id has no name.
    pub owner: Option<String>,
}

/// The name and the kind of one entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    pub name: FileName,
    pub kind: FileKind,
}

/// The attributes of a directory entry; `None` if the directory has no entry with the name.
pub type FileStatLookupResult = Result<Option<FileStat>, Error>;

/// A path to look up, and what to do with its symlinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocateRequest<'a> {
    /// The symlinks of the path are resolved; for the last name, [`FinalSymlink`] decides. The path need not exist.
    Resolve(&'a RelPath, FinalSymlink),
    /// The path is the result of an earlier request. The lookup fails if a directory of the path is now a symlink; a
    /// symlink at the path itself is not followed.
    LinkFree(&'a RelPath),
}

/// A path without symlinks, and the entry there.
#[derive(Debug, Clone)]
pub struct LocatedPath {
    pub path: RelPath,
    /// `None` if the path does not exist.
    pub entry: Option<Arc<dyn TreeEntry>>,
}

impl LocatedPath {
    /// The attributes of the entry; `None` if the path does not exist.
    pub fn stat(&self) -> Option<FileStat> {
        self.entry.as_ref().map(|entry| entry.stat())
    }
}

/// The files, directories and symlinks of a workspace.
pub trait Tree: Send + Sync {
    /// The properties of the workspace that do not change while it is open.
    fn profile(&self) -> &ImmutableWorkspaceProperties;

    /// Finds the entry at a path and opens it.
    fn locate(&self, request: &LocateRequest<'_>) -> Result<LocatedPath, Error>;

    /// The search index; `None` if the workspace has none.
    fn search_index(&self) -> Option<&dyn FileSearchIndex> {
        None
    }

    /// Opens the entry at a path without symlinks; fails if the path does not exist.
    fn entry_at(&self, path: &RelPath) -> Result<Arc<dyn TreeEntry>, Error> {
        self.locate(&LocateRequest::LinkFree(path))?.entry.ok_or_else(|| missing_entry_error(path))
    }

    /// The attributes of the entry at a path without symlinks; `None` if the path does not exist.
    fn stat(&self, path: &RelPath) -> Result<Option<FileStat>, Error> {
        Ok(self.locate(&LocateRequest::LinkFree(path))?.stat())
    }

    /// Reads bytes of the regular file at a path without symlinks, and computes the version of the whole file.
    fn read(&self, path: &RelPath, want: BytesToRead) -> Result<FileBytesWithVersion, Error> {
        FileBytesWithVersion::read_from(&*self.entry_at(path)?.open_file()?, path, want, &|| Ok(()))
    }

    /// The entries of the directory at a path without symlinks.
    fn list(&self, path: &RelPath) -> Result<Vec<DirectoryEntry>, Error> {
        self.entry_at(path)?.open_directory()?.list()
    }
}

fn missing_entry_error(path: &RelPath) -> Error {
    if path.is_root() {
        return Error::workspace_missing();
    }
    Error::new(ErrorKind::NotFound, format!("{path} does not exist"))
        .with_next_step(NextStep::call(ListArgs::of_parent(path), "see the names in the directory"))
}

/// An open file, directory, symlink or special file. It stays the same entry if another program renames or replaces it.
pub trait TreeEntry: fmt::Debug + Send + Sync {
    /// The attributes that the entry had when it was opened.
    fn stat(&self) -> FileStat;

    /// The creation time and owner that the entry had when it was opened.
    fn details(&self) -> FileOwnerAndCreationTime;

    /// The target of the entry, which must be a symlink.
    fn read_link(&self) -> Result<Vec<u8>, Error>;

    /// Opens the entry, which must be a regular file, for reading.
    fn open_file(&self) -> Result<Box<dyn FileReader>, Error>;

    /// Opens the entry, which must be a directory.
    fn open_directory(&self) -> Result<Box<dyn DirectoryReader>, Error>;
}

/// An open directory. Its entries are opened relative to it, even if another program moves the directory.
pub trait DirectoryReader: Send + Sync {
    /// The entries in byte order of their names, without the server's own files and its temporary files.
    fn list(&self) -> Result<Vec<DirectoryEntry>, Error>;

    /// Opens and lists a subdirectory; a symlink is not followed.
    fn open_subdirectory(&self, name: &FileName) -> Result<OpenDirectoryWithEntries, Error>;

    /// The attributes of an entry of the directory; a symlink is not followed.
    fn stat(&self, name: &FileName) -> FileStatLookupResult;

    /// Reads a regular file of the directory into `bytes`, which is cleared first. Reading stops if `goes_on` returns
    /// `false` for the first bytes of the file. Reading fails if the file is larger than `limit_bytes`.
    fn read_without_version(
        &self,
        name: &FileName,
        limit_bytes: u64,
        goes_on: &dyn Fn(&[u8]) -> bool,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Error>;

    /// Opens a regular file of the directory for reading.
    fn open_file(&self, name: &FileName) -> Result<Box<dyn FileReader>, Error>;
}

/// An open directory and its entries in byte order of their names.
pub type OpenDirectoryWithEntries = (Box<dyn DirectoryReader>, Vec<DirectoryEntry>);

/// An open regular file.
pub trait FileReader {
    /// The attributes that the file had when it was opened.
    fn stat(&self) -> FileStat;

    /// Reads bytes at `offset` of the file into `buffer` and returns their number, which is 0 at the end of the file.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Error>;
}

/// The part of a file's bytes that a read returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BytesToRead {
    /// The read returns the whole file and fails if the file is larger than `limit_bytes`.
    Whole { limit_bytes: u64 },
    /// The read returns a byte range of the file.
    Range {
        offset: u64,
        /// The largest number of bytes to read from the file.
        length: u64,
    },
    /// The read returns no bytes and only computes the version of the file.
    VersionOnly,
}

/// Bytes read from a file, with the version of the whole file.
#[derive(Debug, Clone)]
pub struct FileBytesWithVersion {
    pub bytes: Vec<u8>,
    /// The version of the whole file, even if only a part was read.
    pub version: Version,
    /// The attributes that the file had when it was read.
    pub stat: FileStat,
}

const PIECE_BYTES: usize = 1 << 20;

impl FileBytesWithVersion {
    /// The version that was read, for the plan of a change.
    pub fn observed(&self) -> PlanTimeFileVersion {
        PlanTimeFileVersion { version: self.version, size: self.stat.size, stamp: self.stat.stamp }
    }

    /// Reads an open file; between two pieces of a large file, `check` may end the read with an error.
    pub(crate) fn read_from(
        file: &dyn FileReader,
        path: &RelPath,
        want: BytesToRead,
        check: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        // The attributes are older than the bytes, so the commit detects a change between the two.
        let stat = file.stat();
        let wanted = match want {
            BytesToRead::Whole { limit_bytes } => {
                let bytes = read_whole_file(file, path, limit_bytes)?;
                let version = Version::hash_bytes(&bytes);
                return Ok(Self { bytes, version, stat });
            }
            BytesToRead::VersionOnly => 0..0,
            BytesToRead::Range { offset, length } => offset..offset.saturating_add(length),
        };
        let (mut hasher, mut bytes) = (Sha256::new(), Vec::new());
        let mut buffer = vec![0; usize::try_from(stat.size).unwrap_or(PIECE_BYTES).min(PIECE_BYTES)];
        let mut at = 0;
        while at < stat.size {
            check()?;
            let left = usize::try_from(stat.size - at).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read = file.read_at(at, &mut buffer[..left])?;
            if read == 0 {
                break;
            }
            hasher.update(&buffer[..read]);
            bytes.extend_from_slice(overlapping_part(&buffer[..read], at, &wanted)?);
            at += read as u64;
        }
        Ok(Self { bytes, version: Version(Digest(hasher.finalize().into())), stat })
    }
}

/// Reads a whole file, which may grow meanwhile.
pub(crate) fn read_whole_file(file: &dyn FileReader, path: &RelPath, limit_bytes: u64) -> Result<Vec<u8>, Error> {
    let too_large = || {
        Error::new(ErrorKind::TooLarge, format!("{path} is too large to read at once"))
            .with_next_step(NextStep::call(ReadArgs::first_bytes(path), "get the first part of the file"))
    };
    let size = file.stat().size;
    let (mut bytes, mut filled) = (Vec::new(), 0);
    while filled as u64 <= limit_bytes && size <= limit_bytes {
        // The buffer has room for one byte more than expected, so a read that does not fill it has reached the end.
        let expected = usize::try_from(size).map_err(|_| too_large())?.max(filled * 2) + 1;
        bytes.resize(expected, 0);
        let read = file.read_at(filled as u64, &mut bytes[filled..])?;
        filled += read;
        if read == 0 || (filled < expected && filled as u64 >= size) {
            bytes.truncate(filled);
            return Ok(bytes);
        }
    }
    Err(too_large())
}

/// Which names new files and directories may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileNamePolicy {
    /// New names must be valid on every common file system and must not look like an existing name.
    Portable,
    /// New files and directories may have every name that the file system accepts.
    Posix,
}

/// The properties of a workspace that do not change while the workspace is open.
#[derive(Debug, Clone)]
pub struct ImmutableWorkspaceProperties {
    pub id: String,
    /// All absolute paths of the workspace root with which a path argument may start.
    pub root_spellings: Vec<String>,
    pub name_policy: FileNamePolicy,
    /// The paths of the server's own files, which calls cannot access; the case of letters is ignored.
    pub internal_paths: Vec<RelPath>,
}

fn overlapping_part<'b>(piece: &'b [u8], at: u64, wanted: &Range<u64>) -> Result<&'b [u8], Error> {
    let inside = |offset: u64| {
        let inside = offset.saturating_sub(at).min(piece.len() as u64);
        usize::try_from(inside).map_err(|_| {
            Error::new(ErrorKind::TooLarge, "the byte range is too long to read at once")
                .with_next_step("request a shorter range")
        })
    };
    Ok(&piece[inside(wanted.start)?..inside(wanted.end)?.max(inside(wanted.start)?)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_read_in_pieces_equals_direct_slice() {
        let whole: Vec<u8> = (0..=99).collect();
        for (start, end) in [(0, 100), (3, 7), (9, 21), (20, 20), (95, 200), (100, 120), (7, 3)] {
            let mut found = Vec::new();
            for (number, piece) in whole.chunks(10).enumerate() {
                found.extend_from_slice(overlapping_part(piece, number as u64 * 10, &(start..end)).unwrap());
            }
            let wanted: Vec<u8> =
                whole.iter().copied().filter(|byte| (start..end).contains(&u64::from(*byte))).collect();
            assert_eq!(found, wanted, "{start}..{end}");
        }
    }
}
