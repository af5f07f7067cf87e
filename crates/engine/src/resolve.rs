//! From spellings to targets, and from expected versions to checked ones. Rules are judged on what is found here,
//! never on a spelling.

use path::{Reading, RelPath, Spelling, Trailing};

use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Ask, Need, Place, Target},
    ops::type_name,
    plan::{Seen, Top},
    version::{Base, Version},
    view::View,
    workspace::{Last, Node, Workspace},
};

/// Resolves every place of a call.
pub(crate) fn targets(
    workspace: &dyn Workspace,
    asks: &[Ask],
    reading: &Reading,
) -> Result<Vec<Target>, Failure> {
    asks.iter().map(|ask| target(workspace, ask, reading)).collect()
}

fn target(workspace: &dyn Workspace, ask: &Ask, reading: &Reading) -> Result<Target, Failure> {
    let spelling = match &ask.place {
        Place::Spelled(text) => path::parse(text, &workspace.profile().roots, reading)?,
        Place::Known(path) => Spelling { path: path.clone(), trailing: Trailing::Open },
    };
    refuse_own(workspace, &spelling.path, &spelling)?;
    let (found, node) = look(workspace, ask, &spelling)?;
    if found.is_root() && ask.need != Need::Read {
        return Err(Failure::new(Kind::InvalidPath, "the workspace root itself cannot be changed")
            .hint("name something inside it")
            .fact("path", found.to_string()));
    }
    if spelling.trailing == Trailing::Directory {
        match node.map(|node| node.top) {
            Some(Top::Directory) | None => {}
            Some(Top::File | Top::Link | Top::Special) => {
                return Err(Failure::new(Kind::NotDirectory, format!("{found} is not a directory"))
                    .hint("drop the trailing slash"));
            }
        }
    }
    Ok(Target { path: found, node, seen: None, base: ask.base.clone() })
}

/// Where a spelling leads and what is there. A link where every link was followed is new, so it is looked again.
fn look(
    workspace: &dyn Workspace,
    ask: &Ask,
    spelling: &Spelling,
) -> Result<(RelPath, Option<Node>), Failure> {
    for _ in 0..limits::LOOKS_MAX {
        let (found, seen) = locate(workspace, ask, spelling)?;
        refuse_own(workspace, &found, spelling)?;
        let node = match seen {
            Some(node) => Some(node),
            None => workspace.stat(&found)?,
        };
        if ask.last == Last::Keep || node.is_none_or(|node| node.top != Top::Link) {
            return Ok((found, node));
        }
    }
    Err(Failure::new(Kind::Busy, "the place keeps changing while it is looked at").hint("call again"))
}

fn locate(
    workspace: &dyn Workspace,
    ask: &Ask,
    spelling: &Spelling,
) -> Result<(RelPath, Option<Node>), Failure> {
    let (found, seen) = workspace
        .find(&spelling.path, ask.last)
        .map_err(|failure| in_the_way(workspace, spelling, failure))?;
    match (spelling.trailing, ask.need, ask.last) {
        (Trailing::Open, _, _) | (Trailing::Directory, Need::Read, _) => Ok((found, seen)),
        (Trailing::Directory, Need::Write | Need::Hold, Last::Follow) => {
            Err(Failure::new(Kind::InvalidPath, "a file's path does not end in a slash"))
        }
        // A trailing slash would turn "the link" into "what it points at": say which is meant.
        (Trailing::Directory, Need::Write | Need::Remove | Need::Hold, _) => {
            let followed = workspace.locate(&spelling.path, Last::Follow)?;
            if followed == found {
                return Ok((found, seen));
            }
            Err(Failure::new(
                Kind::InvalidPath,
                format!("{found} is a link; a trailing slash would follow it"),
            )
            .hint("name the link without the slash, or the directory it points at"))
        }
    }
}

/// Names the file that a path wants to go through as if it were a directory.
fn in_the_way(workspace: &dyn Workspace, spelling: &Spelling, failure: Failure) -> Failure {
    if failure.kind != Kind::NotDirectory {
        return failure;
    }
    let is_file = |above: &RelPath| {
        let place = workspace.locate(above, Last::Follow).ok()?;
        let node = workspace.stat(&place).ok()??;
        (node.top != Top::Directory).then(|| above.to_string())
    };
    match spelling.path.ancestors().filter(|above| !above.is_root()).find_map(|above| is_file(&above)) {
        Some(file) => failure.fact("file", file),
        None => failure,
    }
}

