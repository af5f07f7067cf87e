//! `reject`: a person rejects changes. An ordinary change of all files at once: the session's lines are reverted,
//! lines of others stay.

use serde::Deserialize;
use serde_json::{Value, json};
use stead_path::RelPath;

use super::{
    ReviewStart, ReviewedSession, hunks,
    keep::{nothing_to_review_error, unknown_hunk_error},
    require_person, resolve_session,
    session_changes::{self, ReviewedFile},
};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    operation::{Operation, PathAccess, PlannedEffect, RequestedPath, ResolvedTarget},
    ops::{encode_like, outcome_builder::OutcomeBuilder, planning},
    plan::{CommitExpectation, FileKind, FileModeSource, Plan, PlannedChange, PlannedContent, TreeSummary},
    version::Version,
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RejectArgs {
    path: Option<String>,
    hunk: Option<String>,
    session: Option<String>,
    author: Option<String>,
    #[serde(default)]
    since: ReviewStart,
    #[serde(default)]
    dry_run: bool,
}

enum RejectAction {
    Revert(Vec<PlannedChange>),
    /// Leave the file as it is, with the reason.
    Leave(&'static str),
}

impl Operation for RejectArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_person(context)?;
        if self.hunk.is_some() && self.path.is_none() {
            return Err(
                Error::new(ErrorKind::BadRequest, "hunk needs a path").with_next_step("pass the path of its file")
            );
        }
        if let Some(path) = &self.path {
            return Ok(vec![RequestedPath::write(path)]);
        }
        let session = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        let files = session_changes::find_session_changes(context, &session, self.since, None)?.files;
        if files.is_empty() {
            return Err(nothing_to_review_error(&session, self.since));
        }
        let paths = files.into_iter().flat_map(|file| [Some(file.path), file.moved_from]).flatten();
        Ok(paths.map(|path| RequestedPath::from_recorded_path(path, PathAccess::Write)).collect())
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let session = resolve_session(context, self.author.as_deref(), self.session.as_deref())?;
        let only: Option<&RelPath> = targets.first().map(|target| &target.path).filter(|_| self.path.is_some());
        let work = session_changes::find_session_changes(context, &session, self.since, only)?;
        let (mut changes, mut done, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for file in &work.files {
            // A file first changed after the paths were locked waits for the next call.
            if !targets.iter().any(|target| target.path == file.path) {
                continue;
            }
            match self.plan_rejection(context, file, &session)? {
                RejectAction::Revert(more) => {
                    changes.extend(more);
                    done.push(file.path.to_string());
                }
                RejectAction::Leave(reason) => left.push(json!({ "path": file.path.to_string(), "reason": reason })),
            }
        }
        if changes.is_empty() {
            return Err(nothing_to_review_error(&session, self.since).with_detail("left", left));
        }
        let plan = Plan::new(changes);
        if self.dry_run {
            crate::authorization::check_plan(context, &plan)?;
            return Ok(PlannedEffect::Preview(
                rejection_fields(&session, &done, &left).build(format!("would reject {}", done.join(", "))),
            ));
        }
        let build_outcome = move |receipt: &crate::workspace::CommitReceipt| {
            let mut text = format!("rejected {} (r{})", done.join(", "), receipt.entry);
            for left in &left {
                text.push_str(&format!("\nleft {}: {}", str_field(left, "path"), str_field(left, "reason")));
            }
            rejection_fields(&session, &done, &left).with_receipt(receipt).build(text)
        };
        Ok(PlannedEffect::Files { plan, build_outcome: Box::new(build_outcome) })
    }
}

fn str_field<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn rejection_fields(session: &ReviewedSession, done: &[String], left: &[Value]) -> OutcomeBuilder {
    OutcomeBuilder::new()
        .with_field("author", session.principal.clone())
        .with_field("session", session.session.clone())
        .with_field("rejected", done.to_vec())
        .with_some("left", (!left.is_empty()).then(|| left.to_vec()))
}

