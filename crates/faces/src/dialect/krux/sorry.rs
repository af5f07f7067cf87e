//! Errors: their documented types and messages, whether a second try may help, and the ways out.

use engine::{Failure, Kind};
use serde_json::{Map, Value, json};

use super::{
    Krux,
    asked::FIELD,
    tool::{Desk, File, Moving, Tool, Watching},
    ways::{self, Subject},
};

/// The object of an error.
pub(super) fn object(
    krux: &Krux,
    tool: &str,
    known: Option<Tool>,
    arguments: &Map<String, Value>,
    failure: &Failure,
) -> Value {
    if matches!(failure.kind, Kind::ApprovalPending | Kind::ApprovalStale) {
        return pending(krux, tool, &subject(krux, arguments, failure), failure);
    }
    let path = subject(krux, arguments, failure);
    let kind = kind(krux, known, &path, failure);
    let subject = Subject { tool, path: &path, watch: oldest(failure), spots: &krux.spots };
    let recovery = ways::out(krux, &subject, kind, failure);
    json!({
        "error": kind,
        "message": message(tool, kind, &path, failure),
        "recovery": recovery,
        "retryable": is_retryable(failure.kind),
        "context": context(&path, failure),
    })
}

/// A call that waits for a person.
fn pending(krux: &Krux, tool: &str, path: &str, failure: &Failure) -> Value {
    let subject = Subject { tool, path, watch: oldest(failure), spots: &krux.spots };
    json!({
        "status": "pending_approval",
        "approval_id": failure.facts.get("approval"),
        "capability": tool,
        "message": failure.detail,
        "recovery": ways::out(krux, &subject, "ApprovalPending", failure),
        "retryable": true,
        "context": context(path, failure),
    })
}

/// The place that an error is about, as it was spelled.
fn subject(krux: &Krux, arguments: &Map<String, Value>, failure: &Failure) -> String {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str);
    let names = ["path", "source", "destination", "original_path", "trash_path"];
    let outside = || names.into_iter().filter_map(given).find(|spelled| krux.spots.meant(spelled).is_none());
    let spelled = if failure.kind == Kind::InvalidPath {
        outside()
    } else if failure.kind == Kind::Exists {
        given("destination").or_else(|| given("original_path"))
    } else if failure.facts.contains_key("parent") {
        given("destination")
    } else {
        None
    };
    let engine = failure.facts.get("path").and_then(Value::as_str).map(|place| krux.spots.absolute(place));
    let first = || names.into_iter().find_map(given).unwrap_or_default().to_owned();
    spelled.map(str::to_owned).or(engine).unwrap_or_else(first)
}

/// The watch that could be ended to make room.
fn oldest(failure: &Failure) -> &str {
    failure.facts.get("oldest").and_then(Value::as_str).unwrap_or_default()
}

/// The documented type.
fn kind(krux: &Krux, tool: Option<Tool>, path: &str, failure: &Failure) -> &'static str {
    let begins = tool == Some(Tool::Watch(Watching::Begin));
    let seeks = begins || matches!(tool, Some(Tool::File(File::List) | Tool::Seek(_)));
    match failure.kind {
        // Some refusals of a spelling are about what it means: the workspace itself cannot go.
        Kind::InvalidPath if krux.spots.meant(path).is_some() || path.contains('\0') => "InvalidInput",
        Kind::InvalidPath | Kind::PathEscape | Kind::OutOfScope | Kind::CrossMount => "PathOutOfScope",
        Kind::BadRequest if failure.facts.contains_key(FIELD) => "InvalidInput",
        Kind::BadRequest if begins || matches!(tool, Some(Tool::Seek(_))) => "InvalidPattern",
        Kind::TooMany if begins => "TooManyWatches",
        Kind::NotFound if tool == Some(Tool::Watch(Watching::End)) => "WatchNotFound",
        Kind::NotFound if failure.facts.contains_key("parent") => "ParentNotFound",
        Kind::NotFound if seeks => "DirectoryNotFound",
        Kind::NotFound if tool == Some(Tool::Moving(Moving::Restore)) => "TrashEntryNotFound",
        Kind::NotFound | Kind::NothingToDo if tool == Some(Tool::Desk(Desk::End)) => "SessionNotFound",
        Kind::NotOwner if tool == Some(Tool::Moving(Moving::Restore)) => "TrashEntryNotFound",
        Kind::NotFound => "FileNotFound",
        Kind::NotDirectory if tool == Some(Tool::File(File::Read)) => "FileNotFound",
        Kind::NotDirectory => "NotADirectory",
        Kind::IsDirectory => "IsADirectory",
        Kind::NotRegular | Kind::LinkLoop => "NotAFile",
        Kind::NotEmpty => "DirectoryNotEmpty",
        Kind::Exists => "DestinationExists",
        Kind::NotText => "EncodingError",
        // What does not fit is one error to those who fill the disk, whoever drew the line.
        Kind::Quota if fills(tool) => "DiskFull",
        Kind::NoSpace => "DiskFull",
        Kind::Expired => "TrashEntryExpired",
        Kind::ProtectedPath | Kind::ReadOnly | Kind::NotOwner | Kind::Denied => "PermissionDenied",
        Kind::PolicyDenied => "PolicyDenied",
        Kind::ApprovalDenied => "ApprovalRejected",
        Kind::RateLimited => "RateLimited",
        Kind::TooLarge | Kind::TooMany | Kind::Quota => "ResourceExhausted",
        Kind::Locked
        | Kind::Stale
        | Kind::BaseRequired
        | Kind::Conflict
        | Kind::Busy
        | Kind::ApprovalPending
        | Kind::ApprovalStale => "Conflict",
        Kind::Deadline => "Timeout",
        Kind::Cancelled => "Cancelled",
        Kind::BadRequest
        | Kind::UnknownOperation
        | Kind::PathTooLong
        | Kind::NameTooLong
        | Kind::DepthLimit
        | Kind::InvalidName
        | Kind::NameCollision
        | Kind::TextNotFound
        | Kind::Ambiguous
        | Kind::Overlap
        | Kind::AlreadyApplied
        | Kind::MalformedPatch
        | Kind::NothingToDo
        | Kind::HistoryLost => "InvalidInput",
        Kind::CorruptHistory | Kind::AuditUnavailable | Kind::Io => "InternalError",
    }
}

/// Whether a tool puts bytes there, and so documents a full disk.
fn fills(tool: Option<Tool>) -> bool {
    matches!(tool, Some(Tool::File(File::Write | File::Append) | Tool::Moving(Moving::Copy)))
}

/// The documented message, where there is one; otherwise what the engine says.
fn message(tool: &str, kind: &str, path: &str, failure: &Failure) -> String {
    match kind {
        "PathOutOfScope" => format!("Path '{path}' is outside the agent's allowed scope"),
        "FileNotFound" => format!("File not found: {path}"),
        "DirectoryNotFound" => format!("Directory not found: {path}"),
        "PermissionDenied" => format!("Permission denied: cannot {} '{path}'", verb(tool)),
        _ => failure.detail.clone(),
    }
}

fn verb(tool: &str) -> &str {
    tool.rsplit('.').next().unwrap_or(tool)
}

/// Whether the same call may succeed later.
fn is_retryable(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Locked
            | Kind::Busy
            | Kind::Conflict
            | Kind::Deadline
            | Kind::Cancelled
            | Kind::RateLimited
            | Kind::NoSpace
    )
}

fn context(path: &str, failure: &Failure) -> Value {
    let mut context = failure.facts.clone();
    if !path.is_empty() {
        context.insert("path".to_owned(), path.into());
    }
    Value::Object(context)
}
