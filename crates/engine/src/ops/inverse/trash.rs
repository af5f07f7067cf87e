//! Where a removed thing is now. Restoring, undoing and redoing take a thing out of the trash and put it there again
//! under another id; the journal knows the way from one id to the next.

use std::collections::HashSet;

use journal::{Entry, Link, State};

use crate::{
    failure::Failure,
    ops::reversal,
    view::View,
    workspace::{EntryFilter, Trashed},
};

/// A thing as it went to the trash: under this id, by this entry.
pub(super) struct Removal {
    pub(super) id: String,
    pub(super) entry: u64,
}

/// The thing, under whichever id it can come back now.
pub(super) fn find(view: &View<'_>, removal: Removal) -> Result<Option<Trashed>, Failure> {
    let now_ms = view.workspace().now_ms();
    let mut followed = HashSet::new();
    let mut waiting = vec![removal];
    while let Some(removal) = waiting.pop() {
        view.control.check()?;
        if let Some(item) = view.workspace().trashed(&removal.id)? {
            return Ok((item.keep_until_ms >= now_ms).then_some(item));
        }
        if followed.insert(removal.id.clone()) {
            waiting.extend(trail(view, &removal)?);
        }
    }
    Ok(None)
}

/// The removals that may have put the same thing into the trash again.
fn trail(view: &View<'_>, removal: &Removal) -> Result<Vec<Removal>, Failure> {
    let mut next = restoring_undone(view, &removal.id)?;
    let Some(stored) = view.workspace().entry(removal.entry)? else { return Ok(next) };
    match &stored.entry.link {
        // It was taken back from where it had been restored to: the same thing as before that.
        Link::Undoes(undone) => next.extend(before_restoring(view, *undone)?),
        Link::Redoes(number) => next.extend(done_again(view, *number, &stored.entry, &removal.id)?),
        Link::None | Link::Restores(_) | Link::Amends(_) => {
            next.extend(done_again(view, removal.entry, &stored.entry, &removal.id)?);
        }
    }
    Ok(next)
}

/// It was restored, and that was undone.
fn restoring_undone(view: &View<'_>, id: &str) -> Result<Vec<Removal>, Failure> {
    let restoring = Link::Restores(id.to_owned());
    let filter = EntryFilter { operation: Some("restore".to_owned()), ..EntryFilter::default() };
    let restored = reversal::newest(view, filter, |stored| {
        Ok((stored.entry.link == restoring).then_some(stored.entry.number))
    })?;
    let Some(number) = restored else { return Ok(Vec::new()) };
    let Some(undoing) = view.workspace().undone(number)? else { return Ok(Vec::new()) };
    let stored = view.workspace().entry(undoing)?;
    Ok(stored.map(|stored| removals(&stored.entry).map(|(_, removal)| removal).collect()).unwrap_or_default())
}

/// The removal whose thing this entry restored, if it restored one.
fn before_restoring(view: &View<'_>, number: u64) -> Result<Option<Removal>, Failure> {
    let Some(stored) = view.workspace().entry(number)? else { return Ok(None) };
    let Link::Restores(id) = stored.entry.link else { return Ok(None) };
    let filter = EntryFilter { before: Some(number), ..EntryFilter::default() };
    reversal::newest(view, filter, |stored| {
        Ok(removals(&stored.entry).map(|(_, removal)| removal).find(|removal| removal.id == id))
    })
}

/// The removals of the same place by the entry that did this first and by the one that last did it again.
fn done_again(view: &View<'_>, number: u64, entry: &Entry, id: &str) -> Result<Vec<Removal>, Failure> {
    let Some((place, _)) = removals(entry).find(|(_, removal)| removal.id == id) else {
        return Ok(Vec::new());
    };
    let first = view.workspace().entry(number)?.map(|stored| stored.entry);
    let latest = reversal::latest_redo(view, number)?;
    let same_place = |entry: &Entry| {
        let there = removals(entry).filter(|(path, _)| *path == place);
        there.map(|(_, removal)| removal).collect::<Vec<_>>()
    };
    Ok(first.iter().chain(&latest).flat_map(same_place).collect())
}

/// What an entry put into the trash, and from where.
fn removals(entry: &Entry) -> impl Iterator<Item = (&str, Removal)> {
    entry.changes.iter().filter_map(|change| match (&change.before, &change.after) {
        (State::Tree { trash: Some(id), .. }, State::Absent) => {
            Some((change.path.as_str(), Removal { id: id.clone(), entry: entry.number }))
        }
        (
            State::Tree { .. }
            | State::Absent
            | State::File { .. }
            | State::Directory { .. }
            | State::Link { .. }
            | State::Unknown { .. },
            _,
        ) => None,
    })
}
