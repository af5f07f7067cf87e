//! A snapshot of the search index: the segments that the manifest names at one moment. The manifest of the index is
//! also read and written here.
//!
//! Promises: a snapshot of the index stays usable even if segments are built or deleted meanwhile. If one segment is
//! unusable, the whole index counts as unusable, and the next build replaces it.

use std::sync::Arc;

use stead_disk::{
    DirectoryHandle, DiskError, DiskErrorKind, FileAttributeSource, InodeFingerprint, StagedContentSource,
};
use stead_engine::{
    FileStatFingerprint as FileStamp,
    index::{IndexBasedFileFilter, IndexBasedFileSkipReason, IndexBasedSearchFilter, RequiredTrigrams},
};
use stead_journal::write_leb128;
use stead_path::{FileName, RelPath};

use super::{
    blocks::{BLOCK_HASH_BYTES, IndexBlockKind, IndexByteReader, RandomIndexFileId, SearchIndexBlockHashKey},
    segment::{
        self, IndexCorrupt, IndexSegment, IndexedDirectoryFiles, IndexedFile, IndexedFileKind,
        SelectedIndexedFilesOfSegment,
    },
};

const MANIFEST: &str = "manifest";
pub(super) const SEGMENTS_MAX: usize = 512;
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
/// The file id of the manifest in block hashes; unlike a segment, the manifest has no random id.
const MANIFEST_FILE_ID: RandomIndexFileId = [0; 16];
const MANIFEST_MODE: u32 = 0o600;

/// Whether all indexable files are indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexCoverage {
    /// All indexable files are indexed, or will be indexed by the next builds.
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

/// The fingerprint of the manifest; `None` if there is no manifest.
pub(super) fn manifest_fingerprint(directory: &DirectoryHandle) -> Result<Option<InodeFingerprint>, IndexCorrupt> {
    let stat = directory.stat(&manifest_name()?).map_err(|_| IndexCorrupt)?;
    Ok(stat.map(|stat| stat.fingerprint))
}

impl IndexSnapshot {
    pub(super) fn empty() -> Self {
        Self { segments: Vec::new(), coverage: IndexCoverage::Complete }
    }

    /// Reads the manifest and opens the segments that it names. A segment that is already open in the snapshot `before`
    /// is not opened again.
    pub(super) fn load(
        directory: &DirectoryHandle,
        key: &SearchIndexBlockHashKey,
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
            let name: RandomIndexFileId =
                reading.take_bytes(MANIFEST_FILE_ID.len()).and_then(|name| name.try_into().ok()).ok_or(IndexCorrupt)?;
            let known = before.and_then(|before| before.segments.iter().find(|segment| segment.name == name));
            segments.push(match known {
                Some(segment) => Arc::clone(segment),
                None => Arc::new(IndexSegment::open(directory, name, key)?),
            });
        }
        Ok(Self { segments, coverage: extent })
    }

    /// Writes the manifest, which makes the named segments the current index.
    pub(super) fn write_manifest(
        directory: &DirectoryHandle,
        key: &SearchIndexBlockHashKey,
        names: &[RandomIndexFileId],
        extent: IndexCoverage,
    ) -> Result<(), DiskError> {
        let mut bytes = vec![match extent {
            IndexCoverage::Complete => 0,
            IndexCoverage::SizeLimited => 1,
        }];
        write_leb128(&mut bytes, names.len() as u64);
        bytes.extend(names.iter().flatten());
        bytes.reserve(BLOCK_HASH_BYTES);
        bytes.extend(key.hash_block(IndexBlockKind::Manifest, &MANIFEST_FILE_ID, 0, &bytes));
        let staged = directory
            .stage_file(StagedContentSource::Bytes(&bytes), FileAttributeSource::New { mode: MANIFEST_MODE })?;
        let name = manifest_name().map_err(|_| DiskError { kind: DiskErrorKind::Io, step: "manifest", errno: None })?;
        let placed = directory.replace_with_staged(&staged, &name);
        if placed.is_err() {
            staged.discard(directory).unwrap_or_default();
        }
        placed
    }

    pub(super) fn segment_ids(&self) -> Vec<RandomIndexFileId> {
        self.segments.iter().map(|segment| segment.name).collect()
    }

    /// The size of all segments of the index on disk.
    pub(super) fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size()).sum()
    }

    /// The number of indexed files, including files that have changed since.
    pub(super) fn files(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.files)).sum()
    }

    /// The files of each segment that contain the required trigrams.
    pub(super) fn files_matching(
        &self,
        required: &RequiredTrigrams,
    ) -> Result<Vec<SelectedIndexedFilesOfSegment>, IndexCorrupt> {
        self.segments.iter().map(|segment| segment.files_matching(required)).collect()
    }

    /// The index data of all segments about the files of a directory.
    pub(super) fn directory_segments(&self, directory: &RelPath) -> Result<DirectoryFilesBySegment, IndexCorrupt> {
        let mut segments = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            segments.extend(segment.directory_files(directory)?.map(|rows| (at, rows)));
        }
        Ok(DirectoryFilesBySegment(segments))
    }
}

