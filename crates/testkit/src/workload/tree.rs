//! A tree of files as the model knows it, and the same read from a directory.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::DirEntryExt,
    path::{Path, PathBuf},
};

use engine::Version;
use serde::{Deserialize, Serialize};

use crate::rig::Fallible;

/// What a file holds: pieces, each told by its serial number and length.
pub(super) type Pieces = Vec<(u64, usize)>;

/// One thing in the model's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Item {
    /// A directory.
    Directory,
    /// A file.
    File(Pieces),
}

impl Item {
    /// The bytes of a file.
    pub fn content(pieces: &[(u64, usize)]) -> String {
        pieces.iter().map(|piece| piece_text(*piece)).collect()
    }
}

/// The text of one piece: its number, repeated in lines up to its length.
pub(super) fn piece_text((serial, length): (u64, usize)) -> String {
    let line = format!("piece {serial}\n");
    let mut text = line.repeat(length / line.len() + 1);
    text.truncate(length.max(line.len()));
    text
}

/// Paths and what is there: nothing for a directory, the version of a file.
pub type Places = BTreeMap<String, Option<Version>>;

/// What a walk over the directory finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Everything a caller can see.
    pub places: Places,
    /// Half-made files, by their inode: they may be moved along with their directory.
    pub litter: BTreeMap<u64, PathBuf>,
}

/// Walks over a workspace's directory, from outside.
pub fn look_at(top: &Path) -> Fallible<Found> {
    let mut found = Found { places: Places::new(), litter: BTreeMap::new() };
    let mut open = vec![(top.to_path_buf(), String::new())];
    while let Some((directory, prefix)) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, place) = (entry.path(), format!("{prefix}{name}"));
            if place == TRASH_INSIDE || place == "lost+found" {
                continue;
            }
            if name.starts_with(path::TEMPORARY_PREFIX) {
                found.litter.insert(entry.ino(), path);
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push((path, format!("{place}/")));
                found.places.insert(place, None);
            } else {
                found.places.insert(place, Some(Version::of(&fs::read(&path)?)));
            }
        }
    }
    Ok(found)
}

/// Where the trash is when the state directory is on another file system.
const TRASH_INSIDE: &str = ".stead~trash";
