//! `apply_patch`: changes several files, all or none. The engine parses and applies the patch; this module parses the
//! headers again only to report paths as the patch writes them.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, Error, MissingParentPolicy, PatchGrammar, PatchOptions};

use super::{
    CommaCall, CommaCompatibility,
    class::CommaErrorClass,
    diff,
    envelope::{CommaEnvelope, CommaError, CommaJsonFields},
    errors, paths, write_file,
};

const ECHOED_LINE_CHARS: usize = 40;

pub(super) fn patch_call(call: &CommaCall<'_>, options: CallOptions) -> (Map<String, Value>, CallOptions) {
    let base = call.args.object("expectedSha256ByPath").cloned().unwrap_or_default();
    let arguments = super::into_object(json!({ "patch": call.args.text_or_empty("patch"), "base": base }));
    let patch_options = match call.compatibility {
        CommaCompatibility::OriginalCode => PatchOptions { grammar: PatchGrammar::EXACT, ..PatchOptions::STRICT },
        // Moves and end-of-file markers may be written in either form.
        CommaCompatibility::Document => PatchOptions::STRICT,
    };
    (arguments, CallOptions { missing_parents: MissingParentPolicy::Refuse, patch_options, ..options })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommaPatchSectionKind {
    Add,
    Update,
    Delete,
    Move,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CommaPatchHeader<'a> {
    kind: CommaPatchSectionKind,
    path: &'a str,
    move_target: Option<&'a str>,
}

const HEADER_PREFIXES: [(&str, CommaPatchSectionKind); 4] = [
    ("*** Add File: ", CommaPatchSectionKind::Add),
    ("*** Update File: ", CommaPatchSectionKind::Update),
    ("*** Delete File: ", CommaPatchSectionKind::Delete),
    ("*** Move File: ", CommaPatchSectionKind::Move),
];

fn parse_headers(patch: &str) -> Vec<CommaPatchHeader<'_>> {
    let mut headers: Vec<CommaPatchHeader<'_>> = Vec::new();
    for line in patch.lines() {
        if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(last) = headers.last_mut()
        {
            (last.kind, last.move_target) = (CommaPatchSectionKind::Move, Some(to.trim()));
        }
        let header = HEADER_PREFIXES.iter().find_map(|(prefix, kind)| Some((kind, line.strip_prefix(prefix)?.trim())));
        if let Some((kind, rest)) = header {
            let (path, to) = match (kind, rest.split_once(" -> ")) {
                (CommaPatchSectionKind::Move, Some((from, to))) => (from.trim(), Some(to.trim())),
                (
                    CommaPatchSectionKind::Add
                    | CommaPatchSectionKind::Update
                    | CommaPatchSectionKind::Delete
                    | CommaPatchSectionKind::Move,
                    _,
                ) => (rest, None),
            };
            headers.push(CommaPatchHeader { kind: *kind, path, move_target: to });
        }
    }
    headers
}

pub(super) fn patch_paths(patch: &str) -> Vec<&str> {
    parse_headers(patch).into_iter().flat_map(|header| [Some(header.path), header.move_target]).flatten().collect()
}

pub(super) fn patch_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let headers = parse_headers(call.args.text_or_empty("patch"));
    let rows = outcome.json.get("files").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    // A unified diff has no such headers; then the engine's paths are used.
    let use_headers = headers.len() == rows.len();
    let mut lines = Vec::new();
    let mut files = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let header = headers.get(index).filter(|_| use_headers);
        let path = header.map_or(row["path"].as_str().unwrap_or_default(), |header| header.path);
        let to = row["to"].as_str().map(|to| header.and_then(|header| header.move_target).unwrap_or(to));
        let file = outcome.before_after.get(index);
        let (before, after) = file.map_or((None, None), |file| (file.before.as_deref(), file.after.as_deref()));
        let operation = row["operation"].as_str().unwrap_or_default();
        lines.push(match (operation, to) {
            ("add", _) => format!("  A {path}"),
            ("delete", _) => format!("  D {path}"),
            (_, Some(to)) => format!("  R {path} -> {to}"),
            (_, None) => format!("  M {path}"),
        });
        let handle = row["trash"].as_str().map(|id| paths::trash_handle(id, path));
        let file = CommaJsonFields::new()
            .with("path", path)
            .with("operation", operation)
            .with_optional("toPath", to)
            .with_optional("beforeSha256", before.map(write_file::sha256_hex))
            .with_optional("afterSha256", after.map(write_file::sha256_hex))
            .with("diff", diff::diff_exact(to.unwrap_or(path), before, after))
            .with_optional("trashedTo", handle);
        files.push(Value::from(file));
    }
    let hunks: u64 = rows.iter().filter_map(|row| row["chunks"].as_u64()).sum();
    let atomic = call.args.flag("atomic").unwrap_or(true);
    let way = if atomic { "atomic" } else { "sequential" };
    let output = format!("Applied patch ({way}): {} file(s), {hunks} hunk(s).\n{}", files.len(), lines.join("\n"));
    let data = CommaJsonFields::new().with("atomic", atomic).with("hunkCount", hunks).with("changedFiles", files);
    CommaEnvelope::success(output, data)
}

