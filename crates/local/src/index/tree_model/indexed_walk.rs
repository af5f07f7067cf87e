//! Queries on the model: the counts of a walk below a path, and the files it would have to read.

use stead_engine::{
    index::{IndexedWalk, RequiredTrigrams},
    limits,
};
use stead_path::RelPath;

use super::{DirectoryCounts, IndexModelError, IndexTreeModel, NO_DIRECTORY};
use crate::index::segment::SegmentFiles;

/// Most files that are read sequentially; beyond it a parallel walk is as fast.
pub(in crate::index) const CANDIDATES_MAX: usize = 2_000;

impl IndexTreeModel {
    /// The result of a plain walk below a directory. `None` if the directory is not in the model or too many files would
    /// have to be read. The model must be current.
    pub(in crate::index) fn indexed_walk(
        &self,
        start: &RelPath,
        required: &RequiredTrigrams,
    ) -> Result<Option<IndexedWalk>, IndexModelError> {
        let is_open = |number: &u32| self.directory(*number).is_some_and(|folder| folder.counts.unreadable == 0);
        let Some(start) = self.find_directory(start).filter(is_open) else { return Ok(None) };
        let mut walk = IndexedWalk::default();
        let mut met = vec![false; self.directories.len()];
        let mut total = DirectoryCounts::default();
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
            let SegmentFiles::Only(mut files) = files else { return Ok(None) };
            files.retain(stands_here);
            if walk.candidates.len() + files.len() > CANDIDATES_MAX {
                return Ok(None);
            }
            for (path, size) in segment.paths_of_files(&files)? {
                // It is counted when it is read.
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

impl DirectoryCounts {
    fn add_counts(&mut self, other: &Self) {
        self.entries += other.entries;
        self.texts += other.texts;
        self.bytes += other.bytes;
        self.binary += other.binary;
        self.ignored += other.ignored;
        self.unreadable += other.unreadable;
    }
}
