//! Writes a segment of the search index, directory by directory. The posting lists of a segment are collected in
//! memory, so their size limits the size of the segment.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use stead_disk::{DirectoryHandle, DiskError, DiskErrorKind, FileAttributeSource, StagedContentSource, StagedFile};
use stead_engine::index::Trigram;
use stead_journal::write_leb128;
use stead_path::{FileName, RelPath};

use super::{IndexedFile, NamedIndexedFile, TRAILER_BYTES, encode_directory_files, segment_file_name};
use crate::index::blocks::{IndexBlockKind, RandomIndexFileId, SearchIndexBlockHashKey, write_bytes};

/// The size in bytes of the posting lists at which an index segment is full.
const POSTING_LISTS_BYTES_MAX: usize = 24 << 20;
const FILES_MAX: u32 = 1 << 20;
/// The size in bytes of a block of posting lists; a longer posting list gets a block of its own.
const BLOCK_BYTES: usize = 4 << 10;
const BUFFER_BYTES: usize = 256 << 10;
const SEGMENT_FILE_MODE: u32 = 0o600;

/// Each file number of a posting list is encoded as its difference from the previous number.
#[derive(Default)]
struct PostingList {
    /// The last file number of the posting list plus one; 0 while the posting list is empty.
    next_number: u32,
    encoded_steps: Vec<u8>,
}

/// The hash function for trigrams need not resist attackers, because collisions only slow down a build.
#[derive(Default)]
struct GramHasher(u64);

impl Hasher for GramHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        let mixed = (self.0 ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

pub(in crate::index) struct IndexSegmentWriter<'d> {
    directory: &'d DirectoryHandle,
    key: SearchIndexBlockHashKey,
    name: RandomIndexFileId,
    staged: StagedFile,
    buffer: Vec<u8>,
    posting_lists: HashMap<Trigram, PostingList, BuildHasherDefault<GramHasher>>,
    posting_lists_bytes: usize,
    current_directory: Option<(RelPath, Vec<NamedIndexedFile>)>,
    directories: Vec<(Vec<u8>, u32, u64, u64)>,
    files: u32,
    /// The time at which the segment was begun, by the clock of the file system.
    pub(in crate::index) started_ns: i128,
}

impl<'d> IndexSegmentWriter<'d> {
    pub(in crate::index) fn create(
        directory: &'d DirectoryHandle,
        key: &SearchIndexBlockHashKey,
    ) -> Result<Self, DiskError> {
        let staged = directory
            .stage_file(StagedContentSource::Bytes(&[]), FileAttributeSource::New { mode: SEGMENT_FILE_MODE })?;
        let started_ns = staged.stat().modified_ns;
        Ok(Self {
            directory,
            key: key.clone(),
            name: stead_disk::random_bytes()?,
            staged,
            buffer: Vec::new(),
            posting_lists: HashMap::default(),
            posting_lists_bytes: 0,
            current_directory: None,
            directories: Vec::new(),
            files: 0,
            started_ns,
        })
    }

    pub(in crate::index) fn is_full(&self) -> bool {
        self.posting_lists_bytes >= POSTING_LISTS_BYTES_MAX || self.files >= FILES_MAX
    }

    pub(in crate::index) fn size(&self) -> u64 {
        self.staged.stat().size + (self.buffer.len() + self.posting_lists_bytes) as u64
    }

    pub(in crate::index) fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// The files of one directory must be added to a segment one after the other, in byte order of their names.
    pub(in crate::index) fn add_file(
        &mut self,
        directory: &RelPath,
        name: &FileName,
        row: IndexedFile,
        grams: &[Trigram],
    ) -> Result<(), DiskError> {
        let device = |rows: &[NamedIndexedFile]| rows.first().map(|(_, row)| row.fingerprint.id.dev);
        if self.current_directory.as_ref().is_some_and(|(path, rows)| {
            path != directory || device(rows).is_some_and(|device| device != row.fingerprint.id.dev)
        }) {
            self.close_directory()?;
        }
        let (_, rows) = self.current_directory.get_or_insert_with(|| (directory.clone(), Vec::new()));
        rows.push((name.as_bytes().to_vec(), row));
        for gram in grams {
            let list = self.posting_lists.entry(*gram).or_default();
            let before = list.encoded_steps.len();
            write_leb128(&mut list.encoded_steps, u64::from(self.files + 1 - list.next_number));
            list.next_number = self.files + 1;
            self.posting_lists_bytes += list.encoded_steps.len() - before;
        }
        self.files += 1;
        Ok(())
    }