impl RejectArgs {
    /// Plans the revert of the session's changes to a file.
    fn plan_rejection(
        &self,
        context: &CallContext<'_>,
        file: &ReviewedFile,
        session: &ReviewedSession,
    ) -> Result<RejectAction, Error> {
        let Some((blame, hunks)) = &file.blame_and_hunks else { return restore_from_trash(context, file) };
        let chosen: Vec<&hunks::ReviewHunk> = match &self.hunk {
            None => hunks.iter().filter(|hunk| hunk.authors.contains(&session.principal)).collect(),
            Some(name) => {
                let found = hunks.iter().find(|hunk| hunk.name == *name).ok_or_else(|| unknown_hunk_error(name))?;
                if !found.authors.contains(&session.principal) {
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        format!("hunk {name} is not by {}", session.principal),
                    )
                    .with_next_step("edit the file to change what others wrote")
                    .with_detail("by", found.authors.iter().cloned().collect::<Vec<_>>()));
                }
                vec![found]
            }
        };
        if chosen.is_empty() {
            return self.revert_move(context, file);
        }
        let before = file.before.as_deref().unwrap_or_default();
        let text = hunks::revert_hunks(before, blame, &chosen, &session.principal);
        let Some(now) = &file.current else { return restore_text(context, file, &text) };
        if file.before.is_none() && text.is_empty() {
            return Ok(RejectAction::Revert(vec![plan_removal(context, file, now)]));
        }
        let bytes = encode_like(&text, &now.bytes)?;
        let version = Version::hash_bytes(&bytes);
        if version == now.observed.version {
            return Ok(RejectAction::Leave("it is already in that state"));
        }
        Ok(RejectAction::Revert(vec![PlannedChange::Put {
            path: file.path.clone(),
            expectation: CommitExpectation::File(now.observed),
            size: bytes.len() as u64,
            content: PlannedContent::Bytes(bytes),
            version,
            mode: FileModeSource::KeepExisting,
        }]))
    }

    /// Moves a file back that was only moved.
    fn revert_move(&self, context: &CallContext<'_>, file: &ReviewedFile) -> Result<RejectAction, Error> {
        let (Some(origin), Some(now)) = (&file.moved_from, &file.current) else {
            return Ok(RejectAction::Leave("others changed it, not the session"));
        };
        if context.workspace().stat(origin)?.is_some() {
            return Ok(RejectAction::Leave("its old path is occupied"));
        }
        let mut changes = planning::create_missing_parents(context, origin)?;
        changes.push(PlannedChange::Move {
            from: file.path.clone(),
            to: origin.clone(),
            expectation: CommitExpectation::File(now.observed),
            replaced: CommitExpectation::Absent,
            tree: TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes: now.bytes.len() as u64 },
        });
        Ok(RejectAction::Revert(changes))
    }
}

/// Restores a removed file from the trash, if its bytes are stored nowhere else.
fn restore_from_trash(context: &CallContext<'_>, file: &ReviewedFile) -> Result<RejectAction, Error> {
    let item = match &file.trash_id {
        Some(id) => context.workspace().trash_item(id)?,
        None => return Ok(RejectAction::Leave("it is not text, or its content is no longer stored")),
    };
    let Some(item) = item else { return Ok(RejectAction::Leave("it is no longer in the trash")) };
    if context.workspace().stat(&file.path)?.is_some() {
        return Ok(RejectAction::Leave("its path is occupied"));
    }
    let mut changes = planning::create_missing_parents(context, &file.path)?;
    changes.push(PlannedChange::Restore { trash: item.id, path: file.path.clone(), tree: item.summary });
    Ok(RejectAction::Revert(changes))
}

/// Restores the text of a removed file.
fn restore_text(context: &CallContext<'_>, file: &ReviewedFile, text: &str) -> Result<RejectAction, Error> {
    if context.workspace().stat(&file.path)?.is_some() {
        return Ok(RejectAction::Leave("its path is occupied"));
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
    Ok(RejectAction::Revert(changes))
}

/// Moves a file to the trash that the session created and nobody else changed.
fn plan_removal(
    context: &CallContext<'_>,
    file: &ReviewedFile,
    now: &session_changes::TrackedFileContent,
) -> PlannedChange {
    let retention_ms = context.policy.policy.trash_retention_ms(&context.caller.principal);
    PlannedChange::Remove {
        path: file.path.clone(),
        expectation: CommitExpectation::File(now.observed),
        retain_until_ms: context.workspace().now_ms().saturating_add(retention_ms),
        tree: TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes: now.bytes.len() as u64 },
    }
}
