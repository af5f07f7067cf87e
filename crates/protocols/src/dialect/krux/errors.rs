//! Errors: documented types and messages, whether a retry may help, and the recovery actions.

use serde_json::{Map, Value, json};
use stead_engine::{Error, ErrorKind};

use super::{
    KruxDialect,
    args::FIELD_DETAIL,
    capability::{
        KruxAgentCapability, KruxCapability, KruxFileCapability, KruxTransferCapability, KruxWatchCapability,
    },
    recovery::{self, KruxErrorSubject},
};

pub(super) fn error_object(
    krux: &KruxDialect,
    tool: &str,
    known: Option<KruxCapability>,
    arguments: &Map<String, Value>,
    error: &Error,
) -> Value {
    if matches!(error.kind, ErrorKind::ApprovalPending | ErrorKind::ApprovalStale) {
        return pending_approval_object(krux, tool, &error_path(krux, arguments, error), error);
    }
    let path = error_path(krux, arguments, error);
    let kind = published_kind(krux, known, &path, error);
    let subject = KruxErrorSubject { capability: tool, path: &path, watch_id: oldest_watch(error), paths: &krux.paths };
    let recovery = recovery::recovery_actions(krux, &subject, kind, error);
    json!({
        "error": kind,
        "message": error_message(tool, kind, &path, error),
        "recovery": recovery,
        "retryable": is_retryable(error.kind),
        "context": error_context(&path, error),
    })
}

fn pending_approval_object(krux: &KruxDialect, tool: &str, path: &str, error: &Error) -> Value {
    let subject = KruxErrorSubject { capability: tool, path, watch_id: oldest_watch(error), paths: &krux.paths };
    json!({
        "status": "pending_approval",
        "approval_id": error.details.get("approval"),
        "capability": tool,
        "message": error.message,
        "recovery": recovery::recovery_actions(krux, &subject, "ApprovalPending", error),
        "retryable": true,
        "context": error_context(path, error),
    })
}

/// The path that an error concerns, as the caller wrote it.
fn error_path(krux: &KruxDialect, arguments: &Map<String, Value>, error: &Error) -> String {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str);
    let names = ["path", "source", "destination", "original_path", "trash_path"];
    let outside = || names.into_iter().filter_map(given).find(|written| krux.paths.parse(written).is_none());
    let written = if error.kind == ErrorKind::InvalidPath {
        outside()
    } else if error.kind == ErrorKind::Exists {
        given("destination").or_else(|| given("original_path"))
    } else if error.details.contains_key("parent") {
        given("destination")
    } else {
        None
    };
    let engine = error.details.get("path").and_then(Value::as_str).map(|path| krux.paths.absolute_path(path));
    let first = || names.into_iter().find_map(given).unwrap_or_default().to_owned();
    written.map(str::to_owned).or(engine).unwrap_or_else(first)
}

/// The watch that could be ended to make room.
fn oldest_watch(error: &Error) -> &str {
    error.details.get("oldest").and_then(Value::as_str).unwrap_or_default()
}

