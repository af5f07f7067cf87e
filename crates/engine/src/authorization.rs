//! Authorization of a call: scope, read-only access, policy, portable names, leases. Pure checks of the resolved
//! targets and of the plan.
//!
//! Blocked calls are refused here, before anything is read. A required approval is returned as a verdict, which the
//! pipeline enforces after planning.

mod subtree;

use stead_path::{RelPath, check_portable_name, fold_name};

use crate::{
    call_context::CallContext,
    caller::{AccessMode, Principal},
    errors::{Error, ErrorKind},
    limits,
    operation::{FileEffect, PathAccess, PathArgument, PathReach, RequestedPath, ResolvedTarget},
    ops::outcome_builder::format_iso_utc,
    plan::{CommitExpectation, FileKind, Plan, PlannedChange},
    policy::{AccessRight, PolicyAction, PolicyTier, PolicyVerdict, read_right_for},
    quota,
    workspace::{FileIdentity, FileNamePolicy},
};

/// The policy verdicts on the targets of a call before planning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TargetVerdicts {
    /// For the paths it reads.
    pub(crate) reads: PolicyVerdict,
    /// For the paths it would change, as far as known.
    pub(crate) writes: PolicyVerdict,
}

/// Checks the resolved targets of a call.
pub(crate) fn check_targets(
    context: &CallContext<'_>,
    effect: FileEffect,
    requests: &[RequestedPath],
    targets: &[ResolvedTarget],
) -> Result<TargetVerdicts, Error> {
    if effect != FileEffect::None && context.caller.grants.access == AccessMode::ReadOnly {
        return Err(Error::new(ErrorKind::ReadOnly, "you may read this workspace but not change it"));
    }
    let mut verdicts = TargetVerdicts { reads: PolicyVerdict::UNRESTRICTED, writes: PolicyVerdict::UNRESTRICTED };
    for (request, target) in requests.iter().zip(targets) {
        let verdict =
            check_target(context, request, target).map_err(|error| with_requested_path(context, request, error))?;
        let slot = if is_read_only(request) { &mut verdicts.reads } else { &mut verdicts.writes };
        *slot = slot.stricter_of(verdict);
        if let (PathReach::WholeTree, Some(node)) = (request.reach, target.stat)
            && node.kind == FileKind::Directory
        {
            context.walk_skipping_deep_entries(&target.path, node, &mut |entry| {
                if !is_read_only(request) {
                    check_writable(context, entry.path, Some(entry.stat.identity))?;
                    let right =
                        if request.access == PathAccess::Remove { AccessRight::Delete } else { AccessRight::Modify };
                    *slot = slot.stricter_of(evaluate_policy(context, &PolicyAction::new(right, entry.path))?);
                }
                Ok(())
            })?;
        }
    }
    context.allow_targets(targets);
    let changed: Vec<RelPath> = requests
        .iter()
        .zip(targets)
        .filter(|(request, _)| !is_read_only(request))
        .map(|(_, target)| target.path.clone())
        .collect();
    check_leases(context, &changed)?;
    if requests.is_empty() {
        verdicts.reads = verdicts.reads.stricter_of(check_call_without_path(context)?);
    }
    Ok(verdicts)
}

fn is_read_only(request: &RequestedPath) -> bool {
    match request.access {
        PathAccess::Read | PathAccess::ReadLocked => true,
        PathAccess::Write | PathAccess::Remove => false,
    }
}

/// A call without paths is checked as a read of the root.
fn check_call_without_path(context: &CallContext<'_>) -> Result<PolicyVerdict, Error> {
    evaluate_policy(context, &PolicyAction::new(AccessRight::Read, &RelPath::root()))
}

fn check_target(
    context: &CallContext<'_>,
    request: &RequestedPath,
    target: &ResolvedTarget,
) -> Result<PolicyVerdict, Error> {
    let top = target.stat.map(|node| node.kind);
    let right = match (request.access, top) {
        (PathAccess::Read | PathAccess::ReadLocked, top) => {
            check_readable(context, target)?;
            read_right_for(top)
        }
        (PathAccess::Write, top) => {
            check_writable(context, &target.path, target.stat.map(|node| node.identity))?;
            match top {
                None => AccessRight::Create,
                // Entries put into a directory are checked by their own paths, after planning.
                Some(FileKind::Directory) => return Ok(PolicyVerdict::UNRESTRICTED),
                Some(FileKind::File | FileKind::Link | FileKind::Special) => AccessRight::Modify,
            }
        }
        (PathAccess::Remove, _) => {
            check_writable(context, &target.path, target.stat.map(|node| node.identity))?;
            AccessRight::Delete
        }
    };
    evaluate_policy(context, &PolicyAction::new(right, &target.path))
}

