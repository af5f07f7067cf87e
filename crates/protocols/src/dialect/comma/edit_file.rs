//! `edit_file`: replaces quoted texts of one file, all against the same snapshot, all or none.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, Error, edit_rules};

use super::{
    CommaCall, CommaCompatibility,
    args::parse_whole_number,
    class::CommaErrorClass,
    diff,
    envelope::{CommaEnvelope, CommaError, CommaJsonFields},
    write_file,
};

/// Whether an edit may apply to text that only resembles its quote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FuzzyMatching {
    Off,
    /// If there is no other match.
    On,
}

pub(super) fn edit_call(
    call: &CommaCall<'_>,
    fuzzy: FuzzyMatching,
    options: CallOptions,
) -> (Map<String, Value>, CallOptions) {
    let edits: Vec<Value> =
        call.args.objects("edits").into_iter().map(|edit| engine_edit(call.compatibility, edit)).collect();
    let mut arguments = super::into_object(json!({ "path": call.path_argument(), "edits": edits, "mode": "strict" }));
    if let Some(hash) = call.args.optional_text("expectedSha256") {
        arguments.insert("base".to_owned(), hash.into());
    }
    let recovery = match fuzzy {
        FuzzyMatching::Off => edit_rules::NotFoundRecovery::None,
        FuzzyMatching::On => edit_rules::NotFoundRecovery::AcceptSimilar,
    };
    (
        arguments,
        CallOptions { edit_rules: edit_rules::EditRules { recovery, ..edit_rules::EditRules::PLAIN }, ..options },
    )
}

fn engine_edit(compatibility: CommaCompatibility, edit: &Map<String, Value>) -> Value {
    let mut engine_edit = json!({ "old": edit["oldText"], "new": edit["newText"] });
    // The original code ignores `replaceAll`; its document has it.
    let all = compatibility == CommaCompatibility::Document && edit.get("replaceAll") == Some(&Value::Bool(true));
    match (all, expected_occurrences(edit)) {
        (true, _) => engine_edit["all"] = true.into(),
        (false, Some(count)) => engine_edit["count"] = count.into(),
        (false, None) => {}
    }
    engine_edit
}

fn expected_occurrences(edit: &Map<String, Value>) -> Option<u64> {
    edit.get("expectedOccurrences").and_then(parse_whole_number)
}

pub(super) fn edit_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let path = call.path_argument();
    let file = diff::first_before_after(outcome);
    let (before, after) = file.map_or((None, None), |file| (file.before.as_deref(), file.after.as_deref()));
    let (sha256, size) = write_file::version_and_size(outcome);
    let requested = call.args.objects("edits");
    let reported = outcome.json.get("edits").and_then(Value::as_array);
    let applied: Vec<CommaAppliedEdit> =
        reported.into_iter().flatten().map(|edit| CommaAppliedEdit::from_outcome(edit, &requested)).collect();
    let replacements: u64 = applied.iter().map(|edit| edit.occurrences).sum();
    let data = CommaJsonFields::new()
        .with("path", path)
        .with_optional("beforeSha256", before.map(write_file::sha256_hex))
        .with("afterSha256", sha256)
        .with("sizeBytes", size)
        .with("appliedEdits", applied.into_iter().map(CommaAppliedEdit::into_json).collect::<Vec<_>>())
        .with("diff", diff::diff_normalized(path, before, after));
    if outcome.json.get("changed") == Some(&Value::Bool(false)) {
        return CommaEnvelope::success(format!("No change to {path} (all edits matched existing content)"), data);
    }
    let output = format!("Edited {path} ({} edit(s), {replacements} replacement(s), sha256 {sha256})", requested.len());
    CommaEnvelope::success(output, data)
}

struct CommaAppliedEdit {
    index: u64,
    occurrences: u64,
    /// The original's name for the match strategy, if it is not exact.
    fallback: Option<&'static str>,
    matched_text: Option<String>,
}

impl CommaAppliedEdit {
    fn from_outcome(reported: &Value, requested: &[&Map<String, Value>]) -> Self {
        let index = reported["edit"].as_u64().unwrap_or_default();
        let matches = reported["lines"].as_array().map_or(0, Vec::len) as u64;
        // An edit that changes nothing is not located; its own count applies.
        let stated = usize::try_from(index)
            .ok()
            .and_then(|index| requested.get(index))
            .and_then(|edit| expected_occurrences(edit));
        let occurrences = if matches == 0 { stated.unwrap_or(1) } else { matches };
        let fallback = match reported["how"].as_str() {
            Some("trimmed_lines") => Some("lineTrimmedReplacer"),
            Some("collapsed_space") => Some("whitespaceNormalizedReplacer"),
            Some("block_anchor") => Some("blockAnchorReplacer"),
            Some(_) | None => None,
        };
        let matched_text = fallback.and_then(|_| reported["matched"].as_str()).map(diff::normalize_text);
        Self { index, occurrences, fallback, matched_text }
    }

