//! `redo`: an undone entry is made again, by taking back the entry that undid it. All of it or nothing: when its files
//! were changed since, it is refused.

use std::cell::RefCell;

use journal::Link;
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

/// The arguments of `redo`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redo {
    entry: Option<EntryName>,
    #[serde(default)]
    dry_run: bool,
    /// What the places were asked for; the plan is about the same entry.
    #[serde(skip)]
    chosen: RefCell<Option<Reversal>>,
}

impl Operation for Redo {
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
    Failure::new(Kind::NothingToDo, "there is nothing to redo").hint("call history to see entries")
}

/// The entry that was undone last.
fn latest(view: &View<'_>) -> Result<Reversal, Failure> {
    let operation = Some("undo".to_owned());
    let filter = EntryFilter { principal: reversal::own_only(view), operation, ..EntryFilter::default() };
    let found = reversal::newest(view, filter, |stored| match stored.entry.link {
        Link::Undoes(number) => {
            let by = view.workspace().undone(number)?;
            Ok((by == Some(stored.entry.number)).then_some((number, stored.entry)))
        }
        Link::None | Link::Redoes(_) | Link::Restores(_) | Link::Amends(_) => Ok(None),
    })?;
    let (number, undoing) = found.ok_or_else(nothing)?;
    Reversal::redo(view, number, &undoing)
}

/// An undone entry by its own number or by that of the entry that undid it.
fn named(view: &View<'_>, number: u64) -> Result<Reversal, Failure> {
    let entry = reversal::entry(view, number)?.entry;
    let meant = match entry.link {
        Link::Undoes(undone) => undone,
        Link::Redoes(redone) => redone,
        Link::None | Link::Restores(_) | Link::Amends(_) => number,
    };
    let Some(by) = view.workspace().undone(meant)? else {
        return Err(Failure::new(Kind::NothingToDo, format!("r{meant} is not undone"))
            .hint("call history to see what was undone"));
    };
    let undoing = reversal::entry(view, by)?.entry;
    reversal::owned(view, &undoing)?;
    Reversal::redo(view, meant, &undoing)
}
