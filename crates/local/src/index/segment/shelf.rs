//! The files of one directory, as a segment knows them: name, stamp, and what they are.

use engine::Stamp;

use crate::index::wire::{Reading, put_bytes, put_number};

/// What a file is to a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) enum Sort {
    /// A text whose grams are known.
    Text,
    /// No text.
    Binary,
    /// Always looked into: too large to be held, a line too long, or more different grams than are worth their room.
    Loose,
}

impl Sort {
    fn number(self) -> u8 {
        match self {
            Self::Text => 0,
            Self::Binary => 1,
            Self::Loose => 2,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [Self::Text, Self::Binary, Self::Loose].into_iter().find(|sort| sort.number() == number)
    }
}

/// One file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct Row {
    pub(in crate::index) sort: Sort,
    pub(in crate::index) stamp: Stamp,
}

/// A name and what is known of it.
pub(super) type NamedRow = (Vec<u8>, Row);

/// The files of one directory, in byte order of their names.
pub(in crate::index) struct ShelfRows {
    bytes: Vec<u8>,
    /// Where each name lies in the bytes, and what is known of it.
    rows: Vec<(std::ops::Range<usize>, Row)>,
    /// The number of the first file.
    first: u32,
}

impl ShelfRows {
    /// Reads what [`put`] wrote.
    pub(super) fn read(bytes: Vec<u8>, first: u32) -> Option<Self> {
        let mut rows = Vec::new();
        let mut reading = Reading::new(&bytes);
        let device = reading.number()?;
        while !reading.is_done() {
            let name = reading.bytes()?;
            let end = bytes.len() - reading.len();
            let at = end - name.len()..end;
            let sort = Sort::from_number(reading.byte()?)?;
            let (inode, size) = (reading.number()?, reading.number()?);
            let (modified_ns, changed_ns) = (time(&mut reading)?, time(&mut reading)?);
            rows.push((
                at,
                Row { sort, stamp: Stamp { identity: (device, inode), size, modified_ns, changed_ns } },
            ));
        }
        Some(Self { bytes, rows, first })
    }

    /// The number and the facts of a file.
    pub(in crate::index) fn find(&self, name: &[u8]) -> Option<(u32, &Row)> {
        let of = |at: &std::ops::Range<usize>| self.bytes.get(at.clone()).unwrap_or_default();
        let index = self.rows.binary_search_by(|(at, _)| of(at).cmp(name)).ok()?;
        let number = self.first.checked_add(u32::try_from(index).ok()?)?;
        Some((number, &self.rows.get(index)?.1))
    }

    /// The name and size of a file.
    pub(in crate::index) fn by_number(&self, number: u32) -> Option<(&[u8], u64)> {
        let (at, row) = self.rows.get(number.checked_sub(self.first)? as usize)?;
        Some((self.bytes.get(at.clone())?, row.stamp.size))
    }
}

/// Writes the files of a directory, which are in byte order of their names and on one device.
pub(super) fn put(out: &mut Vec<u8>, device: u64, rows: &[NamedRow]) {
    put_number(out, device);
    for (name, Row { sort, stamp }) in rows {
        put_bytes(out, name);
        out.push(sort.number());
        put_number(out, stamp.identity.1);
        put_number(out, stamp.size);
        for time in [stamp.modified_ns, stamp.changed_ns] {
            put_number(out, u64::try_from(time).unwrap_or(0));
        }
    }
}

fn time(reading: &mut Reading<'_>) -> Option<i128> {
    reading.number().map(i128::from)
}

/// Whether a stamp can be written and comes back the same.
pub(in crate::index) fn is_writable(stamp: &Stamp) -> bool {
    [stamp.modified_ns, stamp.changed_ns].iter().all(|time| u64::try_from(*time).is_ok())
}
