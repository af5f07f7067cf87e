//! Which directory each watch of the queue is, by name. Pure: renames move whole branches at once.

use std::collections::{BTreeMap, HashMap};

use disk::watch::WatchId;
use path::RelPath;

/// Watched directories.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    paths: HashMap<WatchId, RelPath>,
    ids: BTreeMap<RelPath, WatchId>,
}

impl Watched {
    /// The name of a watched directory, as far as the events so far tell.
    pub(crate) fn path(&self, id: WatchId) -> Option<&RelPath> {
        self.paths.get(&id)
    }

    /// Whether the directory of this name is watched.
    pub(crate) fn has(&self, path: &RelPath) -> bool {
        self.ids.contains_key(path)
    }

    /// A directory is watched under this name. The same directory has one name at a time, and the other way round: answers
    /// which one had the name before.
    pub(crate) fn insert(&mut self, id: WatchId, path: RelPath) -> Option<WatchId> {
        self.forget(id);
        let other = self.ids.insert(path.clone(), id);
        if let Some(other) = &other {
            self.paths.remove(other);
        }
        self.paths.insert(id, path);
        other
    }

    /// A watch is over.
    pub(crate) fn forget(&mut self, id: WatchId) {
        if let Some(path) = self.paths.remove(&id)
            && self.ids.get(&path) == Some(&id)
        {
            self.ids.remove(&path);
        }
    }

    /// A directory and everything watched below it.
    pub(crate) fn branch(&self, top: &RelPath) -> Vec<(RelPath, WatchId)> {
        self.ids
            .range(top.clone()..)
            .take_while(|(path, _)| path.as_bytes().starts_with(top.as_bytes()))
            .filter(|(path, _)| path.is_within(top))
            .map(|(path, id)| (path.clone(), *id))
            .collect()
    }

    /// Everything that is watched.
    pub(crate) fn all(&self) -> Vec<(RelPath, WatchId)> {
        self.ids.iter().map(|(path, id)| (path.clone(), *id)).collect()
    }

    /// A directory has another name now, and so has everything below it. Answers the names that others had before.
    pub(crate) fn rename(&mut self, from: &RelPath, to: &RelPath) -> Vec<RelPath> {
        let mut taken = Vec::new();
        for (path, id) in self.branch(from) {
            self.forget(id);
            if let Some(moved) = path.below(from).and_then(|rest| to.append(&rest).ok())
                && self.insert(id, moved.clone()).is_some()
            {
                taken.push(moved);
            }
        }
        taken
    }
}
