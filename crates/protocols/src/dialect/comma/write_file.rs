//! `create_file` and `write_file`: create a file, or replace one whose version the caller names.

use serde_json::{Map, Value, json};
use stead_engine::{CallOptions, CallOutcome, MissingParentPolicy, ReplacementFormat, Version};

use super::{
    CommaCall, CommaCompatibility, diff,
    envelope::{CommaEnvelope, CommaJsonFields},
};

pub(super) fn create_call(call: &CommaCall<'_>, options: CallOptions) -> (Map<String, Value>, CallOptions) {
    let args = &call.args;
    // The original code ignores `createParents`; its document has it.
    let alias = call.compatibility == CommaCompatibility::Document && args.is_set("createParents");
    let creates_parents = args.is_set("createParentDirectories") || alias;
    let parents = if creates_parents { MissingParentPolicy::Create } else { MissingParentPolicy::Refuse };
    let arguments = json!({ "path": call.path_argument(), "content": args.text_or_empty("content"), "base": "" });
    (super::into_object(arguments), CallOptions { missing_parents: parents, ..options })
}

pub(super) fn create_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let path = call.path_argument();
    let after = diff::first_before_after(outcome).and_then(|file| file.after.as_deref());
    let (sha256, size) = version_and_size(outcome);
    let data = CommaJsonFields::new()
        .with("created", true)
        .with("path", path)
        .with("sha256", sha256)
        .with("sizeBytes", size)
        .with("diff", diff::diff_exact(path, None, after));
    CommaEnvelope::success(format!("Created {path} ({size} bytes, sha256 {sha256})"), data)
}

pub(super) fn write_call(call: &CommaCall<'_>, options: CallOptions) -> (Map<String, Value>, CallOptions) {
    let args = &call.args;
    let arguments = json!({ "path": call.path_argument(), "content": args.text_or_empty("content"), "base": args.text_or_empty("expectedSha256") });
    (super::into_object(arguments), CallOptions { replacement_format: ReplacementFormat::MatchReplaced, ..options })
}

pub(super) fn write_reply(call: &CommaCall<'_>, outcome: &CallOutcome) -> CommaEnvelope {
    let path = call.path_argument();
    let file = diff::first_before_after(outcome);
    let (before, after) = file.map_or((None, None), |file| (file.before.as_deref(), file.after.as_deref()));
    let (sha256, size) = version_and_size(outcome);
    let data = CommaJsonFields::new()
        .with("path", path)
        .with("beforeSha256", call.args.text_or_empty("expectedSha256"))
        .with("afterSha256", sha256)
        .with("sizeBytes", size)
        .with("diff", diff::diff_normalized(path, before, after));
    if outcome.json.get("changed") == Some(&Value::Bool(false)) {
        return CommaEnvelope::success(format!("No change to {path} (content matched existing)"), data);
    }
    CommaEnvelope::success(format!("Wrote {path} ({size} bytes, sha256 {sha256})"), data)
}

pub(super) fn version_and_size(outcome: &CallOutcome) -> (&str, u64) {
    let version = outcome.json.get("version").and_then(Value::as_str).unwrap_or_default();
    (version, outcome.json.get("size").and_then(Value::as_u64).unwrap_or_default())
}

pub(super) fn sha256_hex(bytes: &[u8]) -> String {
    Version::hash_bytes(bytes).to_string()
}
