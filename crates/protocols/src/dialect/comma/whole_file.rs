//! Tools that change one whole file: `create_file`, `write_file`, `delete_file`, `restore_file` and `move_file`. A
//! deleted or replaced file goes to the trash, and the reply contains a handle to restore it. Deleting a symbolic link
//! deletes the link, never its target.

use std::sync::Arc;

use serde_json::json;
use stead_engine::{
    CallOptions, LineEndingAndBomPolicy, MissingParentPolicy,
    ops::{MoveArgs, MoveOutcome, RemoveArgs, RemoveOutcome, RestoreFromTrashArgs, WriteArgs},
};

use super::{
    super::{
        DialectToolCall,
        rendering::{clean_path, id_from_trash_handle, trash_handle},
    },
    CommaPreparedCall, CommaToolCall,
    envelope::{CommaReplyEnvelope, diff_exact, diff_normalized, sha256_hex},
    inputs::{
        CommaCreateFileInput, CommaDeleteFileInput, CommaMoveFileInput, CommaRestoreFileInput, CommaWriteFileInput,
    },
};
use crate::prepared_call::OutcomeWithBytes;

pub(super) fn create_call(call: &Arc<CommaToolCall>, input: &Arc<CommaCreateFileInput>) -> CommaPreparedCall {
    let creates_parents = input.create_parent_directories || (call.dialect.follows_document && input.create_parents);
    let missing_parents = if creates_parents { MissingParentPolicy::Create } else { MissingParentPolicy::Refuse };
    let (path, content, base) = (input.path.clone(), input.content.clone(), Some(String::new()));
    let (arguments, input) = (WriteArgs { path, content, base, ..WriteArgs::default() }, input.clone());
    call.prepare(arguments, CallOptions { missing_parents, ..call.options.clone() }, move |_, write| {
        let (path, sha256, size) = (&input.path, write.outcome.version.version.to_string(), write.outcome.size);
        let data = json!({
            "created": true,
            "path": path.as_str(),
            "sha256": sha256.as_str(),
            "sizeBytes": size,
            "diff": diff_exact(path, None, write.before_and_after(0).1),
        });
        CommaReplyEnvelope::success(format!("Created {path} ({size} bytes, sha256 {sha256})"), data)
    })
}

pub(super) fn write_call(call: &Arc<CommaToolCall>, input: &Arc<CommaWriteFileInput>) -> CommaPreparedCall {
    let (path, content, base) = (input.path.clone(), input.content.clone(), Some(input.expected_sha256.clone()));
    let replacement_format = LineEndingAndBomPolicy::MatchReplaced;
    let arguments = WriteArgs { path, content, base, replacement_format, ..WriteArgs::default() };
    let input = input.clone();
    call.prepare(arguments, call.options.clone(), move |_, write| {
        let (before, after) = write.before_and_after(0);
        let (path, sha256, size) = (&input.path, write.outcome.version.version.to_string(), write.outcome.size);
        let data = json!({
            "path": path.as_str(),
            "beforeSha256": input.expected_sha256.as_str(),
            "afterSha256": sha256.as_str(),
            "sizeBytes": size,
            "diff": diff_normalized(path, before, after),
        });
        if !write.outcome.changed {
            return CommaReplyEnvelope::success(format!("No change to {path} (content matched existing)"), data);
        }
        CommaReplyEnvelope::success(format!("Wrote {path} ({size} bytes, sha256 {sha256})"), data)
    })
}

pub(super) fn delete_call(call: &Arc<CommaToolCall>, input: &Arc<CommaDeleteFileInput>) -> CommaPreparedCall {
    let (path, base) = (input.path.clone(), input.expected_sha256.clone());
    let expires_at_once = input.permanent;
    let arguments = RemoveArgs { path, base, files_only: true, expires_at_once, ..RemoveArgs::default() };
    let input = input.clone();
    call.prepare(arguments, call.options.clone(), move |_, removed| delete_reply(&input, &removed))
}

fn delete_reply(input: &CommaDeleteFileInput, removed: &OutcomeWithBytes<RemoveOutcome>) -> CommaReplyEnvelope {
    let path = input.path.as_str();
    let (before, _) = removed.before_and_after(0);
    let size = removed.outcome.bytes;
    let sha256 = match before {
        Some(bytes) => Some(sha256_hex(bytes)),
        None => input.expected_sha256.clone(),
    };
    let handle = removed.outcome.trash.as_deref().map(|id| trash_handle(id, path)).filter(|_| !input.permanent);
    let output = match (&handle, &sha256) {
        (Some(handle), _) => format!("Deleted {path} ({size} bytes, trashed to {handle})"),
        (None, Some(sha256)) => format!("Permanently deleted {path} ({size} bytes, sha256 {sha256})"),
        (None, None) => format!("Permanently deleted {path} ({size} bytes)"),
    };
    let data = json!({
        "deleted": true,
        "path": path,
        "beforeSha256": sha256,
        "sizeBytes": size,
        "diff": diff_exact(path, before, None),
        "permanent": input.permanent,
        "trashedTo": handle,
    });
    CommaReplyEnvelope::success(output, data)
}

pub(super) fn restore_call(call: &Arc<CommaToolCall>, input: &Arc<CommaRestoreFileInput>) -> CommaPreparedCall {
    let (trash, to) = (id_from_trash_handle(&input.trashed_path).to_owned(), input.target_path.clone());
    let input = input.clone();
    let arguments = RestoreFromTrashArgs { trash, to, ..RestoreFromTrashArgs::default() };
    call.prepare(arguments, call.options.clone(), move |call, restored| {
        let (handle, size) = (input.trashed_path.as_str(), restored.outcome.bytes);
        let restored_path = restored.outcome.path.to_wire();
        let path = input.target_path.as_deref().unwrap_or(&restored_path);
        let data = json!({ "restored": true, "path": path, "from": handle, "sizeBytes": size });
        let absolute = clean_path(&call.dialect.workspace_root, path);
        CommaReplyEnvelope::success(format!("Restored {handle} to {absolute} ({size} bytes)"), data)
    })
}

pub(super) fn move_call(call: &Arc<CommaToolCall>, input: &Arc<CommaMoveFileInput>) -> CommaPreparedCall {
    let arguments = MoveArgs {
        from: input.from_path.clone(),
        to: input.to_path.clone(),
        base: Some(input.expected_sha256.clone()),
        overwrite: input.overwrite,
        trash_overwritten: true,
        ..MoveArgs::default()
    };
    let missing_parents = MissingParentPolicy::Refuse;
    let (options, input) = (CallOptions { missing_parents, ..call.options.clone() }, input.clone());
    call.prepare(arguments, options, move |_, moved| move_reply(&input, &moved.outcome))
}

fn move_reply(input: &CommaMoveFileInput, moved: &MoveOutcome) -> CommaReplyEnvelope {
    let (from, to) = (input.from_path.as_str(), input.to_path.as_str());
    let sha256 = moved.version.map(|version| version.to_string()).unwrap_or_default();
    let handle = moved.trash.as_deref().map(|id| trash_handle(id, to));
    let note =
        handle.as_ref().map_or_else(String::new, |handle| format!(" (replaced existing file, trashed to {handle})"));
    let data = json!({
        "moved": true,
        "fromPath": from,
        "toPath": to,
        "sha256": sha256.as_str(),
        "sizeBytes": moved.moved.as_ref().map_or(0, |tree| tree.bytes),
        "overwroteTrashedTo": handle,
    });
    CommaReplyEnvelope::success(format!("Moved {from} → {to} (sha256 {sha256}){note}"), data)
}
