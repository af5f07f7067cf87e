//! `review`, `keep`, `reject` and `turn` show the changes of a session by file and hunk, and let a person accept or
//! reject the changes. The server computes the changes of a session from the journal and the stored versions. `turn`
//! records the start of a session's turn in the journal, so that a person can review or reject one turn.
//!
//! The rejection of a hunk is a recorded file change that reverts the lines of the session. A rejection keeps the lines
//! that others wrote, whether the lines are saved or not.

mod attribution;
mod keep_reject;
mod session_changes;

use serde::{Deserialize, Serialize};
use stead_path::RelPath;
use stead_text::{
    diff::diff_stat,
    encoding::{Encoding, detect_encoding},
    lines,
    unified::{DiffLabels, unified_diff},
};

use self::session_changes::ReviewedFile;
pub use self::{
    attribution::{AuthoredTextWithReviewBaseline, ReviewHunkLineSpan, ReviewHunkRow},
    keep_reject::{KeepChangesArgs, KeepChangesOutcome, RejectChangesArgs, RejectChangesOutcome},
};
use super::diff::DiffLineCountFields;
use crate::{
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PathlessOperation, PlanResult, ResolvedTarget},
    ops::{HistoryArgs, UndoArgs},
    outcome::{
        Completeness, FileShownInOutcome, OperationOutcome, RecordedEntryFields, SavedAndUnsavedVersion, is_default,
    },
    session_store::SessionStoreWriteRequest,
    version::Version,
    workspace::{JournalEntryOrder, JournalEntryQuery},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReviewedSessionKey {
    principal: String,
    session: String,
    /// The ids of further sessions that match the request, from the latest to the oldest change.
    others: Vec<String>,
}

/// Whether a review starts at the beginning of the session or of the session's last turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionOrTurnStart {
    #[default]
    Session,
    Turn,
}

impl SessionOrTurnStart {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference to the field")]
    fn is_session(&self) -> bool {
        *self == Self::Session
    }
}

/// Determines the session to review. An agent reviews its current session unless it names another session of its own. A
/// person names a principal, a session id or both, and reviews the latest matching session.
fn resolve_session(
    context: &CallContext<'_>,
    principal: Option<&str>,
    session: Option<&str>,
) -> Result<ReviewedSessionKey, Error> {
    let own = context.caller.principal.to_string();
    let requested = principal.map(Principal::parse).transpose()?.map(|requested| requested.to_string());
    match &context.caller.principal {
        Principal::Agent(_) => {
            if requested.is_some_and(|requested| requested != own) {
                return Err(Error::new(ErrorKind::NotOwner, "an agent can review only its own changes")
                    .with_next_step(NextStep::repeat_without("author").or_ask_person("review the changes of others")));
            }
            let session = session.unwrap_or(&context.caller.session).to_owned();
            Ok(ReviewedSessionKey { principal: own, session, others: Vec::new() })
        }
        Principal::User(_) | Principal::System | Principal::External => {
            if let (Some(principal), Some(session)) = (&requested, session) {
                let (principal, session) = (principal.clone(), session.to_owned());
                return Ok(ReviewedSessionKey { principal, session, others: Vec::new() });
            }
            latest_session(context, requested.as_deref(), session)
        }
    }
}

/// Finds the session with the latest change that matches the request; without a principal, only agents' sessions match.
fn latest_session(
    context: &CallContext<'_>,
    principal: Option<&str>,
    session: Option<&str>,
) -> Result<ReviewedSessionKey, Error> {
    let newest = JournalEntryQuery::changes(JournalEntryOrder::NewestFirst, limits::ENTRIES_SCANNED_MAX);
    let query = JournalEntryQuery { principal: principal.map(str::to_owned), ..newest };
    let entries = context.workspace().entries(&query)?;
    let mut callers = entries.into_iter().map(|stored| stored.entry.caller).filter(|caller| {
        let is_candidate = principal.is_some() || caller.principal.starts_with("agent:");
        is_candidate && session.is_none_or(|session| caller.session == session)
    });
    let latest = callers.next().ok_or_else(|| {
        Error::new(ErrorKind::NothingToDo, "no agent session has changes to review")
            .with_next_step(NextStep::call(HistoryArgs::default(), "see who changed what"))
    })?;
    let mut others = Vec::new();
    for caller in callers {
        if caller.session != latest.session && !others.contains(&caller.session) {
            others.push(caller.session);
        }
    }
    Ok(ReviewedSessionKey { principal: latest.principal, session: latest.session, others })
}

