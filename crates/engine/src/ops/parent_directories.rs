//! Plans the directories missing above a new path. Every parent is a directory or missing; a file in between is never
//! replaced.

use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    call_options::MissingParentPolicy,
    errors::{Error, ErrorKind},
    plan::{FileKind, NEW_DIRECTORY_MODE, PlannedChange},
};

/// The changes that create the missing parents, outermost first.
pub(crate) fn create_missing_parents(context: &CallContext<'_>, path: &RelPath) -> Result<Vec<PlannedChange>, Error> {
    let changes = missing_parents(path, |above| Ok(context.workspace().stat(above)?.map(|stat| stat.kind)))?;
    match (context.options.missing_parents, path.parent()) {
        (MissingParentPolicy::Refuse, Some(parent)) if !changes.is_empty() => {
            Err(Error::new(ErrorKind::NotFound, format!("the directory {parent} does not exist"))
                .with_next_step("create it first, or ask for missing directories to be created")
                .with_detail("parent", parent.to_string()))
        }
        (MissingParentPolicy::Refuse | MissingParentPolicy::Create, _) => Ok(changes),
    }
}

/// Like [`create_missing_parents`], for a tree read through `top_at`.
pub(crate) fn missing_parents(
    path: &RelPath,
    mut top_at: impl FnMut(&RelPath) -> Result<Option<FileKind>, Error>,
) -> Result<Vec<PlannedChange>, Error> {
    let mut changes: Vec<PlannedChange> = Vec::new();
    for above in path.ancestors().filter(|above| !above.is_root()) {
        // Below a missing directory everything is missing, so no further lookup is needed.
        let top = if changes.is_empty() { top_at(&above)? } else { None };
        match top {
            Some(FileKind::Directory) => {}
            Some(FileKind::File | FileKind::Link | FileKind::Special) => {
                return Err(Error::new(ErrorKind::NotDirectory, format!("{above} is not a directory"))
                    .with_next_step("choose a path whose parents are directories")
                    .with_detail("path", above.to_string()));
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
