//! Sentences of the newest generation. Paths are relative to the workspace, as the original's rooted handle sees them,
//! and an edit shows its diff to the user.

use stead_engine::{CallOutcome, Error, ErrorKind};
use stead_text::unified::{CONTEXT_LINES, DiffLabels, unified_diff};

use super::{
    WeaverResult,
    args::{ExistingFileRule, WeaverCall, WeaverTool},
    errors::{blocking_file, edit_error, is_workspace_root_refused, os_error_message},
    path_argument::WeaverPathArgument,
    replace_invalid_bytes,
};

const PATH_ESCAPES_REASON: &str = "path escapes from parent";
const NO_CHANGE_NOTE: &str = "(no content change)";
const TRUNCATED_NOTE: &str = "[diff preview truncated; call read_file for the full edited contents]";
/// Largest file whose diff is shown.
const DIFF_BYTES_MAX: usize = 64 * 1024;
const DIFF_LINES_MAX: usize = 2000;
const PREVIEW_BYTES_MAX: usize = 16 * 1024;

pub(super) fn error_sentence_newest(call: &WeaverCall<'_>, path: &WeaverPathArgument<'_>, error: &Error) -> String {
    let is_root = is_workspace_root_refused(error);
    if error.kind == ErrorKind::InvalidPath && !is_root {
        let escapes = format!("path escapes workspace: {}", call.path());
        return match call.tool() {
            WeaverTool::ListDir => format!("failed to read directory: {escapes}"),
            WeaverTool::ReadFile | WeaverTool::WriteFile | WeaverTool::EditFile | WeaverTool::AppendFile => escapes,
        };
    }
    let kind = if is_root { ErrorKind::IsDirectory } else { error.kind };
    match call.tool() {
        WeaverTool::ReadFile => read_error(call, path, kind, error),
        WeaverTool::ListDir if kind == ErrorKind::NotDirectory && blocking_file(error).is_none() => {
            format!("failed to read directory: readdirent {}: not a directory", path.absolute_path())
        }
        WeaverTool::ListDir => format!("failed to read directory: {}", openat_error(path, kind, error)),
        WeaverTool::WriteFile => write_error(call, path, kind, error),
        WeaverTool::EditFile | WeaverTool::AppendFile => {
            edit_error(error).unwrap_or_else(|| file_access_error("failed to read file", path, kind, error))
        }
    }
}

/// A failed open, in the form of the rooted handle.
fn openat_error(path: &WeaverPathArgument<'_>, kind: ErrorKind, error: &Error) -> String {
    let text =
        if kind == ErrorKind::PathEscape { PATH_ESCAPES_REASON.to_owned() } else { os_error_message(kind, error) };
    format!("openat {}: {text}", path.relative_path())
}

fn file_access_error(prefix: &str, path: &WeaverPathArgument<'_>, kind: ErrorKind, error: &Error) -> String {
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

fn read_error(call: &WeaverCall<'_>, path: &WeaverPathArgument<'_>, kind: ErrorKind, error: &Error) -> String {
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

fn write_error(call: &WeaverCall<'_>, path: &WeaverPathArgument<'_>, kind: ErrorKind, error: &Error) -> String {
    match (kind, call.existing_file_rule()) {
        (ErrorKind::Exists | ErrorKind::IsDirectory, ExistingFileRule::Refuse) => {
            format!("file: {} already exists. Set overwrite=true to replace.", call.path())
        }
        (ErrorKind::IsDirectory, ExistingFileRule::Replace) => {
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

/// The result of an edit: the confirmation for the model, the diff for the user.
pub(super) fn edit_result(path: &str, outcome: &CallOutcome) -> WeaverResult {
    let file = outcome.before_after.first();
    let side = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| replace_invalid_bytes(bytes)).unwrap_or_default();
    let before = side(file.and_then(|file| file.before.as_ref()));
    let after = side(file.and_then(|file| file.after.as_ref()));
    let summary = format!("File edited: {path}");
    let large = |text: &str| text.len() > DIFF_BYTES_MAX || text.lines().count() > DIFF_LINES_MAX;
    if large(&before) || large(&after) {
        return WeaverResult::silent(format!("{summary}\n[diff preview skipped: file too large for inline preview]"));
    }
    if before == after {
        let for_llm = format!("{summary}\n{NO_CHANGE_NOTE}");
        return WeaverResult { for_user: fenced_diff(&summary, NO_CHANGE_NOTE), ..WeaverResult::visible(for_llm) };
    }
    let label = match path.trim_start_matches('/') {
        "" => "file",
        label => label,
    };
    let labels = DiffLabels { old: &format!("a/{label}"), new: &format!("b/{label}") };
    let diff = unified_diff(&before, &after, labels, CONTEXT_LINES, usize::MAX).text;
    if diff.len() <= PREVIEW_BYTES_MAX {
        return WeaverResult {
            for_user: fenced_diff(&summary, diff.trim_end_matches('\n')),
            ..WeaverResult::visible(summary)
        };
    }
    let preview = &diff[..diff.floor_char_boundary(PREVIEW_BYTES_MAX)];
    let for_user = format!("{}\n{TRUNCATED_NOTE}", fenced_diff(&summary, preview));
    WeaverResult { for_user, ..WeaverResult::visible(format!("{summary}\n{TRUNCATED_NOTE}")) }
}

fn fenced_diff(summary: &str, diff: &str) -> String {
    format!("{summary}\n```diff\n{diff}\n```")
}

#[cfg(test)]
mod tests {
    use stead_engine::BeforeAfterBytes;

    use super::*;

    fn edit_result_for(before: &str, after: &str) -> WeaverResult {
        let side = |text: &str| Some(text.as_bytes().to_vec());
        let file = BeforeAfterBytes { path: stead_path::RelPath::root(), before: side(before), after: side(after) };
        let outcome = CallOutcome {
            json: serde_json::Map::new(),
            text: String::new(),
            before_after: vec![file],
            session_switch: None,
        };
        edit_result("/d/e.txt", &outcome)
    }

    #[test]
    fn edit_result_shows_diff_to_user() {
        let short = edit_result_for("a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(short.for_llm, "File edited: /d/e.txt");
        for part in ["```diff\n--- a/d/e.txt\n+++ b/d/e.txt\n@@ -1,3 +1,3 @@\n", "-b\n+B\n", " c\n```"] {
            assert!(short.for_user.contains(part), "{}", short.for_user);
        }
        assert!(edit_result_for("a", "a").for_llm.ends_with(NO_CHANGE_NOTE));
        let skipped = edit_result_for(&"x".repeat(DIFF_BYTES_MAX + 1), "y");
        assert!(skipped.for_user.is_empty() && skipped.for_llm.contains("skipped"));
        let cut = edit_result_for(&"ä\n".repeat(1500), &"öö\n".repeat(1900));
        assert!(cut.for_llm.ends_with(TRUNCATED_NOTE) && cut.for_user.ends_with(TRUNCATED_NOTE));
    }
}
