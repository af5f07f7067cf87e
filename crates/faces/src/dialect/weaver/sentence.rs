//! What went wrong, in the sentences of generation 0.1.2: a prefix that says which step failed, then the operating
//! system's words with the absolute path.

use engine::{Failure, Kind};
use serde_json::Value;

use super::{
    Reach,
    asked::{Asked, Tool},
    spot::{Spot, cleaned},
};

const OUTSIDE: &str = "access denied: path is outside the workspace";
const LINK_OUTSIDE: &str = "access denied: symlink resolves outside workspace";

/// The operating system's words for what can go wrong.
const REASONS: &[(Kind, &str)] = &[
    (Kind::NotFound, "no such file or directory"),
    (Kind::IsDirectory, "is a directory"),
    (Kind::NotDirectory, "not a directory"),
    (Kind::Exists, "file exists"),
    (Kind::LinkLoop, "too many levels of symbolic links"),
    (Kind::PathTooLong, "file name too long"),
    (Kind::NameTooLong, "file name too long"),
    (Kind::DepthLimit, "file name too long"),
    (Kind::InvalidPath, "invalid argument"),
    (Kind::Denied, "permission denied"),
    (Kind::ReadOnly, "read-only file system"),
    (Kind::NoSpace, "no space left on device"),
    (Kind::Quota, "disk quota exceeded"),
    (Kind::TooLarge, "file too large"),
    (Kind::NotText, "invalid or incomplete multibyte or wide character"),
    (Kind::Io, "input/output error"),
];

/// The sentence for one failure.
pub(super) fn of(asked: &Asked<'_>, spot: &Spot<'_>, reach: &Reach, failure: &Failure) -> String {
    let file = file_in_the_way(failure);
    match (failure.kind, reach) {
        (Kind::PathEscape, _) => LINK_OUTSIDE.to_owned(),
        (Kind::InvalidPath, _) if is_root(failure) => step(asked, spot, Kind::IsDirectory, failure),
        (Kind::InvalidPath, _) if asked.path().contains('\0') => {
            "failed to resolve path: invalid argument".to_owned()
        }
        (Kind::InvalidPath, Reach::Workspace) => OUTSIDE.to_owned(),
        (Kind::LinkLoop, Reach::Workspace) => {
            "failed to resolve path: EvalSymlinks: too many links".to_owned()
        }
        (Kind::NotDirectory, Reach::Workspace) if file.is_some() => {
            "failed to resolve path: not a directory".to_owned()
        }
        (Kind::NotDirectory, Reach::Machine) if asked.tool() == Tool::WriteFile => {
            let blocked = file.map_or_else(|| spot.absolute(), |file| cleaned("/", file));
            format!("failed to create directory: mkdir {blocked}: not a directory")
        }
        (Kind::NotFound, _) if asked.tool() == Tool::EditFile => format!("file not found: {}", asked.path()),
        (kind, _) => of_edit(failure).unwrap_or_else(|| step(asked, spot, kind, failure)),
    }
}

/// What only an edit can meet.
pub(super) fn of_edit(failure: &Failure) -> Option<String> {
    if failure.kind == Kind::TextNotFound {
        return Some("old_text not found in file. Make sure it matches exactly".to_owned());
    }
    let count = failure.facts.get("places_total").filter(|_| failure.kind == Kind::Ambiguous)?;
    Some(format!("old_text appears {count} times. Please provide more context to make it unique"))
}

/// Whether the root of the workspace itself was refused.
pub(super) fn is_root(failure: &Failure) -> bool {
    failure.facts.get("path").and_then(Value::as_str) == Some(".")
}

/// The file that the path wanted to go through, when it is another one than the place itself.
pub(super) fn file_in_the_way(failure: &Failure) -> Option<&str> {
    ["file", "path"].iter().find_map(|fact| failure.facts.get(*fact).and_then(Value::as_str))
}

/// A failed step in the operating system's form.
fn step(asked: &Asked<'_>, spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    let (prefix, verb) = match asked.tool() {
        // A directory can be opened; it is reading that fails.
        Tool::ReadFile | Tool::EditFile if kind == Kind::IsDirectory => ("failed to read file", "read"),
        Tool::ReadFile | Tool::EditFile => ("failed to read file", "open"),
        Tool::WriteFile => ("failed to write file", "open"),
        Tool::ListDir => ("failed to read directory", "open"),
        Tool::AppendFile => ("failed to open file", "open"),
    };
    format!("{prefix}: {verb} {}: {}", spot.absolute(), reason(kind, failure))
}

/// The operating system's words for a kind; a refusal of our own says why behind them.
pub(super) fn reason(kind: Kind, failure: &Failure) -> String {
    match REASONS.iter().find(|(known, _)| *known == kind) {
        Some((_, words)) => (*words).to_owned(),
        None => format!("permission denied: {}", failure.detail),
    }
}
