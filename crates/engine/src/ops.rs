//! The table of operations, which is the only complete list of the operations.

use serde::{Serialize, de::DeserializeOwned};

use crate::{
    administration::RequiredAuthority,
    operation::{CallDurationFactor, Operation, OperationEffectClass},
    outcome::OperationOutcome,
};

mod administration;
mod alerts;
mod append;
mod approvals;
mod audit_rows;
mod buffer;
mod changed_lines;
mod changes;
mod completed_call;
mod copy;
mod diff;
mod edit;
mod encode_content;
mod events;
mod find;
mod history;
mod journal_feed;
mod journal_log;
mod list;
mod lock;
mod r#move;
mod older_revisions;
mod patch;
pub(crate) mod planning;
mod policy;
mod read;
mod remove;
mod review;
mod search;
mod session;
mod stale_reads;
mod stat;
pub(crate) mod text_pages;
mod tokens;
mod undo;
mod usage;
mod visible_change;
pub(crate) mod walk;
mod watch;
mod watched;
mod write;

pub use administration::{
    ApplyPolicyArgs, ApplyPolicyOutcome, CreateTokenArgs, CreateTokenOutcome, CreateWorkspaceArgs,
    DestroyWorkspaceArgs, DestroyedWorkspaceTrashPolicy, ExportLogArgs, ExportLogOutcome, ExportWorkspaceArgs,
    ExportWorkspaceOutcome, ForkWorkspaceArgs, ImportWorkspaceArgs, ImportedArchiveSize, JournalHeadFields,
    ListTokensArgs, ListTokensOutcome, ListTrashArgs, ListTrashOutcome, ListWorkspacesArgs, ListWorkspacesOutcome,
    ListedTrashItem, PurgeTrashArgs, PurgeTrashOutcome, RestoreWorkspaceArgs, RevokeTokenArgs, RevokeTokenOutcome,
    RotateLogKeyArgs, RotateLogKeyOutcome, RotateTokenArgs, SetApproverSecretArgs, SetApproverSecretOutcome,
    ShowApproverArgs, ShowApproverOutcome, ShowLogArgs, ShowWorkspaceArgs, SignLogArgs, SignLogOutcome,
    VerifiedJournalFields, VerifyLogArgs, VerifyLogOutcome, WorkspaceDescription, WorkspaceOrigin, WorkspaceSizeFields,
};
pub use alerts::{
    AlertFields, AlertOutcome, AnswerAlertArgs, ListAlertsArgs, ListAlertsOutcome, SendAlertArgs, SentOrAnsweredAlert,
};
pub use append::{AppendArgs, AppendOutcome};
pub use approvals::{
    AnswerApprovalOutcome, ApprovalAnswerArgs, ApprovalFields, ApprovalStateFilter, ApproveArgs, DenyArgs,
    ListApprovalsArgs, ListApprovalsOutcome, ListedApprovalsPage,
};
pub use audit_rows::{AuditRow, audit_rows};
pub use buffer::{
    BufferChangeArgs, BufferChangeOutcome, BufferCloseArgs, BufferCloseOutcome, BufferDraftDropArgs, BufferFields,
    BufferListArgs, BufferListOutcome, BufferListRow, BufferOpenArgs, BufferOpenOutcome, BufferSaveArgs,
    BufferSaveOutcome, BufferTextEdit, BufferUnsavedState, ClosedBufferOrDraftKind,
};
pub use changes::render_line_ranges;
pub use changes::{ChangeEventRow, ChangesArgs, ChangesFollower, ChangesOutcome};
pub use completed_call::ReplayedCallOutcome;
pub use copy::{CopiedFile, CopiedTree, CopyArgs, CopyOutcome};
pub(crate) use diff::decode_diff_text;
pub use diff::{DiffArgs, DiffLineCountFields, DiffOutcome};
pub use edit::{AppliedEditRow, EditArgs, EditItem, EditOutcome, EditRebaseFields, StaleEditHandling};
pub(crate) use encode_content::encode_like;
pub use events::{
    AlertAnsweredEvent, ApprovalResolvedEvent, PollSessionEventsArgs, SessionEventRow, SessionEventsOutcome,
};
pub use find::{FindArgs, FindOutcome, FoundPathRow};
pub use history::{EntryRelationFields, HistoryArgs, HistoryEntryRow, HistoryOutcome};
pub use journal_feed::{EventRowJournalEntryFields, JournalCursor, JournalCursorArgument};
pub use journal_log::{LoggedEntryRow, ShowLogOutcome};
pub use list::{ListArgs, ListOutcome, ListedEntryRow, ListedLinkTarget};
pub use lock::{AcquiredOrReleasedLease, LeaseOutcome, LockArgs, UnlockArgs};
pub use r#move::{MoveArgs, MoveOutcome, MoveOutcomeTreeFields};
pub use patch::{
    InexactPatchChunkRow, PatchArgs, PatchOutcome, PatchedFileChangeKind, PatchedFileRow, PatchedFinalNewlineChange,
};
pub use planning::describe_size;
pub use policy::{
    ExplainedCall, ExplainedVerdict, InspectPolicyArgs, InspectPolicyOutcome, InspectedCall, InspectedPolicyRuleList,
    InspectedPolicyRuleRow,
};
pub use read::{
    RawBytesReadFields, ReadArgs, ReadBytesFields, ReadLinesFields, ReadOutcome, ReadPartFields, ReturnedRange,
};
pub use remove::{RemoveArgs, RemoveOutcome, RestoreFromTrashArgs, RestoreFromTrashOutcome};
pub use review::{
    AuthoredTextWithReviewBaseline, BeginTurnArgs, BeginTurnOutcome, KeepChangesArgs, KeepChangesOutcome,
    NonDefaultTextFormatFields, RejectChangesArgs, RejectChangesOutcome, ReviewArgs, ReviewHunkLineSpan, ReviewHunkRow,
    ReviewOutcome, ReviewedFileRow, ReviewedFileTextFields, SessionOrTurnStart,
};
pub(crate) use search::SearchCaseSensitivity;
pub use search::{
    AlternativeQueryInterpretation, AlternativeQuerySearchHits, FileHitsRow, IncompleteSearchReason,
    IncompletelySearchedFileRow, NativeSearchOutcome, NoHitsSearchSuggestions, RankedSearchHitRow, SearchArgs,
    SearchHit, SearchHitLocation, SearchHitsByPath, SearchHitsByRelevance, SearchHitsPage, SearchOutcome,
    SearchQueryTexts, SearchTextLine, SearchTextLineKind, SearchTextRow, SearchTextRowDetailLevel,
    SearchedFileCountFields,
};
pub use session::{
    BegunSession, NewSessionFields, RequestedSessionAction, SessionEndOutcome, SessionFields, SessionOperationArgs,
    SessionOutcome,
};
pub use stale_reads::StaleReadNotice;
pub(crate) use stale_reads::{LastReadFileVersion, StaleReadNotifier};
pub use stat::file_kind_name;
pub use stat::{StatArgs, StatOutcome};
pub use text_pages::{OutcomeTextFirstPage, TextPageEnd, first_page, format_line_span};
pub use tokens::{AccessTokenFields, Secret};
pub use undo::{RedoArgs, UndoArgs, UndoOrRedoOutcome, UndoneOrRedoneEntry, UnrevertedFileRow};
pub use usage::{UsageArgs, UsageOutcome};
pub use visible_change::{JournalEntryArgument, RecordedFileVersion, VisibleChange};
pub use watch::{BegunOrEndedWatch, UnwatchArgs, WatchArgs, WatchOutcome};
pub use watched::{CallerWatchEventReader, PollWatchEventsArgs, WatchEventsOutcome, events::WatchEventRow};
pub use write::{ChangedLineCounts, StaleWriteHandling, WriteArgs, WriteOutcome};

