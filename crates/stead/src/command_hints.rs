//! Replaces the hints of engine errors by hints that name commands for a person at the command line. The engine's hints
//! name tool calls, because most of its callers are models.

use serde_json::Value;
use stead_engine::{Error, ErrorKind};
use stead_protocols::native::JsonCall;

use crate::command_notation::quote_for_shell;

/// Hints that depend only on the error kind and the operation of a failed call. The first row that matches a failed
/// call gives the hint, and an empty list matches all operations.
const FIXED_HINTS: &[(&[ErrorKind], &[&str], &str)] = &[
    (&[ErrorKind::NotFound, ErrorKind::Expired], &["restore"], "to list the trash, run: stead trash list"),
    (&[ErrorKind::NotFound], &["buffer.list", "buffer.drop"], "to list the drafts, run: stead buffer.list"),
    (
        &[ErrorKind::NotFound],
        &["unwatch", "watched"],
        "the watch may have ended; each event has the id of its watch, to see them run: stead watched --json",
    ),
    (
        &[ErrorKind::BadRequest],
        &["watched"],
        "omit the position, or pass the one that an earlier run printed; for the events of one watch, pass --watch ID",
    ),
    (
        &[ErrorKind::BadRequest],
        &["changes", "events"],
        "pass the position that an earlier run printed, an entry such as r12, 0 for the start, or now",
    ),
    (
        &[ErrorKind::NotFound],
        &["approvals", "approve", "deny"],
        "to list the approvals of this workspace, run: stead approvals list --all",
    ),
    (&[ErrorKind::NotFound], &["alerts", "respond"], "to list the alerts, run: stead alerts list"),
    (&[ErrorKind::NotFound], &["session"], "pass the id that stead session begin printed: stead session end --id ID"),
    (
        &[ErrorKind::NotFound, ErrorKind::Stale, ErrorKind::Conflict],
        &["review", "keep", "reject"],
        "to see the changes and the current names of their hunks, run: stead review --json",
    ),
    (
        &[ErrorKind::BadRequest, ErrorKind::NotFound, ErrorKind::Conflict],
        &["undo", "redo"],
        "to list the entries, such as r17, run: stead history",
    ),
    (&[ErrorKind::NothingToDo], &["undo"], "to list the entries, such as r17, run: stead history"),
    (
        &[ErrorKind::NothingToDo],
        &["redo"],
        "redo only repeats a change that undo reverted; to undo one, run: stead undo",
    ),
    (
        &[ErrorKind::NothingToDo],
        &["review", "keep", "reject"],
        "to list the changes of all callers, run: stead history",
    ),
    (&[ErrorKind::Expired, ErrorKind::HistoryLost], &[], "to list the recorded changes, run: stead history"),
    (&[ErrorKind::NotEmpty], &[], "pass --recursive to remove the directory with its contents"),
    (&[ErrorKind::Exists], &["restore"], "choose a free destination; restore never overwrites"),
    (&[ErrorKind::BadRequest], &["read"], "pass one range within the file, such as --lines 1-50 or --bytes 0-1023"),
    (
        &[ErrorKind::BadRequest],
        &["policy"],
        "pass an operation and its arguments, such as: stead policy check write path=notes.txt",
    ),
    (&[ErrorKind::TooMany], &["watch"], "to stop a watch, run: stead unwatch ID"),
    (&[ErrorKind::TooMany], &["lock"], "to release a lock that you no longer need, run: stead unlock PATH"),
    (&[ErrorKind::TooMany, ErrorKind::NothingToDo], &["session"], "to end a session, run: stead session end --id ID"),
    (&[ErrorKind::Exists], &["respond"], "to read the answer, run: stead alerts list"),
    (&[ErrorKind::NotOwner], &["buffer.drop"], "to list your own drafts, run: stead buffer.list"),
    (&[ErrorKind::BadRequest], &["list"], "omit --cursor, or repeat the command that the previous page printed"),
    (
        &[ErrorKind::OutOfScope],
        &[],
        "choose another path, or change --readable and --writable, which limit this caller",
    ),
    (&[ErrorKind::QuotaExceeded], &[], "remove or shorten files; to see how much is free, run: stead usage"),
    (
        &[ErrorKind::PolicyDenied],
        &["keep", "reject", "approve", "deny"],
        "repeat the command as a person: --principal user:NAME",
    ),
    (&[ErrorKind::PolicyDenied], &[], "correct the policy file, or choose another one with --policy"),
    (&[ErrorKind::ApprovalStale], &[], "repeat the command to request a new approval"),
    (&[ErrorKind::Busy, ErrorKind::Deadline], &[], "repeat the command"),
];

