//! Error sentences of both versions of the original code, with the failed step, a path, and the error text of the
//! operating system. Version 0.1.2 of the original code shows absolute paths. The newest version of the original code
//! opens files relative to the workspace, so it shows relative paths.

use stead_engine::{Error, ErrorKind};

use super::{
    DialectFilesystemReach, clean_path,
    inputs::{WeaverDisplayPath, WeaverToolCall, WeaverToolInput},
};

const OUTSIDE_WORKSPACE_MESSAGE: &str = "access denied: path is outside the workspace";
const SYMLINK_OUTSIDE_MESSAGE: &str = "access denied: symlink resolves outside workspace";
const PATH_ESCAPES_REASON: &str = "path escapes from parent";
pub(super) const BINARY_FILE_MESSAGE: &str =
    "file appears to be binary; switch read_file mode to 'bytes' for byte-based inspection";

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
    call: &WeaverToolCall,
    path: &WeaverDisplayPath<'_>,
    reach: &DialectFilesystemReach,
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
        (ErrorKind::InvalidPath, DialectFilesystemReach::Workspace) => OUTSIDE_WORKSPACE_MESSAGE.to_owned(),
        (ErrorKind::LinkLoop, DialectFilesystemReach::Workspace) => {
            "failed to resolve path: EvalSymlinks: too many links".to_owned()
        }
        (ErrorKind::NotDirectory, DialectFilesystemReach::Workspace) if file.is_some() => {
            "failed to resolve path: not a directory".to_owned()
        }
        (ErrorKind::NotDirectory, DialectFilesystemReach::WholeMachine)
            if matches!(call.input, WeaverToolInput::WriteFile(_)) =>
        {
            let blocked = file.map_or_else(|| path.absolute_path(), |file| clean_path("/", file));
            format!("failed to create directory: mkdir {blocked}: not a directory")
        }
        (ErrorKind::NotFound, _) if matches!(call.input, WeaverToolInput::EditFile(_)) => {
            format!("file not found: {}", call.path())
        }
        (kind, _) => edit_error(error).unwrap_or_else(|| failed_step(call, path, kind, error)),
    }
}

fn edit_error(error: &Error) -> Option<String> {
    if error.kind == ErrorKind::TextNotFound {
        return Some("old_text not found in file. Make sure it matches exactly".to_owned());
    }
    let count = error.details.places_total.filter(|_| error.kind == ErrorKind::Ambiguous)?;
    Some(format!("old_text appears {count} times. Please provide more context to make it unique"))
}

fn is_workspace_root_refused(error: &Error) -> bool {
    error.details.path.as_deref() == Some(".")
}

/// Returns the file that a failed call used like a directory, such as `a` in the path `a/b`.
fn blocking_file(error: &Error) -> Option<&str> {
    error.details.file.as_deref().or(error.details.path.as_deref())
}

fn failed_step(call: &WeaverToolCall, path: &WeaverDisplayPath<'_>, kind: ErrorKind, error: &Error) -> String {
    let (prefix, verb) = match &call.input {
        // The original code can open a directory as a file; only the read from the directory fails.
        WeaverToolInput::ReadFile(_) | WeaverToolInput::EditFile(_) if kind == ErrorKind::IsDirectory => {
            ("failed to read file", "read")
        }
        WeaverToolInput::ReadFile(_) | WeaverToolInput::EditFile(_) => ("failed to read file", "open"),
        WeaverToolInput::WriteFile(_) => ("failed to write file", "open"),
        WeaverToolInput::ListDir(_) => ("failed to read directory", "open"),
        WeaverToolInput::AppendFile(_) => ("failed to open file", "open"),
    };
    format!("{prefix}: {verb} {}: {}", path.absolute_path(), os_error_message(kind, error))
}

fn os_error_message(kind: ErrorKind, error: &Error) -> String {
    match OS_ERROR_MESSAGES.iter().find(|(known, _)| *known == kind) {
        Some((_, text)) => (*text).to_owned(),
        None => format!("permission denied: {}", error.message),
    }
}