    fn close_directory(&mut self) -> Result<(), DiskError> {
        let Some((path, rows)) = self.current_directory.take() else { return Ok(()) };
        let device = rows.first().map_or(0, |(_, row)| row.fingerprint.id.dev);
        let mut block = Vec::new();
        encode_directory_files(&mut block, device, &rows);
        let first = self.files - u32::try_from(rows.len()).unwrap_or(self.files);
        let offset = self.write_block(IndexBlockKind::DirectoryFiles, &block)?;
        self.directories.push((path.as_bytes().to_vec(), first, offset, block.len() as u64));
        Ok(())
    }

    fn write_block(&mut self, kind: IndexBlockKind, block: &[u8]) -> Result<u64, DiskError> {
        let offset = self.staged.stat().size + self.buffer.len() as u64;
        self.buffer.extend_from_slice(block);
        self.buffer.extend_from_slice(&self.key.hash_block(kind, &self.name, offset, block));
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(offset)
    }

    fn flush(&mut self) -> Result<(), DiskError> {
        self.staged.append(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn write_posting_lists(&mut self) -> Result<Vec<(Trigram, u64, u64)>, DiskError> {
        let mut lists: Vec<(Trigram, PostingList)> = std::mem::take(&mut self.posting_lists).into_iter().collect();
        lists.sort_unstable_by_key(|(gram, _)| *gram);
        let mut blocks = Vec::new();
        let (mut block, mut first, mut last) = (Vec::new(), 0, 0);
        for (gram, list) in lists {
            if !block.is_empty() && block.len() + list.encoded_steps.len() > BLOCK_BYTES {
                blocks.push((first, self.write_block(IndexBlockKind::Grams, &block)?, block.len() as u64));
                block.clear();
            }
            if block.is_empty() {
                (first, last) = (gram, 0);
            }
            write_leb128(&mut block, u64::from(gram - last));
            write_bytes(&mut block, &list.encoded_steps);
            last = gram;
        }
        if !block.is_empty() {
            blocks.push((first, self.write_block(IndexBlockKind::Grams, &block)?, block.len() as u64));
        }
        Ok(blocks)
    }

    /// The segment file is not synced: if a power cut damages a block, the block's wrong hash shows the damage.
    pub(in crate::index) fn finish(mut self) -> Result<RandomIndexFileId, DiskError> {
        let (written, name) = (self.write_tables(), self.name);
        if written.is_err() {
            self.discard();
        }
        written.map(|()| name)
    }

    fn write_tables(&mut self) -> Result<(), DiskError> {
        self.close_directory()?;
        let blocks = self.write_posting_lists()?;
        let mut contents = Vec::new();
        self.directories.sort_unstable();
        write_leb128(&mut contents, self.directories.len() as u64);
        for (path, first, offset, length) in &self.directories {
            write_bytes(&mut contents, path);
            for number in [u64::from(*first), *offset, *length] {
                write_leb128(&mut contents, number);
            }
        }
        write_leb128(&mut contents, blocks.len() as u64);
        for (first, offset, length) in blocks {
            for number in [u64::from(first), offset, length] {
                write_leb128(&mut contents, number);
            }
        }
        let offset = self.write_block(IndexBlockKind::Contents, &contents)?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        for number in [offset, contents.len() as u64, u64::from(self.files)] {
            trailer.extend_from_slice(&number.to_le_bytes());
        }
        self.write_block(IndexBlockKind::Trailer, &trailer)?;
        self.flush()?;
        let invalid = DiskError { kind: DiskErrorKind::Io, step: "segment name", errno: None };
        let name = FileName::new(segment_file_name(&self.name).as_bytes()).map_err(|_| invalid)?;
        self.directory.rename_staged_to_new(&self.staged, &name)
    }

    pub(in crate::index) fn discard(self) {
        self.staged.discard(self.directory).unwrap_or_default();
    }
}
