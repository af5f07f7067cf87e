//! One immutable file of the index: the files of some directories with their stamps, and for every gram which of them
//! hold it. Read by position on demand; a reader keeps the table of contents in memory and nothing else.
//!
//! Promises: every block is checked against its seal before anything in it is used; a file that is not what it was is
//! [`Broken`], never a wrong answer, a panic or a large allocation. A segment that is replaced stays readable for whoever
//! has it open.

mod shelf;
mod write;

use disk::{Directory, OpenFile};
use engine::index::{Gram, Need};
use path::{Name, RelPath};

pub(super) use shelf::{Row, ShelfRows, Sort, is_writable};
pub(super) use write::Writer;

use super::{
    seal::{FileName, Key, Kind, SEAL_BYTES},
    wire::Reading,
};

/// What a trailer holds besides its seal: where the contents begin, their length, how many files there are.
const TRAILER_BYTES: usize = 24;
/// How the name of a segment begins.
const PREFIX: &str = "segment-";
/// A list of at most so many files is short enough to look into them.
const FEW: usize = 64;

/// The index is not what was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the index is damaged or not this workspace's")]
pub(super) struct Broken;

/// An open segment.
pub(super) struct Segment {
    pub(super) name: FileName,
    key: Key,
    file: OpenFile,
    /// Paths of directories one after the other, in byte order.
    paths: Vec<u8>,
    directories: Vec<DirectoryRow>,
    /// The same directories in the order of their files' numbers.
    by_number: Vec<u32>,
    blocks: Vec<Block>,
    /// How many files it knows.
    pub(super) files: u32,
}

/// Where one directory is found.
#[derive(Debug, Clone, Copy)]
struct DirectoryRow {
    /// Where its path ends among the paths.
    path_end: u32,
    /// The number of its first file.
    first: u32,
    offset: u64,
    length: u32,
}

/// A run of grams.
#[derive(Debug, Clone, Copy)]
struct Block {
    first: Gram,
    offset: u64,
    length: u32,
}

/// Files of a segment by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Files {
    /// All of them.
    All,
    /// These, in order.
    Only(Vec<u32>),
}

impl Files {
    pub(super) fn contains(&self, number: u32) -> bool {
        match self {
            Self::All => true,
            Self::Only(numbers) => numbers.binary_search(&number).is_ok(),
        }
    }
}

/// The file name of a segment.
pub(super) fn file_name(name: &FileName) -> String {
    let hex: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{PREFIX}{hex}")
}

impl Segment {
    /// Opens a segment and reads its table of contents.
    pub(super) fn open(place: &Directory, name: FileName, key: &Key) -> Result<Self, Broken> {
        let file_name = Name::new(file_name(&name).as_bytes()).map_err(|_| Broken)?;
        let file = place.open_file(&file_name).map_err(|_| Broken)?;
        let sealed_bytes = (TRAILER_BYTES + SEAL_BYTES) as u64;
        let at = file.stat().size.checked_sub(sealed_bytes).ok_or(Broken)?;
        let mut segment = Self {
            name,
            key: key.clone(),
            file,
            paths: Vec::new(),
            directories: Vec::new(),
            by_number: Vec::new(),
            blocks: Vec::new(),
            files: 0,
        };
        let trailer = segment.block(Kind::Trailer, at, TRAILER_BYTES as u64)?;
        let number = |from: usize| trailer.get(from..from + 8).and_then(|bytes| bytes.try_into().ok());
        let number = |from: usize| number(from).map(u64::from_le_bytes).ok_or(Broken);
        let contents = segment.block(Kind::Contents, number(0)?, number(8)?)?;
        segment.files = u32::try_from(number(16)?).map_err(|_| Broken)?;
        segment.read_contents(&contents).ok_or(Broken)?;
        Ok(segment)
    }

    fn read_contents(&mut self, contents: &[u8]) -> Option<()> {
        let mut reading = Reading::new(contents);
        let count = reading.number()?;
        for _ in 0..count {
            let path = reading.bytes()?;
            self.paths.extend_from_slice(path);
            let path_end = u32::try_from(self.paths.len()).ok()?;
            let (first, offset, length) = (reading.small()?, reading.number()?, reading.small()?);
            self.directories.push(DirectoryRow { path_end, first, offset, length });
        }
        let count = reading.number()?;
        for _ in 0..count {
            let (first, offset, length) = (reading.small()?, reading.number()?, reading.small()?);
            self.blocks.push(Block { first, offset, length });
        }
        self.paths.shrink_to_fit();
        self.directories.shrink_to_fit();
        self.blocks.shrink_to_fit();
        self.by_number = (0..u32::try_from(self.directories.len()).ok()?).collect();
        let directories = &self.directories;
        self.by_number.sort_unstable_by_key(|at| directories.get(*at as usize).map(|row| row.first));
        reading.is_done().then_some(())
    }

    /// Bytes on the disk.
    pub(super) fn size(&self) -> u64 {
        self.file.stat().size
    }

    /// The checked bytes of a block of this length, its seal not counted.
    fn block(&self, kind: Kind, offset: u64, length: u64) -> Result<Vec<u8>, Broken> {
        let sealed = length.checked_add(SEAL_BYTES as u64).ok_or(Broken)?;
        let end = offset.checked_add(sealed).ok_or(Broken)?;
        if end > self.file.stat().size {
            return Err(Broken);
        }
        let sealed = usize::try_from(sealed).map_err(|_| Broken)?;
        let mut bytes = self.file.read_range(offset, sealed).map_err(|_| Broken)?;
        let length = self.key.open(kind, &self.name, offset, &bytes).ok_or(Broken)?.len();
        bytes.truncate(length);
        if length + SEAL_BYTES == sealed { Ok(bytes) } else { Err(Broken) }
    }

