//! What comes along when a whole tree moves, goes or comes back. A plan names only the top of it; here everything below
//! is judged at the place where it would then be, so that no protected place is made by moving a harmless tree there.

use path::RelPath;

use crate::{
    authorise,
    caller::Principal,
    failure::{Failure, Kind},
    plan::{Change, Top},
    policy::{Action, Below, Right, Verdict},
    view::View,
};

/// Judges what one change carries with it.
pub(crate) fn judge(view: &View<'_>, change: &Change) -> Result<Verdict, Failure> {
    match change {
        Change::Move { from, to, tree, .. } => {
            refuse_own_below(view, from)?;
            refuse_revealing(view, from, to)?;
            if tree.top == Top::Directory { judge_moved(view, from, to) } else { Ok(Verdict::FREE) }
        }
        Change::Remove { path, tree, .. } => {
            refuse_own_below(view, path)?;
            if tree.top == Top::Directory { judge_removed(view, path) } else { Ok(Verdict::FREE) }
        }
        Change::Restore { trash, path, tree } => {
            if let Some(item) = view.workspace().trashed(trash)? {
                refuse_revealing(view, &item.path, path)?;
            }
            if tree.top == Top::Directory { judge_restored(view, trash, path) } else { Ok(Verdict::FREE) }
        }
        Change::Put { .. }
        | Change::MakeDirectory { .. }
        | Change::MakeLink { .. }
        | Change::RemoveDirectory { .. } => Ok(Verdict::FREE),
    }
}

/// What a caller may not read does not come to a place where it may.
fn refuse_revealing(view: &View<'_>, from: &RelPath, to: &RelPath) -> Result<(), Failure> {
    if view.may_read(from) || !view.may_pass(to) {
        return Ok(());
    }
    Err(Failure::new(Kind::OutOfScope, "that place is outside what you may read")
        .hint("it can only go to places that you may not read either"))
}

/// A directory that holds the server's own files stays where it is, whoever asks; one that holds the policy, when an
/// agent asks.
fn refuse_own_below(view: &View<'_>, path: &RelPath) -> Result<(), Failure> {
    if view.workspace().profile().own.iter().any(|own| own.is_within(path)) {
        return Err(Failure::new(
            Kind::ProtectedPath,
            format!("{path} holds files that belong to the server"),
        ));
    }
    if is_bound(&view.caller.principal) && view.in_force.is_below(path) {
        return Err(authorise::policy_file(path));
    }
    Ok(())
}

/// Everything below leaves one place and comes to another.
fn judge_moved(view: &View<'_>, from: &RelPath, to: &RelPath) -> Result<Verdict, Failure> {
    if is_free(view) {
        return Ok(Verdict::FREE);
    }
    let Some(node) = view.workspace().stat(from)? else { return unseen(view, to) };
    let mut verdict = Verdict::FREE;
    view.walk(from, node, &mut |met| {
        let rest = met.path.below(from).unwrap_or_default();
        let there = to.append(&rest)?;
        for action in [Action::new(Right::Delete, met.path), Action::new(Right::Create, &there)] {
            verdict = verdict.stricter(authorise::ruled(view, &action)?);
        }
        Ok(())
    })?;
    Ok(verdict)
}

/// Everything below goes.
fn judge_removed(view: &View<'_>, path: &RelPath) -> Result<Verdict, Failure> {
    if is_free(view) {
        return Ok(Verdict::FREE);
    }
    let Some(node) = view.workspace().stat(path)? else { return Ok(Verdict::FREE) };
    let mut verdict = Verdict::FREE;
    view.walk_whole(path, node, &mut |met| {
        verdict = verdict.stricter(authorise::ruled(view, &Action::new(Right::Delete, met.path))?);
        Ok(())
    })?;
    Ok(verdict)
}

/// What lies in the trash cannot be walked. Protected places in it were judged where it was: only another place can make
/// them matter. Rules may have come since.
fn judge_restored(view: &View<'_>, trash: &str, path: &RelPath) -> Result<Verdict, Failure> {
    match view.workspace().trashed(trash)? {
        Some(item) if item.path == *path => ruled_unseen(view, path, Below::Nothing),
        Some(_) | None => unseen(view, path),
    }
}

fn unseen(view: &View<'_>, path: &RelPath) -> Result<Verdict, Failure> {
    ruled_unseen(view, path, Below::Unseen)
}

fn ruled_unseen(view: &View<'_>, path: &RelPath, below: Below) -> Result<Verdict, Failure> {
    let action = Action { right: Right::Create, path, bytes: None, below };
    let verdict = view.in_force.policy.judge_unseen(&view.asked(), &action);
    authorise::refuse_blocked(view, path, verdict)?;
    Ok(verdict)
}

/// Whether no rule can say anything, so that nothing need be walked.
fn is_free(view: &View<'_>) -> bool {
    !is_bound(&view.caller.principal) && view.in_force.policy.is_built_in()
}

/// Whether a principal is bound by the policy's own protection.
fn is_bound(principal: &Principal) -> bool {
    match principal {
        Principal::Agent(_) => true,
        Principal::User(_) | Principal::System | Principal::Outside => false,
    }
}
