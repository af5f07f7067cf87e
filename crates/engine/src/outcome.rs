//! The results of operations: what they share, and the reply that the engine builds from them.

use serde::{Serialize, Serializer};
use stead_journal::Digest;
use stead_path::RelPath;

use crate::{
    engine::{BeforeAfterBytes, CallReply, ConversationSessionSwitch, SuccessfulCallResult},
    errors::Error,
    ops::{LastReadFileVersion, text_pages::format_iso_utc},
    pipeline::{PipelineReply, SuccessfulCallOutcomeSource},
    version::Version,
    workspace::CommitReceipt,
};

/// The typed result of a successful call. The serialized fields of a result are the object that programs receive;
/// skipped fields exist only for the text or for dialects.
pub(crate) trait OperationOutcome: Serialize + 'static {
    /// Takes the file contents before and after the call, which dialects receive beside the object.
    fn take_before_after(&mut self) -> Vec<BeforeAfterBytes> {
        Vec::new()
    }

    /// The files whose content or version the outcome shows.
    fn shown_files(&mut self) -> Vec<FileShownInOutcome<'_>> {
        self.main_file().into_iter().collect()
    }

    /// The one file that the outcome is about.
    fn main_file(&mut self) -> Option<FileShownInOutcome<'_>> {
        None
    }

    /// The session to which later calls of the conversation belong, if the call switched to another session.
    fn session_switch(&self) -> Option<ConversationSessionSwitch> {
        None
    }
}

#[expect(private_bounds, reason = "only this crate defines outcomes")]
impl<T: OperationOutcome> CallReply<T> {
    /// The reply to a call that ended. `outcome` is what the operation built.
    pub(crate) fn new(ended: PipelineReply, outcome: Option<T>) -> Result<Self, Error> {
        let mut before_after = Vec::new();
        let mut session_switch = None;
        let result = match (ended.end, outcome) {
            (SuccessfulCallOutcomeSource::AlreadyDone(completed), _) => SuccessfulCallResult::AlreadyDone(completed),
            (SuccessfulCallOutcomeSource::LeftToEditor(changes), _) => {
                before_after = changes;
                SuccessfulCallResult::LeftToEditor
            }
            (SuccessfulCallOutcomeSource::Done, Some(mut outcome)) => {
                before_after = outcome.take_before_after();
                session_switch = outcome.session_switch();
                SuccessfulCallResult::Done(outcome)
            }
            (SuccessfulCallOutcomeSource::Done, None) => return Err(Error::no_outcome()),
        };
        let PipelineReply { entry, notices: unsaved, .. } = ended;
        Ok(Self { result, entry, before_after, session_switch, unsaved, changed_since_read: Vec::new() })
    }

    /// The file that the outcome is about, if the outcome shows a version of it.
    pub(crate) fn shown_file(&mut self) -> Option<(RelPath, LastReadFileVersion)> {
        let SuccessfulCallResult::Done(outcome) = &mut self.result else { return None };
        let FileShownInOutcome { path, version, unsaved } = outcome.main_file()?;
        let (version, rev) = version?;
        Some((path.clone(), LastReadFileVersion { version, rev: rev?.clone(), unsaved: unsaved.is_some() }))
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RecordedEntryFields {
    pub entry: u64,
    pub hash: Digest,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

impl From<&CommitReceipt> for RecordedEntryFields {
    fn from(receipt: &CommitReceipt) -> Self {
        Self { entry: receipt.entry, hash: receipt.hash, notices: receipt.notices.clone() }
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct FileVersionFields {
    pub version: Version,
    pub rev: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<SavedAndUnsavedVersion>,
}

impl FileVersionFields {
    pub(crate) fn new(version: Version, rev: String) -> Self {
        Self { version, rev, unsaved: None }
    }

    /// The version that a commit has just written.
    pub(crate) fn written(version: Version, receipt: &CommitReceipt) -> Self {
        Self::new(version, format!("r{}", receipt.entry))
    }
}

/// The two versions of a file that an editor has open with unsaved text.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct SavedAndUnsavedVersion {
    pub saved: Version,
    #[serde(rename = "text")]
    pub unsaved: Version,
}

/// A file whose content or version an outcome shows. If an editor has unsaved text of the file, the pipeline adds both
/// versions.
pub(crate) struct FileShownInOutcome<'a> {
    pub(crate) path: &'a RelPath,
    /// The version that the outcome shows, with its name if it has one; `None` if the outcome shows only lines.
    pub(crate) version: Option<(Version, Option<&'a mut String>)>,
    pub(crate) unsaved: &'a mut Option<SavedAndUnsavedVersion>,
}

impl<'a> FileShownInOutcome<'a> {
    pub(crate) fn new(path: &'a RelPath, fields: &'a mut FileVersionFields) -> Self {
        Self { path, version: Some((fields.version, Some(&mut fields.rev))), unsaved: &mut fields.unsaved }
    }
}

/// Whether an outcome contains everything that the call asked for. An outcome cannot be truncated without the limit
/// that cut it and the call that comes next. It is serialized as the fields `truncated` and `next`.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
#[schemars(with = "CompletenessFields<A>")]
pub enum Completeness<A> {
    Complete,
    Truncated { limit: &'static str, next: TruncatedOutcomeNextStep<A> },
}

/// How a caller gets what a truncated outcome leaves out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TruncatedOutcomeNextStep<A> {
    Call(A),
    /// No call returns the rest. The caller must narrow this argument.
    Narrow {
        argument: &'static str,
    },
}

impl<A> Completeness<A> {
    pub(crate) fn continued_by(next: A, limit: &'static str) -> Self {
        Self::Truncated { limit, next: TruncatedOutcomeNextStep::Call(next) }
    }

    pub(crate) fn narrowed_by(argument: &'static str, limit: &'static str) -> Self {
        Self::Truncated { limit, next: TruncatedOutcomeNextStep::Narrow { argument } }
    }

    pub fn is_truncated(&self) -> bool {
        match self {
            Completeness::Complete => false,
            Completeness::Truncated { .. } => true,
        }
    }

    /// The arguments of the call that returns the next part.
    pub fn next_call(&self) -> Option<&A> {
        match self {
            Completeness::Truncated { next: TruncatedOutcomeNextStep::Call(next), .. } => Some(next),
            Completeness::Truncated { next: TruncatedOutcomeNextStep::Narrow { .. }, .. } | Completeness::Complete => {
                None
            }
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct CompletenessFields<A> {
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<A>,
}

impl<A: Serialize> Serialize for Completeness<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        CompletenessFields { truncated: self.is_truncated(), next: self.next_call() }.serialize(serializer)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema)]
#[schemars(with = "String")]
pub struct UtcTime {
    pub unix_ms: i64,
}

impl std::fmt::Display for UtcTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&format_iso_utc(self.unix_ms))
    }
}

impl Serialize for UtcTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

pub(crate) fn is_default<T: PartialEq + Default>(value: &T) -> bool {
    *value == T::default()
}
