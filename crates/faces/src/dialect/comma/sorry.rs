//! From the engine's failures to the published kinds and sentences. The kind is mapped without a wildcard, so that a new
//! one has to be thought about; the words depend on the tool that was called.

use engine::{Failure, Kind};
use serde_json::Value;

use super::{
    Scene,
    envelope::{Fields, Sorry},
    place,
    tool::Tool,
};

/// What to do about a file that changed.
const STALE_NEXT: &str = "Re-read the file to obtain the current sha256 and re-apply your edit.";

/// The published kind of a failure.
pub(super) fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::InvalidPath | Kind::PathEscape | Kind::CrossMount => "outside_workspace",
        Kind::ProtectedPath
        | Kind::OutOfScope
        | Kind::ReadOnly
        | Kind::NotOwner
        | Kind::PolicyDenied
        | Kind::ApprovalPending
        | Kind::ApprovalDenied
        | Kind::ApprovalStale
        | Kind::Denied => "permission_denied",
        Kind::NotFound
        | Kind::NotDirectory
        | Kind::IsDirectory
        | Kind::NotRegular
        | Kind::LinkLoop
        | Kind::Expired => "not_found",
        Kind::Exists | Kind::NameCollision => "already_exists",
        Kind::NotText => "binary_file",
        Kind::TooLarge => "file_too_large",
        Kind::Stale | Kind::BaseRequired | Kind::Conflict => "stale_file",
        Kind::Deadline => "timeout",
        Kind::TextNotFound => "old_text_not_found",
        Kind::Ambiguous => "multiple_matches",
        Kind::Overlap => "overlapping_edits",
        Kind::AlreadyApplied => "patch_apply_error",
        Kind::MalformedPatch => "patch_parse_error",
        Kind::BadRequest
        | Kind::PathTooLong
        | Kind::NameTooLong
        | Kind::DepthLimit
        | Kind::InvalidName
        | Kind::Locked
        | Kind::NotEmpty
        | Kind::NothingToDo
        | Kind::HistoryLost
        | Kind::CorruptHistory
        | Kind::TooMany
        | Kind::Quota
        | Kind::RateLimited
        | Kind::NoSpace
        | Kind::Busy
        | Kind::Cancelled
        | Kind::AuditUnavailable
        | Kind::Io => "command_failed",
        Kind::UnknownOperation => "unknown",
    }
}

/// What is said of a call that failed.
pub(super) fn of(scene: &Scene<'_>, failure: &Failure) -> Sorry {
    match failure.kind {
        Kind::PathEscape | Kind::CrossMount => outside(scene, scene.spot()),
        Kind::InvalidPath => match scene.outside() {
            Some(given) => outside(scene, given),
            // Only the workspace itself is refused besides, and that is a directory.
            None => missing(scene, failure, Lack::Directory),
        },
        Kind::ProtectedPath | Kind::OutOfScope | Kind::ReadOnly => {
            denied(scene, failure.facts.get("path").and_then(Value::as_str).unwrap_or(scene.spot()))
        }
        Kind::Stale => match failure.facts.get("version").and_then(Value::as_str) {
            Some(actual) => stale(scene.spot(), scene.asked.text("expectedSha256"), actual),
            None => missing(scene, failure, Lack::Nothing),
        },
        // The version was well formed, so what it cannot fit is no file.
        Kind::BadRequest if scene.asked.text_maybe("expectedSha256").is_some() => {
            match failure.facts.get("type").and_then(Value::as_str) {
                Some("link") => linked(scene),
                Some("other") => general(scene, failure),
                Some(_) | None => missing(scene, failure, Lack::Directory),
            }
        }
        Kind::IsDirectory => missing(scene, failure, Lack::Directory),
        Kind::NotFound => match failure.facts.contains_key("parent") {
            true => missing(scene, failure, Lack::Parent),
            false => missing(scene, failure, Lack::Nothing),
        },
        Kind::NotDirectory => missing(scene, failure, Lack::NoDirectory),
        Kind::Exists => exists(scene, failure),
        Kind::Locked | Kind::Busy | Kind::Conflict | Kind::RateLimited => {
            general(scene, failure).recoverable()
        }
        Kind::BadRequest
        | Kind::UnknownOperation
        | Kind::PathTooLong
        | Kind::NameTooLong
        | Kind::DepthLimit
        | Kind::InvalidName
        | Kind::NameCollision
        | Kind::NotOwner
        | Kind::NotRegular
        | Kind::NotEmpty
        | Kind::LinkLoop
        | Kind::NotText
        | Kind::TextNotFound
        | Kind::Ambiguous
        | Kind::Overlap
        | Kind::AlreadyApplied
        | Kind::MalformedPatch
        | Kind::BaseRequired
        | Kind::NothingToDo
        | Kind::Expired
        | Kind::HistoryLost
        | Kind::CorruptHistory
        | Kind::TooLarge
        | Kind::TooMany
        | Kind::Quota
        | Kind::PolicyDenied
        | Kind::ApprovalPending
        | Kind::ApprovalDenied
        | Kind::ApprovalStale
        | Kind::NoSpace
        | Kind::Denied
        | Kind::Deadline
        | Kind::Cancelled
        | Kind::AuditUnavailable
        | Kind::Io => general(scene, failure),
    }
}

