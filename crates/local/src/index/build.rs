//! Builds the segments of the search index from files; only one process builds at a time.
//!
//! A file is indexed only if its timestamps and size do not change while it is read. A recently changed file is not
//! indexed, because a further change might not alter its timestamps. The index stays below its size limit. A failed or
//! killed build leaves the index usable, because only complete segments are used.

use stead_disk::{DirectoryHandle, DiskError};
use stead_engine::{
    index::{Trigram, TrigramExtractor, decode_indexable_text, is_indexable, may_be_text},
    limits,
};
use stead_path::{FileName, RelPath};

use super::{
    IndexContext,
    blocks::RandomIndexFileId,
    segment::{IndexSegmentWriter, IndexedFile, IndexedFileKind, is_encodable},
    snapshot::{IndexCoverage, IndexSnapshot, SEGMENTS_MAX, manifest_fingerprint, needed_file_names},
};
use crate::limits::INDEX_BYTES_MAX;

const FREE_BYTES_MIN: u64 = 1 << 30;
/// The largest number of distinct trigrams of an indexed text. A search could rarely skip a text with very many
/// trigrams.
const GRAMS_MAX: usize = 40_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexBuildOutcome {
    Done {
        /// The number of recently modified files, which a later build must index.
        recently_modified: u64,
    },
    Stopped,
}

/// The build adds segments to the segments of the snapshot `base`. Each new index segment is published as soon as it is
/// full.
pub(super) fn build_segments(
    context: &IndexContext,
    index_directory: &DirectoryHandle,
    base: &IndexSnapshot,
    unknown: &[(RelPath, Vec<FileName>)],
    stopped: &dyn Fn() -> bool,
) -> Result<IndexBuildOutcome, DiskError> {
    let mut names = base.segment_ids();
    let mut available = available_bytes(context, base)?;
    let mut extent = if available == 0 { IndexCoverage::SizeLimited } else { IndexCoverage::Complete };
    if extent == IndexCoverage::SizeLimited && base.coverage == IndexCoverage::SizeLimited {
        return Ok(IndexBuildOutcome::Done { recently_modified: 0 });
    }
    let settled_ns = i128::try_from(context.min_file_age.as_nanos()).unwrap_or(i128::MAX);
    let (mut young, mut grams, mut bytes) = (0, TrigramExtractor::default(), Vec::new());
    let mut writer = IndexSegmentWriter::create(index_directory, &context.key)?;
    for (path, files) in if available > 0 { unknown } else { &[] } {
        let Ok(directory) = context.root.open_directory(path) else { continue };
        for name in files {
            if stopped() {
                writer.discard();
                return Ok(IndexBuildOutcome::Stopped);
            }
            match index_file(&directory, name, writer.started_ns - settled_ns, &mut bytes, &mut grams) {
                Ok((row, grams)) => writer.add_file(path, name, row, grams)?,
                Err(IndexSkipReason::RecentlyModified) => young += 1,
                Err(IndexSkipReason::NotIndexable) => {}
            }
        }
        if writer.is_full() {
            available = available.saturating_sub(writer.size());
            names.push(writer.finish()?);
            IndexSnapshot::write_manifest(index_directory, &context.key, &names, extent)?;
            writer = IndexSegmentWriter::create(index_directory, &context.key)?;
            if available == 0 || names.len() + 1 >= SEGMENTS_MAX {
                extent = IndexCoverage::SizeLimited;
                break;
            }
        }
    }
    if writer.is_empty() {
        writer.discard();
    } else {
        names.push(writer.finish()?);
    }
    if names != base.segment_ids()
        || extent != base.coverage
        || manifest_fingerprint(index_directory).ok().flatten().is_none()
    {
        IndexSnapshot::write_manifest(index_directory, &context.key, &names, extent)?;
    }
    remove_unused_segments(index_directory, &names)?;
    Ok(IndexBuildOutcome::Done { recently_modified: young })
}

enum IndexSkipReason {
    /// A file that was changed very recently is skipped, because a further change might not alter its timestamps.
    RecentlyModified,
    NotIndexable,
}

/// Files that changed after `settled_ns` are skipped as recently modified.
fn index_file<'g>(
    directory: &DirectoryHandle,
    name: &FileName,
    settled_ns: i128,
    bytes: &mut Vec<u8>,
    grams: &'g mut TrigramExtractor,
) -> Result<(IndexedFile, &'g [Trigram]), IndexSkipReason> {
    let file = directory.open_listed_file(name).map_err(|_| IndexSkipReason::NotIndexable)?;
    let stamp = file.stat().fingerprint;
    if !is_encodable(&stamp) {
        return Err(IndexSkipReason::NotIndexable);
    }
    if stamp.modified_ns.max(stamp.changed_ns) >= settled_ns {
        return Err(IndexSkipReason::RecentlyModified);
    }
    if stamp.size > limits::SEARCH_IN_MEMORY_BYTES_MAX {
        return Ok((IndexedFile { kind: IndexedFileKind::AlwaysRead, fingerprint: stamp }, &[]));
    }
    file.read_into(bytes, limits::SEARCH_IN_MEMORY_BYTES_MAX, &may_be_text)
        .map_err(|_| IndexSkipReason::NotIndexable)?;
    let text = decode_indexable_text(bytes);
    if !file.restat().is_ok_and(|now| now.fingerprint == stamp) {
        return Err(IndexSkipReason::RecentlyModified);
    }
    if text.is_some() && bytes.len() as u64 != stamp.size {
        return Err(IndexSkipReason::NotIndexable);
    }
    let (sort, grams) = match text {
        None => (IndexedFileKind::Binary, &[][..]),
        Some(text) if !is_indexable(&text) => (IndexedFileKind::AlwaysRead, &[][..]),
        Some(text) => match grams.extract(&text) {
            many if many.len() > GRAMS_MAX => (IndexedFileKind::AlwaysRead, &[][..]),
            few => (IndexedFileKind::Text, few),
        },
    };
    Ok((IndexedFile { kind: sort, fingerprint: stamp }, grams))
}

fn available_bytes(context: &IndexContext, base: &IndexSnapshot) -> Result<u64, DiskError> {
    let free = context.state.disk_space()?.free_bytes.saturating_sub(FREE_BYTES_MIN);
    Ok(INDEX_BYTES_MAX.saturating_sub(base.size()).min(free))
}

/// Deletes files of the index directory that the manifest does not name, such as the files of killed builds.
fn remove_unused_segments(index_directory: &DirectoryHandle, names: &[RandomIndexFileId]) -> Result<(), DiskError> {
    let needed = needed_file_names(names);
    for entry in index_directory.list()? {
        if !needed.iter().any(|name| name.as_bytes() == entry.name.as_bytes()) {
            // `remove_file` cannot delete a directory, so a directory in the index directory stays.
            index_directory.remove_file(&entry.name).unwrap_or_default();
        }
    }
    Ok(())
}

pub(super) fn delete_index_files(index_directory: &DirectoryHandle) -> Result<(), DiskError> {
    for entry in index_directory.list()? {
        index_directory.remove_file(&entry.name).unwrap_or_default();
    }
    Ok(())
}