pub(super) fn error_sentence_newest(call: &WeaverToolCall, path: &WeaverDisplayPath<'_>, error: &Error) -> String {
    let is_root = is_workspace_root_refused(error);
    if error.kind == ErrorKind::InvalidPath && !is_root {
        let escapes = format!("path escapes workspace: {}", call.path());
        return match &call.input {
            WeaverToolInput::ListDir(_) => format!("failed to read directory: {escapes}"),
            WeaverToolInput::ReadFile(_)
            | WeaverToolInput::WriteFile(_)
            | WeaverToolInput::EditFile(_)
            | WeaverToolInput::AppendFile(_) => escapes,
        };
    }
    let kind = if is_root { ErrorKind::IsDirectory } else { error.kind };
    match &call.input {
        WeaverToolInput::ReadFile(_) => read_error(call, path, kind, error),
        WeaverToolInput::ListDir(_) if kind == ErrorKind::NotDirectory && blocking_file(error).is_none() => {
            format!("failed to read directory: readdirent {}: not a directory", path.absolute_path())
        }
        WeaverToolInput::ListDir(_) => format!("failed to read directory: {}", openat_error(path, kind, error)),
        WeaverToolInput::WriteFile(_) => write_error(call, path, kind, error),
        WeaverToolInput::EditFile(_) | WeaverToolInput::AppendFile(_) => {
            edit_error(error).unwrap_or_else(|| file_access_error("failed to read file", path, kind, error))
        }
    }
}

fn openat_error(path: &WeaverDisplayPath<'_>, kind: ErrorKind, error: &Error) -> String {
    let text =
        if kind == ErrorKind::PathEscape { PATH_ESCAPES_REASON.to_owned() } else { os_error_message(kind, error) };
    format!("openat {}: {text}", path.relative_path())
}

fn file_access_error(prefix: &str, path: &WeaverDisplayPath<'_>, kind: ErrorKind, error: &Error) -> String {
    let step = openat_error(path, kind, error);
    if kind == ErrorKind::IsDirectory {
        return format!("{prefix}: read {}: is a directory", path.absolute_path());
    }
    let known = [
        (ErrorKind::NotFound, "file not found: "),
        (ErrorKind::PathEscape, "access denied: "),
        (ErrorKind::SystemDenied, "access denied: "),
    ];
    let reason = known.iter().find(|(known, _)| *known == kind).map_or("", |(_, reason)| reason);
    format!("{prefix}: {reason}{step}")
}

fn read_error(call: &WeaverToolCall, path: &WeaverDisplayPath<'_>, kind: ErrorKind, error: &Error) -> String {
    let in_lines = call.window().is_some_and(|window| window.byte_range().is_none());
    match (kind, in_lines) {
        (ErrorKind::IsDirectory, true) => {
            format!("failed to open file: path is a directory: {}", call.path())
        }
        (ErrorKind::IsDirectory, false) => {
            format!("failed to read file content: read {}: is a directory", path.absolute_path())
        }
        (kind, _) => file_access_error("failed to open file", path, kind, error),
    }
}

fn write_error(call: &WeaverToolCall, path: &WeaverDisplayPath<'_>, kind: ErrorKind, error: &Error) -> String {
    match (kind, call.keeps_existing_file()) {
        (ErrorKind::Exists | ErrorKind::IsDirectory, true) => {
            format!("file: {} already exists. Set overwrite=true to replace.", call.path())
        }
        (ErrorKind::IsDirectory, false) => {
            format!("failed to rename temp file over target: renameat {}: file exists", path.relative_path())
        }
        (ErrorKind::NotDirectory, _) => {
            let file = blocking_file(error).unwrap_or_default();
            format!("failed to create parent directories: mkdirat {file}: not a directory")
        }
        (ErrorKind::PathEscape, _) if path.relative_path().contains('/') => {
            let relative = path.relative_path();
            let parent = relative.rsplit_once('/').map_or(".", |(parent, _)| parent);
            format!("failed to create parent directories: mkdirat {parent}: {PATH_ESCAPES_REASON}")
        }
        (kind, _) => format!("failed to write temp file: {}", openat_error(path, kind, error)),
    }
}
