//! Operations of an editor on its open buffers, which only people and their editors have. Agents see the unsaved text
//! of a buffer through `read` and `write`.

mod change;
mod editor_text;
mod open_close;
mod save;

use serde::Deserialize;
use stead_path::RelPath;

pub(crate) use self::{
    change::BufferChangeArgs,
    open_close::{BufferCloseArgs, BufferDraftDropArgs, BufferOpenArgs},
    save::BufferSaveArgs,
};
use crate::{
    buffers::{BufferEditorConnectionState, BufferWithText, EditorBufferMetadata},
    call_context::CallContext,
    caller::Principal,
    engine::CallOutcome,
    errors::{Error, ErrorKind},
    limits,
    operation::{
        Operation, OperationPlanningResult, PlanResult, RequestedPath, RequestedPathIndex, RequestedPaths,
        ResolvedTarget, ResolvedTargets,
    },
    ops::{
        older_revisions::{FileDisappearanceCause, find_removal_or_move},
        outcome_builder::{OutcomeBuilder, format_iso_utc},
        read,
    },
    plan::FileKind,
    version::Version,
    workspace::{BytesToRead, FileBytesWithVersion},
};

fn require_person_or_editor(context: &CallContext<'_>) -> Result<(), Error> {
    match &context.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::External => {
            Err(Error::new(ErrorKind::PolicyDenied, "only people and their editors can use buffers")
                .with_next_step("call read and write, which include unsaved text"))
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
    let error = Error::new(ErrorKind::NotFound, format!("{path} is not open in an editor"))
        .with_detail("path", path.to_string());
    match find_removal_or_move(context, path) {
        Some(FileDisappearanceCause::MovedTo(to)) if context.may_read(&to) => error
            .with_next_step(format!("the file and its buffer were moved: pass path {to}"))
            .with_detail("moved_to", to.to_string()),
        Some(_) | None => error.with_next_step("call buffer.open first; call buffer.list to see open buffers"),
    }
}

fn open_elsewhere_error(buffer: &EditorBufferMetadata) -> Error {
    let (path, owner) = (&buffer.path, &buffer.owner);
    Error::new(ErrorKind::Exists, format!("{path} is open in another editor of {owner}"))
        .with_next_step("close it in that editor first")
        .with_detail("path", path.to_string())
        .with_detail("owner", owner.clone())
        .with_detail("buffer", buffer.id.clone())
}

fn describe_buffer(buffer: &EditorBufferMetadata, saved: Option<Version>) -> OutcomeBuilder {
    OutcomeBuilder::new()
        .with_field("buffer", buffer.id.clone())
        .with_field("path", buffer.path.to_string())
        .with_field("owner", buffer.owner.clone())
        .with_field("state", buffer_state_name(buffer, saved))
        .with_field("revision", buffer.revision)
        .with_field("version", buffer.version.to_string())
        .with_some("saved", saved.map(|saved| saved.to_string()))
        .with_field("size", buffer.size)
        .with_field("changed", format_iso_utc(buffer.changed_ms))
}

fn buffer_state_name(buffer: &EditorBufferMetadata, saved: Option<Version>) -> &'static str {
    match (buffer.open_state, buffer.is_unsaved(saved)) {
        (BufferEditorConnectionState::Draft, _) => "draft",
        (BufferEditorConnectionState::OpenHere | BufferEditorConnectionState::OpenInOtherProcess, true) => "unsaved",
        (BufferEditorConnectionState::OpenHere | BufferEditorConnectionState::OpenInOtherProcess, false) => "clean",
    }
}

fn saved_version(context: &CallContext<'_>, path: &RelPath) -> Option<Version> {
    context.workspace().read(path, BytesToRead::VersionOnly).ok().map(|file| file.version)
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BufferListArgs {
    path: Option<String>,
}

impl Operation for BufferListArgs {
    type Resolved = Option<RequestedPathIndex>;
    type Outcome = CallOutcome;

    fn resolve(&self, context: &CallContext<'_>, paths: &mut RequestedPaths) -> Result<Self::Resolved, Error> {
        require_person_or_editor(context)?;
        Ok(self.path.as_deref().map(|path| paths.add(RequestedPath::read(path))))
    }

    fn plan(
        &self,
        context: &CallContext<'_>,
        path: Option<RequestedPathIndex>,
        targets: &ResolvedTargets,
    ) -> PlanResult<Self> {
        let mut buffers = context.buffers()?;
        buffers.retain(|buffer| context.may_read(&buffer.path));
        if let Some(target) = path.map(|slot| &targets[slot]) {
            buffers.retain(|buffer| buffer.path == target.path);
        }
        // A draft that equals the file on disk contains no unsaved text, so the list omits it.
        buffers.retain(|buffer| buffer.is_open() || buffer.is_unsaved(saved_version(context, &buffer.path)));
        let total = buffers.len();
        let mut lines = String::new();
        let mut rows = Vec::new();
        for buffer in buffers.iter().take(limits::BUFFERS_LISTED_MAX) {
            let saved = saved_version(context, &buffer.path);
            let text = if targets.is_empty() { None } else { own_editor_text(context, buffer)? };
            lines.push_str(&format!(
                "{} {} {} r{} {}\n",
                buffer.id,
                buffer_state_name(buffer, saved),
                buffer.path,
                buffer.revision,
                buffer.owner
            ));
            rows.push(describe_buffer(buffer, saved).with_some("text", text).into_json());
        }
        let omitted = total - rows.len();
        if total == 0 {
            lines.push_str("no open buffers\n");
        } else if omitted > 0 {
            lines.push_str(&format!("… and {omitted} more: pass a path\n"));
        }
        let outcome =
            OutcomeBuilder::new().with_field("buffers", rows).with_field("truncated", omitted > 0).build(lines);
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
