//! The operations of a workspace: decoding, path resolution, authorization, planning and the call pipeline. The engine is
//! synchronous, does no I/O of its own and does not know the protocols. A protocol builds a [`Call`] and runs it with
//! [`Engine::call`].
//!
//! Owns the operation table, the pipeline, the policy rules and the plans. Files change only through
//! [`Workspace::commit`], which has one call site.

mod approval;
mod authorization;
mod buffers;
mod call_context;
mod call_options;
mod caller;
mod control;
mod engine;
mod errors;
mod glob;
pub mod index;
pub mod limits;
mod operation;
mod ops;
mod pipeline;
mod plan;
mod policy;
mod quota;
mod resolve;
mod seen_files;
mod session_store;
mod unsaved;
mod version;
mod watches;
mod workspace;

pub use approval::{
    ALLOWED_BY_OPERATOR, Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalMode, ApprovalRequest,
    ApprovalResolution, ApprovalState, render_plan_lines, summarize_plan,
};
pub use buffers::{
    Buffer, BufferLineEndings, BufferOpenState, BufferStore, BufferStoreRequest, BufferText, PlannedBufferChange,
    PlannedBufferChangeKind,
};
pub use call_options::{
    AppliedBy, BeforeAfterInclusion, CallOptions, CopyMoveScope, DirectoryRemovalPolicy, HitRanking, ListingStyle,
    MissingBase, MissingParentPolicy, OfferedTool, OverwrittenFilePolicy, PatchBasePathMatching, PatchBinaryFilePolicy,
    PatchChunkPlacement, PatchGrammar, PatchOptions, PatchRepeatedFilePolicy, ReappliedPatchPolicy, RemovalRetention,
    ReplacementFormat, RestoreConflictPolicy, WalkFilter, WrittenFileMode,
};
/// Rules that a dialect sets for `edit`: how quoted text is found and replaced.
pub mod edit_rules {
    pub use stead_text::{
        edit::{EditRules, EmptyQuoteRule, LineTerminatorRule, NotFoundRecovery},
        locate::{MatchPass, OverlapRule},
    };
}
pub use caller::{AccessMode, ApproverProof, Caller, CallerLifetime, ClientConnection, Grants, Principal};
pub use control::{CallControl, CallProgress, CancelToken};
pub use engine::{BeforeAfterBytes, Call, CallOutcome, CostClass, Engine, SessionSwitch};
pub use errors::{Error, ErrorClass, ErrorKind};
pub use glob::Globs;
pub use operation::FileEffect;
pub use ops::{
    AttributedText, ChangesFollower, OPERATIONS, OperationRow, WatchFollower, WatchNotification, find_operation,
};
pub use plan::{
    CommitExpectation, FileKind, FileModeSource, NEW_DIRECTORY_MODE, NEW_FILE_MODE, ObservedVersion, Plan,
    PlannedChange, PlannedContent, TreeSummary,
};
pub use policy::{
    AccessRight, ActivePolicy, Policy, PolicyError, PolicyFileLocation, PolicyReason, PolicyTier, PolicyVerdict,
    UnknownPolicyTier,
};
pub use quota::{PrincipalUsage, Quota, QuotaCharge, UsageFreshness, WorkspaceUsage, usage_not_counted};
pub use session_store::{
    Alert, AlertResponse, AlertSeverity, ReviewBaseline, Session, SessionStore, SessionStoreReply, SessionStoreRequest,
    SessionTotals, SessionTotalsQuery, StorageUsage, UnknownAlertSeverity,
};
pub use version::{BaseVersion, Version};
pub use watches::{Watch, WatchDepth, WatchEventKind, WatchLifetime, WatchRequest};
pub use workspace::{
    BytesToRead, CallLockGuard, CallRecord, CommitError, CommitReceipt, DirectoryEntry, DirectoryReader, FileBytes,
    FileDetails, FileIdentity, FileNamePolicy, FileReader, FileStat, FinalSymlink, JournalEntryOrder,
    JournalEntryQuery, JournalEntrySelection, JournalHead, Lease, LeaseRequest, OpenedDirectory, PathLockRequest,
    StatResult, StoredJournalEntry, TrashItem, Workspace, WorkspaceProfile,
};
