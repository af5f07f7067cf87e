//! The error objects: the documented type and message, whether a retry may succeed, and the recovery actions.

use serde_json::{Map, Value, json};
use stead_engine::{Error, ErrorKind};

use super::{
    super::rendering::error_detail,
    KruxDialect,
    capability::{KruxAgentAndSessionOperation, KruxFileOperation, KruxTool},
    recovery::{self, KruxRecoveryPlaceholderValues},
};

/// The name of the error detail that contains the name of the invalid input.
const FIELD_DETAIL: &str = "field";

pub(super) fn invalid_input(field: &str, reason: &str) -> Error {
    Error::new(ErrorKind::BadRequest, format!("Invalid input: field '{field}' -- {reason}"))
        .with_detail(FIELD_DETAIL, field)
}

pub(super) fn error_object(
    krux: &KruxDialect,
    tool: &str,
    known: Option<KruxTool>,
    arguments: &Map<String, Value>,
    error: &Error,
) -> Value {
    let path = error_path(krux, arguments, error);
    // Only the error about too many watches has the detail `oldest`. It is the id of a watch that the caller can end,
    // so that a new watch can start.
    let watch_id = error_detail(error, "oldest").unwrap_or_default();
    let subject = KruxRecoveryPlaceholderValues { capability: tool, path: &path, watch_id, paths: &krux.paths };
    let recovery = |kind: &str| recovery::recovery_actions(krux, &subject, kind, error);
    if matches!(error.kind, ErrorKind::ApprovalPending | ErrorKind::ApprovalStale) {
        return json!({
            "status": "pending_approval",
            "approval_id": error.details.get("approval"),
            "capability": tool,
            "message": error.message,
            "recovery": recovery("ApprovalPending"),
            "retryable": true,
            "context": error_context(&path, error),
        });
    }
    let kind = published_kind(krux, known, &path, error);
    json!({
        "error": kind,
        "message": error_message(tool, kind, &path, error),
        "recovery": recovery(kind),
        "retryable": is_retryable(error.kind),
        "context": error_context(&path, error),
    })
}

/// The absolute path that an error is about, in the caller's spelling if the error kind shows which input is wrong.
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
    let engine = error_detail(error, "path").map(|path| krux.paths.absolute_path(path));
    let first = || names.into_iter().find_map(given).unwrap_or_default().to_owned();
    written.map(str::to_owned).or(engine).unwrap_or_else(first)
}

fn published_kind(krux: &KruxDialect, known: Option<KruxTool>, path: &str, error: &Error) -> &'static str {
    let is_file = |capability| known == Some(KruxTool::File(capability));
    let is_agent = |capability| known == Some(KruxTool::Agent(capability));
    let searches = matches!(known, Some(KruxTool::Search(_)));
    let starts_watch = is_agent(KruxAgentAndSessionOperation::Watch);
    let needs_directory = starts_watch || searches || is_file(KruxFileOperation::List);
    let writers = [KruxFileOperation::Write, KruxFileOperation::Append, KruxFileOperation::Copy];
    let writes_content = writers.into_iter().any(is_file);
    match error.kind {
        // The path is inside the workspace or contains a NUL byte. A path inside the workspace is invalid only if it is
        // the workspace itself, which no operation may remove or replace.
        ErrorKind::InvalidPath if krux.paths.parse(path).is_some() || path.contains('\0') => "InvalidInput",
        ErrorKind::InvalidPath | ErrorKind::PathEscape | ErrorKind::OutOfScope | ErrorKind::CrossMount => {
            "PathOutOfScope"
        }
        ErrorKind::BadRequest if error.details.contains_key(FIELD_DETAIL) => "InvalidInput",
        ErrorKind::BadRequest if starts_watch || searches => "InvalidPattern",
        ErrorKind::TooMany if starts_watch => "TooManyWatches",
        ErrorKind::NotFound if is_agent(KruxAgentAndSessionOperation::Unwatch) => "WatchNotFound",
        ErrorKind::NotFound if error.details.contains_key("parent") => "ParentNotFound",
        ErrorKind::NotFound if needs_directory => "DirectoryNotFound",
        ErrorKind::NotFound | ErrorKind::NotOwner if is_file(KruxFileOperation::Restore) => "TrashEntryNotFound",
        ErrorKind::NotFound | ErrorKind::NothingToDo if is_agent(KruxAgentAndSessionOperation::EndSession) => {
            "SessionNotFound"
        }
        ErrorKind::NotFound => "FileNotFound",
        ErrorKind::NotDirectory if is_file(KruxFileOperation::Read) => "FileNotFound",
        ErrorKind::NotDirectory => "NotADirectory",
        ErrorKind::IsDirectory => "IsADirectory",
        ErrorKind::NotRegular | ErrorKind::LinkLoop => "NotAFile",
        ErrorKind::NotEmpty => "DirectoryNotEmpty",
        ErrorKind::Exists => "DestinationExists",
        ErrorKind::NotText => "EncodingError",
        // The capabilities that write content have a documented error for a full disk. The same error is returned if a
        // quota is exceeded.
        ErrorKind::QuotaExceeded if writes_content => "DiskFull",
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

/// The message that the dialect's document has for an error type, or the engine's message if it has none.
fn error_message(tool: &str, kind: &str, path: &str, error: &Error) -> String {
    match kind {
        "PathOutOfScope" => format!("Path '{path}' is outside the agent's allowed scope"),
        "FileNotFound" => format!("File not found: {path}"),
        "DirectoryNotFound" => format!("Directory not found: {path}"),
        "PermissionDenied" => {
            let verb = tool.rsplit('.').next().unwrap_or(tool);
            format!("Permission denied: cannot {verb} '{path}'")
        }
        _ => error.message.clone(),
    }
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
