//! `restore`: something comes back from the trash, to where it was or to a free place. Never overwrites: where the terms
//! say that a file makes way, that file goes to the trash itself. The recorded place is as untrusted as any spelling, and
//! resolved and judged like one.

use journal::{Link, State};
use path::RelPath;
use serde::Deserialize;

use super::{
    answer::{Facts, excerpt, iso_utc},
    r#move::{self, Overwrite},
    parents, standing,
};
use crate::{
    caller::Principal,
    failure::{Failure, Kind},
    operation::{Ask, Need, Operation, Planned, Target},
    plan::{Change, Plan, Top},
    terms::Occupied,
    version::Version,
    view::View,
    workspace::{Last, Node, Trashed},
};

/// The arguments of `restore`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restore {
    trash: String,
    to: Option<String>,
}

impl Operation for Restore {
    fn asks(&self, view: &View<'_>) -> Result<Vec<Ask>, Failure> {
        let item = self.item(view)?;
        Ok(vec![match &self.to {
            Some(to) => Ask::spelled(to, Need::Write, Last::Keep),
            None => Ask::known(item.path, Need::Write),
        }])
    }

    fn plan(&self, view: &View<'_>, targets: &[Target]) -> Result<Planned, Failure> {
        let target = &targets[0];
        let item = self.item(view)?;
        let path = target.path.clone();
        let mut changes = parents::missing(view, &path)?;
        if let Some(there) = target.node {
            changes.push(make_way(view, &path, item.tree.top, there)?);
        }
        changes.push(Change::Restore { trash: item.id.clone(), path: path.clone(), tree: item.tree });
        let plan = Plan::linked(changes, Link::Restores(item.id.clone()));
        let version = recorded_version(view, &item)?;
        Ok(Planned::Change {
            plan,
            finish: Box::new(move |committed| finish(&path, &item, version, committed)),
        })
    }
}

/// What is at the place goes to the trash, if the terms say so and both are files.
fn make_way(view: &View<'_>, path: &RelPath, comes: Top, there: Node) -> Result<Change, Failure> {
    match view.terms.occupied {
        Occupied::Stays => Err(Failure::new(Kind::Exists, format!("{path} is taken"))
            .hint("pass to with a free path; restore never overwrites")
            .fact("path", path.to_string())
            .fact("type", super::stat::type_name(there.top))),
        Occupied::MakesWay => {
            r#move::replaceable(path, comes, there.top, Overwrite::Yes)?;
            Ok(r#move::put_away(view, path, view.observe(path)?, there))
        }
    }
}

fn finish(
    path: &RelPath,
    item: &Trashed,
    version: Option<Version>,
    committed: &crate::workspace::Committed,
) -> crate::engine::Answer {
    let rev = format!("r{}", committed.number);
    let text = format!("restored {path} ({}, {rev})", standing::amount(&item.tree));
    Facts::new()
        .with("path", path.to_string())
        .with("trash", item.id.clone())
        .with("from", item.path.to_string())
        .maybe("version", version.map(|version| version.to_string()))
        .with("rev", rev)
        .with("files", item.tree.files)
        .with("bytes", item.tree.bytes)
        .maybe("replaced", committed.trash.first().cloned())
        .committed(committed)
        .line(text)
}

impl Restore {
    /// The thing meant, if this caller may have it back.
    fn item(&self, view: &View<'_>) -> Result<Trashed, Failure> {
        let shown = excerpt(&self.trash);
        let found = match view.workspace().trashed(&self.trash)? {
            Some(item) => Some(item),
            None => self.newest_from(view)?,
        };
        let item = found.ok_or_else(|| {
            Failure::new(Kind::NotFound, format!("there is nothing in the trash with the id {shown}"))
                .hint("call history to find the removal; its time in the trash may be over")
        })?;
        let owned = match &view.caller.principal {
            Principal::User(_) | Principal::System | Principal::Outside => true,
            Principal::Agent(_) => item.owner == view.caller.principal.to_string(),
        };
        if !owned {
            return Err(Failure::new(Kind::NotOwner, format!("{shown} was removed by somebody else"))
                .hint("ask whoever removed it, or a person, to restore it"));
        }
        if item.keep_until_ms < view.workspace().now_ms() {
            return Err(Failure::new(
                Kind::Expired,
                format!("{shown} could come back until {}", iso_utc(item.keep_until_ms)),
            )
            .hint("ask a person for a backup"));
        }
        Ok(item)
    }
}

impl Restore {
    /// What was removed last from the place that is given instead of an id. An agent sees its own trash.
    fn newest_from(&self, view: &View<'_>) -> Result<Option<Trashed>, Failure> {
        let profile = view.workspace().profile();
        let Ok(spelled) = path::parse(&self.trash, &profile.roots, &view.terms.reading) else {
            return Ok(None);
        };
        let owner = match &view.caller.principal {
            Principal::User(_) | Principal::System | Principal::Outside => None,
            agent @ Principal::Agent(_) => Some(agent),
        };
        let items = view.workspace().trash(owner)?;
        Ok(items.into_iter().find(|item| item.path == spelled.path))
    }
}

/// The version of a removed file, when the removal recorded it.
fn recorded_version(view: &View<'_>, item: &Trashed) -> Result<Option<Version>, Failure> {
    if item.tree.top != Top::File {
        return Ok(None);
    }
    let Some(stored) = view.workspace().entry(item.entry)? else { return Ok(None) };
    let wire = item.path.to_wire();
    Ok(stored.entry.changes.iter().filter(|change| change.path == wire).find_map(|change| {
        match &change.before {
            State::File { version, .. } => Some(Version(*version)),
            State::Tree { version, .. } => version.map(Version),
            State::Absent | State::Directory { .. } | State::Link { .. } | State::Unknown { .. } => None,
        }
    }))
}
