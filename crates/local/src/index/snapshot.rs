//! The index at one moment: the open segments named by the manifest. Owns the manifest.
//!
//! Promises: a snapshot stays valid while it is used, whatever is built or deleted meanwhile. One unusable segment
//! makes the whole index unusable; the next build replaces it.

use std::sync::Arc;

use stead_disk::{AttributeSource, ContentSource, DirectoryHandle, DiskError, DiskErrorKind, InodeFingerprint};
use stead_engine::{
    FileIdentity as FileStamp,
    index::{DirectoryIndex, IndexFilter, IndexVerdict, RequiredTrigrams},
};
use stead_path::{FileName, RelPath};

use super::{
    blocks::{BLOCK_HASH_BYTES, IndexBlockKind, IndexByteReader, IndexFileId, IndexKey, write_number},
    segment::{self, DirectoryFiles, IndexCorrupt, IndexSegment, IndexedFile, IndexedFileKind, SegmentFiles},
};

const MANIFEST: &str = "manifest";
pub(super) const SEGMENTS_MAX: usize = 512;
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
/// The manifest has no id of its own.
const MANIFEST_FILE_ID: IndexFileId = [0; 16];
const MANIFEST_MODE: u32 = 0o600;

/// Whether all indexable files are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexCoverage {
    /// All are, or will be.
    Complete,
    /// The index has reached its size limit; the remaining files are always read.
    SizeLimited,
}

pub(super) struct IndexSnapshot {
    pub(super) segments: Vec<Arc<IndexSegment>>,
    pub(super) coverage: IndexCoverage,
}

pub(super) fn manifest_name() -> Result<FileName, IndexCorrupt> {
    FileName::new(MANIFEST.as_bytes()).map_err(|_| IndexCorrupt)
}

/// The fingerprint of the manifest; `None` if there is none.
pub(super) fn manifest_fingerprint(directory: &DirectoryHandle) -> Result<Option<InodeFingerprint>, IndexCorrupt> {
    let stat = directory.stat(&manifest_name()?).map_err(|_| IndexCorrupt)?;
    Ok(stat.map(|stat| stat.fingerprint))
}

impl IndexSnapshot {
    pub(super) fn empty() -> Self {
        Self { segments: Vec::new(), coverage: IndexCoverage::Complete }
    }

    /// Reads the manifest and opens its segments, reusing those open in `before`.
    pub(super) fn load(
        directory: &DirectoryHandle,
        key: &IndexKey,
        before: Option<&Self>,
    ) -> Result<Self, IndexCorrupt> {
        let file = directory.open_file(&manifest_name()?).map_err(|_| IndexCorrupt)?;
        let sealed = file.read_all(MANIFEST_BYTES_MAX).map_err(|_| IndexCorrupt)?;
        let mut reading = IndexByteReader::new(
            key.verify_block(IndexBlockKind::Manifest, &MANIFEST_FILE_ID, 0, &sealed).ok_or(IndexCorrupt)?,
        );
        let extent = match reading.read_byte().ok_or(IndexCorrupt)? {
            0 => IndexCoverage::Complete,
            _ => IndexCoverage::SizeLimited,
        };
        let count = reading.read_number().filter(|count| *count <= SEGMENTS_MAX as u64).ok_or(IndexCorrupt)?;
        let mut segments = Vec::new();
        for _ in 0..count {
            let name: IndexFileId =
                reading.take_bytes(MANIFEST_FILE_ID.len()).and_then(|name| name.try_into().ok()).ok_or(IndexCorrupt)?;
            let known = before.and_then(|before| before.segments.iter().find(|segment| segment.name == name));
            segments.push(match known {
                Some(segment) => Arc::clone(segment),
                None => Arc::new(IndexSegment::open(directory, name, key)?),
            });
        }
        Ok(Self { segments, coverage: extent })
    }

