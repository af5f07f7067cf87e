//! Maps engine errors to the published kinds and sentences. Kinds are mapped without a wildcard, so that every new kind
//! is considered; the text depends on the tool.

use serde_json::Value;
use stead_engine::{Error, ErrorKind};

use super::{
    CommaCall,
    envelope::{CommaError, CommaJsonFields},
    paths,
    tool::CommaTool,
};

const STALE_FILE_ADVICE: &str = "Re-read the file to obtain the current sha256 and re-apply your edit.";

pub(super) fn published_kind(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidPath | ErrorKind::PathEscape | ErrorKind::CrossMount => "outside_workspace",
        ErrorKind::ProtectedPath
        | ErrorKind::OutOfScope
        | ErrorKind::ReadOnly
        | ErrorKind::NotOwner
        | ErrorKind::PolicyDenied
        | ErrorKind::ApprovalPending
        | ErrorKind::ApprovalDenied
        | ErrorKind::ApprovalStale
        | ErrorKind::SystemDenied => "permission_denied",
        ErrorKind::NotFound
        | ErrorKind::NotDirectory
        | ErrorKind::IsDirectory
        | ErrorKind::NotRegular
        | ErrorKind::LinkLoop
        | ErrorKind::Expired => "not_found",
        ErrorKind::Exists | ErrorKind::NameCollision => "already_exists",
        ErrorKind::NotText => "binary_file",
        ErrorKind::TooLarge => "file_too_large",
        ErrorKind::Stale | ErrorKind::BaseRequired | ErrorKind::Conflict => "stale_file",
        ErrorKind::Deadline => "timeout",
        ErrorKind::TextNotFound => "old_text_not_found",
        ErrorKind::Ambiguous => "multiple_matches",
        ErrorKind::Overlap => "overlapping_edits",
        ErrorKind::AlreadyApplied => "patch_apply_error",
        ErrorKind::MalformedPatch => "patch_parse_error",
        ErrorKind::BadRequest
        | ErrorKind::PathTooLong
        | ErrorKind::NameTooLong
        | ErrorKind::DepthLimit
        | ErrorKind::InvalidName
        | ErrorKind::Locked
        | ErrorKind::NotEmpty
        | ErrorKind::NothingToDo
        | ErrorKind::HistoryLost
        | ErrorKind::CorruptHistory
        | ErrorKind::TooMany
        | ErrorKind::QuotaExceeded
        | ErrorKind::RateLimited
        | ErrorKind::NoSpace
        | ErrorKind::Busy
        | ErrorKind::Cancelled
        | ErrorKind::AuditUnavailable
        | ErrorKind::Io => "command_failed",
        ErrorKind::UnknownOperation => "unknown",
    }
}

pub(super) fn translate_error(call: &CommaCall<'_>, error: &Error) -> CommaError {
    match error.kind {
        ErrorKind::PathEscape | ErrorKind::CrossMount => outside_workspace_error(call, call.path_argument()),
        ErrorKind::InvalidPath => match call.first_path_outside() {
            Some(given) => outside_workspace_error(call, given),
            // The only other invalid path is the workspace itself, which is a directory.
            None => not_found_error(call, error, CommaPathProblem::IsDirectory),
        },
        ErrorKind::ProtectedPath | ErrorKind::OutOfScope | ErrorKind::ReadOnly => {
            access_denied_error(call, error.details.get("path").and_then(Value::as_str).unwrap_or(call.path_argument()))
        }
        ErrorKind::Stale => match error.details.get("version").and_then(Value::as_str) {
            Some(actual) => stale_file_error(call.path_argument(), call.args.text_or_empty("expectedSha256"), actual),
            None => not_found_error(call, error, CommaPathProblem::Missing),
        },
        // The hash was well-formed, so the path is not a file.
        ErrorKind::BadRequest if call.args.optional_text("expectedSha256").is_some() => {
            match error.details.get("type").and_then(Value::as_str) {
                Some("link") => symlink_error(call),
                Some("other") => generic_error(call, error),
                Some(_) | None => not_found_error(call, error, CommaPathProblem::IsDirectory),
            }
        }
        ErrorKind::IsDirectory => not_found_error(call, error, CommaPathProblem::IsDirectory),
        ErrorKind::NotFound => match error.details.contains_key("parent") {
            true => not_found_error(call, error, CommaPathProblem::ParentMissing),
            false => not_found_error(call, error, CommaPathProblem::Missing),
        },
        ErrorKind::NotDirectory => not_found_error(call, error, CommaPathProblem::NotDirectory),
        ErrorKind::Exists => already_exists_error(call, error),
        ErrorKind::Locked | ErrorKind::Busy | ErrorKind::Conflict | ErrorKind::RateLimited => {
            generic_error(call, error).retryable()
        }
        ErrorKind::BadRequest
        | ErrorKind::UnknownOperation
        | ErrorKind::PathTooLong
        | ErrorKind::NameTooLong
        | ErrorKind::DepthLimit
        | ErrorKind::InvalidName
        | ErrorKind::NameCollision
        | ErrorKind::NotOwner
        | ErrorKind::NotRegular
        | ErrorKind::NotEmpty
        | ErrorKind::LinkLoop
        | ErrorKind::NotText
        | ErrorKind::TextNotFound
        | ErrorKind::Ambiguous
        | ErrorKind::Overlap
        | ErrorKind::AlreadyApplied
        | ErrorKind::MalformedPatch
        | ErrorKind::BaseRequired
        | ErrorKind::NothingToDo
        | ErrorKind::Expired
        | ErrorKind::HistoryLost
        | ErrorKind::CorruptHistory
        | ErrorKind::TooLarge
        | ErrorKind::TooMany
        | ErrorKind::QuotaExceeded
        | ErrorKind::PolicyDenied
        | ErrorKind::ApprovalPending
        | ErrorKind::ApprovalDenied
        | ErrorKind::ApprovalStale
        | ErrorKind::NoSpace
        | ErrorKind::SystemDenied
        | ErrorKind::Deadline
        | ErrorKind::Cancelled
        | ErrorKind::AuditUnavailable
        | ErrorKind::Io => generic_error(call, error),
    }
}