/// The policy's verdict on one action; an error if it is blocked.
pub(crate) fn evaluate_policy(context: &CallContext<'_>, action: &PolicyAction<'_>) -> Result<PolicyVerdict, Error> {
    let verdict = context.policy.policy.evaluate(&context.policy_subject(), action);
    refuse_blocked(context, action.path, verdict)?;
    Ok(verdict)
}

pub(crate) fn refuse_blocked(context: &CallContext<'_>, path: &RelPath, verdict: PolicyVerdict) -> Result<(), Error> {
    if verdict.tier < PolicyTier::Blocked {
        return Ok(());
    }
    let policy = &context.policy.policy;
    let name = if path.is_root() { "this call".to_owned() } else { path.to_string() };
    Err(Error::new(ErrorKind::PolicyDenied, format!("{name} is blocked by {}", verdict.reason.describe(policy)))
        .with_next_step("do it another way, or ask a person")
        .with_detail("rule", verdict.reason.short_name(policy)))
}

/// Adds the path as the caller wrote it, because the caller may not be allowed to know where a symlink leads.
fn with_requested_path(context: &CallContext<'_>, request: &RequestedPath, error: Error) -> Error {
    let PathArgument::FromCaller(text) = &request.argument else { return error };
    match stead_path::parse_path(text, &context.workspace().profile().root_spellings, &context.options.path_spelling) {
        Ok(spelling) => error.with_detail("path", spelling.path.to_string()),
        Err(_) => error,
    }
}

fn check_readable(context: &CallContext<'_>, target: &ResolvedTarget) -> Result<(), Error> {
    let listing = target.stat.is_some_and(|node| node.kind == FileKind::Directory);
    if context.has_read_grant(&target.path) || (listing && context.may_traverse(&target.path)) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::OutOfScope, "the path is outside your readable scope"))
}

/// Checks the caller's grants for changing a path, independent of the policy rules.
fn check_writable(context: &CallContext<'_>, path: &RelPath, identity: Option<FileIdentity>) -> Result<(), Error> {
    let grants = &context.caller.grants;
    let excluded = grants.hidden.covers(path) || grants.read_only.covers(path);
    if excluded || !grants.writable.iter().any(|granted| path.is_within(granted)) {
        return Err(Error::new(ErrorKind::OutOfScope, "the path is outside your writable scope"));
    }
    match &context.caller.principal {
        Principal::Agent(_) if context.policy.is_policy_file(path, identity) => Err(policy_file_error(path)),
        Principal::Agent(_) | Principal::User(_) | Principal::System | Principal::External => Ok(()),
    }
}

/// Agents may not change the policy that binds them.
pub(crate) fn policy_file_error(path: &RelPath) -> Error {
    Error::new(ErrorKind::ProtectedPath, format!("{path} is, or contains, the policy file that applies to you"))
        .with_next_step("ask a person to change the policy")
}

fn check_leases(context: &CallContext<'_>, changed: &[RelPath]) -> Result<(), Error> {
    if changed.is_empty() {
        return Ok(());
    }
    let holder = context.caller.principal.to_string();
    let leases = context.workspace().leases(changed)?;
    match leases.into_iter().find(|lease| lease.holder != holder) {
        None => Ok(()),
        Some(lease) => {
            let until = format_iso_utc(lease.ends_ms);
            let message = format!("{} is held by {} until {until}", lease.path, lease.holder);
            Err(Error::new(ErrorKind::Locked, message)
                .with_next_step("wait until the lease ends, or work on something else")
                .with_detail("holder", lease.holder)
                .with_detail("ends_ms", lease.ends_ms))
        }
    }
}

/// Checks the planned changes: every path again, and every new name.
pub(crate) fn check_plan(context: &CallContext<'_>, plan: &Plan) -> Result<PolicyVerdict, Error> {
    if plan.changes.len() > limits::PLAN_CHANGES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("more than {} changes in one call", limits::PLAN_CHANGES_MAX),
        )
        .with_next_step("work on a smaller subtree"));
    }
    let names = context.workspace().profile().name_policy;
    let mut verdict = PolicyVerdict::UNRESTRICTED;
    for change in &plan.changes {
        for path in change.paths() {
            check_writable(context, path, identity_at(context, path)?)?;
        }
        for action in policy_actions(change).into_iter().flatten() {
            verdict = verdict.stricter_of(evaluate_policy(context, &action)?);
        }
        verdict = verdict.stricter_of(subtree::check_subtree(context, change)?);
        if names == FileNamePolicy::Portable
            && let Some(created) = newly_created_path(context, change)?
        {
            check_new_name(context, created, change)?;
        }
    }
    quota::check_plan(context, plan)?;
    Ok(verdict)
}