    /// Writes the manifest, which publishes this snapshot.
    pub(super) fn write_manifest(
        directory: &DirectoryHandle,
        key: &IndexKey,
        names: &[IndexFileId],
        extent: IndexCoverage,
    ) -> Result<(), DiskError> {
        let mut bytes = vec![match extent {
            IndexCoverage::Complete => 0,
            IndexCoverage::SizeLimited => 1,
        }];
        write_number(&mut bytes, names.len() as u64);
        bytes.extend(names.iter().flatten());
        bytes.reserve(BLOCK_HASH_BYTES);
        bytes.extend(key.hash_block(IndexBlockKind::Manifest, &MANIFEST_FILE_ID, 0, &bytes));
        let staged =
            directory.stage_file(ContentSource::Bytes(&bytes), AttributeSource::New { mode: MANIFEST_MODE })?;
        let name = manifest_name().map_err(|_| DiskError { kind: DiskErrorKind::Io, step: "manifest", errno: None })?;
        let placed = directory.replace_with_staged(&staged, &name);
        if placed.is_err() {
            staged.discard(directory).unwrap_or_default();
        }
        placed
    }

    pub(super) fn segment_ids(&self) -> Vec<IndexFileId> {
        self.segments.iter().map(|segment| segment.name).collect()
    }

    /// Size on disk.
    pub(super) fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size()).sum()
    }

    /// Number of indexed files, including stale ones.
    pub(super) fn files(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.files)).sum()
    }

    /// For every segment the files that may match.
    pub(super) fn files_matching(&self, required: &RequiredTrigrams) -> Result<Vec<SegmentFiles>, IndexCorrupt> {
        self.segments.iter().map(|segment| segment.files_matching(required)).collect()
    }

    /// All data about the files of a directory.
    pub(super) fn directory_segments(&self, directory: &RelPath) -> Result<DirectorySegments, IndexCorrupt> {
        let mut shelves = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            shelves.extend(segment.directory_files(directory)?.map(|rows| (at, rows)));
        }
        Ok(DirectorySegments(shelves))
    }
}

/// The segments' data about one directory.
pub(super) struct DirectorySegments(Vec<(usize, DirectoryFiles)>);

impl DirectorySegments {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains_name(&self, name: &FileName) -> bool {
        self.0.iter().any(|(_, rows)| rows.find(name.as_bytes()).is_some())
    }

    /// The segment, number and data of a file with this stamp. Any segment with the stamp is valid.
    pub(super) fn find_file(&self, name: &FileName, stamp: &FileStamp) -> Option<(usize, u32, &IndexedFile)> {
        self.0.iter().find_map(|(at, rows)| {
            let (number, row) = rows.find(name.as_bytes())?;
            (row.fingerprint == *stamp).then_some((*at, number, row))
        })
    }
}

/// A snapshot with the candidates of one search.
pub(super) struct SnapshotIndexFilter {
    pub(super) snapshot: Arc<IndexSnapshot>,
    /// For every segment the files that must be read.
    pub(super) files: Vec<SegmentFiles>,
    /// Called when a block fails verification.
    pub(super) on_corrupt: Arc<dyn Fn() + Send + Sync>,
}

impl IndexFilter for SnapshotIndexFilter {
    fn directory_index(&self, directory: &RelPath) -> Option<Box<dyn DirectoryIndex + '_>> {
        match self.snapshot.directory_segments(directory) {
            Ok(shelves) if shelves.is_empty() => None,
            Ok(shelves) => Some(Box::new(SnapshotDirectoryIndex { files: &self.files, segments: shelves })),
            Err(IndexCorrupt) => {
                (self.on_corrupt)();
                None
            }
        }
    }
}

struct SnapshotDirectoryIndex<'s> {
    files: &'s [SegmentFiles],
    segments: DirectorySegments,
}

impl DirectoryIndex for SnapshotDirectoryIndex<'_> {
    fn may_know(&self, name: &FileName) -> bool {
        self.segments.contains_name(name)
    }

    fn verdict(&self, name: &FileName, stamp: &FileStamp) -> Option<IndexVerdict> {
        let (segment, number, row) = self.segments.find_file(name, stamp)?;
        match row.kind {
            IndexedFileKind::Text if self.files.get(segment)?.contains(number) => None,
            IndexedFileKind::Text => Some(IndexVerdict::TextWithoutMatch { bytes: row.fingerprint.size }),
            IndexedFileKind::Binary => Some(IndexVerdict::Binary),
            IndexedFileKind::AlwaysRead => None,
        }
    }
}

/// The file names that these segments need in the index directory.
pub(super) fn needed_file_names(names: &[IndexFileId]) -> Vec<String> {
    names.iter().map(segment::segment_file_name).chain([MANIFEST.to_owned()]).collect()
}
