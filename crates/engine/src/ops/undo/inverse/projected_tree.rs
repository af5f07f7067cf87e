//! The directory tree as it will be after the changes planned so far: the current tree overlaid with those changes.
//! Never writes; the commit verifies every change.

use std::collections::BTreeMap;

use stead_path::RelPath;

use crate::{call_context::CallContext, errors::Error, plan::FileKind, workspace::FileStat};

/// The entry that a path will have after the changes planned so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProjectedEntry {
    Absent,
    /// An entry that the plan creates.
    Planned(FileKind),
    /// An existing entry that the plan does not touch.
    Existing(FileStat),
}

impl ProjectedEntry {
    pub(crate) fn kind(self) -> Option<FileKind> {
        match self {
            ProjectedEntry::Absent => None,
            ProjectedEntry::Planned(kind) => Some(kind),
            ProjectedEntry::Existing(stat) => Some(stat.kind),
        }
    }
}

#[derive(Debug, Clone)]
enum ProjectedChange {
    Removed,
    Created(FileKind),
    MovedFrom(RelPath, FileKind),
}

pub(crate) struct ProjectedTree<'a> {
    context: &'a CallContext<'a>,
    changes: BTreeMap<RelPath, ProjectedChange>,
    /// Number of entries that the plan adds directly to a directory.
    added_children: BTreeMap<RelPath, usize>,
}

impl<'a> ProjectedTree<'a> {
    pub(crate) fn new(context: &'a CallContext<'a>) -> Self {
        Self { context, changes: BTreeMap::new(), added_children: BTreeMap::new() }
    }

    pub(crate) fn mark_removed(&mut self, path: &RelPath) {
        if let Some(ProjectedChange::Created(_) | ProjectedChange::MovedFrom(..)) =
            self.changes.insert(path.clone(), ProjectedChange::Removed)
            && let Some(count) = path.parent().and_then(|parent| self.added_children.get_mut(&parent))
        {
            *count = count.saturating_sub(1);
        }
    }

    pub(crate) fn mark_created(&mut self, path: &RelPath, kind: FileKind) {
        self.set_change(path, ProjectedChange::Created(kind));
    }

    pub(crate) fn mark_moved(&mut self, from: &RelPath, to: &RelPath, kind: FileKind) {
        self.mark_removed(from);
        self.set_change(to, ProjectedChange::MovedFrom(from.clone(), kind));
    }

    fn set_change(&mut self, path: &RelPath, change: ProjectedChange) {
        match self.changes.insert(path.clone(), change) {
            Some(ProjectedChange::Created(_) | ProjectedChange::MovedFrom(..)) => {}
            Some(ProjectedChange::Removed) | None => {
                if let Some(parent) = path.parent() {
                    *self.added_children.entry(parent).or_default() += 1;
                }
            }
        }
    }

    /// The entry that `path` will have. The path contains no symbolic links.
    pub(crate) fn entry_at(&self, path: &RelPath) -> Result<ProjectedEntry, Error> {
        match self.changes.get(path) {
            Some(ProjectedChange::Removed) => return Ok(ProjectedEntry::Absent),
            Some(ProjectedChange::Created(kind) | ProjectedChange::MovedFrom(_, kind)) => {
                return Ok(ProjectedEntry::Planned(*kind));
            }
            None => {}
        }
        let mut above = path.parent();
        while let Some(ancestor) = above {
            match self.changes.get(&ancestor) {
                // A planned directory counts as empty. That may be wrong for one restored from the trash; the commit
                // verifies it.
                Some(ProjectedChange::Removed | ProjectedChange::Created(_)) => {
                    return Ok(ProjectedEntry::Absent);
                }
                Some(ProjectedChange::MovedFrom(origin, _)) => {
                    let Some(rest) = path.strip_prefix(&ancestor) else { return Ok(ProjectedEntry::Absent) };
                    let stat = self.context.workspace().stat(&origin.append(&rest)?)?;
                    return Ok(stat.map_or(ProjectedEntry::Absent, |stat| ProjectedEntry::Planned(stat.kind)));
                }
                None => above = ancestor.parent(),
            }
        }
        Ok(self.context.workspace().stat(path)?.map_or(ProjectedEntry::Absent, ProjectedEntry::Existing))
    }

    /// Whether an existing directory will be empty after the planned changes.
    pub(crate) fn is_empty(&self, path: &RelPath) -> Result<bool, Error> {
        if self.added_children.get(path).is_some_and(|count| *count > 0) {
            return Ok(false);
        }
        for listed in self.context.workspace().list(path)? {
            match self.changes.get(&path.join(&listed.name)?) {
                Some(ProjectedChange::Removed) => {}
                Some(ProjectedChange::Created(_) | ProjectedChange::MovedFrom(..)) | None => {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
