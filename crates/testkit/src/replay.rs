//! What the tree must look like if the journal tells the truth: every entry's changes applied to nothing, in order.
//! Knows nothing of how a workspace keeps its files, so it can be held against any of them.

use std::collections::{BTreeMap, BTreeSet};

use engine::Stored;
use journal::{Change, ChangeKind, Digest, Link, State};

/// What the journal says is at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A file with these bytes.
    File(Digest),
    /// A directory.
    Directory,
    /// A link that says this.
    Link(String),
}

type Places = BTreeMap<String, Said>;

/// The tree that these entries describe, oldest first. Entries that did not come true are left out.
pub fn replay(entries: &[Stored]) -> Places {
    let amended: BTreeSet<u64> = entries
        .iter()
        .filter_map(|stored| match stored.entry.link {
            Link::Amends(number) => Some(number),
            Link::None | Link::Undoes(_) | Link::Redoes(_) | Link::Restores(_) => None,
        })
        .collect();
    let mut replayed = Replayed::default();
    for stored in entries.iter().filter(|stored| !amended.contains(&stored.entry.number)) {
        for change in &stored.entry.changes {
            replayed.change(change);
        }
    }
    replayed.places
}

#[derive(Default)]
struct Replayed {
    places: Places,
    trash: BTreeMap<String, Places>,
}

impl Replayed {
    fn change(&mut self, change: &Change) {
        match (change.kind, &change.to) {
            (ChangeKind::Rename, Some(to)) => {
                let branch = self.take(&change.path);
                self.graft(to, branch);
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
            ) => self.stand(change),
        }
    }

    fn stand(&mut self, change: &Change) {
        let said = match (&change.before, &change.after) {
            (before, State::Absent) => {
                let branch = self.take(&change.path);
                if let State::Tree { trash: Some(id), .. } = before {
                    self.trash.insert(id.clone(), branch);
                }
                return;
            }
            (_, State::Tree { trash: Some(id), .. }) => {
                let branch = self.trash.remove(id).unwrap_or_default();
                self.graft(&change.path, branch);
                return;
            }
            (_, State::Tree { trash: None, .. } | State::Unknown { .. }) => return,
            (_, State::File { version, .. }) => Said::File(*version),
            (_, State::Directory { .. }) => Said::Directory,
            (_, State::Link { target }) => Said::Link(target.clone()),
        };
        self.places.insert(change.path.clone(), said);
    }

    /// Takes a place out with everything below it; the keys that remain are relative to it.
    fn take(&mut self, top: &str) -> Places {
        let below = format!("{top}/");
        let inside: Vec<String> = self
            .places
            .keys()
            .filter(|path| path.as_str() == top || path.starts_with(&below))
            .cloned()
            .collect();
        inside
            .into_iter()
            .filter_map(|path| {
                let said = self.places.remove(&path)?;
                Some((path[top.len()..].to_owned(), said))
            })
            .collect()
    }

    fn graft(&mut self, top: &str, branch: Places) {
        for (below, said) in branch {
            self.places.insert(format!("{top}{below}"), said);
        }
    }
}