/// The engine's own words where the document has none.
fn general(scene: &Scene<'_>, failure: &Failure) -> Sorry {
    let sorry = Sorry::new(kind(failure.kind), failure.detail.clone()).at(scene.spot());
    match &failure.hint {
        Some(hint) => sorry.instead(hint.clone()),
        None => sorry,
    }
}

/// A place outside the workspace.
pub(super) fn outside(scene: &Scene<'_>, given: &str) -> Sorry {
    let workspace = scene.workspace;
    if given.starts_with('/') && scene.refuses_absolute() {
        let message = format!("Absolute paths are not allowed; use a path relative to \"{workspace}\".");
        return Sorry::new("outside_workspace", message).at(given);
    }
    Sorry::new("outside_workspace", format!("Path escapes sandbox jail (cwd: {workspace})"))
        .at(place::absolute(workspace, given))
}

/// A place that a rule keeps from this caller.
pub(super) fn denied(scene: &Scene<'_>, given: &str) -> Sorry {
    let place = place::absolute(scene.workspace, given);
    Sorry::new("permission_denied", format!("{} access denied for \"{place}\".", scene.tool.access()))
        .at(place)
}

/// A file that is not the one that was seen.
pub(super) fn stale(path: &str, expected: &str, actual: &str) -> Sorry {
    Sorry::new("stale_file", format!("File has changed since last read: {path}"))
        .at(path)
        .details(Fields::new().with("expectedSha256", expected).with("actualSha256", actual))
        .next(STALE_NEXT)
}

/// What a place lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lack {
    /// Nothing is there.
    Nothing,
    /// A directory is there.
    Directory,
    /// A file is where a directory is needed.
    NoDirectory,
    /// The directory it belongs in is missing.
    Parent,
}

fn missing(scene: &Scene<'_>, failure: &Failure, lack: Lack) -> Sorry {
    let path = scene.spot();
    let not_found = |message: String| Sorry::new("not_found", message).at(path);
    match scene.tool {
        Tool::ReadFile => match lack {
            Lack::Directory => {
                not_found(format!("Path is a directory, not a file: {path}. Use list_directory instead."))
                    .next(format!("Call list_directory with path=\"{path}\"."))
            }
            Lack::Nothing | Lack::NoDirectory | Lack::Parent => {
                not_found(format!("File does not exist: {path}"))
            }
        },
        Tool::ListDirectory => match (lack, failure.facts.contains_key("file")) {
            (Lack::NoDirectory, false) => {
                not_found(format!("Path is not a directory: {path}. Use read_file instead."))
                    .next(format!("Call read_file with path=\"{path}\"."))
            }
            (Lack::Nothing | Lack::Directory | Lack::NoDirectory | Lack::Parent, _) => {
                not_found(format!("Directory does not exist: {path}"))
            }
        },
        Tool::SearchFiles | Tool::Glob => match lack {
            Lack::NoDirectory => not_found(format!("Root is not a directory: {path}")),
            Lack::Nothing | Lack::Directory | Lack::Parent => {
                not_found(format!("Root does not exist: {path}"))
            }
        },
        Tool::CreateFile => match lack {
            Lack::Directory => exists(scene, failure),
            Lack::NoDirectory => not_found(format!("Parent path is not a directory: {path}")),
            Lack::Nothing | Lack::Parent => not_found(format!("Parent directory does not exist: {path}"))
                .next("Re-call create_file with `createParentDirectories: true`."),
        },
        Tool::WriteFile | Tool::EditFile | Tool::DeleteFile => match lack {
            Lack::Directory => not_found(format!("Path is a directory, not a file: {path}")),
            Lack::Nothing | Lack::NoDirectory | Lack::Parent => absent(scene.tool, path),
        },
        Tool::RestoreFile => match lack {
            Lack::Nothing | Lack::Directory => {
                let archive = scene.asked.text("trashedPath");
                Sorry::new("not_found", format!("Trash archive not found: {archive}")).at(archive)
            }
            Lack::NoDirectory | Lack::Parent => general(scene, failure),
        },
        Tool::MoveFile => moved(scene, lack),
        Tool::ApplyPatch => not_found(format!("Path is a directory, not a file: {path}")),
    }
}

