//! With `keep` and `reject`, a person accepts or rejects changes of a session. Accepting changes removes them from the
//! review and changes no file. A rejection reverts the lines that the session wrote in one atomic commit, and keeps the
//! lines of others.

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

use crate::{
    authorization,
    call_context::CallContext,
    error_details::RemainingQuotaOrFiles,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{
        Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedAccessKind, ResolvedTarget,
        ValueForPlan,
    },
    ops::{
        ReviewArgs, encode_like, planning,
        review::{
            ReviewedSessionKey, SessionOrTurnStart,
            attribution::{self, ReviewHunk},
            require_person, resolve_session,
            session_changes::{self, ReviewedFile, ReviewedFileCurrentContent},
        },
        text_pages::shorten_for_error,
        undo::UnrevertedFileRow,
    },
    outcome::{OperationOutcome, RecordedEntryFields},
    plan::{CommitExpectation, FileKind, FileModeSource, Plan, PlannedChange, PlannedContent, TreeSummary},
    session_store::{ReviewAcceptedFileText, SessionStoreWriteRequest},
    version::Version,
};

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeepChangesArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunk: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct KeepChangesOutcome {
    pub author: String,
    pub session: String,
    pub kept: Vec<RelPath>,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

impl OperationOutcome for KeepChangesOutcome {}

impl Operation for KeepChangesArgs {
    type Paths = Option<PathAccessRequest>;
    type Outcome = KeepChangesOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_and_path(context, self.hunk.as_ref(), self.path.as_ref())?;
        Ok(self.path.as_deref().map(PathAccessRequest::read))
    }

    fn plan(&self, context: &CallContext<'_>, target: Option<&ResolvedTarget>) -> PlanResult<Self> {
        let reviewed = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = target.map(|target| &target.path);
        let changes = session_changes::find_session_changes(context, &reviewed, SessionOrTurnStart::Session, only)?;
        if changes.files.is_empty() {
            return Err(nothing_to_review_error(&reviewed, SessionOrTurnStart::Session));
        }
        let mut baselines = Vec::new();
        for file in &changes.files {
            baselines.push(ReviewAcceptedFileText { path: file.path.clone(), text: self.accepted_text(file)? });
        }
        let kept = baselines.iter().map(|file| file.path.clone()).collect();
        let ReviewedSessionKey { principal: author, session, .. } = reviewed;
        let (principal, reviewed_session) = (author.clone(), session.clone());
        Ok(OperationPlanningResult::Session {
            request: SessionStoreWriteRequest::AcceptChanges { principal, session: reviewed_session, baselines },
            build_outcome: Box::new(|_, receipt| KeepChangesOutcome {
                author,
                session,
                kept,
                recorded: receipt.into(),
            }),
        })
    }
}

impl KeepChangesArgs {
    /// Returns the file text that includes the accepted changes, which is the baseline of the next review.
    fn accepted_text(&self, file: &ReviewedFile) -> Result<Option<Vec<u8>>, Error> {
        let Some(name) = &self.hunk else { return Ok(file.current.as_ref().map(|now| now.bytes.clone())) };
        let (blame, hunks) = file.blame_and_hunks.as_ref().ok_or_else(|| unknown_hunk_error(name))?;
        let found = find_hunk(hunks, name)?;
        let before = file.before.as_deref().unwrap_or_default();
        let text = attribution::apply_hunks(before, blame.text(), &[found]);
        let model = file.current.as_ref().map_or(before.as_bytes(), |now| now.bytes.as_slice());
        encode_like(&text, model).map(Some)
    }
}

fn require_person_and_path(
    context: &CallContext<'_>,
    hunk: Option<&String>,
    path: Option<&String>,
) -> Result<(), Error> {
    require_person(context)?;
    if hunk.is_some() && path.is_none() {
        let error = Error::new(ErrorKind::BadRequest, "hunk requires path");
        return Err(error.with_next_step("pass the path of the file that contains the hunk"));
    }
    Ok(())
}

fn find_hunk<'h>(hunks: &'h [ReviewHunk], name: &str) -> Result<&'h ReviewHunk, Error> {
    hunks.iter().find(|hunk| hunk.name == name).ok_or_else(|| unknown_hunk_error(name))
}

