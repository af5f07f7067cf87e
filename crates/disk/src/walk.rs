//! Counts the files of a directory tree without following a link and without entering a hidden directory or a mount that
//! is not allowed.

use stead_path::{DEPTH_MAX, RelPath};

use crate::{DirectoryHandle, DiskDirectoryEntry, DiskError, DiskErrorKind, FileType};

/// The number of files, directories and bytes in a directory tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskTreeSize {
    /// The number of counted entries of the tree that are not directories.
    pub files: u64,
    /// The number of counted directories of the tree, without the start directory.
    pub directories: u64,
    pub bytes: u64,
    /// The number of directories that could not be read.
    pub unreadable: u64,
    /// Whether the tree has more entries than were counted.
    pub is_limited: bool,
}

struct WalkFrame {
    directory: DirectoryHandle,
    path: RelPath,
    entries: Vec<DiskDirectoryEntry>,
}

impl WalkFrame {
    /// Names are counted in order, so that the same tree gives the same count at the limit.
    fn open_directory(directory: DirectoryHandle, path: RelPath) -> Result<Self, DiskError> {
        let mut entries = directory.list()?;
        entries.sort_unstable_by(|one, two| two.name.cmp(&one.name));
        Ok(Self { directory, path, entries })
    }
}

/// Counts at most `entries_max` entries of the tree below `root`; fails only if `root` cannot be read.
pub fn measure_tree(root: &DirectoryHandle, entries_max: u64) -> Result<DiskTreeSize, DiskError> {
    let mut size = DiskTreeSize::default();
    let mut stack = vec![WalkFrame::open_directory(root.try_clone()?, RelPath::root())?];
    while let Some(frame) = stack.last_mut() {
        let Some(DiskDirectoryEntry { name, file_type }) = frame.entries.pop() else {
            stack.pop();
            continue;
        };
        if size.files + size.directories >= entries_max {
            size.is_limited = true;
            break;
        }
        // A path that is too long or too deep cannot be used, so it does not count.
        let Ok(path) = frame.path.join(&name) else { continue };
        if file_type != FileType::Directory {
            size.files += 1;
            if file_type == FileType::RegularFile
                && let Ok(Some(stat)) = frame.directory.stat(&name)
            {
                size.bytes = size.bytes.saturating_add(stat.size);
            }
            continue;
        }
        size.directories += 1;
        if path.depth() < DEPTH_MAX {
            let opened = frame.directory.open_directory(&name);
            match opened.and_then(|directory| WalkFrame::open_directory(directory, path)) {
                Ok(child) => stack.push(child),
                // A directory that was removed meanwhile does not count as unreadable.
                Err(error) => size.unreadable += u64::from(error.kind != DiskErrorKind::NotFound),
            }
        }
    }
    Ok(size)
}