    /// The path of the directory at an index.
    fn path_at(&self, index: usize) -> &[u8] {
        let end = |row: &DirectoryRow| row.path_end as usize;
        let start = index.checked_sub(1).and_then(|before| self.directories.get(before)).map_or(0, end);
        let end = self.directories.get(index).map_or(start, end);
        self.paths.get(start..end).unwrap_or_default()
    }

    /// What it knows of the files of a directory; nothing when it knows none.
    pub(super) fn shelf(&self, directory: &RelPath) -> Result<Option<ShelfRows>, Broken> {
        let wanted = directory.as_bytes();
        let (mut low, mut high) = (0, self.directories.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.path_at(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        match self.directories.get(low) {
            Some(row) if self.path_at(low) == wanted => self.rows(row).map(Some),
            Some(_) | None => Ok(None),
        }
    }

    fn rows(&self, row: &DirectoryRow) -> Result<ShelfRows, Broken> {
        let bytes = self.block(Kind::Shelf, row.offset, u64::from(row.length))?;
        ShelfRows::read(bytes, row.first).ok_or(Broken)
    }

    /// The numbers of files that may hold what is needed.
    pub(super) fn files_with(&self, need: &Need) -> Result<Files, Broken> {
        match need {
            Need::Anything => Ok(Files::All),
            Need::Gram(gram) => Ok(Files::Only(self.holding(*gram)?)),
            Need::All(needs) => self.files_with_all(needs),
            Need::Any(needs) => {
                let mut numbers = Vec::new();
                for need in needs {
                    match self.files_with(need)? {
                        Files::All => return Ok(Files::All),
                        Files::Only(more) => numbers.extend(more),
                    }
                }
                numbers.sort_unstable();
                numbers.dedup();
                Ok(Files::Only(numbers))
            }
        }
    }

    /// Rare grams first; when few files are left, the others are not asked: it costs less to look into those files.
    fn files_with_all(&self, needs: &[Need]) -> Result<Files, Broken> {
        let cost = |need: &Need| match need {
            Need::Gram(gram) => self.block_of(*gram).map_or(0, |block| block.length),
            Need::Anything | Need::All(_) | Need::Any(_) => u32::MAX,
        };
        let mut needs: Vec<(u32, &Need)> = needs.iter().map(|need| (cost(need), need)).collect();
        needs.sort_by_key(|(cost, _)| *cost);
        let mut left = Files::All;
        for (_, need) in needs {
            left = match (left, self.files_with(need)?) {
                (Files::All, files) => files,
                (files, Files::All) => files,
                (Files::Only(mut one), Files::Only(two)) => {
                    one.retain(|number| two.binary_search(number).is_ok());
                    Files::Only(one)
                }
            };
            if matches!(&left, Files::Only(numbers) if numbers.len() <= FEW) {
                break;
            }
        }
        Ok(left)
    }

    fn block_of(&self, gram: Gram) -> Option<&Block> {
        let after = self.blocks.partition_point(|block| block.first <= gram);
        self.blocks.get(after.checked_sub(1)?)
    }

    /// The numbers of files that hold a gram.
    fn holding(&self, wanted: Gram) -> Result<Vec<u32>, Broken> {
        let Some(block) = self.block_of(wanted) else { return Ok(Vec::new()) };
        let bytes = self.block(Kind::Grams, block.offset, u64::from(block.length))?;
        let mut reading = Reading::new(&bytes);
        let mut gram = 0;
        while !reading.is_done() {
            let step = reading.small().ok_or(Broken)?;
            gram = Gram::checked_add(gram, step).ok_or(Broken)?;
            let list = reading.bytes().ok_or(Broken)?;
            if gram == wanted {
                return self.numbers(list);
            }
            if gram > wanted {
                break;
            }
        }
        Ok(Vec::new())
    }

    /// A list of numbers: each as the step from the one before, the first from just below zero.
    fn numbers(&self, list: &[u8]) -> Result<Vec<u32>, Broken> {
        let mut reading = Reading::new(list);
        let (mut numbers, mut after) = (Vec::new(), 0_u32);
        while !reading.is_done() {
            let step = reading.small().filter(|step| *step > 0).ok_or(Broken)?;
            after = after.checked_add(step).filter(|after| *after <= self.files).ok_or(Broken)?;
            numbers.push(after - 1);
        }
        Ok(numbers)
    }

    /// The paths of files by number, with their sizes.
    pub(super) fn paths(&self, numbers: &[u32]) -> Result<Vec<(RelPath, u64)>, Broken> {
        let row = |at: &u32| self.directories.get(*at as usize);
        let mut paths = Vec::with_capacity(numbers.len());
        let mut open: Option<(u32, ShelfRows, RelPath)> = None;
        for number in numbers {
            let begins = |at: &u32| row(at).is_some_and(|row| row.first <= *number);
            let after = self.by_number.partition_point(begins);
            let index = after.checked_sub(1).and_then(|at| self.by_number.get(at)).copied();
            let (index, row) = index.and_then(|index| Some((index, row(&index)?))).ok_or(Broken)?;
            if open.as_ref().is_none_or(|(at, ..)| *at != index) {
                let path =
                    self.path_at(index as usize).split(|byte| *byte == b'/').filter(|name| !name.is_empty());
                let path = RelPath::from_components(path).map_err(|_| Broken)?;
                open = Some((index, self.rows(row)?, path));
            }
            let Some((_, rows, directory)) = &open else { continue };
            let (name, size) = rows.by_number(*number).ok_or(Broken)?;
            let name = Name::new(name).map_err(|_| Broken)?;
            paths.push((directory.join(&name).map_err(|_| Broken)?, size));
        }
        Ok(paths)
    }
}
