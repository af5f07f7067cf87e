//! A segment is one immutable file of the search index. A segment contains the identities of the files of some
//! directories, and for each trigram a posting list. A posting list contains the numbers of the files in which the
//! trigram occurs.
//!
//! The hash of every block is checked before the block is used. A modified segment leads to [`IndexCorrupt`], never to
//! a wrong result, a panic or a large allocation.

mod write;

use stead_disk::{DirectoryHandle, InodeFingerprint, InodeId, OpenFile};
use stead_engine::index::{RequiredTrigrams, Trigram};
use stead_journal::write_leb128;
use stead_path::{FileName, RelPath};

pub(super) use write::IndexSegmentWriter;

use super::blocks::{
    BLOCK_HASH_BYTES, IndexBlockKind, IndexByteReader, RandomIndexFileId, SearchIndexBlockHashKey, write_bytes,
};
use crate::token::to_hex;

const TRAILER_BYTES: usize = 24;
const SEGMENT_FILE_PREFIX: &str = "segment-";
/// The number of candidate files at which a lookup of several trigrams ends early.
const FEW_FILES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index is damaged or not this workspace's")]
pub(super) struct IndexCorrupt;

pub(super) struct IndexSegment {
    pub(super) name: RandomIndexFileId,
    key: SearchIndexBlockHashKey,
    file: OpenFile,
    paths: Vec<u8>,
    directories: Vec<IndexedDirectoryBlockLocation>,
    /// The positions of the segment's directories, sorted by their first file number.
    directories_by_number: Vec<u32>,
    blocks: Vec<PostingBlockLocation>,
    pub(super) files: u32,
}

#[derive(Debug, Clone, Copy)]
struct IndexedDirectoryBlockLocation {
    path_end: u32,
    first_file: u32,
    offset: u64,
    length: u32,
}

#[derive(Debug, Clone, Copy)]
struct PostingBlockLocation {
    first_gram: Trigram,
    offset: u64,
    length: u32,
}

/// The sorted numbers of the files of a segment that may match; `None` if every file may match.
pub(super) type MatchingFilesOfSegment = Option<Vec<u32>>;

pub(super) fn segment_file_name(name: &RandomIndexFileId) -> String {
    format!("{SEGMENT_FILE_PREFIX}{}", to_hex(name))
}

impl IndexSegment {
    pub(super) fn open(
        directory: &DirectoryHandle,
        name: RandomIndexFileId,
        key: &SearchIndexBlockHashKey,
    ) -> Result<Self, IndexCorrupt> {
        let file_name = FileName::new(segment_file_name(&name).as_bytes()).map_err(|_| IndexCorrupt)?;
        let file = directory.open_file(&file_name).map_err(|_| IndexCorrupt)?;
        let sealed_bytes = (TRAILER_BYTES + BLOCK_HASH_BYTES) as u64;
        let at = file.stat().size.checked_sub(sealed_bytes).ok_or(IndexCorrupt)?;
        let mut segment = Self {
            name,
            key: key.clone(),
            file,
            paths: Vec::new(),
            directories: Vec::new(),
            directories_by_number: Vec::new(),
            blocks: Vec::new(),
            files: 0,
        };
        let trailer = segment.read_block(IndexBlockKind::Trailer, at, TRAILER_BYTES as u64)?;
        let number = |from: usize| trailer.get(from..from + 8).and_then(|bytes| bytes.try_into().ok());
        let number = |from: usize| number(from).map(u64::from_le_bytes).ok_or(IndexCorrupt);
        let contents = segment.read_block(IndexBlockKind::Contents, number(0)?, number(8)?)?;
        segment.files = u32::try_from(number(16)?).map_err(|_| IndexCorrupt)?;
        segment.read_contents(&contents).ok_or(IndexCorrupt)?;
        Ok(segment)
    }