fn require_person(context: &CallContext<'_>) -> Result<(), Error> {
    match &context.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::External => {
            Err(Error::new(ErrorKind::PolicyDenied, "only a person can keep or reject changes")
                .with_next_step(NextStep::call(UndoArgs::default(), "revert your latest change")))
        }
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(default, skip_serializing_if = "SessionOrTurnStart::is_session")]
    pub since: SessionOrTurnStart,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewOutcome {
    pub author: String,
    pub session: String,
    pub since: SessionOrTurnStart,
    pub files: Vec<ReviewedFileRow>,
    pub total: usize,
    #[serde(flatten)]
    pub completeness: Completeness<ReviewArgs>,
    /// The ids of further sessions that match the request, latest first; `None` if an agent reviews its own changes.
    #[serde(skip)]
    pub other_sessions: Option<Vec<String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewedFileRow {
    pub path: RelPath,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<RelPath>,
    pub change: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Version>,
    pub actors: Vec<String>,
    #[serde(flatten)]
    pub format: NonDefaultTextFormatFields,
    /// The numbers of added and removed lines; `None` if a version of the file is not text or no longer stored.
    #[serde(flatten)]
    pub lines: Option<DiffLineCountFields>,
    pub hunks: Vec<ReviewHunkRow>,
    #[serde(skip_serializing_if = "is_default")]
    pub hunks_left_out: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    #[serde(skip_serializing_if = "is_default")]
    pub diff_left_out_lines: usize,
    #[serde(flatten)]
    pub texts: Option<ReviewedFileTextFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsaved: Option<SavedAndUnsavedVersion>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct NonDefaultTextFormatFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line_endings: Option<&'static str>,
}

/// The text of a file before and after the reviewed changes; `None` means that the file does not exist.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReviewedFileTextFields {
    pub old_text: Option<String>,
    pub new_text: Option<String>,
}

impl OperationOutcome for ReviewOutcome {
    fn shown_files(&mut self) -> Vec<FileShownInOutcome<'_>> {
        let existing = self.files.iter_mut().filter(|row| row.version.is_some());
        existing.map(|row| FileShownInOutcome { path: &row.path, version: None, unsaved: &mut row.unsaved }).collect()
    }
}

impl Operation for ReviewArgs {
    type Paths = Option<PathAccessRequest>;
    type Outcome = ReviewOutcome;

    fn resolve(&self, _context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        Ok(self.path.as_deref().map(PathAccessRequest::read))
    }

