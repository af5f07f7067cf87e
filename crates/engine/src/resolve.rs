//! Resolves path arguments to targets and compares base versions with the current files. Authorization checks the
//! resolved paths of a call, never the text of a path argument.

use stead_journal::PathState;
use stead_path::{ParsedPath, PathKindImpliedBySpelling, PathSyntax, RelPath, TEMPORARY_PREFIX, fold_name, parse_path};

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    next_step::NextStep,
    operation::{CallerOrRecordedPath, PathAccessRequest, RequestedAccessKind, ResolvedTarget},
    ops::{DiffArgs, HistoryArgs, ReadArgs, file_kind_name},
    plan::{FileKind, PlanTimeFileVersion},
    tree::{FinalSymlink, LocatedPath},
    version::{BaseVersion, Version},
    workspace_reader::WorkspaceReader,
};

pub(crate) fn resolve_targets(
    workspace: &WorkspaceReader<'_>,
    requests: &[PathAccessRequest],
    syntax: &PathSyntax,
) -> Result<Vec<ResolvedTarget>, Error> {
    requests.iter().map(|request| resolve_target(workspace, request, syntax)).collect()
}

fn resolve_target(
    workspace: &WorkspaceReader<'_>,
    request: &PathAccessRequest,
    syntax: &PathSyntax,
) -> Result<ResolvedTarget, Error> {
    let parsed = match &request.argument {
        CallerOrRecordedPath::FromCaller(text) => parse_path(text, &workspace.profile().root_spellings, syntax)?,
        CallerOrRecordedPath::Recorded(path) => {
            ParsedPath { path: path.clone(), required_kind: PathKindImpliedBySpelling::Any }
        }
    };
    refuse_server_files(workspace, &parsed.path, &parsed)?;
    let located = locate(workspace, request, &parsed)?;
    let (stat, found) = (located.stat(), located.path);
    refuse_server_files(workspace, &found, &parsed)?;
    if found.is_root() && request.access != RequestedAccessKind::Read {
        return Err(Error::new(ErrorKind::InvalidPath, "the workspace root itself cannot be changed")
            .with_next_step("give the path of an entry inside it")
            .with_path(found.to_string()));
    }
    if parsed.required_kind == PathKindImpliedBySpelling::Directory {
        match stat.map(|stat| stat.kind) {
            Some(FileKind::Directory) | None => {}
            Some(FileKind::File | FileKind::Link | FileKind::Special) => {
                return Err(Error::new(ErrorKind::NotDirectory, format!("{found} is not a directory"))
                    .with_next_step("remove the trailing slash from the path"));
            }
        }
    }
    Ok(ResolvedTarget { path: found, stat, observed: None, base: request.base.clone() })
}

fn locate(
    workspace: &WorkspaceReader<'_>,
    request: &PathAccessRequest,
    parsed: &ParsedPath,
) -> Result<LocatedPath, Error> {
    let located = workspace
        .locate(&parsed.path, request.final_symlink)
        .map_err(|error| with_blocking_file(workspace, parsed, error))?;
    match (parsed.required_kind, request.access, request.final_symlink) {
        (PathKindImpliedBySpelling::Any, _, _)
        | (PathKindImpliedBySpelling::Directory, RequestedAccessKind::Read, _) => Ok(located),
        (
            PathKindImpliedBySpelling::Directory,
            RequestedAccessKind::Write | RequestedAccessKind::ReadLocked,
            FinalSymlink::Follow,
        ) => Err(Error::new(
            ErrorKind::InvalidPath,
            format!("{}/ has a slash at the end, but the call needs the path of a file", parsed.path),
        )
        .with_next_step("remove the slash, or add the name of a file")),
        // A slash after a symlink means its target, but the call acts on the symlink itself, so the call is refused.
        (
            PathKindImpliedBySpelling::Directory,
            RequestedAccessKind::Write | RequestedAccessKind::Remove | RequestedAccessKind::ReadLocked,
            _,
        ) => {
            let found = &located.path;
            if workspace.locate(&parsed.path, FinalSymlink::Follow)?.path == *found {
                return Ok(located);
            }
            Err(Error::new(
                ErrorKind::InvalidPath,
                format!("{found} is a symlink, and the slash at the end would follow it"),
            )
            .with_next_step("give the path of the symlink without the slash, or the path of its target"))
        }
    }
}

fn with_blocking_file(workspace: &WorkspaceReader<'_>, parsed: &ParsedPath, error: Error) -> Error {
    if error.kind != ErrorKind::NotDirectory {
        return error;
    }
    let is_file = |above: &RelPath| {
        let stat = workspace.locate(above, FinalSymlink::Follow).ok()?.stat()?;
        (stat.kind != FileKind::Directory).then(|| above.to_string())
    };
    match parsed.path.ancestors().filter(|above| !above.is_root()).find_map(|above| is_file(&above)) {
        Some(file) => error.with_file(file),
        None => error,
    }
}