fn absent(tool: Tool, path: &str) -> Sorry {
    let sorry = Sorry::new("not_found", format!("File does not exist: {path}")).at(path);
    match tool {
        Tool::WriteFile => sorry
            .next("Use create_file (optionally with `createParentDirectories: true`) to create a new file."),
        Tool::EditFile => sorry.next("Use create_file to create a new file, or verify the path."),
        Tool::ReadFile
        | Tool::ListDirectory
        | Tool::SearchFiles
        | Tool::Glob
        | Tool::CreateFile
        | Tool::DeleteFile
        | Tool::RestoreFile
        | Tool::MoveFile
        | Tool::ApplyPatch => sorry,
    }
}

fn moved(scene: &Scene<'_>, lack: Lack) -> Sorry {
    let (from, to) = (scene.asked.text("fromPath"), scene.asked.text("toPath"));
    let (message, path) = match lack {
        Lack::Nothing => (format!("Source file does not exist: {from}"), from),
        Lack::Directory => (format!("Source path is a directory, not a file: {from}"), from),
        Lack::NoDirectory => (format!("Destination parent is not a directory: {to}"), to),
        Lack::Parent => (format!("Destination parent directory does not exist: {to}"), to),
    };
    let sorry = Sorry::new("not_found", message).at(path);
    if lack != Lack::Parent {
        return sorry;
    }
    sorry.next(
        "Use create_file with `createParentDirectories: true` (then delete the placeholder) to create the directory, \
         or pick a destination whose parent exists.",
    )
}

/// A link is there, and a version fits only a file.
fn linked(scene: &Scene<'_>) -> Sorry {
    let path = scene.spot();
    let place = if scene.tool == Tool::MoveFile { "Source path" } else { "Path" };
    Sorry::new("not_found", format!("{place} is a symbolic link, not a file: {path}"))
        .at(path)
        .instead("Name the file that the link points to.")
}

/// Something is already where a file shall be moved. What `overwrite` cannot change is not blamed on its absence.
fn taken(scene: &Scene<'_>, failure: &Failure) -> Sorry {
    let to = scene.asked.text("toPath");
    let fact = |name: &str| failure.facts.get(name).and_then(Value::as_str);
    let exists = |message: &str| Sorry::new("already_exists", format!("{message}: {to}")).at(to);
    let there = "Destination already exists";
    match (fact("type"), scene.asked.is_set("overwrite")) {
        (Some("directory"), _) => exists("Destination is a directory"),
        (Some("link" | "other"), _) => {
            exists(there).instead("Pick a different toPath: only a regular file can be replaced.")
        }
        (_, true) if fact("reason") == Some("same_place") => {
            exists(there).instead("fromPath and toPath name the same file. Pick a different toPath.")
        }
        (_, true) => exists(there).instead("Pick a different toPath."),
        (_, false) => exists(there).next(
            "Re-call move_file with `overwrite: true` to replace the existing file (it will be trashed for recovery).",
        ),
    }
}

/// Something is already there.
fn exists(scene: &Scene<'_>, failure: &Failure) -> Sorry {
    let taken = |message: String, path: &str| Sorry::new("already_exists", message).at(path);
    match scene.tool {
        Tool::CreateFile => {
            let path = scene.spot();
            taken(format!("File already exists: {path}"), path).next(
                "Use write_file (with expectedSha256) to replace existing content, or pick a different path.",
            )
        }
        Tool::RestoreFile => {
            let recorded = failure.facts.get("path").and_then(Value::as_str);
            let path = scene.asked.text_maybe("targetPath").or(recorded).unwrap_or_default();
            taken(format!("Restore target already exists: {path}"), path)
                .next("Delete or move the existing file before restoring.")
        }
        Tool::MoveFile => self::taken(scene, failure),
        Tool::ReadFile
        | Tool::ListDirectory
        | Tool::SearchFiles
        | Tool::Glob
        | Tool::WriteFile
        | Tool::EditFile
        | Tool::DeleteFile
        | Tool::ApplyPatch => general(scene, failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published list.
    const KINDS: &[&str] = &[
        "not_found",
        "already_exists",
        "permission_denied",
        "outside_workspace",
        "binary_file",
        "file_too_large",
        "stale_file",
        "old_text_not_found",
        "multiple_matches",
        "overlapping_edits",
        "patch_parse_error",
        "patch_apply_error",
        "command_failed",
        "timeout",
        "skill_unavailable",
        "language_unavailable",
        "unknown",
    ];

    #[test]
    fn every_failure_has_a_published_kind() {
        for one in Kind::ALL {
            assert!(KINDS.contains(&kind(*one)), "{one:?}");
        }
    }
}
