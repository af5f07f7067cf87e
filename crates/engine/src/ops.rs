//! The table of operations. One file holds one operation; this list is the only one.

use serde_json::{Map, Value};

use crate::{
    failure::Failure,
    operation::{Effect, Operation, decode},
};

mod answer;
mod append;
mod changes;
mod copy;
mod diff;
mod encoded;
mod history;
mod inverse;
mod list;
mod lock;
mod r#move;
mod parents;
mod read;
mod recorded;
mod redo;
mod remove;
mod restore;
mod reversal;
mod standing;
mod stat;
mod undo;
mod unlock;
mod write;

pub(crate) use answer::answer_from_entry;

/// Turns arguments into an operation.
type Decode = fn(&Map<String, Value>) -> Result<Box<dyn Operation>, Failure>;

/// One row of the table.
pub struct OperationRow {
    /// Its name on every face.
    pub name: &'static str,
    /// What it does to the world.
    pub effect: Effect,
    /// Arguments that carry content and enter the journal only by their size.
    pub contents: &'static [&'static str],
    pub(crate) decode: Decode,
}

macro_rules! operations {
    ($($name:literal $effect:ident $kind:path $([$($content:literal),+])?;)+) => {
        /// Every operation, in documentation order.
        pub const OPERATIONS: &[OperationRow] = &[$(OperationRow {
            name: $name,
            effect: Effect::$effect,
            contents: &[$($($content),+)?],
            decode: |arguments| Ok(Box::new(decode::<$kind>(arguments)?)),
        },)+];
    };
}

operations! {
    "read" Read read::Read;
    "stat" Read stat::Stat;
    "list" Read list::List;
    "write" Write write::Write ["content"];
    "append" Write append::Append ["content"];
    "copy" Write copy::Copy;
    "move" Destroy r#move::Move;
    "remove" Destroy remove::Remove;
    "restore" Write restore::Restore;
    "undo" Destroy undo::Undo;
    "redo" Destroy redo::Redo;
    "history" Read history::History;
    "diff" Read diff::Diff;
    "changes" Read changes::Changes;
    "lock" Write lock::Lock;
    "unlock" Write unlock::Unlock;
}

/// The row of this name.
pub fn row(name: &str) -> Option<&'static OperationRow> {
    OPERATIONS.iter().find(|row| row.name == name)
}