fn unknown_hunk_error(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("hunk {} no longer exists", shorten_for_error(name)))
        .with_next_step(NextStep::call(ReviewArgs::default(), "see the current names of the hunks"))
}

fn nothing_to_review_error(reviewed: &ReviewedSessionKey, since: SessionOrTurnStart) -> Error {
    let ReviewedSessionKey { principal, session, .. } = reviewed;
    let (part, purpose) = match since {
        SessionOrTurnStart::Session => ("", "see pending changes"),
        SessionOrTurnStart::Turn => ("the last turn of ", "see the changes of earlier turns"),
    };
    let message = format!("{principal} has no changes to review in {part}session {session}");
    Error::new(ErrorKind::NothingToDo, message).with_next_step(NextStep::call(ReviewArgs::default(), purpose))
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RejectChangesArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunk: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(default, skip_serializing_if = "SessionOrTurnStart::is_session")]
    pub since: SessionOrTurnStart,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct RejectChangesOutcome {
    pub author: String,
    pub session: String,
    pub rejected: Vec<RelPath>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<UnrevertedFileRow>,
    /// The journal entry of the rejection; `None` if the call was a dry run.
    #[serde(flatten)]
    pub recorded: Option<RecordedEntryFields>,
}

impl OperationOutcome for RejectChangesOutcome {}

enum FileRejectPlan {
    Revert(Vec<PlannedChange>),
    Leave(&'static str),
}

impl Operation for RejectChangesArgs {
    type Paths = (ValueForPlan<ReviewedSessionKey>, Vec<PathAccessRequest>);
    type Outcome = RejectChangesOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_and_path(context, self.hunk.as_ref(), self.path.as_ref())?;
        let session = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        if let Some(path) = &self.path {
            return Ok((ValueForPlan(session), vec![PathAccessRequest::write(path)]));
        }
        let files = session_changes::find_session_changes(context, &session, self.since, None)?.files;
        if files.is_empty() {
            return Err(nothing_to_review_error(&session, self.since));
        }
        let changed = files.into_iter().flat_map(|file| [Some(file.path), file.moved_from]).flatten();
        let write = |path| PathAccessRequest::from_recorded_path(path, RequestedAccessKind::Write);
        Ok((ValueForPlan(session), changed.map(write).collect()))
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        (session, targets): (ReviewedSessionKey, &[ResolvedTarget]),
    ) -> PlanResult<Self> {
        let only = self.path.as_ref().and(targets.first()).map(|target| &target.path);
        let files = session_changes::find_session_changes(context, &session, self.since, only)?.files;
        let (mut changes, mut rejected, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for file in &files {
            // A file that the session first changed after the paths were locked is left to the next call.
            if !targets.iter().any(|target| target.path == file.path) {
                continue;
            }
            match self.plan_rejection(context, file, &session)? {
                FileRejectPlan::Revert(more) => {
                    changes.extend(more);
                    rejected.push(file.path.clone());
                }
                FileRejectPlan::Leave(reason) => left.push(UnrevertedFileRow { path: file.path.clone(), reason }),
            }
        }
        if changes.is_empty() {
            return Err(nothing_to_review_error(&session, self.since).with_left(RemainingQuotaOrFiles::Files(left)));
        }
        let (author, session) = (session.principal, session.session);
        let (plan, outcome) =
            (Plan::new(changes), RejectChangesOutcome { author, session, rejected, left, recorded: None });
        if self.dry_run {
            authorization::check_plan(context, &plan)?;
            return Ok(OperationPlanningResult::Preview(outcome));
        }
        Ok(OperationPlanningResult::Files {
            plan,
            build_outcome: Box::new(|receipt| RejectChangesOutcome { recorded: Some(receipt.into()), ..outcome }),
        })
    }
}

impl RejectChangesArgs {
    fn plan_rejection(
        &self,
        context: &CallContext<'_>,
        file: &ReviewedFile,
        session: &ReviewedSessionKey,
    ) -> Result<FileRejectPlan, Error> {
        let Some((blame, hunks)) = &file.blame_and_hunks else { return restore_from_trash(context, file) };
        let chosen: Vec<&ReviewHunk> = match &self.hunk {
            None => hunks.iter().filter(|hunk| hunk.authors.contains(&session.principal)).collect(),
            Some(name) => {
                let found = find_hunk(hunks, name)?;
                if !found.authors.contains(&session.principal) {
                    let message = format!("hunk {name} contains no change by {}", session.principal);
                    return Err(Error::new(ErrorKind::Conflict, message)
                        .with_next_step("edit the file to change lines of others")
                        .with_by(found.authors.iter().cloned().collect::<Vec<_>>()));
                }
                vec![found]
            }
        };
        if chosen.is_empty() {
            return self.revert_move(context, file);
        }
        let before = file.before.as_deref().unwrap_or_default();
        let text = attribution::revert_hunks(before, blame, &chosen, &session.principal);
        let Some(now) = &file.current else { return restore_text(context, file, &text) };
        if file.before.is_none() && text.is_empty() {
            return Ok(FileRejectPlan::Revert(vec![plan_removal(context, file, now)]));
        }
        let bytes = encode_like(&text, &now.bytes)?;
        let version = Version::hash_bytes(&bytes);
        if version == now.observed.version {
            return Ok(FileRejectPlan::Leave("its lines are already reverted"));
        }
        Ok(FileRejectPlan::Revert(vec![PlannedChange::Put {
            path: file.path.clone(),
            expectation: CommitExpectation::File(now.observed),
            size: bytes.len() as u64,
            content: PlannedContent::Bytes(bytes),
            version,
            mode: FileModeSource::KeepExisting,
        }]))
    }

