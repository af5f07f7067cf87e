//! Checks the entries below a tree that is moved, removed or restored. A plan names only its top; every entry is
//! checked at its destination, so that moving a harmless tree cannot create a protected path.

use stead_path::RelPath;

use crate::{
    authorization,
    call_context::CallContext,
    caller::Principal,
    errors::{Error, ErrorKind},
    plan::{FileKind, PlannedChange},
    policy::{AccessRight, PolicyAction, PolicyVerdict, UncheckedSubtree},
};

/// Checks the entries below one change.
pub(crate) fn check_subtree(context: &CallContext<'_>, change: &PlannedChange) -> Result<PolicyVerdict, Error> {
    match change {
        PlannedChange::Move { from, to, tree, .. } => {
            refuse_moving_server_files(context, from)?;
            refuse_exposing_unreadable(context, from, to)?;
            if tree.kind == FileKind::Directory {
                check_moved_tree(context, from, to)
            } else {
                Ok(PolicyVerdict::UNRESTRICTED)
            }
        }
        PlannedChange::Remove { path, tree, .. } => {
            refuse_moving_server_files(context, path)?;
            if tree.kind == FileKind::Directory {
                check_removed_tree(context, path)
            } else {
                Ok(PolicyVerdict::UNRESTRICTED)
            }
        }
        PlannedChange::Restore { trash, path, tree } => {
            if let Some(item) = context.workspace().trash_item(trash)? {
                refuse_exposing_unreadable(context, &item.path, path)?;
            }
            if tree.kind == FileKind::Directory {
                check_restored_tree(context, trash, path)
            } else {
                Ok(PolicyVerdict::UNRESTRICTED)
            }
        }
        PlannedChange::Put { .. }
        | PlannedChange::MakeDirectory { .. }
        | PlannedChange::MakeLink { .. }
        | PlannedChange::RemoveDirectory { .. } => Ok(PolicyVerdict::UNRESTRICTED),
    }
}

/// Refuses to move an unreadable entry to a path where the caller could read it.
fn refuse_exposing_unreadable(context: &CallContext<'_>, from: &RelPath, to: &RelPath) -> Result<(), Error> {
    if context.may_read(from) || !context.may_traverse(to) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::OutOfScope, "the path is outside your readable scope")
        .with_next_step("choose a destination that you cannot read either"))
}

/// Refuses to move a directory that contains the server's files, or, for an agent, the policy file.
fn refuse_moving_server_files(context: &CallContext<'_>, path: &RelPath) -> Result<(), Error> {
    if context.workspace().profile().internal_paths.iter().any(|own| own.is_within(path)) {
        return Err(Error::new(ErrorKind::ProtectedPath, format!("{path} contains files that belong to the server")));
    }
    if is_bound_by_policy(&context.caller.principal) && context.policy.contains_policy_file(path) {
        return Err(authorization::policy_file_error(path));
    }
    Ok(())
}

/// Checks every entry of a moved tree at its source and its destination.
fn check_moved_tree(context: &CallContext<'_>, from: &RelPath, to: &RelPath) -> Result<PolicyVerdict, Error> {
    if has_no_restrictions(context) {
        return Ok(PolicyVerdict::UNRESTRICTED);
    }
    let Some(node) = context.workspace().stat(from)? else { return check_unchecked_subtree(context, to) };
    let mut verdict = PolicyVerdict::UNRESTRICTED;
    context.walk(from, node, &mut |entry| {
        let rest = entry.path.strip_prefix(from).unwrap_or_default();
        let destination = to.append(&rest)?;
        for action in
            [PolicyAction::new(AccessRight::Delete, entry.path), PolicyAction::new(AccessRight::Create, &destination)]
        {
            verdict = verdict.stricter_of(authorization::evaluate_policy(context, &action)?);
        }
        Ok(())
    })?;
    Ok(verdict)
}

fn check_removed_tree(context: &CallContext<'_>, path: &RelPath) -> Result<PolicyVerdict, Error> {
    if has_no_restrictions(context) {
        return Ok(PolicyVerdict::UNRESTRICTED);
    }
    let Some(node) = context.workspace().stat(path)? else { return Ok(PolicyVerdict::UNRESTRICTED) };
    let mut verdict = PolicyVerdict::UNRESTRICTED;
    context.walk_skipping_deep_entries(path, node, &mut |entry| {
        verdict = verdict
            .stricter_of(authorization::evaluate_policy(context, &PolicyAction::new(AccessRight::Delete, entry.path))?);
        Ok(())
    })?;
    Ok(verdict)
}

/// Trash contents cannot be walked. Protected paths inside were checked at removal; only a new location or newer rules
/// can change the result.
fn check_restored_tree(context: &CallContext<'_>, trash: &str, path: &RelPath) -> Result<PolicyVerdict, Error> {
    match context.workspace().trash_item(trash)? {
        Some(item) if item.path == *path => evaluate_unchecked_subtree(context, path, UncheckedSubtree::None),
        Some(_) | None => check_unchecked_subtree(context, path),
    }
}

fn check_unchecked_subtree(context: &CallContext<'_>, path: &RelPath) -> Result<PolicyVerdict, Error> {
    evaluate_unchecked_subtree(context, path, UncheckedSubtree::Present)
}

fn evaluate_unchecked_subtree(
    context: &CallContext<'_>,
    path: &RelPath,
    below: UncheckedSubtree,
) -> Result<PolicyVerdict, Error> {
    let action = PolicyAction { right: AccessRight::Create, path, bytes: None, unchecked_subtree: below };
    let verdict = context.policy.policy.evaluate_unchecked_subtree(&context.policy_subject(), &action);
    authorization::refuse_blocked(context, path, verdict)?;
    Ok(verdict)
}

/// Whether no rule can apply, so that the tree need not be walked.
fn has_no_restrictions(context: &CallContext<'_>) -> bool {
    !is_bound_by_policy(&context.caller.principal) && context.policy.policy.is_built_in()
}

/// Whether the built-in protection applies to a principal.
fn is_bound_by_policy(principal: &Principal) -> bool {
    match principal {
        Principal::Agent(_) => true,
        Principal::User(_) | Principal::System | Principal::External => false,
    }
}
