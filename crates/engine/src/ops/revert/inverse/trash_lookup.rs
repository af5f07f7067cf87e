//! Finds the current trash id of a removed entry. Restore, undo and redo take an item out of the trash and later put
//! it back under another id; the journal links the ids.

use std::collections::HashSet;

use stead_journal::{EntryRelation, JournalEntry, PathState};

use crate::{
    call_context::CallContext,
    errors::Error,
    ops::revert,
    workspace::{JournalEntryQuery, TrashItem},
};

/// An item as it went to the trash: its id and the entry.
pub(super) struct RemovalRecord {
    pub(super) id: String,
    pub(super) entry: u64,
}

/// The item, under its current id.
pub(super) fn find_trash_item(context: &CallContext<'_>, removal: RemovalRecord) -> Result<Option<TrashItem>, Error> {
    let now_ms = context.workspace().now_ms();
    let mut followed = HashSet::new();
    let mut waiting = vec![removal];
    while let Some(removal) = waiting.pop() {
        context.control.check()?;
        if let Some(item) = context.workspace().trash_item(&removal.id)? {
            return Ok((item.retain_until_ms >= now_ms).then_some(item));
        }
        if followed.insert(removal.id.clone()) {
            waiting.extend(removal_chain(context, &removal)?);
        }
    }
    Ok(None)
}

/// Removals that may have put the same item into the trash again.
fn removal_chain(context: &CallContext<'_>, removal: &RemovalRecord) -> Result<Vec<RemovalRecord>, Error> {
    let mut next = removals_by_undone_restore(context, &removal.id)?;
    let Some(stored) = context.workspace().entry(removal.entry)? else { return Ok(next) };
    match &stored.entry.relation {
        // The restored item was removed by an undo: it is the same item as before.
        EntryRelation::Undoes(undone) => next.extend(removal_before_restore(context, *undone)?),
        EntryRelation::Redoes(number) => next.extend(removals_redone(context, *number, &stored.entry, &removal.id)?),
        EntryRelation::None | EntryRelation::Restores(_) | EntryRelation::Amends(_) => {
            next.extend(removals_redone(context, removal.entry, &stored.entry, &removal.id)?);
        }
    }
    Ok(next)
}

/// Removals by the undo of a restore of this item.
fn removals_by_undone_restore(context: &CallContext<'_>, id: &str) -> Result<Vec<RemovalRecord>, Error> {
    let restoring = EntryRelation::Restores(id.to_owned());
    let filter = JournalEntryQuery { operation: Some("restore".to_owned()), ..JournalEntryQuery::default() };
    let restored = revert::find_newest(context, filter, |stored| {
        Ok((stored.entry.relation == restoring).then_some(stored.entry.number))
    })?;
    let Some(number) = restored else { return Ok(Vec::new()) };
    let Some(undoing) = context.workspace().undone_by(number)? else { return Ok(Vec::new()) };
    let stored = context.workspace().entry(undoing)?;
    Ok(stored.map(|stored| entry_removals(&stored.entry).map(|(_, removal)| removal).collect()).unwrap_or_default())
}

/// The removal whose item this entry restored, if any.
fn removal_before_restore(context: &CallContext<'_>, number: u64) -> Result<Option<RemovalRecord>, Error> {
    let Some(stored) = context.workspace().entry(number)? else { return Ok(None) };
    let EntryRelation::Restores(id) = stored.entry.relation else { return Ok(None) };
    let filter = JournalEntryQuery { before: Some(number), ..JournalEntryQuery::default() };
    revert::find_newest(context, filter, |stored| {
        Ok(entry_removals(&stored.entry).map(|(_, removal)| removal).find(|removal| removal.id == id))
    })
}

/// Removals of the same path by the original entry and by its latest redo.
fn removals_redone(
    context: &CallContext<'_>,
    number: u64,
    entry: &JournalEntry,
    id: &str,
) -> Result<Vec<RemovalRecord>, Error> {
    let Some((removed_path, _)) = entry_removals(entry).find(|(_, removal)| removal.id == id) else {
        return Ok(Vec::new());
    };
    let first = context.workspace().entry(number)?.map(|stored| stored.entry);
    let latest = revert::latest_redo(context, number)?;
    let same_place = |entry: &JournalEntry| {
        let there = entry_removals(entry).filter(|(path, _)| *path == removed_path);
        there.map(|(_, removal)| removal).collect::<Vec<_>>()
    };
    Ok(first.iter().chain(&latest).flat_map(same_place).collect())
}

/// The items that an entry put into the trash, with their paths.
fn entry_removals(entry: &JournalEntry) -> impl Iterator<Item = (&str, RemovalRecord)> {
    entry.changes.iter().filter_map(|change| match (&change.before, &change.after) {
        (PathState::Tree { trash: Some(id), .. }, PathState::Absent) => {
            Some((change.path.as_str(), RemovalRecord { id: id.clone(), entry: entry.number }))
        }
        (
            PathState::Tree { .. }
            | PathState::Absent
            | PathState::File { .. }
            | PathState::Directory { .. }
            | PathState::Link { .. }
            | PathState::Unknown { .. },
            _,
        ) => None,
    })
}
