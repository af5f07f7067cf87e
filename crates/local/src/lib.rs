//! A workspace on the local machine: an ordinary directory plus an SQLite store in a state directory beside it.
//!
//! Owns commit, recovery, retained versions, trash, leases and journal storage. Promises: a plan is applied atomically,
//! even if a step fails or the process dies, and a change is in the journal before it is acknowledged. Several
//! processes may have the same workspace open. Makes no policy decisions: the engine does.

mod approval;
mod approver;
mod buffers;
mod checkpoint;
mod clock;
mod commit;
mod editor;
mod entry_query;
mod errors;
mod external_changes;
mod file_steps;
mod group_commit;
mod index;
mod journal_audit;
mod later_evidence;
mod lease;
mod liveness;
mod lookup;
mod maintenance;
mod mount_check;
mod open;
mod options;
mod path_locks;
mod policy_file;
mod prepare;
mod random;
mod recovery;
mod redo_steps;
mod retained_versions;
mod schema;
mod session_store;
mod session_ticket;
mod step_executor;
mod store;
mod token;
mod trash;
mod undo_steps;
mod usage;
mod workspace;
mod workspace_registry;

pub use clock::{Clock, ClockReading};
pub use editor::{
    AgentFiles, BufferChangeResult, BufferStatus, EditorDraft, EditorReview, EditorReviewHunk, EditorReviewedFile,
    EditorWorkspace,
};
pub use index::IndexStatus;
pub use journal_audit::{EntryProof, JournalVerifyReport};
pub use open::LocalWorkspace;
pub use options::{Durability, IndexMode, LandlockMode, LocalWorkspaceOptions, WatchStart};
pub use recovery::RecoveryReport;
pub use session_ticket::SessionTicketRecord;
pub use token::{AccessTokenRecord, CreateTokenRequest, TOKEN_PREFIX};
pub use workspace_registry::{
    CopyCounts, CreateWorkspaceRequest, ScopedToken, TokenScope, WorkspaceDescription, WorkspaceLasting,
    WorkspaceListFilter, WorkspaceName, WorkspacePageRequest, WorkspaceRegistry, WorkspaceRegistryOptions,
};
