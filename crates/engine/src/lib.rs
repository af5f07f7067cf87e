//! Runs the operations of a workspace: path resolution, authorization, planning and the call pipeline. The engine is
//! synchronous, performs I/O only through the [`Workspace`] trait and does not depend on any protocol. A protocol
//! runs an operation with [`Engine::run`]. Only [`Workspace::commit_transaction`] writes the effects of a call on files
//! and rows, and only the pipeline and the rules about rows call it.

// Every module with arguments or outcomes derives `JsonSchema`; without the feature, the derive generates nothing.
#[cfg(feature = "schema")]
#[macro_use]
extern crate schemars;
#[cfg(not(feature = "schema"))]
#[macro_use]
extern crate stead_schema_stub;

mod administration;
mod approval;
mod authorization;
mod buffers;
mod byte_sources;
mod call_context;
mod call_options;
mod caller;
mod control;
mod engine;
mod enum_words;
mod error_details;
mod errors;
mod glob;
pub mod index;
pub mod limits;
mod next_step;
mod operation;
pub mod ops;
mod outcome;
mod pipeline;
mod plan;
mod policy;
mod quota;
mod recorded_arguments;
mod resolve;
mod rows;
mod rules;
mod seen_files;
mod session_store;
mod transaction;
mod tree;
mod unsaved;
mod utc_time;
mod version;
mod watches;
mod workspace;
mod workspace_reader;

pub use administration::{
    AdministrationCall, AdministrationStore, CallByteStream, CallStreamAdapter, RequiredAuthority,
};
pub use approval::{
    ALLOWED_BY_OPERATOR, Approval, ApprovalAnswer, ApprovalDecision, ApprovalFilter, ApprovalMode, ApprovalPlanPreview,
    ApprovalRequest, ApprovalState, ApproverAndReason,
};
pub use buffers::{
    BufferEditorConnectionState, BufferStoreRequest, BufferWithText, EditorBufferMetadata, EditorSentTextLineEndings,
    PlannedBufferChange, PlannedBufferChangeKind,
};
pub use call_options::{
    BeforeAfterContentInclusion, CallOptions, ChangeApplierChoice, LineEndingAndBomPolicy, ListingPageSizeAndDetail,
    MissingParentPolicy, OfferedToolAndOperation, PatchGrammar, SearchHitOrder, SecretTransport, WalkFilter,
    WrittenFileMode,
};
/// The rules that a dialect sets for `edit`: how quoted text is found and replaced.
pub mod edit_rules {
    pub use stead_text::{
        edit::{EditMatchingRules, EmptyQuoteRule, NewTextLineTerminatorRule, QuoteNotFoundPolicy},
        locate::{FuzzyTextMatchPass, MatchOverlapRule},
    };
}
pub use caller::{
    Caller, CallerAccessMode, CallerApproverStatus, CallerAuthority, CallerResourceLifetime, ConnectionScopedResources,
    Grants, Principal,
};
pub use control::{CallControl, CallProgress, CancelToken};
pub use engine::{
    BeforeAfterBytes, CallDurationClass, CallForecast, CallMetadata, CallReply, ConversationSessionSwitch, Engine,
    SuccessfulCallResult,
};
pub use error_details::{
    ConflictingTexts, DistinguishingText, ErrorDetails, ExpectedCountOrText, FurtherEditRefusal, OlderRevisionDetails,
    QuotedCharacterDifference, RemainingQuotaOrFiles, TextMatchPlace,
};
pub use errors::{Error, ErrorClass, ErrorKind};
pub use glob::GlobPatternSet;
pub use next_step::{NextStep, NextStepOrder, SuggestedArgument, SuggestedArgumentValue, SuggestedCall};
pub use operation::{CallDurationFactor, OperationEffectClass, nearest_name};
pub use ops::{
    AuthoredTextWithReviewBaseline, CallerWatchEventReader, ChangesFollower, OPERATIONS, OperationDefinition,
    find_operation,
};
pub use outcome::{
    Completeness, FileVersionFields, RecordedEntryFields, SavedAndUnsavedVersion, TruncatedOutcomeNextStep, UtcTime,
};
pub use plan::{
    CommitExpectation, FileKind, FileModeSource, NEW_DIRECTORY_MODE, NEW_FILE_MODE, Plan, PlanTimeFileVersion,
    PlannedChange, PlannedContent, TreeSummary,
};
pub use policy::{
    ActivePolicy, InWorkspacePolicyFileLocation, PathAccessRight, Policy, PolicyParseError, PolicyVerdict,
    PolicyVerdictReason, SupervisionTier, UnknownPolicyTier,
};
pub use quota::{
    PrincipalUsage, QuotaCharge, QuotaLimitAndUse, QuotaReport, RequiredUsageFreshness, StorageQuotaLimits,
    WorkspaceUsage, usage_not_counted,
};
pub use recorded_arguments::arguments_with_details;
pub use rows::{
    RowBody, RowBodySelection, RowChange, RowFamily, RowKey, RowQuery, RowSelection, RowSet, RowStamp, RowWrite,
    StoredRow, compensation_owner, keep_compensation, kept_compensation,
};
pub use rules::{
    approval::ApprovalRow,
    buffer::{BUFFER_EDITOR_TEXT, BUFFER_TEXT, BufferRow},
    lease::LeaseRow,
    session::{AlertRow, REVIEW_MARK_TEXT, ReviewMarkRow, SessionRow},
    watch::{
        WatchAttachStage, WatchRow, WatchWithStage, WatchesAtGeneration, watch_limit_error, watching_unsupported_error,
    },
};
pub use session_store::{
    AgentSentAlertAndResponse, AlertSeverity, FilesystemTrashAndHistorySizes, HumanResponseToAlert,
    ReviewAcceptedFileText, SessionRecord, SessionStoreReply, SessionStoreWriteRequest, SessionTotals,
    SessionTotalsQuery, UnknownAlertSeverity,
};
pub use transaction::{
    ClockReading, ClockSetBack, Deadline, Expectation, FailedExpectation, Transaction, TransactionDurability,
};
pub use tree::{
    BytesToRead, DirectoryEntry, DirectoryReader, FileBytesWithVersion, FileIdentity, FileNamePolicy,
    FileOwnerAndCreationTime, FileReader, FileStamp, FileStat, FileStatLookupResult, FinalSymlink,
    ImmutableWorkspaceProperties, LocateRequest, LocatedPath, OpenDirectoryWithEntries, Tree, TreeEntry,
};
pub use utc_time::{UtcSecond, parse_duration_ms, parse_utc_time};
pub use version::{BaseVersion, Version};
pub use watches::{Watch, WatchBeginOrEndRequest, WatchDepth, WatchEventKind, WatchLifetimeKind};
pub use workspace::{
    CallLockGuard, CommitError, CommitReceipt, ExternalChangeListening, HolderPresence, JournalCallRecord,
    JournalEntryOrder, JournalEntryQuery, JournalHead, JournalNoChangeEntryFilter, Lease, LeaseAcquireOrReleaseRequest,
    PathLockRequest, StoredJournalEntry, TrashItem, Workspace,
};
