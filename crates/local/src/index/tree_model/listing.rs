//! Lists one directory for the tree model, with the same rules as a walk over the tree.

use std::collections::HashMap;

use stead_disk::{DirectoryHandle, DiskErrorKind, FileType};
use stead_engine::{DirectoryEntry, FileKind, index::IndexIgnoreRules};
use stead_path::{FileName, RelPath};

use super::{
    IndexWatchPurpose, IndexedDirectorySearchCounts, IndexedTreeCache, IndexedTreeCacheDiscardReason,
    IndexedTreeDirectoryNode, NO_DIRECTORY, UnindexedReason,
};
use crate::{
    index::{IndexContext, segment::IndexedFileKind, snapshot::DirectoryFilesBySegment},
    tree::to_engine_stamp,
};

const GIT_DIRECTORY: &[u8] = b".git";
const GIT_INFO_DIRECTORY: &[u8] = b"info";
/// The errors of a listing which mean that the directory was removed or replaced.
const GONE_KINDS: [DiskErrorKind; 4] = [
    DiskErrorKind::NotFound,
    DiskErrorKind::NotDirectory,
    DiskErrorKind::IsSymlink,
    DiskErrorKind::ChangedConcurrently,
];

type DirectoryHandleAndEntries = (DirectoryHandle, Vec<DirectoryEntry>);

impl IndexedTreeCache {
    pub(super) fn relist_directory(
        &mut self,
        context: &IndexContext,
        number: u32,
    ) -> Result<(), IndexedTreeCacheDiscardReason> {
        let Some(path) = self.directory(number).map(|folder| folder.path.clone()) else { return Ok(()) };
        let (directory, listed) = match self.watch_and_list(context, number, &path)? {
            Ok(listing) => listing,
            Err(kind) => {
                if number != 0 && GONE_KINDS.contains(&kind) {
                    self.remove_directory(number);
                } else {
                    self.mark_unreadable(number);
                }
                return Ok(());
            }
        };
        self.watch_git(number, &directory, &listed)?;
        let above = self.directory(number).and_then(|folder| self.directory(folder.parent));
        let above = above.map_or_else(IndexIgnoreRules::default, |above| above.ignored.clone());
        let ignored = above.enter_directory(&path, &listed, &|path| context.read_ignore_file(path));
        self.fill_directory(number, &path, &directory, &listed, ignored)
    }

    /// A directory is watched before it is listed, so that no change is missed. The inner error is the reason why the
    /// directory cannot be listed.
    fn watch_and_list(
        &mut self,
        context: &IndexContext,
        number: u32,
        path: &RelPath,
    ) -> Result<Result<DirectoryHandleAndEntries, DiskErrorKind>, IndexedTreeCacheDiscardReason> {
        let directory = match context.root.open_directory(path) {
            Ok(directory) => directory,
            Err(error) => return Ok(Err(error.kind)),
        };
        match self.watch_for_purpose(number, &directory, IndexWatchPurpose::OwnContents) {
            Ok(()) => {}
            Err(DiskErrorKind::PermissionDenied) => return Ok(Err(DiskErrorKind::PermissionDenied)),
            Err(_) => return Err(IndexedTreeCacheDiscardReason::WatchFailed),
        }
        let listed = context.list_directory(&directory).map_err(|error| error.kind);
        Ok(listed.map(|listed| (directory, listed)))
    }

    fn watch_for_purpose(
        &mut self,
        number: u32,
        directory: &DirectoryHandle,
        role: IndexWatchPurpose,
    ) -> Result<(), DiskErrorKind> {
        let Some(watch) = &self.event_queue else { return Ok(()) };
        if self.watched.len() >= self.watches_max {
            return Err(DiskErrorKind::NoSpace);
        }
        let id = watch.watch_directory(directory).map_err(|error| error.kind)?;
        // A `.git` directory that is part of the model is already watched for its contents.
        if role != IndexWatchPurpose::OwnContents
            && matches!(self.watched.get(&id), Some((_, IndexWatchPurpose::OwnContents)))
        {
            return Ok(());
        }
        self.watched.insert(id, (number, role));
        if let Some(folder) = self.directory_mut(number)
            && !folder.watches.contains(&id)
        {
            folder.watches.push(id);
        }
        Ok(())
    }

    /// The directories `.git` and `.git/info` contain ignore patterns.
    fn watch_git(
        &mut self,
        number: u32,
        directory: &DirectoryHandle,
        listed: &[DirectoryEntry],
    ) -> Result<(), IndexedTreeCacheDiscardReason> {
        let is_git =
            |listed: &DirectoryEntry| listed.name.as_bytes() == GIT_DIRECTORY && listed.kind == FileKind::Directory;
        if self.event_queue.is_none() || !listed.iter().any(is_git) {
            return Ok(());
        }
        let mut at = None;
        for (name, role) in [
            (GIT_DIRECTORY, IndexWatchPurpose::GitDirectory),
            (GIT_INFO_DIRECTORY, IndexWatchPurpose::GitInfoDirectory),
        ] {
            let Ok(name) = FileName::new(name) else { return Ok(()) };
            // A missing directory contains no patterns; the watch of its parent reports when it is created.
            let Ok(opened) = at.as_ref().unwrap_or(directory).open_directory(&name) else { return Ok(()) };
            self.watch_for_purpose(number, &opened, role).map_err(|_| IndexedTreeCacheDiscardReason::WatchFailed)?;
            at = Some(opened);
        }
        Ok(())
    }

