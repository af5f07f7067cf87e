//! Watches directories with inotify and stores the path of each watched directory. A directory is watched before it is
//! listed, so that no change in between is missed.

use std::collections::{BTreeMap, HashMap};

use stead_disk::{
    DirectoryHandle, DiskError, DiskErrorKind, FileType,
    fs_events::{FsEventQueue, InotifyWatchId},
};
use stead_path::{FileName, RelPath, TEMPORARY_PREFIX};

use super::watch_scopes::CombinedWatchScopes;
use crate::open::LocalWorkspace;

#[derive(Default)]
pub(crate) struct WatchAttachReport {
    pub(crate) found_paths: Vec<RelPath>,
    pub(crate) beyond_limit: Vec<RelPath>,
    pub(crate) denied: Vec<RelPath>,
    pub(crate) missing: Vec<RelPath>,
    /// Each watched directory whose stored path is outdated, with its new path and its stored path.
    pub(crate) renamed_meanwhile: Vec<(InotifyWatchId, [RelPath; 2])>,
    pub(crate) new: Vec<InotifyWatchId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchPreexistingEntriesReporting {
    Report,
    Skip,
}

pub(crate) struct DirectoryWatchInstaller<'a> {
    pub(crate) workspace: &'a LocalWorkspace,
    pub(crate) queue: &'a FsEventQueue,
    pub(crate) scopes: &'a CombinedWatchScopes,
    pub(crate) watched: &'a mut WatchedDirectories,
    pub(crate) contents: WatchPreexistingEntriesReporting,
}

impl DirectoryWatchInstaller<'_> {
    /// Watches the directory `top`, all directories above `top`, and the directories below `top` that clients' watches
    /// cover.
    pub(crate) fn attach_branch(&mut self, top: &RelPath) -> Result<WatchAttachReport, DiskError> {
        let mut attached = WatchAttachReport::default();
        for above in top.ancestors() {
            if !self.watched.contains(&above) {
                self.attach_directory(&above, &mut attached)?;
            }
        }
        let mut waiting = vec![top.clone()];
        while let Some(path) = waiting.pop() {
            let Some(directory) = self.attach_directory(&path, &mut attached)? else { continue };
            let Ok(listed) = directory.list() else { continue };
            for entry in listed {
                let Ok(child) = path.join(&entry.name) else { continue };
                if is_temporary(&entry.name) {
                    continue;
                }
                if entry.file_type == FileType::Directory && self.scopes.must_watch(&child) {
                    waiting.push(child.clone());
                }
                if self.contents == WatchPreexistingEntriesReporting::Report && self.scopes.is_relevant(&child) {
                    attached.found_paths.push(child);
                }
            }
        }
        Ok(attached)
    }

    /// Returns the handle of the directory if the directory must be listed to find its subdirectories.
    fn attach_directory(
        &mut self,
        path: &RelPath,
        attached: &mut WatchAttachReport,
    ) -> Result<Option<DirectoryHandle>, DiskError> {
        let opened = self.workspace.root.open_directory(path);
        let added = opened.and_then(|directory| Ok((self.queue.watch_directory(&directory)?, directory)));
        match added {
            Ok((id, directory)) => Ok(self.assign_path(id, path, attached).then_some(directory)),
            Err(error) => record_attach_failure(error, path, attached).map(|()| None),
        }
    }

    /// Returns whether the watched directory must be listed to find its subdirectories.
    fn assign_path(&mut self, id: InotifyWatchId, path: &RelPath, attached: &mut WatchAttachReport) -> bool {
        match self.watched.path(id) {
            Some(known) if known == path => return self.contents == WatchPreexistingEntriesReporting::Skip,
            Some(known) => {
                attached.renamed_meanwhile.push((id, [path.clone(), known.clone()]));
                return false;
            }
            None => {}
        }
        attached.new.push(id);
        self.watched.insert(id, path.clone());
        true
    }
}

fn record_attach_failure(error: DiskError, path: &RelPath, attached: &mut WatchAttachReport) -> Result<(), DiskError> {
    // These errors mean that the directory was removed or replaced. An event of its parent directory reports the
    // change.
    let missing = [
        DiskErrorKind::NotFound,
        DiskErrorKind::NotDirectory,
        DiskErrorKind::IsSymlink,
        DiskErrorKind::ChangedConcurrently,
        DiskErrorKind::NotRegularFile,
    ];
    // These errors mean that the directory is not part of the workspace, so they are ignored.
    let excluded =
        [DiskErrorKind::Hidden, DiskErrorKind::CrossesMount, DiskErrorKind::OutsideRoot, DiskErrorKind::NameTooLong];
    if missing.contains(&error.kind) {
        attached.missing.push(path.clone());
    } else if error.kind == DiskErrorKind::NoSpace {
        attached.beyond_limit.push(path.clone());
    } else if error.kind == DiskErrorKind::PermissionDenied {
        attached.denied.push(path.clone());
    } else if !excluded.contains(&error.kind) {
        return Err(error);
    }
    Ok(())
}

pub(crate) fn is_temporary(name: &FileName) -> bool {
    name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())
}

/// Stores the path of each watched directory; every processed rename event updates the paths.
#[derive(Debug, Default)]
pub(crate) struct WatchedDirectories {
    paths: HashMap<InotifyWatchId, RelPath>,
    ids: BTreeMap<RelPath, InotifyWatchId>,
}

impl WatchedDirectories {
    pub(crate) fn path(&self, id: InotifyWatchId) -> Option<&RelPath> {
        self.paths.get(&id)
    }

    pub(crate) fn contains(&self, path: &RelPath) -> bool {
        self.ids.contains_key(path)
    }

    /// If another watched directory has the same path, that directory is removed and its watch is returned.
    pub(crate) fn insert(&mut self, id: InotifyWatchId, path: RelPath) -> Option<InotifyWatchId> {
        self.remove(id);
        let other = self.ids.insert(path.clone(), id);
        if let Some(other) = &other {
            self.paths.remove(other);
        }
        self.paths.insert(id, path);
        other
    }

    pub(crate) fn remove(&mut self, id: InotifyWatchId) {
        if let Some(path) = self.paths.remove(&id)
            && self.ids.get(&path) == Some(&id)
        {
            self.ids.remove(&path);
        }
    }

    pub(crate) fn watches_within(&self, top: &RelPath) -> Vec<(RelPath, InotifyWatchId)> {
        self.ids
            .range(top.clone()..)
            .take_while(|(path, _)| path.as_bytes().starts_with(top.as_bytes()))
            .filter(|(path, _)| path.is_within(top))
            .map(|(path, id)| (path.clone(), *id))
            .collect()
    }

    pub(crate) fn all_watches(&self) -> Vec<(RelPath, InotifyWatchId)> {
        self.ids.iter().map(|(path, id)| (path.clone(), *id)).collect()
    }

    /// Returns the new paths that belonged to other watched directories before the rename.
    pub(crate) fn rename(&mut self, from: &RelPath, to: &RelPath) -> Vec<RelPath> {
        let mut overwritten = Vec::new();
        for (path, id) in self.watches_within(from) {
            self.remove(id);
            if let Some(moved) = path.strip_prefix(from).and_then(|rest| to.append(&rest).ok())
                && self.insert(id, moved.clone()).is_some()
            {
                overwritten.push(moved);
            }
        }
        overwritten
    }
}
