//! The help texts of operation commands for people at a terminal. The texts that describe operations to models are in
//! `definitions/`.

use stead_protocols::definition::{ToolArgumentDefinition, ToolDefinition};

struct OperationHelp {
    command: &'static str,
    about: &'static str,
    details: &'static str,
    arguments: &'static [(&'static str, &'static str)],
}

pub(crate) fn about(operation: &ToolDefinition) -> &'static str {
    find_help(&operation.name).map_or("", |help| help.about)
}

pub(crate) fn long_about(operation: &ToolDefinition) -> String {
    match find_help(&operation.name) {
        Some(OperationHelp { about, details: "", .. }) => (*about).to_owned(),
        Some(OperationHelp { about, details, .. }) => format!("{about}\n\n{details}"),
        None => String::new(),
    }
}

pub(crate) fn argument_help(operation: &ToolDefinition, input: &ToolArgumentDefinition) -> &'static str {
    find_help(&operation.name)
        .and_then(|help| help.arguments.iter().find(|(name, _)| *name == input.name))
        .map_or("", |(_, text)| text)
}

fn find_help(command: &str) -> Option<&'static OperationHelp> {
    OPERATIONS_HELP.iter().find(|help| help.command == command)
}

const BASE: &str = "Fail if the file is no longer at this version, such as r17";
const CURSOR: &str = "Continue from this position, which the previous page printed";
const DRY_RUN: &str = "Show what would change without changing anything";
const WAIT_FOR_EVENT_MS: &str = "Time to wait for the first event, in milliseconds, up to 60000 [default: 0]";
const HIDDEN_AND_IGNORED: &str = "Include hidden files and files excluded by ignore files";
const REVIEWED_SESSION: &str = "Id of the session [default: the agent session with the latest change]";
const REVIEWED_AUTHOR: &str = "Only changes made by this principal: agent:NAME or user:NAME";
const REVIEWED_SINCE: &str = "Where to start: at the beginning of the session or at its last turn [default: session]";

