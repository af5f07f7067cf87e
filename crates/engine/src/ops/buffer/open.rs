//! `buffer.open`: an editor registers its text of a file, or resumes a draft that an editor left. Changes nothing on
//! disk.

use serde::Deserialize;

use super::{describe_buffer, encoding, read_saved_file, require_person_or_editor};
use crate::{
    buffers::{Buffer, BufferOpenState, BufferStoreRequest},
    call_context::CallContext,
    caller::CallerLifetime,
    errors::{Error, ErrorKind},
    limits,
    operation::{Operation, PlannedEffect, RequestedPath, ResolvedTarget},
    resolve,
    version::{BaseVersion, Version},
    workspace::{CommitReceipt, FileBytes},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BufferOpenArgs {
    path: String,
    text: Option<String>,
    base: Option<String>,
    draft: Option<String>,
}

impl Operation for BufferOpenArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        require_person_or_editor(context)?;
        require_connection(context)?;
        Ok(vec![RequestedPath::read_locked(&self.path)])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let target = &targets[0];
        if let Some(open) = context.open_buffer(&target.path)? {
            return Err(super::open_elsewhere_error(&open));
        }
        let file = read_saved_file(context, target)?;
        let left = self.find_drafts(context, target)?;
        match (&self.text, &self.draft) {
            (Some(_), Some(_)) => {
                Err(Error::new(ErrorKind::BadRequest, "text and draft cannot be combined").with_next_step("omit text"))
            }
            (Some(text), None) => self.plan_open(context, target, file, text, left),
            (None, _) => resume_draft(context, target, file, left),
        }
    }
}

impl BufferOpenArgs {
    /// The caller's drafts of the file, newest first; only the requested draft if one is given.
    fn find_drafts(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> Result<Vec<Buffer>, Error> {
        let owner = context.caller.principal.to_string();
        let mut drafts = context.drafts(&target.path)?;
        drafts.retain(|draft| draft.owner == owner && draft.open_state == BufferOpenState::Draft);
        drafts.retain(|draft| self.draft.as_ref().is_none_or(|id| draft.id == *id));
        drafts.sort_by_key(|draft| std::cmp::Reverse(draft.changed_ms));
        Ok(drafts)
    }

    fn plan_open(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        file: Option<FileBytes>,
        text: &str,
        mut left: Vec<Buffer>,
    ) -> Result<PlannedEffect, Error> {
        let saved = file.as_ref().map(|file| file.version);
        let base = self.resolve_base(context, target, saved)?;
        let (text, endings) = encoding::encode_editor_text(text, file.as_ref().map(|file| file.bytes.as_slice()))?;
        let instead_of = superseded_drafts(context, target, saved, Version::hash_bytes(&text))?;
        left.retain(|draft| !instead_of.contains(&draft.id));
        let request = BufferStoreRequest::Open {
            path: target.path.clone(),
            text,
            base,
            line_endings: endings,
            replaced_drafts: instead_of,
        };
        let build_outcome = move |buffer: &Buffer, receipt: &CommitReceipt| {
            let drafts: Vec<serde_json::Value> = left
                .iter()
                .take(limits::DRAFTS_SHOWN_MAX)
                .map(|draft| serde_json::Value::Object(describe_buffer(draft, saved).into_json()))
                .collect();
            let line = format!("opened {} at revision {}", buffer.path, buffer.revision);
            describe_buffer(buffer, saved)
                .with_some("drafts", (!drafts.is_empty()).then_some(drafts))
                .with_receipt(receipt)
                .build_one_line(line)
        };
        Ok(PlannedEffect::Buffer { request, build_outcome: Box::new(build_outcome) })
    }

    fn resolve_base(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        saved: Option<Version>,
    ) -> Result<Option<Version>, Error> {
        let Some(written) = &self.base else { return Ok(saved) };
        Ok(match BaseVersion::parse(written)? {
            BaseVersion::Absent => None,
            BaseVersion::Version(version) => Some(version),
            BaseVersion::Rev(number) => Some(resolve::version_at(context, number, &target.path)?),
            BaseVersion::HashPrefix(digits) => {
                let fits = saved.filter(|saved| saved.to_string().starts_with(&digits));
                Some(fits.ok_or_else(|| {
                    Error::new(ErrorKind::Stale, format!("{} changed since that version", target.path))
                        .with_next_step("pass the full version, or load the file again")
                })?)
            }
        })
    }
}

/// The caller's drafts that a buffer with this text replaces, and those without unsaved text: an editor that
/// reconnects leaves one each time.
fn superseded_drafts(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    saved: Option<Version>,
    text: Version,
) -> Result<Vec<String>, Error> {
    let owner = context.caller.principal.to_string();
    let mut drafts = context.buffers()?;
    drafts.retain(|draft| {
        let is_own = draft.owner == owner && draft.open_state == BufferOpenState::Draft && draft.path == target.path;
        is_own && (draft.version == text || !draft.is_unsaved(saved))
    });
    Ok(drafts.into_iter().map(|draft| draft.id).collect())
}

/// Buffers need a connection whose end can be detected.
fn require_connection(context: &CallContext<'_>) -> Result<(), Error> {
    match context.caller.lifetime {
        CallerLifetime::Process | CallerLifetime::Connection(_) => Ok(()),
        CallerLifetime::SingleCall => Err(Error::new(
            ErrorKind::BadRequest,
            "buffers need a persistent connection; this call came as a single request",
        )
        .with_next_step("use JSON-RPC over a WebSocket, or stead rpc")),
    }
}

/// Resumes the caller's newest draft.
fn resume_draft(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    file: Option<FileBytes>,
    left: Vec<Buffer>,
) -> Result<PlannedEffect, Error> {
    let none = || {
        Error::new(ErrorKind::NotFound, format!("there is no draft of {} to resume", target.path))
            .with_next_step("pass the editor's text")
    };
    let draft = left.into_iter().next().ok_or_else(none)?;
    let texts = context.workspace().buffer_text(&draft.id)?.ok_or_else(none)?;
    let text = encoding::decode_for_editor(&texts.text, draft.line_endings)?;
    let saved = file.map(|file| file.version);
    let build_outcome = move |buffer: &Buffer, receipt: &CommitReceipt| {
        let line = format!("resumed draft {} of {}", buffer.id, buffer.path);
        describe_buffer(buffer, saved).with_field("text", text).with_receipt(receipt).build_one_line(line)
    };
    Ok(PlannedEffect::Buffer {
        request: BufferStoreRequest::ResumeDraft { id: draft.id },
        build_outcome: Box::new(build_outcome),
    })
}
