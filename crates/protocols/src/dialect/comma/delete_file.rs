//! `delete_file` and `restore_file`: a deleted file goes to the trash under a handle and can be restored by it. A link
//! is deleted itself, never its target; only stead's own trash is read.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, DirectoryRemovalPolicy, RemovalRetention};

use super::{
    CommaCall, diff,
    envelope::{CommaEnvelope, CommaJsonFields},
    paths, write_file,
};

pub(super) fn delete_call(call: &CommaCall<'_>, options: CallOptions) -> (Map<String, Value>, CallOptions) {
    let mut arguments = super::into_object(json!({ "path": call.path_argument() }));
    if let Some(hash) = call.args.optional_text("expectedSha256") {
        arguments.insert("base".to_owned(), hash.into());
    }
    let retention =
        if call.args.is_set("permanent") { RemovalRetention::None } else { RemovalRetention::PrincipalDefault };
    (
        arguments,
        CallOptions { directory_removal: DirectoryRemovalPolicy::Refuse, removal_retention: retention, ..options },
    )
}

pub(super) fn delete_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let path = call.path_argument();
    let before = diff::first_before_after(outcome).and_then(|file| file.before.as_deref());
    let size = outcome.json.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    let sha256 = match before {
        Some(bytes) => Some(write_file::sha256_hex(bytes)),
        None => call.args.optional_text("expectedSha256").map(str::to_owned),
    };
    let data = CommaJsonFields::new()
        .with("deleted", true)
        .with("path", path)
        .with_optional("beforeSha256", sha256.clone())
        .with("sizeBytes", size)
        .with("diff", diff::diff_exact(path, before, None));
    if call.args.is_set("permanent") {
        let hash_text = sha256.map_or_else(String::new, |sha256| format!(", sha256 {sha256}"));
        return CommaEnvelope::success(
            format!("Permanently deleted {path} ({size} bytes{hash_text})"),
            data.with("permanent", true),
        );
    }
    let id = outcome.json.get("trash").and_then(Value::as_str).unwrap_or_default();
    let handle = paths::trash_handle(id, path);
    CommaEnvelope::success(
        format!("Deleted {path} ({size} bytes, trashed to {handle})"),
        data.with("permanent", false).with("trashedTo", handle),
    )
}

pub(super) fn restore_call(call: &CommaCall<'_>, options: CallOptions) -> (Map<String, Value>, CallOptions) {
    let id = paths::id_from_trash_handle(call.args.text_or_empty("trashedPath"));
    let mut arguments = super::into_object(json!({ "trash": id }));
    if let Some(to) = call.args.optional_text("targetPath") {
        arguments.insert("to".to_owned(), to.into());
    }
    (arguments, options)
}

pub(super) fn restore_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let handle = call.args.text_or_empty("trashedPath");
    let original = outcome.json.get("path").and_then(Value::as_str).unwrap_or_default();
    let path = call.args.optional_text("targetPath").unwrap_or(original);
    let size = outcome.json.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    let data =
        CommaJsonFields::new().with("restored", true).with("path", path).with("from", handle).with("sizeBytes", size);
    let absolute = paths::absolute_path(call.workspace_root, path);
    CommaEnvelope::success(format!("Restored {handle} to {absolute} ({size} bytes)"), data)
}
