//! Tools that change one whole file: `create_file`, `write_file`, `delete_file`, `restore_file` and `move_file`. A
//! deleted or replaced file goes to the trash, and the reply contains a handle to restore it. Deleting a symbolic link
//! deletes the link, never its target.

use serde_json::{Value, json};
use stead_engine::{
    CallOptions, CallOutcome, CallTrashRetentionOverride, DirectoryRemovalPermission, LineEndingAndBomPolicy,
    MissingParentPolicy, OverwrittenFilePolicy,
};

use super::{
    super::{
        TranslatedCall,
        rendering::{CallOutcomeFieldsExt, clean_path, id_from_trash_handle, trash_handle},
    },
    CommaToolCall,
    envelope::{CommaReplyEnvelope, CommaReplyJsonBuilder, before_and_after, diff_exact, diff_normalized, sha256_hex},
};

pub(super) fn create_call(call: &CommaToolCall<'_>, options: CallOptions) -> TranslatedCall {
    let args = &call.args;
    // The document describes an alias `createParents`, which the original code ignores.
    let alias = call.follows_document() && args.is_set("createParents");
    let creates_parents = args.is_set("createParentDirectories") || alias;
    let missing_parents = if creates_parents { MissingParentPolicy::Create } else { MissingParentPolicy::Refuse };
    let arguments = json!({ "path": call.path_argument(), "content": args.text_or_empty("content"), "base": "" });
    TranslatedCall::new("write", arguments, CallOptions { missing_parents, ..options })
}

pub(super) fn create_reply(call: &CommaToolCall<'_>, outcome: &CallOutcome) -> CommaReplyEnvelope {
    let path = call.path_argument();
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

pub(super) fn write_call(call: &CommaToolCall<'_>, options: CallOptions) -> TranslatedCall {
    let arguments = json!({
        "path": call.path_argument(),
        "content": call.args.text_or_empty("content"),
        "base": call.args.text_or_empty("expectedSha256"),
    });
    let options = CallOptions { replacement_format: LineEndingAndBomPolicy::MatchReplaced, ..options };
    TranslatedCall::new("write", arguments, options)
}

pub(super) fn write_reply(call: &CommaToolCall<'_>, outcome: &CallOutcome) -> CommaReplyEnvelope {
    let path = call.path_argument();
    let (before, after) = before_and_after(outcome, 0);
    let (sha256, size) = (outcome.text_field("version"), outcome.number_field("size"));
    let data = CommaReplyJsonBuilder::new()
        .with("path", path)
        .with("beforeSha256", call.args.text_or_empty("expectedSha256"))
        .with("afterSha256", sha256)
        .with("sizeBytes", size)
        .with("diff", diff_normalized(path, before, after));
    if outcome.json.get("changed") == Some(&Value::Bool(false)) {
        return CommaReplyEnvelope::success(format!("No change to {path} (content matched existing)"), data);
    }
    CommaReplyEnvelope::success(format!("Wrote {path} ({size} bytes, sha256 {sha256})"), data)
}

pub(super) fn delete_call(call: &CommaToolCall<'_>, options: CallOptions) -> TranslatedCall {
    let mut arguments = json!({ "path": call.path_argument() });
    if let Some(hash) = call.args.optional_text("expectedSha256") {
        arguments["base"] = hash.into();
    }
    let removal_retention = if call.args.is_set("permanent") {
        CallTrashRetentionOverride::None
    } else {
        CallTrashRetentionOverride::PrincipalDefault
    };
    let directory_removal = DirectoryRemovalPermission::Refuse;
    TranslatedCall::new("remove", arguments, CallOptions { directory_removal, removal_retention, ..options })
}

pub(super) fn delete_reply(call: &CommaToolCall<'_>, outcome: &CallOutcome) -> CommaReplyEnvelope {
    let path = call.path_argument();
    let (before, _) = before_and_after(outcome, 0);
    let size = outcome.number_field("bytes");
    let sha256 = match before {
        Some(bytes) => Some(sha256_hex(bytes)),
        None => call.args.optional_text("expectedSha256").map(str::to_owned),
    };
    let data = CommaReplyJsonBuilder::new()
        .with("deleted", true)
        .with("path", path)
        .with_optional("beforeSha256", sha256.clone())
        .with("sizeBytes", size)
        .with("diff", diff_exact(path, before, None));
    if call.args.is_set("permanent") {
        let hash_text = sha256.map_or_else(String::new, |sha256| format!(", sha256 {sha256}"));
        let output = format!("Permanently deleted {path} ({size} bytes{hash_text})");
        return CommaReplyEnvelope::success(output, data.with("permanent", true));
    }
    let handle = trash_handle(outcome.text_field("trash"), path);
    let output = format!("Deleted {path} ({size} bytes, trashed to {handle})");
    CommaReplyEnvelope::success(output, data.with("permanent", false).with("trashedTo", handle))
}

pub(super) fn restore_call(call: &CommaToolCall<'_>, options: CallOptions) -> TranslatedCall {
    let mut arguments = json!({ "trash": id_from_trash_handle(call.args.text_or_empty("trashedPath")) });
    if let Some(to) = call.args.optional_text("targetPath") {
        arguments["to"] = to.into();
    }
    TranslatedCall::new("restore", arguments, options)
}

pub(super) fn restore_reply(call: &CommaToolCall<'_>, outcome: &CallOutcome) -> CommaReplyEnvelope {
    let handle = call.args.text_or_empty("trashedPath");
    let path = call.args.optional_text("targetPath").unwrap_or(outcome.text_field("path"));
    let size = outcome.number_field("bytes");
    let data = CommaReplyJsonBuilder::new()
        .with("restored", true)
        .with("path", path)
        .with("from", handle)
        .with("sizeBytes", size);
    let absolute = clean_path(&call.dialect.workspace_root, path);
    CommaReplyEnvelope::success(format!("Restored {handle} to {absolute} ({size} bytes)"), data)
}

pub(super) fn move_call(call: &CommaToolCall<'_>, options: CallOptions) -> TranslatedCall {
    let args = &call.args;
    let arguments = json!({
        "from": args.text_or_empty("fromPath"),
        "to": args.text_or_empty("toPath"),
        "base": args.text_or_empty("expectedSha256"),
        "overwrite": args.is_set("overwrite"),
    });
    let (missing_parents, overwritten_file) = (MissingParentPolicy::Refuse, OverwrittenFilePolicy::MoveToTrash);
    TranslatedCall::new("move", arguments, CallOptions { missing_parents, overwritten_file, ..options })
}

pub(super) fn move_reply(call: &CommaToolCall<'_>, outcome: &CallOutcome) -> CommaReplyEnvelope {
    let (from, to) = (call.args.text_or_empty("fromPath"), call.args.text_or_empty("toPath"));
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