pub(crate) fn with_command_hint(call: &JsonCall<'_>, error: Error) -> Error {
    let hint = hint_from_details(call, &error).or_else(|| fixed_hint(call.operation, error.kind).map(str::to_owned));
    match hint {
        Some(hint) => error.with_next_step(hint),
        None => error,
    }
}

fn fixed_hint(operation: &str, kind: ErrorKind) -> Option<&'static str> {
    let applies = |(kinds, operations, _): &&(&[ErrorKind], &[&str], &str)| {
        kinds.contains(&kind) && (operations.is_empty() || operations.contains(&operation))
    };
    FIXED_HINTS.iter().find(applies).map(|(_, _, hint)| *hint)
}

fn hint_from_details(call: &JsonCall<'_>, error: &Error) -> Option<String> {
    let detail = |name: &str| error.details.get(name).and_then(Value::as_str);
    let argument = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let path = detail("path").or_else(|| argument("path")).or_else(|| argument("from")).unwrap_or(".");
    hint_about_path(call, error, path).or_else(|| hint_about_content(call, error, &quote_for_shell(path)))
}

fn hint_about_path(call: &JsonCall<'_>, error: &Error, unquoted: &str) -> Option<String> {
    let detail = |name: &str| error.details.get(name).and_then(Value::as_str);
    let has_detail = |name: &str| error.details.contains_key(name);
    let path = quote_for_shell(unquoted);
    Some(match (error.kind, call.operation) {
        (ErrorKind::NotFound | ErrorKind::Stale, _) if has_detail("moved_to") => {
            format!("the file was moved: repeat the command with {}", quote_for_shell(detail("moved_to")?))
        }
        (ErrorKind::NotFound | ErrorKind::Stale, _) if has_detail("changed_by") => {
            format!("to see who removed the file, run: stead history {path}")
        }
        (
            ErrorKind::NotFound,
            "read" | "stat" | "list" | "find" | "search" | "append" | "edit" | "copy" | "move" | "remove" | "diff",
        ) => {
            let parent = unquoted.trim_end_matches('/').rsplit_once('/').map_or(".", |(parent, _)| parent);
            format!("to see the names in the directory, run: stead list {}", quote_for_shell(parent))
        }
        (ErrorKind::IsDirectory, "read" | "edit" | "append" | "diff") => {
            format!("to list the directory, run: stead list {path}")
        }
        (ErrorKind::NotDirectory, _) if has_detail("file") => {
            format!("{} is a file, so nothing can be below it; correct the path", detail("file")?)
        }
        (ErrorKind::NotDirectory, "list") => format!("to print the file, run: stead read {path}"),
        (_, _) => return None,
    })
}

