//! `undo`: reverts one entry with all of its files. Without an argument it reverts the newest entry that is not
//! undone, so repeated calls go further back. Undoing an undo redoes the entry.

use std::cell::RefCell;

use serde::Deserialize;
use stead_journal::{EntryRelation, JournalEntry};

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
pub(crate) struct UndoArgs {
    entry: Option<JournalEntryArgument>,
    #[serde(default)]
    dry_run: bool,
    /// The entry chosen when paths were requested; the plan uses the same one.
    #[serde(skip)]
    reversal: RefCell<Option<Reversal>>,
}

impl Operation for UndoArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        let reversal = match &self.entry {
            Some(name) => undoable_by_number(context, name.entry_number()?)?,
            None => latest_undoable(context)?,
        };
        let requests = reversal.requested_paths();
        *self.reversal.borrow_mut() = Some(reversal);
        Ok(requests)
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        match &*self.reversal.borrow() {
            Some(reversal) => reversal.plan(context, targets, self.dry_run.into()),
            None => Err(nothing_to_undo_error()),
        }
    }
}

fn nothing_to_undo_error() -> Error {
    Error::new(ErrorKind::NothingToDo, "nothing to undo").with_next_step("call history to see entries")
}

fn latest_undoable(context: &CallContext<'_>) -> Result<Reversal, Error> {
    let filter = JournalEntryQuery { principal: revert::principal_filter(context), ..JournalEntryQuery::default() };
    let found = revert::find_newest(context, filter, |stored| match stored.entry.relation {
        _ if revert::is_external(&stored.entry) => Ok(None),
        // Undo and redo entries move along the history; they are not candidates themselves.
        EntryRelation::Undoes(_) | EntryRelation::Redoes(_) | EntryRelation::Amends(_) => Ok(None),
        EntryRelation::None | EntryRelation::Restores(_) => {
            let undone = context.workspace().undone_by(stored.entry.number)?;
            Ok(undone.is_none().then_some(stored.entry))
        }
    })?;
    undo_entry(context, &found.ok_or_else(nothing_to_undo_error)?)
}

fn undoable_by_number(context: &CallContext<'_>, number: u64) -> Result<Reversal, Error> {
    let entry = revert::find_entry(context, number)?.entry;
    match entry.relation {
        EntryRelation::Undoes(undone) => {
            revert::require_owner(context, &entry)?;
            if context.workspace().undone_by(undone)? != Some(number) {
                return Err(Error::new(
                    ErrorKind::NothingToDo,
                    format!("r{undone}, which r{number} undid, was redone"),
                )
                .with_next_step(format!("call undo with entry r{undone} to undo it again")));
            }
            Reversal::redo(context, undone, &entry)
        }
        EntryRelation::Redoes(redone) => undo_entry(context, &revert::find_entry(context, redone)?.entry),
        EntryRelation::None | EntryRelation::Restores(_) | EntryRelation::Amends(_) => undo_entry(context, &entry),
    }
}

fn undo_entry(context: &CallContext<'_>, entry: &JournalEntry) -> Result<Reversal, Error> {
    let number = entry.number;
    revert::require_owner(context, entry)?;
    if let Some(by) = context.workspace().undone_by(number)? {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{number} is already undone by r{by}"))
            .with_next_step(format!("call redo with entry r{number} to redo it")));
    }
    if entry.changes.is_empty() {
        return Err(Error::new(ErrorKind::NothingToDo, format!("r{number} changed nothing"))
            .with_next_step("call history to see entries"));
    }
    match revert::latest_redo(context, number)? {
        Some(redo) => Reversal::undo(context, number, &redo),
        None => Reversal::undo(context, number, entry),
    }
}
