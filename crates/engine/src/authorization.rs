//! Authorization of a call checks granted paths, read-only access, policy rules, portable names and leases.
//! Authorization checks the resolved paths of a call before any content is read, and the plan before the commit. A plan
//! names only the top directory of a moved, removed or restored tree, so authorization also checks the entries below.
//! Authorization also checks the new paths of a moved tree's entries, because a move must not create a protected path.

use stead_path::{RelPath, check_portable_name, fold_name};
use stead_text::visible::escape_deceptive_line;

use crate::{
    byte_sources::judge_change,
    call_context::{CallContext, TooDeepEntryPolicy},
    caller::CallerAccessMode,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{
        CallerOrRecordedPath, EntryOrWholeTree, OperationEffectClass, PathAccessRequest, RequestedAccessKind,
        ResolvedTarget,
    },
    ops::{SessionOperationArgs, text_pages::format_iso_utc},
    plan::{CommitExpectation, FileKind, Plan, PlannedChange},
    policy::{
        PathAccessRight, PolicyUncheckedSubtreePresence, PolicyVerdict, RequiredPathAccess, SupervisionTier,
        read_right_for,
    },
    quota,
    rules::lease::LeasesAtGeneration,
    tree::{FileIdentity, FileNamePolicy},
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct CallReadWritePolicyVerdicts {
    pub(crate) reads: PolicyVerdict,
    /// The verdict on the paths that the call names; the plan may change further paths.
    pub(crate) writes: PolicyVerdict,
    /// The generation of the leases that permit the changes; `None` if the call changes no path.
    pub(crate) lease_generation: Option<u64>,
}

pub(crate) fn check_targets(
    context: &CallContext<'_>,
    effect: OperationEffectClass,
    requests: &[PathAccessRequest],
    targets: &[ResolvedTarget],
) -> Result<CallReadWritePolicyVerdicts, Error> {
    if effect != OperationEffectClass::None && context.caller.grants.access == CallerAccessMode::ReadOnly {
        return Err(Error::new(ErrorKind::ReadOnly, "you have read-only access to this workspace")
            .with_next_step(NextStep::from("only read files").or_ask_person("allow changes")));
    }
    let mut verdicts = CallReadWritePolicyVerdicts {
        reads: PolicyVerdict::UNRESTRICTED,
        writes: PolicyVerdict::UNRESTRICTED,
        lease_generation: None,
    };
    for (request, target) in requests.iter().zip(targets) {
        let verdict =
            check_target(context, request, target).map_err(|error| with_requested_path(context, request, error))?;
        let combined = if is_read_only(request) { &mut verdicts.reads } else { &mut verdicts.writes };
        *combined = combined.stricter_of(verdict);
        if let (EntryOrWholeTree::WholeTree, Some(stat)) = (request.reach, target.stat)
            && stat.kind == FileKind::Directory
        {
            context.walk(&target.path, stat, TooDeepEntryPolicy::Skip, &mut |entry| {
                if !is_read_only(request) {
                    check_writable(context, entry.path, Some(entry.stat.identity))?;
                    let right = if request.access == RequestedAccessKind::Remove {
                        PathAccessRight::Delete
                    } else {
                        PathAccessRight::Modify
                    };
                    *combined =
                        combined.stricter_of(evaluate_policy(context, &RequiredPathAccess::new(right, entry.path))?);
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
    verdicts.lease_generation = check_leases(context, &changed)?;
    if requests.is_empty() {
        // A call without paths is checked as if it read the root directory.
        let read_root = evaluate_policy(context, &RequiredPathAccess::new(PathAccessRight::Read, &RelPath::root()))?;
        verdicts.reads = verdicts.reads.stricter_of(read_root);
    }
    Ok(verdicts)
}

fn is_read_only(request: &PathAccessRequest) -> bool {
    match request.access {
        RequestedAccessKind::Read | RequestedAccessKind::ReadLocked => true,
        RequestedAccessKind::Write | RequestedAccessKind::Remove => false,
    }
}

fn check_target(
    context: &CallContext<'_>,
    request: &PathAccessRequest,
    target: &ResolvedTarget,
) -> Result<PolicyVerdict, Error> {
    let kind = target.stat.map(|stat| stat.kind);
    if is_read_only(request) {
        check_readable(context, target)?;
    } else {
        check_writable(context, &target.path, target.stat.map(|stat| stat.identity))?;
    }
    let right = match (request.access, kind) {
        (RequestedAccessKind::Read | RequestedAccessKind::ReadLocked, kind) => read_right_for(kind),
        (RequestedAccessKind::Remove, _) => PathAccessRight::Delete,
        (RequestedAccessKind::Write, None) => PathAccessRight::Create,
        // After planning, each entry that the plan changes in the directory is checked by its own path.
        (RequestedAccessKind::Write, Some(FileKind::Directory)) => return Ok(PolicyVerdict::UNRESTRICTED),
        (RequestedAccessKind::Write, Some(FileKind::File | FileKind::Link | FileKind::Special)) => {
            PathAccessRight::Modify
        }
    };
    evaluate_policy(context, &RequiredPathAccess::new(right, &target.path))
}

pub(crate) fn evaluate_policy(
    context: &CallContext<'_>,
    action: &RequiredPathAccess<'_>,
) -> Result<PolicyVerdict, Error> {
    let verdict = context.policy.policy.evaluate(&context.policy_subject(), action);
    refuse_blocked(context, action.path, verdict)?;
    Ok(verdict)
}

fn refuse_blocked(context: &CallContext<'_>, path: &RelPath, verdict: PolicyVerdict) -> Result<(), Error> {
    if verdict.tier < SupervisionTier::Blocked {
        return Ok(());
    }
    let policy = &context.policy.policy;
    let name = if path.is_root() { "this call".to_owned() } else { path.to_string() };
    Err(Error::new(ErrorKind::PolicyDenied, format!("{name} is blocked by {}", verdict.reason.describe(policy)))
        .with_next_step(NextStep::from("reach the goal without this call").or_ask_person("change the policy"))
        .with_rule(verdict.reason.short_name(policy)))
}

/// Adds the path that the caller wrote to an error, because a resolved path would reveal where a symlink leads.
fn with_requested_path(context: &CallContext<'_>, request: &PathAccessRequest, error: Error) -> Error {
    let CallerOrRecordedPath::FromCaller(text) = &request.argument else { return error };
    match stead_path::parse_path(text, &context.workspace().profile().root_spellings, &context.options.path_spelling) {
        Ok(spelling) => {
            let mut error = error.with_path(spelling.path.to_string());
            if error.kind == ErrorKind::OutOfScope {
                error.message = format!("{}: {}", escape_deceptive_line(&spelling.path.to_string()), error.message);
            }
            error
        }
        Err(_) => error,
    }
}

fn check_readable(context: &CallContext<'_>, target: &ResolvedTarget) -> Result<(), Error> {
    let listing = target.stat.is_some_and(|node| node.kind == FileKind::Directory);
    if context.has_read_grant(&target.path) || (listing && context.may_traverse(&target.path)) {
        return Ok(());
    }
    Err(out_of_scope_error("read"))
}

/// An out-of-scope error does not name the path, because the resolved path would reveal where a symlink leads.
pub(crate) fn out_of_scope_error(verb: &str) -> Error {
    Error::new(ErrorKind::OutOfScope, format!("the path is outside the directories that you may {verb}"))
        .with_next_step(NextStep::call(
            SessionOperationArgs::default(),
            "see which directories you may read and change",
        ))
}

/// Checks whether the caller's grants allow changing a path; agents may never change the policy file.
fn check_writable(context: &CallContext<'_>, path: &RelPath, identity: Option<FileIdentity>) -> Result<(), Error> {
    let grants = &context.caller.grants;
    let excluded = grants.hidden.covers(path) || grants.read_only.covers(path);
    if excluded || !grants.writable.iter().any(|granted| path.is_within(granted)) {
        return Err(out_of_scope_error("change"));
    }
    if context.caller.principal.is_agent() && context.policy.is_policy_file(path, identity) {
        return Err(policy_file_error(path));
    }
    Ok(())
}

fn policy_file_error(path: &RelPath) -> Error {
    Error::new(
        ErrorKind::ProtectedPath,
        format!("{path} is, or contains, the policy file that applies to you; agents cannot change it"),
    )
    .with_next_step(NextStep::ask_person("change the policy"))
}

fn check_leases(context: &CallContext<'_>, changed: &[RelPath]) -> Result<Option<u64>, Error> {
    if changed.is_empty() {
        return Ok(None);
    }
    let holder = context.caller.principal.to_string();
    let LeasesAtGeneration { leases, generation } = context.workspace().leases_at_generation(changed)?;
    match leases.into_iter().find(|lease| lease.holder != holder) {
        None => Ok(Some(generation)),
        Some(lease) => {
            let until = format_iso_utc(lease.ends_ms);
            let message = format!("{} is held by {} until {until}", lease.path, lease.holder);
            Err(Error::new(ErrorKind::Locked, message)
                .with_next_step("wait until the lock ends, or work on another file")
                .with_holder(lease.holder)
                .with_ends_ms(lease.ends_ms))
        }
    }
}

/// Checks every path that a plan changes, including paths that are not arguments of the call.
pub(crate) fn check_plan(context: &CallContext<'_>, plan: &Plan) -> Result<PolicyVerdict, Error> {
    if plan.changes.len() > limits::PLAN_CHANGES_MAX {
        return Err(Error::new(
            ErrorKind::TooLarge,
            format!("this call would make more than {} changes", limits::PLAN_CHANGES_MAX),
        )
        .with_next_step("divide the work into calls on smaller directories"));
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
        verdict = verdict.stricter_of(check_subtree(context, change)?);
        if names == FileNamePolicy::Portable
            && let Some(created) = newly_created_path(context, change)?
        {
            check_new_name(context, created, change)?;
        }
    }
    quota::check_plan(context, plan)?;
    Ok(verdict)
}

fn identity_at(context: &CallContext<'_>, path: &RelPath) -> Result<Option<FileIdentity>, Error> {
    if context.policy.file_location.is_none() {
        return Ok(None);
    }
    Ok(context.workspace().stat(path)?.map(|node| node.identity))
}

/// The access rights that a planned change needs on the paths that it names, without the entries below them.
fn policy_actions(change: &PlannedChange) -> [Option<RequiredPathAccess<'_>>; 2] {
    let new = |expectation: &CommitExpectation| {
        if *expectation == CommitExpectation::Absent { PathAccessRight::Create } else { PathAccessRight::Modify }
    };
    match change {
        PlannedChange::Put { path, expectation, size, .. } => {
            [Some(RequiredPathAccess::new(new(expectation), path).with_bytes(*size)), None]
        }
        PlannedChange::MakeDirectory { path, .. } | PlannedChange::MakeLink { path, .. } => {
            [Some(RequiredPathAccess::new(PathAccessRight::Create, path)), None]
        }
        PlannedChange::Move { from, to, replaced, .. } => [
            Some(RequiredPathAccess::new(PathAccessRight::Delete, from)),
            Some(RequiredPathAccess::new(new(replaced), to)),
        ],
        PlannedChange::Remove { path, .. } | PlannedChange::RemoveDirectory { path } => {
            [Some(RequiredPathAccess::new(PathAccessRight::Delete, path)), None]
        }
        PlannedChange::Restore { path, tree, .. } => {
            [Some(RequiredPathAccess::new(PathAccessRight::Create, path).with_bytes(tree.bytes)), None]
        }
    }
}

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
        Error::new(ErrorKind::InvalidName, format!("{path}: {problem}"))
            .with_next_step("choose a name that every file system accepts")
    })?;
    let siblings = match context.workspace().stat(&parent)? {
        Some(node) if node.kind == FileKind::Directory => context.workspace().list(&parent)?,
        // The parent directory does not exist yet. The plan creates it, so it has no other entries.
        Some(_) | None => return Ok(()),
    };
    let folded = fold_name(name.as_bytes());
    // If an entry is renamed within its directory, its new name may look like its old name.
    let old_path = if let PlannedChange::Move { from, .. } = change { from.split() } else { None };
    let old_name = old_path.filter(|(directory, _)| *directory == parent).map(|(_, name)| name);
    let twin = siblings.iter().find(|listed| {
        listed.name != name && Some(&listed.name) != old_name.as_ref() && fold_name(listed.name.as_bytes()) == folded
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

fn check_subtree(context: &CallContext<'_>, change: &PlannedChange) -> Result<PolicyVerdict, Error> {
    if let PlannedChange::Move { from: path, .. } | PlannedChange::Remove { path, .. } = change {
        refuse_moving_server_files(context, path)?;
    }
    judge_change(context, change)?;
    match change {
        PlannedChange::Move { from, to, tree, .. } => check_moved_tree(context, from, to, tree.kind),
        PlannedChange::Remove { path, tree, .. } => check_removed_tree(context, path, tree.kind),
        PlannedChange::Restore { trash, path, tree } => {
            let item = context.workspace().trash_item(trash)?;
            if tree.kind != FileKind::Directory {
                return Ok(PolicyVerdict::UNRESTRICTED);
            }
            check_unlisted_tree(context, path, item.map(|item| item.path))
        }
        PlannedChange::Put { .. }
        | PlannedChange::MakeDirectory { .. }
        | PlannedChange::MakeLink { .. }
        | PlannedChange::RemoveDirectory { .. } => Ok(PolicyVerdict::UNRESTRICTED),
    }
}

/// Refuses to move a directory that contains the server's files, or, for an agent, the policy file.
fn refuse_moving_server_files(context: &CallContext<'_>, path: &RelPath) -> Result<(), Error> {
    if context.workspace().profile().internal_paths.iter().any(|internal| internal.is_within(path)) {
        return Err(Error::new(
            ErrorKind::ProtectedPath,
            format!("{path} contains stead's own files, such as the journal or the trash"),
        )
        .with_next_step("move or remove the other entries of the directory one by one"));
    }
    if context.caller.principal.is_agent() && context.policy.contains_policy_file(path) {
        return Err(policy_file_error(path));
    }
    Ok(())
}

fn check_moved_tree(
    context: &CallContext<'_>,
    from: &RelPath,
    to: &RelPath,
    kind: FileKind,
) -> Result<PolicyVerdict, Error> {
    if kind != FileKind::Directory || has_no_restrictions(context) {
        return Ok(PolicyVerdict::UNRESTRICTED);
    }
    let Some(stat) = context.workspace().stat(from)? else { return check_unlisted_tree(context, to, None) };
    let mut verdict = PolicyVerdict::UNRESTRICTED;
    context.walk(from, stat, TooDeepEntryPolicy::Fail, &mut |entry| {
        let rest = entry.path.strip_prefix(from).unwrap_or_default();
        let destination = to.append(&rest)?;
        for action in [
            RequiredPathAccess::new(PathAccessRight::Delete, entry.path),
            RequiredPathAccess::new(PathAccessRight::Create, &destination),
        ] {
            verdict = verdict.stricter_of(evaluate_policy(context, &action)?);
        }
        Ok(())
    })?;
    Ok(verdict)
}

fn check_removed_tree(context: &CallContext<'_>, path: &RelPath, kind: FileKind) -> Result<PolicyVerdict, Error> {
    if kind != FileKind::Directory || has_no_restrictions(context) {
        return Ok(PolicyVerdict::UNRESTRICTED);
    }
    let Some(stat) = context.workspace().stat(path)? else { return Ok(PolicyVerdict::UNRESTRICTED) };
    let mut verdict = PolicyVerdict::UNRESTRICTED;
    context.walk(path, stat, TooDeepEntryPolicy::Skip, &mut |entry| {
        verdict = verdict
            .stricter_of(evaluate_policy(context, &RequiredPathAccess::new(PathAccessRight::Delete, entry.path))?);
        Ok(())
    })?;
    Ok(verdict)
}

/// Checks the restoring of a tree whose entries cannot be listed, such as a trash item. A tree restored to its original
/// path needs no check for protected paths, because its removal was checked.
fn check_unlisted_tree(
    context: &CallContext<'_>,
    path: &RelPath,
    original: Option<RelPath>,
) -> Result<PolicyVerdict, Error> {
    let unchecked_subtree = if original.as_ref() == Some(path) {
        PolicyUncheckedSubtreePresence::None
    } else {
        PolicyUncheckedSubtreePresence::Present
    };
    let action = RequiredPathAccess { right: PathAccessRight::Create, path, bytes: None, unchecked_subtree };
    let verdict = context.policy.policy.evaluate_unchecked_subtree(&context.policy_subject(), &action);
    refuse_blocked(context, path, verdict)?;
    Ok(verdict)
}

/// Whether the caller is a person and only the built-in policy, which restricts only agents, is in force.
fn has_no_restrictions(context: &CallContext<'_>) -> bool {
    !context.caller.principal.is_agent() && context.policy.policy.is_built_in()
}