    fn revert_move(&self, context: &CallContext<'_>, file: &ReviewedFile) -> Result<FileRejectPlan, Error> {
        let (Some(origin), Some(now)) = (&file.moved_from, &file.current) else {
            return Ok(FileRejectPlan::Leave("others changed it, not the session"));
        };
        if context.workspace().stat(origin)?.is_some() {
            return Ok(FileRejectPlan::Leave("its old path is occupied"));
        }
        let mut changes = planning::create_missing_parents(context, origin)?;
        changes.push(PlannedChange::Move {
            from: file.path.clone(),
            to: origin.clone(),
            expectation: CommitExpectation::File(now.observed),
            replaced: CommitExpectation::Absent,
            tree: TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes: now.bytes.len() as u64 },
        });
        Ok(FileRejectPlan::Revert(changes))
    }
}

fn restore_from_trash(context: &CallContext<'_>, file: &ReviewedFile) -> Result<FileRejectPlan, Error> {
    let item = match &file.trash_id {
        Some(id) => context.workspace().trash_item(id)?,
        None => return Ok(FileRejectPlan::Leave("it is not text, or its content is no longer stored")),
    };
    let Some(item) = item else { return Ok(FileRejectPlan::Leave("it is no longer in the trash")) };
    if context.workspace().stat(&file.path)?.is_some() {
        return Ok(FileRejectPlan::Leave("its path is occupied"));
    }
    let mut changes = planning::create_missing_parents(context, &file.path)?;
    changes.push(PlannedChange::Restore { trash: item.id, path: file.path.clone(), tree: item.summary });
    Ok(FileRejectPlan::Revert(changes))
}

fn restore_text(context: &CallContext<'_>, file: &ReviewedFile, text: &str) -> Result<FileRejectPlan, Error> {
    if context.workspace().stat(&file.path)?.is_some() {
        return Ok(FileRejectPlan::Leave("its path is occupied"));
    }
    let bytes = text.as_bytes().to_vec();
    let mut changes = planning::create_missing_parents(context, &file.path)?;
    changes.push(PlannedChange::Put {
        path: file.path.clone(),
        expectation: CommitExpectation::Absent,
        size: bytes.len() as u64,
        version: Version::hash_bytes(&bytes),
        content: PlannedContent::Bytes(bytes),
        mode: FileModeSource::KeepExisting,
    });
    Ok(FileRejectPlan::Revert(changes))
}

fn plan_removal(context: &CallContext<'_>, file: &ReviewedFile, now: &ReviewedFileCurrentContent) -> PlannedChange {
    PlannedChange::Remove {
        path: file.path.clone(),
        expectation: CommitExpectation::File(now.observed),
        retain_until_ms: planning::trash_deadline_ms(context),
        tree: TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes: now.bytes.len() as u64 },
    }
}