    fn read_contents(&mut self, contents: &[u8]) -> Option<()> {
        let mut reading = IndexByteReader::new(contents);
        let count = reading.read_number()?;
        for _ in 0..count {
            let path = reading.bytes()?;
            self.paths.extend_from_slice(path);
            let path_end = u32::try_from(self.paths.len()).ok()?;
            let (first, offset, length) =
                (reading.read_number_u32()?, reading.read_number()?, reading.read_number_u32()?);
            self.directories.push(IndexedDirectoryBlockLocation { path_end, first_file: first, offset, length });
        }
        let count = reading.read_number()?;
        for _ in 0..count {
            let (first, offset, length) =
                (reading.read_number_u32()?, reading.read_number()?, reading.read_number_u32()?);
            self.blocks.push(PostingBlockLocation { first_gram: first, offset, length });
        }
        self.paths.shrink_to_fit();
        self.directories.shrink_to_fit();
        self.blocks.shrink_to_fit();
        self.directories_by_number = (0..u32::try_from(self.directories.len()).ok()?).collect();
        let directories = &self.directories;
        self.directories_by_number.sort_unstable_by_key(|at| directories.get(*at as usize).map(|row| row.first_file));
        reading.is_at_end().then_some(())
    }

    pub(super) fn size(&self) -> u64 {
        self.file.stat().size
    }

    fn read_block(&self, kind: IndexBlockKind, offset: u64, length: u64) -> Result<Vec<u8>, IndexCorrupt> {
        let sealed = length.checked_add(BLOCK_HASH_BYTES as u64).ok_or(IndexCorrupt)?;
        let end = offset.checked_add(sealed).ok_or(IndexCorrupt)?;
        if end > self.file.stat().size {
            return Err(IndexCorrupt);
        }
        let sealed = usize::try_from(sealed).map_err(|_| IndexCorrupt)?;
        let mut bytes = self.file.read_range(offset, sealed).map_err(|_| IndexCorrupt)?;
        let length = self.key.verify_block(kind, &self.name, offset, &bytes).ok_or(IndexCorrupt)?.len();
        bytes.truncate(length);
        if length + BLOCK_HASH_BYTES == sealed { Ok(bytes) } else { Err(IndexCorrupt) }
    }

    fn path_at(&self, index: usize) -> &[u8] {
        let end = |row: &IndexedDirectoryBlockLocation| row.path_end as usize;
        let start = index.checked_sub(1).and_then(|before| self.directories.get(before)).map_or(0, end);
        let end = self.directories.get(index).map_or(start, end);
        self.paths.get(start..end).unwrap_or_default()
    }