    fn fill_directory(
        &mut self,
        number: u32,
        path: &RelPath,
        directory: &DirectoryHandle,
        listed: &[DirectoryEntry],
        ignored: IndexIgnoreRules,
    ) -> Result<(), IndexedTreeCacheDiscardReason> {
        let shelves = self.snapshot.directory_segments(path)?;
        let telling = if self.event_queue.is_some() {
            FileWatchHardLinkCoverage::ThisName
        } else {
            FileWatchHardLinkCoverage::Nothing
        };
        let mut seen = IndexedDirectoryContents::default();
        let mut entered: Vec<(FileName, RelPath)> = Vec::new();
        for DirectoryEntry { name, kind: top } in listed {
            // A path that is too long cannot be read by a walk either.
            let Ok(below) = path.join(name) else { continue };
            if !ignored.includes(&below, name, *top) {
                seen.counts.ignored += 1;
                continue;
            }
            seen.counts.entries += 1;
            match top {
                FileKind::File => seen.classify_file(directory, name, &shelves, telling),
                FileKind::Directory => entered.push((name.clone(), below)),
                FileKind::Link | FileKind::Special => {}
            }
        }
        self.replace_contents(number, seen, &ignored);
        self.add_children(number, entered, &ignored);
        Ok(())
    }

    fn replace_contents(&mut self, number: u32, seen: IndexedDirectoryContents, ignored: &IndexIgnoreRules) {
        let Some(folder) = self.directory_mut(number) else { return };
        let before = std::mem::replace(&mut folder.indexed_files, seen.indexed_files);
        let known = folder.indexed_files.clone();
        // A file that got another hard link may be changed through a name that is not watched.
        let relinked = seen.hard_linked.iter().any(|name| !folder.hard_linked.contains(name));
        (folder.unindexed_files, folder.hard_linked, folder.counts) =
            (seen.unindexed_files, seen.hard_linked, seen.counts);
        folder.ignored = ignored.clone();
        self.release_files(&before);
        for (segment, file) in known {
            self.set_directory_of_file(segment, file, number);
        }
        if relinked && self.complete {
            self.mark_all_stale();
        }
    }

    fn add_children(&mut self, number: u32, entered: Vec<(FileName, RelPath)>, ignored: &IndexIgnoreRules) {
        let before = self.directory(number).map(|folder| folder.children.clone()).unwrap_or_default();
        let named = |below: &u32| Some((self.directory(*below)?.name().to_vec(), *below));
        let mut before: HashMap<Vec<u8>, u32> = before.iter().filter_map(named).collect();
        for (name, path) in entered {
            if before.remove(name.as_bytes()).is_none() {
                let new = self.insert_directory(IndexedTreeDirectoryNode::new(path, number, ignored.clone()));
                if let Some(folder) = self.directory_mut(number) {
                    folder.children.push(new);
                }
                self.stale_directories.insert(new);
            }
        }
        for gone in before.into_values() {
            self.remove_directory(gone);
        }
    }

    fn insert_directory(&mut self, folder: IndexedTreeDirectoryNode) -> u32 {
        if let Some(number) = self.free_numbers.pop()
            && let Some(slot) = self.directories.get_mut(number as usize)
        {
            *slot = Some(folder);
            return number;
        }
        let number = u32::try_from(self.directories.len()).unwrap_or(NO_DIRECTORY);
        self.directories.push(Some(folder));
        number
    }

    fn mark_unreadable(&mut self, number: u32) {
        self.remove_children(number);
        let seen = IndexedDirectoryContents {
            counts: IndexedDirectorySearchCounts { unreadable: 1, ..IndexedDirectorySearchCounts::default() },
            ..IndexedDirectoryContents::default()
        };
        let ignored = self.directory(number).map(|folder| folder.ignored.clone()).unwrap_or_default();
        self.replace_contents(number, seen, &ignored);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileWatchHardLinkCoverage {
    /// The file is not watched, so its index data is used only after a check of the file.
    Nothing,
    /// The watch of a file's directory reports writes through one name of the file, but not through other hard links.
    ThisName,
}

#[derive(Default)]
struct IndexedDirectoryContents {
    indexed_files: Vec<(u16, u32)>,
    unindexed_files: Vec<(FileName, UnindexedReason)>,
    hard_linked: Vec<FileName>,
    counts: IndexedDirectorySearchCounts,
}

impl IndexedDirectoryContents {
    fn classify_file(
        &mut self,
        directory: &DirectoryHandle,
        name: &FileName,
        shelves: &DirectoryFilesBySegment,
        telling: FileWatchHardLinkCoverage,
    ) {
        let stat = directory.stat(name).ok().flatten().filter(|stat| stat.file_type == FileType::RegularFile);
        let stamp = stat.as_ref().map(|stat| to_engine_stamp(&stat.fingerprint));
        let known = stamp.and_then(|stamp| shelves.find_file(name, &stamp));
        let linked = telling == FileWatchHardLinkCoverage::ThisName && stat.is_some_and(|stat| stat.hard_links != 1);
        if linked {
            self.hard_linked.push(name.clone());
        }
        let Some((segment, file, row)) = known else {
            self.unindexed_files.push((name.clone(), UnindexedReason::NotYetIndexed));
            return;
        };
        match (row.kind, u16::try_from(segment)) {
            (IndexedFileKind::Text, Ok(segment)) if !linked => {
                self.counts.texts += 1;
                self.counts.bytes += row.fingerprint.size;
                self.indexed_files.push((segment, file));
            }
            (IndexedFileKind::Binary, Ok(segment)) if !linked => {
                self.counts.binary += 1;
                self.indexed_files.push((segment, file));
            }
            (IndexedFileKind::Text | IndexedFileKind::Binary | IndexedFileKind::AlwaysRead, _) => {
                self.unindexed_files.push((name.clone(), UnindexedReason::NeverIndexable));
            }
        }
    }
}
