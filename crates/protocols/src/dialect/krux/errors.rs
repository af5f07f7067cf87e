//! The error objects of the `krux` dialect: the documented type and message, whether a retry may succeed, and the
//! recovery actions.

use serde_json::{Map, Value, json};
use stead_engine::{Error, ErrorKind};

use super::{
    KruxCall, KruxDialect,
    recovery::{self, KruxRecoveryPlaceholderValues},
};
use crate::{
    error_rows::{RetryAdvice, error_row},
    native::to_json_object,
};

/// The inputs that are paths, in the order in which an error names them.
pub(super) const PATH_INPUTS: [&str; 5] = ["path", "source", "destination", "original_path", "trash_path"];

macro_rules! error_types {
    ($($name:ident)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum KruxErrorType { $($name,)+ }

        impl KruxErrorType {
            pub(super) fn name(self) -> &'static str {
                match self { $(KruxErrorType::$name => stringify!($name),)+ }
            }
        }
    };
}

error_types! {
    PathOutOfScope FileNotFound DirectoryNotFound ParentNotFound NotADirectory IsADirectory
    NotAFile DirectoryNotEmpty DestinationExists EncodingError InvalidPattern InvalidInput
    DiskFull TrashEntryNotFound TrashEntryExpired TooManyWatches WatchNotFound SessionNotFound
    ApprovalPending PermissionDenied PolicyDenied ApprovalRejected ResourceExhausted RateLimited
    Conflict Timeout Cancelled InternalError
}

pub(super) fn invalid_input(field: &str, reason: &str) -> Error {
    Error::new(ErrorKind::BadRequest, format!("Invalid input: field '{field}' -- {reason}")).with_field(field)
}

pub(super) fn error_object(call: &KruxCall, error: &Error) -> Value {
    let (krux, tool) = (&*call.dialect, call.capability.as_str());
    let path = error_path(krux, &call.given_paths, error);
    // Only the error about too many watches has the detail `oldest`: the id of a watch that the caller can end, so that
    // a new watch can start.
    let watch_id = error.details.oldest.as_deref().unwrap_or_default();
    let subject = KruxRecoveryPlaceholderValues { capability: tool, path: &path, watch_id, paths: &krux.paths };
    let error_type = error_type(krux, tool, &path, error);
    let recovery = recovery::recovery_actions(krux, &subject, error_type, error);
    let retry = error_row(error.kind).retry;
    if retry == RetryAdvice::AfterApproval {
        return json!({
            "status": "pending_approval",
            "approval_id": error.details.approval,
            "capability": tool,
            "message": error.message,
            "recovery": recovery,
            "retryable": true,
            "context": error_context(&path, error),
        });
    }
    json!({
        "error": error_type.name(),
        "message": error_message(tool, error_type, &path, error),
        "recovery": recovery,
        "retryable": matches!(retry, RetryAdvice::Soon | RetryAdvice::AfterOthers | RetryAdvice::Later),
        "context": error_context(&path, error),
    })
}

/// A krux error repeats the path as the caller wrote it, if the error kind shows which input is wrong.
fn error_path(krux: &KruxDialect, given_paths: &Map<String, Value>, error: &Error) -> String {
    let given = |name: &str| given_paths.get(name).and_then(Value::as_str);
    let outside = || PATH_INPUTS.into_iter().filter_map(given).find(|written| krux.paths.parse(written).is_none());
    let written = if error.kind == ErrorKind::InvalidPath {
        outside()
    } else if error.kind == ErrorKind::Exists {
        given("destination").or_else(|| given("original_path"))
    } else if error.details.parent.is_some() {
        given("destination")
    } else {
        None
    };
    let engine = error.details.path.as_deref().map(|path| krux.paths.absolute_text(path));
    let first = || PATH_INPUTS.into_iter().find_map(given).unwrap_or_default().to_owned();
    written.map(str::to_owned).or(engine).unwrap_or_else(first)
}

fn error_type(krux: &KruxDialect, tool: &str, path: &str, error: &Error) -> KruxErrorType {
    match (error.kind, tool) {
        // The path is inside the workspace or contains a NUL byte. A path inside the workspace is invalid only if it is
        // the workspace itself, which no operation may remove or replace.
        (ErrorKind::InvalidPath, _) if krux.paths.parse(path).is_some() || path.contains('\0') => {
            KruxErrorType::InvalidInput
        }
        (ErrorKind::BadRequest, "filesystem.watch" | "filesystem.search" | "filesystem.search_content")
            if error.details.field.is_none() =>
        {
            KruxErrorType::InvalidPattern
        }
        (ErrorKind::TooMany, "filesystem.watch") => KruxErrorType::TooManyWatches,
        (ErrorKind::NotFound, "filesystem.unwatch") => KruxErrorType::WatchNotFound,
        (ErrorKind::NotFound, _) if error.details.parent.is_some() => KruxErrorType::ParentNotFound,
        (
            ErrorKind::NotFound,
            "filesystem.watch" | "filesystem.search" | "filesystem.search_content" | "filesystem.list",
        ) => KruxErrorType::DirectoryNotFound,
        (ErrorKind::NotFound | ErrorKind::NotOwner, "filesystem.restore") => KruxErrorType::TrashEntryNotFound,
        (ErrorKind::NotFound | ErrorKind::NothingToDo, "session.end") => KruxErrorType::SessionNotFound,
        (ErrorKind::NotDirectory, "filesystem.read") => KruxErrorType::FileNotFound,
        // The capabilities that write content have a documented error for a full disk. The same error is returned if a
        // quota is exceeded.
        (ErrorKind::QuotaExceeded, "filesystem.write" | "filesystem.append" | "filesystem.copy") => {
            KruxErrorType::DiskFull
        }
        (kind, _) => error_row(kind).krux,
    }
}

/// A krux error type without a documented message gets the engine's error message.
fn error_message(tool: &str, error_type: KruxErrorType, path: &str, error: &Error) -> String {
    match (error_type, tool.rsplit('.').next()) {
        (KruxErrorType::PathOutOfScope, _) => format!("Path '{path}' is outside the agent's allowed scope"),
        (KruxErrorType::FileNotFound, _) => format!("File not found: {path}"),
        (KruxErrorType::DirectoryNotFound, _) => format!("Directory not found: {path}"),
        (KruxErrorType::PermissionDenied, verb) => {
            format!("Permission denied: cannot {} '{path}'", verb.unwrap_or(tool))
        }
        (_, _) => error.message.clone(),
    }
}

fn error_context(path: &str, error: &Error) -> Value {
    let mut context = to_json_object(&error.details);
    if !path.is_empty() {
        context.insert("path".to_owned(), path.into());
    }
    Value::Object(context)
}
