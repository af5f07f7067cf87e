//! `redo`: applies an undone entry again by reverting the entry that undid it. All or nothing: fails if its files
//! changed since.

use std::cell::RefCell;

use serde::Deserialize;
use stead_journal::EntryRelation;

use super::{
    revert::{self, Reversal},
    visible_change::JournalEntryArgument,
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    workspace::JournalEntryQuery,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RedoArgs {
    entry: Option<JournalEntryArgument>,
    #[serde(default)]
    dry_run: bool,
    /// The entry chosen when paths were requested; the plan uses the same one.
    #[serde(skip)]
    reversal: RefCell<Option<Reversal>>,
}

impl Operation for RedoArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        let reversal = match &self.entry {
            Some(name) => undo_by_number(context, name.entry_number()?)?,
            None => latest_undo(context)?,
        };
        let requests = reversal.requested_paths();
        *self.reversal.borrow_mut() = Some(reversal);
        Ok(requests)
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        match &*self.reversal.borrow() {
            Some(reversal) => reversal.plan(context, targets, self.dry_run.into()),
            None => Err(nothing_to_redo_error()),
        }
    }
}

fn nothing_to_redo_error() -> Error {
    Error::new(ErrorKind::NothingToDo, "nothing to redo").with_next_step("call history to see entries")
}

/// The most recent undo.
fn latest_undo(context: &CallContext<'_>) -> Result<Reversal, Error> {
    let operation = Some("undo".to_owned());
    let filter =
        JournalEntryQuery { principal: revert::principal_filter(context), operation, ..JournalEntryQuery::default() };
    let found = revert::find_newest(context, filter, |stored| match stored.entry.relation {
        EntryRelation::Undoes(number) => {
            let by = context.workspace().undone_by(number)?;
            Ok((by == Some(stored.entry.number)).then_some((number, stored.entry)))
        }
        EntryRelation::None | EntryRelation::Redoes(_) | EntryRelation::Restores(_) | EntryRelation::Amends(_) => {
            Ok(None)
        }
    })?;
    let (number, undoing) = found.ok_or_else(nothing_to_redo_error)?;
    Reversal::redo(context, number, &undoing)
}

/// An undone entry, by its own number or by that of its undo.
fn undo_by_number(context: &CallContext<'_>, number: u64) -> Result<Reversal, Error> {
    let entry = revert::find_entry(context, number)?.entry;
    let undone = match entry.relation {
        EntryRelation::Undoes(undone) => undone,
        EntryRelation::Redoes(redone) => redone,
        EntryRelation::None | EntryRelation::Restores(_) | EntryRelation::Amends(_) => number,
    };
    let Some(by) = context.workspace().undone_by(undone)? else {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{undone} is not undone"))
            .with_next_step("call history to see what was undone"));
    };
    let undoing = revert::find_entry(context, by)?.entry;
    revert::require_owner(context, &undoing)?;
    Reversal::redo(context, undone, &undoing)
}
