//! The directories that must be made so that a new thing has a place. Owns one rule: everything above a new path is a
//! directory or is missing; a file in between is never replaced.

use path::RelPath;

use crate::{
    failure::{Failure, Kind},
    plan::{Change, NEW_DIRECTORY_MODE, Top},
    terms::Parents,
    view::View,
};

/// The changes that make the missing directories above a path, outermost first.
pub(crate) fn missing(view: &View<'_>, path: &RelPath) -> Result<Vec<Change>, Failure> {
    let changes = missing_from(path, |above| Ok(view.workspace().stat(above)?.map(|node| node.top)))?;
    match (view.terms.parents, path.parent()) {
        (Parents::Required, Some(parent)) if !changes.is_empty() => {
            Err(Failure::new(Kind::NotFound, format!("the directory {parent} does not exist"))
                .hint("make it first, or say that missing directories shall be made")
                .fact("parent", parent.to_string()))
        }
        (Parents::Required | Parents::Made, _) => Ok(changes),
    }
}

/// The same, for a tree that is looked at through `top_at`.
pub(crate) fn missing_from(
    path: &RelPath,
    mut top_at: impl FnMut(&RelPath) -> Result<Option<Top>, Failure>,
) -> Result<Vec<Change>, Failure> {
    let mut changes: Vec<Change> = Vec::new();
    for above in path.ancestors().filter(|above| !above.is_root()) {
        // Nothing can be below what is missing, so one look is enough from there on.
        let top = if changes.is_empty() { top_at(&above)? } else { None };
        match top {
            Some(Top::Directory) => {}
            Some(Top::File | Top::Link | Top::Special) => {
                return Err(Failure::new(Kind::NotDirectory, format!("{above} is not a directory"))
                    .hint("choose a path whose parents are directories")
                    .fact("path", above.to_string()));
            }
            None => changes.push(Change::MakeDirectory { path: above, mode: NEW_DIRECTORY_MODE }),
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(path: &str, directories: &[&str], files: &[&str]) -> Result<Vec<String>, Kind> {
        let path = RelPath::from_wire(path).unwrap();
        let changes = missing_from(&path, |above| {
            let wire = above.to_string();
            let is = |list: &[&str]| list.contains(&wire.as_str());
            Ok(if is(directories) { Some(Top::Directory) } else { is(files).then_some(Top::File) })
        });
        let changes = changes.map_err(|failure| failure.kind)?;
        Ok(changes.iter().flat_map(Change::paths).map(ToString::to_string).collect())
    }

    #[test]
    fn only_what_is_missing_is_made() {
        assert_eq!(made("f", &[], &[]), Ok(vec![]));
        assert_eq!(made("a/f", &["a"], &[]), Ok(vec![]));
        assert_eq!(made("a/b/c/f", &["a"], &[]), Ok(vec!["a/b".to_owned(), "a/b/c".to_owned()]));
    }

    #[test]
    fn a_file_in_between_is_refused() {
        assert_eq!(made("a/b/f", &["a"], &["a/b"]), Err(Kind::NotDirectory));
    }
}
