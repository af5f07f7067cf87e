//! The error sentences of the `comma` dialect, and the mapping from the engine's errors to the published error kinds.
//! Different tools can have different sentences for the same error.

use serde::Serialize;
use serde_json::json;
use stead_engine::{Error, ErrorKind};
use stead_path::AbsolutePathRule;

use super::{
    super::rendering::clean_path,
    CommaToolCall,
    envelope::CommaToolError,
    inputs::{CommaMoveFileInput, CommaSearchMode, CommaToolInput},
};
use crate::error_rows::{RetryAdvice, error_row};

use crate::dialect::Dialect;

mod edits;

const STALE_FILE_ADVICE: &str = "Re-read the file to obtain the current sha256 and re-apply your edit.";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommaErrorKind {
    NotFound,
    AlreadyExists,
    PermissionDenied,
    OutsideWorkspace,
    BinaryFile,
    FileTooLarge,
    StaleFile,
    OldTextNotFound,
    MultipleMatches,
    OverlappingEdits,
    PatchParseError,
    PatchApplyError,
    CommandFailed,
    Timeout,
    Unknown,
}

pub(super) fn translate_error(call: &CommaToolCall, error: &Error) -> CommaToolError {
    let specific = match &call.input {
        CommaToolInput::EditFile(input) => edits::edit_error(input, error),
        CommaToolInput::ApplyPatch(input) => edits::patch_error(input, error),
        CommaToolInput::SearchFiles(input)
            if error.kind == ErrorKind::BadRequest && input.mode == CommaSearchMode::Regex =>
        {
            Some(invalid_regex_error(error))
        }
        CommaToolInput::ReadFile(_)
        | CommaToolInput::ListDirectory(_)
        | CommaToolInput::SearchFiles(_)
        | CommaToolInput::Glob(_)
        | CommaToolInput::CreateFile(_)
        | CommaToolInput::WriteFile(_)
        | CommaToolInput::DeleteFile(_)
        | CommaToolInput::RestoreFile(_)
        | CommaToolInput::MoveFile(_) => None,
    };
    specific.unwrap_or_else(|| general_error(call, error))
}

fn general_error(call: &CommaToolCall, error: &Error) -> CommaToolError {
    let path_error = |problem| not_found_error(call, error, problem);
    let hash = call.expected_sha256();
    match (error.kind, error.details.file_type.as_deref()) {
        (ErrorKind::PathEscape | ErrorKind::CrossMount, _) => outside_workspace_error(call, call.path_argument()),
        (ErrorKind::InvalidPath, _) => match call.first_path_outside() {
            Some(given) => outside_workspace_error(call, given),
            // The only invalid path inside the workspace is the workspace itself, which is a directory.
            None => path_error(CommaPathProblem::IsDirectory),
        },
        (ErrorKind::ProtectedPath | ErrorKind::OutOfScope | ErrorKind::ReadOnly, _) => {
            access_denied_error(call, error.details.path.as_deref().unwrap_or(call.path_argument()))
        }
        (ErrorKind::Stale, _) => match error.details.version.as_deref() {
            Some(actual) => stale_file_error(call.path_argument(), hash.unwrap_or_default(), actual),
            None => path_error(CommaPathProblem::Missing),
        },
        // The hash was already validated. The engine therefore rejected the request because the path is not a file.
        (ErrorKind::BadRequest, Some("link")) if hash.is_some() => symlink_error(call),
        (ErrorKind::BadRequest, Some("other")) if hash.is_some() => generic_error(call, error),
        (ErrorKind::BadRequest, _) if hash.is_some() => path_error(CommaPathProblem::IsDirectory),
        (ErrorKind::IsDirectory, _) => path_error(CommaPathProblem::IsDirectory),
        (ErrorKind::NotFound, _) if error.details.parent.is_some() => path_error(CommaPathProblem::ParentMissing),
        (ErrorKind::NotFound, _) => path_error(CommaPathProblem::Missing),
        (ErrorKind::NotDirectory, _) => path_error(CommaPathProblem::NotDirectory),
        (ErrorKind::Exists, _) => already_exists_error(call, error),
        (kind, _) if matches!(error_row(kind).retry, RetryAdvice::Soon | RetryAdvice::AfterOthers) => {
            generic_error(call, error).retryable()
        }
        (_, _) => generic_error(call, error),
    }
}

/// An error that the dialect's document does not describe gets the engine's message and next step.
fn generic_error(call: &CommaToolCall, error: &Error) -> CommaToolError {
    let comma_error =
        CommaToolError::new(error_row(error.kind).comma, error.message.clone()).with_path(call.path_argument());
    match call.dialect.call_style().render_hint(error) {
        Some(hint) => comma_error.do_instead(hint),
        None => comma_error,
    }
}

pub(super) fn unknown_tool_error(name: &str) -> CommaToolError {
    CommaToolError::new(CommaErrorKind::Unknown, format!("there is no tool {name}"))
}

