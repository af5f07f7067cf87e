//! Operations of an editor on its open buffers. Only people and their editors have buffers; agents see the unsaved
//! text through `read` and `write`. Owns buffer lookup and the fields that describe a buffer.

mod change;
mod close;
mod encoding;
mod list;
mod open;
mod save;
mod text_edits;

use stead_path::RelPath;

pub(crate) use self::{
    change::BufferChangeArgs,
    close::{BufferCloseArgs, BufferDropArgs},
    list::BufferListArgs,
    open::BufferOpenArgs,
    save::BufferSaveArgs,
};
use super::outcome_builder::{OutcomeBuilder, format_iso_utc};
use crate::{
    buffers::{Buffer, BufferOpenState, BufferText},
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    limits,
    operation::ResolvedTarget,
    plan::FileKind,
    version::Version,
    workspace::{BytesToRead, FileBytes},
};

fn require_person_or_editor(context: &CallContext<'_>) -> Result<(), Error> {
    match &context.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::External => {
            Err(Error::new(ErrorKind::PolicyDenied, "only a person's editor can open buffers")
                .with_next_step("use read and write; they work on unsaved text"))
        }
    }
}

fn read_saved_file(context: &CallContext<'_>, target: &ResolvedTarget) -> Result<Option<FileBytes>, Error> {
    let path = &target.path;
    match target.stat.map(|stat| stat.kind) {
        None => Ok(None),
        Some(FileKind::File) => {
            let want = BytesToRead::Whole { limit_bytes: limits::BUFFER_BYTES_MAX };
            context.workspace().read(path, want).map(Some)
        }
        Some(FileKind::Directory | FileKind::Link | FileKind::Special) => {
            super::read::require_file(target).map(|_| None)
        }
    }
}

fn require_own_buffer(context: &CallContext<'_>, path: &RelPath) -> Result<Buffer, Error> {
    let buffer = context.open_buffer(path)?.ok_or_else(|| no_buffer_error(context, path))?;
    let owner = context.caller.principal.to_string();
    if buffer.owner == owner && buffer.open_state == BufferOpenState::OpenHere {
        return Ok(buffer);
    }
    Err(open_elsewhere_error(&buffer))
}

fn own_buffer_text(context: &CallContext<'_>, path: &RelPath) -> Result<(Buffer, BufferText), Error> {
    let buffer = require_own_buffer(context, path)?;
    let texts = context.workspace().buffer_text(&buffer.id)?.ok_or_else(|| no_buffer_error(context, path))?;
    Ok((buffer, texts))
}

/// The error for a file that is not open; names the new path if the buffer was moved.
fn no_buffer_error(context: &CallContext<'_>, path: &RelPath) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("{path} is not open")).with_detail("path", path.to_string());
    match super::older_revisions::find_removal_or_move(context, path) {
        Some(super::older_revisions::RemovalOrMove::MovedTo(to)) if context.may_read(&to) => error
            .with_next_step(format!("the file and its buffer were moved: pass path {to}"))
            .with_detail("moved_to", to.to_string()),
        Some(_) | None => error.with_next_step("call buffer.open first; call buffer.list to see open buffers"),
    }
}

fn open_elsewhere_error(buffer: &Buffer) -> Error {
    let (path, owner) = (&buffer.path, &buffer.owner);
    Error::new(ErrorKind::Exists, format!("{path} is open in another editor of {owner}"))
        .with_next_step("close it there first")
        .with_detail("path", path.to_string())
        .with_detail("owner", owner.clone())
        .with_detail("buffer", buffer.id.clone())
}

fn describe_buffer(buffer: &Buffer, saved: Option<Version>) -> OutcomeBuilder {
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

fn buffer_state_name(buffer: &Buffer, saved: Option<Version>) -> &'static str {
    match (buffer.open_state, buffer.is_unsaved(saved)) {
        (BufferOpenState::Draft, _) => "draft",
        (BufferOpenState::OpenHere | BufferOpenState::OpenInOtherProcess, true) => "unsaved",
        (BufferOpenState::OpenHere | BufferOpenState::OpenInOtherProcess, false) => "clean",
    }
}

fn saved_version(context: &CallContext<'_>, path: &RelPath) -> Option<Version> {
    context.workspace().read(path, BytesToRead::VersionOnly).ok().map(|file| file.version)
}
