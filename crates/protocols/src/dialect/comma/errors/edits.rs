//! The error sentences of `edit_file` and `apply_patch`. An error without a sentence of its own gets the error sentence
//! that all comma tools share.

use serde_json::{Value, json};
use stead_engine::{Error, ErrorKind, ExpectedCountOrText, TextMatchPlace, ops::PatchedFileChangeKind};

use super::{
    super::{
        apply_patch::{CommaPatchSectionHeader, HEADER_PREFIXES, parse_headers},
        edit_file::expected_occurrences,
        envelope::CommaToolError,
        inputs::{CommaApplyPatchInput, CommaEditFileInput},
    },
    CommaErrorKind, stale_file_error,
};

const ECHOED_LINE_CHARS: usize = 40;

pub(super) fn edit_error(input: &CommaEditFileInput, error: &Error) -> Option<CommaToolError> {
    let path = input.path.as_str();
    let index = error.details.edit.unwrap_or_default() as u64;
    let expected = expected_occurrences(&input.edits, index).unwrap_or(1);
    if matches!(error.kind, ErrorKind::TextNotFound | ErrorKind::AlreadyApplied) {
        return Some(text_not_found_error(path, index, expected));
    }
    if error.kind == ErrorKind::Ambiguous {
        return Some(multiple_matches_error(path, index, expected, error));
    }
    if error.kind == ErrorKind::Overlap {
        return Some(overlapping_edits_error(path, error));
    }
    let binary =
        CommaToolError::new(CommaErrorKind::BinaryFile, format!("Cannot edit binary file: {path}")).with_path(path);
    (error.kind == ErrorKind::NotText)
        .then(|| binary.do_instead("Use apply_patch or write_file with binary-aware tooling instead of edit_file."))
}

fn text_not_found_error(path: &str, index: u64, expected: u64) -> CommaToolError {
    let more = match expected {
        1 => {
            " Re-read the file and copy the exact text you want to replace, or pass `oldText` that uniquely identifies \
             the block (multi-line is fine)."
        }
        _ => "",
    };
    CommaToolError::new(CommaErrorKind::OldTextNotFound, format!("Edit #{index}: `oldText` not found in {path}.{more}"))
        .with_path(path)
        .with_details(json!({ "editIndex": index }))
        .retry_with("Re-read the file to confirm current content and adjust `oldText`.")
}

fn multiple_matches_error(path: &str, index: u64, expected: u64, error: &Error) -> CommaToolError {
    let count = error.details.places_total.unwrap_or_default();
    let ranges: Vec<Value> = error.details.places.iter().flatten().map(match_range).collect();
    let message = format!(
        "Edit #{index}: expected {expected} match(es) for `oldText` in {path}, found {count}. Tighten `oldText` with more \
         surrounding context, or set `expectedOccurrences: {count}` to replace every match."
    );
    let details = json!({
        "editIndex": index,
        "matchCount": count,
        "expectedOccurrences": expected,
        "matchRanges": ranges,
    });
    CommaToolError::new(CommaErrorKind::MultipleMatches, message)
        .with_path(path)
        .with_details(details)
        .retry_with("Either widen `oldText` to make it unique, or set `expectedOccurrences` to the actual count.")
}

fn overlapping_edits_error(path: &str, error: &Error) -> CommaToolError {
    let mut indices: Vec<usize> = error.details.edits.into_iter().flatten().collect();
    indices.sort_unstable();
    let numbers: Vec<String> = indices.iter().map(ToString::to_string).collect();
    CommaToolError::new(
        CommaErrorKind::OverlappingEdits,
        format!("Edits {} target overlapping ranges in {path}.", numbers.join(", ")),
    )
    .with_path(path)
    .with_details(json!({ "conflictingEditIndices": indices }))
    .retry_with("Split or rewrite the edits so their oldText regions don't intersect.")
}

fn match_range(place: &TextMatchPlace) -> Value {
    let [start, end] = place.units.map_or([None; 2], |units| units.map(Some));
    json!({ "startLine": place.line, "endLine": place.to_line, "startOffset": start, "endOffset": end })
}

pub(super) fn patch_error(input: &CommaApplyPatchInput, error: &Error) -> Option<CommaToolError> {
    let headers = parse_headers(&input.patch);
    let header = error.details.section.and_then(|index| headers.get(index)).copied();
    let path = header.map(|header| header.path).or(error.details.path.as_deref()).unwrap_or_default();
    let new = |kind, message: String| CommaToolError::new(kind, message).with_path(path);
    Some(match (error.kind, error.details.reason.as_deref()) {
        (ErrorKind::MalformedPatch, _) => parse_error(error),
        (ErrorKind::NotFound, _) => match error.details.parent.as_deref() {
            Some(parent) => parent_missing_error(&headers, parent),
            None => new(CommaErrorKind::NotFound, format!("File does not exist: {path}")),
        },
        (ErrorKind::NotDirectory, _) => new(CommaErrorKind::NotFound, format!("Parent of {path} is not a directory")),
        (ErrorKind::IsDirectory, _) => {
            new(CommaErrorKind::NotFound, format!("Path is a directory, not a file: {path}"))
        }
        (ErrorKind::Exists, _) => match header {
            Some(CommaPatchSectionHeader { kind: PatchedFileChangeKind::Move, move_target: Some(to), .. }) => {
                CommaToolError::new(CommaErrorKind::AlreadyExists, format!("Move destination already exists: {to}"))
                    .with_path(to)
            }
            Some(_) | None => new(CommaErrorKind::AlreadyExists, format!("Cannot Add File — already exists: {path}")),
        },
        (ErrorKind::Stale, Some("absent")) => {
            let next = "Use the empty string \"\" to assert the file does not exist, or omit the entry entirely.";
            let message = format!("expectedSha256ByPath for Add File {path} must be \"\" (sentinel)");
            new(CommaErrorKind::StaleFile, message).do_instead(next)
        }
        (ErrorKind::Stale, _) => {
            let expected = input.expected_sha256_by_path.get(path).map(String::as_str);
            let actual = error.details.version.as_deref().unwrap_or_default();
            stale_file_error(path, expected.unwrap_or_default(), actual)
        }
        (ErrorKind::Ambiguous | ErrorKind::TextNotFound | ErrorKind::AlreadyApplied | ErrorKind::Overlap, _) => {
            hunk_error(error, path)
        }
        (ErrorKind::BadRequest, Some("same_place")) => {
            new(CommaErrorKind::CommandFailed, format!("Move File requires distinct from/to (got {path})"))
        }
        (ErrorKind::BadRequest, Some("duplicate_path")) => {
            new(CommaErrorKind::PatchApplyError, format!("Path appears multiple times in patch: {path}"))
                .with_details(json!({ "reason": "duplicate_path" }))
        }
        (_, _) => return None,
    })
}

