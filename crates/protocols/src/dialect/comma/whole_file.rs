//! Tools that change one whole file: `create_file`, `write_file`, `delete_file`, `restore_file` and `move_file`. A
//! deleted or replaced file goes to the trash, and the reply contains a handle to restore it. Deleting a symbolic link
//! deletes the link, never its target.

use crate::native::RenderedOutcome;
use serde_json::{Value, json};
use stead_engine::{
    CallOptions, CallTrashRetentionOverride, DirectoryRemovalPermission, LineEndingAndBomPolicy, MissingParentPolicy,
    OverwrittenFilePolicy,
};

use super::{
    super::{
        TranslatedCall,
        rendering::{CallOutcomeFieldsExt, clean_path, id_from_trash_handle, trash_handle},
    },
    CommaToolCall,
    envelope::{CommaReplyEnvelope, CommaReplyJsonBuilder, before_and_after, diff_exact, diff_normalized, sha256_hex},
    inputs::{
        CommaCreateFileInput, CommaDeleteFileInput, CommaMoveFileInput, CommaRestoreFileInput, CommaWriteFileInput,
    },
};

pub(super) fn create_call(
    call: &CommaToolCall<'_>,
    input: &CommaCreateFileInput,
    options: CallOptions,
) -> TranslatedCall {
    let creates_parents = input.create_parent_directories || (call.follows_document() && input.create_parents);
    let missing_parents = if creates_parents { MissingParentPolicy::Create } else { MissingParentPolicy::Refuse };
    let arguments = json!({ "path": input.path, "content": input.content, "base": "" });
    TranslatedCall::new("write", arguments, CallOptions { missing_parents, ..options })
}

pub(super) fn create_reply(input: &CommaCreateFileInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    let path = input.path.as_str();
    let (_, after) = before_and_after(outcome, 0);
    let (sha256, size) = (outcome.text_field("version"), outcome.number_field("size"));
    let data = CommaReplyJsonBuilder::new()
        .with("created", true)
        .with("path", path)
        .with("sha256", sha256)
        .with("sizeBytes", size)
        .with("diff", diff_exact(path, None, after));
    CommaReplyEnvelope::success(format!("Created {path} ({size} bytes, sha256 {sha256})"), data)
}

pub(super) fn write_call(input: &CommaWriteFileInput, options: CallOptions) -> TranslatedCall {
    let arguments = json!({ "path": input.path, "content": input.content, "base": input.expected_sha256 });
    let options = CallOptions { replacement_format: LineEndingAndBomPolicy::MatchReplaced, ..options };
    TranslatedCall::new("write", arguments, options)
}

pub(super) fn write_reply(input: &CommaWriteFileInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    let path = input.path.as_str();
    let (before, after) = before_and_after(outcome, 0);
    let (sha256, size) = (outcome.text_field("version"), outcome.number_field("size"));
    let data = CommaReplyJsonBuilder::new()
        .with("path", path)
        .with("beforeSha256", input.expected_sha256.as_str())
        .with("afterSha256", sha256)
        .with("sizeBytes", size)
        .with("diff", diff_normalized(path, before, after));
    if outcome.json.get("changed") == Some(&Value::Bool(false)) {
        return CommaReplyEnvelope::success(format!("No change to {path} (content matched existing)"), data);
    }
    CommaReplyEnvelope::success(format!("Wrote {path} ({size} bytes, sha256 {sha256})"), data)
}

pub(super) fn delete_call(input: &CommaDeleteFileInput, options: CallOptions) -> TranslatedCall {
    let mut arguments = json!({ "path": input.path });
    if let Some(hash) = &input.expected_sha256 {
        arguments["base"] = hash.as_str().into();
    }
    let removal_retention =
        if input.permanent { CallTrashRetentionOverride::None } else { CallTrashRetentionOverride::PrincipalDefault };
    let directory_removal = DirectoryRemovalPermission::Refuse;
    TranslatedCall::new("remove", arguments, CallOptions { directory_removal, removal_retention, ..options })
}

pub(super) fn delete_reply(input: &CommaDeleteFileInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    let path = input.path.as_str();
    let (before, _) = before_and_after(outcome, 0);
    let size = outcome.number_field("bytes");
    let sha256 = match before {
        Some(bytes) => Some(sha256_hex(bytes)),
        None => input.expected_sha256.clone(),
    };
    let data = CommaReplyJsonBuilder::new()
        .with("deleted", true)
        .with("path", path)
        .with_optional("beforeSha256", sha256.clone())
        .with("sizeBytes", size)
        .with("diff", diff_exact(path, before, None));
    if input.permanent {
        let hash_text = sha256.map_or_else(String::new, |sha256| format!(", sha256 {sha256}"));
        let output = format!("Permanently deleted {path} ({size} bytes{hash_text})");
        return CommaReplyEnvelope::success(output, data.with("permanent", true));
    }
    let handle = trash_handle(outcome.text_field("trash"), path);
    let output = format!("Deleted {path} ({size} bytes, trashed to {handle})");
    CommaReplyEnvelope::success(output, data.with("permanent", false).with("trashedTo", handle))
}

pub(super) fn restore_call(input: &CommaRestoreFileInput, options: CallOptions) -> TranslatedCall {
    let mut arguments = json!({ "trash": id_from_trash_handle(&input.trashed_path) });
    if let Some(to) = &input.target_path {
        arguments["to"] = to.as_str().into();
    }
    TranslatedCall::new("restore", arguments, options)
}

pub(super) fn restore_reply(
    call: &CommaToolCall<'_>,
    input: &CommaRestoreFileInput,
    outcome: &RenderedOutcome,
) -> CommaReplyEnvelope {
    let handle = input.trashed_path.as_str();
    let path = input.target_path.as_deref().unwrap_or(outcome.text_field("path"));
    let size = outcome.number_field("bytes");
    let data = CommaReplyJsonBuilder::new()
        .with("restored", true)
        .with("path", path)
        .with("from", handle)
        .with("sizeBytes", size);
    let absolute = clean_path(&call.dialect.workspace_root, path);
    CommaReplyEnvelope::success(format!("Restored {handle} to {absolute} ({size} bytes)"), data)
}

pub(super) fn move_call(input: &CommaMoveFileInput, options: CallOptions) -> TranslatedCall {
    let arguments = json!({
        "from": input.from_path,
        "to": input.to_path,
        "base": input.expected_sha256,
        "overwrite": input.overwrite,
    });
    let (missing_parents, overwritten_file) = (MissingParentPolicy::Refuse, OverwrittenFilePolicy::MoveToTrash);
    TranslatedCall::new("move", arguments, CallOptions { missing_parents, overwritten_file, ..options })
}

pub(super) fn move_reply(input: &CommaMoveFileInput, outcome: &RenderedOutcome) -> CommaReplyEnvelope {
    let (from, to) = (input.from_path.as_str(), input.to_path.as_str());
    let sha256 = outcome.text_field("version");
    let handle = outcome.json.get("trash").and_then(Value::as_str).map(|id| trash_handle(id, to));
    let note =
        handle.as_ref().map_or_else(String::new, |handle| format!(" (replaced existing file, trashed to {handle})"));
    let data = CommaReplyJsonBuilder::new()
        .with("moved", true)
        .with("fromPath", from)
        .with("toPath", to)
        .with("sha256", sha256)
        .with("sizeBytes", outcome.number_field("bytes"))
        .with_optional("overwroteTrashedTo", handle);
    CommaReplyEnvelope::success(format!("Moved {from} → {to} (sha256 {sha256}){note}"), data)
}
