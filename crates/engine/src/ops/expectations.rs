//! The current state of a path, as a plan needs it: what the commit must find there, and the size of the tree. Shared
//! by operations that move, remove or replace. Never writes.

use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    call_options::CopyMoveScope,
    errors::{Error, ErrorKind},
    limits,
    operation::ResolvedTarget,
    plan::{CommitExpectation, FileKind, ObservedVersion, TreeSummary},
    workspace::FileStat,
};

/// Permission bits that a plan may set: no set-id and no sticky bit.
pub(crate) const PERMISSION_BITS: u32 = 0o777;

/// What a commit must find at a path whose state is `stat`.
pub(crate) fn expectation_at(
    context: &CallContext<'_>,
    path: &RelPath,
    stat: FileStat,
    seen: Option<ObservedVersion>,
) -> Result<CommitExpectation, Error> {
    match (stat.kind, seen) {
        (FileKind::File, Some(seen)) => Ok(CommitExpectation::File(seen)),
        (FileKind::File, None) => Ok(CommitExpectation::File(context.observe_version(path)?)),
        (FileKind::Directory | FileKind::Link | FileKind::Special, _) => {
            Ok(CommitExpectation::SameEntry(stat.identity))
        }
    }
}

/// Counts an entry and everything below it that a path can name.
pub(crate) fn count_tree(context: &CallContext<'_>, path: &RelPath, stat: FileStat) -> Result<TreeSummary, Error> {
    context.walk_skipping_deep_entries(path, stat, &mut |_| Ok(()))
}

/// Rejects entries that the call options do not allow to copy or move.
pub(crate) fn require_movable(context: &CallContext<'_>, target: &ResolvedTarget, stat: FileStat) -> Result<(), Error> {
    let path = &target.path;
    match (context.options.copy_move_scope, stat.kind) {
        (CopyMoveScope::FilesAndTrees, _) | (CopyMoveScope::FilesOnly, FileKind::File) => Ok(()),
        (CopyMoveScope::FilesOnly, FileKind::Directory) => {
            Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
                .with_next_step("copy or move its files one by one"))
        }
        (CopyMoveScope::FilesOnly, FileKind::Link | FileKind::Special) => {
            Err(Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
                .with_next_step("only regular files can be copied or moved"))
        }
    }
}

pub(crate) fn require_present(target: &ResolvedTarget) -> Result<FileStat, Error> {
    target.stat.ok_or_else(|| {
        let parent = target.path.parent().unwrap_or_default();
        Error::new(ErrorKind::NotFound, format!("{} does not exist", target.path))
            .with_next_step(format!("call list with path {parent} to see what is there"))
    })
}

/// Replaces the error of a read that failed for its size: a change needs the whole file, so reading a range does not
/// help.
pub(crate) fn too_large_to_change_error(path: &RelPath, error: Error) -> Error {
    if error.kind != ErrorKind::TooLarge {
        return error;
    }
    let most = limits::WRITE_BYTES_MAX;
    Error::new(ErrorKind::TooLarge, format!("{path} has more than {most} bytes, the limit for changes"))
        .with_next_step("write to another file, or ask a person to change it with another program")
        .with_detail("limit_bytes", most)
}

pub(crate) fn expected_version(expect: &CommitExpectation) -> Option<ObservedVersion> {
    match expect {
        CommitExpectation::File(seen) => Some(*seen),
        CommitExpectation::Absent | CommitExpectation::SameEntry(_) => None,
    }
}

/// For example `3 files, 1200 bytes`.
pub(crate) fn describe_tree_size(tree: &TreeSummary) -> String {
    let files = if tree.files == 1 { "file" } else { "files" };
    format!("{} {files}, {} bytes", tree.files, tree.bytes)
}