/// The engine's message, where the document has none.
fn generic_error(call: &CommaCall<'_>, error: &Error) -> CommaError {
    let comma_error =
        CommaError::new(published_kind(error.kind), error.message.clone()).with_path(call.path_argument());
    match &error.next_step {
        Some(hint) => comma_error.do_instead(hint.clone()),
        None => comma_error,
    }
}

pub(super) fn outside_workspace_error(call: &CommaCall<'_>, given: &str) -> CommaError {
    let workspace = call.workspace_root;
    if given.starts_with('/') && call.rejects_absolute_paths() {
        let message = format!("Absolute paths are not allowed; use a path relative to \"{workspace}\".");
        return CommaError::new("outside_workspace", message).with_path(given);
    }
    CommaError::new("outside_workspace", format!("Path escapes sandbox jail (cwd: {workspace})"))
        .with_path(paths::absolute_path(workspace, given))
}

pub(super) fn access_denied_error(call: &CommaCall<'_>, given: &str) -> CommaError {
    let path = paths::absolute_path(call.workspace_root, given);
    CommaError::new("permission_denied", format!("{} access denied for \"{path}\".", call.tool.access_word()))
        .with_path(path)
}

pub(super) fn stale_file_error(path: &str, expected: &str, actual: &str) -> CommaError {
    CommaError::new("stale_file", format!("File has changed since last read: {path}"))
        .with_path(path)
        .with_details(CommaJsonFields::new().with("expectedSha256", expected).with("actualSha256", actual))
        .retry_with(STALE_FILE_ADVICE)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaPathProblem {
    Missing,
    IsDirectory,
    NotDirectory,
    ParentMissing,
}

fn not_found_error(call: &CommaCall<'_>, error: &Error, problem: CommaPathProblem) -> CommaError {
    let path = call.path_argument();
    let not_found = |message: String| CommaError::new("not_found", message).with_path(path);
    match call.tool {
        CommaTool::ReadFile => match problem {
            CommaPathProblem::IsDirectory => {
                not_found(format!("Path is a directory, not a file: {path}. Use list_directory instead."))
                    .retry_with(format!("Call list_directory with path=\"{path}\"."))
            }
            CommaPathProblem::Missing | CommaPathProblem::NotDirectory | CommaPathProblem::ParentMissing => {
                not_found(format!("File does not exist: {path}"))
            }
        },
        CommaTool::ListDirectory => match (problem, error.details.contains_key("file")) {
            (CommaPathProblem::NotDirectory, false) => {
                not_found(format!("Path is not a directory: {path}. Use read_file instead."))
                    .retry_with(format!("Call read_file with path=\"{path}\"."))
            }
            (
                CommaPathProblem::Missing
                | CommaPathProblem::IsDirectory
                | CommaPathProblem::NotDirectory
                | CommaPathProblem::ParentMissing,
                _,
            ) => not_found(format!("Directory does not exist: {path}")),
        },
        CommaTool::SearchFiles | CommaTool::Glob => match problem {
            CommaPathProblem::NotDirectory => not_found(format!("Root is not a directory: {path}")),
            CommaPathProblem::Missing | CommaPathProblem::IsDirectory | CommaPathProblem::ParentMissing => {
                not_found(format!("Root does not exist: {path}"))
            }
        },
        CommaTool::CreateFile => match problem {
            CommaPathProblem::IsDirectory => already_exists_error(call, error),
            CommaPathProblem::NotDirectory => not_found(format!("Parent path is not a directory: {path}")),
            CommaPathProblem::Missing | CommaPathProblem::ParentMissing => {
                not_found(format!("Parent directory does not exist: {path}"))
                    .retry_with("Re-call create_file with `createParentDirectories: true`.")
            }
        },
        CommaTool::WriteFile | CommaTool::EditFile | CommaTool::DeleteFile => match problem {
            CommaPathProblem::IsDirectory => not_found(format!("Path is a directory, not a file: {path}")),
            CommaPathProblem::Missing | CommaPathProblem::NotDirectory | CommaPathProblem::ParentMissing => {
                file_missing_error(call.tool, path)
            }
        },
        CommaTool::RestoreFile => match problem {
            CommaPathProblem::Missing | CommaPathProblem::IsDirectory => {
                let archive = call.args.text_or_empty("trashedPath");
                CommaError::new("not_found", format!("Trash archive not found: {archive}")).with_path(archive)
            }
            CommaPathProblem::NotDirectory | CommaPathProblem::ParentMissing => generic_error(call, error),
        },
        CommaTool::MoveFile => move_path_error(call, problem),
        CommaTool::ApplyPatch => not_found(format!("Path is a directory, not a file: {path}")),
    }
}

fn file_missing_error(tool: CommaTool, path: &str) -> CommaError {
    let error = CommaError::new("not_found", format!("File does not exist: {path}")).with_path(path);
    match tool {
        CommaTool::WriteFile => {
            error.retry_with("Use create_file (optionally with `createParentDirectories: true`) to create a new file.")
        }
        CommaTool::EditFile => error.retry_with("Use create_file to create a new file, or verify the path."),
        CommaTool::ReadFile
        | CommaTool::ListDirectory
        | CommaTool::SearchFiles
        | CommaTool::Glob
        | CommaTool::CreateFile
        | CommaTool::DeleteFile
        | CommaTool::RestoreFile
        | CommaTool::MoveFile
        | CommaTool::ApplyPatch => error,
    }
}

fn move_path_error(call: &CommaCall<'_>, problem: CommaPathProblem) -> CommaError {
    let (from, to) = (call.args.text_or_empty("fromPath"), call.args.text_or_empty("toPath"));
    let (message, path) = match problem {
        CommaPathProblem::Missing => (format!("Source file does not exist: {from}"), from),
        CommaPathProblem::IsDirectory => (format!("Source path is a directory, not a file: {from}"), from),
        CommaPathProblem::NotDirectory => (format!("Destination parent is not a directory: {to}"), to),
        CommaPathProblem::ParentMissing => (format!("Destination parent directory does not exist: {to}"), to),
    };
    let error = CommaError::new("not_found", message).with_path(path);
    if problem != CommaPathProblem::ParentMissing {
        return error;
    }
    error.retry_with(
        "Use create_file with `createParentDirectories: true` (then delete the placeholder) to create the directory, \
         or pick a destination whose parent exists.",
    )
}

/// A link is at the path, but a hash matches only files.
fn symlink_error(call: &CommaCall<'_>) -> CommaError {
    let path = call.path_argument();
    let subject = if call.tool == CommaTool::MoveFile { "Source path" } else { "Path" };
    CommaError::new("not_found", format!("{subject} is a symbolic link, not a file: {path}"))
        .with_path(path)
        .do_instead("Name the file that the link points to.")
}

/// The destination exists. Suggests `overwrite` only where it would help.
fn destination_exists_error(call: &CommaCall<'_>, error: &Error) -> CommaError {
    let to = call.args.text_or_empty("toPath");
    let detail = |name: &str| error.details.get(name).and_then(Value::as_str);
    let exists = |message: &str| CommaError::new("already_exists", format!("{message}: {to}")).with_path(to);
    let there = "Destination already exists";
    match (detail("type"), call.args.is_set("overwrite")) {
        (Some("directory"), _) => exists("Destination is a directory"),
        (Some("link" | "other"), _) => {
            exists(there).do_instead("Pick a different toPath: only a regular file can be replaced.")
        }
        (_, true) if detail("reason") == Some("same_place") => {
            exists(there).do_instead("fromPath and toPath name the same file. Pick a different toPath.")
        }
        (_, true) => exists(there).do_instead("Pick a different toPath."),
        (_, false) => exists(there).retry_with(
            "Re-call move_file with `overwrite: true` to replace the existing file (it will be trashed for recovery).",
        ),
    }
}

fn already_exists_error(call: &CommaCall<'_>, error: &Error) -> CommaError {
    let exists = |message: String, path: &str| CommaError::new("already_exists", message).with_path(path);
    match call.tool {
        CommaTool::CreateFile => {
            let path = call.path_argument();
            exists(format!("File already exists: {path}"), path).retry_with(
                "Use write_file (with expectedSha256) to replace existing content, or pick a different path.",
            )
        }
        CommaTool::RestoreFile => {
            let recorded = error.details.get("path").and_then(Value::as_str);
            let path = call.args.optional_text("targetPath").or(recorded).unwrap_or_default();
            exists(format!("Restore target already exists: {path}"), path)
                .retry_with("Delete or move the existing file before restoring.")
        }
        CommaTool::MoveFile => self::destination_exists_error(call, error),
        CommaTool::ReadFile
        | CommaTool::ListDirectory
        | CommaTool::SearchFiles
        | CommaTool::Glob
        | CommaTool::WriteFile
        | CommaTool::EditFile
        | CommaTool::DeleteFile
        | CommaTool::ApplyPatch => generic_error(call, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED_KINDS: &[&str] = &[
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
    fn every_error_kind_has_a_published_kind() {
        for kind in ErrorKind::ALL {
            assert!(PUBLISHED_KINDS.contains(&published_kind(*kind)), "{kind:?}");
        }
    }
}