pub(super) fn binary_file_error(path: &str) -> CommaToolError {
    let message = format!("File is binary: {path}. Pass allowBinary:true to receive base64 content.");
    CommaToolError::new(CommaErrorKind::BinaryFile, message).with_path(path).retry_with(
        "This file is binary. Decide whether you actually need its raw bytes; if so, call read_file again with \
         allowBinary: true. Most edits should use a text-aware tool instead.",
    )
}

fn invalid_regex_error(error: &Error) -> CommaToolError {
    let reason = error.details.reason.as_deref().unwrap_or(&error.message);
    CommaToolError::new(CommaErrorKind::CommandFailed, format!("Invalid regex: {reason}"))
        .retry_with("Fix the regex syntax and call search_files again.")
}

pub(super) fn invalid_move_error(call: &CommaToolCall, input: &CommaMoveFileInput) -> Option<CommaToolError> {
    if let Some(given) = call.first_path_outside() {
        return Some(outside_workspace_error(call, given));
    }
    let (from, to) = (input.from_path.as_str(), input.to_path.as_str());
    let message = "fromPath and toPath are identical — nothing to move.";
    (from == to).then(|| CommaToolError::new(CommaErrorKind::CommandFailed, message).with_path(from))
}

fn outside_workspace_error(call: &CommaToolCall, given: &str) -> CommaToolError {
    let workspace = &call.dialect.workspace_root;
    if given.starts_with('/') && call.dialect.path_syntax.absolute_paths == AbsolutePathRule::Refuse {
        let message = format!("Absolute paths are not allowed; use a path relative to \"{workspace}\".");
        return CommaToolError::new(CommaErrorKind::OutsideWorkspace, message).with_path(given);
    }
    CommaToolError::new(CommaErrorKind::OutsideWorkspace, format!("Path escapes sandbox jail (cwd: {workspace})"))
        .with_path(clean_path(workspace, given))
}

fn access_denied_error(call: &CommaToolCall, given: &str) -> CommaToolError {
    let path = clean_path(&call.dialect.workspace_root, given);
    let reads = matches!(
        call.input,
        CommaToolInput::ReadFile(_)
            | CommaToolInput::ListDirectory(_)
            | CommaToolInput::SearchFiles(_)
            | CommaToolInput::Glob(_)
    );
    let access = if reads { "fs.read" } else { "fs.write" };
    CommaToolError::new(CommaErrorKind::PermissionDenied, format!("{access} access denied for \"{path}\"."))
        .with_path(path)
}

