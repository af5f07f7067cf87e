//! The tree of the model, and the same tree read from a directory.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::DirEntryExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use stead_engine::Version;

use crate::stress::Fallible;

/// Content of a file: pieces with serial number and length.
pub(super) type WorkloadFilePieces = Vec<(u64, usize)>;

/// One node of the model's tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelItem {
    /// A directory.
    Directory,
    /// A file.
    File(WorkloadFilePieces),
}

impl ModelItem {
    /// The bytes of a file.
    pub fn content_of(pieces: &[(u64, usize)]) -> String {
        pieces.iter().map(|piece| piece_text(*piece)).collect()
    }
}

/// The text of one piece: its number, repeated up to its length.
pub(super) fn piece_text((serial, length): (u64, usize)) -> String {
    let line = format!("piece {serial}\n");
    let mut text = line.repeat(length / line.len() + 1);
    text.truncate(length.max(line.len()));
    text
}

/// Paths and their content: `None` for a directory, the version of a file.
pub type CrashTestFileVersionByPath = BTreeMap<String, Option<Version>>;

/// Result of a directory walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestWorkspaceWalkResult {
    /// Everything a caller can see.
    pub paths: CrashTestFileVersionByPath,
    /// Staged files by inode; they may move with their directory.
    pub leftover_files: BTreeMap<u64, PathBuf>,
}

/// Walks a workspace's directory, not through stead.
pub fn walk_workspace(top: &Path) -> Fallible<TestWorkspaceWalkResult> {
    let mut found =
        TestWorkspaceWalkResult { paths: CrashTestFileVersionByPath::new(), leftover_files: BTreeMap::new() };
    let mut open = vec![(top.to_path_buf(), String::new())];
    while let Some((directory, prefix)) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (path, place) = (entry.path(), format!("{prefix}{name}"));
            if place == TRASH_DIRECTORY_NAME || place == "lost+found" {
                continue;
            }
            if name.starts_with(stead_path::TEMPORARY_PREFIX) {
                found.leftover_files.insert(entry.ino(), path);
                continue;
            }
            if entry.file_type()?.is_dir() {
                open.push((path, format!("{place}/")));
                found.paths.insert(place, None);
            } else {
                found.paths.insert(place, Some(Version::hash_bytes(&fs::read(&path)?)));
            }
        }
    }
    Ok(found)
}

/// Location of the trash if the state directory is on another file system.
const TRASH_DIRECTORY_NAME: &str = ".stead~trash";
