//! `move_file`: renames a file whose version the caller names. A replaced file goes to the trash.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, MissingParentPolicy, OverwrittenFilePolicy};

use super::{
    CommaCall,
    envelope::{CommaEnvelope, CommaError, CommaJsonFields},
    errors, paths,
};

/// Checks a move before any file access.
pub(super) fn check_move(call: &CommaCall<'_>) -> Option<CommaError> {
    let (from, to) = (call.args.text_or_empty("fromPath"), call.args.text_or_empty("toPath"));
    if let Some(given) = call.first_path_outside() {
        return Some(errors::outside_workspace_error(call, given));
    }
    let message = "fromPath and toPath are identical — nothing to move.";
    (from == to).then(|| CommaError::new("command_failed", message).with_path(from))
}

pub(super) fn move_call(call: &CommaCall<'_>, options: CallOptions) -> (Map<String, Value>, CallOptions) {
    let args = &call.args;
    let arguments = json!({
        "from": args.text_or_empty("fromPath"),
        "to": args.text_or_empty("toPath"),
        "base": args.text_or_empty("expectedSha256"),
        "overwrite": args.is_set("overwrite"),
    });
    (
        super::into_object(arguments),
        CallOptions {
            missing_parents: MissingParentPolicy::Refuse,
            overwritten_file: OverwrittenFilePolicy::MoveToTrash,
            ..options
        },
    )
}

pub(super) fn move_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let (from, to) = (call.args.text_or_empty("fromPath"), call.args.text_or_empty("toPath"));
    let sha256 = outcome.json.get("version").and_then(Value::as_str).unwrap_or_default();
    let size = outcome.json.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    let handle = outcome.json.get("trash").and_then(Value::as_str).map(|id| paths::trash_handle(id, to));
    let note =
        handle.as_ref().map_or_else(String::new, |handle| format!(" (replaced existing file, trashed to {handle})"));
    let data = CommaJsonFields::new()
        .with("moved", true)
        .with("fromPath", from)
        .with("toPath", to)
        .with("sha256", sha256)
        .with("sizeBytes", size)
        .with_optional("overwroteTrashedTo", handle);
    CommaEnvelope::success(format!("Moved {from} → {to} (sha256 {sha256}){note}"), data)
}
