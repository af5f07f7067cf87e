//! The operations of editors on open buffers, which agents cannot call. Agents read and change the unsaved text of a
//! buffer with `read` and `write`.

mod change;
mod editor_text;
mod open_close;
mod save;

use serde::{Deserialize, Serialize};
use stead_path::RelPath;

pub use self::{
    change::{BufferChangeArgs, BufferChangeOutcome},
    editor_text::BufferTextEdit,
    open_close::{
        BufferCloseArgs, BufferCloseOutcome, BufferDraftDropArgs, BufferOpenArgs, BufferOpenOutcome,
        ClosedBufferOrDraftKind,
    },
    save::{BufferSaveArgs, BufferSaveOutcome},
};
use crate::{
    buffers::{BufferEditorConnectionState, BufferWithText, EditorBufferMetadata},
    call_context::CallContext,
    caller::Principal,
    enum_words::enum_words,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{Operation, OperationPlanningResult, PathAccessRequest, PlanResult, ResolvedTarget},
    ops::{
        older_revisions::{FileDisappearanceCause, find_removal_or_move},
        read,
    },
    outcome::{Completeness, OperationOutcome, UtcTime},
    plan::FileKind,
    tree::{BytesToRead, FileBytesWithVersion},
    version::Version,
};

fn require_person_or_editor(context: &CallContext<'_>) -> Result<(), Error> {
    match &context.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::External => {
            Err(Error::new(ErrorKind::PolicyDenied, "only people and their editors can use buffers")
                .with_next_step("read and write the file: both include unsaved text"))
        }
    }
}

fn read_saved_file(context: &CallContext<'_>, target: &ResolvedTarget) -> Result<Option<FileBytesWithVersion>, Error> {
    let path = &target.path;
    match target.stat.map(|stat| stat.kind) {
        None => Ok(None),
        Some(FileKind::File) => {
            let extent = BytesToRead::Whole { limit_bytes: limits::BUFFER_BYTES_MAX };
            context.workspace().read(path, extent).map(Some)
        }
        Some(FileKind::Directory | FileKind::Link | FileKind::Special) => read::require_file(target).map(|_| None),
    }
}

fn require_own_buffer(context: &CallContext<'_>, path: &RelPath) -> Result<EditorBufferMetadata, Error> {
    let buffer = context.open_buffer(path)?.ok_or_else(|| no_buffer_error(context, path))?;
    let owner = context.caller.principal.to_string();
    if buffer.owner == owner && buffer.open_state == BufferEditorConnectionState::OpenHere {
        return Ok(buffer);
    }
    Err(open_elsewhere_error(&buffer))
}

fn own_buffer_text(context: &CallContext<'_>, path: &RelPath) -> Result<(EditorBufferMetadata, BufferWithText), Error> {
    let buffer = require_own_buffer(context, path)?;
    let texts = context.workspace().buffer_text(&buffer.id)?.ok_or_else(|| no_buffer_error(context, path))?;
    Ok((buffer, texts))
}

fn no_buffer_error(context: &CallContext<'_>, path: &RelPath) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("{path} is not open in an editor")).with_path(path.to_string());
    match find_removal_or_move(context, path) {
        Some(FileDisappearanceCause::MovedTo(to)) if context.may_read(&to) => error
            .with_next_step(format!("the file and its buffer were moved to {to}; use the new path"))
            .with_moved_to(to.to_string()),
        Some(_) | None => error.with_next_step(NextStep::call(BufferListArgs::default(), "see open buffers")),
    }
}

fn open_elsewhere_error(buffer: &EditorBufferMetadata) -> Error {
    let (path, owner) = (&buffer.path, &buffer.owner);
    Error::new(ErrorKind::Exists, format!("{path} is open in another editor of {owner}"))
        .with_next_step("close it in that editor first")
        .with_path(path.to_string())
        .with_owner(owner.clone())
        .with_buffer(buffer.id.clone())
}