fn published_kind(krux: &KruxDialect, tool: Option<KruxCapability>, path: &str, error: &Error) -> &'static str {
    let starts_watch = tool == Some(KruxCapability::Watch(KruxWatchCapability::Start));
    let needs_directory = starts_watch
        || matches!(tool, Some(KruxCapability::File(KruxFileCapability::List) | KruxCapability::Search(_)));
    match error.kind {
        // The workspace itself is a valid path that no operation may remove or replace.
        ErrorKind::InvalidPath if krux.paths.parse(path).is_some() || path.contains('\0') => "InvalidInput",
        ErrorKind::InvalidPath | ErrorKind::PathEscape | ErrorKind::OutOfScope | ErrorKind::CrossMount => {
            "PathOutOfScope"
        }
        ErrorKind::BadRequest if error.details.contains_key(FIELD_DETAIL) => "InvalidInput",
        ErrorKind::BadRequest if starts_watch || matches!(tool, Some(KruxCapability::Search(_))) => "InvalidPattern",
        ErrorKind::TooMany if starts_watch => "TooManyWatches",
        ErrorKind::NotFound if tool == Some(KruxCapability::Watch(KruxWatchCapability::End)) => "WatchNotFound",
        ErrorKind::NotFound if error.details.contains_key("parent") => "ParentNotFound",
        ErrorKind::NotFound if needs_directory => "DirectoryNotFound",
        ErrorKind::NotFound if tool == Some(KruxCapability::Transfer(KruxTransferCapability::Restore)) => {
            "TrashEntryNotFound"
        }
        ErrorKind::NotFound | ErrorKind::NothingToDo
            if tool == Some(KruxCapability::Agent(KruxAgentCapability::EndSession)) =>
        {
            "SessionNotFound"
        }
        ErrorKind::NotOwner if tool == Some(KruxCapability::Transfer(KruxTransferCapability::Restore)) => {
            "TrashEntryNotFound"
        }
        ErrorKind::NotFound => "FileNotFound",
        ErrorKind::NotDirectory if tool == Some(KruxCapability::File(KruxFileCapability::Read)) => "FileNotFound",
        ErrorKind::NotDirectory => "NotADirectory",
        ErrorKind::IsDirectory => "IsADirectory",
        ErrorKind::NotRegular | ErrorKind::LinkLoop => "NotAFile",
        ErrorKind::NotEmpty => "DirectoryNotEmpty",
        ErrorKind::Exists => "DestinationExists",
        ErrorKind::NotText => "EncodingError",
        // The documented error for a full disk covers quotas too.
        ErrorKind::QuotaExceeded if writes_bytes(tool) => "DiskFull",
        ErrorKind::NoSpace => "DiskFull",
        ErrorKind::Expired => "TrashEntryExpired",
        ErrorKind::ProtectedPath | ErrorKind::ReadOnly | ErrorKind::NotOwner | ErrorKind::SystemDenied => {
            "PermissionDenied"
        }
        ErrorKind::PolicyDenied => "PolicyDenied",
        ErrorKind::ApprovalDenied => "ApprovalRejected",
        ErrorKind::RateLimited => "RateLimited",
        ErrorKind::TooLarge | ErrorKind::TooMany | ErrorKind::QuotaExceeded => "ResourceExhausted",
        ErrorKind::Locked
        | ErrorKind::Stale
        | ErrorKind::BaseRequired
        | ErrorKind::Conflict
        | ErrorKind::Busy
        | ErrorKind::ApprovalPending
        | ErrorKind::ApprovalStale => "Conflict",
        ErrorKind::Deadline => "Timeout",
        ErrorKind::Cancelled => "Cancelled",
        ErrorKind::BadRequest
        | ErrorKind::UnknownOperation
        | ErrorKind::PathTooLong
        | ErrorKind::NameTooLong
        | ErrorKind::DepthLimit
        | ErrorKind::InvalidName
        | ErrorKind::NameCollision
        | ErrorKind::TextNotFound
        | ErrorKind::Ambiguous
        | ErrorKind::Overlap
        | ErrorKind::AlreadyApplied
        | ErrorKind::MalformedPatch
        | ErrorKind::NothingToDo
        | ErrorKind::HistoryLost => "InvalidInput",
        ErrorKind::CorruptHistory | ErrorKind::AuditUnavailable | ErrorKind::Io => "InternalError",
    }
}

/// Whether a capability writes file content, and so documents a full disk.
fn writes_bytes(tool: Option<KruxCapability>) -> bool {
    matches!(
        tool,
        Some(
            KruxCapability::File(KruxFileCapability::Write | KruxFileCapability::Append)
                | KruxCapability::Transfer(KruxTransferCapability::Copy)
        )
    )
}

/// The documented message if there is one, otherwise the engine's.
fn error_message(tool: &str, kind: &str, path: &str, error: &Error) -> String {
    match kind {
        "PathOutOfScope" => format!("Path '{path}' is outside the agent's allowed scope"),
        "FileNotFound" => format!("File not found: {path}"),
        "DirectoryNotFound" => format!("Directory not found: {path}"),
        "PermissionDenied" => format!("Permission denied: cannot {} '{path}'", tool_verb(tool)),
        _ => error.message.clone(),
    }
}

fn tool_verb(tool: &str) -> &str {
    tool.rsplit('.').next().unwrap_or(tool)
}

fn is_retryable(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::Locked
            | ErrorKind::Busy
            | ErrorKind::Conflict
            | ErrorKind::Deadline
            | ErrorKind::Cancelled
            | ErrorKind::RateLimited
            | ErrorKind::NoSpace
    )
}

fn error_context(path: &str, error: &Error) -> Value {
    let mut context = error.details.clone();
    if !path.is_empty() {
        context.insert("path".to_owned(), path.into());
    }
    Value::Object(context)
}
