//! The base versions that a caller gives, by path. Assigns each to a section and checks that it is current.

use std::collections::BTreeMap;

use stead_path::RelPath;
use stead_text::patch::{FilePatch, PatchSectionKind};

use super::files::PatchFiles;
use crate::{
    call_context::CallContext,
    call_options::PatchBasePathMatching,
    errors::{Error, ErrorKind},
    limits,
    operation::ResolvedTarget,
    ops::diff,
    resolve,
    version::{BaseVersion, Version},
};

/// Base versions by path, as the patch writes it.
pub(super) struct PatchBases(BTreeMap<String, String>);

impl PatchBases {
    /// Assigns each base to its section.
    pub(super) fn new(
        context: &CallContext<'_>,
        given: &BTreeMap<String, String>,
        sections: &[FilePatch],
    ) -> Result<Self, Error> {
        let written = || sections.iter().flat_map(written_paths);
        let mut versions = BTreeMap::new();
        for (key, base) in given {
            BaseVersion::parse(base)?;
            match context.options.patch_options.base_matching {
                PatchBasePathMatching::ExactSpelling => {
                    versions.insert(key.clone(), base.clone());
                }
                PatchBasePathMatching::ResolvedPath => {
                    let base_path = resolve_section_path(context, key)?;
                    let mut named = written()
                        .filter(|path| try_resolve_section_path(context, path).as_ref() == Some(&base_path))
                        .peekable();
                    if named.peek().is_none() {
                        return Err(Error::new(
                            ErrorKind::BadRequest,
                            format!("base names {key}, which the patch does not touch"),
                        )
                        .with_next_step("write the paths as in the patch")
                        .with_detail("path", key.clone()));
                    }
                    versions.extend(named.map(|path| (path.to_owned(), base.clone())));
                }
            }
        }
        Ok(Self(versions))
    }

    /// Rejects a file that is not at its base version.
    pub(super) fn check_base(
        &self,
        files: &mut PatchFiles<'_, '_>,
        written: &str,
        target: &ResolvedTarget,
    ) -> Result<(), Error> {
        let Some(base) = self.0.get(written) else { return Ok(()) };
        let context = files.context();
        // A file that the patch itself created or moved has no earlier version.
        let Some(current) = files.version_before(&target.path)? else { return Ok(()) };
        let fits = match BaseVersion::parse(base)? {
            BaseVersion::Absent => false,
            BaseVersion::Version(version) => version == current,
            BaseVersion::Rev(number) => resolve::version_at(context, number, &target.path)? == current,
            BaseVersion::HashPrefix(digits) => current.to_string().starts_with(&digits),
        };
        if fits { Ok(()) } else { Err(stale_base_error(context, target, base, current)) }
    }

    /// Rejects a base other than "absent" for a missing file.
    pub(super) fn check_absent_base(&self, written: &str, target: &ResolvedTarget) -> Result<(), Error> {
        match self.0.get(written).map(|base| BaseVersion::parse(base)).transpose()? {
            None | Some(BaseVersion::Absent) => Ok(()),
            Some(BaseVersion::Version(_) | BaseVersion::Rev(_) | BaseVersion::HashPrefix(_)) => {
                Err(Error::new(ErrorKind::Stale, format!("{} does not exist, but the base says it does", target.path))
                    .with_next_step("pass \"\" as its base, or omit it")
                    .with_detail("path", target.path.to_string())
                    .with_detail("reason", "absent"))
            }
        }
    }
}

pub(super) fn written_paths(section: &FilePatch) -> Vec<&str> {
    match &section.kind {
        PatchSectionKind::Add { path, .. }
        | PatchSectionKind::Update { path, .. }
        | PatchSectionKind::Delete { path, .. } => vec![path],
        PatchSectionKind::Move { from, to, .. } => vec![from, to],
    }
}

pub(super) fn resolve_section_path(context: &CallContext<'_>, written: &str) -> Result<RelPath, Error> {
    Ok(stead_path::parse_path(written, &context.workspace().profile().root_spellings, &context.options.path_spelling)?
        .path)
}

fn try_resolve_section_path(context: &CallContext<'_>, written: &str) -> Option<RelPath> {
    resolve_section_path(context, written).ok()
}

/// An outdated base, with the changes since.
fn stale_base_error(context: &CallContext<'_>, target: &ResolvedTarget, base: &str, current: Version) -> Error {
    let path = &target.path;
    let error = Error::new(ErrorKind::Stale, format!("{path} changed since you read it"));
    if !context.may_read(path) {
        return error.with_detail("path", path.to_string());
    }
    let changed = diff::diff_since(context, target, base, limits::ERROR_LINES_MAX);
    let error = resolve::with_current_version(context, error, path, current).with_detail("expected", base);
    match changed {
        Some(changed) => error
            .with_excerpt(&changed)
            .with_detail("diff", changed)
            .with_next_step("see the diff, then repeat with the current version as base"),
        None => error.with_next_step(format!("read {path} again, then repeat with the current version as base")),
    }
}