fn hint_about_content(call: &JsonCall<'_>, error: &Error, path: &str) -> Option<String> {
    let detail = |name: &str| error.details.get(name).and_then(Value::as_str);
    let has_detail = |name: &str| error.details.contains_key(name);
    let argument = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    Some(match (error.kind, call.operation) {
        (ErrorKind::Exists | ErrorKind::BaseRequired, "write") => {
            format!("to see the file, run: stead read {path}; to replace it, pass --base {}", detail("rev")?)
        }
        (ErrorKind::Exists, "patch") => {
            "write *** Update File: to change the file, or pass --overwrite to replace it".to_owned()
        }
        (ErrorKind::Stale, "patch") => {
            format!("to see the file, run: stead read {path}; then correct the patch and its --base")
        }
        (ErrorKind::Exists, "copy" | "move") if detail("type") == Some("file") => {
            "choose another destination; to replace the file, pass --overwrite".to_owned()
        }
        (ErrorKind::Stale, "copy" | "move" | "remove") => {
            let (base, rev) = (quote_for_shell(argument("base")?), detail("rev")?);
            format!("to see what changed, run: stead diff {path} {base}; to go on anyway, pass --base {rev}")
        }
        (ErrorKind::Stale, "write" | "append" | "edit") => {
            let (base, rev) = (quote_for_shell(argument("base")?), detail("rev")?);
            format!(
                "to see what changed, run: stead diff {path} {base}; then include that change and pass --base {rev}"
            )
        }
        (ErrorKind::Conflict, "write" | "edit") => {
            let rev = detail("rev")?;
            format!("to see the current text, run: stead read {path}; then repeat the command with --base {rev}")
        }
        (ErrorKind::BadRequest, "diff") => format!("to list the versions of the file, run: stead history {path}"),
        // Errors about arguments other than `base` have an `edit` detail, or the call has an `encoding`.
        (ErrorKind::BadRequest, "write" | "append" | "edit" | "copy" | "move" | "remove")
            if argument("base").is_some() && argument("encoding").is_none() && !has_detail("edit") =>
        {
            format!("to see the version of the file, run: stead stat {path}; older versions: stead history {path}")
        }
        (ErrorKind::BadRequest, "edit") if !has_detail("edit") => {
            "pass the edits as JSON, such as --edits '[{\"old\": \"one\", \"new\": \"two\"}]'".to_owned()
        }
        (ErrorKind::TextNotFound, "edit" | "patch") if !has_detail("nearest") => {
            format!("quote text as it is in the file; to see it, run: stead read {path}")
        }
        (ErrorKind::NotText, "read") => format!("to print the bytes, run: stead read {path} --as base64"),
        (ErrorKind::NotText, "edit" | "append") => {
            format!("to replace the whole file, run: stead write {path} < NEW_CONTENT")
        }
        (ErrorKind::TooLarge, "read" | "diff") => {
            format!("to print a part of the file, run: stead read {path} --bytes 0-1048575")
        }
        (ErrorKind::PolicyDenied, _) if has_detail("rule") => {
            format!("to list the rules, run: stead policy list --principal {}", call.caller.principal)
        }
        (ErrorKind::ApprovalPending, _) => format!(
            "to see the request, run: stead approvals show {}; after it is approved, repeat this command unchanged",
            detail("approval")?
        ),
        (ErrorKind::RateLimited, _) => {
            format!("wait {} ms, then repeat the command", error.details.get("retry_after_ms")?)
        }
        (_, _) => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stead_engine::{Caller, Principal};
    use stead_protocols::definition::DialectDefinition;

    use super::*;
    use crate::cli;

    fn hint_for(kind: ErrorKind, operation: &str, arguments: Value) -> Option<String> {
        let caller = Caller::new(Principal::User("eva".to_owned()), "s", "cli");
        let call = JsonCall::new(&caller, operation, arguments.as_object().cloned().unwrap());
        let details =
            [("rev", json!("r9")), ("approval", json!("ap-1")), ("rule", json!("x")), ("retry_after_ms", json!(5))];
        let error = details
            .into_iter()
            .fold(Error::new(kind, "it failed"), |error, (name, value)| error.with_detail(name, value));
        with_command_hint(&call, error).next_step
    }

    #[test]
    fn hints_name_commands_with_the_paths_of_the_call() {
        for (kind, operation, arguments, expected) in [
            (ErrorKind::NotFound, "read", json!({ "path": "src/a b.rs" }), "run: stead list src"),
            (ErrorKind::NotFound, "read", json!({ "path": "a" }), "run: stead list ."),
            (ErrorKind::IsDirectory, "read", json!({ "path": "my dir" }), "run: stead list 'my dir'"),
            (
                ErrorKind::Stale,
                "write",
                json!({ "path": "a", "base": "r3" }),
                "run: stead diff a r3; then include that change and pass --base r9",
            ),
            (ErrorKind::ApprovalPending, "remove", json!({ "path": "a" }), "run: stead approvals show ap-1"),
            (ErrorKind::NotEmpty, "remove", json!({ "path": "d" }), "--recursive"),
        ] {
            let hint = hint_for(kind, operation, arguments).unwrap();
            assert!(hint.contains(expected), "{hint}");
        }
        assert_eq!(hint_for(ErrorKind::InvalidPath, "read", json!({ "path": "../a" })), None);
    }

    #[test]
    fn every_command_in_a_hint_exists() {
        let definition = DialectDefinition::native().unwrap();
        let command_line = cli::build_command_line(&definition);
        for kind in ErrorKind::ALL {
            for row in stead_engine::OPERATIONS {
                let hint = hint_for(*kind, row.name, json!({ "path": "a", "base": "r3" })).unwrap_or_default();
                for command in hint.split("run: stead ").skip(1) {
                    let name = command.split([' ', ';']).next().unwrap();
                    assert!(command_line.find_subcommand(name).is_some(), "{hint}");
                }
            }
        }
    }
}
