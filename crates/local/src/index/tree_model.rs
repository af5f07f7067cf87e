//! A model of the directory tree in memory, so that a search need not walk the tree. The model contains every directory
//! that a walk would enter, the segment of each indexed file, and the names of unindexed files.
//!
//! [`IndexedTreeCache::refresh`] makes the model equal to the result of a walk, as far as the kernel reports changes. A
//! directory is watched before it is listed, and listed again after any event in it.

mod listing;

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use stead_disk::fs_events::{
    FsEvent, FsEventDrainEndReason, FsEventFileType, FsEventKind, FsEventQueue, InotifyWatchId,
};
use stead_engine::{
    index::{IndexIgnoreRules, IndexedSearchCandidates, RequiredTrigrams},
    limits,
};
use stead_path::{FileName, RelPath};

use super::{IndexContext, segment::IndexCorrupt, snapshot::IndexSnapshot};

const NO_DIRECTORY: u32 = u32::MAX;
/// The most reads of the event queue in a row; if the queue is still not empty, its events count as lost.
const DRAINS_MAX: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexedTreeCacheDiscardReason {
    /// File system events were lost, or arrive faster than they can be processed.
    EventsLost,
    WatchFailed,
    IndexCorrupt,
    Stopped,
    /// The file system does not report all changes, so the tree cannot be watched.
    Unsupported,
}

