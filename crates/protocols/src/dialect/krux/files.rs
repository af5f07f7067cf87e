//! Capabilities that act on one path, or on a source and a destination: read, write, append, list, stat, delete (to the
//! trash), restore, copy and move.

use crate::native::RenderedOutcome;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, CopyMoveAllowedEntryKinds, Error, ListingPageSizeAndDetail,
    MissingBaseVersionPolicy, MissingParentPolicy, TrashRestoreOverwritePolicy,
};

use super::{
    super::{
        TranslatedCall,
        rendering::{CallOutcomeFieldsExt, id_from_trash_handle, trash_handle},
    },
    KruxCall,
    encoding::{KruxFileEncoding, KruxFilePieceEndPosition},
    errors::invalid_input,
    inputs::{KruxCopyMoveInput, KruxFileInput, KruxReadInput, KruxRestoreInput},
    paths::{file_name, require_absolute},
};
use crate::limits::DIALECT_LIST_ENTRIES_MAX;

const READ_BYTES_DEFAULT: u64 = 1_048_576;

pub(super) fn translate(
    call: &KruxCall<'_>,
    input: &KruxFileInput,
    options: CallOptions,
) -> Result<TranslatedCall, Error> {
    let refuse_parents = CallOptions { missing_parents: MissingParentPolicy::Refuse, ..options.clone() };
    let absolute = |path| require_absolute("path", path);
    Ok(match input {
        KruxFileInput::Read(input) => {
            let (first, max) = read_range(input);
            let last = first.saturating_add(max.max(1) - 1);
            let arguments = json!({ "path": absolute(&input.path)?, "bytes": format!("{first}-{last}") });
            let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..options };
            TranslatedCall::new("read", arguments, options)
        }
        KruxFileInput::Write(input) => {
            let path = absolute(&input.path)?;
            let options = if input.create_parents { options } else { refuse_parents };
            let (content, encoding) = match input.encoding {
                KruxFileEncoding::Utf8 => (input.content.clone(), "utf-8"),
                KruxFileEncoding::Ascii
                | KruxFileEncoding::Latin1
                | KruxFileEncoding::Utf16
                | KruxFileEncoding::Binary => (STANDARD.encode(input.encoding.encode(&input.content)?), "base64"),
            };
            let arguments = json!({ "path": path, "content": content, "encoding": encoding });
            TranslatedCall::new(
                "write",
                arguments,
                CallOptions { missing_base: MissingBaseVersionPolicy::Overwrite, ..options },
            )
        }
        KruxFileInput::Append(input) => {
            let arguments = json!({ "path": absolute(&input.path)?, "content": input.content });
            let options = CallOptions { missing_base: MissingBaseVersionPolicy::Overwrite, ..refuse_parents };
            TranslatedCall::new("append", arguments, options)
        }
        KruxFileInput::List(input) => {
            let arguments = json!({ "path": absolute(&input.path)?, "all": input.include_hidden });
            let listing_style = ListingPageSizeAndDetail::DetailedEntries(DIALECT_LIST_ENTRIES_MAX);
            TranslatedCall::new("list", arguments, CallOptions { listing_style, ..options })
        }
        KruxFileInput::Stat(input) => {
            let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..options };
            TranslatedCall::new("stat", json!({ "path": absolute(&input.path)? }), options)
        }
        KruxFileInput::Delete(input) => {
            TranslatedCall::new("remove", json!({ "path": absolute(&input.path)? }), refuse_parents)
        }
        KruxFileInput::Restore(input) => translate_restore(input, refuse_parents)?,
        KruxFileInput::Copy(input) => translate_copy_or_move(call, input, "copy", refuse_parents)?,
        KruxFileInput::Move(input) => translate_copy_or_move(call, input, "move", refuse_parents)?,
    })
}

fn translate_restore(input: &KruxRestoreInput, options: CallOptions) -> Result<TranslatedCall, Error> {
    let trash = match (&input.trash_path, &input.original_path) {
        (Some(trash), None) => id_from_trash_handle(trash),
        (None, Some(original)) => require_absolute("original_path", original)?,
        (Some(_), Some(_)) => return Err(invalid_input("original_path", "excludes trash_path")),
        (None, None) => return Err(invalid_input("trash_path", "or original_path is required")),
    };
    let mut arguments = json!({ "trash": trash });
    if let Some(to) = &input.destination {
        arguments["to"] = require_absolute("destination", to)?.into();
    }
    let restore_conflict =
        if input.overwrite { TrashRestoreOverwritePolicy::TrashExisting } else { TrashRestoreOverwritePolicy::Refuse };
    Ok(TranslatedCall::new("restore", arguments, CallOptions { restore_conflict, ..options }))
}

fn translate_copy_or_move(
    call: &KruxCall<'_>,
    input: &KruxCopyMoveInput,
    operation: &str,
    options: CallOptions,
) -> Result<TranslatedCall, Error> {
    let from = require_absolute("source", &input.source)?;
    let to = require_absolute("destination", &input.destination)?;
    let mapper = &call.dialect.paths;
    if mapper.parse(from).is_some_and(|from| mapper.parse(to) == Some(from)) {
        return Err(invalid_input("destination", "is the source itself"));
    }
    let arguments = json!({ "from": from, "to": to, "overwrite": input.overwrite });
    let options = CallOptions { copy_move_scope: CopyMoveAllowedEntryKinds::FilesOnly, ..options };
    Ok(TranslatedCall::new(operation, arguments, options))
}

