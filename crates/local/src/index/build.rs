//! Putting files into segments. One process at a time; others go on reading what is there.
//!
//! Promises: a file enters with the stamp it had before and after it was read, and only if that stamp is old enough for
//! every later change to have another one. The index stays below its largest size and says when it has reached it.
//! Whatever fails or is killed half-way leaves the index as it was.

use disk::{Directory, DiskError, OpenFile};
use engine::{
    index::{Gram, Grams, can_be_ruled_out, goes_on, text_of},
    limits,
};
use path::{Name, RelPath};

use super::{
    ground::Ground,
    seal::FileName,
    segment::{Row, Sort, Writer, is_writable},
    snapshot::{Extent, SEGMENTS_MAX, Snapshot, manifest_stamp, needed},
};
use crate::look;

/// Largest size of the whole index on the disk.
const INDEX_BYTES_MAX: u64 = 4 << 30;
/// Room that the index leaves on the disk for everything else.
const FREE_BYTES_MIN: u64 = 1 << 30;
/// A text with more different grams is hardly ever ruled out, and would fill the lists of all.
const GRAMS_MAX: usize = 40_000;

/// How building ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Built {
    /// Everything that was asked for is in, but for what cannot be read or is too young.
    Done {
        /// Files that will do in a while.
        young: u64,
    },
    /// Somebody wanted it to end.
    Stopped,
}

/// Adds files to the index, beginning from the segments of `base`. What is done counts as soon as a segment is full.
pub(super) fn add(
    ground: &Ground,
    place: &Directory,
    base: &Snapshot,
    unknown: &[(RelPath, Vec<Name>)],
    stopped: &dyn Fn() -> bool,
) -> Result<Built, DiskError> {
    let mut names = base.names();
    let mut room = room(ground, base)?;
    let mut extent = if room == 0 { Extent::Cut } else { Extent::Whole };
    if extent == Extent::Cut && base.extent == Extent::Cut {
        return Ok(Built::Done { young: 0 });
    }
    let settled_ns = i128::try_from(ground.settled.as_nanos()).unwrap_or(i128::MAX);
    let (mut young, mut grams, mut bytes) = (0, Grams::default(), Vec::new());
    let mut writer = Writer::begin(place, &ground.key)?;
    for (path, files) in if room > 0 { unknown } else { &[] } {
        let Ok(directory) = ground.root.open_directory(path) else { continue };
        for name in files {
            if stopped() {
                writer.abandon();
                return Ok(Built::Stopped);
            }
            match look_into(&directory, name, writer.begun_ns - settled_ns, &mut bytes, &mut grams) {
                Ok((row, grams)) => writer.add(path, name, row, grams)?,
                Err(Left::Young) => young += 1,
                Err(Left::Unfit) => {}
            }
        }
        if writer.is_full() {
            room = room.saturating_sub(writer.size());
            names.push(writer.finish()?.name);
            publish(ground, place, &names, extent)?;
            writer = Writer::begin(place, &ground.key)?;
            if room == 0 || names.len() + 1 >= SEGMENTS_MAX {
                extent = Extent::Cut;
                break;
            }
        }
    }
    if writer.is_empty() {
        writer.abandon();
    } else {
        names.push(writer.finish()?.name);
    }
    if names != base.names() || extent != base.extent || manifest_stamp(place).ok().flatten().is_none() {
        publish(ground, place, &names, extent)?;
    }
    tidy(place, &names)?;
    Ok(Built::Done { young })
}

/// Why a file did not enter.
enum Left {
    /// It may still change without another stamp; it will do in a while.
    Young,
    /// It cannot be read, or its stamp says too little.
    Unfit,
}

/// What a search would find a file to be, if that will stay true as long as its stamp does: whatever changed since
/// `settled_ns` may change again without another stamp.
fn look_into<'g>(
    directory: &Directory,
    name: &Name,
    settled_ns: i128,
    bytes: &mut Vec<u8>,
    grams: &'g mut Grams,
) -> Result<(Row, &'g [Gram]), Left> {
    let file = directory.open_listed_file(name).map_err(|_| Left::Unfit)?;
    let stamp = look::stamp(&file.stat().stamp);
    if !is_writable(&stamp) {
        return Err(Left::Unfit);
    }
    if stamp.modified_ns.max(stamp.changed_ns) >= settled_ns {
        return Err(Left::Young);
    }
    if stamp.size > limits::SEARCH_FILE_BYTES_MAX {
        return Ok((Row { sort: Sort::Loose, stamp }, &[]));
    }
    file.read_into(bytes, limits::SEARCH_FILE_BYTES_MAX, &goes_on).map_err(|_| Left::Unfit)?;
    let text = text_of(bytes);
    if !is_same(&file, &stamp) {
        return Err(Left::Young);
    }
    if text.is_some() && bytes.len() as u64 != stamp.size {
        return Err(Left::Unfit);
    }
    let (sort, grams) = match text {
        None => (Sort::Binary, &[][..]),
        Some(text) if !can_be_ruled_out(&text) => (Sort::Loose, &[][..]),
        Some(text) => match grams.of(&text) {
            many if many.len() > GRAMS_MAX => (Sort::Loose, &[][..]),
            few => (Sort::Text, few),
        },
    };
    Ok((Row { sort, stamp }, grams))
}

fn is_same(file: &OpenFile, stamp: &engine::Stamp) -> bool {
    file.stat_now().is_ok_and(|now| look::stamp(&now.stamp) == *stamp)
}

/// Bytes that the index may still grow by.
fn room(ground: &Ground, base: &Snapshot) -> Result<u64, DiskError> {
    let free = ground.state.space()?.free_bytes.saturating_sub(FREE_BYTES_MIN);
    Ok(INDEX_BYTES_MAX.saturating_sub(base.size()).min(free))
}

fn publish(ground: &Ground, place: &Directory, names: &[FileName], extent: Extent) -> Result<(), DiskError> {
    Snapshot::write(place, &ground.key, names, extent)
}

/// Removes what no manifest names any more, and what a builder that was killed left.
fn tidy(place: &Directory, names: &[FileName]) -> Result<(), DiskError> {
    let needed = needed(names);
    for listed in place.list()? {
        if !needed.iter().any(|name| name.as_bytes() == listed.name.as_bytes()) {
            // What is no file is not ours, and nothing of ours is lost when it stays.
            place.remove_file(&listed.name).unwrap_or_default();
        }
    }
    Ok(())
}

/// Removes the whole index.
pub(super) fn clear(place: &Directory) -> Result<(), DiskError> {
    for listed in place.list()? {
        place.remove_file(&listed.name).unwrap_or_default();
    }
    Ok(())
}