impl From<IndexCorrupt> for IndexedTreeCacheDiscardReason {
    fn from(_: IndexCorrupt) -> Self {
        Self::IndexCorrupt
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeModelFreshness {
    Current,
    Behind,
}

pub(super) struct IndexedTreeCache {
    snapshot: Arc<IndexSnapshot>,
    event_queue: Option<FsEventQueue>,
    watches_max: usize,
    /// The directories of the tree by number; number 0 is the root.
    directories: Vec<Option<IndexedTreeDirectoryNode>>,
    free_numbers: Vec<u32>,
    watched: HashMap<InotifyWatchId, (u32, IndexWatchPurpose)>,
    /// For each file of each segment: the number of the directory that contains the file now.
    directory_of_files: Vec<Vec<u32>>,
    stale_directories: BTreeSet<u32>,
    /// The position of the periodic relisting: the number of the directory that was last marked for a new listing.
    relist_position: u32,
    /// Whether every directory of the tree has been listed once.
    complete: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IndexWatchPurpose {
    OwnContents,
    /// The watched directory is a `.git` directory, whose subdirectory `info` may contain ignore patterns.
    GitDirectory,
    /// The watched directory is a `.git/info` directory, whose file `exclude` may contain ignore patterns.
    GitInfoDirectory,
}

struct IndexedTreeDirectoryNode {
    path: RelPath,
    parent: u32,
    children: Vec<u32>,
    ignored: IndexIgnoreRules,
    watches: Vec<InotifyWatchId>,
    /// For each indexed file: the position of its segment in the snapshot, and the file's number in the segment.
    indexed_files: Vec<(u16, u32)>,
    /// The names of the files that every search must read, each with the reason why the index cannot be used.
    unindexed_files: Vec<(FileName, UnindexedReason)>,
    hard_linked: Vec<FileName>,
    counts: IndexedDirectorySearchCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnindexedReason {
    /// The file is not indexed yet, or has changed since it was indexed.
    NotYetIndexed,
    /// The file cannot be indexed, or the watches do not report all changes of the file.
    NeverIndexable,
}

/// The counts of files and bytes of one directory, which a search adds to its totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct IndexedDirectorySearchCounts {
    entries: u64,
    texts: u64,
    bytes: u64,
    binary: u64,
    ignored: u64,
    unreadable: u64,
}

impl IndexedTreeCache {
    pub(super) fn new(snapshot: Arc<IndexSnapshot>, event_queue: Option<FsEventQueue>, watches_max: usize) -> Self {
        let directory_of_files =
            snapshot.segments.iter().map(|segment| vec![NO_DIRECTORY; segment.files as usize]).collect();
        let root = IndexedTreeDirectoryNode::new(RelPath::root(), NO_DIRECTORY, IndexIgnoreRules::default());
        Self {
            snapshot,
            event_queue,
            watches_max,
            directories: vec![Some(root)],
            free_numbers: Vec::new(),
            watched: HashMap::new(),
            directory_of_files,
            stale_directories: BTreeSet::from([0]),
            relist_position: 0,
            complete: false,
        }
    }

    /// Processes file system events, and lists up to `directories_max` changed directories of the tree model again.
    pub(super) fn refresh(
        &mut self,
        context: &IndexContext,
        directories_max: usize,
        stopped: &dyn Fn() -> bool,
    ) -> Result<TreeModelFreshness, IndexedTreeCacheDiscardReason> {
        self.drain_events()?;
        let mut listed = 0;
        while let Some(number) = self.stale_directories.pop_first() {
            if listed >= directories_max {
                self.stale_directories.insert(number);
                return Ok(TreeModelFreshness::Behind);
            }
            if stopped() {
                return Err(IndexedTreeCacheDiscardReason::Stopped);
            }
            self.relist_directory(context, number)?;
            listed += 1;
        }
        self.complete = true;
        Ok(TreeModelFreshness::Current)
    }

    fn drain_events(&mut self) -> Result<(), IndexedTreeCacheDiscardReason> {
        let Some(watch) = &self.event_queue else { return Ok(()) };
        let (mut events, mut drained) = (Vec::new(), FsEventDrainEndReason::Partial);
        for _ in 0..DRAINS_MAX {
            drained = watch.drain(&mut events).map_err(|_| IndexedTreeCacheDiscardReason::EventsLost)?;
            if drained == FsEventDrainEndReason::Complete {
                break;
            }
        }
        if drained != FsEventDrainEndReason::Complete {
            return Err(IndexedTreeCacheDiscardReason::EventsLost);
        }
        events.into_iter().try_for_each(|event| self.apply_event(&event))
    }

    fn apply_event(&mut self, event: &FsEvent) -> Result<(), IndexedTreeCacheDiscardReason> {
        let Some(watch) = event.watch else { return Err(IndexedTreeCacheDiscardReason::EventsLost) };
        // The event is from a watch that was already removed, so its directory is no longer in the model.
        let Some((number, role)) = self.watched.get(&watch).copied() else { return Ok(()) };
        let name = event.name.as_ref().map(FileName::as_bytes);
        let is_over =
            matches!(event.kind, FsEventKind::WatchRemoved | FsEventKind::SelfDeleted | FsEventKind::SelfMoved);
        if event.kind == FsEventKind::WatchRemoved {
            self.watched.remove(&watch);
        }
        match role {
            IndexWatchPurpose::GitDirectory if is_over || name == Some(b"info") => self.reapply_ignore_rules(number),
            IndexWatchPurpose::GitInfoDirectory if is_over || name == Some(b"exclude") => {
                self.reapply_ignore_rules(number)
            }
            IndexWatchPurpose::GitDirectory | IndexWatchPurpose::GitInfoDirectory => {}
            IndexWatchPurpose::OwnContents => match name {
                Some(name) if let Some(above) = self.git_ignore_owner(number, name) => self.reapply_ignore_rules(above),
                Some(b".git" | b".gitignore" | b".ignore") => self.reapply_ignore_rules(number),
                Some(name) if event.subject == FsEventFileType::Directory => {
                    if let Some(below) = self.child(number, name) {
                        self.remove_directory(below);
                    }
                    self.stale_directories.insert(number);
                }
                Some(_) | None => {
                    self.stale_directories.insert(number);
                }
            },
        }
        Ok(())
    }

    fn git_ignore_owner(&self, number: u32, name: &[u8]) -> Option<u32> {
        let folder = self.directory(number)?;
        match (folder.name(), name) {
            (b".git", b"info") => Some(folder.parent),
            (b"info", b"exclude") => {
                let git = self.directory(folder.parent)?;
                (git.name() == b".git").then_some(git.parent)
            }
            _ => None,
        }
    }

    /// All directories below a changed ignore file are listed again, because the ignore rules may have changed.
    fn reapply_ignore_rules(&mut self, number: u32) {
        self.remove_children(number);
        self.stale_directories.insert(number);
    }

    fn remove_children(&mut self, number: u32) {
        for below in self.directory(number).map(|folder| folder.children.clone()).unwrap_or_default() {
            self.remove_directory(below);
        }
    }

    fn directory(&self, number: u32) -> Option<&IndexedTreeDirectoryNode> {
        self.directories.get(number as usize)?.as_ref()
    }

    fn directory_mut(&mut self, number: u32) -> Option<&mut IndexedTreeDirectoryNode> {
        self.directories.get_mut(number as usize)?.as_mut()
    }

    fn child(&self, number: u32, name: &[u8]) -> Option<u32> {
        let has_name = |below: &&u32| self.directory(**below).is_some_and(|folder| folder.name() == name);
        self.directory(number)?.children.iter().find(has_name).copied()
    }

    fn remove_directory(&mut self, number: u32) {
        if let Some(above) = self.directory(number).map(|folder| folder.parent)
            && let Some(above) = self.directory_mut(above)
        {
            above.children.retain(|below| *below != number);
        }
        let mut waiting = vec![number];
        while let Some(number) = waiting.pop() {
            let Some(folder) = self.directories.get_mut(number as usize).and_then(Option::take) else {
                continue;
            };
            waiting.extend(&folder.children);
            self.release_files(&folder.indexed_files);
            for watch in folder.watches {
                self.unwatch(watch, number);
            }
            self.stale_directories.remove(&number);
            self.free_numbers.push(number);
        }
    }

    /// A moved directory keeps its watch if the model contains the directory under another number.
    fn unwatch(&mut self, watch: InotifyWatchId, number: u32) {
        if self.watched.get(&watch).is_some_and(|(owner, _)| *owner == number) {
            self.watched.remove(&watch);
            if let Some(queue) = &self.event_queue {
                queue.remove_watch(watch).unwrap_or_default();
            }
        }
    }

    fn release_files(&mut self, known: &[(u16, u32)]) {
        for (segment, file) in known {
            self.set_directory_of_file(*segment, *file, NO_DIRECTORY);
        }
    }

    fn set_directory_of_file(&mut self, segment: u16, file: u32, number: u32) {
        let owners = self.directory_of_files.get_mut(segment as usize);
        if let Some(owner) = owners.and_then(|owners| owners.get_mut(file as usize)) {
            *owner = number;
        }
    }

    pub(super) fn snapshot(&self) -> &Arc<IndexSnapshot> {
        &self.snapshot
    }

    pub(super) fn has_unindexed(&self) -> bool {
        self.directories.iter().flatten().any(|folder| folder.files_to_index().next().is_some())
    }

    pub(super) fn is_watched(&self) -> bool {
        self.event_queue.is_some()
    }

    pub(super) fn files(&self) -> (u64, u64) {
        let folders = self.directories.iter().flatten();
        folders.fold((0, 0), |(files, known), folder| {
            (
                files + (folder.indexed_files.len() + folder.unindexed_files.len()) as u64,
                known + folder.indexed_files.len() as u64,
            )
        })
    }

    pub(super) fn unindexed_files(&self) -> Vec<(RelPath, Vec<FileName>)> {
        let folders = self.directories.iter().flatten();
        folders
            .map(|folder| (folder.path.clone(), folder.files_to_index().cloned().collect::<Vec<_>>()))
            .filter(|(_, names)| !names.is_empty())
            .collect()
    }

    /// The next refresh lists every directory whose index data may differ between the old and the new snapshot.
    pub(super) fn adopt_snapshot(&mut self, snapshot: Arc<IndexSnapshot>) {
        let (old, new) = (self.snapshot.segment_ids(), snapshot.segment_ids());
        if old == new {
            return;
        }
        let grown = new.starts_with(&old);
        let kept = if grown { old.len() } else { 0 };
        self.directory_of_files.truncate(kept);
        let more = snapshot.segments.iter().skip(kept);
        self.directory_of_files.extend(more.map(|segment| vec![NO_DIRECTORY; segment.files as usize]));
        for (number, folder) in self.directories.iter_mut().enumerate() {
            let (Some(folder), Ok(number)) = (folder, u32::try_from(number)) else { continue };
            if !grown {
                folder.indexed_files.clear();
            }
            if !grown || folder.files_to_index().next().is_some() {
                self.stale_directories.insert(number);
            }
        }
        self.snapshot = snapshot;
    }

    fn mark_all_stale(&mut self) {
        let total = u32::try_from(self.directories.len()).unwrap_or(u32::MAX);
        let present = (0..total).filter(|number| self.directory(*number).is_some());
        self.stale_directories = present.collect();
    }

    /// Some directories are listed again periodically, to find changes that watches do not report.
    pub(super) fn mark_some_stale(&mut self, count: u32) {
        let total = u32::try_from(self.directories.len()).unwrap_or(u32::MAX);
        for _ in 0..count.min(total) {
            self.relist_position = if self.relist_position + 1 < total { self.relist_position + 1 } else { 0 };
            if self.directory(self.relist_position).is_some() {
                self.stale_directories.insert(self.relist_position);
            }
        }
    }

    pub(super) fn directory_count(&self) -> usize {
        self.directories.len() - self.free_numbers.len()
    }
}

impl IndexedTreeDirectoryNode {
    fn new(path: RelPath, parent: u32, ignored: IndexIgnoreRules) -> Self {
        Self {
            path,
            parent,
            children: Vec::new(),
            ignored,
            watches: Vec::new(),
            indexed_files: Vec::new(),
            unindexed_files: Vec::new(),
            hard_linked: Vec::new(),
            counts: IndexedDirectorySearchCounts::default(),
        }
    }

    fn files_to_index(&self) -> impl Iterator<Item = &FileName> {
        let unindexed = self.unindexed_files.iter();
        unindexed.filter(|(_, reason)| *reason == UnindexedReason::NotYetIndexed).map(|(name, _)| name)
    }

    fn name(&self) -> &[u8] {
        self.path.components().next_back().unwrap_or_default()
    }
}

/// The most files that a search with the tree model reads; for more files, a parallel walk over the tree is as fast.
const CANDIDATES_MAX: usize = 2_000;

impl IndexedTreeCache {
    /// Callers must refresh the tree model before they look up the files for a search. The lookup returns `None` if the
    /// search must read too many files.
    pub(super) fn indexed_walk(
        &self,
        start: &RelPath,
        required: &RequiredTrigrams,
    ) -> Result<Option<IndexedSearchCandidates>, IndexedTreeCacheDiscardReason> {
        let is_open = |number: &u32| self.directory(*number).is_some_and(|folder| folder.counts.unreadable == 0);
        let Some(start) = self.find_directory(start).filter(is_open) else { return Ok(None) };
        let mut walk = IndexedSearchCandidates::default();
        let mut met = vec![false; self.directories.len()];
        let mut total = IndexedDirectorySearchCounts::default();
        let mut waiting = vec![start];
        while let Some(number) = waiting.pop() {
            let (Some(folder), Some(met)) = (self.directory(number), met.get_mut(number as usize)) else {
                continue;
            };
            *met = true;
            total.add_counts(&folder.counts);
            waiting.extend(&folder.children);
            for (name, _) in &folder.unindexed_files {
                walk.candidates.extend(folder.path.join(name).ok());
            }
            if walk.candidates.len() > CANDIDATES_MAX || total.entries >= limits::TREE_ENTRIES_MAX {
                return Ok(None);
            }
        }
        walk.text_files = total.texts;
        walk.bytes = total.bytes;
        walk.binary_files = total.binary;
        walk.ignored = total.ignored;
        walk.unlistable_directories = total.unreadable;
        let holding = self.snapshot.files_matching(required)?;
        for ((segment, files), owners) in self.snapshot.segments.iter().zip(holding).zip(&self.directory_of_files) {
            let is_met = |owner: u32| owner != NO_DIRECTORY && met.get(owner as usize).copied().unwrap_or(false);
            let stands_here = |file: &u32| owners.get(*file as usize).is_some_and(|owner| is_met(*owner));
            let Some(mut files) = files else { return Ok(None) };
            files.retain(stands_here);
            if walk.candidates.len() + files.len() > CANDIDATES_MAX {
                return Ok(None);
            }
            for (path, size) in segment.paths_of_files(&files)? {
                // The search counts this file when it reads the file.
                walk.text_files = walk.text_files.saturating_sub(1);
                walk.bytes = walk.bytes.saturating_sub(size);
                walk.candidates.push(path);
            }
        }
        Ok(Some(walk))
    }

    fn find_directory(&self, path: &RelPath) -> Option<u32> {
        path.components().try_fold(0, |number, name| self.child(number, name))
    }
}

impl IndexedDirectorySearchCounts {
    fn add_counts(&mut self, other: &Self) {
        self.entries += other.entries;
        self.texts += other.texts;
        self.bytes += other.bytes;
        self.binary += other.binary;
        self.ignored += other.ignored;
        self.unreadable += other.unreadable;
    }
}
