//! A workspace on this machine: an ordinary directory plus an embedded store in a state directory beside it.
//!
//! Owns commit, recovery, kept bytes, trash, leases and the journal's storage. Promises: a plan is made true whole or
//! not at all, whatever fails and whenever the process dies; what was acknowledged is in the journal first. Several
//! processes may have the same workspace open; all are equal. Never decides what may be done: that is the engine's.

mod apply;
mod approval;
mod approver;
mod buffers;
mod checkpoint;
mod clock;
mod commit;
mod desk;
mod editor;
mod estate;
mod failure;
mod group;
mod holding;
mod index;
mod intent;
mod keeper;
mod kept;
mod lease;
mod lives;
mod locks;
mod log;
mod look;
mod mounts;
mod open;
mod options;
mod outside;
mod query;
mod recover;
mod resume;
mod revert;
mod rules;
mod schema;
mod since;
mod stage;
mod store;
mod ticket;
mod token;
mod trash;
mod workspace;

pub use clock::{Clock, Moment};
pub use editor::{AgentFiles, Draft, Editor, Held, HunkUnderReview, Reviewing, Typed, UnderReview};
pub use estate::{
    Copied, Description, Estate, EstateOptions, EstateToken, Page, Paged, Scope, WorkspaceAsk,
    WorkspaceLasting, WorkspaceName,
};
pub use index::IndexFacts;
pub use log::{LogReport, Proof};
pub use open::LocalWorkspace;
pub use options::{Durability, Indexing, Listening, Options, Wall};
pub use recover::Recovery;
pub use ticket::SessionTicket;
pub use token::{TOKEN_PREFIX, Token, TokenAsk};