fn stale_file_error(path: &str, expected: &str, actual: &str) -> CommaToolError {
    CommaToolError::new(CommaErrorKind::StaleFile, format!("File has changed since last read: {path}"))
        .with_path(path)
        .with_details(json!({ "expectedSha256": expected, "actualSha256": actual }))
        .retry_with(STALE_FILE_ADVICE)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaPathProblem {
    Missing,
    IsDirectory,
    NotDirectory,
    ParentMissing,
}

fn not_found_error(call: &CommaToolCall, error: &Error, problem: CommaPathProblem) -> CommaToolError {
    let path = call.path_argument();
    let not_found = |message: String| CommaToolError::new(CommaErrorKind::NotFound, message).with_path(path);
    let file_missing = || not_found(format!("File does not exist: {path}"));
    match (&call.input, problem) {
        (CommaToolInput::ReadFile(_), CommaPathProblem::IsDirectory) => {
            not_found(format!("Path is a directory, not a file: {path}. Use list_directory instead."))
                .retry_with(format!("Call list_directory with path=\"{path}\"."))
        }
        (CommaToolInput::ListDirectory(_), CommaPathProblem::NotDirectory) if error.details.file.is_none() => {
            not_found(format!("Path is not a directory: {path}. Use read_file instead."))
                .retry_with(format!("Call read_file with path=\"{path}\"."))
        }
        (CommaToolInput::ListDirectory(_), _) => not_found(format!("Directory does not exist: {path}")),
        (CommaToolInput::SearchFiles(_) | CommaToolInput::Glob(_), CommaPathProblem::NotDirectory) => {
            not_found(format!("Root is not a directory: {path}"))
        }
        (CommaToolInput::SearchFiles(_) | CommaToolInput::Glob(_), _) => {
            not_found(format!("Root does not exist: {path}"))
        }
        (CommaToolInput::CreateFile(_), CommaPathProblem::IsDirectory) => already_exists_error(call, error),
        (CommaToolInput::CreateFile(_), CommaPathProblem::NotDirectory) => {
            not_found(format!("Parent path is not a directory: {path}"))
        }
        (CommaToolInput::CreateFile(_), CommaPathProblem::Missing | CommaPathProblem::ParentMissing) => {
            not_found(format!("Parent directory does not exist: {path}"))
                .retry_with("Re-call create_file with `createParentDirectories: true`.")
        }
        (
            CommaToolInput::WriteFile(_) | CommaToolInput::EditFile(_) | CommaToolInput::DeleteFile(_),
            CommaPathProblem::IsDirectory,
        )
        | (CommaToolInput::ApplyPatch(_), _) => not_found(format!("Path is a directory, not a file: {path}")),
        (CommaToolInput::WriteFile(_), _) => file_missing()
            .retry_with("Use create_file (optionally with `createParentDirectories: true`) to create a new file."),
        (CommaToolInput::EditFile(_), _) => {
            file_missing().retry_with("Use create_file to create a new file, or verify the path.")
        }
        (CommaToolInput::ReadFile(_) | CommaToolInput::DeleteFile(_), _) => file_missing(),
        (CommaToolInput::RestoreFile(input), CommaPathProblem::Missing | CommaPathProblem::IsDirectory) => {
            let archive = input.trashed_path.as_str();
            CommaToolError::new(CommaErrorKind::NotFound, format!("Trash archive not found: {archive}"))
                .with_path(archive)
        }
        (CommaToolInput::RestoreFile(_), CommaPathProblem::NotDirectory | CommaPathProblem::ParentMissing) => {
            generic_error(call, error)
        }
        (CommaToolInput::MoveFile(input), _) => move_path_error(input, problem),
    }
}

fn move_path_error(input: &CommaMoveFileInput, problem: CommaPathProblem) -> CommaToolError {
    let (from, to) = (input.from_path.as_str(), input.to_path.as_str());
    let (message, path) = match problem {
        CommaPathProblem::Missing => (format!("Source file does not exist: {from}"), from),
        CommaPathProblem::IsDirectory => (format!("Source path is a directory, not a file: {from}"), from),
        CommaPathProblem::NotDirectory => (format!("Destination parent is not a directory: {to}"), to),
        CommaPathProblem::ParentMissing => (format!("Destination parent directory does not exist: {to}"), to),
    };
    let error = CommaToolError::new(CommaErrorKind::NotFound, message).with_path(path);
    if problem != CommaPathProblem::ParentMissing {
        return error;
    }
    error.retry_with(
        "Use create_file with `createParentDirectories: true` (then delete the placeholder) to create the directory, \
         or pick a destination whose parent exists.",
    )
}

fn symlink_error(call: &CommaToolCall) -> CommaToolError {
    let path = call.path_argument();
    let subject = if matches!(call.input, CommaToolInput::MoveFile(_)) { "Source path" } else { "Path" };
    CommaToolError::new(CommaErrorKind::NotFound, format!("{subject} is a symbolic link, not a file: {path}"))
        .with_path(path)
        .do_instead("Name the file that the link points to.")
}

/// If the destination of a move exists, the error suggests `overwrite` only if `overwrite` can help.
fn destination_exists_error(input: &CommaMoveFileInput, error: &Error) -> CommaToolError {
    let to = input.to_path.as_str();
    let exists =
        |message: &str| CommaToolError::new(CommaErrorKind::AlreadyExists, format!("{message}: {to}")).with_path(to);
    let taken = "Destination already exists";
    match (error.details.file_type.as_deref(), input.overwrite) {
        (Some("directory"), _) => exists("Destination is a directory"),
        (Some("link" | "other"), _) => {
            exists(taken).do_instead("Pick a different toPath: only a regular file can be replaced.")
        }
        (_, true) if error.details.reason.as_deref() == Some("same_place") => {
            exists(taken).do_instead("fromPath and toPath name the same file. Pick a different toPath.")
        }
        (_, true) => exists(taken).do_instead("Pick a different toPath."),
        (_, false) => exists(taken).retry_with(
            "Re-call move_file with `overwrite: true` to replace the existing file (it will be trashed for recovery).",
        ),
    }
}

fn already_exists_error(call: &CommaToolCall, error: &Error) -> CommaToolError {
    let exists =
        |message: String, path: &str| CommaToolError::new(CommaErrorKind::AlreadyExists, message).with_path(path);
    match &call.input {
        CommaToolInput::CreateFile(input) => {
            let path = input.path.as_str();
            exists(format!("File already exists: {path}"), path).retry_with(
                "Use write_file (with expectedSha256) to replace existing content, or pick a different path.",
            )
        }
        CommaToolInput::RestoreFile(input) => {
            let recorded = error.details.path.as_deref();
            let path = input.target_path.as_deref().or(recorded).unwrap_or_default();
            exists(format!("Restore target already exists: {path}"), path)
                .retry_with("Delete or move the existing file before restoring.")
        }
        CommaToolInput::MoveFile(input) => destination_exists_error(input, error),
        CommaToolInput::ReadFile(_)
        | CommaToolInput::ListDirectory(_)
        | CommaToolInput::SearchFiles(_)
        | CommaToolInput::Glob(_)
        | CommaToolInput::WriteFile(_)
        | CommaToolInput::EditFile(_)
        | CommaToolInput::DeleteFile(_)
        | CommaToolInput::ApplyPatch(_) => generic_error(call, error),
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
            let published = json!(error_row(*kind).comma);
            assert!(PUBLISHED_KINDS.iter().any(|word| published == *word), "{kind:?}");
        }
    }
}
