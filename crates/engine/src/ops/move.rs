//! `move`: a file, link or tree gets another name, in one step. A link moves itself, never what it points at. Only a
//! file can be replaced, only by a file, and only when the caller says so; what was replaced is kept.

use path::RelPath;
use serde::Deserialize;

use super::{answer::Facts, parents, standing};
use crate::{
    failure::{Failure, Kind},
    operation::{Ask, Need, Operation, Planned, Target},
    plan::{Change, Expect, Plan, Seen, Top, Tree},
    terms::Replaced,
    view::View,
    workspace::{Last, Node},
};

/// The arguments of `move`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Move {
    from: String,
    to: String,
    base: Option<String>,
    #[serde(default)]
    overwrite: bool,
}

impl Operation for Move {
    fn asks(&self, _view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        let from = Ask::spelled(&self.from, Need::Remove, Last::Keep).tree();
        let to = Ask::spelled(&self.to, Need::Write, Last::Keep);
        Ok(vec![from.with_base(self.base.as_deref())?, to])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let (source, place) = (&targets[0], &targets[1]);
        let node = standing::present(source)?;
        standing::movable(view, source, node)?;
        let (from, to) = (source.path.clone(), place.path.clone());
        if from == to {
            return match view.terms.replaced {
                Replaced::Kept => unmoved(view, source, node),
                // Nothing is put away to make room for itself.
                Replaced::Trashed => Err(Failure::new(Kind::Exists, format!("{to} is where it is already"))
                    .hint("choose another path")
                    .fact("path", to.to_string())
                    .fact("reason", "same_place")
                    .fact("type", super::stat::type_name(node.top))),
            };
        }
        if to.is_within(&from) && node.top == Top::Directory {
            return Err(Failure::new(Kind::InvalidPath, format!("{from} cannot be moved into itself"))
                .hint("choose a place outside of it"));
        }
        let over = self.over(view, node, place)?;
        let expect = standing::expected(view, &from, node, source.seen)?;
        let tree = standing::counted(view, &from, node)?;
        let moved = standing::expected_file(&expect);
        let replaced = over != Expect::Absent;
        let mut changes = parents::missing(view, &to)?;
        let over = match (view.terms.replaced, over, place.node) {
            (Replaced::Trashed, Expect::File(seen), Some(there)) => {
                changes.push(put_away(view, &to, seen, there));
                Expect::Absent
            }
            (Replaced::Kept | Replaced::Trashed, over, _) => over,
        };
        changes.push(Change::Move { from: from.clone(), to: to.clone(), expect, over, tree });
        Ok(Planned::Change {
            plan: Plan::of(changes),
            finish: Box::new(move |committed| {
                let rev = format!("r{}", committed.number);
                let text = format!("moved {from} to {to} ({}, {rev})", standing::amount(&tree));
                Facts::new()
                    .with("from", from.to_string())
                    .with("path", to.to_string())
                    .maybe("version", moved.map(|seen| seen.version.to_string()))
                    .with("rev", rev)
                    .with("changed", true)
                    .with("replaced", replaced)
                    .with("files", tree.files)
                    .with("bytes", tree.bytes)
                    .maybe("trash", committed.trash.first().cloned())
                    .committed(committed)
                    .line(text)
            }),
        })
    }
}

/// What is at the new place goes to the trash first.
pub(super) fn put_away(view: &View<'_>, path: &RelPath, seen: Seen, there: Node) -> Change {
    let keep_until_ms =
        view.workspace().now_ms().saturating_add(view.in_force.policy.trash_ms(&view.caller.principal));
    let tree = Tree { top: Top::File, files: 1, directories: 0, bytes: there.size };
    Change::Remove { path: path.clone(), expect: Expect::File(seen), keep_until_ms, tree }
}

impl Move {
    /// What a commit shall find at the new place.
    fn over(&self, view: &View<'_>, node: Node, place: &Target) -> Result<Expect, Failure> {
        let Some(there) = place.node else { return Ok(Expect::Absent) };
        replaceable(&place.path, node.top, there.top, self.overwrite.into())?;
        Ok(Expect::File(view.observe(&place.path)?))
    }
}

/// Whether the caller wants what is there to be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overwrite {
    /// It stays.
    No,
    /// It is replaced, if it is a file.
    Yes,
}

impl From<bool> for Overwrite {
    fn from(asked: bool) -> Self {
        if asked { Self::Yes } else { Self::No }
    }
}

/// Refuses unless a file goes where a file is and the caller said so.
pub(crate) fn replaceable(path: &RelPath, new: Top, old: Top, overwrite: Overwrite) -> Result<(), Failure> {
    let exists = |hint: &str| {
        let failure = Failure::new(Kind::Exists, format!("{path} already exists")).hint(hint);
        Err(failure.fact("path", path.to_string()).fact("type", super::stat::type_name(old)))
    };
    match (new, old, overwrite) {
        (Top::File, Top::File, Overwrite::Yes) => Ok(()),
        (Top::File, Top::File, Overwrite::No) => {
            exists("pass overwrite: true to replace it, or choose another path")
        }
        (_, Top::Directory, _) => exists("give the whole new path, with the new name at its end"),
        (_, Top::File | Top::Link | Top::Special, _) => {
            exists("choose another path; only a file can replace a file")
        }
    }
}

fn unmoved(view: &View<'_>, source: &Target, node: Node) -> Result<Planned, Failure> {
    let seen: Option<Seen> =
        standing::expected_file(&standing::expected(view, &source.path, node, source.seen)?);
    let path = source.path.to_string();
    let answer = Facts::new()
        .with("from", path.clone())
        .with("path", path.clone())
        .maybe("version", seen.map(|seen| seen.version.to_string()))
        .maybe("rev", seen.map(|seen| view.rev(&source.path, &seen.version)))
        .with("changed", false)
        .line(format!("{path} is already there; nothing was changed"));
    Ok(Planned::Read { answer, bytes: 0 })
}
