//! The versions that a caller says it has seen, path by path. Owns which section each is about and whether it is still
//! the current one.

use std::collections::BTreeMap;

use path::RelPath;
use text::patch::{Action, Section};

use super::places::Places;
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::Target,
    ops::diff,
    patching::Bases,
    resolve,
    version::{Base, Version},
    view::View,
};

/// The versions seen, by the path as the patch writes it.
pub(super) struct Versions(BTreeMap<String, String>);

impl Versions {
    /// Finds for each version the section that it is about.
    pub(super) fn new(
        view: &View<'_>,
        given: &BTreeMap<String, String>,
        sections: &[Section],
    ) -> Result<Self, Failure> {
        let written = || sections.iter().flat_map(paths);
        let mut versions = BTreeMap::new();
        for (key, base) in given {
            Base::parse(base)?;
            match view.terms.patching.bases {
                Bases::ByWord => {
                    versions.insert(key.clone(), base.clone());
                }
                Bases::ByPlace => {
                    let place = place(view, key)?;
                    let mut named =
                        written().filter(|path| place_of(view, path).as_ref() == Some(&place)).peekable();
                    if named.peek().is_none() {
                        return Err(Failure::new(
                            Kind::BadRequest,
                            format!("base names {key}, which the patch does not touch"),
                        )
                        .hint("name the paths as the patch does")
                        .fact("path", key.clone()));
                    }
                    versions.extend(named.map(|path| (path.to_owned(), base.clone())));
                }
            }
        }
        Ok(Self(versions))
    }

    /// Refuses unless a file is the version seen.
    pub(super) fn check(
        &self,
        places: &mut Places<'_, '_>,
        written: &str,
        target: &Target,
    ) -> Result<(), Failure> {
        let Some(base) = self.0.get(written) else { return Ok(()) };
        let view = places.view();
        // A file that the patch itself made or moved here was not there before.
        let Some(current) = places.version_before(&target.path)? else { return Ok(()) };
        let fits = match Base::parse(base)? {
            Base::Absent => false,
            Base::Version(version) => version == current,
            Base::Rev(number) => resolve::version_at(view, number, &target.path)? == current,
            Base::Prefix(digits) => current.to_string().starts_with(&digits),
        };
        if fits { Ok(()) } else { Err(stale(view, target, base, current)) }
    }

    /// Refuses unless nothing is what was seen.
    pub(super) fn absent(&self, written: &str, target: &Target) -> Result<(), Failure> {
        match self.0.get(written).map(|base| Base::parse(base)).transpose()? {
            None | Some(Base::Absent) => Ok(()),
            Some(Base::Version(_) | Base::Rev(_) | Base::Prefix(_)) => Err(Failure::new(
                Kind::Stale,
                format!("{} does not exist, but the base says it does", target.path),
            )
            .hint("give \"\" as its base, or none")
            .fact("path", target.path.to_string())
            .fact("reason", "absent")),
        }
    }
}

/// The paths that a section writes.
pub(super) fn paths(section: &Section) -> Vec<&str> {
    match &section.action {
        Action::Add { path, .. } | Action::Update { path, .. } | Action::Delete { path, .. } => vec![path],
        Action::Move { from, to, .. } => vec![from, to],
    }
}

pub(super) fn place(view: &View<'_>, written: &str) -> Result<RelPath, Failure> {
    Ok(path::parse(written, &view.workspace().profile().roots, &view.terms.reading)?.path)
}

fn place_of(view: &View<'_>, written: &str) -> Option<RelPath> {
    place(view, written).ok()
}

/// A base that is not current, with what changed since.
fn stale(view: &View<'_>, target: &Target, base: &str, current: Version) -> Failure {
    let path = &target.path;
    let failure = Failure::new(Kind::Stale, format!("{path} is no longer the version you saw"));
    if !view.may_read(path) {
        return failure.fact("path", path.to_string());
    }
    let changed = diff::since(view, target, base, limits::FAILURE_LINES_MAX);
    let failure = resolve::with_current(view, failure, path, current).fact("expected", base);
    match changed {
        Some(changed) => failure
            .shows(&changed)
            .fact("diff", changed)
            .hint("the diff says what changed; repeat with the current version as base"),
        None => failure.hint(format!("read {path} again, then repeat with the current version as base")),
    }
}
