//! A snapshot of the search index: the segments that the manifest names at one moment. A snapshot stays usable while
//! segments are built or deleted. If one segment is unusable, the whole index counts as unusable, and the next build
//! replaces it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use stead_disk::{
    DirectoryHandle, DiskError, DiskErrorKind, FileAttributeSource, InodeFingerprint, StagedContentSource,
};
use stead_engine::{
    FileStamp,
    index::{IndexBasedFileFilter, IndexBasedFileSkipReason, IndexBasedSearchFilter, RequiredTrigrams},
};
use stead_journal::write_leb128;
use stead_path::{FileName, RelPath};

use super::{
    blocks::{BLOCK_HASH_BYTES, IndexBlockKind, IndexByteReader, RandomIndexFileId, SearchIndexBlockHashKey},
    segment::{
        self, IndexCorrupt, IndexSegment, IndexedDirectoryFiles, IndexedFile, IndexedFileKind, MatchingFilesOfSegment,
    },
};
use crate::tree::to_engine_stamp;

const MANIFEST: &str = "manifest";
pub(super) const SEGMENTS_MAX: usize = 512;
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
/// The block hashes of the manifest use this fixed file id, because the manifest has no random id.
const MANIFEST_FILE_ID: RandomIndexFileId = [0; 16];
const MANIFEST_MODE: u32 = 0o600;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum IndexCoverage {
    /// The index contains all indexable files, or will contain them after the next builds.
    #[default]
    Complete,
    /// The index has reached its size limit, so every search reads the remaining files.
    SizeLimited,
}

#[derive(Default)]
pub(super) struct IndexSnapshot {
    pub(super) segments: Vec<Arc<IndexSegment>>,
    pub(super) coverage: IndexCoverage,
}

fn manifest_name() -> Result<FileName, IndexCorrupt> {
    FileName::new(MANIFEST.as_bytes()).map_err(|_| IndexCorrupt)
}

pub(super) fn manifest_fingerprint(directory: &DirectoryHandle) -> Result<Option<InodeFingerprint>, IndexCorrupt> {
    let stat = directory.stat(&manifest_name()?).map_err(|_| IndexCorrupt)?;
    Ok(stat.map(|stat| stat.fingerprint))
}

impl IndexSnapshot {
    /// A segment that is already open in the snapshot `before` is not opened again.
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
        let is_complete = reading.read_byte().ok_or(IndexCorrupt)? == 0;
        let coverage = if is_complete { IndexCoverage::Complete } else { IndexCoverage::SizeLimited };
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
        Ok(Self { segments, coverage })
    }

    /// Writing the manifest makes the named segments the current index.
    pub(super) fn write_manifest(
        directory: &DirectoryHandle,
        key: &SearchIndexBlockHashKey,
        names: &[RandomIndexFileId],
        extent: IndexCoverage,
    ) -> Result<(), DiskError> {
        let mut bytes = vec![u8::from(extent == IndexCoverage::SizeLimited)];
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

    pub(super) fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size()).sum()
    }

    /// The number of indexed files includes files that have changed since they were indexed.
    pub(super) fn files(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.files)).sum()
    }

    pub(super) fn files_matching(
        &self,
        required: &RequiredTrigrams,
    ) -> Result<Vec<MatchingFilesOfSegment>, IndexCorrupt> {
        self.segments.iter().map(|segment| segment.files_matching(required)).collect()
    }

    pub(super) fn directory_segments(&self, directory: &RelPath) -> Result<DirectoryFilesBySegment, IndexCorrupt> {
        let mut segments = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            segments.extend(segment.directory_files(directory)?.map(|rows| (at, rows)));
        }
        Ok(DirectoryFilesBySegment(segments))
    }
}

pub(super) struct DirectoryFilesBySegment(Vec<(usize, IndexedDirectoryFiles)>);

impl DirectoryFilesBySegment {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains_name(&self, name: &FileName) -> bool {
        self.0.iter().any(|(_, rows)| rows.find(name.as_bytes()).is_some())
    }

    /// If several segments contain a file with the same name and stamp, the first of these segments is used.
    pub(super) fn find_file(&self, name: &FileName, stamp: &FileStamp) -> Option<(usize, u32, &IndexedFile)> {
        self.0.iter().find_map(|(at, rows)| {
            let (number, row) = rows.find(name.as_bytes())?;
            (to_engine_stamp(&row.fingerprint) == *stamp).then_some((*at, number, row))
        })
    }
}

pub(super) struct IndexSnapshotWithSearchCandidates {
    pub(super) snapshot: Arc<IndexSnapshot>,
    pub(super) files: Vec<MatchingFilesOfSegment>,
    /// Set if a block of the index turns out to be damaged.
    pub(super) is_distrusted: Arc<AtomicBool>,
}

impl IndexBasedSearchFilter for IndexSnapshotWithSearchCandidates {
    fn directory_index(&self, directory: &RelPath) -> Option<Box<dyn IndexBasedFileFilter + '_>> {
        match self.snapshot.directory_segments(directory) {
            Ok(segments) if segments.is_empty() => None,
            Ok(segments) => Some(Box::new(IndexBasedDirectoryFileFilter { files: &self.files, segments })),
            Err(IndexCorrupt) => {
                self.is_distrusted.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

struct IndexBasedDirectoryFileFilter<'s> {
    files: &'s [MatchingFilesOfSegment],
    segments: DirectoryFilesBySegment,
}

impl IndexBasedFileFilter for IndexBasedDirectoryFileFilter<'_> {
    fn may_know(&self, name: &FileName) -> bool {
        self.segments.contains_name(name)
    }

    fn verdict(&self, name: &FileName, stamp: &FileStamp) -> Option<IndexBasedFileSkipReason> {
        let (segment, number, row) = self.segments.find_file(name, stamp)?;
        match row.kind {
            IndexedFileKind::Text => {
                let is_excluded = self.files.get(segment)?.as_ref()?.binary_search(&number).is_err();
                let bytes = row.fingerprint.size;
                is_excluded.then_some(IndexBasedFileSkipReason::TextWithoutMatch { bytes })
            }
            IndexedFileKind::Binary => Some(IndexBasedFileSkipReason::Binary),
            IndexedFileKind::AlwaysRead => None,
        }
    }
}

pub(super) fn needed_file_names(names: &[RandomIndexFileId]) -> Vec<String> {
    names.iter().map(segment::segment_file_name).chain([MANIFEST.to_owned()]).collect()
}
