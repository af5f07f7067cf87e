//! Planning functions that several operations share. A plan never turns a file into a directory.

use stead_path::RelPath;

use crate::{
    call_context::{CallContext, TooDeepEntryPolicy},
    call_options::MissingParentPolicy,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::ResolvedTarget,
    ops::ListArgs,
    plan::{
        CommitExpectation, FileKind, NEW_DIRECTORY_MODE, Plan, PlanTimeFileVersion, PlannedChange, PlannedContent,
        TreeSummary,
    },
    tree::FileStat,
    version::Version,
};

/// The permission bits that a plan may set, without the set-id bits and the sticky bit.
pub(crate) const PERMISSION_BITS: u32 = 0o777;

/// Builds the condition that the entry at `path` is unchanged at the commit; `observed` avoids hashing the file.
pub(crate) fn expectation_at(
    context: &CallContext<'_>,
    path: &RelPath,
    stat: FileStat,
    observed: Option<PlanTimeFileVersion>,
) -> Result<CommitExpectation, Error> {
    match (stat.kind, observed) {
        (FileKind::File, Some(observed)) => Ok(CommitExpectation::File(observed)),
        (FileKind::File, None) => Ok(CommitExpectation::File(context.observe_version(path)?)),
        (FileKind::Directory | FileKind::Link | FileKind::Special, _) => {
            Ok(CommitExpectation::SameEntry(stat.identity))
        }
    }
}

/// Counts the files, directories and bytes of a tree; entries whose path would be too deep are not counted.
pub(crate) fn count_tree(context: &CallContext<'_>, path: &RelPath, stat: FileStat) -> Result<TreeSummary, Error> {
    context.walk(path, stat, TooDeepEntryPolicy::Skip, &mut |_| Ok(()))
}

/// Fails for a call that may copy or move only regular files.
pub(crate) fn require_file_to_move(target: &ResolvedTarget, stat: FileStat) -> Result<(), Error> {
    let path = &target.path;
    match stat.kind {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(Error::new(ErrorKind::IsDirectory, format!("{path} is a directory"))
            .with_next_step("copy or move its files one by one")),
        FileKind::Link | FileKind::Special => {
            Err(Error::new(ErrorKind::NotRegular, format!("{path} is not a regular file"))
                .with_next_step("only regular files can be copied or moved"))
        }
    }
}

pub(crate) fn require_present(target: &ResolvedTarget) -> Result<FileStat, Error> {
    target.stat.ok_or_else(|| not_found_error(&target.path))
}

pub(crate) fn not_found_error(path: &RelPath) -> Error {
    let parent = path.parent().unwrap_or_default();
    Error::new(ErrorKind::NotFound, format!("{path} does not exist"))
        .with_next_step(NextStep::call(ListArgs::new(parent), "see the names in the directory"))
}

pub(crate) fn trash_deadline_ms(context: &CallContext<'_>) -> i64 {
    let retention_ms = context.policy.policy.trash_retention_ms(&context.caller.principal);
    context.workspace().now_ms().saturating_add(retention_ms)
}

/// Replaces a `too_large` error of a read by an error with a hint that fits a change of the file.
pub(crate) fn too_large_to_change_error(path: &RelPath, error: Error) -> Error {
    if error.kind != ErrorKind::TooLarge {
        return error;
    }
    let limit = limits::WRITE_BYTES_MAX;
    Error::new(ErrorKind::TooLarge, format!("{path} has more than {limit} bytes, the limit for changes"))
        .with_next_step(NextStep::from("write to another file").or_ask_person("change it with another program"))
        .with_limit_bytes(limit)
}

pub(crate) fn expected_version(expectation: &CommitExpectation) -> Option<PlanTimeFileVersion> {
    match expectation {
        CommitExpectation::File(observed) => Some(*observed),
        CommitExpectation::Absent | CommitExpectation::SameEntry(_) => None,
    }
}