/// The error of a failed patch; `None` if the general text applies.
pub(super) fn patch_error(call: &CommaCall<'_>, error: &Error) -> Option<CommaError> {
    let headers = parse_headers(call.args.text_or_empty("patch"));
    let section = error.details.get("section").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
    let header = section.and_then(|index| headers.get(index)).copied();
    let detail = |name: &str| error.details.get(name).and_then(Value::as_str);
    let path = header.map(|header| header.path).or(detail("path")).unwrap_or_default();
    let not_found = |message: String| Some(CommaError::new("not_found", message).with_path(path));
    match CommaErrorClass::from(error.kind) {
        CommaErrorClass::MalformedPatch => Some(parse_error(error)),
        CommaErrorClass::NotFound if detail("parent").is_some() => {
            Some(parent_missing_error(&headers, detail("parent")))
        }
        CommaErrorClass::NotFound => not_found(format!("File does not exist: {path}")),
        CommaErrorClass::NotDirectory => not_found(format!("Parent of {path} is not a directory")),
        CommaErrorClass::IsDirectory => not_found(format!("Path is a directory, not a file: {path}")),
        CommaErrorClass::AlreadyExists => Some(match header {
            Some(CommaPatchHeader { kind: CommaPatchSectionKind::Move, move_target: Some(to), .. }) => {
                CommaError::new("already_exists", format!("Move destination already exists: {to}")).with_path(to)
            }
            Some(_) | None => {
                CommaError::new("already_exists", format!("Cannot Add File — already exists: {path}")).with_path(path)
            }
        }),
        CommaErrorClass::Stale if detail("reason") == Some("absent") => {
            let message = format!("expectedSha256ByPath for Add File {path} must be \"\" (sentinel)");
            let next = "Use the empty string \"\" to assert the file does not exist, or omit the entry entirely.";
            Some(CommaError::new("stale_file", message).with_path(path).do_instead(next))
        }
        CommaErrorClass::Stale => {
            let by_path = call.args.object("expectedSha256ByPath");
            let expected = by_path.and_then(|by_path| by_path.get(path)).and_then(Value::as_str);
            Some(errors::stale_file_error(path, expected.unwrap_or_default(), detail("version").unwrap_or_default()))
        }
        CommaErrorClass::MultipleMatches | CommaErrorClass::TextNotFound | CommaErrorClass::OverlappingEdits => {
            Some(hunk_error(error, path))
        }
        CommaErrorClass::InvalidArguments => match detail("reason") {
            Some("same_place") => {
                let message = format!("Move File requires distinct from/to (got {path})");
                Some(CommaError::new("command_failed", message).with_path(path))
            }
            Some("duplicate_path") => {
                let message = format!("Path appears multiple times in patch: {path}");
                let details = CommaJsonFields::new().with("reason", "duplicate_path");
                Some(CommaError::new("patch_apply_error", message).with_path(path).with_details(details))
            }
            Some(_) | None => None,
        },
        CommaErrorClass::NotText | CommaErrorClass::Other => None,
    }
}

