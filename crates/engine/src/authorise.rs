//! Whether a call may be: scope, read-only, protected places, portable names, leases. Pure rules over resolved
//! targets; no lock is held here, because asking a person may one day take its time.

use path::{RelPath, check_portable, fold};

use crate::{
    caller::{Access, Principal},
    carried,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Effect, Need, Place, Reach, Target},
    plan::{Change, Plan, Top},
    protected,
    view::View,
    workspace::NameProfile,
};

/// Judges the resolved targets of a call.
pub(crate) fn judge(
    view: &View<'_>,
    effect: Effect,
    asks: &[Ask],
    targets: &[Target],
) -> Result<(), Failure> {
    if effect != Effect::Read && view.caller.grants.access == Access::ReadOnly {
        return Err(Failure::new(Kind::ReadOnly, "you may read this workspace but not change it"));
    }
    for (ask, target) in asks.iter().zip(targets) {
        match ask.need {
            Need::Read => judge_read(view, target),
            Need::Write | Need::Remove => judge_change(view, &target.path),
        }
        .map_err(|failure| named(view, ask, failure))?;
        if let (Reach::Tree, Some(node)) = (ask.reach, target.node)
            && node.top == Top::Directory
        {
            view.walk_whole(&target.path, node, &mut |met| match ask.need {
                Need::Read => Ok(()),
                Need::Write | Need::Remove => judge_change(view, met.path),
            })?;
        }
    }
    let changed: Vec<RelPath> = asks
        .iter()
        .zip(targets)
        .filter(|(ask, _)| ask.need != Need::Read)
        .map(|(_, target)| target.path.clone())
        .collect();
    judge_leases(view, &changed)
}

/// Says which place was refused: as the caller spelled it, because where a link leads may not be theirs to know.
fn named(view: &View<'_>, ask: &Ask, failure: Failure) -> Failure {
    let Place::Spelled(text) = &ask.place else { return failure };
    match path::parse(text, &view.workspace().profile().roots, &view.terms.reading) {
        Ok(spelling) => failure.fact("path", spelling.path.to_string()),
        Err(_) => failure,
    }
}

fn judge_read(view: &View<'_>, target: &Target) -> Result<(), Failure> {
    let listing = target.node.is_some_and(|node| node.top == Top::Directory);
    if view.may_read(&target.path) || (listing && view.may_pass(&target.path)) {
        return Ok(());
    }
    Err(Failure::new(Kind::OutOfScope, "that place is outside what you may read"))
}

/// Whether this caller may change this place.
fn judge_change(view: &View<'_>, path: &RelPath) -> Result<(), Failure> {
    let grants = &view.caller.grants;
    let kept = grants.hidden.hide(path) || grants.fixed.hide(path);
    if kept || !grants.writable.iter().any(|granted| path.is_within(granted)) {
        return Err(Failure::new(Kind::OutOfScope, "that place is outside what you may change"));
    }
    match (&view.caller.principal, protected::rule(path)) {
        (Principal::Agent(_), Some(rule)) => Err(Failure::new(
            Kind::ProtectedPath,
            format!("{path} is protected: other programs run or obey what is in {rule}"),
        )
        .hint("ask the person you work for to make this change")),
        (Principal::Agent(_), None) | (Principal::User(_) | Principal::System, _) => Ok(()),
    }
}

fn judge_leases(view: &View<'_>, changed: &[RelPath]) -> Result<(), Failure> {
    if changed.is_empty() {
        return Ok(());
    }
    let holder = view.caller.principal.to_string();
    let leases = view.workspace().leases(changed)?;
    match leases.into_iter().find(|lease| lease.holder != holder) {
        None => Ok(()),
        Some(lease) => Err(Failure::new(Kind::Locked, format!("{} is held by {}", lease.path, lease.holder))
            .hint("wait until the lease ends, or work on something else")
            .fact("holder", lease.holder)
            .fact("ends_ms", lease.ends_ms)),
    }
}

/// Judges what a plan would really touch: every place again, and every name it would create.
pub(crate) fn judge_plan(view: &View<'_>, plan: &Plan) -> Result<(), Failure> {
    if plan.changes.len() > limits::PLAN_CHANGES_MAX {
        return Err(Failure::new(
            Kind::TooLarge,
            format!("more than {} changes in one call", limits::PLAN_CHANGES_MAX),
        )
        .hint("work on a smaller subtree"));
    }
    let names = view.workspace().profile().names;
    for change in &plan.changes {
        for path in change.paths() {
            judge_change(view, path)?;
        }
        carried::judge(view, change)?;
        if names == NameProfile::Portable
            && let Some(created) = created(view, change)?
        {
            judge_name(view, created, change)?;
        }
    }
    Ok(())
}

/// The place a change makes anew, if the name was chosen by a caller.
fn created<'c>(view: &View<'_>, change: &'c Change) -> Result<Option<&'c RelPath>, Failure> {
    use crate::plan::Expect;
    Ok(match change {
        Change::Put { path, expect: Expect::Absent, .. } | Change::MakeDirectory { path, .. } => Some(path),
        Change::Move { to, over: Expect::Absent, .. } => Some(to),
        Change::Put { .. } | Change::Move { .. } => None,
        // Whatever comes back to where it was has a name that was there before.
        Change::Restore { trash, path, .. } => {
            let item = view.workspace().trashed(trash)?;
            item.is_none_or(|item| item.path != *path).then_some(path)
        }
        Change::MakeLink { .. } | Change::Remove { .. } | Change::RemoveDirectory { .. } => None,
    })
}

fn judge_name(view: &View<'_>, path: &RelPath, change: &Change) -> Result<(), Failure> {
    let Some((parent, name)) = path.split() else { return Ok(()) };
    check_portable(name.as_bytes()).map_err(|problem| {
        Failure::new(Kind::InvalidName, format!("{path}: {problem}")).hint("choose a plain name")
    })?;
    let siblings = match view.workspace().stat(&parent)? {
        Some(node) if node.top == Top::Directory => view.workspace().list(&parent)?,
        // The parent is made by this very plan, so nothing is in it.
        Some(_) | None => return Ok(()),
    };
    let key = fold(name.as_bytes());
    let moved = match change {
        Change::Move { from, .. } => from.split().filter(|(place, _)| *place == parent).map(|(_, name)| name),
        Change::Put { .. }
        | Change::MakeDirectory { .. }
        | Change::MakeLink { .. }
        | Change::Remove { .. }
        | Change::RemoveDirectory { .. }
        | Change::Restore { .. } => None,
    };
    let twin = siblings.iter().find(|listed| {
        listed.name != name && Some(&listed.name) != moved.as_ref() && fold(listed.name.as_bytes()) == key
    });
    match twin {
        None => Ok(()),
        Some(listed) => Err(Failure::new(
            Kind::NameCollision,
            format!("{path} would differ from {} only in case or look", listed.name),
        )
        .hint("use the existing name, or one that differs visibly")),
    }
}