/// The identity of the entry at a path, if the policy file is inside the workspace and could be that entry.
fn identity_at(context: &CallContext<'_>, path: &RelPath) -> Result<Option<FileIdentity>, Error> {
    if context.policy.file_location.is_none() {
        return Ok(None);
    }
    Ok(context.workspace().stat(path)?.map(|node| node.identity))
}

/// The actions of a change on its own paths. [`subtree`] checks the entries below.
fn policy_actions(change: &PlannedChange) -> [Option<PolicyAction<'_>>; 2] {
    let new = |expectation: &CommitExpectation| {
        if *expectation == CommitExpectation::Absent { AccessRight::Create } else { AccessRight::Modify }
    };
    match change {
        PlannedChange::Put { path, expectation, size, .. } => {
            [Some(PolicyAction::new(new(expectation), path).with_bytes(*size)), None]
        }
        PlannedChange::MakeDirectory { path, .. } | PlannedChange::MakeLink { path, .. } => {
            [Some(PolicyAction::new(AccessRight::Create, path)), None]
        }
        PlannedChange::Move { from, to, replaced, .. } => {
            [Some(PolicyAction::new(AccessRight::Delete, from)), Some(PolicyAction::new(new(replaced), to))]
        }
        PlannedChange::Remove { path, .. } | PlannedChange::RemoveDirectory { path } => {
            [Some(PolicyAction::new(AccessRight::Delete, path)), None]
        }
        PlannedChange::Restore { path, tree, .. } => {
            [Some(PolicyAction::new(AccessRight::Create, path).with_bytes(tree.bytes)), None]
        }
    }
}

/// The path that a change creates, if a caller chose its name.
fn newly_created_path<'c>(context: &CallContext<'_>, change: &'c PlannedChange) -> Result<Option<&'c RelPath>, Error> {
    Ok(match change {
        PlannedChange::Put { path, expectation: CommitExpectation::Absent, .. }
        | PlannedChange::MakeDirectory { path, .. } => Some(path),
        PlannedChange::Move { to, replaced: CommitExpectation::Absent, .. } => Some(to),
        PlannedChange::Put { .. } | PlannedChange::Move { .. } => None,
        // An entry restored to its original path has a name that existed before.
        PlannedChange::Restore { trash, path, .. } => {
            let item = context.workspace().trash_item(trash)?;
            item.is_none_or(|item| item.path != *path).then_some(path)
        }
        PlannedChange::MakeLink { .. } | PlannedChange::Remove { .. } | PlannedChange::RemoveDirectory { .. } => None,
    })
}

fn check_new_name(context: &CallContext<'_>, path: &RelPath, change: &PlannedChange) -> Result<(), Error> {
    let Some((parent, name)) = path.split() else { return Ok(()) };
    check_portable_name(name.as_bytes()).map_err(|problem| {
        Error::new(ErrorKind::InvalidName, format!("{path}: {problem}")).with_next_step("choose a plain name")
    })?;
    let siblings = match context.workspace().stat(&parent)? {
        Some(node) if node.kind == FileKind::Directory => context.workspace().list(&parent)?,
        // The plan creates the parent, so it has no entries.
        Some(_) | None => return Ok(()),
    };
    let key = fold_name(name.as_bytes());
    let moved = match change {
        PlannedChange::Move { from, .. } => from.split().filter(|(name, _)| *name == parent).map(|(_, name)| name),
        PlannedChange::Put { .. }
        | PlannedChange::MakeDirectory { .. }
        | PlannedChange::MakeLink { .. }
        | PlannedChange::Remove { .. }
        | PlannedChange::RemoveDirectory { .. }
        | PlannedChange::Restore { .. } => None,
    };
    let twin = siblings.iter().find(|listed| {
        listed.name != name && Some(&listed.name) != moved.as_ref() && fold_name(listed.name.as_bytes()) == key
    });
    match twin {
        None => Ok(()),
        Some(listed) => Err(Error::new(
            ErrorKind::NameCollision,
            format!("{path} differs from the existing {} only in case or in look-alike characters", listed.name),
        )
        .with_next_step("use the existing name, or one that differs visibly")),
    }
}
