//! Whether a call may be, and how far alone: scope, read-only, policy, portable names, leases. Pure rules over resolved
//! targets and over the plan.
//!
//! What is blocked is refused here, before anything is read; what needs a person's yes is a verdict, which the pipeline
//! settles once everything is planned.

use path::{RelPath, check_portable, fold};

use crate::{
    caller::{Access, Principal},
    carried,
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Effect, Need, Place, Reach, Target},
    ops::answer::iso_utc,
    plan::{Change, Expect, Plan, Top},
    policy::{Action, Right, Tier, Verdict, looking},
    quota,
    view::View,
    workspace::{NameProfile, Stamp},
};

/// What the rules say of the places of a call before it is planned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    /// Of what it looks at.
    pub(crate) looks: Verdict,
    /// Of what it would change, as far as that is known.
    pub(crate) changes: Verdict,
}

/// Judges the resolved targets of a call.
pub(crate) fn judge(
    view: &View<'_>,
    effect: Effect,
    asks: &[Ask],
    targets: &[Target],
) -> Result<Judged, Failure> {
    if effect != Effect::Read && view.caller.grants.access == Access::ReadOnly {
        return Err(Failure::new(Kind::ReadOnly, "you may read this workspace but not change it"));
    }
    let mut judged = Judged { looks: Verdict::FREE, changes: Verdict::FREE };
    for (ask, target) in asks.iter().zip(targets) {
        let verdict = judge_target(view, ask, target).map_err(|failure| named(view, ask, failure))?;
        let told = if looks_only(ask) { &mut judged.looks } else { &mut judged.changes };
        *told = told.stricter(verdict);
        if let (Reach::Tree, Some(node)) = (ask.reach, target.node)
            && node.top == Top::Directory
        {
            view.walk_whole(&target.path, node, &mut |met| {
                if !looks_only(ask) {
                    judge_change(view, met.path, Some(met.node.stamp))?;
                    let right = if ask.need == Need::Remove { Right::Delete } else { Right::Modify };
                    *told = told.stricter(ruled(view, &Action::new(right, met.path))?);
                }
                Ok(())
            })?;
        }
    }
    view.pass(targets);
    let changed: Vec<RelPath> = asks
        .iter()
        .zip(targets)
        .filter(|(ask, _)| !looks_only(ask))
        .map(|(_, target)| target.path.clone())
        .collect();
    judge_leases(view, &changed)?;
    if asks.is_empty() {
        judged.looks = judged.looks.stricter(placeless(view)?);
    }
    Ok(judged)
}

/// Whether a place is looked at and not changed.
fn looks_only(ask: &Ask) -> bool {
    match ask.need {
        Need::Read | Need::Hold => true,
        Need::Write | Need::Remove => false,
    }
}

/// A call that is about no place is judged as one about the root.
fn placeless(view: &View<'_>) -> Result<Verdict, Failure> {
    ruled(view, &Action::new(Right::Read, &RelPath::root()))
}

fn judge_target(view: &View<'_>, ask: &Ask, target: &Target) -> Result<Verdict, Failure> {
    let top = target.node.map(|node| node.top);
    let right = match (ask.need, top) {
        (Need::Read | Need::Hold, top) => {
            judge_read(view, target)?;
            looking(top)
        }
        (Need::Write, top) => {
            judge_change(view, &target.path, target.node.map(|node| node.stamp))?;
            match top {
                None => Right::Create,
                // What is put into a directory is judged by its own place, once it is planned.
                Some(Top::Directory) => return Ok(Verdict::FREE),
                Some(Top::File | Top::Link | Top::Special) => Right::Modify,
            }
        }
        (Need::Remove, _) => {
            judge_change(view, &target.path, target.node.map(|node| node.stamp))?;
            Right::Delete
        }
    };
    ruled(view, &Action::new(right, &target.path))
}

/// What the policy says of one action; refused when it is blocked.
pub(crate) fn ruled(view: &View<'_>, action: &Action<'_>) -> Result<Verdict, Failure> {
    let verdict = view.in_force.policy.judge(&view.asked(), action);
    refuse_blocked(view, action.path, verdict)?;
    Ok(verdict)
}

/// Refuses what is blocked.
pub(crate) fn refuse_blocked(view: &View<'_>, path: &RelPath, verdict: Verdict) -> Result<(), Failure> {
    if verdict.tier < Tier::Blocked {
        return Ok(());
    }
    let policy = &view.in_force.policy;
    let place = if path.is_root() { "this call".to_owned() } else { path.to_string() };
    Err(Failure::new(Kind::PolicyDenied, format!("{place} is blocked by {}", verdict.why.sentence(policy)))
        .hint("do it another way, or ask the person you work for")
        .fact("rule", verdict.why.name(policy)))
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
    if view.was_granted(&target.path) || (listing && view.may_pass(&target.path)) {
        return Ok(());
    }
    Err(Failure::new(Kind::OutOfScope, "that place is outside what you may read"))
}

