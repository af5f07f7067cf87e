//! The base versions that the caller gives for the paths of a patch. Each base version is compared with the current
//! version of its file.

use std::collections::BTreeMap;

use stead_path::RelPath;
use stead_text::patch::{FilePatch, PatchSectionKind};

use super::{PatchArgs, files::PatchedFileMap};
use crate::{
    call_context::CallContext,
    call_options::PatchGrammar,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::ResolvedTarget,
    ops::{ReadArgs, diff},
    resolve,
    version::{BaseVersion, Version},
};

/// The base version of each path, with the paths spelled as in the patch.
pub(super) struct PatchBaseVersions(BTreeMap<String, String>);

impl PatchBaseVersions {
    pub(super) fn new(context: &CallContext<'_>, arguments: &PatchArgs, sections: &[FilePatch]) -> Result<Self, Error> {
        let written = || sections.iter().flat_map(written_paths);
        let mut versions = BTreeMap::new();
        for (key, base) in &arguments.base {
            BaseVersion::parse(base)?;
            match arguments.grammar {
                PatchGrammar::Strict | PatchGrammar::Exact => {
                    versions.insert(key.clone(), base.clone());
                }
                PatchGrammar::Tolerant => {
                    let base_path = resolve_section_path(context, key)?;
                    let mut matching = written()
                        .filter(|path| resolve_section_path(context, path).as_ref().ok() == Some(&base_path))
                        .peekable();
                    if matching.peek().is_none() {
                        return Err(Error::new(
                            ErrorKind::BadRequest,
                            format!("base contains {key}, but no section of the patch names it"),
                        )
                        .with_next_step("spell the paths in base as in the patch")
                        .with_path(key.clone()));
                    }
                    versions.extend(matching.map(|path| (path.to_owned(), base.clone())));
                }
            }
        }
        Ok(Self(versions))
    }

    pub(super) fn check_base(
        &self,
        files: &mut PatchedFileMap<'_, '_>,
        written: &str,
        target: &ResolvedTarget,
    ) -> Result<(), Error> {
        let Some(base) = self.0.get(written) else { return Ok(()) };
        let context = files.context();
        // A file that an earlier section of the patch created has no base version.
        let Some(current) = files.version_before(&target.path)? else { return Ok(()) };
        let is_current = match BaseVersion::parse(base)? {
            BaseVersion::Absent => false,
            BaseVersion::Version(version) => version == current,
            BaseVersion::Rev(number) => resolve::version_at(context, number, &target.path)? == current,
            BaseVersion::HashPrefix(digits) => current.to_string().starts_with(&digits),
        };
        if is_current { Ok(()) } else { Err(stale_base_error(context, target, base, current)) }
    }

    /// Rejects a base version which says that a missing file exists.
    pub(super) fn check_absent_base(&self, written: &str, target: &ResolvedTarget) -> Result<(), Error> {
        let Some(base) = self.0.get(written) else { return Ok(()) };
        match BaseVersion::parse(base)? {
            BaseVersion::Absent => Ok(()),
            BaseVersion::Version(_) | BaseVersion::Rev(_) | BaseVersion::HashPrefix(_) => {
                Err(Error::new(ErrorKind::Stale, format!("{} does not exist, but its base is {base}", target.path))
                    .with_next_step("pass \"\" as its base to create it, or omit the base")
                    .with_path(target.path.to_string())
                    .with_reason("absent"))
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

fn stale_base_error(context: &CallContext<'_>, target: &ResolvedTarget, base: &str, current: Version) -> Error {
    let path = &target.path;
    let error = Error::new(ErrorKind::Stale, format!("{path} changed since you read it"));
    if !context.may_read(path) {
        return error.with_path(path.to_string());
    }
    let changed = diff::diff_since(context, target, base, limits::ERROR_LINES_MAX);
    let error = resolve::with_current_version(context, error, path, current).with_expected(base);
    let rev = context.revision_name(path, &current);
    let repeat = NextStep::repeat_with_such("base", format!("{rev} for this file"));
    match changed {
        Some(changed) => error
            .with_excerpt(&changed)
            .with_diff(changed)
            .with_next_step(NextStep::from("read the diff and correct the patch").then(repeat)),
        None => error
            .with_next_step(NextStep::call(ReadArgs::new(path), "see the file").then("correct the patch").then(repeat)),
    }
}
