//! The sentences of the newest generation: places below the workspace are spelled relative to it, as its rooted
//! handle sees them, and an edit shows its difference to the person.

use engine::{Answer, Failure, Kind};
use text::unified::{CONTEXT_LINES, Labels, unified};

use super::{
    Said, as_origin_text,
    asked::{Asked, Standing, Tool},
    sentence::{file_in_the_way, is_root, of_edit, reason},
    spot::Spot,
};

const ESCAPES: &str = "path escapes from parent";
const NO_CHANGE: &str = "(no content change)";
const CUT: &str = "[diff preview truncated; call read_file for the full edited contents]";
/// Largest file whose difference is shown.
const DIFF_BYTES_MAX: usize = 64 * 1024;
/// Most lines of such a file.
const DIFF_LINES_MAX: usize = 2000;
/// Most bytes of a difference that are shown.
const PREVIEW_BYTES_MAX: usize = 16 * 1024;

/// The sentence for one failure.
pub(super) fn sentence(asked: &Asked<'_>, spot: &Spot<'_>, failure: &Failure) -> String {
    let root = is_root(failure);
    if failure.kind == Kind::InvalidPath && !root {
        let escapes = format!("path escapes workspace: {}", asked.path());
        return match asked.tool() {
            Tool::ListDir => format!("failed to read directory: {escapes}"),
            Tool::ReadFile | Tool::WriteFile | Tool::EditFile | Tool::AppendFile => escapes,
        };
    }
    let kind = if root { Kind::IsDirectory } else { failure.kind };
    match asked.tool() {
        Tool::ReadFile => read(asked, spot, kind, failure),
        Tool::ListDir if kind == Kind::NotDirectory && file_in_the_way(failure).is_none() => {
            format!("failed to read directory: readdirent {}: not a directory", spot.absolute())
        }
        Tool::ListDir => format!("failed to read directory: {}", at(spot, kind, failure)),
        Tool::WriteFile => written(asked, spot, kind, failure),
        Tool::EditFile | Tool::AppendFile => {
            of_edit(failure).unwrap_or_else(|| looked("failed to read file", spot, kind, failure))
        }
    }
}

/// One failed look at a place, in the rooted handle's form.
fn at(spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    let words = if kind == Kind::PathEscape { ESCAPES.to_owned() } else { reason(kind, failure) };
    format!("openat {}: {words}", spot.relative())
}

fn looked(prefix: &str, spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    let step = at(spot, kind, failure);
    if kind == Kind::IsDirectory {
        return format!("{prefix}: read {}: is a directory", spot.absolute());
    }
    let known = [
        (Kind::NotFound, "file not found: "),
        (Kind::PathEscape, "access denied: "),
        (Kind::Denied, "access denied: "),
    ];
    let said = known.iter().find(|(known, _)| *known == kind).map_or("", |(_, said)| said);
    format!("{prefix}: {said}{step}")
}

fn read(asked: &Asked<'_>, spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    let in_lines = asked.window().is_some_and(|window| window.byte_range().is_none());
    match (kind, in_lines) {
        (Kind::IsDirectory, true) => format!("failed to open file: path is a directory: {}", asked.path()),
        (Kind::IsDirectory, false) => {
            format!("failed to read file content: read {}: is a directory", spot.absolute())
        }
        (kind, _) => looked("failed to open file", spot, kind, failure),
    }
}

fn written(asked: &Asked<'_>, spot: &Spot<'_>, kind: Kind, failure: &Failure) -> String {
    match (kind, asked.standing()) {
        (Kind::Exists | Kind::IsDirectory, Standing::Stays) => {
            format!("file: {} already exists. Set overwrite=true to replace.", asked.path())
        }
        (Kind::IsDirectory, Standing::Replaced) => {
            format!("failed to rename temp file over target: renameat {}: file exists", spot.relative())
        }
        (Kind::NotDirectory, _) => {
            let file = file_in_the_way(failure).unwrap_or_default();
            format!("failed to create parent directories: mkdirat {file}: not a directory")
        }
        (Kind::PathEscape, _) if spot.relative().contains('/') => {
            let relative = spot.relative();
            let parent = relative.rsplit_once('/').map_or(".", |(parent, _)| parent);
            format!("failed to create parent directories: mkdirat {parent}: {ESCAPES}")
        }
        (kind, _) => format!("failed to write temp file: {}", at(spot, kind, failure)),
    }
}

/// What is said of an edit: to the model that it was made, to the person what it changed.
pub(super) fn edited(path: &str, answer: &Answer) -> Said {
    let held = answer.evidence.first();
    let side = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| as_origin_text(bytes)).unwrap_or_default();
    let before = side(held.and_then(|held| held.before.as_ref()));
    let after = side(held.and_then(|held| held.after.as_ref()));
    let summary = format!("File edited: {path}");
    let large = |text: &str| text.len() > DIFF_BYTES_MAX || text.lines().count() > DIFF_LINES_MAX;
    if large(&before) || large(&after) {
        return Said::silent(format!("{summary}\n[diff preview skipped: file too large for inline preview]"));
    }
    if before == after {
        let for_llm = format!("{summary}\n{NO_CHANGE}");
        return Said { for_user: fenced(&summary, NO_CHANGE), ..Said::told(for_llm) };
    }
    let shown = match path.trim_start_matches('/') {
        "" => "file",
        shown => shown,
    };
    let labels = Labels { old: &format!("a/{shown}"), new: &format!("b/{shown}") };
    let diff = unified(&before, &after, labels, CONTEXT_LINES, usize::MAX).text;
    if diff.len() <= PREVIEW_BYTES_MAX {
        return Said { for_user: fenced(&summary, diff.trim_end_matches('\n')), ..Said::told(summary) };
    }
    let preview = &diff[..diff.floor_char_boundary(PREVIEW_BYTES_MAX)];
    let for_user = format!("{}\n{CUT}", fenced(&summary, preview));
    Said { for_user, ..Said::told(format!("{summary}\n{CUT}")) }
}

fn fenced(summary: &str, diff: &str) -> String {
    format!("{summary}\n```diff\n{diff}\n```")
}

#[cfg(test)]
mod tests {
    use engine::Held;

    use super::*;

    fn said(before: &str, after: &str) -> Said {
        let side = |text: &str| Some(text.as_bytes().to_vec());
        let held = Held { path: path::RelPath::root(), before: side(before), after: side(after) };
        let answer =
            Answer { json: serde_json::Map::new(), text: String::new(), evidence: vec![held], switch: None };
        edited("/d/e.txt", &answer)
    }

    #[test]
    fn an_edit_shows_its_difference_to_the_person() {
        let short = said("a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(short.for_llm, "File edited: /d/e.txt");
        for part in ["```diff\n--- a/d/e.txt\n+++ b/d/e.txt\n@@ -1,3 +1,3 @@\n", "-b\n+B\n", " c\n```"] {
            assert!(short.for_user.contains(part), "{}", short.for_user);
        }
        assert!(said("a", "a").for_llm.ends_with(NO_CHANGE));
        let skipped = said(&"x".repeat(DIFF_BYTES_MAX + 1), "y");
        assert!(skipped.for_user.is_empty() && skipped.for_llm.contains("skipped"));
        let cut = said(&"ä\n".repeat(1500), &"öö\n".repeat(1900));
        assert!(cut.for_llm.ends_with(CUT) && cut.for_user.ends_with(CUT));
    }
}
