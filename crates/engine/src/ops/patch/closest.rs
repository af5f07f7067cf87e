//! The path that was meant when there is nothing at the one written. Owns a short look around: names that are nearly
//! the same in the same directory, and the same name elsewhere. Bounded, and blind to what the caller may not see.

use std::collections::VecDeque;

use path::RelPath;

use crate::{
    failure::{Failure, Kind},
    limits,
    operation::edits,
    plan::Top,
    view::View,
};

/// Most single-character edits between a name and the one that was meant.
const EDITS_MAX: usize = 2;

/// Nothing is there; what may have been meant.
pub(super) fn missing(view: &View<'_>, path: &RelPath) -> Failure {
    let failure =
        Failure::new(Kind::NotFound, format!("{path} does not exist")).fact("path", path.to_string());
    match beside(view, path).or_else(|| elsewhere(view, path)) {
        Some(meant) => failure.hint(format!("did you mean {meant}?")).fact("closest", meant.to_string()),
        None => {
            let parent = path.parent().unwrap_or_default();
            failure.hint(format!("call list with path {parent} to see what is there"))
        }
    }
}

/// The file in the same directory whose name is nearly the same.
fn beside(view: &View<'_>, path: &RelPath) -> Option<RelPath> {
    let (parent, name) = path.split()?;
    let given = name.as_bytes().to_ascii_lowercase();
    let files = view.list(&parent).ok()?.into_iter().filter(|listed| listed.top == Top::File);
    files
        .take(limits::CLOSEST_ENTRIES_MAX)
        .map(|listed| (edits(&given, &listed.name.as_bytes().to_ascii_lowercase()), listed.name))
        .filter(|(edits, name)| *edits <= EDITS_MAX && edits * 2 <= name.as_bytes().len())
        .min_by_key(|(edits, name)| (*edits, name.as_bytes().to_vec()))
        .and_then(|(_, name)| parent.join(&name).ok())
}

/// The nearest file of the same name.
fn elsewhere(view: &View<'_>, path: &RelPath) -> Option<RelPath> {
    let (_, name) = path.split()?;
    let mut waiting = VecDeque::from([RelPath::root()]);
    let mut looked = 0;
    while let Some(directory) = waiting.pop_front() {
        for listed in view.list(&directory).ok()? {
            looked += 1;
            if looked > limits::CLOSEST_ENTRIES_MAX || view.control.check().is_err() {
                return None;
            }
            let Ok(place) = directory.join(&listed.name) else { continue };
            match listed.top {
                Top::File if listed.name == name => return Some(place),
                Top::Directory => waiting.push_back(place),
                Top::File | Top::Link | Top::Special => {}
            }
        }
    }
    None
}
