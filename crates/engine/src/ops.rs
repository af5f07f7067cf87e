//! The table of operations, which is the only complete list of the operations.

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use crate::{
    engine::{CallDurationEstimateRule, CallMetadata, CallOutcome, Engine},
    errors::Error,
    operation::{Operation, OperationEffectClass, OperationRun, TypeErasedOperation, decode_arguments},
};

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

pub use alerts::{
    AlertFields, AlertOutcome, AlertOutcomeKind, AnswerAlertArgs, ListAlertsArgs, ListAlertsOutcome, SendAlertArgs,
};
pub use append::{AppendArgs, AppendOutcome};
pub use approvals::{
    AnswerApprovalOutcome, ApprovalAnswerArgs, ApprovalFields, ApprovalStateFilter, ApproveArgs, DenyArgs,
    ListApprovalsArgs, ListApprovalsOutcome, ListedApprovalsPage,
};
pub use buffer::{
    BufferChangeArgs, BufferChangeOutcome, BufferCloseArgs, BufferCloseOutcome, BufferDraftDropArgs, BufferFields,
    BufferListArgs, BufferListOutcome, BufferListRow, BufferOpenArgs, BufferOpenOutcome, BufferSaveArgs,
    BufferSaveOutcome, BufferTextEdit, ClosedBufferOrDraftKind,
};
pub(crate) use changes::render_line_ranges;
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
pub use journal_feed::{EventJournalEntryFields, JournalCursor, JournalCursorArgument};
pub use list::{ListArgs, ListOutcome, ListedEntryRow, ListedLinkTarget};
pub use lock::{LeaseOutcome, LeaseOutcomeKind, LockArgs, UnlockArgs};
pub use r#move::{MoveArgs, MoveOutcome, MoveOutcomeTreeFields};
pub use patch::{
    InexactPatchChunkRow, PatchArgs, PatchOutcome, PatchedFileChangeKind, PatchedFileRow, PatchedFinalNewlineChange,
};
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
pub(crate) use stat::file_kind_name;
pub use stat::{StatArgs, StatOutcome};
pub use undo::{RedoArgs, UndoArgs, UndoOrRedoOutcome, UndoneOrRedoneEntry, UnrevertedFileRow};
pub use usage::{UsageArgs, UsageOutcome};
pub use visible_change::{JournalEntryArgument, RecordedFileVersion, VisibleChange};
pub use watch::{UnwatchArgs, WatchArgs, WatchOutcome, WatchOutcomeKind};
pub use watched::{CallerWatchEventReader, PollWatchEventsArgs, WatchEventsOutcome, events::WatchEventRow};
pub use write::{ChangedLineCounts, StaleWriteHandling, WriteArgs, WriteOutcome};

/// An operation of the operation table. The trait is sealed: only this crate defines operations.
#[expect(private_bounds, reason = "the trait is sealed")]
pub trait OperationWithDefinition: Operation + Serialize + DeserializeOwned {
    const DEFINITION: OperationDefinition;
}

type RunJsonCallFn = fn(&Engine, &Map<String, Value>, &CallMetadata<'_>) -> Result<Result<CallOutcome, Error>, Error>;
type DecodeArgsFn = fn(&Map<String, Value>) -> Result<Box<dyn TypeErasedOperation>, Error>;

/// One row of the operation table.
pub struct OperationDefinition {
    /// Operation name, the same in every protocol.
    pub name: &'static str,
    /// What the operation does to files.
    pub effect: OperationEffectClass,
    /// Names of the arguments that carry file content; the journal records only the size of this content.
    pub content_arguments: &'static [&'static str],
    pub(crate) cost_model: CallDurationEstimateRule,
    pub(crate) decode: DecodeArgsFn,
    /// Decodes the arguments and runs the call. The outer error means that the arguments are invalid.
    pub(crate) run: RunJsonCallFn,
}