    pub(super) fn directory_files(&self, directory: &RelPath) -> Result<Option<IndexedDirectoryFiles>, IndexCorrupt> {
        let wanted = directory.as_bytes();
        let (mut low, mut high) = (0, self.directories.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.path_at(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        match self.directories.get(low) {
            Some(row) if self.path_at(low) == wanted => self.read_directory_files(row).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    fn read_directory_files(&self, row: &IndexedDirectoryBlockLocation) -> Result<IndexedDirectoryFiles, IndexCorrupt> {
        let bytes = self.read_block(IndexBlockKind::DirectoryFiles, row.offset, u64::from(row.length))?;
        IndexedDirectoryFiles::decode(bytes, row.first_file).ok_or(IndexCorrupt)
    }

    pub(super) fn files_matching(&self, required: &RequiredTrigrams) -> Result<MatchingFilesOfSegment, IndexCorrupt> {
        match required {
            RequiredTrigrams::Anything => Ok(None),
            RequiredTrigrams::Trigram(gram) => self.files_containing(*gram).map(Some),
            RequiredTrigrams::All(needs) => self.files_matching_all(needs),
            RequiredTrigrams::Any(needs) => {
                let mut numbers = Vec::new();
                for required in needs {
                    let Some(more) = self.files_matching(required)? else { return Ok(None) };
                    numbers.extend(more);
                }
                numbers.sort_unstable();
                numbers.dedup();
                Ok(Some(numbers))
            }
        }
    }

    /// Rare trigrams are looked up first. Once few candidate files are left, the lookup skips the other trigrams,
    /// because reading the files costs less.
    fn files_matching_all(&self, needs: &[RequiredTrigrams]) -> Result<MatchingFilesOfSegment, IndexCorrupt> {
        let cost = |required: &RequiredTrigrams| match required {
            RequiredTrigrams::Trigram(gram) => self.block_of(*gram).map_or(0, |block| block.length),
            RequiredTrigrams::Anything | RequiredTrigrams::All(_) | RequiredTrigrams::Any(_) => u32::MAX,
        };
        let mut needs: Vec<(u32, &RequiredTrigrams)> =
            needs.iter().map(|required| (cost(required), required)).collect();
        needs.sort_by_key(|(cost, _)| *cost);
        let mut left: MatchingFilesOfSegment = None;
        for (_, required) in needs {
            left = match (left, self.files_matching(required)?) {
                (Some(mut one), Some(two)) => {
                    one.retain(|number| two.binary_search(number).is_ok());
                    Some(one)
                }
                (one, two) => one.or(two),
            };
            if left.as_ref().is_some_and(|numbers| numbers.len() <= FEW_FILES) {
                break;
            }
        }
        Ok(left)
    }

    fn block_of(&self, gram: Trigram) -> Option<&PostingBlockLocation> {
        let after = self.blocks.partition_point(|block| block.first_gram <= gram);
        self.blocks.get(after.checked_sub(1)?)
    }

    fn files_containing(&self, wanted: Trigram) -> Result<Vec<u32>, IndexCorrupt> {
        let Some(block) = self.block_of(wanted) else { return Ok(Vec::new()) };
        let bytes = self.read_block(IndexBlockKind::Grams, block.offset, u64::from(block.length))?;
        let mut reading = IndexByteReader::new(&bytes);
        let mut gram = 0;
        while !reading.is_at_end() {
            let step = reading.read_number_u32().ok_or(IndexCorrupt)?;
            gram = Trigram::checked_add(gram, step).ok_or(IndexCorrupt)?;
            let list = reading.bytes().ok_or(IndexCorrupt)?;
            if gram == wanted {
                return self.decode_file_numbers(list);
            }
            if gram > wanted {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// A posting list stores each file number as its difference from the previous number, beginning with -1.
    fn decode_file_numbers(&self, list: &[u8]) -> Result<Vec<u32>, IndexCorrupt> {
        let mut reading = IndexByteReader::new(list);
        let (mut numbers, mut after) = (Vec::new(), 0_u32);
        while !reading.is_at_end() {
            let step = reading.read_number_u32().filter(|step| *step > 0).ok_or(IndexCorrupt)?;
            after = after.checked_add(step).filter(|after| *after <= self.files).ok_or(IndexCorrupt)?;
            numbers.push(after - 1);
        }
        Ok(numbers)
    }

    pub(super) fn paths_of_files(&self, numbers: &[u32]) -> Result<Vec<(RelPath, u64)>, IndexCorrupt> {
        let row = |at: &u32| self.directories.get(*at as usize);
        let mut paths = Vec::with_capacity(numbers.len());
        let mut open: Option<(u32, IndexedDirectoryFiles, RelPath)> = None;
        for number in numbers {
            let begins = |at: &u32| row(at).is_some_and(|row| row.first_file <= *number);
            let after = self.directories_by_number.partition_point(begins);
            let index = after.checked_sub(1).and_then(|at| self.directories_by_number.get(at)).copied();
            let (index, row) = index.and_then(|index| Some((index, row(&index)?))).ok_or(IndexCorrupt)?;
            if open.as_ref().is_none_or(|(at, ..)| *at != index) {
                let path = self.path_at(index as usize).split(|byte| *byte == b'/').filter(|name| !name.is_empty());
                let path = RelPath::from_components(path).map_err(|_| IndexCorrupt)?;
                open = Some((index, self.read_directory_files(row)?, path));
            }
            let Some((_, rows, directory)) = &open else { continue };
            let (name, size) = rows.by_number(*number).ok_or(IndexCorrupt)?;
            let name = FileName::new(name).map_err(|_| IndexCorrupt)?;
            paths.push((directory.join(&name).map_err(|_| IndexCorrupt)?, size));
        }
        Ok(paths)
    }
}

/// The number of a file's kind is stored in the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexedFileKind {
    Text = 0,
    Binary = 1,
    /// Every search reads the file, because the file is too large, has too long a line or has too many trigrams.
    AlwaysRead = 2,
}

impl IndexedFileKind {
    fn from_number(number: u8) -> Option<Self> {
        [Self::Text, Self::Binary, Self::AlwaysRead].into_iter().find(|kind| *kind as u8 == number)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexedFile {
    pub(super) kind: IndexedFileKind,
    pub(super) fingerprint: InodeFingerprint,
}

type NamedIndexedFile = (Vec<u8>, IndexedFile);

/// The indexed files of one directory are in byte order of their names.
pub(super) struct IndexedDirectoryFiles {
    bytes: Vec<u8>,
    files: Vec<(std::ops::Range<usize>, IndexedFile)>,
    first_number: u32,
}

impl IndexedDirectoryFiles {
    fn decode(bytes: Vec<u8>, first: u32) -> Option<Self> {
        let mut rows = Vec::new();
        let mut reading = IndexByteReader::new(&bytes);
        let device = reading.read_number()?;
        while !reading.is_at_end() {
            let name = reading.bytes()?;
            let end = bytes.len() - reading.len();
            let at = end - name.len()..end;
            let kind = IndexedFileKind::from_number(reading.read_byte()?)?;
            let (inode, size) = (reading.read_number()?, reading.read_number()?);
            let (modified_ns, changed_ns) = (read_time(&mut reading)?, read_time(&mut reading)?);
            let id = InodeId { dev: device, ino: inode };
            let fingerprint = InodeFingerprint { id, size, modified_ns, changed_ns };
            rows.push((at, IndexedFile { kind, fingerprint }));
        }
        Some(Self { bytes, files: rows, first_number: first })
    }

    pub(super) fn find(&self, name: &[u8]) -> Option<(u32, &IndexedFile)> {
        let of = |at: &std::ops::Range<usize>| self.bytes.get(at.clone()).unwrap_or_default();
        let index = self.files.binary_search_by(|(at, _)| of(at).cmp(name)).ok()?;
        let number = self.first_number.checked_add(u32::try_from(index).ok()?)?;
        Some((number, &self.files.get(index)?.1))
    }

    pub(super) fn by_number(&self, number: u32) -> Option<(&[u8], u64)> {
        let (at, row) = self.files.get(number.checked_sub(self.first_number)? as usize)?;
        Some((self.bytes.get(at.clone())?, row.fingerprint.size))
    }
}

fn encode_directory_files(out: &mut Vec<u8>, device: u64, rows: &[NamedIndexedFile]) {
    write_leb128(out, device);
    for (name, IndexedFile { kind, fingerprint: stamp }) in rows {
        write_bytes(out, name);
        out.push(*kind as u8);
        write_leb128(out, stamp.id.ino);
        write_leb128(out, stamp.size);
        for time in [stamp.modified_ns, stamp.changed_ns] {
            write_leb128(out, u64::try_from(time).unwrap_or(0));
        }
    }
}

fn read_time(reading: &mut IndexByteReader<'_>) -> Option<i128> {
    reading.read_number().map(i128::from)
}

pub(super) fn is_encodable(stamp: &InodeFingerprint) -> bool {
    [stamp.modified_ns, stamp.changed_ns].iter().all(|time| u64::try_from(*time).is_ok())
}