/// A new file whose parent directory is missing.
fn parent_missing_error(headers: &[CommaPatchHeader<'_>], parent: Option<&str>) -> CommaError {
    let is_new =
        |header: &&CommaPatchHeader<'_>| header.kind == CommaPatchSectionKind::Add || header.move_target.is_some();
    let target = |header: &CommaPatchHeader<'_>| header.move_target.unwrap_or(header.path).to_owned();
    let in_parent =
        |header: &&CommaPatchHeader<'_>| target(header).rsplit_once('/').map(|(directory, _)| directory) == parent;
    let found = headers.iter().filter(is_new).find(in_parent).or_else(|| headers.iter().find(is_new));
    let path = found.map(target).unwrap_or_default();
    match found.map(|header| header.kind) {
        Some(CommaPatchSectionKind::Move) => {
            CommaError::new("not_found", format!("Move destination parent does not exist: {path}")).with_path(path)
        }
        Some(CommaPatchSectionKind::Add | CommaPatchSectionKind::Update | CommaPatchSectionKind::Delete) | None => {
            CommaError::new("not_found", format!("Parent directory of {path} does not exist"))
                .with_path(path)
                .retry_with("Use `create_file` to create the parent directory chain before re-running apply_patch.")
        }
    }
}

fn hunk_error(error: &Error, path: &str) -> CommaError {
    let hunk = error.details.get("chunk").and_then(Value::as_u64).unwrap_or_default();
    let details = |reason: &str| CommaJsonFields::new().with("hunkIndex", hunk).with("reason", reason);
    if CommaErrorClass::from(error.kind) == CommaErrorClass::MultipleMatches {
        return CommaError::new("multiple_matches", format!("Hunk {hunk} for {path} matches multiple locations"))
            .with_path(path)
            .with_details(details("multiple_matches"))
            .retry_with("Add more surrounding context lines to the hunk so it matches a unique location.");
    }
    CommaError::new("patch_apply_error", format!("Hunk {hunk} for {path} could not be applied (context not found)"))
        .with_path(path)
        .with_details(details("context_not_found"))
}

fn parse_error(error: &Error) -> CommaError {
    let detail = |name: &str| error.details.get(name).and_then(Value::as_str).unwrap_or_default();
    let got: String = detail("got").chars().take(ECHOED_LINE_CHARS).collect();
    let section = || HEADER_PREFIXES.iter().find(|(prefix, _)| detail("got").starts_with(prefix.trim_end()));
    let (message, expected) = match detail("fault") {
        "no_begin" => ("Patch must start with \"*** Begin Patch\"".to_owned(), "*** Begin Patch"),
        "before_begin" => ("Unexpected content before \"*** Begin Patch\"".to_owned(), "*** Begin Patch"),
        "no_end" => ("Patch must end with \"*** End Patch\"".to_owned(), "*** End Patch"),
        "after_end" => ("Unexpected content after \"*** End Patch\"".to_owned(), "(end of input)"),
        "no_sections" => ("Patch contains no file sections".to_owned(), detail("expected")),
        "unknown_header" => (format!("Unexpected line \"{got}\" — expected a file section header"), detail("expected")),
        "no_path" => {
            let name = section().map_or("Section", |(prefix, _)| prefix.trim_matches(['*', ' ', ':']));
            (format!("{name} requires a non-empty path"), "<path>")
        }
        "no_arrow" => ("Move File requires \"<from> -> <to>\"".to_owned(), "->"),
        "no_chunk" => ("Update File section requires at least one \"@@\" hunk".to_owned(), "@@"),
        "empty_chunk" => ("Hunk is empty".to_owned(), detail("expected")),
        "not_chunk_header" => (format!("Expected \"@@\" hunk header, got \"{got}\""), "@@"),
        "not_add_line" => (format!("Add File body lines must start with \"+\", got \"{got}\""), detail("expected")),
        _ => (error.message.clone(), detail("expected")),
    };
    let line = error.details.get("line").cloned().unwrap_or(Value::Null);
    CommaError::new("patch_parse_error", message)
        .with_details(CommaJsonFields::new().with("line", line).with("expected", expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_patch_headers_as_written() {
        let patch = "*** Begin Patch\n*** Add File: ./a\n+*** Add File: no\n*** Move File: b -> c\r\n\
                     *** Update File: d\n*** Move to: e\n*** End Patch";
        assert_eq!(patch_paths(patch), ["./a", "b", "c", "d", "e"]);
    }
}