fn parent_missing_error(headers: &[CommaPatchSectionHeader<'_>], parent: &str) -> CommaToolError {
    let is_new = |header: &&CommaPatchSectionHeader<'_>| {
        header.kind == PatchedFileChangeKind::Add || header.move_target.is_some()
    };
    let target = |header: &CommaPatchSectionHeader<'_>| header.move_target.unwrap_or(header.path).to_owned();
    let in_parent = |header: &&CommaPatchSectionHeader<'_>| {
        target(header).rsplit_once('/').is_some_and(|(directory, _)| directory == parent)
    };
    let found = headers.iter().filter(is_new).find(in_parent).or_else(|| headers.iter().find(is_new));
    let path = found.map(target).unwrap_or_default();
    if found.is_some_and(|header| header.kind == PatchedFileChangeKind::Move) {
        return CommaToolError::new(
            CommaErrorKind::NotFound,
            format!("Move destination parent does not exist: {path}"),
        )
        .with_path(path);
    }
    CommaToolError::new(CommaErrorKind::NotFound, format!("Parent directory of {path} does not exist"))
        .with_path(path)
        .retry_with("Use `create_file` to create the parent directory chain before re-running apply_patch.")
}

fn hunk_error(error: &Error, path: &str) -> CommaToolError {
    let hunk = error.details.chunk.unwrap_or_default();
    let details = |reason: &str| json!({ "hunkIndex": hunk, "reason": reason });
    if error.kind == ErrorKind::Ambiguous {
        return CommaToolError::new(
            CommaErrorKind::MultipleMatches,
            format!("Hunk {hunk} for {path} matches multiple locations"),
        )
        .with_path(path)
        .with_details(details("multiple_matches"))
        .retry_with("Add more surrounding context lines to the hunk so it matches a unique location.");
    }
    CommaToolError::new(
        CommaErrorKind::PatchApplyError,
        format!("Hunk {hunk} for {path} could not be applied (context not found)"),
    )
    .with_path(path)
    .with_details(details("context_not_found"))
}

fn parse_error(error: &Error) -> CommaToolError {
    let details = &*error.details;
    let (got, fault) = (details.got.as_deref().unwrap_or_default(), details.fault.as_deref().unwrap_or_default());
    let expected = match &details.expected {
        Some(ExpectedCountOrText::Text(expected)) => expected,
        Some(ExpectedCountOrText::Count(_)) | None => "",
    };
    let section = || HEADER_PREFIXES.iter().find(|(prefix, _)| got.starts_with(prefix.trim_end()));
    let got: String = got.chars().take(ECHOED_LINE_CHARS).collect();
    let (message, expected) = match fault {
        "no_begin" => ("Patch must start with \"*** Begin Patch\"".to_owned(), "*** Begin Patch"),
        "before_begin" => ("Unexpected content before \"*** Begin Patch\"".to_owned(), "*** Begin Patch"),
        "no_end" => ("Patch must end with \"*** End Patch\"".to_owned(), "*** End Patch"),
        "after_end" => ("Unexpected content after \"*** End Patch\"".to_owned(), "(end of input)"),
        "no_sections" => ("Patch contains no file sections".to_owned(), expected),
        "unknown_header" => (format!("Unexpected line \"{got}\" — expected a file section header"), expected),
        "no_path" => {
            let name = section().map_or("Section", |(prefix, _)| prefix.trim_matches(['*', ' ', ':']));
            (format!("{name} requires a non-empty path"), "<path>")
        }
        "no_arrow" => ("Move File requires \"<from> -> <to>\"".to_owned(), "->"),
        "no_chunk" => ("Update File section requires at least one \"@@\" hunk".to_owned(), "@@"),
        "empty_chunk" => ("Hunk is empty".to_owned(), expected),
        "not_chunk_header" => (format!("Expected \"@@\" hunk header, got \"{got}\""), "@@"),
        "not_add_line" => (format!("Add File body lines must start with \"+\", got \"{got}\""), expected),
        _ => (error.message.clone(), expected),
    };
    CommaToolError::new(CommaErrorKind::PatchParseError, message)
        .with_details(json!({ "line": details.line, "expected": expected }))
}
