//! The index as it is at one moment: the segments that the manifest names, all open. Owns the manifest.
//!
//! Promises: a snapshot stays whole while it is used, whatever is built or dropped meanwhile. One segment that cannot be
//! used makes the whole unusable: what is built next replaces it.

use std::sync::Arc;

use disk::{Attributes, Directory, DiskError, ErrorKind, Source, Stamp};
use engine::{
    Stamp as FileStamp,
    index::{Known, Need, Shelf, Sieve},
};
use path::{Name, RelPath};

use super::{
    seal::{FileName, Key, Kind, SEAL_BYTES},
    segment::{self, Broken, Files, Row, Segment, ShelfRows, Sort},
    wire::{Reading, put_number},
};

/// The file that names the segments.
const MANIFEST: &str = "manifest";
/// Most segments of one index.
pub(super) const SEGMENTS_MAX: usize = 512;
/// Largest manifest that is read.
const MANIFEST_BYTES_MAX: u64 = 64 << 10;
/// The manifest has no number of its own.
const NO_FILE: FileName = [0; 16];
const MODE: u32 = 0o600;

/// Whether everything that could be indexed is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// It is, or will be.
    Whole,
    /// The index has reached its largest size; other files are looked into.
    Cut,
}

/// The index at one moment.
pub(super) struct Snapshot {
    pub(super) segments: Vec<Arc<Segment>>,
    pub(super) extent: Extent,
}

pub(super) fn manifest_name() -> Result<Name, Broken> {
    Name::new(MANIFEST.as_bytes()).map_err(|_| Broken)
}

/// The stamp of the manifest; nothing when there is none.
pub(super) fn manifest_stamp(place: &Directory) -> Result<Option<Stamp>, Broken> {
    let stat = place.stat(&manifest_name()?).map_err(|_| Broken)?;
    Ok(stat.map(|stat| stat.stamp))
}

impl Snapshot {
    /// An index without anything.
    pub(super) fn empty() -> Self {
        Self { segments: Vec::new(), extent: Extent::Whole }
    }

    /// Reads the manifest and opens what it names. Segments that `before` has open are taken from it.
    pub(super) fn load(place: &Directory, key: &Key, before: Option<&Self>) -> Result<Self, Broken> {
        let file = place.open_file(&manifest_name()?).map_err(|_| Broken)?;
        let sealed = file.read_all(MANIFEST_BYTES_MAX).map_err(|_| Broken)?;
        let mut reading = Reading::new(key.open(Kind::Manifest, &NO_FILE, 0, &sealed).ok_or(Broken)?);
        let extent = match reading.byte().ok_or(Broken)? {
            0 => Extent::Whole,
            _ => Extent::Cut,
        };
        let count = reading.number().filter(|count| *count <= SEGMENTS_MAX as u64).ok_or(Broken)?;
        let mut segments = Vec::new();
        for _ in 0..count {
            let name: FileName =
                reading.take(NO_FILE.len()).and_then(|name| name.try_into().ok()).ok_or(Broken)?;
            let known = before.and_then(|before| before.segments.iter().find(|segment| segment.name == name));
            segments.push(match known {
                Some(segment) => Arc::clone(segment),
                None => Arc::new(Segment::open(place, name, key)?),
            });
        }
        Ok(Self { segments, extent })
    }

    /// Writes the manifest: from now on this is the index.
    pub(super) fn write(
        place: &Directory,
        key: &Key,
        names: &[FileName],
        extent: Extent,
    ) -> Result<(), DiskError> {
        let mut bytes = vec![match extent {
            Extent::Whole => 0,
            Extent::Cut => 1,
        }];
        put_number(&mut bytes, names.len() as u64);
        bytes.extend(names.iter().flatten());
        bytes.reserve(SEAL_BYTES);
        bytes.extend(key.seal(Kind::Manifest, &NO_FILE, 0, &bytes));
        let staged = place.stage(Source::Bytes(&bytes), Attributes::New { mode: MODE })?;
        let name =
            manifest_name().map_err(|_| DiskError { kind: ErrorKind::Io, call: "manifest", errno: None })?;
        let placed = place.replace(&staged, &name);
        if placed.is_err() {
            staged.discard(place).unwrap_or_default();
        }
        placed
    }

    /// The names of all segments.
    pub(super) fn names(&self) -> Vec<FileName> {
        self.segments.iter().map(|segment| segment.name).collect()
    }

    /// Bytes on the disk.
    pub(super) fn size(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size()).sum()
    }

    /// How many files are known, those that are no longer so included.
    pub(super) fn files(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.files)).sum()
    }

    /// For every segment the files that may hold what is needed.
    pub(super) fn files_with(&self, need: &Need) -> Result<Vec<Files>, Broken> {
        self.segments.iter().map(|segment| segment.files_with(need)).collect()
    }

    /// Everything that is known of the files of a directory.
    pub(super) fn shelves(&self, directory: &RelPath) -> Result<Shelves, Broken> {
        let mut shelves = Vec::new();
        for (at, segment) in self.segments.iter().enumerate() {
            shelves.extend(segment.shelf(directory)?.map(|rows| (at, rows)));
        }
        Ok(Shelves(shelves))
    }
}

/// What segments know of one directory.
pub(super) struct Shelves(Vec<(usize, ShelfRows)>);

impl Shelves {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn has(&self, name: &Name) -> bool {
        self.0.iter().any(|(_, rows)| rows.find(name.as_bytes()).is_some())
    }

    /// The segment, number and facts of a file that has this stamp. Whichever segment knows that stamp knows the file.
    pub(super) fn find(&self, name: &Name, stamp: &FileStamp) -> Option<(usize, u32, &Row)> {
        self.0.iter().find_map(|(at, rows)| {
            let (number, row) = rows.find(name.as_bytes())?;
            (row.stamp == *stamp).then_some((*at, number, row))
        })
    }
}

/// A snapshot while something is looked for.
pub(super) struct Sifting {
    pub(super) snapshot: Arc<Snapshot>,
    /// For every segment the files that must be looked into.
    pub(super) files: Vec<Files>,
    /// What to do when a block turns out not to be what was written.
    pub(super) broken: Arc<dyn Fn() + Send + Sync>,
}

impl Sieve for Sifting {
    fn shelf(&self, directory: &RelPath) -> Option<Box<dyn Shelf + '_>> {
        match self.snapshot.shelves(directory) {
            Ok(shelves) if shelves.is_empty() => None,
            Ok(shelves) => Some(Box::new(SiftedShelf { files: &self.files, shelves })),
            Err(Broken) => {
                (self.broken)();
                None
            }
        }
    }
}

struct SiftedShelf<'s> {
    files: &'s [Files],
    shelves: Shelves,
}

impl Shelf for SiftedShelf<'_> {
    fn has(&self, name: &Name) -> bool {
        self.shelves.has(name)
    }

    fn known(&self, name: &Name, stamp: &FileStamp) -> Option<Known> {
        let (segment, number, row) = self.shelves.find(name, stamp)?;
        match row.sort {
            Sort::Text if self.files.get(segment)?.contains(number) => None,
            Sort::Text => Some(Known::Text { bytes: row.stamp.size }),
            Sort::Binary => Some(Known::Binary),
            Sort::Loose => None,
        }
    }
}

/// The file names that a snapshot needs in the directory of the index.
pub(super) fn needed(names: &[FileName]) -> Vec<String> {
    names.iter().map(segment::file_name).chain([MANIFEST.to_owned()]).collect()
}