pub fn describe_size(files: u64, bytes: u64) -> String {
    let noun = if files == 1 { "file" } else { "files" };
    format!("{files} {noun}, {bytes} bytes")
}

/// Plans the creation of the missing parent directories of a path, outermost first.
pub(crate) fn create_missing_parents(context: &CallContext<'_>, path: &RelPath) -> Result<Vec<PlannedChange>, Error> {
    let changes = missing_parents(path, |above| Ok(context.workspace().stat(above)?.map(|stat| stat.kind)))?;
    match (context.options.missing_parents, path.parent()) {
        (MissingParentPolicy::Refuse, Some(parent)) if !changes.is_empty() => {
            Err(Error::new(ErrorKind::NotFound, format!("the directory {parent} does not exist"))
                .with_next_step("create it first, or ask for missing directories to be created")
                .with_parent(parent.to_string()))
        }
        (MissingParentPolicy::Refuse | MissingParentPolicy::Create, _) => Ok(changes),
    }
}

/// Plans the write of a file with the mode that the call asks for, and the creation of its missing parents.
pub(crate) fn plan_file_write(
    context: &CallContext<'_>,
    path: &RelPath,
    expectation: CommitExpectation,
    (version, bytes): (Version, Vec<u8>),
) -> Result<Plan, Error> {
    let mut changes = create_missing_parents(context, path)?;
    let (path, size, mode) = (path.clone(), bytes.len() as u64, context.options.written_file_mode.mode_source());
    changes.push(PlannedChange::Put { path, expectation, content: PlannedContent::Bytes(bytes), version, size, mode });
    Ok(Plan::new(changes))
}

pub(crate) fn parent_not_directory_error(parent: &RelPath) -> Error {
    Error::new(ErrorKind::NotDirectory, format!("{parent} is not a directory"))
        .with_next_step("choose a path whose parents are directories")
        .with_path(parent.to_string())
}

/// Plans the creation of the missing parents of a path; `kind_at` returns the kinds of existing entries.
pub(crate) fn missing_parents(
    path: &RelPath,
    mut kind_at: impl FnMut(&RelPath) -> Result<Option<FileKind>, Error>,
) -> Result<Vec<PlannedChange>, Error> {
    let mut changes: Vec<PlannedChange> = Vec::new();
    for above in path.ancestors().filter(|above| !above.is_root()) {
        // Everything below a missing directory is missing too, so no further lookup is needed.
        let kind = if changes.is_empty() { kind_at(&above)? } else { None };
        match kind {
            Some(FileKind::Directory) => {}
            Some(FileKind::File | FileKind::Link | FileKind::Special) => {
                return Err(parent_not_directory_error(&above));
            }
            None => changes.push(PlannedChange::MakeDirectory { path: above, mode: NEW_DIRECTORY_MODE }),
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created_parents(path: &str, directories: &[&str], files: &[&str]) -> Result<Vec<String>, ErrorKind> {
        let path = RelPath::from_wire(path).unwrap();
        let changes = missing_parents(&path, |above| {
            let wire = above.to_string();
            let is = |list: &[&str]| list.contains(&wire.as_str());
            Ok(if is(directories) { Some(FileKind::Directory) } else { is(files).then_some(FileKind::File) })
        });
        let changes = changes.map_err(|error| error.kind)?;
        Ok(changes.iter().flat_map(PlannedChange::paths).map(ToString::to_string).collect())
    }

    #[test]
    fn only_missing_parents_are_created() {
        assert_eq!(created_parents("f", &[], &[]), Ok(vec![]));
        assert_eq!(created_parents("a/f", &["a"], &[]), Ok(vec![]));
        assert_eq!(created_parents("a/b/c/f", &["a"], &[]), Ok(vec!["a/b".to_owned(), "a/b/c".to_owned()]));
    }

    #[test]
    fn file_as_parent_is_rejected() {
        assert_eq!(created_parents("a/b/f", &["a"], &["a/b"]), Err(ErrorKind::NotDirectory));
    }
}
