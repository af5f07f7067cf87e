//! Replays a journal on an empty tree. The replay does not depend on how a workspace stores its files, so it can check
//! any workspace.

use std::collections::{BTreeMap, BTreeSet};

use stead_engine::StoredJournalEntry;
use stead_journal::{ChangeKind, Digest, JournalEntryRelation, PathState, RecordedChange};

/// The content of a path according to the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalReplayedPathContent {
    /// The path is a file whose content has this digest.
    File(Digest),
    /// The path is a directory.
    Directory,
    /// The path is a symbolic link with this target.
    Link(String),
}

type ReplayedTree = BTreeMap<String, JournalReplayedPathContent>;

/// Returns the tree that results from journal entries, which are given oldest first. The changes of an amended journal
/// entry are ignored, because the changes were not applied.
pub fn replay_entries(entries: &[StoredJournalEntry]) -> ReplayedTree {
    let amended: BTreeSet<u64> = entries
        .iter()
        .filter_map(|stored| match stored.entry.relation {
            JournalEntryRelation::Amends(number) => Some(number),
            JournalEntryRelation::None
            | JournalEntryRelation::Undoes(_)
            | JournalEntryRelation::Redoes(_)
            | JournalEntryRelation::Restores(_) => None,
        })
        .collect();
    let mut replayed = TestJournalReplayState::default();
    for stored in entries.iter().filter(|stored| !amended.contains(&stored.entry.number)) {
        for change in &stored.entry.changes {
            replayed.apply_change(change);
        }
    }
    replayed.items
}

#[derive(Default)]
struct TestJournalReplayState {
    items: ReplayedTree,
    trash: BTreeMap<String, ReplayedTree>,
}

impl TestJournalReplayState {
    fn apply_change(&mut self, change: &RecordedChange) {
        match (change.kind, &change.to) {
            (ChangeKind::Rename, Some(to)) => {
                let branch = self.take_subtree(&change.path);
                self.insert_subtree(to, branch);
            }
            (
                ChangeKind::Create
                | ChangeKind::Modify
                | ChangeKind::Remove
                | ChangeKind::Rename
                | ChangeKind::Copy
                | ChangeKind::MakeDir
                | ChangeKind::MakeLink
                | ChangeKind::SetMode
                | ChangeKind::Rescan,
                _,
            ) => self.set_item(change),
        }
    }

    fn set_item(&mut self, change: &RecordedChange) {
        let item = match (&change.before, &change.after) {
            (before, PathState::Absent) => {
                let branch = self.take_subtree(&change.path);
                if let PathState::Tree { trash: Some(id), .. } = before {
                    self.trash.insert(id.clone(), branch);
                }
                return;
            }
            (_, PathState::Tree { trash: Some(id), .. }) => {
                let branch = self.trash.remove(id).unwrap_or_default();
                self.insert_subtree(&change.path, branch);
                return;
            }
            (_, PathState::Tree { trash: None, .. } | PathState::Unknown { .. }) => return,
            (_, PathState::File { version, .. }) => JournalReplayedPathContent::File(*version),
            (_, PathState::Directory { .. }) => JournalReplayedPathContent::Directory,
            (_, PathState::Link { target }) => JournalReplayedPathContent::Link(target.clone()),
        };
        self.items.insert(change.path.clone(), item);
    }

    fn take_subtree(&mut self, top: &str) -> ReplayedTree {
        let below = format!("{top}/");
        let inside: Vec<String> =
            self.items.keys().filter(|path| path.as_str() == top || path.starts_with(&below)).cloned().collect();
        inside
            .into_iter()
            .filter_map(|path| {
                let item = self.items.remove(&path)?;
                Some((path[top.len()..].to_owned(), item))
            })
            .collect()
    }

    fn insert_subtree(&mut self, top: &str, branch: ReplayedTree) {
        for (below, item) in branch {
            self.items.insert(format!("{top}{below}"), item);
        }
    }
}