    fn plan(&self, context: &CallContext<'_>, target: Option<&ResolvedTarget>) -> PlanResult<Self> {
        let session = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = target.map(|target| &target.path);
        let changes = session_changes::find_session_changes(context, &session, self.since, only)?;
        let total = changes.files.len();
        let texts = if only.is_some() { ReviewFileTextsInclusion::Include } else { ReviewFileTextsInclusion::Omit };
        let mut diff_lines_max = limits::DIFF_LINES_MAX;
        let listed = changes.files.iter().take(limits::REVIEW_FILES_MAX);
        let files = listed.map(|file| reviewed_file_row(file, texts, &mut diff_lines_max)).collect();
        let completeness = if total > limits::REVIEW_FILES_MAX {
            Completeness::narrowed_by("path", "REVIEW_FILES_MAX")
        } else if changes.truncated {
            Completeness::narrowed_by("since", "ENTRIES_SCANNED_MAX")
        } else {
            Completeness::Complete
        };
        let other_sessions = match &context.caller.principal {
            Principal::Agent(_) => None,
            Principal::User(_) | Principal::System | Principal::External => Some(session.others),
        };
        let (author, session) = (session.principal, session.session);
        let outcome = ReviewOutcome { author, session, since: self.since, files, total, completeness, other_sessions };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

fn change_kind_name(file: &ReviewedFile) -> &'static str {
    match (&file.before, &file.current, &file.moved_from) {
        (_, _, Some(_)) => "move",
        (None, Some(_), None) => "create",
        (_, None, None) => "remove",
        (Some(_), Some(_), None) => "modify",
    }
}

impl NonDefaultTextFormatFields {
    fn for_file(file: &ReviewedFile) -> Self {
        let bytes = file.current.as_ref().map(|now| now.bytes.as_slice()).unwrap_or_default();
        let encoding = detect_encoding(bytes).filter(|encoding| *encoding != Encoding::Utf8).map(Encoding::name);
        let text = file.blame_and_hunks.as_ref().map(|(blame, _)| blame.text()).unwrap_or_default();
        let counted = lines::count_endings(text.as_bytes());
        let line_endings = match (counted.crlf, counted.lf + counted.cr) {
            (0, _) => None,
            (_, 0) => Some("crlf"),
            (_, _) => Some("mixed"),
        };
        Self { encoding, line_endings }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReviewFileTextsInclusion {
    Include,
    Omit,
}

fn reviewed_file_row(
    file: &ReviewedFile,
    texts: ReviewFileTextsInclusion,
    diff_lines_max: &mut usize,
) -> ReviewedFileRow {
    let mut row = ReviewedFileRow {
        path: file.path.clone(),
        moved_from: file.moved_from.clone(),
        change: change_kind_name(file),
        version: file.current.as_ref().map(|now| now.observed.version),
        actors: file.actors.clone(),
        format: NonDefaultTextFormatFields::for_file(file),
        lines: None,
        hunks: Vec::new(),
        hunks_left_out: 0,
        diff: None,
        diff_left_out_lines: 0,
        texts: None,
        unsaved: None,
    };
    let Some((blame, hunks)) = &file.blame_and_hunks else { return row };
    let before = file.before.as_deref().unwrap_or_default();
    let labels = DiffLabels { old: "before", new: "now" };
    let diff = unified_diff(before, blame.text(), labels, limits::DIFF_CONTEXT_LINES, *diff_lines_max);
    *diff_lines_max = diff_lines_max.saturating_sub(diff.text.lines().count());
    row.lines = Some(diff_stat(before, blame.text()).into());
    row.hunks = hunks.iter().take(limits::REVIEW_HUNKS_MAX).map(ReviewHunkRow::from).collect();
    row.hunks_left_out = hunks.len().saturating_sub(limits::REVIEW_HUNKS_MAX);
    row.diff = Some(diff.text);
    row.diff_left_out_lines = diff.omitted_lines;
    row.texts = (texts == ReviewFileTextsInclusion::Include).then(|| ReviewedFileTextFields {
        old_text: file.before.clone(),
        new_text: file.current.as_ref().map(|_| blame.text().to_owned()),
    });
    row
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BeginTurnArgs {}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BeginTurnOutcome {
    pub session: String,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

impl OperationOutcome for BeginTurnOutcome {}

impl PathlessOperation for BeginTurnArgs {
    type Outcome = BeginTurnOutcome;

    fn plan(&self, context: &CallContext<'_>) -> PlanResult<Self> {
        let session = context.caller.session.clone();
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::BeginTurn,
            build_outcome: Box::new(|_, receipt| BeginTurnOutcome { session, recorded: receipt.into() }),
        })
    }
}
