//! `keep`: a person accepts changes. They disappear from the review; no file changes.

use serde::Deserialize;
use stead_path::RelPath;

use super::{
    ReviewStart, ReviewedSession, hunks, require_person, resolve_session,
    session_changes::{self, ReviewedFile},
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    ops::{encode_like, outcome_builder::OutcomeBuilder},
    session_store::{ReviewBaseline, SessionStoreReply, SessionStoreRequest},
    workspace::CommitReceipt,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeepArgs {
    path: Option<String>,
    hunk: Option<String>,
    session: Option<String>,
    author: Option<String>,
}

impl Operation for KeepArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_person(context)?;
        if self.hunk.is_some() && self.path.is_none() {
            return Err(
                Error::new(ErrorKind::BadRequest, "hunk needs a path").with_next_step("pass the path of its file")
            );
        }
        Ok(self.path.iter().map(|path| RequestedPath::read(path)).collect())
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let reviewed = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = targets.first().map(|target| &target.path);
        let work = session_changes::find_session_changes(context, &reviewed, ReviewStart::Session, only)?;
        if work.files.is_empty() {
            return Err(nothing_to_review_error(&reviewed, ReviewStart::Session));
        }
        let mut baselines = Vec::new();
        for file in &work.files {
            baselines.push(ReviewBaseline { path: file.path.clone(), text: self.accepted_text(file)? });
        }
        let paths: Vec<String> = baselines.iter().map(|file| file.path.to_string()).collect();
        let ReviewedSession { principal, session } = reviewed;
        let request =
            SessionStoreRequest::AcceptChanges { principal: principal.clone(), session: session.clone(), baselines };
        let build_outcome = move |_: &SessionStoreReply, receipt: &CommitReceipt| {
            let text = format!("kept {}", paths.join(", "));
            OutcomeBuilder::new()
                .with_field("author", principal)
                .with_field("session", session)
                .with_field("kept", paths)
                .with_receipt(receipt)
                .build(text)
        };
        Ok(PlannedEffect::Session { request, build_outcome: Box::new(build_outcome) })
    }
}

impl KeepArgs {
    /// The baseline of the next review of a file.
    fn accepted_text(&self, file: &ReviewedFile) -> Result<Option<Vec<u8>>, Error> {
        let Some(name) = &self.hunk else { return Ok(file.current.as_ref().map(|now| now.bytes.clone())) };
        let (blame, hunks) = file.blame_and_hunks.as_ref().ok_or_else(|| unknown_hunk_error(name))?;
        let found = hunks.iter().find(|hunk| hunk.name == *name).ok_or_else(|| unknown_hunk_error(name))?;
        let before = file.before.as_deref().unwrap_or_default();
        let text = hunks::apply_hunks(before, blame.text(), &[found]);
        let model = file.current.as_ref().map_or(before.as_bytes(), |now| now.bytes.as_slice());
        encode_like(&text, model).map(Some)
    }
}

pub(super) fn unknown_hunk_error(name: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        format!("hunk {} no longer exists", crate::ops::outcome_builder::shorten_for_error(name)),
    )
    .with_next_step("call review again: a changed hunk has a new name")
}

pub(super) fn nothing_to_review_error(reviewed: &ReviewedSession, since: ReviewStart) -> Error {
    let ReviewedSession { principal, session } = reviewed;
    match since {
        ReviewStart::Session => {
            Error::new(ErrorKind::NothingToDo, format!("{principal} has no changes to review in session {session}"))
                .with_next_step("call review to see pending changes")
        }
        ReviewStart::Turn => Error::new(
            ErrorKind::NothingToDo,
            format!("{principal} has no changes in the last turn of session {session}"),
        )
        .with_next_step("call review to see the changes of earlier turns"),
    }
}
