//! The engine's operations, called through the pipeline on a workspace in memory.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking, in what they share as well")]

mod approvals;
mod buffers;
mod chain;
mod changes;
mod desk;
mod diff;
mod edit;
mod history;
mod ignore;
mod keys;
mod list;
mod lock;
mod moves;
mod patch;
mod policy;
mod ranked;
mod read;
mod search;
mod session;
mod stat;
mod stories;
mod typing;
mod undo;
mod watch;
mod world;
mod write;
