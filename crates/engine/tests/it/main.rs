//! Tests of the engine's operations, called through the pipeline on an in-memory workspace.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests and their helpers fail by panicking")]

mod administration;
mod approvals;
mod buffers;
mod changes;
mod copy_move_remove;
mod diff;
mod edit;
mod history;
mod idempotency_keys;
mod ignore_files;
mod list;
mod lock;
mod patch;
mod pins;
mod policy;
mod read;
mod search;
mod search_ranking;
mod session;
mod stat;
mod stories;
mod typing_simulation;
mod undo;
mod undo_redo_chain;
mod watch;
mod write;