const OPERATIONS_HELP: &[OperationHelp] = &[
    OperationHelp {
        command: "read",
        about: "Print a file, or a range of its lines or bytes",
        details: "At a terminal the version of the file is printed as well. If the output is a pipe or a file, only the content is \
                  written; binary content is written unchanged.",
        arguments: &[
            ("path", "File to print"),
            ("lines", "Only these lines, counted from 1: 10-60, 10- or 10"),
            ("bytes", "Only these bytes, counted from 0, both ends included: 0-1023"),
            ("as", "How to show the content [default: text for text files, base64 for others]"),
        ],
    },
    OperationHelp {
        command: "stat",
        about: "Show type, size, modification time, mode and version of a path",
        details: "",
        arguments: &[("path", "Path to describe; symbolic links are not followed")],
    },
    OperationHelp {
        command: "list",
        about: "List a directory",
        details: "",
        arguments: &[
            ("path", "Directory to list [default: .]"),
            ("depth", "Levels to descend, up to 32 [default: 1]"),
            ("all", "Include names that begin with a dot"),
            ("cursor", CURSOR),
        ],
    },
    OperationHelp {
        command: "find",
        about: "Find files and directories by name or glob pattern",
        details: "A pattern without a slash matches names at any depth. If nothing has a plain name, names that contain it are listed.",
        arguments: &[
            ("pattern", "Name or glob pattern: *, **, ?, [ab], [!ab], {a,b}"),
            ("path", "Directory to search below [default: .]"),
            ("all", HIDDEN_AND_IGNORED),
            ("max", "Maximum number of matches, up to 1000 [default: 200]"),
        ],
    },
    OperationHelp {
        command: "search",
        about: "Search file contents; definitions rank first",
        details: "With several queries, a line that matches any of them is a hit.",
        arguments: &[
            ("query", "Text to search for within a line; several queries are separated by newlines"),
            ("path", "Directory or file to search [default: .]"),
            ("regex", "Treat the query as a regular expression"),
            ("word", "Match whole words only"),
            ("ignore_case", "Search case-insensitively"),
            ("glob", "Search only files that match this pattern, such as '*.rs'"),
            ("context", "Lines to show around each hit, up to 20 [default: a few if there are at most three hits]"),
            ("all", HIDDEN_AND_IGNORED),
            ("max", "Maximum number of hits, up to 1000 [default: 100]"),
            ("budget", "Maximum length of the output in characters, up to 40000 [default: 8000]"),
            ("cursor", CURSOR),
        ],
    },
    OperationHelp {
        command: "write",
        about: "Write a whole file, creating missing directories",
        details: "Replacing an existing file needs --base, so that changes made since you read it are not lost.",
        arguments: &[
            ("path", "File to write"),
            ("content", "New content of the file"),
            ("base", "Version you read, such as r17; required if the file exists, \"\" if it must not exist"),
            (
                "encoding",
                "How the file is encoded, such as utf-8 or latin1; pass base64 to give the content of a binary file in base64",
            ),
            (
                "mode",
                "exact: write the content as given; merge: keep changes made by others since the base [default: exact]",
            ),
        ],
    },
    OperationHelp {
        command: "append",
        about: "Append text to a file",
        details: "",
        arguments: &[("path", "File to append to"), ("content", "Text to append"), ("base", BASE)],
    },
    OperationHelp {
        command: "edit",
        about: "Replace quoted text in a file",
        details: "Edits are a JSON list such as [{\"old\": \"one\", \"new\": \"two\"}]. All of them are applied, or none. Each old text \
                  must occur exactly once, unless the edit also has \"count\" (replace that many occurrences), \"near_line\" \
                  (replace the nearest one) or \"all\".",
        arguments: &[
            ("path", "File to edit"),
            ("edits", "Edits as a JSON list of objects with old and new"),
            ("base", "Version you read, such as r17; an older one is accepted if the quoted text is unchanged"),
            (
                "mode",
                "With an older base: strict refuses, anchored applies edits to unchanged text, merge also merges [default: \
                 anchored]",
            ),
            ("dry_run", DRY_RUN),
        ],
    },
    OperationHelp {
        command: "patch",
        about: "Apply a patch to one or more files, all or nothing",
        details: "The patch is a unified diff, or has the form *** Begin Patch … *** End Patch. It can change, add, delete and move \
                  files.",
        arguments: &[
            ("patch", "Patch text"),
            (
                "base",
                "Versions you read, as a JSON object: {\"notes.txt\": \"r17\"}; \"\" for a file that must not exist",
            ),
            ("overwrite", "Allow added and moved files to replace existing ones"),
            ("dry_run", DRY_RUN),
        ],
    },
    OperationHelp {
        command: "copy",
        about: "Copy a file or directory",
        details: "",
        arguments: &[
            ("from", "File or directory to copy"),
            ("to", "Destination, including the new name"),
            ("base", BASE),
            ("overwrite", "Replace an existing file"),
        ],
    },
    OperationHelp {
        command: "move",
        about: "Move or rename a file or directory",
        details: "The history of a file follows it to its new name.",
        arguments: &[
            ("from", "File or directory to move"),
            ("to", "Destination, including the new name"),
            ("base", BASE),
            ("overwrite", "Replace an existing file"),
        ],
    },
    OperationHelp {
        command: "remove",
        about: "Move a file or directory to the trash",
        details: "To bring it back, run stead trash restore with the printed id, or stead undo.",
        arguments: &[
            ("path", "File or directory to remove; of a symbolic link, the link itself"),
            ("base", BASE),
            ("recursive", "Remove a directory with its contents"),
        ],
    },
    OperationHelp {
        command: "restore",
        about: "Restore an item from the trash; never overwrites",
        details: "To list the items, run stead trash list.",
        arguments: &[
            ("trash", "Id of the item, as printed by remove and trash list"),
            ("to", "Destination [default: the original path]"),
        ],
    },
    OperationHelp {
        command: "undo",
        about: "Undo a change, with all of its files",
        details: "The undo is itself recorded as a change. To list the changes, run stead history.",
        arguments: &[
            ("entry", "Entry to undo, such as r17 [default: the latest change that is not undone]"),
            ("dry_run", DRY_RUN),
        ],
    },
    OperationHelp {
        command: "redo",
        about: "Redo a change that was undone",
        details: "",
        arguments: &[("entry", "Undone entry, such as r17 [default: the one undone last]"), ("dry_run", DRY_RUN)],
    },
    OperationHelp {
        command: "history",
        about: "Show recorded changes, newest first",
        details: "",
        arguments: &[
            ("path", "Only entries about this path and everything below it"),
            ("since", "Only entries after this one, such as r17"),
            ("cursor", CURSOR),
        ],
    },
    OperationHelp {
        command: "diff",
        about: "Compare two versions of a file",
        details: "",
        arguments: &[
            ("path", "File to compare"),
            ("from", "Older version, such as r17"),
            ("to", "Newer version [default: the current file]"),
        ],
    },
    OperationHelp {
        command: "changes",
        about: "List the changes made since an earlier position in the journal",
        details: "",
        arguments: &[
            ("since", "Position that the previous run printed, 0 for the start of the journal, or now for its end"),
            ("wait_ms", "Time to wait for the first change, in milliseconds, up to 60000 [default: 0]"),
        ],
    },
    OperationHelp {
        command: "lock",
        about: "Lock a path and everything below it against changes by others",
        details: "",
        arguments: &[
            ("path", "Path to lock"),
            ("seconds", "Time until the lock expires, in seconds, up to 86400 [default: 900]"),
        ],
    },
    OperationHelp {
        command: "unlock",
        about: "Release a lock",
        details: "",
        arguments: &[("path", "Path to unlock, as it was locked")],
    },
    OperationHelp {
        command: "session",
        about: "Show the caller, its permissions and its session",
        details: "A session started with stead session begin lasts until stead session end --id ID.",
        arguments: &[
            ("action", "Show the session, begin a new one, or end it [default: show]"),
            ("id", "Id of a session started with begin [default: the caller's own session]"),
        ],
    },
    OperationHelp {
        command: "events",
        about: "Show watch events and answers to alerts since an earlier position",
        details: "",
        arguments: &[
            ("since", "Position that the previous run printed [default: the start of the session]"),
            ("wait_ms", WAIT_FOR_EVENT_MS),
        ],
    },
    OperationHelp {
        command: "usage",
        about: "Show free space, the size of trash and history, and the remaining quota",
        details: "",
        arguments: &[],
    },
    OperationHelp {
        command: "alert",
        about: "Send an alert to the people who supervise agents",
        details: "To list and answer alerts, run stead alerts.",
        arguments: &[
            ("message", "Text of the alert, up to 4000 characters"),
            ("severity", "Urgency of the alert [default: info]"),
        ],
    },
    OperationHelp {
        command: "unwatch",
        about: "Stop a watch",
        details: "",
        arguments: &[("watch", "Id of the watch, as stead watched --json prints it")],
    },
    OperationHelp {
        command: "watched",
        about: "Show the events of your watches since an earlier position",
        details: "To follow a path at a terminal, run stead watch.",
        arguments: &[
            ("cursor", "Position that the previous run printed [default: the start of your oldest watch]"),
            ("wait_ms", WAIT_FOR_EVENT_MS),
            ("watch", "Only events of the watch with this id"),
            ("own", "Include your own changes"),
        ],
    },
    OperationHelp {
        command: "buffer.list",
        about: "List files that are open in editors, and drafts of disconnected editors",
        details: "",
        arguments: &[("path", "Only this file, with the text of your own buffers and drafts")],
    },
    OperationHelp {
        command: "buffer.drop",
        about: "Discard a draft of a disconnected editor",
        details: "",
        arguments: &[("draft", "Id of the draft, as stead buffer.list prints it")],
    },
    OperationHelp {
        command: "turn",
        about: "Mark the start of a turn (one request to an agent) in the journal",
        details: "A turn is one request that a person makes of an agent. review and reject can select the last turn of a session.",
        arguments: &[],
    },
    OperationHelp {
        command: "review",
        about: "Show the changes that a session made, by file and hunk",
        details: "Changes that were accepted with stead keep are not shown again.",
        arguments: &[
            ("path", "Only this file or directory"),
            ("session", REVIEWED_SESSION),
            ("author", REVIEWED_AUTHOR),
            ("since", REVIEWED_SINCE),
        ],
    },
    OperationHelp {
        command: "keep",
        about: "Accept a session's changes: a hunk, a file or all of them",
        details: "Accepted changes are not shown by stead review again. No file changes.",
        arguments: &[
            ("path", "File whose changes to accept [default: all files]"),
            ("hunk", "Only the hunk with this name, as stead review --json prints it"),
            ("session", REVIEWED_SESSION),
            ("author", REVIEWED_AUTHOR),
        ],
    },
    OperationHelp {
        command: "reject",
        about: "Revert a session's changes: a hunk, a file, a turn or all of them",
        details: "Later changes by others stay. A rejection is recorded as a change and can be undone with stead undo.",
        arguments: &[
            ("path", "File whose changes to revert [default: all files]"),
            ("hunk", "Only the hunk with this name, as stead review --json prints it"),
            ("session", REVIEWED_SESSION),
            ("author", REVIEWED_AUTHOR),
            ("since", REVIEWED_SINCE),
            ("dry_run", DRY_RUN),
        ],
    },
];

