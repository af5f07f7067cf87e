//! A workspace on the local machine: an ordinary directory, and an SQLite store in a state directory beside it.
//!
//! This crate owns commit, recovery, retained versions, trash, leases and the storage of the journal. A plan is applied
//! atomically, even if a step fails or the process dies. A change is in the journal before it is acknowledged. Several
//! processes may have the same workspace open.

mod administration;
mod approver;
mod checkpoint;
mod commit;
mod editor;
mod entry_index;
mod entry_query;
mod errors;
mod external_changes;
mod file_steps;
mod group_commit;
mod index;
mod journal_audit;
mod limits;
mod maintenance;
mod migration;
mod open;
mod options;
mod path_locks;
mod policy_file;
mod prepare;
mod recovery;
mod redo_steps;
mod retained_versions;
mod rows;
mod session_totals;
mod step_executor;
mod store;
mod token;
mod trash;
mod tree;
mod usage;
mod workspace;
mod workspace_registry;

pub use editor::{
    AcpSessionFileHandler, BufferChangeResult, BufferStateReplyToEditor, ClosedEditorDraftInfo, EditorReviewHunk,
    EditorReviewOfSessionChanges, EditorReviewedFile, WorkspaceEmbeddedInEditor,
};
pub use index::IndexStatus;
pub use journal_audit::{EntryProof, JournalVerifyReport};
pub use open::LocalWorkspace;
pub use stead_engine::ClockReading;

pub use options::{
    Clock, Durability, ExternalChangeRecordingStartPolicy, IndexBuildAndUseMode, LandlockMode, LocalWorkspaceOptions,
};
pub use recovery::RecoveryReport;
pub use token::{AccessTokenRecord, CreateTokenRequest, SessionTicketRecord, TOKEN_PREFIX};
pub use workspace_registry::{
    TokenRecordWithScope, TokenScope, WorkspaceCopyCounts, WorkspaceName, WorkspaceRegistry, WorkspaceRegistryOptions,
};
