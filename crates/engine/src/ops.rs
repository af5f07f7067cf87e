//! The table of operations, which is the only complete list of the operations.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    administration::RequiredAuthority,
    engine::CallDurationEstimateRule,
    errors::Error,
    operation::{Operation, OperationEffectClass, OperationRun, TypeErasedOperation, decode_arguments},
    outcome::OperationOutcome,
};

mod administration;
mod alerts;
mod append;
mod approvals;
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
mod undo;
mod usage;
mod visible_change;
pub(crate) mod walk;
mod watch;
mod watched;
mod write;

pub use administration::{ListTrashArgs, ListTrashOutcome, ListedTrashItem, PurgeTrashArgs, PurgeTrashOutcome};
pub use alerts::{
    AlertFields, AlertOutcome, AnswerAlertArgs, ListAlertsArgs, ListAlertsOutcome, SendAlertArgs, SentOrAnsweredAlert,
};
pub use append::{AppendArgs, AppendOutcome};
pub use approvals::{
    AnswerApprovalOutcome, ApprovalAnswerArgs, ApprovalFields, ApprovalStateFilter, ApproveArgs, DenyArgs,
    ListApprovalsArgs, ListApprovalsOutcome, ListedApprovalsPage,
};
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
pub use list::{ListArgs, ListOutcome, ListedEntryRow, ListedLinkTarget};
pub use lock::{AcquiredOrReleasedLease, LeaseOutcome, LockArgs, UnlockArgs};
pub use r#move::{MoveArgs, MoveOutcome, MoveOutcomeTreeFields};
pub use patch::{
    InexactPatchChunkRow, PatchArgs, PatchOutcome, PatchedFileChangeKind, PatchedFileRow, PatchedFinalNewlineChange,
};
pub use planning::describe_size;
pub use policy::{
    ExplainedCall, ExplainedVerdict, InspectPolicyArgs, InspectPolicyOutcome, InspectedPolicyRuleList,
    InspectedPolicyRuleRow,
};
pub use read::{
    RawBytesReadFields, ReadArgs, ReadBytesFields, ReadLinesFields, ReadOutcome, ReadPartFields, ReturnedRange,
};
pub use remove::{RemoveArgs, RemoveOutcome, RestoreFromTrashArgs, RestoreFromTrashOutcome};
pub use review::{
    BeginTurnArgs, BeginTurnOutcome, KeepChangesArgs, KeepChangesOutcome, NonDefaultTextFormatFields,
    RejectChangesArgs, RejectChangesOutcome, ReviewArgs, ReviewHunkLineSpan, ReviewHunkRow, ReviewOutcome,
    ReviewedFileRow, ReviewedFileTextFields, SessionOrTurnStart, TextWithLineAuthors,
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
pub use undo::{RedoArgs, UndoArgs, UndoOrRedoOutcome, UndoneOrRedoneEntry, UnrevertedFileRow};
pub use usage::{UsageArgs, UsageOutcome};
pub use visible_change::{JournalEntryArgument, RecordedFileVersion, VisibleChange};
pub use watch::{BegunOrEndedWatch, UnwatchArgs, WatchArgs, WatchOutcome};
pub use watched::{CallerWatchEventReader, PollWatchEventsArgs, WatchEventsOutcome, events::WatchEventRow};
pub use write::{ChangedLineCounts, StaleWriteHandling, WriteArgs, WriteOutcome};

/// An operation of the operation table. The trait is sealed: only this crate defines operations.
#[expect(private_bounds, reason = "the trait is sealed")]
pub trait OperationWithDefinition:
    Operation<Outcome = <Self as OperationWithDefinition>::Result> + Serialize + DeserializeOwned
{
    const DEFINITION: OperationDefinition;
    type Result: OperationOutcome;
}

type DecodeArgsFn = fn(&Map<String, Value>) -> Result<Box<dyn TypeErasedOperation>, Error>;

/// One row of the operation table.
pub struct OperationDefinition {
    /// Operation name, the same in every protocol.
    pub name: &'static str,
    /// What the operation does to files.
    pub effect: OperationEffectClass,
    /// Names of the arguments that carry file content; the journal records only the size of this content.
    pub content_arguments: &'static [&'static str],
    /// The right that a caller needs for the operation.
    pub authority: RequiredAuthority,
    pub(crate) cost_model: CallDurationEstimateRule,
    pub(crate) decode: DecodeArgsFn,
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
    ($($name:literal $effect:ident $cost_model:ident $args:ident => $outcome:ident $([$($content:literal),+])?
        $(by $authority:ident)?;)+) => {
        $(impl OperationWithDefinition for $args {
            type Result = $outcome;
            const DEFINITION: OperationDefinition = OperationDefinition {
                name: $name,
                effect: OperationEffectClass::$effect,
                content_arguments: &[$($($content),+)?],
                authority: required_authority!($($authority)?),
                cost_model: CallDurationEstimateRule::$cost_model,
                decode: |arguments| Ok(Box::new(OperationRun::new(decode_arguments::<$args>(arguments)?))),
            };
        })+

        /// Every operation, in documentation order.
        pub const OPERATIONS: &[OperationDefinition] = &[$(<$args as OperationWithDefinition>::DEFINITION,)+];
    };
}

