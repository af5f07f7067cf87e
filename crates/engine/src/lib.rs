//! What can be asked of a workspace, whether it may be, and what it would change. Synchronous; no I/O of its own; no
//! protocol. A face makes a [`Call`]; [`Engine::call`] is the one way in.
//!
//! Owns the table of operations, the pipeline that every call takes, the rules that judge it and the plans it makes.
//! Never writes: the only write verb is [`Workspace::commit`], called from one place.

mod approval;
mod authorise;
mod buffers;
mod caller;
mod carried;
mod control;
mod desk;
pub mod editing;
mod engine;
mod failure;
mod glob;
pub mod index;
pub mod limits;
mod operation;
mod ops;
mod pace;
mod patching;
mod pipeline;
mod plan;
mod policy;
mod presence;
mod protected;
mod quota;
mod recall;
mod resolve;
mod terms;
mod unsaved;
mod version;
mod view;
mod watching;
mod workspace;

pub use approval::{
    ALLOWED_BY_OPERATOR, Answered, Approval, ApprovalAnswer, ApprovalAsk, ApprovalFilter, ApprovalState,
    Asking, Say, plan_brief, plan_lines,
};
pub use buffers::{Becomes, Buffer, BufferAsk, BufferStep, BufferText, Buffers, Endings, Standing};
pub use caller::{Access, Approver, Caller, Grants, Principal};
pub use control::{Cancel, Control, Progress};
pub use desk::{
    Alert, Desk, DeskAsk, Desked, Response, Reviewed, Session, Severity, Tally, TallyOf, UnknownSeverity,
    Usage,
};
pub use engine::{Answer, Call, Engine, Held, Switch};
pub use failure::{Failure, Fault, Kind};
pub use glob::Globs;
pub use operation::Effect;
pub use ops::{Follower, Heard, Listening, OPERATIONS, OperationRow, Traced, row};
pub use pace::Pace;
pub use patching::{Again, Bases, Binary, Grammar, Patching, Placing, Repeated};
pub use plan::{Change, Content, Expect, Mode, NEW_DIRECTORY_MODE, NEW_FILE_MODE, Plan, Seen, Top, Tree};
pub use policy::{InForce, Policy, PolicyError, PolicyPlace, Right, Tier, UnknownTier, Verdict, Why};
pub use presence::{Connection, Presence};
pub use quota::{Charge, Holding, Look, Quota, Stock, uncounted};
pub use terms::{
    Evidence, Extent, Filter, Form, Listing, Making, Occupied, Offer, Parents, Privacy, Ranking, Removable,
    Replaced, Retention, Terms, Unseen,
};
pub use version::{Base, Version};
pub use watching::{Depth, Happening, Lasting, Watch, WatchAsk};
pub use workspace::{
    Branch, CommitError, Committed, Entered, EntryFilter, FileBytes, Guard, Head, Last, Lease, LeaseAsk,
    Listed, LockAsk, Looked, NameProfile, Node, Order, Particulars, Pieces, Profile, Record, Stamp, Stored,
    Trashed, Want, Which, Workspace,
};
