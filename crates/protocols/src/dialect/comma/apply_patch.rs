//! The tool `apply_patch` changes several files; either all changes are applied or none. The engine parses and applies
//! the patch of an `apply_patch` call. The dialect also parses the section headers of a patch, because replies repeat
//! the paths in the headers.

use std::sync::Arc;

use serde_json::json;
use stead_engine::{
    CallOptions, MissingParentPolicy, PatchGrammar,
    ops::{PatchArgs, PatchOutcome, PatchedFileChangeKind},
};

use super::{
    super::{DialectToolCall, rendering::trash_handle},
    CommaPreparedCall, CommaToolCall,
    envelope::{CommaReplyEnvelope, diff_exact, sha256_hex},
    inputs::CommaApplyPatchInput,
};
use crate::{native::without_nulls, prepared_call::OutcomeWithBytes};

pub(super) fn patch_call(call: &Arc<CommaToolCall>, input: &Arc<CommaApplyPatchInput>) -> CommaPreparedCall {
    let (patch, base) = (input.patch.clone(), input.expected_sha256_by_path.clone());
    // The document contains two forms of a move and of an end-of-file marker, and both forms are accepted.
    let grammar = if call.dialect.follows_document { PatchGrammar::Strict } else { PatchGrammar::Exact };
    let options = CallOptions { missing_parents: MissingParentPolicy::Refuse, ..call.options.clone() };
    let (arguments, input) = (PatchArgs { patch, base, grammar, ..PatchArgs::default() }, input.clone());
    call.prepare(arguments, options, move |_, patch| patch_reply(&input, &patch))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommaPatchSectionHeader<'a> {
    pub(super) kind: PatchedFileChangeKind,
    pub(super) path: &'a str,
    pub(super) move_target: Option<&'a str>,
}

pub(super) const HEADER_PREFIXES: [(&str, PatchedFileChangeKind); 4] = [
    ("*** Add File: ", PatchedFileChangeKind::Add),
    ("*** Update File: ", PatchedFileChangeKind::Update),
    ("*** Delete File: ", PatchedFileChangeKind::Delete),
    ("*** Move File: ", PatchedFileChangeKind::Move),
];

pub(super) fn parse_headers(patch: &str) -> Vec<CommaPatchSectionHeader<'_>> {
    let mut headers: Vec<CommaPatchSectionHeader<'_>> = Vec::new();
    for line in patch.lines() {
        if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(last) = headers.last_mut()
        {
            (last.kind, last.move_target) = (PatchedFileChangeKind::Move, Some(to.trim()));
        }
        let header = HEADER_PREFIXES.iter().find_map(|(prefix, kind)| Some((kind, line.strip_prefix(prefix)?.trim())));
        if let Some((kind, rest)) = header {
            let arrow = rest.split_once(" -> ").filter(|_| *kind == PatchedFileChangeKind::Move);
            let (path, to) = arrow.map_or((rest, None), |(from, to)| (from.trim(), Some(to.trim())));
            headers.push(CommaPatchSectionHeader { kind: *kind, path, move_target: to });
        }
    }
    headers
}

pub(super) fn patch_paths(patch: &str) -> Vec<&str> {
    parse_headers(patch).into_iter().flat_map(|header| [Some(header.path), header.move_target]).flatten().collect()
}

fn patch_reply(input: &CommaApplyPatchInput, patch: &OutcomeWithBytes<PatchOutcome>) -> CommaReplyEnvelope {
    let headers = parse_headers(&input.patch);
    let rows = &patch.outcome.files;
    // A unified diff has no section headers, so the reply contains the engine's paths of its files.
    let use_headers = headers.len() == rows.len();
    let mut lines = Vec::new();
    let mut files = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        let header = headers.get(index).filter(|_| use_headers);
        let (engine_path, engine_to) = (row.path.to_wire(), row.to.as_ref().map(|to| to.to_wire()));
        let path = header.map_or(&*engine_path, |header| header.path);
        let to = engine_to.as_deref().map(|to| header.and_then(|header| header.move_target).unwrap_or(to));
        let (before, after) = patch.before_and_after(index);
        let (line, operation) = match (row.operation, to) {
            (PatchedFileChangeKind::Add, _) => (format!("  A {path}"), "add"),
            (PatchedFileChangeKind::Delete, _) => (format!("  D {path}"), "delete"),
            (PatchedFileChangeKind::Move, Some(to)) => (format!("  R {path} -> {to}"), "move"),
            (PatchedFileChangeKind::Update, Some(to)) => (format!("  R {path} -> {to}"), "update"),
            (PatchedFileChangeKind::Move, None) => (format!("  M {path}"), "move"),
            (PatchedFileChangeKind::Update, None) => (format!("  M {path}"), "update"),
        };
        lines.push(line);
        let handle = row.trash.as_deref().map(|id| trash_handle(id, path));
        files.push(without_nulls(json!({
            "path": path,
            "operation": operation,
            "toPath": to,
            "beforeSha256": before.map(sha256_hex),
            "afterSha256": after.map(sha256_hex),
            "diff": diff_exact(to.unwrap_or(path), before, after),
            "trashedTo": handle,
        })));
    }
    let hunks: usize = rows.iter().map(|row| row.chunks).sum();
    let mode = if input.atomic { "atomic" } else { "sequential" };
    let output = format!("Applied patch ({mode}): {} file(s), {hunks} hunk(s).\n{}", files.len(), lines.join("\n"));
    let data = json!({ "atomic": input.atomic, "hunkCount": hunks, "changedFiles": files });
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
