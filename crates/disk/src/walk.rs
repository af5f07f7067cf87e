//! Walking a tree over handles. Promises: never follows a link, never enters a mount that is not allowed or a hidden
//! directory, goes in the order of names, and says whether it saw everything. Never joins strings to paths that reach
//! the kernel.

use path::{DEPTH_MAX, Name, RelPath};

use crate::{Directory, DiskError, ErrorKind, FileType, Listed};

/// Most directories that could not be read and are named in a result; the rest are counted.
const UNREAD_NAMED_MAX: usize = 100;

/// How far a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLimits {
    /// Levels below the start; 1 sees only the entries of the start itself.
    pub depth: usize,
    /// Entries visited in all.
    pub entries: u64,
}

impl Default for WalkLimits {
    fn default() -> Self {
        Self { depth: DEPTH_MAX, entries: u64::MAX }
    }
}

/// One entry met on a walk.
#[derive(Debug)]
pub struct Walked<'a> {
    /// The path below the start.
    pub path: &'a RelPath,
    /// The directory that holds it.
    pub parent: &'a Directory,
    /// Its name there.
    pub name: &'a Name,
    /// Its type.
    pub file_type: FileType,
}

/// What to do after an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visit {
    /// Go on; enter it if it is a directory.
    Continue,
    /// Go on, but do not enter it.
    Skip,
    /// End the walk.
    Stop,
}

/// Why a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Everything was seen.
    Complete,
    /// The visitor said so.
    Stopped,
    /// The limit of entries was reached.
    EntryLimit,
}

/// A directory that could not be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Where it is, below the start.
    pub path: RelPath,
    /// Why.
    pub kind: ErrorKind,
}

/// What a walk saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkEnd {
    /// Entries visited.
    pub entries: u64,
    /// Directories not entered because they lie too deep.
    pub too_deep: u64,
    /// Directories that could not be entered, in all.
    pub unread_count: u64,
    /// The first of them.
    pub unread: Vec<Unread>,
    /// Why it ended.
    pub ended: Ended,
}

/// The size of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measured {
    /// Entries that are not directories.
    pub files: u64,
    /// Directories, the start not included.
    pub directories: u64,
    /// Bytes in regular files.
    pub bytes: u64,
    /// Whether and where something was left out.
    pub walk: WalkEnd,
}

/// One directory on the way down.
struct Frame {
    directory: Directory,
    path: RelPath,
    /// What is still to visit, the next one last.
    entries: Vec<Listed>,
}

impl Frame {
    fn enter(directory: Directory, path: RelPath) -> Result<Self, DiskError> {
        let mut entries = directory.list()?;
        entries.sort_unstable_by(|one, two| two.name.cmp(&one.name));
        Ok(Self { directory, path, entries })
    }
}

/// Visits everything beneath `root`, which is not visited itself. Fails only when `root` itself cannot be read.
pub fn walk(
    root: &Directory,
    limits: WalkLimits,
    visit: &mut dyn FnMut(Walked<'_>) -> Visit,
) -> Result<WalkEnd, DiskError> {
    let mut end =
        WalkEnd { entries: 0, too_deep: 0, unread_count: 0, unread: Vec::new(), ended: Ended::Complete };
    let depth_max = limits.depth.min(DEPTH_MAX);
    let mut stack = vec![Frame::enter(root.try_clone()?, RelPath::root())?];
    while let Some(frame) = stack.last_mut() {
        let Some(entry) = frame.entries.pop() else {
            stack.pop();
            continue;
        };
        if end.entries >= limits.entries {
            end.ended = Ended::EntryLimit;
            break;
        }
        let Ok(path) = frame.path.join(&entry.name) else {
            end.too_deep += 1;
            continue;
        };
        end.entries += 1;
        let (parent, name, file_type) = (&frame.directory, &entry.name, entry.file_type);
        match visit(Walked { path: &path, parent, name, file_type }) {
            Visit::Stop => {
                end.ended = Ended::Stopped;
                break;
            }
            Visit::Continue if file_type == FileType::Directory => {
                if path.depth() >= depth_max {
                    end.too_deep += 1;
                    continue;
                }
                let opened = parent.open_directory(name);
                match opened.and_then(|directory| Frame::enter(directory, path.clone())) {
                    Ok(child) => stack.push(child),
                    Err(error) => end.note_unread(path, error.kind),
                }
            }
            Visit::Continue | Visit::Skip => {}
        }
    }
    Ok(end)
}

impl WalkEnd {
    fn note_unread(&mut self, path: RelPath, kind: ErrorKind) {
        // What went away meanwhile was not left out.
        if kind == ErrorKind::NotFound {
            return;
        }
        self.unread_count += 1;
        if self.unread.len() < UNREAD_NAMED_MAX {
            self.unread.push(Unread { path, kind });
        }
    }
}

/// Counts the files, directories and bytes beneath `root`.
pub fn measure_tree(root: &Directory, limits: WalkLimits) -> Result<Measured, DiskError> {
    let (mut files, mut directories, mut bytes) = (0_u64, 0_u64, 0_u64);
    let walk = walk(root, limits, &mut |walked| {
        if walked.file_type == FileType::Directory {
            directories += 1;
        } else {
            files += 1;
        }
        if walked.file_type == FileType::File
            && let Ok(Some(stat)) = walked.parent.stat(walked.name)
        {
            bytes = bytes.saturating_add(stat.size);
        }
        Visit::Continue
    })?;
    Ok(Measured { files, directories, bytes, walk })
}
