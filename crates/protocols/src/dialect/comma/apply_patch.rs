//! The tool `apply_patch` changes several files; either all changes are applied or none. The engine parses and applies
//! the patch of an `apply_patch` call. The dialect also parses the section headers of a patch, because replies repeat
//! the paths in the headers.

use crate::native::RenderedOutcome;
use serde_json::{Value, json};
use stead_engine::{CallOptions, MissingParentPolicy, PatchGrammar, PatchOptions};

use super::{
    super::{
        TranslatedCall,
        rendering::{CallOutcomeFieldsExt, trash_handle},
    },
    CommaToolCall,
    envelope::{CommaReplyEnvelope, CommaReplyJsonBuilder, before_and_after, diff_exact, sha256_hex},
    inputs::CommaApplyPatchInput,
};

pub(super) fn patch_call(
    call: &CommaToolCall<'_>,
    input: &CommaApplyPatchInput,
    options: CallOptions,
) -> TranslatedCall {
    let arguments = json!({ "patch": input.patch, "base": input.expected_sha256_by_path });
    let patch_options = if call.follows_document() {
        // The document contains two forms of a move and of an end-of-file marker, and both forms are accepted.
        PatchOptions::STRICT
    } else {
        PatchOptions { grammar: PatchGrammar::Exact, ..PatchOptions::STRICT }
    };
    let missing_parents = MissingParentPolicy::Refuse;
    TranslatedCall::new("patch", arguments, CallOptions { missing_parents, patch_options, ..options })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CommaPatchSectionKind {
    Add,
    Update,
    Delete,
    Move,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommaPatchSectionHeader<'a> {
    pub(super) kind: CommaPatchSectionKind,
    pub(super) path: &'a str,
    pub(super) move_target: Option<&'a str>,
}

pub(super) const HEADER_PREFIXES: [(&str, CommaPatchSectionKind); 4] = [
    ("*** Add File: ", CommaPatchSectionKind::Add),
    ("*** Update File: ", CommaPatchSectionKind::Update),
    ("*** Delete File: ", CommaPatchSectionKind::Delete),
    ("*** Move File: ", CommaPatchSectionKind::Move),
];

pub(super) fn parse_headers(patch: &str) -> Vec<CommaPatchSectionHeader<'_>> {
    let mut headers: Vec<CommaPatchSectionHeader<'_>> = Vec::new();
    for line in patch.lines() {
        if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(last) = headers.last_mut()
        {
            (last.kind, last.move_target) = (CommaPatchSectionKind::Move, Some(to.trim()));
        }
        let header = HEADER_PREFIXES.iter().find_map(|(prefix, kind)| Some((kind, line.strip_prefix(prefix)?.trim())));
        if let Some((kind, rest)) = header {
            let arrow = rest.split_once(" -> ").filter(|_| *kind == CommaPatchSectionKind::Move);
            let (path, to) = arrow.map_or((rest, None), |(from, to)| (from.trim(), Some(to.trim())));
            headers.push(CommaPatchSectionHeader { kind: *kind, path, move_target: to });
        }
    }
    headers
}

pub(super) fn patch_paths(patch: &str) -> Vec<&str> {
    parse_headers(patch).into_iter().flat_map(|header| [Some(header.path), header.move_target]).flatten().collect()
}

pub(super) fn patch_reply(input: &CommaApplyPatchInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    let headers = parse_headers(&input.patch);
    let rows = outcome.list_field("files");
    // A unified diff has no section headers, so the reply contains the engine's paths of its files.
    let use_headers = headers.len() == rows.len();
    let mut lines = Vec::new();
    let mut files = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let header = headers.get(index).filter(|_| use_headers);
        let path = header.map_or(row["path"].as_str().unwrap_or_default(), |header| header.path);
        let to = row["to"].as_str().map(|to| header.and_then(|header| header.move_target).unwrap_or(to));
        let (before, after) = before_and_after(outcome, index);
        let operation = row["operation"].as_str().unwrap_or_default();
        lines.push(match (operation, to) {
            ("add", _) => format!("  A {path}"),
            ("delete", _) => format!("  D {path}"),
            (_, Some(to)) => format!("  R {path} -> {to}"),
            (_, None) => format!("  M {path}"),
        });
        let handle = row["trash"].as_str().map(|id| trash_handle(id, path));
        let file = CommaReplyJsonBuilder::new()
            .with("path", path)
            .with("operation", operation)
            .with_optional("toPath", to)
            .with_optional("beforeSha256", before.map(sha256_hex))
            .with_optional("afterSha256", after.map(sha256_hex))
            .with("diff", diff_exact(to.unwrap_or(path), before, after))
            .with_optional("trashedTo", handle);
        files.push(Value::from(file));
    }
    let hunks: u64 = rows.iter().filter_map(|row| row["chunks"].as_u64()).sum();
    let mode = if input.atomic { "atomic" } else { "sequential" };
    let output = format!("Applied patch ({mode}): {} file(s), {hunks} hunk(s).\n{}", files.len(), lines.join("\n"));
    let data =
        CommaReplyJsonBuilder::new().with("atomic", input.atomic).with("hunkCount", hunks).with("changedFiles", files);
    CommaReplyEnvelope::success(output, data)
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
