//! The tree of the workload model, and the real tree read from a directory.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::DirEntryExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use stead_engine::Version;

use crate::stress::Fallible;

/// A file's content is a list of pieces, each a serial number and a length.
pub(super) type WorkloadFilePieces = Vec<(u64, usize)>;

/// One item in the tree of the workload model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ModelItem {
    /// The item of the model's tree is a directory.
    Directory,
    /// The item of the model's tree is a file that consists of these pieces.
    File(WorkloadFilePieces),
}

impl ModelItem {
    /// Returns the content of a file that consists of these pieces.
    pub fn content_of(pieces: &[(u64, usize)]) -> String {
        pieces.iter().map(|piece| piece_text(*piece)).collect()
    }
}

pub(super) fn piece_text((serial, length): (u64, usize)) -> String {
    let line = format!("piece {serial}\n");
    let mut text = line.repeat(length / line.len() + 1);
    text.truncate(length.max(line.len()));
    text
}

/// A map from paths to file versions, with `None` for a directory.
pub type CrashTestFileVersionByPath = BTreeMap<String, Option<Version>>;

/// The result of walking a workspace directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestWorkspaceWalkResult {
    /// The files and directories that a caller can see.
    pub paths: CrashTestFileVersionByPath,
    /// The temporary files of interrupted changes, by inode, because a path changes when its directory moves.
    pub leftover_files: BTreeMap<u64, PathBuf>,
}

/// Reads the tree of a workspace directly from its directory, without using stead.
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

/// The name of the trash directory in a workspace whose state directory is on another file system.
const TRASH_DIRECTORY_NAME: &str = ".stead~trash";
