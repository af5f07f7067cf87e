//! The tool `edit_file` replaces quoted texts in one file. All quoted texts refer to the same version of the file.
//! Either all edits of a call are applied or none.

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use stead_engine::{
    edit_rules::EditMatchingRules,
    ops::{AppliedEditRow, EditArgs, EditItem, EditOutcome, StaleEditHandling},
};

use super::{
    super::DialectToolCall,
    CommaPreparedCall, CommaToolCall,
    envelope::{CommaReplyEnvelope, diff_normalized, normalize_text, sha256_hex},
    inputs::{CommaEditFileInput, CommaTextEdit},
};
use crate::prepared_call::OutcomeWithBytes;

pub(super) fn edit_call(call: &Arc<CommaToolCall>, input: &Arc<CommaEditFileInput>) -> CommaPreparedCall {
    let arguments = EditArgs {
        path: input.path.clone(),
        edits: input.edits.iter().map(|edit| engine_edit(call, edit)).collect(),
        base: input.expected_sha256.clone(),
        mode: StaleEditHandling::Strict,
        rules: EditMatchingRules { recovery: call.dialect.quote_not_found, ..EditMatchingRules::PLAIN },
        ..EditArgs::default()
    };
    let input = input.clone();
    call.prepare(arguments, call.options.clone(), move |_, edit| edit_reply(&input, &edit))
}

fn engine_edit(call: &CommaToolCall, edit: &CommaTextEdit) -> EditItem {
    let all = call.dialect.follows_document && edit.replace_all;
    let count = edit.expected_occurrences.filter(|_| !all).and_then(|count| usize::try_from(count).ok());
    EditItem { old: edit.old_text.clone(), new: edit.new_text.clone(), all, count, ..EditItem::default() }
}

pub(super) fn expected_occurrences(edits: &[CommaTextEdit], index: u64) -> Option<u64> {
    edits.get(usize::try_from(index).ok()?)?.expected_occurrences
}

fn edit_reply(input: &CommaEditFileInput, edit: &OutcomeWithBytes<EditOutcome>) -> CommaReplyEnvelope {
    let path = input.path.as_str();
    let (before, after) = edit.before_and_after(0);
    let outcome = &edit.outcome;
    let sha256 = outcome.version.version.to_string();
    let applied: Vec<CommaAppliedEdit> =
        outcome.edits.iter().map(|edit| CommaAppliedEdit::from_outcome(edit, &input.edits)).collect();
    let replacements: u64 = applied.iter().map(|edit| edit.occurrences).sum();
    let data = json!({
        "path": path,
        "beforeSha256": before.map(sha256_hex),
        "afterSha256": sha256.as_str(),
        "sizeBytes": outcome.size,
        "appliedEdits": applied,
        "diff": diff_normalized(path, before, after),
    });
    if !outcome.changed {
        return CommaReplyEnvelope::success(format!("No change to {path} (all edits matched existing content)"), data);
    }
    let output =
        format!("Edited {path} ({} edit(s), {replacements} replacement(s), sha256 {sha256})", input.edits.len());
    CommaReplyEnvelope::success(output, data)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CommaAppliedEdit {
    edit_index: u64,
    occurrences: u64,
    used_fallback: bool,
    replacer_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched_text: Option<String>,
}

impl CommaAppliedEdit {
    fn from_outcome(reported: &AppliedEditRow, requested: &[CommaTextEdit]) -> Self {
        let (index, matches) = (reported.edit as u64, reported.lines.len() as u64);
        // If an edit changes nothing, the engine does not count its matches. The reply then contains the number of
        // matches that the caller expects.
        let occurrences = if matches == 0 { expected_occurrences(requested, index).unwrap_or(1) } else { matches };
        let fallback = match reported.how.name() {
            "trimmed_lines" => Some("lineTrimmedReplacer"),
            "collapsed_space" => Some("whitespaceNormalizedReplacer"),
            "block_anchor" => Some("blockAnchorReplacer"),
            _ => None,
        };
        let matched_text = fallback.and(reported.matched.as_deref()).map(normalize_text);
        let (used_fallback, replacer_name) = (fallback.is_some(), fallback.unwrap_or("exactReplacer"));
        Self { edit_index: index, occurrences, used_fallback, replacer_name, matched_text }
    }
}
