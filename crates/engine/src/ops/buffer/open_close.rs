//! With `buffer.open`, an editor registers its text of a file, or resumes a draft of an editor that has disconnected.
//! `buffer.close` and `buffer.drop` discard the unsaved text of a buffer or draft and leave the file on disk unchanged.

use serde::{Deserialize, Serialize};

use crate::{
    buffers::{BufferEditorConnectionState, BufferStoreRequest, EditorBufferMetadata},
    call_context::CallContext,
    caller::CallerResourceLifetime,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{
        Operation, OperationPlanningResult, PathAccessRequest, PlanResult, RequestedAccessKind, ResolvedTarget,
    },
    ops::{
        BufferListArgs,
        buffer::{
            BufferFields, editor_text, open_elsewhere_error, read_saved_file, require_own_buffer,
            require_person_or_editor, saved_version,
        },
        text_pages::shorten_for_error,
    },
    outcome::{OperationOutcome, RecordedEntryFields},
    resolve,
    tree::FileBytesWithVersion,
    version::{BaseVersion, Version},
    workspace::CommitReceipt,
};

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferOpenArgs {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BufferOpenOutcome {
    #[serde(flatten)]
    pub buffer: BufferFields,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drafts: Vec<BufferFields>,
    /// The text of the draft that the call resumed; `None` if the call opened a new buffer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
}

impl OperationOutcome for BufferOpenOutcome {}

impl Operation for BufferOpenArgs {
    type Paths = PathAccessRequest;
    type Outcome = BufferOpenOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_or_editor(context)?;
        require_connection(context)?;
        Ok(PathAccessRequest::read_locked(&self.path))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        if let Some(open) = context.open_buffer(&target.path)? {
            return Err(open_elsewhere_error(&open));
        }
        let file = read_saved_file(context, target)?;
        let drafts = self.find_drafts(context, target)?;
        match (&self.text, &self.draft) {
            (Some(_), Some(_)) => Err(Error::new(ErrorKind::BadRequest, "text and draft cannot be combined")
                .with_next_step("pass only one of them")),
            (Some(text), None) => self.plan_open(context, target, file, text, drafts),
            (None, _) => resume_draft(context, target, file, drafts),
        }
    }
}

impl BufferOpenArgs {
    fn find_drafts(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
    ) -> Result<Vec<EditorBufferMetadata>, Error> {
        let owner = context.caller.principal.to_string();
        let mut drafts = context.drafts(&target.path)?;
        drafts.retain(|draft| draft.owner == owner && draft.open_state == BufferEditorConnectionState::Draft);
        drafts.retain(|draft| self.draft.as_ref().is_none_or(|id| draft.id == *id));
        drafts.sort_by_key(|draft| std::cmp::Reverse(draft.changed_ms));
        Ok(drafts)
    }

    fn plan_open(
        &self,
        context: &CallContext<'_>,
        target: &ResolvedTarget,
        file: Option<FileBytesWithVersion>,
        text: &str,
        mut drafts: Vec<EditorBufferMetadata>,
    ) -> PlanResult<Self> {
        let saved = file.as_ref().map(|file| file.version);
        let base = self.resolve_base(context, target, saved)?;
        let (text, line_endings) =
            editor_text::encode_editor_text(text, file.as_ref().map(|file| file.bytes.as_slice()))?;
        let replaced_drafts = superseded_drafts(context, target, saved, Version::hash_bytes(&text))?;
        drafts.retain(|draft| !replaced_drafts.contains(&draft.id));
        let path = target.path.clone();
        let request = BufferStoreRequest::Open { path, text, base, line_endings, replaced_drafts };
        let build_outcome = move |buffer: &EditorBufferMetadata, receipt: &CommitReceipt| {
            let shown = drafts.iter().take(limits::DRAFTS_SHOWN_MAX);
            BufferOpenOutcome {
                buffer: BufferFields::new(buffer, saved),
                drafts: shown.map(|draft| BufferFields::new(draft, saved)).collect(),
                text: None,
                recorded: receipt.into(),
            }
        };
        Ok(OperationPlanningResult::Buffer { request, build_outcome: Box::new(build_outcome) })
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
                let matching = saved.filter(|saved| saved.to_string().starts_with(&digits));
                Some(matching.ok_or_else(|| {
                    Error::new(ErrorKind::Stale, format!("{} changed since version {digits}", target.path))
                        .with_next_step("pass the full version, or load the file again")
                })?)
            }
        })
    }
}

/// Finds the drafts that a new buffer makes superfluous: drafts with the same text or without unsaved text.
fn superseded_drafts(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    saved: Option<Version>,
    text: Version,
) -> Result<Vec<String>, Error> {
    let owner = context.caller.principal.to_string();
    let mut drafts = context.buffers()?;
    drafts.retain(|draft| {
        let is_own =
            draft.owner == owner && draft.open_state == BufferEditorConnectionState::Draft && draft.path == target.path;
        is_own && (draft.version == text || !draft.is_unsaved(saved))
    });
    Ok(drafts.into_iter().map(|draft| draft.id).collect())
}