/// The server's own places are refused whatever their case, before anything is looked up. The failure names what was
/// spelled, not what that leads to.
fn refuse_own(workspace: &dyn Workspace, path: &RelPath, spelling: &Spelling) -> Result<(), Failure> {
    let temporary = path.components().any(|name| name.starts_with(path::TEMPORARY_PREFIX.as_bytes()));
    let own = temporary
        || workspace.profile().own.iter().any(|own| {
            let mut folded = path.components().map(path::fold);
            own.components().all(|part| folded.next() == Some(path::fold(part)))
        });
    if !own {
        return Ok(());
    }
    let failure = Failure::new(Kind::ProtectedPath, "that place belongs to the server");
    Err(failure.fact("path", spelling.path.to_string()))
}

/// Compares expected versions with actual bytes.
pub(crate) fn check(view: &View<'_>, targets: &mut [Target]) -> Result<(), Failure> {
    for target in targets {
        let Some(base) = target.base.clone() else { continue };
        let actual = match target.node {
            Some(node) if node.top == Top::File => Some(view.observe(&target.path)?),
            Some(_) | None => None,
        };
        compare(view, target, &base, actual)?;
        target.seen = actual;
    }
    Ok(())
}

fn compare(view: &View<'_>, target: &Target, base: &Base, actual: Option<Seen>) -> Result<(), Failure> {
    let expected = match base {
        Base::Absent if target.node.is_some() => return Err(already_there(view, target, actual)),
        Base::Absent => return Ok(()),
        Base::Version(version) => Some(*version),
        Base::Rev(number) => Some(version_at(view, *number, &target.path)?),
        Base::Prefix(_) => None,
    };
    let Some(seen) = actual else {
        return match target.node {
            Some(node) => Err(Failure::new(Kind::BadRequest, "a base fits a file; this is not one")
                .hint("leave base out")
                .fact("type", type_name(node.top))),
            None => Err(Failure::new(Kind::Stale, format!("{} does not exist any more", target.path))
                .hint(format!("call history with path {} to see what happened", target.path))),
        };
    };
    let fits = match (expected, base) {
        (Some(version), _) => version == seen.version,
        (None, Base::Prefix(digits)) => seen.version.to_string().starts_with(digits),
        (None, Base::Absent | Base::Version(_) | Base::Rev(_)) => false,
    };
    if fits { Ok(()) } else { Err(stale(view, &target.path, seen.version, base)) }
}

/// What entry `number` left at this path.
pub(crate) fn version_at(view: &View<'_>, number: u64, path: &RelPath) -> Result<Version, Failure> {
    let unknown = || {
        Failure::new(Kind::BadRequest, format!("r{number} did not change {path}"))
            .hint(format!("call history with path {path} for its revs"))
    };
    let stored = view.workspace().entry(number)?.ok_or_else(unknown)?;
    let wire = path.to_wire();
    let left = stored.entry.changes.iter().rev().find_map(|change| {
        let place = change.to.as_deref().unwrap_or(&change.path);
        match &change.after {
            journal::State::File { version, .. } if place == wire => Some(Version(*version)),
            journal::State::File { .. }
            | journal::State::Absent
            | journal::State::Directory { .. }
            | journal::State::Link { .. }
            | journal::State::Tree { .. }
            | journal::State::Unknown { .. } => None,
        }
    });
    left.ok_or_else(unknown)
}

fn already_there(view: &View<'_>, target: &Target, actual: Option<Seen>) -> Failure {
    let failure = Failure::new(Kind::Exists, format!("{} already exists", target.path));
    match actual {
        Some(seen) => with_current(view, failure, &target.path, seen.version)
            .hint(format!("read {} and pass its version as base to replace it", target.path)),
        None => failure.hint("choose another path"),
    }
}

fn stale(view: &View<'_>, path: &RelPath, current: Version, base: &Base) -> Failure {
    let failure = Failure::new(Kind::Stale, format!("{path} is no longer the version you saw"));
    let since = match base {
        Base::Rev(number) => format!("call diff with path {path} and from r{number} to see what changed"),
        Base::Version(version) => {
            format!("call diff with path {path} and from {version} to see what changed")
        }
        Base::Absent | Base::Prefix(_) => format!("read {path} again"),
    };
    with_current(view, failure, path, current)
        .hint(format!("{since}, then repeat with the current version as base"))
}

/// Adds the current version and rev to a failure.
pub(crate) fn with_current(view: &View<'_>, failure: Failure, path: &RelPath, current: Version) -> Failure {
    let failure = failure.fact("path", path.to_string());
    // A hash tells whoever guesses right what is in a file, so it goes only to those who may read it.
    if !view.may_read(path) {
        return failure;
    }
    failure.fact("version", current.to_string()).fact("rev", view.rev(path, &current))
}