/// Whether this caller may change this place at all, whatever the rules say.
fn judge_change(view: &View<'_>, path: &RelPath, stamp: Option<Stamp>) -> Result<(), Failure> {
    let grants = &view.caller.grants;
    let kept = grants.hidden.hide(path) || grants.fixed.hide(path);
    if kept || !grants.writable.iter().any(|granted| path.is_within(granted)) {
        return Err(Failure::new(Kind::OutOfScope, "that place is outside what you may change"));
    }
    match &view.caller.principal {
        Principal::Agent(_) if view.in_force.is_policy(path, stamp) => Err(policy_file(path)),
        Principal::Agent(_) | Principal::User(_) | Principal::System | Principal::Outside => Ok(()),
    }
}

/// The rules are not for those to change whom they bind.
pub(crate) fn policy_file(path: &RelPath) -> Failure {
    Failure::new(Kind::ProtectedPath, format!("{path} is or holds the policy that you are bound by"))
        .hint("ask the person you work for to change the policy")
}

fn judge_leases(view: &View<'_>, changed: &[RelPath]) -> Result<(), Failure> {
    if changed.is_empty() {
        return Ok(());
    }
    let holder = view.caller.principal.to_string();
    let leases = view.workspace().leases(changed)?;
    match leases.into_iter().find(|lease| lease.holder != holder) {
        None => Ok(()),
        Some(lease) => {
            let until = iso_utc(lease.ends_ms);
            let held = format!("{} is held by {} until {until}", lease.path, lease.holder);
            Err(Failure::new(Kind::Locked, held)
                .hint("wait until the lease ends, or work on something else")
                .fact("holder", lease.holder)
                .fact("ends_ms", lease.ends_ms))
        }
    }
}

/// Judges what a plan would really touch: every place again, and every name it would create.
pub(crate) fn judge_plan(view: &View<'_>, plan: &Plan) -> Result<Verdict, Failure> {
    if plan.changes.len() > limits::PLAN_CHANGES_MAX {
        return Err(Failure::new(
            Kind::TooLarge,
            format!("more than {} changes in one call", limits::PLAN_CHANGES_MAX),
        )
        .hint("work on a smaller subtree"));
    }
    let names = view.workspace().profile().names;
    let mut verdict = Verdict::FREE;
    for change in &plan.changes {
        for path in change.paths() {
            judge_change(view, path, stamp_at(view, path)?)?;
        }
        for action in actions(change).into_iter().flatten() {
            verdict = verdict.stricter(ruled(view, &action)?);
        }
        verdict = verdict.stricter(carried::judge(view, change)?);
        if names == NameProfile::Portable
            && let Some(created) = created(view, change)?
        {
            judge_name(view, created, change)?;
        }
    }
    quota::judge(view, plan)?;
    Ok(verdict)
}

/// Which thing is at a place, where that matters: only a policy file inside is known by what it is.
fn stamp_at(view: &View<'_>, path: &RelPath) -> Result<Option<Stamp>, Failure> {
    if view.in_force.place.is_none() {
        return Ok(None);
    }
    Ok(view.workspace().stat(path)?.map(|node| node.stamp))
}

/// What a change does to its own places. What it carries along is judged beside.
fn actions(change: &Change) -> [Option<Action<'_>>; 2] {
    let new = |expect: &Expect| if *expect == Expect::Absent { Right::Create } else { Right::Modify };
    match change {
        Change::Put { path, expect, size, .. } => {
            [Some(Action::new(new(expect), path).of_bytes(*size)), None]
        }
        Change::MakeDirectory { path, .. } | Change::MakeLink { path, .. } => {
            [Some(Action::new(Right::Create, path)), None]
        }
        Change::Move { from, to, over, .. } => {
            [Some(Action::new(Right::Delete, from)), Some(Action::new(new(over), to))]
        }
        Change::Remove { path, .. } | Change::RemoveDirectory { path } => {
            [Some(Action::new(Right::Delete, path)), None]
        }
        Change::Restore { path, tree, .. } => {
            [Some(Action::new(Right::Create, path).of_bytes(tree.bytes)), None]
        }
    }
}

/// The place a change makes anew, if the name was chosen by a caller.
fn created<'c>(view: &View<'_>, change: &'c Change) -> Result<Option<&'c RelPath>, Failure> {
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
