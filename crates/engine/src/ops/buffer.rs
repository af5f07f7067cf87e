//! The operations of an editor on its open buffers. For people and the editors they use: an agent has no buffer, it sees
//! theirs. Owns what they have in common: whose buffer is meant, and how one is shown.

mod change;
mod close;
mod form;
mod list;
mod open;
mod save;
mod typed;

use path::RelPath;

pub(crate) use self::{
    change::Change,
    close::{Close, Drop},
    list::List,
    open::Open,
    save::Save,
};
use super::answer::{Facts, iso_utc};
use crate::{
    buffers::{Buffer, BufferText, Standing},
    caller::Principal,
    failure::{Failure, Kind},
    limits,
    operation::Target,
    plan::Top,
    version::Version,
    view::View,
    workspace::{FileBytes, Want},
};

/// Only a person, or an editor in a person's name, has buffers.
fn refuse_others(view: &View<'_>) -> Result<(), Failure> {
    match &view.caller.principal {
        Principal::User(_) => Ok(()),
        Principal::Agent(_) | Principal::System | Principal::Outside => {
            Err(Failure::new(Kind::PolicyDenied, "only a person's editor has open buffers")
                .hint("read shows unsaved text and write goes to it; nothing else is needed"))
        }
    }
}

/// The file on disk; nothing when none is there.
fn on_disk(view: &View<'_>, target: &Target) -> Result<Option<FileBytes>, Failure> {
    let path = &target.path;
    match target.node.map(|node| node.top) {
        None => Ok(None),
        Some(Top::File) => {
            let want = Want::Whole { limit_bytes: limits::BUFFER_BYTES_MAX };
            view.workspace().read(path, want).map(Some)
        }
        Some(Top::Directory | Top::Link | Top::Special) => super::read::file_at(target).map(|_| None),
    }
}

/// The buffer that the caller has open of a file.
fn own(view: &View<'_>, path: &RelPath) -> Result<Buffer, Failure> {
    let buffer = view.open_buffer(path)?.ok_or_else(|| missing(view, path))?;
    let owner = view.caller.principal.to_string();
    if buffer.owner == owner && buffer.standing == Standing::Here {
        return Ok(buffer);
    }
    Err(elsewhere(&buffer))
}

/// The same with its text.
fn own_text(view: &View<'_>, path: &RelPath) -> Result<(Buffer, BufferText), Failure> {
    let buffer = own(view, path)?;
    let texts = view.workspace().buffer_text(&buffer.id)?.ok_or_else(|| missing(view, path))?;
    Ok((buffer, texts))
}

/// The failure when no buffer is open, with where it went if it was carried along.
fn missing(view: &View<'_>, path: &RelPath) -> Failure {
    let failure = Failure::new(Kind::NotFound, format!("{path} is not open")).fact("path", path.to_string());
    match super::older::left(view, path) {
        Some(super::older::Left::To(to)) if view.may_read(&to) => failure
            .hint(format!("it was moved, and its buffer with it: name {to}"))
            .fact("moved_to", to.to_string()),
        Some(_) | None => failure.hint("call buffer.open first; buffer.list shows what is open"),
    }
}

/// The failure when a file is open in another editor.
fn elsewhere(buffer: &Buffer) -> Failure {
    let (path, owner) = (&buffer.path, &buffer.owner);
    Failure::new(Kind::Exists, format!("{path} is open in another editor of {owner}"))
        .hint("close it there first")
        .fact("path", path.to_string())
        .fact("owner", owner.clone())
        .fact("buffer", buffer.id.clone())
}

/// What is said of a buffer everywhere.
fn shown(buffer: &Buffer, saved: Option<Version>) -> Facts {
    Facts::new()
        .with("buffer", buffer.id.clone())
        .with("path", buffer.path.to_string())
        .with("owner", buffer.owner.clone())
        .with("state", state(buffer, saved))
        .with("revision", buffer.revision)
        .with("version", buffer.version.to_string())
        .maybe("saved", saved.map(|saved| saved.to_string()))
        .with("size", buffer.size)
        .with("changed", iso_utc(buffer.changed_ms))
}

/// The word for how a buffer stands to its file.
fn state(buffer: &Buffer, saved: Option<Version>) -> &'static str {
    match (buffer.standing, buffer.is_unsaved(saved)) {
        (Standing::Draft, _) => "draft",
        (Standing::Here | Standing::Elsewhere, true) => "unsaved",
        (Standing::Here | Standing::Elsewhere, false) => "clean",
    }
}

/// The version of the file on disk; nothing when none is there.
fn saved_version(view: &View<'_>, path: &RelPath) -> Option<Version> {
    view.workspace().read(path, Want::Nothing).ok().map(|file| file.version)
}
