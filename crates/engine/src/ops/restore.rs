//! `restore`: brings an item back from the trash, to its old path or to a free one. Never overwrites: with
//! `RestoreConflictPolicy::TrashExisting` the existing file goes to the trash. The recorded path is untrusted and is
//! resolved and authorized like any other.

use serde::Deserialize;
use stead_journal::{EntryRelation, PathState};
use stead_path::RelPath;

use super::{
    r#move::{self, Overwrite},
    outcome_builder::{OutcomeBuilder, format_iso_utc, shorten_for_error},
    planning,
};
use crate::{
    call_context::CallContext,
    call_options::RestoreConflictPolicy,
    caller::Principal,
    errors::{Error, ErrorKind},
    operation::{Operation, PathAccess, PlannedEffect, RequestedPath, ResolvedTarget},
    plan::{FileKind, Plan, PlannedChange},
    version::Version,
    workspace::{FileStat, FinalSymlink, TrashItem},
};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestoreArgs {
    trash: String,
    to: Option<String>,
}

impl Operation for RestoreArgs {
    fn requested_paths(&self, context: &CallContext<'_>) -> Result<Vec<RequestedPath>, Error> {
        let item = self.find_trash_item(context)?;
        Ok(vec![match &self.to {
            Some(to) => RequestedPath::from_argument(to, PathAccess::Write, FinalSymlink::Keep),
            None => RequestedPath::from_recorded_path(item.path, PathAccess::Write),
        }])
    }

    fn plan(&self, context: &CallContext<'_>, targets: &[ResolvedTarget]) -> Result<PlannedEffect, Error> {
        let target = &targets[0];
        let item = self.find_trash_item(context)?;
        let path = target.path.clone();
        let mut changes = planning::create_missing_parents(context, &path)?;
        if let Some(there) = target.stat {
            changes.push(trash_existing(context, &path, item.summary.kind, there)?);
        }
        changes.push(PlannedChange::Restore { trash: item.id.clone(), path: path.clone(), tree: item.summary });
        let plan = Plan::with_link(changes, EntryRelation::Restores(item.id.clone()));
        let version = version_when_removed(context, &item)?;
        Ok(PlannedEffect::Files {
            plan,
            build_outcome: Box::new(move |receipt| restore_outcome(&path, &item, version, receipt)),
        })
    }
}

/// Moves an existing file to the trash, if the call options allow it and both are files.
fn trash_existing(
    context: &CallContext<'_>,
    path: &RelPath,
    comes: FileKind,
    there: FileStat,
) -> Result<PlannedChange, Error> {
    match context.options.restore_conflict {
        RestoreConflictPolicy::Refuse => Err(Error::new(ErrorKind::Exists, format!("{path} already exists"))
            .with_next_step("pass to with a free path; restore never overwrites")
            .with_detail("path", path.to_string())
            .with_detail("type", super::stat::file_kind_name(there.kind))),
        RestoreConflictPolicy::TrashExisting => {
            r#move::require_replaceable(path, comes, there.kind, Overwrite::Yes)?;
            Ok(r#move::move_to_trash(context, path, context.observe_version(path)?, there))
        }
    }
}

fn restore_outcome(
    path: &RelPath,
    item: &TrashItem,
    version: Option<Version>,
    receipt: &crate::workspace::CommitReceipt,
) -> crate::engine::CallOutcome {
    let rev = format!("r{}", receipt.entry);
    let text = format!("restored {path} ({}, {rev})", planning::describe_tree_size(&item.summary));
    OutcomeBuilder::new()
        .with_field("path", path.to_string())
        .with_field("trash", item.id.clone())
        .with_field("from", item.path.to_string())
        .with_some("version", version.map(|version| version.to_string()))
        .with_field("rev", rev)
        .with_field("files", item.summary.files)
        .with_field("bytes", item.summary.bytes)
        .with_some("replaced", receipt.trash_ids.first().cloned())
        .with_receipt(receipt)
        .build_one_line(text)
}

impl RestoreArgs {
    /// The requested item, if the caller may restore it.
    fn find_trash_item(&self, context: &CallContext<'_>) -> Result<TrashItem, Error> {
        let shown = shorten_for_error(&self.trash);
        let found = match context.workspace().trash_item(&self.trash)? {
            Some(item) => Some(item),
            None => self.newest_item_at_path(context)?,
        };
        let item = found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound, format!("there is no item {shown} in the trash"))
                .with_next_step("call history to find the removal; the item may have expired")
        })?;
        let owned = match &context.caller.principal {
            Principal::User(_) | Principal::System | Principal::External => true,
            Principal::Agent(_) => item.owner == context.caller.principal.to_string(),
        };
        if !owned {
            return Err(Error::new(ErrorKind::NotOwner, format!("{shown} was removed by another principal"))
                .with_next_step("ask its owner or a person to restore it"));
        }
        if item.retain_until_ms < context.workspace().now_ms() {
            return Err(Error::new(
                ErrorKind::Expired,
                format!("{shown} expired at {}", format_iso_utc(item.retain_until_ms)),
            )
            .with_next_step("ask a person for a backup"));
        }
        Ok(item)
    }
}

impl RestoreArgs {
    /// The item last removed from the path that is given instead of an id. An agent sees only its own trash.
    fn newest_item_at_path(&self, context: &CallContext<'_>) -> Result<Option<TrashItem>, Error> {
        let profile = context.workspace().profile();
        let Ok(spelled) = stead_path::parse_path(&self.trash, &profile.root_spellings, &context.options.path_spelling)
        else {
            return Ok(None);
        };
        let owner = match &context.caller.principal {
            Principal::User(_) | Principal::System | Principal::External => None,
            agent @ Principal::Agent(_) => Some(agent),
        };
        let items = context.workspace().trash(owner)?;
        Ok(items.into_iter().find(|item| item.path == spelled.path))
    }
}

/// The version of a removed file, if the removal recorded it.
fn version_when_removed(context: &CallContext<'_>, item: &TrashItem) -> Result<Option<Version>, Error> {
    if item.summary.kind != FileKind::File {
        return Ok(None);
    }
    let Some(stored) = context.workspace().entry(item.entry)? else { return Ok(None) };
    let wire = item.path.to_wire();
    Ok(stored.entry.changes.iter().filter(|change| change.path == wire).find_map(|change| match &change.before {
        PathState::File { version, .. } => Some(Version(*version)),
        PathState::Tree { version, .. } => version.map(Version),
        PathState::Absent | PathState::Directory { .. } | PathState::Link { .. } | PathState::Unknown { .. } => None,
    }))
}
