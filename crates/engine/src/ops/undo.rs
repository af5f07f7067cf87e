//! `undo`: one entry is taken back with all of its files together. Without a name it is the newest that is not undone,
//! so calling it again goes further back. Undoing an undo makes the entry again.

use std::cell::RefCell;

use journal::{Entry, Link};
use serde::Deserialize;

use super::{
    recorded::EntryName,
    reversal::{self, Reversal},
};
use crate::{
    failure::{Failure, Kind},
    operation::{Ask, Operation, Planned, Target},
    view::View,
    workspace::EntryFilter,
};

/// The arguments of `undo`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Undo {
    entry: Option<EntryName>,
    #[serde(default)]
    dry_run: bool,
    /// What the places were asked for; the plan is about the same entry.
    #[serde(skip)]
    chosen: RefCell<Option<Reversal>>,
}

impl Operation for Undo {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        let reversal = match &self.entry {
            Some(name) => named(view, name.number()?)?,
            None => latest(view)?,
        };
        let asks = reversal.asks();
        *self.chosen.borrow_mut() = Some(reversal);
        Ok(asks)
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        match &*self.chosen.borrow() {
            Some(reversal) => reversal.plan(view, targets, self.dry_run.into()),
            None => Err(nothing()),
        }
    }
}

fn nothing() -> Failure {
    Failure::new(Kind::NothingToDo, "there is nothing to undo").hint("call history to see entries")
}

/// The newest entry that is not undone.
fn latest(view: &View<'_>) -> Result<Reversal, Failure> {
    let filter = EntryFilter { principal: reversal::own_only(view), ..EntryFilter::default() };
    let found = reversal::newest(view, filter, |stored| match stored.entry.link {
        _ if reversal::is_outside(&stored.entry) => Ok(None),
        // Undoing and redoing are steps along the entries, not entries to step over.
        Link::Undoes(_) | Link::Redoes(_) | Link::Amends(_) => Ok(None),
        Link::None | Link::Restores(_) => {
            let undone = view.workspace().undone(stored.entry.number)?;
            Ok(undone.is_none().then_some(stored.entry))
        }
    })?;
    standing_entry(view, &found.ok_or_else(nothing)?)
}

fn named(view: &View<'_>, number: u64) -> Result<Reversal, Failure> {
    let entry = reversal::entry(view, number)?.entry;
    match entry.link {
        Link::Undoes(undone) => {
            reversal::owned(view, &entry)?;
            if view.workspace().undone(undone)? != Some(number) {
                return Err(Failure::new(
                    Kind::NothingToDo,
                    format!("r{undone}, which r{number} undid, is done again"),
                )
                .hint(format!("call undo with entry r{undone} to undo it once more")));
            }
            Reversal::redo(view, undone, &entry)
        }
        Link::Redoes(redone) => standing_entry(view, &reversal::entry(view, redone)?.entry),
        Link::None | Link::Restores(_) | Link::Amends(_) => standing_entry(view, &entry),
    }
}

/// Takes back an entry that stands.
fn standing_entry(view: &View<'_>, entry: &Entry) -> Result<Reversal, Failure> {
    let number = entry.number;
    reversal::owned(view, entry)?;
    if let Some(by) = view.workspace().undone(number)? {
        return Err(Failure::new(Kind::NothingToDo, format!("r{number} is already undone by r{by}"))
            .hint(format!("call redo with entry r{number} to make it again")));
    }
    if entry.changes.is_empty() {
        return Err(Failure::new(Kind::NothingToDo, format!("r{number} changed nothing"))
            .hint("call history to see entries"));
    }
    match reversal::latest_redo(view, number)? {
        Some(redo) => Reversal::undo(view, number, &redo),
        None => Reversal::undo(view, number, entry),
    }
}
