//! The table of operations. One file holds one operation; this list is the only one.

use serde_json::{Map, Value};

use crate::{
    failure::Failure,
    operation::{Effect, Operation, decode},
    pace::Tempo,
};

mod alert;
pub(crate) mod answer;
mod append;
mod approvals;
mod approve;
mod buffer;
mod changes;
mod copy;
mod diff;
mod edit;
mod encoded;
mod events;
mod feed;
mod find;
mod history;
mod inverse;
mod list;
mod lock;
mod r#move;
mod older;
mod parents;
mod patch;
mod policy;
mod read;
mod recorded;
mod redo;
mod reminder;
mod remove;
mod restore;
mod reversal;
mod review;
pub use review::Traced;
mod search;
pub(crate) mod seek;
mod session;
mod spots;
mod standing;
mod stat;
mod undo;
mod unlock;
mod unwatch;
mod usage;
mod watch;
mod watched;
mod write;

pub(crate) use answer::answer_from_entry;
pub use changes::follow::Listening;
pub(crate) use diff::text_of;
pub(crate) use encoded::encode_like;
pub(crate) use reminder::Reminder;
pub(crate) use search::Cases;
pub(crate) use stat::type_name;
pub use watched::follow::{Follower, Heard};

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
    pub(crate) tempo: Tempo,
    pub(crate) decode: Decode,
}

macro_rules! operations {
    ($($name:literal $effect:ident $tempo:ident $kind:path $([$($content:literal),+])?;)+) => {
        /// Every operation, in documentation order.
        pub const OPERATIONS: &[OperationRow] = &[$(OperationRow {
            name: $name,
            effect: Effect::$effect,
            contents: &[$($($content),+)?],
            tempo: Tempo::$tempo,
            decode: |arguments| Ok(Box::new(decode::<$kind>(arguments)?)),
        },)+];
    };
}

operations! {
    "read" Read BySize read::Read;
    "stat" Read BySize stat::Stat;
    "list" Read Steady list::List;
    "find" Read Steady find::Find;
    "search" Read Steady search::Search;
    "write" Write ByContent write::Write ["content"];
    "append" Write ByContent append::Append ["content"];
    "edit" Write Steady edit::Edit ["edits"];
    "patch" Destroy Steady patch::Patch ["patch"];
    "copy" Write Steady copy::Copy;
    "move" Destroy Steady r#move::Move;
    "remove" Destroy Steady remove::Remove;
    "restore" Write Steady restore::Restore;
    "undo" Destroy Steady undo::Undo;
    "redo" Destroy Steady redo::Redo;
    "history" Read Steady history::History;
    "diff" Read Steady diff::Diff;
    "changes" Read ByWait changes::Changes;
    "lock" Write Steady lock::Lock;
    "unlock" Write Steady unlock::Unlock;
    "session" Read Steady session::Session;
    "events" Read ByWait events::Events;
    "usage" Read Steady usage::Usage;
    "alert" Read Steady alert::Alert;
    "alerts" Read Steady alert::Alerts;
    "respond" Read Steady alert::Respond;
    "policy" Read Steady policy::Policy;
    "approvals" Read Steady approvals::Approvals;
    "approve" Write Steady approve::Approve;
    "deny" Write Steady approve::Deny;
    "watch" Read Steady watch::Watch;
    "unwatch" Read Steady unwatch::Unwatch;
    "watched" Read ByWait watched::Watched;
    "buffer.open" Write Steady buffer::Open ["text"];
    "buffer.change" Write Steady buffer::Change ["text", "edits"];
    "buffer.save" Write Steady buffer::Save;
    "buffer.close" Write Steady buffer::Close;
    "buffer.list" Read Steady buffer::List;
    "buffer.drop" Write Steady buffer::Drop;
    "turn" Read Steady review::Turn;
    "review" Read Steady review::Review;
    "keep" Read Steady review::Keep;
    "reject" Destroy Steady review::Reject;
}

/// The row of this name.
pub fn row(name: &str) -> Option<&'static OperationRow> {
    OPERATIONS.iter().find(|row| row.name == name)
}