/// Passes the operation table to a macro, one row per operation: its name, its effect, the rule that estimates its
/// duration, the types of its arguments and its outcome, the names of the arguments that carry file content, and the
/// right that it needs unless it uses files.
#[macro_export]
macro_rules! for_each_operation {
    ($callback:ident) => {
        $callback! {
            "read" None ByFileSize ReadArgs => ReadOutcome;
            "stat" None ByFileSize StatArgs => StatOutcome;
            "list" None AlwaysLong ListArgs => ListOutcome;
            "find" None AlwaysLong FindArgs => FindOutcome;
            "search" None AlwaysLong SearchArgs => SearchOutcome;
            "write" Write ByContentSize WriteArgs => WriteOutcome ["content"];
            "append" Write ByContentSize AppendArgs => AppendOutcome ["content"];
            "edit" Write AlwaysLong EditArgs => EditOutcome ["edits"];
            "patch" Destroy AlwaysLong PatchArgs => PatchOutcome ["patch"];
            "copy" Write AlwaysLong CopyArgs => CopyOutcome;
            "move" Destroy AlwaysLong MoveArgs => MoveOutcome;
            "remove" Destroy AlwaysLong RemoveArgs => RemoveOutcome;
            "restore" Write AlwaysLong RestoreFromTrashArgs => RestoreFromTrashOutcome;
            "undo" Destroy AlwaysLong UndoArgs => UndoOrRedoOutcome;
            "redo" Destroy AlwaysLong RedoArgs => UndoOrRedoOutcome;
            "history" None AlwaysLong HistoryArgs => HistoryOutcome;
            "diff" None AlwaysLong DiffArgs => DiffOutcome;
            "changes" None ByWaitTime ChangesArgs => ChangesOutcome;
            "lock" Write AlwaysLong LockArgs => LeaseOutcome;
            "unlock" Write AlwaysLong UnlockArgs => LeaseOutcome;
            "session" None AlwaysLong SessionOperationArgs => SessionOutcome;
            "events" None ByWaitTime PollSessionEventsArgs => SessionEventsOutcome;
            "usage" None AlwaysLong UsageArgs => UsageOutcome;
            "alert" None AlwaysLong SendAlertArgs => AlertOutcome;
            "alerts" None AlwaysLong ListAlertsArgs => ListAlertsOutcome;
            "respond" None AlwaysLong AnswerAlertArgs => AlertOutcome;
            "policy" None AlwaysLong InspectPolicyArgs => InspectPolicyOutcome;
            "approvals" None AlwaysLong ListApprovalsArgs => ListApprovalsOutcome;
            "approve" Write AlwaysLong ApproveArgs => AnswerApprovalOutcome;
            "deny" Write AlwaysLong DenyArgs => AnswerApprovalOutcome;
            "watch" None AlwaysLong WatchArgs => WatchOutcome;
            "unwatch" None AlwaysLong UnwatchArgs => WatchOutcome;
            "watched" None ByWaitTime PollWatchEventsArgs => WatchEventsOutcome;
            "buffer.open" Write AlwaysLong BufferOpenArgs => BufferOpenOutcome ["text"];
            "buffer.change" Write AlwaysLong BufferChangeArgs => BufferChangeOutcome ["text", "edits"];
            "buffer.save" Write AlwaysLong BufferSaveArgs => BufferSaveOutcome;
            "buffer.close" Write AlwaysLong BufferCloseArgs => BufferCloseOutcome;
            "buffer.list" None AlwaysLong BufferListArgs => BufferListOutcome;
            "buffer.drop" Write AlwaysLong BufferDraftDropArgs => BufferCloseOutcome;
            "turn" None AlwaysLong BeginTurnArgs => BeginTurnOutcome;
            "review" None AlwaysLong ReviewArgs => ReviewOutcome;
            "keep" None AlwaysLong KeepChangesArgs => KeepChangesOutcome;
            "reject" Destroy AlwaysLong RejectChangesArgs => RejectChangesOutcome;
            "trash.list" None AlwaysLong ListTrashArgs => ListTrashOutcome by Administer;
            "trash.purge" Destroy AlwaysLong PurgeTrashArgs => PurgeTrashOutcome by AdministerConfirmed;
        }
    };
}

for_each_operation!(operations);

/// Finds the definition of an operation by its name.
pub fn find_operation(name: &str) -> Option<&'static OperationDefinition> {
    OPERATIONS.iter().find(|row| row.name == name)
}
