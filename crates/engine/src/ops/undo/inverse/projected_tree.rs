//! The directory tree as an undo plan will leave it: the current tree with the changes planned so far.

use std::collections::BTreeMap;

use stead_path::RelPath;

use crate::{call_context::CallContext, errors::Error, plan::FileKind, tree::FileStat};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryAfterPlan {
    Absent,
    Planned(FileKind),
    Existing(FileStat),
}

impl EntryAfterPlan {
    pub(crate) fn kind(self) -> Option<FileKind> {
        match self {
            EntryAfterPlan::Absent => None,
            EntryAfterPlan::Planned(kind) => Some(kind),
            EntryAfterPlan::Existing(stat) => Some(stat.kind),
        }
    }
}

#[derive(Debug, Clone)]
enum PlannedTreeChange {
    Removed,
    Created(FileKind),
    MovedFrom(RelPath, FileKind),
}

pub(crate) struct TreeAfterPlan<'a> {
    context: &'a CallContext<'a>,
    changes: BTreeMap<RelPath, PlannedTreeChange>,
    added_children: BTreeMap<RelPath, usize>,
}

impl<'a> TreeAfterPlan<'a> {
    pub(crate) fn new(context: &'a CallContext<'a>) -> Self {
        Self { context, changes: BTreeMap::new(), added_children: BTreeMap::new() }
    }

    pub(crate) fn mark_removed(&mut self, path: &RelPath) {
        if let Some(PlannedTreeChange::Created(_) | PlannedTreeChange::MovedFrom(..)) =
            self.changes.insert(path.clone(), PlannedTreeChange::Removed)
            && let Some(count) = path.parent().and_then(|parent| self.added_children.get_mut(&parent))
        {
            *count = count.saturating_sub(1);
        }
    }

    pub(crate) fn mark_created(&mut self, path: &RelPath, kind: FileKind) {
        self.set_change(path, PlannedTreeChange::Created(kind));
    }

    pub(crate) fn mark_moved(&mut self, from: &RelPath, to: &RelPath, kind: FileKind) {
        self.mark_removed(from);
        self.set_change(to, PlannedTreeChange::MovedFrom(from.clone(), kind));
    }

    fn set_change(&mut self, path: &RelPath, change: PlannedTreeChange) {
        match self.changes.insert(path.clone(), change) {
            Some(PlannedTreeChange::Created(_) | PlannedTreeChange::MovedFrom(..)) => {}
            Some(PlannedTreeChange::Removed) | None => {
                if let Some(parent) = path.parent() {
                    *self.added_children.entry(parent).or_default() += 1;
                }
            }
        }
    }

    /// Returns the entry that will be at `path` after the undo plan; `path` must not contain symbolic links.
    pub(crate) fn entry_at(&self, path: &RelPath) -> Result<EntryAfterPlan, Error> {
        match self.changes.get(path) {
            Some(PlannedTreeChange::Removed) => return Ok(EntryAfterPlan::Absent),
            Some(PlannedTreeChange::Created(kind) | PlannedTreeChange::MovedFrom(_, kind)) => {
                return Ok(EntryAfterPlan::Planned(*kind));
            }
            None => {}
        }
        let mut above = path.parent();
        while let Some(ancestor) = above {
            match self.changes.get(&ancestor) {
                // A directory that the plan creates counts as empty. A directory restored from the trash may have
                // entries; the commit verifies the plan.
                Some(PlannedTreeChange::Removed | PlannedTreeChange::Created(_)) => {
                    return Ok(EntryAfterPlan::Absent);
                }
                Some(PlannedTreeChange::MovedFrom(origin, _)) => {
                    let Some(rest) = path.strip_prefix(&ancestor) else { return Ok(EntryAfterPlan::Absent) };
                    let stat = self.context.workspace().stat(&origin.append(&rest)?)?;
                    return Ok(stat.map_or(EntryAfterPlan::Absent, |stat| EntryAfterPlan::Planned(stat.kind)));
                }
                None => above = ancestor.parent(),
            }
        }
        Ok(self.context.workspace().stat(path)?.map_or(EntryAfterPlan::Absent, EntryAfterPlan::Existing))
    }

    pub(crate) fn is_empty(&self, path: &RelPath) -> Result<bool, Error> {
        if self.added_children.get(path).is_some_and(|count| *count > 0) {
            return Ok(false);
        }
        for listed in self.context.workspace().list(path)? {
            match self.changes.get(&path.join(&listed.name)?) {
                Some(PlannedTreeChange::Removed) => {}
                Some(PlannedTreeChange::Created(_) | PlannedTreeChange::MovedFrom(..)) | None => {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