    fn into_json(self) -> Value {
        CommaJsonFields::new()
            .with("editIndex", self.index)
            .with("occurrences", self.occurrences)
            .with("usedFallback", self.fallback.is_some())
            .with("replacerName", self.fallback.unwrap_or("exactReplacer"))
            .with_optional("matchedText", self.matched_text)
            .into()
    }
}

/// The error for edits that cannot be applied; `None` for other errors.
pub(super) fn edit_error(call: &CommaCall<'_>, error: &Error) -> Option<CommaError> {
    let path = call.path_argument();
    let index = error.details.get("edit").and_then(Value::as_u64).unwrap_or_default();
    let edits = call.args.objects("edits");
    let stated =
        usize::try_from(index).ok().and_then(|index| edits.get(index)).and_then(|edit| expected_occurrences(edit));
    let expected = stated.unwrap_or(1);
    match CommaErrorClass::from(error.kind) {
        CommaErrorClass::TextNotFound => Some(text_not_found_error(path, index, expected)),
        CommaErrorClass::MultipleMatches => Some(multiple_matches_error(path, index, expected, error)),
        CommaErrorClass::OverlappingEdits => Some(overlapping_edits_error(path, error)),
        CommaErrorClass::NotText => Some(
            CommaError::new("binary_file", format!("Cannot edit binary file: {path}"))
                .with_path(path)
                .do_instead("Use apply_patch or write_file with binary-aware tooling instead of edit_file."),
        ),
        CommaErrorClass::MalformedPatch
        | CommaErrorClass::NotFound
        | CommaErrorClass::NotDirectory
        | CommaErrorClass::IsDirectory
        | CommaErrorClass::AlreadyExists
        | CommaErrorClass::Stale
        | CommaErrorClass::InvalidArguments
        | CommaErrorClass::Other => None,
    }
}

fn text_not_found_error(path: &str, index: u64, expected: u64) -> CommaError {
    let more = match expected {
        1 => {
            " Re-read the file and copy the exact text you want to replace, or pass `oldText` that uniquely identifies \
             the block (multi-line is fine)."
        }
        _ => "",
    };
    CommaError::new("old_text_not_found", format!("Edit #{index}: `oldText` not found in {path}.{more}"))
        .with_path(path)
        .with_details(CommaJsonFields::new().with("editIndex", index))
        .retry_with("Re-read the file to confirm current content and adjust `oldText`.")
}

fn multiple_matches_error(path: &str, index: u64, expected: u64, error: &Error) -> CommaError {
    let count = error.details.get("places_total").and_then(Value::as_u64).unwrap_or_default();
    let places = error.details.get("places").and_then(Value::as_array);
    let ranges: Vec<Value> = places.into_iter().flatten().map(match_range).collect();
    let message = format!(
        "Edit #{index}: expected {expected} match(es) for `oldText` in {path}, found {count}. Tighten `oldText` with more \
         surrounding context, or set `expectedOccurrences: {count}` to replace every match."
    );
    let details = CommaJsonFields::new()
        .with("editIndex", index)
        .with("matchCount", count)
        .with("expectedOccurrences", expected)
        .with("matchRanges", ranges);
    CommaError::new("multiple_matches", message)
        .with_path(path)
        .with_details(details)
        .retry_with("Either widen `oldText` to make it unique, or set `expectedOccurrences` to the actual count.")
}

fn overlapping_edits_error(path: &str, error: &Error) -> CommaError {
    let listed = error.details.get("edits").and_then(Value::as_array);
    let mut indices: Vec<u64> = listed.into_iter().flatten().filter_map(Value::as_u64).collect();
    indices.sort_unstable();
    let shown: Vec<String> = indices.iter().map(ToString::to_string).collect();
    CommaError::new("overlapping_edits", format!("Edits {} target overlapping ranges in {path}.", shown.join(", ")))
        .with_path(path)
        .with_details(CommaJsonFields::new().with("conflictingEditIndices", indices))
        .retry_with("Split or rewrite the edits so their oldText regions don't intersect.")
}

fn match_range(location: &Value) -> Value {
    CommaJsonFields::new()
        .with("startLine", location["line"].clone())
        .with("endLine", location["to_line"].clone())
        .with("startOffset", location["units"][0].clone())
        .with("endOffset", location["units"][1].clone())
        .into()
}
