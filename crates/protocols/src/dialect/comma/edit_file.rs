//! The tool `edit_file` replaces quoted texts in one file. All quoted texts refer to the same version of the file.
//! Either all edits of a call are applied or none.

use crate::native::RenderedOutcome;
use serde_json::{Value, json};
use stead_engine::{
    CallOptions,
    edit_rules::{EditMatchingRules, QuoteNotFoundPolicy},
};

use super::{
    super::{TranslatedCall, rendering::CallOutcomeFieldsExt},
    CommaToolCall,
    envelope::{
        CommaReplyEnvelope, CommaReplyJsonBuilder, before_and_after, diff_normalized, normalize_text, sha256_hex,
    },
    inputs::{CommaEditFileInput, CommaTextEdit},
};

/// A fuzzy edit may replace text that only resembles its quote, if no text matches the quote exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FuzzyEditMatching {
    Off,
    On,
}

pub(super) fn edit_call(call: &CommaToolCall<'_>, input: &CommaEditFileInput, options: CallOptions) -> TranslatedCall {
    let edits: Vec<Value> = input.edits.iter().map(|edit| engine_edit(call, edit)).collect();
    let mut arguments = json!({ "path": input.path, "edits": edits, "mode": "strict" });
    if let Some(hash) = &input.expected_sha256 {
        arguments["base"] = hash.as_str().into();
    }
    let recovery = match call.dialect.fuzzy_matching {
        FuzzyEditMatching::Off => QuoteNotFoundPolicy::None,
        FuzzyEditMatching::On => QuoteNotFoundPolicy::AcceptSimilar,
    };
    let edit_rules = EditMatchingRules { recovery, ..EditMatchingRules::PLAIN };
    TranslatedCall::new("edit", arguments, CallOptions { edit_rules, ..options })
}

fn engine_edit(call: &CommaToolCall<'_>, edit: &CommaTextEdit) -> Value {
    let mut engine_edit = json!({ "old": edit.old_text, "new": edit.new_text });
    if call.follows_document() && edit.replace_all {
        engine_edit["all"] = true.into();
    } else if let Some(count) = edit.expected_occurrences {
        engine_edit["count"] = count.into();
    }
    engine_edit
}

pub(super) fn expected_occurrences(edits: &[CommaTextEdit], index: u64) -> Option<u64> {
    edits.get(usize::try_from(index).ok()?)?.expected_occurrences
}

pub(super) fn edit_reply(input: &CommaEditFileInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    let path = input.path.as_str();
    let (before, after) = before_and_after(outcome, 0);
    let sha256 = outcome.text_field("version");
    let reported = outcome.list_field("edits").iter();
    let applied: Vec<CommaAppliedEdit> =
        reported.map(|edit| CommaAppliedEdit::from_outcome(edit, &input.edits)).collect();
    let replacements: u64 = applied.iter().map(|edit| edit.occurrences).sum();
    let data = CommaReplyJsonBuilder::new()
        .with("path", path)
        .with_optional("beforeSha256", before.map(sha256_hex))
        .with("afterSha256", sha256)
        .with("sizeBytes", outcome.number_field("size"))
        .with("appliedEdits", applied.into_iter().map(CommaAppliedEdit::into_json).collect::<Vec<_>>())
        .with("diff", diff_normalized(path, before, after));
    if outcome.json.get("changed") == Some(&Value::Bool(false)) {
        return CommaReplyEnvelope::success(format!("No change to {path} (all edits matched existing content)"), data);
    }
    let output =
        format!("Edited {path} ({} edit(s), {replacements} replacement(s), sha256 {sha256})", input.edits.len());
    CommaReplyEnvelope::success(output, data)
}

struct CommaAppliedEdit {
    index: u64,
    occurrences: u64,
    /// The name of the strategy that found a text similar to the quote, or `None` if the quote matches exactly.
    fallback: Option<&'static str>,
    matched_text: Option<String>,
}

impl CommaAppliedEdit {
    fn from_outcome(reported: &Value, requested: &[CommaTextEdit]) -> Self {
        let index = reported["edit"].as_u64().unwrap_or_default();
        let matches = reported["lines"].as_array().map_or(0, Vec::len) as u64;
        // If an edit changes nothing, the engine does not count its matches. The reply then contains the number of
        // matches that the caller expects.
        let occurrences = if matches == 0 { expected_occurrences(requested, index).unwrap_or(1) } else { matches };
        let fallback = match reported["how"].as_str() {
            Some("trimmed_lines") => Some("lineTrimmedReplacer"),
            Some("collapsed_space") => Some("whitespaceNormalizedReplacer"),
            Some("block_anchor") => Some("blockAnchorReplacer"),
            Some(_) | None => None,
        };
        let matched_text = fallback.and_then(|_| reported["matched"].as_str()).map(normalize_text);
        Self { index, occurrences, fallback, matched_text }
    }

    fn into_json(self) -> Value {
        CommaReplyJsonBuilder::new()
            .with("editIndex", self.index)
            .with("occurrences", self.occurrences)
            .with("usedFallback", self.fallback.is_some())
            .with("replacerName", self.fallback.unwrap_or("exactReplacer"))
            .with_optional("matchedText", self.matched_text)
            .into()
    }
}
