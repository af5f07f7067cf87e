//! Finds the current trash id of a removed file or tree. A restored item gets a new trash id if an undo or redo removes
//! the item again. The relations between journal entries lead from an old trash id to the current trash id.

use std::collections::HashSet;

use stead_journal::{JournalEntry, JournalEntryRelation, PathState};

use crate::{
    call_context::CallContext,
    errors::Error,
    ops::undo,
    workspace::{JournalEntryQuery, TrashItem},
};

pub(super) struct TrashIdAndJournalEntry {
    pub(super) id: String,
    pub(super) entry: u64,
}

pub(super) fn find_trash_item(
    context: &CallContext<'_>,
    removal: TrashIdAndJournalEntry,
) -> Result<Option<TrashItem>, Error> {
    let now_ms = context.workspace().now_ms();
    let mut visited = HashSet::new();
    let mut pending = vec![removal];
    while let Some(removal) = pending.pop() {
        context.control.check()?;
        if let Some(item) = context.workspace().trash_item(&removal.id)? {
            return Ok((item.retain_until_ms >= now_ms).then_some(item));
        }
        if visited.insert(removal.id.clone()) {
            pending.extend(linked_removals(context, &removal)?);
        }
    }
    Ok(None)
}

fn linked_removals(
    context: &CallContext<'_>,
    removal: &TrashIdAndJournalEntry,
) -> Result<Vec<TrashIdAndJournalEntry>, Error> {
    let mut next = removals_by_undone_restore(context, &removal.id)?;
    let Some(stored) = context.workspace().entry(removal.entry)? else { return Ok(next) };
    match &stored.entry.relation {
        // An undo of a restore put the same item back into the trash.
        JournalEntryRelation::Undoes(undone) => next.extend(removal_before_restore(context, *undone)?),
        JournalEntryRelation::Redoes(number) => {
            next.extend(removals_redone(context, *number, &stored.entry, &removal.id)?)
        }
        JournalEntryRelation::None | JournalEntryRelation::Restores(_) | JournalEntryRelation::Amends(_) => {
            next.extend(removals_redone(context, removal.entry, &stored.entry, &removal.id)?);
        }
    }
    Ok(next)
}

fn removals_by_undone_restore(context: &CallContext<'_>, id: &str) -> Result<Vec<TrashIdAndJournalEntry>, Error> {
    let restoring = JournalEntryRelation::Restores(id.to_owned());
    let filter = JournalEntryQuery { operation: Some("restore".to_owned()), ..undo::newest_changes() };
    let restored = undo::find_newest(context, filter, |stored| {
        Ok((stored.entry.relation == restoring).then_some(stored.entry.number))
    })?;
    let Some(number) = restored else { return Ok(Vec::new()) };
    let Some(undoing) = context.workspace().undone_by(number)? else { return Ok(Vec::new()) };
    let stored = context.workspace().entry(undoing)?;
    Ok(stored.map(|stored| entry_removals(&stored.entry).map(|(_, removal)| removal).collect()).unwrap_or_default())
}

fn removal_before_restore(context: &CallContext<'_>, number: u64) -> Result<Option<TrashIdAndJournalEntry>, Error> {
    let Some(stored) = context.workspace().entry(number)? else { return Ok(None) };
    let JournalEntryRelation::Restores(id) = stored.entry.relation else { return Ok(None) };
    let filter = JournalEntryQuery { before: Some(number), ..undo::newest_changes() };
    undo::find_newest(context, filter, |stored| {
        Ok(entry_removals(&stored.entry).map(|(_, removal)| removal).find(|removal| removal.id == id))
    })
}

/// Finds the removals of a path by journal entry `number` and by the latest redo of that entry.
fn removals_redone(
    context: &CallContext<'_>,
    number: u64,
    entry: &JournalEntry,
    id: &str,
) -> Result<Vec<TrashIdAndJournalEntry>, Error> {
    let Some((removed_path, _)) = entry_removals(entry).find(|(_, removal)| removal.id == id) else {
        return Ok(Vec::new());
    };
    let first = context.workspace().entry(number)?.map(|stored| stored.entry);
    let latest = undo::latest_redo(context, number)?;
    let removals = first.iter().chain(&latest).flat_map(entry_removals);
    Ok(removals.filter(|(path, _)| *path == removed_path).map(|(_, removal)| removal).collect())
}

fn entry_removals(entry: &JournalEntry) -> impl Iterator<Item = (&str, TrashIdAndJournalEntry)> {
    entry.changes.iter().filter(|change| change.after == PathState::Absent).filter_map(|change| {
        let PathState::Tree { trash: Some(id), .. } = &change.before else { return None };
        Some((change.path.as_str(), TrashIdAndJournalEntry { id: id.clone(), entry: entry.number }))
    })
}