/// The fields that describe an open buffer or a draft.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BufferFields {
    pub buffer: String,
    pub path: RelPath,
    pub owner: String,
    pub state: BufferUnsavedState,
    pub revision: u64,
    pub version: Version,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved: Option<Version>,
    pub size: u64,
    pub changed: UtcTime,
}

impl BufferFields {
    fn new(buffer: &EditorBufferMetadata, saved: Option<Version>) -> Self {
        Self {
            buffer: buffer.id.clone(),
            path: buffer.path.clone(),
            owner: buffer.owner.clone(),
            state: BufferUnsavedState::of_buffer(buffer, saved),
            revision: buffer.revision,
            version: buffer.version,
            saved,
            size: buffer.size,
            changed: UtcTime { unix_ms: buffer.changed_ms },
        }
    }
}

/// Whether a buffer has text that no file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BufferUnsavedState {
    Clean,
    Unsaved,
    /// No editor has the buffer open.
    Draft,
}

impl BufferUnsavedState {
    fn of_buffer(buffer: &EditorBufferMetadata, saved: Option<Version>) -> Self {
        match (buffer.is_open(), buffer.is_unsaved(saved)) {
            (false, _) => Self::Draft,
            (true, true) => Self::Unsaved,
            (true, false) => Self::Clean,
        }
    }
}

enum_words! { BufferUnsavedState: Clean "clean", Unsaved "unsaved", Draft "draft" }

fn saved_version(context: &CallContext<'_>, path: &RelPath) -> Option<Version> {
    context.workspace().read(path, BytesToRead::VersionOnly).ok().map(|file| file.version)
}

#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BufferListArgs {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BufferListOutcome {
    pub buffers: Vec<BufferListRow>,
    #[serde(flatten)]
    pub completeness: Completeness<BufferListArgs>,
    #[serde(skip)]
    pub omitted: usize,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct BufferListRow {
    #[serde(flatten)]
    pub buffer: BufferFields,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl OperationOutcome for BufferListOutcome {}

impl Operation for BufferListArgs {
    type Paths = Option<PathAccessRequest>;
    type Outcome = BufferListOutcome;

    fn resolve(&self, context: &CallContext<'_>) -> Result<Self::Paths, Error> {
        require_person_or_editor(context)?;
        Ok(self.path.as_deref().map(PathAccessRequest::read))
    }

    fn plan(&self, context: &CallContext<'_>, target: Option<&ResolvedTarget>) -> PlanResult<Self> {
        let mut buffers = context.buffers()?;
        buffers.retain(|buffer| context.may_read(&buffer.path));
        if let Some(target) = target {
            buffers.retain(|buffer| buffer.path == target.path);
        }
        // A draft that equals the file on disk contains no unsaved text, so the list omits it.
        buffers.retain(|buffer| buffer.is_open() || buffer.is_unsaved(saved_version(context, &buffer.path)));
        let omitted = buffers.len().saturating_sub(limits::BUFFERS_LISTED_MAX);
        let completeness = match omitted {
            0 => Completeness::Complete,
            _ => Completeness::narrowed_by("path", "BUFFERS_LISTED_MAX"),
        };
        let row = |buffer: &EditorBufferMetadata| {
            let text = if target.is_none() { None } else { own_editor_text(context, buffer)? };
            Ok(BufferListRow { buffer: BufferFields::new(buffer, saved_version(context, &buffer.path)), text })
        };
        let rows: Result<Vec<_>, Error> = buffers.iter().take(limits::BUFFERS_LISTED_MAX).map(row).collect();
        let outcome = BufferListOutcome { buffers: rows?, completeness, omitted };
        Ok(OperationPlanningResult::Read { outcome, bytes: 0 })
    }
}

/// The text of a buffer is shown only to its owner.
fn own_editor_text(context: &CallContext<'_>, buffer: &EditorBufferMetadata) -> Result<Option<String>, Error> {
    if buffer.owner != context.caller.principal.to_string() {
        return Ok(None);
    }
    let texts = context.workspace().buffer_text(&buffer.id)?;
    texts.map(|texts| editor_text::decode_for_editor(&texts.text, texts.buffer.line_endings)).transpose()
}
