//! Writing a segment. What is found goes to the file directory by directory; lists by gram are gathered in memory, which
//! is why a segment ends when they are many.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use disk::{Attributes, Directory, DiskError, Source, Staged};
use engine::index::Gram;
use path::{Name, RelPath};

use super::{
    Row, TRAILER_BYTES, file_name,
    shelf::{self, NamedRow},
};
use crate::index::{
    seal::{FileName, Key, Kind},
    wire::{put_bytes, put_number},
};

/// Bytes of lists in memory that end a segment.
const LISTS_BYTES_MAX: usize = 24 << 20;
/// Files that end a segment.
const FILES_MAX: u32 = 1 << 20;
/// Bytes of a block of lists; a longer list has a block of its own.
const BLOCK_BYTES: usize = 4 << 10;
/// Bytes that are written at once.
const BUFFER_BYTES: usize = 256 << 10;
/// The mode of a segment: written once.
const MODE: u32 = 0o600;

/// The files that hold one gram: steps from number to number.
#[derive(Default)]
struct List {
    /// One more than the last number.
    after: u32,
    steps: Vec<u8>,
}

/// Spreads grams over a table: they are short and not chosen by an enemy who could gain from it.
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

/// A segment in the making.
pub(in crate::index) struct Writer<'d> {
    place: &'d Directory,
    key: Key,
    name: FileName,
    staged: Staged,
    buffer: Vec<u8>,
    lists: HashMap<Gram, List, BuildHasherDefault<GramHasher>>,
    lists_bytes: usize,
    /// The directory that is being filled.
    open: Option<(RelPath, Vec<NamedRow>)>,
    /// Path, first number, offset and length of every directory.
    directories: Vec<(Vec<u8>, u32, u64, u64)>,
    files: u32,
    /// The file system's clock when this was begun, as the file tells it.
    pub(in crate::index) begun_ns: i128,
}

/// A segment that is there.
pub(in crate::index) struct Finished {
    pub(in crate::index) name: FileName,
}

impl<'d> Writer<'d> {
    pub(in crate::index) fn begin(place: &'d Directory, key: &Key) -> Result<Self, DiskError> {
        let staged = place.stage(Source::Bytes(&[]), Attributes::New { mode: MODE })?;
        let begun_ns = staged.stamp()?.modified_ns;
        Ok(Self {
            place,
            key: key.clone(),
            name: disk::random_bytes()?,
            staged,
            buffer: Vec::new(),
            lists: HashMap::default(),
            lists_bytes: 0,
            open: None,
            directories: Vec::new(),
            files: 0,
            begun_ns,
        })
    }

    pub(in crate::index) fn is_full(&self) -> bool {
        self.lists_bytes >= LISTS_BYTES_MAX || self.files >= FILES_MAX
    }

    /// Bytes that it will have, more or less.
    pub(in crate::index) fn size(&self) -> u64 {
        self.staged.size() + (self.buffer.len() + self.lists_bytes) as u64
    }

    pub(in crate::index) fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// Adds a file. Those of one directory come one after the other, in byte order of their names.
    pub(in crate::index) fn add(
        &mut self,
        directory: &RelPath,
        name: &Name,
        row: Row,
        grams: &[Gram],
    ) -> Result<(), DiskError> {
        let device = |rows: &[NamedRow]| rows.first().map(|(_, row)| row.stamp.identity.0);
        if self.open.as_ref().is_some_and(|(path, rows)| {
            path != directory || device(rows).is_some_and(|device| device != row.stamp.identity.0)
        }) {
            self.close_directory()?;
        }
        let (_, rows) = self.open.get_or_insert_with(|| (directory.clone(), Vec::new()));
        rows.push((name.as_bytes().to_vec(), row));
        for gram in grams {
            let list = self.lists.entry(*gram).or_default();
            let before = list.steps.len();
            put_number(&mut list.steps, u64::from(self.files + 1 - list.after));
            list.after = self.files + 1;
            self.lists_bytes += list.steps.len() - before;
        }
        self.files += 1;
        Ok(())
    }

