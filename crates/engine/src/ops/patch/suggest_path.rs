//! Suggests a path for a missing file: a similar name in the same directory, or the same name elsewhere. Bounded, and
//! limited to what the caller may see.

use std::collections::VecDeque;

use stead_path::RelPath;

use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    operation::edit_distance,
    plan::FileKind,
};

/// Maximum edit distance of a suggested name.
const SUGGESTED_NAME_EDITS_MAX: usize = 2;

pub(super) fn missing_file_error(context: &CallContext<'_>, path: &RelPath) -> Error {
    let error = Error::new(ErrorKind::NotFound, format!("{path} does not exist")).with_detail("path", path.to_string());
    match similar_sibling(context, path).or_else(|| same_name_elsewhere(context, path)) {
        Some(closest) => {
            error.with_next_step(format!("did you mean {closest}?")).with_detail("closest", closest.to_string())
        }
        None => {
            let parent = path.parent().unwrap_or_default();
            error.with_next_step(format!("call list with path {parent} to see what is there"))
        }
    }
}

/// The file in the same directory with the most similar name.
fn similar_sibling(context: &CallContext<'_>, path: &RelPath) -> Option<RelPath> {
    let (parent, name) = path.split()?;
    let given = name.as_bytes().to_ascii_lowercase();
    let files = context.list_visible(&parent).ok()?.into_iter().filter(|listed| listed.kind == FileKind::File);
    files
        .take(limits::SUGGESTION_ENTRIES_MAX)
        .map(|listed| (edit_distance(&given, &listed.name.as_bytes().to_ascii_lowercase()), listed.name))
        .filter(|(edits, name)| *edits <= SUGGESTED_NAME_EDITS_MAX && edits * 2 <= name.as_bytes().len())
        .min_by_key(|(edits, name)| (*edits, name.as_bytes().to_vec()))
        .and_then(|(_, name)| parent.join(&name).ok())
}

/// The nearest file with the same name.
fn same_name_elsewhere(context: &CallContext<'_>, path: &RelPath) -> Option<RelPath> {
    let (_, name) = path.split()?;
    let mut waiting = VecDeque::from([RelPath::root()]);
    let mut visited = 0;
    while let Some(directory) = waiting.pop_front() {
        for listed in context.list_visible(&directory).ok()? {
            visited += 1;
            if visited > limits::SUGGESTION_ENTRIES_MAX || context.control.check().is_err() {
                return None;
            }
            let Ok(path) = directory.join(&listed.name) else { continue };
            match listed.kind {
                FileKind::File if listed.name == name => return Some(path),
                FileKind::Directory => waiting.push_back(path),
                FileKind::File | FileKind::Link | FileKind::Special => {}
            }
        }
    }
    None
}
