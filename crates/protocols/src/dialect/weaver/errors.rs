//! Error sentences of generation 0.1.2: a prefix that names the failed step, then the operating system's text with the
//! absolute path.

use serde_json::Value;
use stead_engine::{Error, ErrorKind};

use super::{
    FilesystemReach,
    args::{WeaverCall, WeaverTool},
    path_argument::{WeaverPathArgument, clean_path},
};

const OUTSIDE_WORKSPACE_MESSAGE: &str = "access denied: path is outside the workspace";
const SYMLINK_OUTSIDE_MESSAGE: &str = "access denied: symlink resolves outside workspace";

const OS_ERROR_MESSAGES: &[(ErrorKind, &str)] = &[
    (ErrorKind::NotFound, "no such file or directory"),
    (ErrorKind::IsDirectory, "is a directory"),
    (ErrorKind::NotDirectory, "not a directory"),
    (ErrorKind::Exists, "file exists"),
    (ErrorKind::LinkLoop, "too many levels of symbolic links"),
    (ErrorKind::PathTooLong, "file name too long"),
    (ErrorKind::NameTooLong, "file name too long"),
    (ErrorKind::DepthLimit, "file name too long"),
    (ErrorKind::InvalidPath, "invalid argument"),
    (ErrorKind::SystemDenied, "permission denied"),
    (ErrorKind::ReadOnly, "read-only file system"),
    (ErrorKind::NoSpace, "no space left on device"),
    (ErrorKind::QuotaExceeded, "disk quota exceeded"),
    (ErrorKind::TooLarge, "file too large"),
    (ErrorKind::NotText, "invalid or incomplete multibyte or wide character"),
    (ErrorKind::Io, "input/output error"),
];

pub(super) fn error_sentence_v0_1_2(
    call: &WeaverCall<'_>,
    path: &WeaverPathArgument<'_>,
    reach: &FilesystemReach,
    error: &Error,
) -> String {
    let file = blocking_file(error);
    match (error.kind, reach) {
        (ErrorKind::PathEscape, _) => SYMLINK_OUTSIDE_MESSAGE.to_owned(),
        (ErrorKind::InvalidPath, _) if is_workspace_root_refused(error) => {
            failed_step(call, path, ErrorKind::IsDirectory, error)
        }
        (ErrorKind::InvalidPath, _) if call.path().contains('\0') => {
            "failed to resolve path: invalid argument".to_owned()
        }
        (ErrorKind::InvalidPath, FilesystemReach::Workspace) => OUTSIDE_WORKSPACE_MESSAGE.to_owned(),
        (ErrorKind::LinkLoop, FilesystemReach::Workspace) => {
            "failed to resolve path: EvalSymlinks: too many links".to_owned()
        }
        (ErrorKind::NotDirectory, FilesystemReach::Workspace) if file.is_some() => {
            "failed to resolve path: not a directory".to_owned()
        }
        (ErrorKind::NotDirectory, FilesystemReach::WholeMachine) if call.tool() == WeaverTool::WriteFile => {
            let blocked = file.map_or_else(|| path.absolute_path(), |file| clean_path("/", file));
            format!("failed to create directory: mkdir {blocked}: not a directory")
        }
        (ErrorKind::NotFound, _) if call.tool() == WeaverTool::EditFile => {
            format!("file not found: {}", call.path())
        }
        (kind, _) => edit_error(error).unwrap_or_else(|| failed_step(call, path, kind, error)),
    }
}

/// Errors that only an edit can have.
pub(super) fn edit_error(error: &Error) -> Option<String> {
    if error.kind == ErrorKind::TextNotFound {
        return Some("old_text not found in file. Make sure it matches exactly".to_owned());
    }
    let count = error.details.get("places_total").filter(|_| error.kind == ErrorKind::Ambiguous)?;
    Some(format!("old_text appears {count} times. Please provide more context to make it unique"))
}

pub(super) fn is_workspace_root_refused(error: &Error) -> bool {
    error.details.get("path").and_then(Value::as_str) == Some(".")
}

/// The file in the middle of a path, where a directory is needed.
pub(super) fn blocking_file(error: &Error) -> Option<&str> {
    ["file", "path"].iter().find_map(|detail| error.details.get(*detail).and_then(Value::as_str))
}

/// A failed step in the operating system's form.
fn failed_step(call: &WeaverCall<'_>, path: &WeaverPathArgument<'_>, kind: ErrorKind, error: &Error) -> String {
    let (prefix, verb) = match call.tool() {
        // A directory can be opened; reading it fails.
        WeaverTool::ReadFile | WeaverTool::EditFile if kind == ErrorKind::IsDirectory => {
            ("failed to read file", "read")
        }
        WeaverTool::ReadFile | WeaverTool::EditFile => ("failed to read file", "open"),
        WeaverTool::WriteFile => ("failed to write file", "open"),
        WeaverTool::ListDir => ("failed to read directory", "open"),
        WeaverTool::AppendFile => ("failed to open file", "open"),
    };
    format!("{prefix}: {verb} {}: {}", path.absolute_path(), os_error_message(kind, error))
}

/// The operating system's text for a kind; other kinds add the engine's message.
pub(super) fn os_error_message(kind: ErrorKind, error: &Error) -> String {
    match OS_ERROR_MESSAGES.iter().find(|(known, _)| *known == kind) {
        Some((_, text)) => (*text).to_owned(),
        None => format!("permission denied: {}", error.message),
    }
}