/// The range of a read is the offset of its first byte and its maximum number of bytes.
fn read_range(input: &KruxReadInput) -> (u64, u64) {
    (input.offset.unwrap_or(0), input.limit.unwrap_or(READ_BYTES_DEFAULT))
}

pub(super) fn render_outcome(
    call: &KruxCall<'_>,
    input: &KruxFileInput,
    outcome: &RenderedOutcome,
) -> Result<Value, Error> {
    let path = absolute_path(call, outcome, "path");
    let version = outcome.json.get("version");
    let size = outcome.number_field("size");
    Ok(match input {
        KruxFileInput::Read(input) => render_read(input, outcome)?,
        KruxFileInput::Write(_) => json!({ "path": path, "size": size, "checksum": version }),
        KruxFileInput::Append(_) => json!({ "path": path, "new_size": size }),
        KruxFileInput::List(input) => render_listing(&input.sort_by, outcome, &path),
        KruxFileInput::Stat(_) => render_stat(outcome),
        KruxFileInput::Delete(_) => json!({
            "deleted_path": path,
            "trash_path": trash_handle(outcome.text_field("trash"), outcome.text_field("path")),
            "recoverable_until": outcome.text_field("recoverable_until"),
        }),
        KruxFileInput::Restore(_) => {
            let mut restored = json!({
                "restored_path": path,
                "trash_path": trash_handle(outcome.text_field("trash"), outcome.text_field("from")),
                "original_path": absolute_path(call, outcome, "from"),
                "size": outcome.number_field("bytes"),
            });
            if let Some(version) = version {
                restored["checksum"] = version.clone();
            }
            if outcome.json.contains_key("replaced") {
                restored["replaced_trash_path"] =
                    trash_handle(outcome.text_field("replaced"), outcome.text_field("path")).into();
            }
            restored
        }
        KruxFileInput::Move(_) => json!({
            "source": absolute_path(call, outcome, "from"),
            "destination": path,
            "size": outcome.number_field("bytes"),
        }),
        KruxFileInput::Copy(_) => json!({
            "source": absolute_path(call, outcome, "from"), "destination": path, "size": size, "checksum": version,
        }),
    })
}

fn render_read(input: &KruxReadInput, outcome: &RenderedOutcome) -> Result<Value, Error> {
    let (first, max) = read_range(input);
    let bytes = outcome.bytes_before();
    let bytes = usize::try_from(max).ok().and_then(|max| bytes.get(..max)).unwrap_or(bytes);
    let size = outcome.number_field("size");
    let end = if first.saturating_add(bytes.len() as u64) < size {
        KruxFilePieceEndPosition::MidFile
    } else {
        KruxFilePieceEndPosition::EndOfFile
    };
    let decoded = input.encoding.decode(bytes, end)?;
    Ok(json!({
        "content": decoded.text,
        "size": size,
        "modified": outcome.json.get("modified"),
        "checksum": outcome.json.get("version"),
        "truncated": first.saturating_add(decoded.bytes_consumed as u64) < size,
    }))
}

fn render_listing(order: &str, outcome: &RenderedOutcome, path: &str) -> Value {
    let mut entries: Vec<Value> = outcome.list_field("entries").iter().map(render_entry).collect();
    // The engine sorts entries by name. The sort is stable, so entries with equal keys stay in the order of their
    // names.
    match order.trim_start_matches('-') {
        "size" => entries.sort_by_key(|entry| entry["size"].as_u64()),
        "modified" => entries.sort_by(|one, two| one["modified"].as_str().cmp(&two["modified"].as_str())),
        _ => {}
    }
    if order.starts_with('-') {
        entries.reverse();
    }
    let mut listing = json!({ "entries": entries, "total": entries.len(), "path": path });
    if outcome.is_set("truncated") {
        listing["truncated"] = true.into();
    }
    listing
}

fn render_entry(entry: &Value) -> Value {
    let path = entry["path"].as_str().unwrap_or_default();
    json!({
        "name": file_name(path),
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

fn render_stat(outcome: &RenderedOutcome) -> Value {
    let field = |name: &str| outcome.json.get(name).cloned().unwrap_or_default();
    let mode = u32::from_str_radix(outcome.text_field("mode"), 8).unwrap_or_default();
    let directory = field("type") == "directory";
    json!({
        "exists": true,
        "type": entry_type_name(&field("type")),
        "size": if directory { 0 } else { outcome.number_field("size") },
        "modified": field("modified"),
        "created": field("created"),
        "permissions": permissions(mode),
        "owner": field("owner"),
    })
}

fn permissions(mode: u32) -> String {
    (0..9).rev().map(|bit| if mode & (1 << bit) == 0 { '-' } else { ['x', 'w', 'r'][bit % 3] }).collect()
}

fn absolute_path(call: &KruxCall<'_>, outcome: &RenderedOutcome, name: &str) -> String {
    call.dialect.paths.absolute_path(outcome.json.get(name).and_then(Value::as_str).unwrap_or("."))
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
