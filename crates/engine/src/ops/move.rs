//! `move`: renames a file, link or tree in one step. A symbolic link itself is moved, never its target. Only a file
//! can be replaced, only by a file, and only with `overwrite`; the replaced version is retained.

use serde::Deserialize;
use stead_path::RelPath;

use super::{outcome_builder::OutcomeBuilder, planning};
use crate::{
    call_context::CallContext,
    call_options::OverwrittenFilePolicy,
    errors::{Error, ErrorKind},
    operation::{Operation, PathAccess, PlannedEffect, RequestedPath, ResolvedTarget},
    plan::{CommitExpectation, FileKind, ObservedVersion, Plan, PlannedChange, TreeSummary},
    workspace::{FileStat, FinalSymlink},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MoveArgs {
    from: String,
    to: String,
    base: Option<String>,
    #[serde(default)]
    overwrite: bool,
}

impl Operation for MoveArgs {
    fn requested_paths(&self, _context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        let from = RequestedPath::from_argument(&self.from, PathAccess::Remove, FinalSymlink::Keep).including_subtree();
        let to = RequestedPath::from_argument(&self.to, PathAccess::Write, FinalSymlink::Keep);
        Ok(vec![from.with_base(self.base.as_deref())?, to])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let (source, destination) = (&targets[0], &targets[1]);
        let node = planning::require_present(source)?;
        planning::require_movable(context, source, node)?;
        let (from, to) = (source.path.clone(), destination.path.clone());
        if from == to {
            return match context.options.overwritten_file {
                OverwrittenFilePolicy::RetainVersion => unchanged_outcome(context, source, node),
                // A file is not moved to the trash to make room for itself.
                OverwrittenFilePolicy::MoveToTrash => {
                    Err(Error::new(ErrorKind::Exists, format!("{to} is both source and destination"))
                        .with_next_step("choose another path")
                        .with_detail("path", to.to_string())
                        .with_detail("reason", "same_place")
                        .with_detail("type", super::stat::file_kind_name(node.kind)))
                }
            };
        }
        if to.is_within(&from) && node.kind == FileKind::Directory {
            return Err(Error::new(ErrorKind::InvalidPath, format!("{from} cannot be moved into itself"))
                .with_next_step("choose a path outside of it"));
        }
        let over = self.expect_destination(context, node, destination)?;
        let expect = planning::expectation_at(context, &from, node, source.observed)?;
        let tree = planning::count_tree(context, &from, node)?;
        let moved = planning::expected_version(&expect);
        let replaced = over != CommitExpectation::Absent;
        let mut changes = planning::create_missing_parents(context, &to)?;
        let over = match (context.options.overwritten_file, over, destination.stat) {
            (OverwrittenFilePolicy::MoveToTrash, CommitExpectation::File(seen), Some(there)) => {
                changes.push(move_to_trash(context, &to, seen, there));
                CommitExpectation::Absent
            }
            (OverwrittenFilePolicy::RetainVersion | OverwrittenFilePolicy::MoveToTrash, over, _) => over,
        };
        changes.push(PlannedChange::Move {
            from: from.clone(),
            to: to.clone(),
            expectation: expect,
            replaced: over,
            tree,
        });
        Ok(PlannedEffect::Files {
            plan: Plan::new(changes),
            build_outcome: Box::new(move |receipt| {
                let rev = format!("r{}", receipt.entry);
                let text = format!("moved {from} to {to} ({}, {rev})", planning::describe_tree_size(&tree));
                OutcomeBuilder::new()
                    .with_field("from", from.to_string())
                    .with_field("path", to.to_string())
                    .with_some("version", moved.map(|seen| seen.version.to_string()))
                    .with_field("rev", rev)
                    .with_field("changed", true)
                    .with_field("replaced", replaced)
                    .with_field("files", tree.files)
                    .with_field("bytes", tree.bytes)
                    .with_some("trash", receipt.trash_ids.first().cloned())
                    .with_receipt(receipt)
                    .build_one_line(text)
            }),
        })
    }
}

/// Moves the entry at the destination to the trash.
pub(super) fn move_to_trash(
    context: &CallContext<'_>,
    path: &RelPath,
    seen: ObservedVersion,
    there: FileStat,
) -> PlannedChange {
    let keep_until_ms = context
        .workspace()
        .now_ms()
        .saturating_add(context.policy.policy.trash_retention_ms(&context.caller.principal));
    let tree = TreeSummary { kind: FileKind::File, files: 1, directories: 0, bytes: there.size };
    PlannedChange::Remove {
        path: path.clone(),
        expectation: CommitExpectation::File(seen),
        retain_until_ms: keep_until_ms,
        tree,
    }
}

impl MoveArgs {
    /// What the commit must find at the destination.
    fn expect_destination(
        &self,
        context: &CallContext<'_>,
        stat: FileStat,
        destination: &ResolvedTarget,
    ) -> Result<CommitExpectation, Error> {
        let Some(there) = destination.stat else { return Ok(CommitExpectation::Absent) };
        require_replaceable(&destination.path, stat.kind, there.kind, self.overwrite.into())?;
        Ok(CommitExpectation::File(context.observe_version(&destination.path)?))
    }
}

/// Whether the caller allows an existing file to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overwrite {
    No,
    Yes,
}

impl From<bool> for Overwrite {
    fn from(requested: bool) -> Self {
        if requested { Self::Yes } else { Self::No }
    }
}

/// Requires that a file replaces a file and that the caller allows it.
pub(crate) fn require_replaceable(
    path: &RelPath,
    new: FileKind,
    old: FileKind,
    overwrite: Overwrite,
) -> Result<(), Error> {
    let exists = |next_step: &str| {
        let error = Error::new(ErrorKind::Exists, format!("{path} already exists")).with_next_step(next_step);
        Err(error.with_detail("path", path.to_string()).with_detail("type", super::stat::file_kind_name(old)))
    };
    match (new, old, overwrite) {
        (FileKind::File, FileKind::File, Overwrite::Yes) => Ok(()),
        (FileKind::File, FileKind::File, Overwrite::No) => {
            exists("pass overwrite: true to replace it, or choose another path")
        }
        (_, FileKind::Directory, _) => exists("give the whole new path, with the new name at its end"),
        (_, FileKind::File | FileKind::Link | FileKind::Special, _) => {
            exists("choose another path; only a file can replace a file")
        }
    }
}

fn unchanged_outcome(
    context: &CallContext<'_>,
    source: &ResolvedTarget,
    stat: FileStat,
) -> Result<PlannedEffect, Error> {
    let seen: Option<ObservedVersion> =
        planning::expected_version(&planning::expectation_at(context, &source.path, stat, source.observed)?);
    let path = source.path.to_string();
    let answer = OutcomeBuilder::new()
        .with_field("from", path.clone())
        .with_field("path", path.clone())
        .with_some("version", seen.map(|seen| seen.version.to_string()))
        .with_some("rev", seen.map(|seen| context.revision_name(&source.path, &seen.version)))
        .with_field("changed", false)
        .build_one_line(format!("{path} is already there; nothing was changed"));
    Ok(PlannedEffect::Read { outcome: answer, bytes: 0 })
}
