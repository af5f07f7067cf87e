//! The sources of the bytes that a call shows or writes, and the one function that judges them. Sizes, versions and
//! names count as bytes.

use stead_path::RelPath;

use crate::{
    authorization::out_of_scope_error,
    call_context::CallContext,
    errors::{Error, ErrorKind},
    plan::{FileModeSource, PlannedChange, PlannedContent},
};

/// A place in the workspace that bytes come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ByteSource {
    /// The content, size, version or existence of a file, or where a symlink leads.
    File(RelPath),
    /// The names in a directory.
    Directory(RelPath),
    /// The kept content of an older version of a file.
    OlderVersion(RelPath),
    /// A removed file or tree, which had this path.
    TrashItem(RelPath),
    Entry(u64),
}

/// Where the bytes of a source go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ByteRelease<'a> {
    /// An operation asks for the bytes because its outcome shows them.
    Shown,
    /// The reply to the call, an outcome or an error, may contain the bytes of every source in the log of the call.
    Reply,
    /// A planned change writes the bytes. Bytes that stay in their own file are not released.
    Written,
    /// A planned change moves the file or tree, or restores it from the trash, to this path.
    MovedTo(&'a RelPath),
}

/// Decides whether the bytes of all these sources may go where they are to go.
///
/// The rules are those of release 0.1.0: a call that changes a file may show and copy what it has looked at for the
/// change, and stored versions, trash items and journal entries are judged by the operations.
pub(crate) fn judge_sources<'s>(
    context: &CallContext<'_>,
    sources: impl IntoIterator<Item = &'s ByteSource>,
    release: ByteRelease<'_>,
) -> Result<(), Error> {
    sources.into_iter().try_for_each(|source| match (release, source) {
        (ByteRelease::Shown, ByteSource::File(path)) if !context.may_read(path) => Err(out_of_scope_error("read")),
        (ByteRelease::MovedTo(to), ByteSource::File(from) | ByteSource::TrashItem(from))
            if !context.may_read(from) && context.may_traverse(to) =>
        {
            Err(Error::new(
                ErrorKind::OutOfScope,
                "you may not read the source, so it cannot be moved to a path that you may read",
            )
            .with_next_step("choose a destination outside the directories that you may read"))
        }
        (ByteRelease::Shown | ByteRelease::Reply | ByteRelease::Written | ByteRelease::MovedTo(_), _) => Ok(()),
    })
}

/// Judges the sources of a planned change. Bytes that the call itself gives have no source.
pub(crate) fn judge_change(context: &CallContext<'_>, change: &PlannedChange) -> Result<(), Error> {
    let (source, release) = match change {
        PlannedChange::Put { path, content: PlannedContent::CopyOf(from, _), .. }
        | PlannedChange::Put { path, mode: FileModeSource::CopyFrom(from, _), .. }
            if from != path =>
        {
            (ByteSource::File(from.clone()), ByteRelease::Written)
        }
        PlannedChange::Put { path, content: PlannedContent::Retained(_), .. } => {
            (ByteSource::OlderVersion(path.clone()), ByteRelease::Written)
        }
        PlannedChange::Move { from, to, .. } => (ByteSource::File(from.clone()), ByteRelease::MovedTo(to)),
        PlannedChange::Restore { trash, path, .. } => match context.workspace().trash_item(trash)? {
            Some(item) => (ByteSource::TrashItem(item.path), ByteRelease::MovedTo(path)),
            None => return Ok(()),
        },
        PlannedChange::Put { .. }
        | PlannedChange::MakeDirectory { .. }
        | PlannedChange::MakeLink { .. }
        | PlannedChange::Remove { .. }
        | PlannedChange::RemoveDirectory { .. } => return Ok(()),
    };
    judge_sources(context, [&source], release)
}