    fn close_directory(&mut self) -> Result<(), DiskError> {
        let Some((path, rows)) = self.open.take() else { return Ok(()) };
        let device = rows.first().map_or(0, |(_, row)| row.stamp.identity.0);
        let mut block = Vec::new();
        shelf::put(&mut block, device, &rows);
        let first = self.files - u32::try_from(rows.len()).unwrap_or(self.files);
        let offset = self.put(Kind::Shelf, &block)?;
        self.directories.push((path.as_bytes().to_vec(), first, offset, block.len() as u64));
        Ok(())
    }

    /// Writes a sealed block and tells where it is.
    fn put(&mut self, kind: Kind, block: &[u8]) -> Result<u64, DiskError> {
        let offset = self.staged.size() + self.buffer.len() as u64;
        self.buffer.extend_from_slice(block);
        self.buffer.extend_from_slice(&self.key.seal(kind, &self.name, offset, block));
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

    /// Writes the lists, and gives for every block its first gram, where it is, and its length.
    fn put_lists(&mut self) -> Result<Vec<(Gram, u64, u64)>, DiskError> {
        let mut lists: Vec<(Gram, List)> = std::mem::take(&mut self.lists).into_iter().collect();
        lists.sort_unstable_by_key(|(gram, _)| *gram);
        let mut blocks = Vec::new();
        let (mut block, mut first, mut last) = (Vec::new(), 0, 0);
        for (gram, list) in lists {
            if !block.is_empty() && block.len() + list.steps.len() > BLOCK_BYTES {
                blocks.push((first, self.put(Kind::Grams, &block)?, block.len() as u64));
                block.clear();
            }
            if block.is_empty() {
                (first, last) = (gram, 0);
            }
            put_number(&mut block, u64::from(gram - last));
            put_bytes(&mut block, &list.steps);
            last = gram;
        }
        if !block.is_empty() {
            blocks.push((first, self.put(Kind::Grams, &block)?, block.len() as u64));
        }
        Ok(blocks)
    }

    /// Ends the segment and gives it its name. Nothing is synced: what a power cut tears has no right seal.
    pub(in crate::index) fn finish(mut self) -> Result<Finished, DiskError> {
        match self.put_rest() {
            Ok(()) => Ok(Finished { name: self.name }),
            Err(error) => {
                self.abandon();
                Err(error)
            }
        }
    }

    fn put_rest(&mut self) -> Result<(), DiskError> {
        self.close_directory()?;
        let blocks = self.put_lists()?;
        let mut contents = Vec::new();
        self.directories.sort_unstable();
        put_number(&mut contents, self.directories.len() as u64);
        for (path, first, offset, length) in &self.directories {
            put_bytes(&mut contents, path);
            for number in [u64::from(*first), *offset, *length] {
                put_number(&mut contents, number);
            }
        }
        put_number(&mut contents, blocks.len() as u64);
        for (first, offset, length) in blocks {
            for number in [u64::from(first), offset, length] {
                put_number(&mut contents, number);
            }
        }
        let offset = self.put(Kind::Contents, &contents)?;
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        for number in [offset, contents.len() as u64, u64::from(self.files)] {
            trailer.extend_from_slice(&number.to_le_bytes());
        }
        self.put(Kind::Trailer, &trailer)?;
        self.flush()?;
        let name = Name::new(file_name(&self.name).as_bytes()).map_err(|_| disk::DiskError {
            kind: disk::ErrorKind::Io,
            call: "segment name",
            errno: None,
        })?;
        self.place.place_new(&self.staged, &name)
    }

    /// Gives it up; what was written goes.
    pub(in crate::index) fn abandon(self) {
        self.staged.discard(self.place).unwrap_or_default();
    }
}