macro_rules! operations {
    ($($name:literal $effect:ident $cost_model:ident $args:path $([$($content:literal),+])?;)+) => {
        $(impl OperationWithDefinition for $args {
            const DEFINITION: OperationDefinition = OperationDefinition {
                name: $name,
                effect: OperationEffectClass::$effect,
                content_arguments: &[$($($content),+)?],
                cost_model: CallDurationEstimateRule::$cost_model,
                decode: |arguments| Ok(Box::new(OperationRun::new(decode_arguments::<$args>(arguments)?))),
                run: |engine, arguments, call| {
                    let operation = decode_arguments::<$args>(arguments)?;
                    Ok(engine.run(operation, call).map(|reply| reply.render(call.options.call_notation)))
                },
            };
        })+

        /// Every operation, in documentation order.
        pub const OPERATIONS: &[OperationDefinition] = &[$(<$args as OperationWithDefinition>::DEFINITION,)+];
    };
}

operations! {
    "read" None ByFileSize read::ReadArgs;
    "stat" None ByFileSize stat::StatArgs;
    "list" None AlwaysLong list::ListArgs;
    "find" None AlwaysLong find::FindArgs;
    "search" None AlwaysLong search::SearchArgs;
    "write" Write ByContentSize write::WriteArgs ["content"];
    "append" Write ByContentSize append::AppendArgs ["content"];
    "edit" Write AlwaysLong edit::EditArgs ["edits"];
    "patch" Destroy AlwaysLong patch::PatchArgs ["patch"];
    "copy" Write AlwaysLong copy::CopyArgs;
    "move" Destroy AlwaysLong r#move::MoveArgs;
    "remove" Destroy AlwaysLong remove::RemoveArgs;
    "restore" Write AlwaysLong remove::RestoreFromTrashArgs;
    "undo" Destroy AlwaysLong undo::UndoArgs;
    "redo" Destroy AlwaysLong undo::RedoArgs;
    "history" None AlwaysLong history::HistoryArgs;
    "diff" None AlwaysLong diff::DiffArgs;
    "changes" None ByWaitTime changes::ChangesArgs;
    "lock" Write AlwaysLong lock::LockArgs;
    "unlock" Write AlwaysLong lock::UnlockArgs;
    "session" None AlwaysLong session::SessionOperationArgs;
    "events" None ByWaitTime events::PollSessionEventsArgs;
    "usage" None AlwaysLong usage::UsageArgs;
    "alert" None AlwaysLong alerts::SendAlertArgs;
    "alerts" None AlwaysLong alerts::ListAlertsArgs;
    "respond" None AlwaysLong alerts::AnswerAlertArgs;
    "policy" None AlwaysLong policy::InspectPolicyArgs;
    "approvals" None AlwaysLong approvals::ListApprovalsArgs;
    "approve" Write AlwaysLong approvals::ApproveArgs;
    "deny" Write AlwaysLong approvals::DenyArgs;
    "watch" None AlwaysLong watch::WatchArgs;
    "unwatch" None AlwaysLong watch::UnwatchArgs;
    "watched" None ByWaitTime watched::PollWatchEventsArgs;
    "buffer.open" Write AlwaysLong buffer::BufferOpenArgs ["text"];
    "buffer.change" Write AlwaysLong buffer::BufferChangeArgs ["text", "edits"];
    "buffer.save" Write AlwaysLong buffer::BufferSaveArgs;
    "buffer.close" Write AlwaysLong buffer::BufferCloseArgs;
    "buffer.list" None AlwaysLong buffer::BufferListArgs;
    "buffer.drop" Write AlwaysLong buffer::BufferDraftDropArgs;
    "turn" None AlwaysLong review::BeginTurnArgs;
    "review" None AlwaysLong review::ReviewArgs;
    "keep" None AlwaysLong review::KeepChangesArgs;
    "reject" Destroy AlwaysLong review::RejectChangesArgs;
}

/// Finds the definition of an operation by its name.
pub fn find_operation(name: &str) -> Option<&'static OperationDefinition> {
    OPERATIONS.iter().find(|row| row.name == name)
}