/// An operation of the operation table. The trait is sealed: only this crate defines operations.
#[expect(private_bounds, reason = "the trait is sealed")]
pub trait OperationWithDefinition:
    Operation<Outcome = <Self as OperationWithDefinition>::Result>
    + Serialize
    + DeserializeOwned
    + Clone
    + Send
    + Sync
    + 'static
{
    const DEFINITION: OperationDefinition;
    type Result: OperationOutcome;

    /// What the duration of the call depends on.
    fn duration_factor(&self) -> CallDurationFactor<'_> {
        Operation::duration_factor(self)
    }
}

/// One row of the operation table.
pub struct OperationDefinition {
    /// Operation name, the same in every protocol.
    pub name: &'static str,
    pub effect: OperationEffectClass,
    /// Names of the arguments that carry file content; the journal records only the size of this content.
    pub content_arguments: &'static [&'static str],
    pub authority: RequiredAuthority,
}

macro_rules! required_authority {
    () => {
        RequiredAuthority::Use
    };
    ($authority:ident) => {
        RequiredAuthority::$authority
    };
}

macro_rules! operations {
    ($($name:literal $effect:ident $args:ident => $outcome:ident $(as $text:ident)? $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
        $(impl OperationWithDefinition for $args {
            type Result = $outcome;
            const DEFINITION: OperationDefinition = OperationDefinition {
                name: $name,
                effect: OperationEffectClass::$effect,
                content_arguments: &[$($($content),+)?],
                authority: required_authority!($($authority)?),
            };
        })+

        /// Every operation, in documentation order.
        pub const OPERATIONS: &[OperationDefinition] = &[$(<$args as OperationWithDefinition>::DEFINITION,)+];
    };
}

/// Passes the operation table to a macro, one row per operation: its name, its effect, the types of its arguments and
/// its outcome, the names of the arguments that carry file content, and the right that it needs unless it uses files.
/// The text of an outcome `as fields` has one line per field; the text of any other outcome is written by hand.
#[macro_export]
macro_rules! for_each_operation {
    ($callback:ident) => {
        $callback! {
            "read" None ReadArgs => ReadOutcome;
            "stat" None StatArgs => StatOutcome;
            "list" None ListArgs => ListOutcome;
            "find" None FindArgs => FindOutcome;
            "search" None SearchArgs => SearchOutcome;
            "write" Write WriteArgs => WriteOutcome ["content"];
            "append" Write AppendArgs => AppendOutcome ["content"];
            "edit" Write EditArgs => EditOutcome ["edits"];
            "patch" Destroy PatchArgs => PatchOutcome ["patch"];
            "copy" Write CopyArgs => CopyOutcome;
            "move" Destroy MoveArgs => MoveOutcome;
            "remove" Destroy RemoveArgs => RemoveOutcome;
            "restore" Write RestoreFromTrashArgs => RestoreFromTrashOutcome;
            "undo" Destroy UndoArgs => UndoOrRedoOutcome;
            "redo" Destroy RedoArgs => UndoOrRedoOutcome;
            "history" None HistoryArgs => HistoryOutcome;
            "diff" None DiffArgs => DiffOutcome;
            "changes" None ChangesArgs => ChangesOutcome;
            "lock" Write LockArgs => LeaseOutcome;
            "unlock" Write UnlockArgs => LeaseOutcome;
            "session" None SessionOperationArgs => SessionOutcome;
            "events" None PollSessionEventsArgs => SessionEventsOutcome;
            "usage" None UsageArgs => UsageOutcome;
            "alert" None SendAlertArgs => AlertOutcome;
            "alerts" None ListAlertsArgs => ListAlertsOutcome;
            "respond" None AnswerAlertArgs => AlertOutcome;
            "policy" None InspectPolicyArgs => InspectPolicyOutcome;
            "approvals" None ListApprovalsArgs => ListApprovalsOutcome;
            "approve" Write ApproveArgs => AnswerApprovalOutcome;
            "deny" Write DenyArgs => AnswerApprovalOutcome;
            "watch" None WatchArgs => WatchOutcome;
            "unwatch" None UnwatchArgs => WatchOutcome;
            "watched" None PollWatchEventsArgs => WatchEventsOutcome;
            "buffer.open" Write BufferOpenArgs => BufferOpenOutcome ["text"];
            "buffer.change" Write BufferChangeArgs => BufferChangeOutcome ["text", "edits"];
            "buffer.save" Write BufferSaveArgs => BufferSaveOutcome;
            "buffer.close" Write BufferCloseArgs => BufferCloseOutcome;
            "buffer.list" None BufferListArgs => BufferListOutcome;
            "buffer.drop" Write BufferDraftDropArgs => BufferCloseOutcome;
            "turn" None BeginTurnArgs => BeginTurnOutcome;
            "review" None ReviewArgs => ReviewOutcome;
            "keep" None KeepChangesArgs => KeepChangesOutcome;
            "reject" Destroy RejectChangesArgs => RejectChangesOutcome;
            "trash.list" None ListTrashArgs => ListTrashOutcome by Administer;
            "trash.purge" Destroy PurgeTrashArgs => PurgeTrashOutcome by AdministerConfirmed;
            "policy.apply" Write ApplyPolicyArgs => ApplyPolicyOutcome ["text"] by AdministerConfirmed;
            "log.show" None ShowLogArgs => ShowLogOutcome by Administer;
            "log.verify" None VerifyLogArgs => VerifyLogOutcome by Administer;
            "log.checkpoint" None SignLogArgs => SignLogOutcome by Administer;
            "log.rotate_key" Write RotateLogKeyArgs => RotateLogKeyOutcome by AdministerConfirmed;
            "log.export" None ExportLogArgs => ExportLogOutcome as fields by Administer;
            "token.create" Write CreateTokenArgs => CreateTokenOutcome by IssueSecret;
            "token.rotate" Write RotateTokenArgs => CreateTokenOutcome by IssueSecret;
            "token.list" None ListTokensArgs => ListTokensOutcome by Administer;
            "token.revoke" Write RevokeTokenArgs => RevokeTokenOutcome by Administer;
            "workspace.list" None ListWorkspacesArgs => ListWorkspacesOutcome by Administer;
            "workspace.show" None ShowWorkspaceArgs => WorkspaceDescription by Administer;
            "workspace.create" Write CreateWorkspaceArgs => WorkspaceDescription by Administer;
            "workspace.fork" Write ForkWorkspaceArgs => WorkspaceDescription by Administer;
            "workspace.destroy" Destroy DestroyWorkspaceArgs => WorkspaceDescription by AdministerConfirmed;
            "workspace.restore" Write RestoreWorkspaceArgs => WorkspaceDescription by AdministerConfirmed;
            "workspace.export" Write ExportWorkspaceArgs => ExportWorkspaceOutcome as fields by Export;
            "workspace.import" Write ImportWorkspaceArgs => WorkspaceDescription by AdministerConfirmed;
            "approver.set" Write SetApproverSecretArgs => SetApproverSecretOutcome ["secret"] by SetSecret;
            "approver.status" None ShowApproverArgs => ShowApproverOutcome by SetSecret;
        }
    };
}

for_each_operation!(operations);

/// Finds the definition of an operation by its name.
pub fn find_operation(name: &str) -> Option<&'static OperationDefinition> {
    OPERATIONS.iter().find(|row| row.name == name)
}
