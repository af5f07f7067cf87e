//! The indexed files of one directory: name, stamp and kind.

use stead_engine::FileIdentity;

use crate::index::byte_codec::{IndexByteReader, write_bytes, write_number};

/// The kind of a file for a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) enum IndexedFileKind {
    /// A text with indexed trigrams.
    Text,
    Binary,
    /// Always read: too large, a line too long, or too many distinct trigrams.
    AlwaysRead,
}

impl IndexedFileKind {
    fn to_number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
            Self::AlwaysRead => 2,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Self::Text, Self::Binary, Self::AlwaysRead].into_iter().find(|sort| sort.to_number() == number)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct IndexedFile {
    pub(in crate::index) kind: IndexedFileKind,
    pub(in crate::index) fingerprint: FileIdentity,
}

pub(super) type NamedIndexedFile = (Vec<u8>, IndexedFile);

/// The files of one directory, in byte order of their names.
pub(in crate::index) struct DirectoryFiles {
    bytes: Vec<u8>,
    /// The range of each name in the bytes, and its data.
    files: Vec<(std::ops::Range<usize>, IndexedFile)>,
    first_number: u32,
}

impl DirectoryFiles {
    /// Decodes the output of [`encode_directory_files`].
    pub(super) fn decode(bytes: Vec<u8>, first: u32) -> Option<Self> {
        let mut rows = Vec::new();
        let mut reading = IndexByteReader::new(&bytes);
        let device = reading.read_number()?;
        while !reading.is_at_end() {
            let name = reading.bytes()?;
            let end = bytes.len() - reading.len();
            let at = end - name.len()..end;
            let sort = IndexedFileKind::from_number(reading.read_byte()?)?;
            let (inode, size) = (reading.read_number()?, reading.read_number()?);
            let (modified_ns, changed_ns) = (read_time(&mut reading)?, read_time(&mut reading)?);
            rows.push((
                at,
                IndexedFile {
                    kind: sort,
                    fingerprint: FileIdentity { device_and_inode: (device, inode), size, modified_ns, changed_ns },
                },
            ));
        }
        Some(Self { bytes, files: rows, first_number: first })
    }

    /// The number and data of a file.
    pub(in crate::index) fn find(&self, name: &[u8]) -> Option<(u32, &IndexedFile)> {
        let of = |at: &std::ops::Range<usize>| self.bytes.get(at.clone()).unwrap_or_default();
        let index = self.files.binary_search_by(|(at, _)| of(at).cmp(name)).ok()?;
        let number = self.first_number.checked_add(u32::try_from(index).ok()?)?;
        Some((number, &self.files.get(index)?.1))
    }

    /// The name and size of a file.
    pub(in crate::index) fn by_number(&self, number: u32) -> Option<(&[u8], u64)> {
        let (at, row) = self.files.get(number.checked_sub(self.first_number)? as usize)?;
        Some((self.bytes.get(at.clone())?, row.fingerprint.size))
    }
}

/// Encodes the files of a directory, which are in byte order and on one device.
pub(super) fn encode_directory_files(out: &mut Vec<u8>, device: u64, rows: &[NamedIndexedFile]) {
    write_number(out, device);
    for (name, IndexedFile { kind: sort, fingerprint: stamp }) in rows {
        write_bytes(out, name);
        out.push(sort.to_number());
        write_number(out, stamp.device_and_inode.1);
        write_number(out, stamp.size);
        for time in [stamp.modified_ns, stamp.changed_ns] {
            write_number(out, u64::try_from(time).unwrap_or(0));
        }
    }
}

fn read_time(reading: &mut IndexByteReader<'_>) -> Option<i128> {
    reading.read_number().map(i128::from)
}

/// Whether a stamp survives encoding unchanged.
pub(in crate::index) fn is_encodable(stamp: &FileIdentity) -> bool {
    [stamp.modified_ns, stamp.changed_ns].iter().all(|time| u64::try_from(*time).is_ok())
}