/// For each segment that has files of one directory: the position of the segment, and its data about these files.
pub(super) struct DirectoryFilesBySegment(Vec<(usize, IndexedDirectoryFiles)>);

impl DirectoryFilesBySegment {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains_name(&self, name: &FileName) -> bool {
        self.0.iter().any(|(_, rows)| rows.find(name.as_bytes()).is_some())
    }

    /// Finds the index data of a file by the file's name and identity. Returns the position of the segment, the number
    /// of the file in the segment, and the index data of the file. If several segments contain a file with the same
    /// identity, the data of any of these segments is correct.
    pub(super) fn find_file(&self, name: &FileName, stamp: &FileStamp) -> Option<(usize, u32, &IndexedFile)> {
        self.0.iter().find_map(|(at, rows)| {
            let (number, row) = rows.find(name.as_bytes())?;
            (row.fingerprint == *stamp).then_some((*at, number, row))
        })
    }
}

/// A snapshot of the index, and the files that one search must read.
pub(super) struct IndexSnapshotWithSearchCandidates {
    pub(super) snapshot: Arc<IndexSnapshot>,
    /// For each segment of the snapshot, the files that the search must read.
    pub(super) files: Vec<SelectedIndexedFilesOfSegment>,
    /// The function that is called when an index block has a wrong hash.
    pub(super) on_corrupt: Arc<dyn Fn() + Send + Sync>,
}

impl IndexBasedSearchFilter for IndexSnapshotWithSearchCandidates {
    fn directory_index(&self, directory: &RelPath) -> Option<Box<dyn IndexBasedFileFilter + '_>> {
        match self.snapshot.directory_segments(directory) {
            Ok(segments) if segments.is_empty() => None,
            Ok(segments) => Some(Box::new(IndexBasedDirectoryFileFilter { files: &self.files, segments })),
            Err(IndexCorrupt) => {
                (self.on_corrupt)();
                None
            }
        }
    }
}

struct IndexBasedDirectoryFileFilter<'s> {
    files: &'s [SelectedIndexedFilesOfSegment],
    segments: DirectoryFilesBySegment,
}

impl IndexBasedFileFilter for IndexBasedDirectoryFileFilter<'_> {
    fn may_know(&self, name: &FileName) -> bool {
        self.segments.contains_name(name)
    }

    fn verdict(&self, name: &FileName, stamp: &FileStamp) -> Option<IndexBasedFileSkipReason> {
        let (segment, number, row) = self.segments.find_file(name, stamp)?;
        match row.kind {
            IndexedFileKind::Text if self.files.get(segment)?.contains(number) => None,
            IndexedFileKind::Text => Some(IndexBasedFileSkipReason::TextWithoutMatch { bytes: row.fingerprint.size }),
            IndexedFileKind::Binary => Some(IndexBasedFileSkipReason::Binary),
            IndexedFileKind::AlwaysRead => None,
        }
    }
}

/// The names of the files in the index directory that must be kept: the segments and the manifest.
pub(super) fn needed_file_names(names: &[RandomIndexFileId]) -> Vec<String> {
    names.iter().map(segment::segment_file_name).chain([MANIFEST.to_owned()]).collect()
}