#[cfg(test)]
mod tests {
    use stead_protocols::definition::DialectDefinition;

    use super::*;
    use crate::cli;

    #[test]
    fn every_operation_command_and_argument_has_help() {
        let definition = DialectDefinition::native().unwrap();
        let described: Vec<(&str, Vec<&str>)> = definition
            .operations
            .iter()
            .filter(|operation| cli::is_operation_command(&operation.name))
            .map(|operation| {
                (operation.name.as_str(), operation.inputs.iter().map(|input| input.name.as_str()).collect())
            })
            .collect();
        let helped: Vec<(&str, Vec<&str>)> = OPERATIONS_HELP
            .iter()
            .map(|help| (help.command, help.arguments.iter().map(|(name, _)| *name).collect()))
            .collect();
        assert_eq!(helped, described);
    }

    #[test]
    fn help_texts_are_one_line_without_a_full_stop() {
        for help in OPERATIONS_HELP {
            for text in help.arguments.iter().map(|(_, text)| *text).chain([help.about]) {
                assert!(!text.is_empty() && !text.contains('\n') && !text.ends_with('.'), "{text:?}");
            }
            assert!(help.about.len() <= 80, "{}", help.about);
        }
    }

    #[test]
    fn every_command_and_flag_has_help() {
        fn check(command: &clap::Command) {
            assert!(command.get_about().is_some_and(|about| !about.to_string().is_empty()), "{}", command.get_name());
            for argument in command.get_arguments() {
                let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
                assert!(!help.is_empty(), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        check(&cli::build_command_line(&DialectDefinition::native().unwrap()));
    }
}
