//! The index of a journal entry: everything by which a store finds the entry.
//!
//! A store writes its index rows from [`index_entry`] when it appends an entry, and derives them again when it verifies
//! the journal. The index rows are therefore as trustworthy as the entries, although no hash covers them.

use std::collections::BTreeMap;

use crate::{ChangeKind, Digest, JournalEntry, JournalEntryRelation, PathState, RecordedChange};

/// The values by which a store finds a journal entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalEntryIndex<'a> {
    /// The changed paths with the last change of each path. A rename or copy changes its source and its target.
    pub paths: BTreeMap<&'a str, IndexedPathChange>,
    /// Whether the recorded call changed any path.
    pub has_changes: bool,
    /// The number of the entry that the recorded call undid.
    pub undoes: Option<u64>,
    /// The number of the undone entry that the recorded call redid.
    pub redoes: Option<u64>,
    /// The number of the entry whose changes were not applied after all.
    pub amends: Option<u64>,
    /// The idempotency key of the principal. Only an entry with changes owns the key of its call.
    pub idempotency_key: Option<&'a str>,
    pub principal: &'a str,
    pub session: &'a str,
}

/// The last change of a path in a journal entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexedPathChange {
    pub kind: ChangeKind,
    /// The version of the file that the change left at the path, if it left a file.
    pub version: Option<Digest>,
}

/// Derives the index of a journal entry.
pub fn index_entry(entry: &JournalEntry) -> JournalEntryIndex<'_> {
    let (undoes, redoes, amends) = match entry.relation {
        JournalEntryRelation::None | JournalEntryRelation::Restores(_) => (None, None, None),
        JournalEntryRelation::Undoes(number) => (Some(number), None, None),
        JournalEntryRelation::Redoes(number) => (None, Some(number), None),
        JournalEntryRelation::Amends(number) => (None, None, Some(number)),
    };
    let has_changes = !entry.changes.is_empty();
    JournalEntryIndex {
        paths: entry.changes.iter().flat_map(changed_paths).collect(),
        has_changes,
        undoes,
        redoes,
        amends,
        idempotency_key: entry.request_id.as_deref().filter(|_| has_changes),
        principal: &entry.caller.principal,
        session: &entry.caller.session,
    }
}

fn changed_paths(change: &RecordedChange) -> impl Iterator<Item = (&str, IndexedPathChange)> {
    let version = if let PathState::File { version, .. } = &change.after { Some(*version) } else { None };
    let indexed = |version| IndexedPathChange { kind: change.kind, version };
    let (source, target) = match &change.to {
        Some(to) => (indexed(None), Some((to.as_str(), indexed(version)))),
        None => (indexed(version), None),
    };
    std::iter::once((change.path.as_str(), source)).chain(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> PathState {
        PathState::File { version: Digest::sha256(text.as_bytes()), size: 1, mode: 0o644 }
    }

    fn change(path: &str, kind: ChangeKind, to: Option<&str>, after: PathState) -> RecordedChange {
        RecordedChange { path: path.into(), kind, to: to.map(str::to_owned), before: PathState::Absent, after }
    }

    #[test]
    fn last_change_of_a_path_counts() {
        let changes = vec![
            change("a", ChangeKind::Remove, None, PathState::Absent),
            change("a", ChangeKind::Create, None, file("new")),
            change("b", ChangeKind::Rename, Some("c"), file("old")),
            change("d", ChangeKind::MakeDir, None, PathState::Directory { mode: 0o755 }),
        ];
        let entry = JournalEntry { changes, request_id: Some("key".into()), ..JournalEntry::default() };
        let index = index_entry(&entry);
        let version = |text: &str| Some(Digest::sha256(text.as_bytes()));
        let expected = [
            ("a", ChangeKind::Create, version("new")),
            ("b", ChangeKind::Rename, None),
            ("c", ChangeKind::Rename, version("old")),
            ("d", ChangeKind::MakeDir, None),
        ];
        let expected = expected.map(|(path, kind, version)| (path, IndexedPathChange { kind, version }));
        assert_eq!(index.paths, BTreeMap::from(expected));
        assert_eq!((index.has_changes, index.idempotency_key), (true, Some("key")));
    }

    #[test]
    fn entry_without_changes_owns_no_key() {
        let entry = JournalEntry {
            request_id: Some("key".into()),
            relation: JournalEntryRelation::Amends(3),
            ..JournalEntry::default()
        };
        let index = index_entry(&entry);
        assert_eq!((index.has_changes, index.idempotency_key, index.amends), (false, None, Some(3)));
    }
}
