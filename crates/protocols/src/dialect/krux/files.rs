//! Capabilities that read or write one path.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use stead_engine::{
    BeforeAfterInclusion, CallOptions, CallOutcome, Error, ListingStyle, MissingBase, MissingParentPolicy,
};

use super::{
    super::TranslatedCall,
    KruxCall,
    capability::KruxFileCapability,
    encoding::{FilePieceEnd, KruxEncoding},
    into_object, paths,
};

/// Bytes that one read returns without `limit`.
const READ_BYTES_DEFAULT: u64 = 1_048_576;
const LIST_ENTRIES_MAX: usize = 100_000;

pub(super) fn translate(
    call: &KruxCall<'_>,
    file: KruxFileCapability,
    options: CallOptions,
) -> Result<TranslatedCall, Error> {
    let inputs = &call.inputs;
    let path = paths::require_absolute("path", inputs.text_or_empty("path"))?;
    let (operation, arguments, options) = match file {
        KruxFileCapability::Read => {
            let (first, max) = read_range(call);
            let last = first.saturating_add(max.max(1) - 1);
            let arguments = json!({ "path": path, "bytes": format!("{first}-{last}") });
            ("read", arguments, CallOptions { before_after: BeforeAfterInclusion::Include, ..options })
        }
        KruxFileCapability::Write => {
            let missing_parents =
                if inputs.is_set("create_parents") { MissingParentPolicy::Create } else { MissingParentPolicy::Refuse };
            let (content, encoding) = match KruxEncoding::from_name(inputs.optional_text("encoding")) {
                KruxEncoding::Utf8 => (inputs.text_or_empty("content").to_owned(), "utf-8"),
                other @ (KruxEncoding::Ascii | KruxEncoding::Latin1 | KruxEncoding::Utf16 | KruxEncoding::Binary) => {
                    (STANDARD.encode(other.encode(inputs.text_or_empty("content"))?), "base64")
                }
            };
            let arguments = json!({ "path": path, "content": content, "encoding": encoding });
            ("write", arguments, CallOptions { missing_parents, missing_base: MissingBase::Overwrite, ..options })
        }
        KruxFileCapability::Append => {
            let arguments = json!({ "path": path, "content": inputs.text_or_empty("content") });
            (
                "append",
                arguments,
                CallOptions {
                    missing_parents: MissingParentPolicy::Refuse,
                    missing_base: MissingBase::Overwrite,
                    ..options
                },
            )
        }
        KruxFileCapability::List => {
            let arguments = json!({ "path": path, "all": inputs.is_set("include_hidden") });
            (
                "list",
                arguments,
                CallOptions { listing_style: ListingStyle::DetailedEntries(LIST_ENTRIES_MAX), ..options },
            )
        }
        KruxFileCapability::Stat => {
            ("stat", json!({ "path": path }), CallOptions { before_after: BeforeAfterInclusion::Include, ..options })
        }
    };
    Ok(TranslatedCall { operation: operation.to_owned(), arguments: into_object(arguments), options })
}

/// The first byte to read, and the maximum number of bytes.
fn read_range(call: &KruxCall<'_>) -> (u64, u64) {
    let max = call.inputs.number("limit").unwrap_or(READ_BYTES_DEFAULT);
    (call.inputs.number("offset").unwrap_or(0), max)
}

/// Fails if the bytes do not fit the encoding.
fn render_read(call: &KruxCall<'_>, outcome: &CallOutcome) -> Result<Value, Error> {
    let (first, max) = read_range(call);
    let bytes = outcome.before_after.first().and_then(|file| file.before.as_deref()).unwrap_or_default();
    let bytes = usize::try_from(max).ok().and_then(|max| bytes.get(..max)).unwrap_or(bytes);
    let size = outcome_number(outcome, "size");
    let end =
        if first.saturating_add(bytes.len() as u64) < size { FilePieceEnd::MidFile } else { FilePieceEnd::EndOfFile };
    let decoded = KruxEncoding::from_name(call.inputs.optional_text("encoding")).decode(bytes, end)?;
    Ok(json!({
        "content": decoded.text,
        "size": size,
        "modified": outcome.json.get("modified"),
        "checksum": outcome.json.get("version"),
        "truncated": first.saturating_add(decoded.bytes_consumed as u64) < size,
    }))
}

