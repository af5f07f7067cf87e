//! The next step after a failed call, as a command. Hints of the engine name tool calls, because most of its callers are
//! models. This table gives the same advice to a person at the command line. A hint of the engine without a row here fits both.

use serde_json::Value;
use stead_engine::{Call, Error, ErrorKind};

/// Replaces the hint of an error by one that names commands, if the table has one.
pub(crate) fn with_command_hint(call: &Call<'_>, error: Error) -> Error {
    match command_hint(call, &error) {
        Some(hint) => error.with_next_step(hint),
        None => error,
    }
}

fn command_hint(call: &Call<'_>, error: &Error) -> Option<String> {
    let detail = |name: &str| error.details.get(name).and_then(Value::as_str);
    let argument = |name: &str| call.arguments.get(name).and_then(Value::as_str);
    let path = detail("path").or_else(|| argument("path")).or_else(|| argument("from"));
    let quoted_path = quote_for_shell(path.unwrap_or("."));
    let hint = match (error.kind, call.operation) {
        (ErrorKind::NotFound | ErrorKind::Stale, _) if detail("moved_to").is_some() => {
            format!("the file was moved: repeat the command with {}", quote_for_shell(detail("moved_to")?))
        }
        (ErrorKind::NotFound | ErrorKind::Stale, _) if detail("changed_by").is_some() => {
            format!("to see who removed the file, run: stead history {quoted_path}")
        }
        (ErrorKind::NotFound | ErrorKind::Expired, "restore") => "to list the trash, run: stead trash list".to_owned(),
        (ErrorKind::NotFound, "buffer.list" | "buffer.drop") => "to list the drafts, run: stead buffer.list".to_owned(),
        (ErrorKind::NotFound, "unwatch" | "watched") => "to list your watches, run: stead watched".to_owned(),
        (ErrorKind::NotFound, "approvals" | "approve" | "deny") => {
            "to list the approvals of this workspace, run: stead approvals list --all".to_owned()
        }
        (ErrorKind::NotFound, "alerts" | "respond") => "to list the alerts, run: stead alerts list".to_owned(),
        (ErrorKind::NotFound, "session") => "to start a session, run: stead session begin".to_owned(),
        (ErrorKind::NotFound | ErrorKind::Stale | ErrorKind::Conflict, "review" | "keep" | "reject") => {
            "to see the changes and the current names of their hunks, run: stead review".to_owned()
        }
        (ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::NothingToDo, "undo" | "redo")
        | (ErrorKind::NothingToDo, "review" | "keep" | "reject")
        | (ErrorKind::Expired | ErrorKind::HistoryLost, _) => {
            "to list the recorded changes, run: stead history".to_owned()
        }
        (
            ErrorKind::NotFound,
            "read" | "stat" | "list" | "find" | "search" | "append" | "edit" | "copy" | "move" | "remove" | "diff",
        ) => {
            let parent =
                path.and_then(|path| path.trim_end_matches('/').rsplit_once('/')).map_or(".", |(parent, _)| parent);
            format!("to see the names in the directory, run: stead list {}", quote_for_shell(parent))
        }
        (ErrorKind::IsDirectory, "read") => format!("to list the directory, run: stead list {quoted_path}"),
        (ErrorKind::NotDirectory, "list") => format!("to print the file, run: stead read {quoted_path}"),
        (ErrorKind::NotEmpty, _) => "pass --recursive to remove the directory with its contents".to_owned(),
        (ErrorKind::Exists, "copy" | "move") => {
            "choose another destination, including the new name; to replace a file, pass --overwrite".to_owned()
        }
        (ErrorKind::Exists, "restore") => "choose a free destination; restore never overwrites".to_owned(),
        (ErrorKind::Exists | ErrorKind::BaseRequired, "write") => {
            format!("to see the file, run: stead read {quoted_path}; to replace it, pass --base {}", detail("rev")?)
        }
        (ErrorKind::Stale, "write" | "append" | "edit" | "copy" | "move" | "remove") => {
            let (base, rev) = (quote_for_shell(argument("base")?), detail("rev")?);
            format!(
                "to see what changed, run: stead diff {quoted_path} {base}; then repeat the command with --base {rev}"
            )
        }
        (ErrorKind::Conflict, "write" | "edit") if detail("rev").is_some() => format!(
            "to see the current text, run: stead read {quoted_path}; then repeat the command with --base {}",
            detail("rev")?
        ),
        (ErrorKind::BadRequest, "diff") => {
            format!("to list the versions of the file, run: stead history {quoted_path}")
        }
        (ErrorKind::BadRequest, _) if argument("base").is_some_and(is_entry_name) => {
            format!("to list the versions of the file, run: stead history {quoted_path}")
        }
        (ErrorKind::BadRequest, "read") => {
            "pass one range within the file, such as --lines 1-50 or --bytes 0-1023".to_owned()
        }
        (ErrorKind::BadRequest, "policy") => {
            "pass all arguments of the call as NAME=VALUE, such as path=notes.txt".to_owned()
        }
        (ErrorKind::TextNotFound, "edit") if !error.details.contains_key("nearest") => {
            format!("quote text as it is in the file; to see it, run: stead read {quoted_path}")
        }
        (ErrorKind::NotText, "read") => format!("to print the bytes, run: stead read {quoted_path} --as base64"),
        (ErrorKind::NotText, "edit" | "append") => {
            format!("to replace the whole file, run: stead write {quoted_path} < NEW_CONTENT")
        }
        (ErrorKind::TooLarge, "read") => {
            format!("to print a part of the file, run: stead read {quoted_path} --bytes 0-1048575")
        }
        (ErrorKind::TooMany, "watch") => "to stop a watch, run: stead unwatch ID".to_owned(),
        (ErrorKind::PolicyDenied, _) if detail("rule").is_some() => {
            format!("to list the rules, run: stead policy list --principal {}", call.caller.principal)
        }
        (ErrorKind::ApprovalPending, _) => format!(
            "to see the request, run: stead approvals show {}; after it is approved, repeat this command unchanged",
            detail("approval")?
        ),
        (ErrorKind::ApprovalStale, _) => "repeat the command to request a new approval".to_owned(),
        (ErrorKind::RateLimited, _) => {
            format!("wait {} ms, then repeat the command", error.details.get("retry_after_ms")?)
        }
        (ErrorKind::Busy | ErrorKind::Deadline, _) => "repeat the command".to_owned(),
        (ErrorKind::AuditUnavailable, _) => {
            "nothing was changed; free space or repair the state directory, then repeat the command".to_owned()
        }
        (_, _) => return None,
    };
    Some(hint)
}

/// Whether a base names a journal entry, such as `r17`.
fn is_entry_name(base: &str) -> bool {
    base.strip_prefix('r').is_some_and(|number| number.parse::<u64>().is_ok())
}

/// A word as a POSIX shell needs it: in single quotes unless all its characters are plain.
fn quote_for_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
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
        let call = Call::new(&caller, operation, arguments.as_object().cloned().unwrap());
        let details =
            [("rev", json!("r9")), ("approval", json!("ap-1")), ("rule", json!("x")), ("retry_after_ms", json!(5))];
        let error = details
            .into_iter()
            .fold(Error::new(kind, "it failed"), |error, (name, value)| error.with_detail(name, value));
        command_hint(&call, &error)
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
                "run: stead diff a r3; then repeat the command with --base r9",
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