/// Refuses a call without a lasting connection, because buffers are closed when the connection ends.
fn require_connection(context: &CallContext<'_>) -> Result<(), Error> {
    match context.caller.lifetime {
        CallerResourceLifetime::Process | CallerResourceLifetime::Connection(_) => Ok(()),
        CallerResourceLifetime::SingleCall => Err(Error::new(
            ErrorKind::BadRequest,
            "a buffer requires a persistent connection, but this call is a single request",
        )
        .with_next_step("use JSON-RPC over a WebSocket, or stead rpc")),
    }
}

fn resume_draft(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    file: Option<FileBytesWithVersion>,
    drafts: Vec<EditorBufferMetadata>,
) -> PlanResult<BufferOpenArgs> {
    let none = || {
        Error::new(ErrorKind::NotFound, format!("there is no draft of {} to resume", target.path))
            .with_next_step("pass text, the text of the editor")
    };
    let draft = drafts.into_iter().next().ok_or_else(none)?;
    let texts = context.workspace().buffer_text(&draft.id)?.ok_or_else(none)?;
    let text = editor_text::decode_for_editor(&texts.text, draft.line_endings)?;
    let saved = file.map(|file| file.version);
    let build_outcome = move |buffer: &EditorBufferMetadata, receipt: &CommitReceipt| BufferOpenOutcome {
        buffer: BufferFields::new(buffer, saved),
        drafts: Vec::new(),
        text: Some(text),
        recorded: receipt.into(),
    };
    Ok(OperationPlanningResult::Buffer {
        request: BufferStoreRequest::ResumeDraft { id: draft.id },
        build_outcome: Box::new(build_outcome),
    })
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferCloseArgs {
    pub path: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferDraftDropArgs {
    pub draft: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BufferCloseOutcome {
    #[serde(flatten)]
    pub buffer: BufferFields,
    pub discarded: bool,
    #[serde(flatten)]
    pub recorded: RecordedEntryFields,
    #[serde(skip)]
    pub kind: ClosedBufferOrDraftKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedBufferOrDraftKind {
    OpenBuffer,
    Draft,
}

impl OperationOutcome for BufferCloseOutcome {}

impl Operation for BufferCloseArgs {
    type Paths = PathAccessRequest;
    type Outcome = BufferCloseOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_or_editor(context)?;
        Ok(PathAccessRequest::read_locked(&self.path))
    }

    fn plan(&self, context: &CallContext<'_>, target: &ResolvedTarget) -> PlanResult<Self> {
        let buffer = require_own_buffer(context, &target.path)?;
        let saved = saved_version(context, &buffer.path);
        Ok(plan_close(&buffer, saved, ClosedBufferOrDraftKind::OpenBuffer))
    }
}

impl Operation for BufferDraftDropArgs {
    type Paths = PathAccessRequest;
    type Outcome = BufferCloseOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_or_editor(context)?;
        Ok(PathAccessRequest::from_recorded_path(self.find_draft(context)?.path, RequestedAccessKind::ReadLocked))
    }

    fn plan(&self, context: &CallContext<'_>, _target: &ResolvedTarget) -> PlanResult<Self> {
        let draft = self.find_draft(context)?;
        Ok(plan_close(&draft, saved_version(context, &draft.path), ClosedBufferOrDraftKind::Draft))
    }
}

impl BufferDraftDropArgs {
    fn find_draft(&self, context: &CallContext<'_>) -> Result<EditorBufferMetadata, Error> {
        let found = context.buffers()?.into_iter().find(|buffer| buffer.id == self.draft);
        let draft = found
            .filter(|buffer| buffer.open_state == BufferEditorConnectionState::Draft && context.may_read(&buffer.path));
        let draft = draft.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("draft {} does not exist", shorten_for_error(&self.draft)))
                .with_next_step(NextStep::call(BufferListArgs::default(), "see the drafts"))
        })?;
        if draft.owner == context.caller.principal.to_string() {
            return Ok(draft);
        }
        Err(Error::new(ErrorKind::NotOwner, format!("draft {} belongs to {}", draft.id, draft.owner))
            .with_next_step(NextStep::call(BufferListArgs::default(), "see your own drafts")))
    }
}

fn plan_close(
    buffer: &EditorBufferMetadata,
    saved: Option<Version>,
    kind: ClosedBufferOrDraftKind,
) -> OperationPlanningResult<BufferCloseOutcome> {
    let discarded = buffer.is_unsaved(saved);
    let build_outcome = move |buffer: &EditorBufferMetadata, receipt: &CommitReceipt| BufferCloseOutcome {
        buffer: BufferFields::new(buffer, saved),
        discarded,
        recorded: receipt.into(),
        kind,
    };
    OperationPlanningResult::Buffer {
        request: BufferStoreRequest::Close { id: buffer.id.clone() },
        build_outcome: Box::new(build_outcome),
    }
}