/// Refuses a path that belongs to the server's own files, ignoring the case of letters.
fn refuse_server_files(workspace: &WorkspaceReader<'_>, path: &RelPath, parsed: &ParsedPath) -> Result<(), Error> {
    let temporary = path.components().any(|name| name.starts_with(TEMPORARY_PREFIX.as_bytes()));
    let is_internal = temporary
        || workspace.profile().internal_paths.iter().any(|internal| {
            let mut folded = path.components().map(fold_name);
            internal.components().all(|part| folded.next() == Some(fold_name(part)))
        });
    if !is_internal {
        return Ok(());
    }
    let message = format!("{} is reserved for stead's own files", parsed.path);
    let error = Error::new(ErrorKind::ProtectedPath, message).with_next_step("choose another path");
    Err(error.with_path(parsed.path.to_string()))
}

pub(crate) fn check_bases(context: &CallContext<'_>, targets: &mut [ResolvedTarget]) -> Result<(), Error> {
    for target in targets {
        let Some(base) = target.base.clone() else { continue };
        let actual = match target.stat {
            Some(stat) if stat.kind == FileKind::File => Some(context.observe_version(&target.path)?),
            Some(_) | None => None,
        };
        compare_with_base(context, target, &base, actual)?;
        target.observed = actual;
    }
    Ok(())
}

fn compare_with_base(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    base: &BaseVersion,
    actual: Option<PlanTimeFileVersion>,
) -> Result<(), Error> {
    let expected = match base {
        BaseVersion::Absent if target.stat.is_some() => {
            return Err(already_exists_error(context, target, actual));
        }
        BaseVersion::Absent => return Ok(()),
        BaseVersion::Version(version) => Some(*version),
        BaseVersion::Rev(number) => Some(version_at(context, *number, &target.path)?),
        BaseVersion::HashPrefix(_) => None,
    };
    let Some(current) = actual else {
        return match target.stat {
            Some(stat) => Err(Error::new(
                ErrorKind::BadRequest,
                format!("{} is not a file, so it has no base version", target.path),
            )
            .with_next_step(NextStep::repeat_without("base"))
            .with_file_type(file_kind_name(stat.kind))),
            None => Err(Error::new(ErrorKind::Stale, format!("{} no longer exists", target.path))
                .with_next_step(NextStep::call(HistoryArgs::of_path(&target.path), "see which call removed it"))),
        };
    };
    let is_current = match (expected, base) {
        (Some(version), _) => version == current.version,
        (None, BaseVersion::HashPrefix(digits)) => current.version.to_string().starts_with(digits),
        (None, BaseVersion::Absent | BaseVersion::Version(_) | BaseVersion::Rev(_)) => false,
    };
    if is_current { Ok(()) } else { Err(stale_base_error(context, &target.path, current.version, base)) }
}

pub(crate) fn version_at(context: &CallContext<'_>, number: u64, path: &RelPath) -> Result<Version, Error> {
    let unknown = |reason: String| {
        Error::new(ErrorKind::BadRequest, reason)
            .with_next_step(NextStep::call(HistoryArgs::of_path(path), "see its revisions"))
    };
    let stored = context.workspace().entry(number)?;
    let stored = stored.ok_or_else(|| unknown(format!("this journal has no entry r{number}")))?;
    let wire = path.to_wire();
    let produced = stored.entry.changes.iter().rev().find_map(|change| {
        let PathState::File { version, .. } = &change.after else { return None };
        (change.to.as_deref().unwrap_or(&change.path) == wire).then_some(Version(*version))
    });
    produced.ok_or_else(|| unknown(format!("r{number} is not a version of {path}: that entry did not change it")))
}

fn already_exists_error(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    actual: Option<PlanTimeFileVersion>,
) -> Error {
    let error = Error::new(ErrorKind::Exists, format!("{} already exists", target.path));
    match actual {
        Some(current) => {
            let repeat = repeat_with_base(context, &target.path, current.version);
            with_current_version(context, error, &target.path, current.version)
                .with_next_step(NextStep::call(ReadArgs::new(&target.path), "see the file").then(repeat))
        }
        None => error.with_next_step("choose another path"),
    }
}

fn stale_base_error(context: &CallContext<'_>, path: &RelPath, current: Version, base: &BaseVersion) -> Error {
    let error = Error::new(ErrorKind::Stale, format!("{path} changed since you read it"));
    let diff_since =
        |from: String| NextStep::call(DiffArgs { path: path.to_string(), from, to: None }, "see what changed");
    let see_change = match base {
        BaseVersion::Rev(number) => diff_since(format!("r{number}")),
        BaseVersion::Version(version) => diff_since(version.to_string()),
        BaseVersion::Absent | BaseVersion::HashPrefix(_) => NextStep::call(ReadArgs::new(path), "see the current text"),
    };
    with_current_version(context, error, path, current)
        .with_next_step(see_change.then(repeat_with_base(context, path, current)))
}

/// The step after a stale base: the same call with the current version, if the caller may know it.
pub(crate) fn repeat_with_base(context: &CallContext<'_>, path: &RelPath, current: Version) -> NextStep {
    if context.may_read(path) {
        NextStep::repeat_with("base", context.revision_name(path, &current))
    } else {
        NextStep::repeat_with_such("base", "from a new read")
    }
}

pub(crate) fn with_current_version(context: &CallContext<'_>, error: Error, path: &RelPath, current: Version) -> Error {
    let error = error.with_path(path.to_string());
    // A hash lets a caller confirm guessed content, so only callers who may read the file get the hash.
    match context.reveal(path, current) {
        Some(current) => error.with_version(current.to_string()).with_rev(context.revision_name(path, &current)),
        None => error,
    }
}
