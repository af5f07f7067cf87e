//! The paths of watched directories. Pure: a rename moves a whole branch.

use std::collections::{BTreeMap, HashMap};

use stead_disk::fs_events::FsWatchId;
use stead_path::RelPath;

#[derive(Debug, Default)]
pub(crate) struct WatchedDirectories {
    paths: HashMap<FsWatchId, RelPath>,
    ids: BTreeMap<RelPath, FsWatchId>,
}

impl WatchedDirectories {
    /// The path of a watched directory according to the events so far.
    pub(crate) fn path(&self, id: FsWatchId) -> Option<&RelPath> {
        self.paths.get(&id)
    }

    pub(crate) fn contains(&self, path: &RelPath) -> bool {
        self.ids.contains_key(path)
    }

    /// Assigns a path to a watched directory; the mapping is one to one. Returns the directory that had the path before.
    pub(crate) fn insert(&mut self, id: FsWatchId, path: RelPath) -> Option<FsWatchId> {
        self.remove(id);
        let other = self.ids.insert(path.clone(), id);
        if let Some(other) = &other {
            self.paths.remove(other);
        }
        self.paths.insert(id, path);
        other
    }

    pub(crate) fn remove(&mut self, id: FsWatchId) {
        if let Some(path) = self.paths.remove(&id)
            && self.ids.get(&path) == Some(&id)
        {
            self.ids.remove(&path);
        }
    }

    /// A directory and everything watched below it.
    pub(crate) fn watches_within(&self, top: &RelPath) -> Vec<(RelPath, FsWatchId)> {
        self.ids
            .range(top.clone()..)
            .take_while(|(path, _)| path.as_bytes().starts_with(top.as_bytes()))
            .filter(|(path, _)| path.is_within(top))
            .map(|(path, id)| (path.clone(), *id))
            .collect()
    }

    pub(crate) fn all_watches(&self) -> Vec<(RelPath, FsWatchId)> {
        self.ids.iter().map(|(path, id)| (path.clone(), *id)).collect()
    }

    /// Renames a directory and everything below it. Returns the paths that were overwritten.
    pub(crate) fn rename(&mut self, from: &RelPath, to: &RelPath) -> Vec<RelPath> {
        let mut taken = Vec::new();
        for (path, id) in self.watches_within(from) {
            self.remove(id);
            if let Some(moved) = path.strip_prefix(from).and_then(|rest| to.append(&rest).ok())
                && self.insert(id, moved.clone()).is_some()
            {
                taken.push(moved);
            }
        }
        taken
    }
}
