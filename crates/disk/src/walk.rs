//! Walks over directory trees without following a link and without entering a hidden directory or a mount that is not
//! allowed. A walk visits names in order and reports whether it visited everything.

use stead_path::{DEPTH_MAX, FileName, RelPath};

use crate::{DirectoryHandle, DiskDirectoryEntry, DiskError, DiskErrorKind, FileType};

const UNREADABLE_LISTED_MAX: usize = 100;

/// The limits on the depth and the number of entries of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLimits {
    /// The number of directory levels that a walk visits; with 1, a walk visits only the entries of the start
    /// directory.
    pub depth: usize,
    /// The largest number of entries that a walk visits.
    pub entries: u64,
}

impl Default for WalkLimits {
    fn default() -> Self {
        Self { depth: DEPTH_MAX, entries: u64::MAX }
    }
}

/// A file or directory that a walk visits.
#[derive(Debug)]
pub struct WalkEntry<'a> {
    /// The path of the visited entry, relative to the start directory of the walk.
    pub path: &'a RelPath,
    /// The directory that contains the visited entry.
    pub parent: &'a DirectoryHandle,
    /// The name of the visited entry in its directory.
    pub name: &'a FileName,
    /// The file type of the visited entry.
    pub file_type: FileType,
}

/// The visitor's decision how the walk continues after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkControl {
    /// The walk continues and enters the visited entry if it is a directory.
    Continue,
    /// The walk continues without entering the visited directory.
    SkipDirectory,
    /// The walk ends after the visited entry.
    Stop,
}

/// The reason why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkEndReason {
    /// The walk visited all entries within the depth limit.
    Complete,
    /// The visitor function stopped the walk.
    Stopped,
    /// The walk reached the limit on the number of entries.
    EntryLimit,
}

/// A directory that a walk could not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkDirectoryReadFailure {
    /// The path of the unreadable directory, relative to the start directory of the walk.
    pub path: RelPath,
    /// The kind of the error that occurred when the walk read the directory.
    pub kind: DiskErrorKind,
}

/// The report of a walk: what was visited, what was skipped, and why the walk ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkReport {
    /// The number of entries that the walk visited.
    pub entries: u64,
    /// The number of directories that the walk skipped because of the depth limit.
    pub too_deep: u64,
    /// The number of directories that the walk could not read.
    pub unreadable_count: u64,
    /// The first directories that the walk could not read, at most 100.
    pub unreadable: Vec<WalkDirectoryReadFailure>,
    /// The reason why the walk ended.
    pub end_reason: WalkEndReason,
}

/// The number of files, directories and bytes in a directory tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskTreeSize {
    /// The number of entries in the tree that are not directories.
    pub files: u64,
    /// The number of directories in the tree, without the start directory.
    pub directories: u64,
    /// The total size of the regular files in the tree, in bytes.
    pub bytes: u64,
    /// The report of the walk that measured the tree, which says how much was skipped.
    pub walk: WalkReport,
}

struct WalkFrame {
    directory: DirectoryHandle,
    path: RelPath,
    entries: Vec<DiskDirectoryEntry>,
}

impl WalkFrame {
    fn open_directory(directory: DirectoryHandle, path: RelPath) -> Result<Self, DiskError> {
        let mut entries = directory.list()?;
        entries.sort_unstable_by(|one, two| two.name.cmp(&one.name));
        Ok(Self { directory, path, entries })
    }
}

/// Walks the tree below `root` and calls `visit` for every entry except `root` itself. A walk fails only if its start
/// directory cannot be read.
pub fn walk_tree(
    root: &DirectoryHandle,
    limits: WalkLimits,
    visit: &mut dyn FnMut(WalkEntry<'_>) -> WalkControl,
) -> Result<WalkReport, DiskError> {
    let mut end = WalkReport {
        entries: 0,
        too_deep: 0,
        unreadable_count: 0,
        unreadable: Vec::new(),
        end_reason: WalkEndReason::Complete,
    };
    let depth_max = limits.depth.min(DEPTH_MAX);
    let mut stack = vec![WalkFrame::open_directory(root.try_clone()?, RelPath::root())?];
    while let Some(frame) = stack.last_mut() {
        let Some(entry) = frame.entries.pop() else {
            stack.pop();
            continue;
        };
        if end.entries >= limits.entries {
            end.end_reason = WalkEndReason::EntryLimit;
            break;
        }
        let Ok(path) = frame.path.join(&entry.name) else {
            end.too_deep += 1;
            continue;
        };
        end.entries += 1;
        let (parent, name, file_type) = (&frame.directory, &entry.name, entry.file_type);
        match visit(WalkEntry { path: &path, parent, name, file_type }) {
            WalkControl::Stop => {
                end.end_reason = WalkEndReason::Stopped;
                break;
            }
            WalkControl::Continue if file_type == FileType::Directory => {
                if path.depth() >= depth_max {
                    end.too_deep += 1;
                    continue;
                }
                let opened = parent.open_directory(name);
                match opened.and_then(|directory| WalkFrame::open_directory(directory, path.clone())) {
                    Ok(child) => stack.push(child),
                    Err(error) => end.record_unreadable(path, error.kind),
                }
            }
            WalkControl::Continue | WalkControl::SkipDirectory => {}
        }
    }
    Ok(end)
}

impl WalkReport {
    fn record_unreadable(&mut self, path: RelPath, kind: DiskErrorKind) {
        // A directory that disappeared during the walk does not count as unreadable.
        if kind == DiskErrorKind::NotFound {
            return;
        }
        self.unreadable_count += 1;
        if self.unreadable.len() < UNREADABLE_LISTED_MAX {
            self.unreadable.push(WalkDirectoryReadFailure { path, kind });
        }
    }
}

/// Counts the files, directories and bytes in the tree below `root`.
pub fn measure_tree(root: &DirectoryHandle, limits: WalkLimits) -> Result<DiskTreeSize, DiskError> {
    let (mut files, mut directories, mut bytes) = (0_u64, 0_u64, 0_u64);
    let walk = walk_tree(root, limits, &mut |walked| {
        if walked.file_type == FileType::Directory {
            directories += 1;
        } else {
            files += 1;
        }
        if walked.file_type == FileType::RegularFile
            && let Ok(Some(stat)) = walked.parent.stat(walked.name)
        {
            bytes = bytes.saturating_add(stat.size);
        }
        WalkControl::Continue
    })?;
    Ok(DiskTreeSize { files, directories, bytes, walk })
}
