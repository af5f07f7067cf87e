//! Review of an agent's work in the editor, with the methods `_stead/review`, `_stead/keep`, `_stead/reject` and
//! `_stead/undo_turn`. A review shows the writes of the engine, and the agent's writes that the editor applied. The
//! editor reverts a rejected write that the editor applied. Review calls run as the person at the editor; the agent can
//! neither send nor receive review messages.

use std::{
    collections::{BTreeSet, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};
use stead_engine::{
    ChangeApplierChoice, Error, ErrorKind,
    ops::{
        KeepChangesArgs, RejectChangesArgs, ReviewArgs, ReviewOutcome, ReviewedFileRow, SessionOrTurnStart,
        UnrevertedFileRow,
    },
};
use stead_path::RelPath;
use tokio::sync::watch;

use super::{
    AcpProxy,
    editor_writes::{AgentAndPersonAuthorNames, AttributedEditorFile},
    errors::AcpError,
    files::AcpRunningFileCall,
    json_members::{self, MalformedJsonObjectError},
    message::{self, AcpMessageId},
    session::{AcpResolvedPath, AcpSession},
};
use crate::{
    dialect::acp,
    limits::REVIEW_TEXT_BYTES_MAX,
    native::without_nulls,
    prepared_call::{PreparedCall, RenderableOperation},
};

const METHOD_PREFIX: &str = "_stead/";
/// The editor gets the notification `_stead/locked` when a lease blocks a write of the agent.
const LOCKED_NOTIFICATION: &str = "_stead/locked";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AcpReviewMethod {
    Review,
    Keep,
    Reject,
    UndoTurn,
}

const REVIEW_METHODS: &[(&str, AcpReviewMethod)] = &[
    ("review", AcpReviewMethod::Review),
    ("keep", AcpReviewMethod::Keep),
    ("reject", AcpReviewMethod::Reject),
    ("undo_turn", AcpReviewMethod::UndoTurn),
];

impl AcpReviewMethod {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(METHOD_PREFIX)?;
        REVIEW_METHODS.iter().find(|(known, _)| *known == rest).map(|(_, method)| *method)
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct AcpReviewMethodRequest {
    pub(super) id: AcpMessageId,
    pub(super) method: AcpReviewMethod,
    pub(super) params: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AcpReviewParams {
    session_id: String,
    path: Option<String>,
    hunk: Option<String>,
    #[serde(default)]
    since: SessionOrTurnStart,
}

/// Adds the list of review methods to the agent's response to `initialize`.
pub(super) fn advertise_methods(line: &[u8]) -> Result<Vec<u8>, MalformedJsonObjectError> {
    let methods: Vec<String> = REVIEW_METHODS.iter().map(|(name, _)| format!("{METHOD_PREFIX}{name}")).collect();
    json_members::set_member(line, &["result", "_meta", "stead"], &json!({ "methods": methods }))
}

pub(super) fn lease_notification(session: &AcpSession, path: &str, error: &Error) -> Vec<u8> {
    let params = json!({
        "sessionId": session.id, "path": path, "holder": error.details.holder, "endsMs": error.details.ends_ms,
        "detail": error.message,
    });
    message::notification_line(LOCKED_NOTIFICATION, &params)
}

pub(super) async fn run_review_call(proxy: &AcpProxy, call: &AcpReviewMethodRequest) -> Result<Value, AcpError> {
    let mut params: AcpReviewParams =
        serde_json::from_slice(&call.params).map_err(|error| AcpError::invalid_params(error.to_string()))?;
    if params.hunk.is_some() && params.path.is_none() {
        return Err(AcpError::invalid_params("hunk requires path: name the file of the hunk"));
    }
    if call.method == AcpReviewMethod::UndoTurn {
        params.since = SessionOrTurnStart::Turn;
    }
    let session =
        proxy.router.find_session(&params.session_id).ok_or_else(|| AcpError::session_not_found(&params.session_id))?;
    let only = match &params.path {
        None => None,
        Some(path) => Some(session.resolve_path(path).ok_or_else(|| AcpError::file_not_found(path))?),
    };
    let (_sender, cancelled) = watch::channel(false);
    let handler = AcpReviewMethodHandler { proxy, session, params, only_path: only, cancelled };
    match call.method {
        AcpReviewMethod::Review => handler.review().await,
        AcpReviewMethod::Keep => handler.keep().await,
        AcpReviewMethod::Reject | AcpReviewMethod::UndoTurn => handler.reject().await,
    }
}

struct AcpReviewMethodHandler<'p> {
    proxy: &'p AcpProxy,
    session: Arc<AcpSession>,
    params: AcpReviewParams,
    /// A review call without a path applies to all files of the session.
    only_path: Option<AcpResolvedPath>,
    cancelled: watch::Receiver<bool>,
}

#[derive(Default)]
struct KeepOrRejectResult {
    paths: Vec<String>,
    skipped: Vec<Value>,
}

impl AcpReviewMethodHandler<'_> {
    async fn review(&self) -> Result<Value, AcpError> {
        let (mut files, mut room) = (Vec::new(), REVIEW_TEXT_BYTES_MAX);
        let mut is_truncated = self.session.editor_writes().is_incomplete;
        for root in self.target_roots() {
            let path = self.only_path.as_ref().map(|only| only.engine_path.clone());
            let outcome = match self.review_in_root(root, path).await? {
                Ok(outcome) => outcome,
                // The engine does not find a file that exists only in the editor.
                Err(error) if error.kind == ErrorKind::NotFound && !self.editor_paths().is_empty() => continue,
                Err(error) => return Err(self.to_acp_error(&error)),
            };
            is_truncated |= outcome.completeness.is_truncated();
            for file in outcome.files {
                files.push(self.review_file(root, file, &mut room).await?);
            }
        }
        for resolved in self.editor_paths() {
            files.extend(self.review_editor_file(&resolved, &mut room).await?);
        }
        Ok(json!({
            "sessionId": self.session.id, "since": self.params.since, "files": files, "truncated": is_truncated,
        }))
    }

    async fn review_in_root(
        &self,
        root: usize,
        path: Option<String>,
    ) -> Result<Result<ReviewOutcome, Error>, AcpError> {
        let (session, author) = self.session_and_author(root);
        self.call_as_person(root, ReviewArgs { path, session, author, since: self.params.since }).await
    }

    async fn review_file(&self, root: usize, listed: ReviewedFileRow, room: &mut usize) -> Result<Value, AcpError> {
        let engine_path = listed.path.to_wire().into_owned();
        let outcome = self.review_in_root(root, Some(engine_path.clone())).await?;
        let files = outcome.map_err(|error| self.to_acp_error(&error))?.files;
        // If the file was kept or rejected after it was listed, the result does not contain the file.
        let details = files.into_iter().next().unwrap_or(listed);
        let path = self.absolute_path(root, &engine_path);
        let mut json = without_nulls(json!({
            "path": path,
            "change": details.change,
            "actors": details.actors,
            "hunks": details.hunks,
            "lineEndings": details.format.line_endings,
            "encoding": details.format.encoding,
            "hunksLeftOut": Some(details.hunks_left_out).filter(|count| *count > 0),
            "movedFrom": details.moved_from.map(|from| self.absolute_path(root, &from.to_wire())),
        }));
        let texts = details.texts.as_ref();
        let (old, new) = texts.map_or((None, None), |texts| (texts.old_text.as_deref(), texts.new_text.as_deref()));
        // The details contain no diff if the file is not text, or if the old version of the file was pruned.
        let texts = details.diff.is_some().then_some((old, new.unwrap_or_default()));
        json["content"] = diff_content(&path, texts, room);
        self.add_lease(root, &engine_path, &mut json).await;
        Ok(json)
    }

    async fn review_editor_file(
        &self,
        resolved: &AcpResolvedPath,
        room: &mut usize,
    ) -> Result<Option<Value>, AcpError> {
        let Some((found, now)) = self.attribute_editor_file(resolved).await? else { return Ok(None) };
        let hunks = found.attributed.hunk_rows();
        if hunks.is_empty() {
            return Ok(None);
        }
        let path = self.file_request(resolved).requested_path;
        let change = if found.original_text.is_none() { "create" } else { "modify" };
        let actors: BTreeSet<&String> = hunks.iter().flat_map(|hunk| &hunk.by).collect();
        let mut json = json!({ "path": path, "change": change, "actors": actors, "hunks": hunks, "inEditor": true });
        json["content"] = diff_content(&path, Some((found.original_text.as_deref(), &now)), room);
        self.add_lease(resolved.root_index, &resolved.engine_path, &mut json).await;
        Ok(Some(json))
    }

    async fn keep(&self) -> Result<Value, AcpError> {
        let mut result = KeepOrRejectResult::default();
        for root in self.target_roots() {
            let (session, author) = self.session_and_author(root);
            let (path, hunk) = self.path_and_hunk();
            let kept = self.call_as_person(root, KeepChangesArgs { path, hunk, session, author }).await?;
            self.add_result(root, kept.map(|outcome| (outcome.kept, Vec::new())), &mut result)?;
        }
        for resolved in self.editor_paths() {
            let Some((found, _)) = self.attribute_editor_file(&resolved).await? else { continue };
            if let Some(accepted) = found.attributed.accept_hunks(self.params.hunk.as_deref()) {
                self.session.editor_writes().accept(&resolved, &accepted);
                result.paths.push(self.file_request(&resolved).requested_path);
            }
        }
        self.response("kept", result)
    }

    async fn reject(&self) -> Result<Value, AcpError> {
        let mut result = KeepOrRejectResult::default();
        for root in self.target_roots() {
            let (session, author) = self.session_and_author(root);
            let (path, hunk) = self.path_and_hunk();
            let arguments = RejectChangesArgs { path, hunk, session, author, since: self.params.since, dry_run: false };
            let rejected = self.call_as_person(root, arguments).await?;
            self.add_result(root, rejected.map(|outcome| (outcome.rejected, outcome.left)), &mut result)?;
        }
        for resolved in self.editor_paths() {
            self.revert_in_editor(&resolved, &mut result).await?;
        }
        self.response("rejected", result)
    }

    async fn revert_in_editor(
        &self,
        resolved: &AcpResolvedPath,
        result: &mut KeepOrRejectResult,
    ) -> Result<(), AcpError> {
        let request = self.file_request(resolved);
        let _guard = self.session.lock_for_write(resolved).await;
        let Some((found, now)) = self.attribute_editor_file(resolved).await? else { return Ok(()) };
        let Some(person) = self.session.root_of(resolved).map(|root| root.person.clone()) else {
            return Ok(());
        };
        let agent = self.agent_name(resolved.root_index);
        let Some(text) = found.attributed.revert_author(self.params.hunk.as_deref(), &agent) else {
            return Ok(());
        };
        let now: Arc<str> = now.into();
        let known_text = Some(now.clone());
        let mut call = acp::write_call(&resolved.engine_path, text.clone(), Default::default(), known_text);
        call.options.applied_by = ChangeApplierChoice::Editor(Some(now));
        let mut skip = |reason: &str| result.skipped.push(json!({ "path": request.requested_path, "reason": reason }));
        if let Err(error) = request.call_engine_as(person, call).await? {
            skip(&error.message);
            return Ok(());
        }
        if request.write_in_editor(&text).await.is_err() {
            skip("the editor did not write the file");
            return Ok(());
        }
        if found.original_text.is_none() && text.is_empty() {
            skip("the file is now empty; editors cannot delete files through ACP");
        }
        result.paths.push(request.requested_path);
        Ok(())
    }

    /// A session root without changes is not an error for `_stead/keep` and `_stead/reject`.
    fn add_result(
        &self,
        root: usize,
        applied: Result<(Vec<RelPath>, Vec<UnrevertedFileRow>), Error>,
        result: &mut KeepOrRejectResult,
    ) -> Result<(), AcpError> {
        let (paths, left) = match applied {
            Ok(applied) => applied,
            Err(error) if error.kind == ErrorKind::NothingToDo => return Ok(()),
            // The engine does not find a hunk of a file that was written through the editor.
            Err(error) if error.kind == ErrorKind::NotFound && !self.editor_paths().is_empty() => return Ok(()),
            Err(error) => return Err(self.to_acp_error(&error)),
        };
        result.paths.extend(paths.iter().map(|path| self.absolute_path(root, &path.to_wire())));
        result.skipped.extend(left.iter().map(
            |skipped| json!({ "path": self.absolute_path(root, &skipped.path.to_wire()), "reason": skipped.reason }),
        ));
        Ok(())
    }

    fn response(&self, key: &str, result: KeepOrRejectResult) -> Result<Value, AcpError> {
        let KeepOrRejectResult { mut paths, skipped } = result;
        if paths.is_empty() && skipped.is_empty() {
            let reason = if self.params.hunk.is_some() { "no such hunk" } else { "no changes to review" };
            return Err(AcpError::invalid_params(format!("nothing_to_do: {reason}")));
        }
        paths.sort();
        paths.dedup();
        Ok(json!({ "sessionId": self.session.id, key: paths, "left": skipped }))
    }

    /// If several session roots belong to one workspace, a review call uses only the first of them.
    fn target_roots(&self) -> Vec<usize> {
        let mut known = HashSet::new();
        let roots = self.session.roots().iter().enumerate();
        roots
            .filter(|(index, _)| self.only_path.as_ref().is_none_or(|only| only.root_index == *index))
            .filter(|(_, root)| known.insert(root.executor.engine().workspace().profile().id.clone()))
            .map(|(index, _)| index)
            .collect()
    }

    fn editor_paths(&self) -> Vec<AcpResolvedPath> {
        let editor_writes = self.session.editor_writes();
        match &self.only_path {
            Some(only) => editor_writes.contains(only).then(|| only.clone()).into_iter().collect(),
            None => editor_writes.paths(),
        }
    }

    async fn attribute_editor_file(
        &self,
        resolved: &AcpResolvedPath,
    ) -> Result<Option<(AttributedEditorFile, String)>, AcpError> {
        let now = self.file_request(resolved).current_text().await?.unwrap_or_default();
        let person = self.session.root_of(resolved).map(|root| root.person.principal.to_string()).unwrap_or_default();
        let agent = self.agent_name(resolved.root_index);
        let names = AgentAndPersonAuthorNames { agent: &agent, person: &person };
        let found = self.session.editor_writes().attribute_file(resolved, self.params.since, &now, names);
        Ok(found.map(|found| (found, now)))
    }

    fn agent_name(&self, root: usize) -> String {
        self.session.roots().get(root).map(|root| root.agent.principal.to_string()).unwrap_or_default()
    }

    fn session_and_author(&self, root: usize) -> (Option<String>, Option<String>) {
        (Some(self.session.journal_id().to_owned()), Some(self.agent_name(root)))
    }

    fn path_and_hunk(&self) -> (Option<String>, Option<String>) {
        (self.only_path.as_ref().map(|only| only.engine_path.clone()), self.params.hunk.clone())
    }

    async fn call_as_person<O: RenderableOperation>(
        &self,
        root: usize,
        arguments: O,
    ) -> Result<Result<O::Result, Error>, AcpError> {
        let Some(opened) = self.session.roots().get(root) else {
            return Err(AcpError::internal_error("io_error: no such root"));
        };
        let options = acp::call_options(&format!("{METHOD_PREFIX}{}", O::DEFINITION.name));
        let call = PreparedCall::new(arguments, options, |result| result?.into_outcome());
        self.file_request(&self.session.root_path(root)).call_engine_as(opened.person.clone(), call).await
    }

    async fn add_lease(&self, root: usize, engine_path: &str, json: &mut Value) {
        let (Some(resolved), Some(opened)) =
            (self.session.path_in_root(root, engine_path), self.session.roots().get(root))
        else {
            return;
        };
        let engine = opened.executor.engine().clone();
        let leases = tokio::task::spawn_blocking(move || engine.workspace().leases(&[resolved.path]));
        if let Ok(Ok(leases)) = leases.await
            && let Some(lease) = leases.first()
        {
            json["lease"] = json!({ "holder": lease.holder, "endsMs": lease.ends_ms });
        }
    }

    fn file_request(&self, resolved: &AcpResolvedPath) -> AcpRunningFileCall<'_> {
        let path = self.session.absolute_path(resolved).unwrap_or_else(|| resolved.engine_path.clone());
        AcpRunningFileCall {
            proxy: self.proxy,
            session: self.session.clone(),
            resolved_path: resolved.clone(),
            requested_path: path,
            cancelled: self.cancelled.clone(),
        }
    }

    fn absolute_path(&self, root: usize, engine_path: &str) -> String {
        let resolved = self.session.path_in_root(root, engine_path);
        resolved.and_then(|resolved| self.session.absolute_path(&resolved)).unwrap_or_else(|| engine_path.to_owned())
    }

    fn to_acp_error(&self, error: &Error) -> AcpError {
        AcpError::from_error(error, self.params.path.as_deref().unwrap_or_default())
    }
}

/// The parameter `room` is the number of bytes of file text that still fit into the review response.
fn diff_content(path: &str, texts: Option<(Option<&str>, &str)>, room: &mut usize) -> Value {
    let note = |text: &str| json!([{ "type": "content", "content": { "type": "text", "text": text } }]);
    let Some((old, new)) = texts else {
        return note("no diff: not a text file, or the old version was pruned");
    };
    let size = old.map_or(0, str::len) + new.len();
    if size > *room {
        return note("too large to show here; request this file alone");
    }
    *room -= size;
    json!([{ "type": "diff", "path": path, "oldText": old, "newText": new }])
}