pub(super) fn render_outcome(
    call: &KruxCall<'_>,
    file: KruxFileCapability,
    outcome: &CallOutcome,
) -> Result<Value, Error> {
    let path = absolute_path(call, outcome, "path");
    Ok(match file {
        KruxFileCapability::Read => render_read(call, outcome)?,
        KruxFileCapability::Write => {
            json!({ "path": path, "size": outcome_number(outcome, "size"), "checksum": outcome.json.get("version") })
        }
        KruxFileCapability::Append => json!({ "path": path, "new_size": outcome_number(outcome, "size") }),
        KruxFileCapability::List => render_listing(call, outcome, &path),
        KruxFileCapability::Stat => render_stat(outcome),
    })
}

fn render_listing(call: &KruxCall<'_>, outcome: &CallOutcome, path: &str) -> Value {
    let entries = outcome.json.get("entries").and_then(Value::as_array);
    let mut entries: Vec<Value> = entries.into_iter().flatten().map(render_entry).collect();
    let order = call.inputs.optional_text("sort_by").unwrap_or("name");
    // The engine sorts by name; a stable sort keeps that order among equals.
    match order.trim_start_matches('-') {
        "size" => entries.sort_by_key(|entry| entry["size"].as_u64()),
        "modified" => entries.sort_by(|one, two| one["modified"].as_str().cmp(&two["modified"].as_str())),
        _ => {}
    }
    if order.starts_with('-') {
        entries.reverse();
    }
    let mut listed = json!({ "entries": entries, "total": entries.len(), "path": path });
    if outcome.json.get("truncated") == Some(&Value::Bool(true)) {
        listed["truncated"] = true.into();
    }
    listed
}

fn render_entry(entry: &Value) -> Value {
    let path = entry["path"].as_str().unwrap_or_default();
    json!({
        "name": paths::file_name(path),
        "type": entry_type_name(&entry["type"]),
        "size": entry["size"].as_u64().unwrap_or_default(),
        "modified": entry["modified"],
    })
}

pub(super) fn entry_type_name(native: &Value) -> &str {
    match native.as_str() {
        Some("link") => "symlink",
        Some(other) => other,
        None => "other",
    }
}

fn render_stat(outcome: &CallOutcome) -> Value {
    let field = |name: &str| outcome.json.get(name).cloned().unwrap_or_default();
    let mode = outcome.json.get("mode").and_then(Value::as_str);
    let mode = mode.and_then(|octal| u32::from_str_radix(octal, 8).ok()).unwrap_or_default();
    let directory = field("type") == "directory";
    json!({
        "exists": true,
        "type": entry_type_name(&field("type")),
        "size": if directory { 0 } else { outcome_number(outcome, "size") },
        "modified": field("modified"),
        "created": field("created"),
        "permissions": permissions(mode),
        "owner": field("owner"),
    })
}

fn permissions(mode: u32) -> String {
    (0..9).rev().map(|bit| if mode & (1 << bit) == 0 { '-' } else { ['x', 'w', 'r'][bit % 3] }).collect()
}

pub(super) fn absolute_path(call: &KruxCall<'_>, outcome: &CallOutcome, name: &str) -> String {
    call.dialect.paths.absolute_path(outcome.json.get(name).and_then(Value::as_str).unwrap_or("."))
}

pub(super) fn outcome_number(outcome: &CallOutcome, name: &str) -> u64 {
    outcome.json.get(name).and_then(Value::as_u64).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_have_nine_characters() {
        assert_eq!(permissions(0o755), "rwxr-xr-x");
        assert_eq!(permissions(0o4640), "rw-r-----");
        assert_eq!(permissions(0), "---------");
    }
}
