//! What comes along when a whole tree moves, goes or comes back. A plan names only the top of it; here everything below
//! is judged at the place where it would then be, so that no protected place is made by moving a harmless tree there.

use path::RelPath;

use crate::{
    caller::Principal,
    failure::{Failure, Kind},
    plan::{Change, Top},
    protected,
    view::View,
};

/// Judges what one change carries with it.
pub(crate) fn judge(view: &View<'_>, change: &Change) -> Result<(), Failure> {
    match change {
        Change::Move { from, to, tree, .. } => {
            refuse_own_below(view, from)?;
            refuse_revealing(view, from, to)?;
            if tree.top == Top::Directory { judge_moved(view, from, to) } else { Ok(()) }
        }
        Change::Remove { path, .. } => refuse_own_below(view, path),
        Change::Restore { trash, path, tree } => {
            if let Some(item) = view.workspace().trashed(trash)? {
                refuse_revealing(view, &item.path, path)?;
            }
            if tree.top == Top::Directory { judge_restored(view, trash, path) } else { Ok(()) }
        }
        Change::Put { .. }
        | Change::MakeDirectory { .. }
        | Change::MakeLink { .. }
        | Change::RemoveDirectory { .. } => Ok(()),
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

/// A directory that holds the server's own files stays where it is, whoever asks.
fn refuse_own_below(view: &View<'_>, path: &RelPath) -> Result<(), Failure> {
    if view.workspace().profile().own.iter().any(|own| own.is_within(path)) {
        return Err(Failure::new(
            Kind::ProtectedPath,
            format!("{path} holds files that belong to the server"),
        ));
    }
    Ok(())
}

fn judge_moved(view: &View<'_>, from: &RelPath, to: &RelPath) -> Result<(), Failure> {
    if !bound(&view.caller.principal) {
        return Ok(());
    }
    let Some(node) = view.workspace().stat(from)? else { return refuse_leading(to) };
    view.walk(from, node, &mut |met| {
        let rest = met.path.below(from).unwrap_or_default();
        match protected::rule(&to.append(&rest)?) {
            Some(rule) => Err(refused(&to.append(&rest)?, &rule)),
            None => Ok(()),
        }
    })?;
    Ok(())
}

/// What lies in the trash cannot be walked, but it was judged where it was: only another place can make it matter.
fn judge_restored(view: &View<'_>, trash: &str, path: &RelPath) -> Result<(), Failure> {
    if !bound(&view.caller.principal) {
        return Ok(());
    }
    match view.workspace().trashed(trash)? {
        Some(item) if item.path == *path => Ok(()),
        Some(_) | None => refuse_leading(path),
    }
}

fn refuse_leading(path: &RelPath) -> Result<(), Failure> {
    match protected::leads_to(path) {
        Some(rule) => Err(refused(path, &rule)),
        None => Ok(()),
    }
}

fn refused(path: &RelPath, rule: &str) -> Failure {
    Failure::new(
        Kind::ProtectedPath,
        format!("{path} is protected: other programs run or obey what is in {rule}"),
    )
    .hint("ask the person you work for to make this change")
}

/// Whether protected places bind this principal.
fn bound(principal: &Principal) -> bool {
    match principal {
        Principal::Agent(_) => true,
        Principal::User(_) | Principal::System => false,
    }
}
