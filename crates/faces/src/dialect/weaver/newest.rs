//! The sentences of the newest generation: places below the workspace are spelled relative to it, as its rooted
//! handle sees them, and an edit shows its difference to the person.

use engine::{Answer, Failure, Kind};

use super::{
    Said,
    asked::{Asked, Standing, Tool},
    sentence::{file_in_the_way, is_root, reason},
    spot::Spot,
};

const ESCAPES: &str = "path escapes from parent";

/// The sentence for one failure.
pub(super) fn sentence(asked: &Asked<'_>, spot: &Spot<'_>, failure: &Failure) -> String {
    let root = is_root(failure);
    if failure.kind == Kind::InvalidPath && !root {
        let escapes = format!("path escapes workspace: {}", asked.path());
        return match asked.tool() {
            Tool::ListDir => format!("failed to read directory: {escapes}"),
            Tool::ReadFile | Tool::WriteFile | Tool::EditFile | Tool::AppendFile => escapes,
        };
    }
    let kind = if root { Kind::IsDirectory } else { failure.kind };
    match asked.tool() {
        Tool::ReadFile => read(asked, spot, kind, failure),
        Tool::ListDir if kind == Kind::NotDirectory && file_in_the_way(failure).is_none() => {
            format!("failed to read directory: readdirent {}: not a directory", spot.absolute())
        }
        Tool::ListDir => format!("failed to read directory: {}", at(spot, kind, failure)),
        Tool::WriteFile => written(asked, spot, kind, failure),
        Tool::EditFile | Tool::AppendFile => looked("failed to read file", spot, kind, failure),
    }
}

/// One failed look at a place, in the rooted handle's form.
fn at(spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    let words = if kind == Kind::PathEscape { ESCAPES.to_owned() } else { reason(kind, failure) };
    format!("openat {}: {words}", spot.relative())
}

fn looked(prefix: &str, spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    let step = at(spot, kind, failure);
    if kind == Kind::IsDirectory {
        return format!("{prefix}: read {}: is a directory", spot.absolute());
    }
    let known = [
        (Kind::NotFound, "file not found: "),
        (Kind::PathEscape, "access denied: "),
        (Kind::Denied, "access denied: "),
    ];
    let said = known.iter().find(|(known, _)| *known == kind).map_or("", |(_, said)| said);
    format!("{prefix}: {said}{step}")
}

fn read(asked: &Asked<'_>, spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    let in_lines = asked.window().is_some_and(|window| window.byte_range().is_none());
    match (kind, in_lines) {
        (Kind::IsDirectory, true) => format!("failed to open file: path is a directory: {}", asked.path()),
        (Kind::IsDirectory, false) => {
            format!("failed to read file content: read {}: is a directory", spot.absolute())
        }
        (kind, _) => looked("failed to open file", spot, kind, failure),
    }
}

fn written(asked: &Asked<'_>, spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    match (kind, asked.standing()) {
        (Kind::Exists | Kind::IsDirectory, Standing::Stays) => {
            format!("file: {} already exists. Set overwrite=true to replace.", asked.path())
        }
        (Kind::IsDirectory, Standing::Replaced) => {
            format!("failed to rename temp file over target: renameat {}: file exists", spot.relative())
        }
        (Kind::NotDirectory, _) => {
            let file = file_in_the_way(failure).unwrap_or_default();
            format!("failed to create parent directories: mkdirat {file}: not a directory")
        }
        (Kind::PathEscape, _) if spot.relative().contains('/') => {
            let relative = spot.relative();
            let parent = relative.rsplit_once('/').map_or(".", |(parent, _)| parent);
            format!("failed to create parent directories: mkdirat {parent}: {ESCAPES}")
        }
        (kind, _) => format!("failed to write temp file: {}", at(spot, kind, failure)),
    }
}

/// What is said of an edit.
pub(super) fn edited(path: &str, _answer: &Answer) -> Said {
    Said::silent(format!("File edited: {path}"))
}
