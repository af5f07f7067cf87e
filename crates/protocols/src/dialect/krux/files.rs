//! Capabilities that act on one path, or on a source and a destination: read, write, append, list, stat, delete (to the
//! trash), restore, copy and move.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use stead_engine::{
    BeforeAfterContentInclusion, CallOptions, Error, ErrorKind, FileKind, ListingPageSizeAndDetail,
    MissingParentPolicy,
    ops::{
        AppendArgs, CopyArgs, CopyOutcome, ListArgs, ListOutcome, ListedEntryRow, MoveArgs, ReadArgs, ReadOutcome,
        ReadPartFields, RemoveArgs, RestoreFromTrashArgs, StatArgs, StatOutcome, WriteArgs, file_kind_name,
    },
};

use super::{
    super::{
        DialectToolCall,
        rendering::{id_from_trash_handle, trash_handle},
    },
    KruxCall, KruxPreparedCall,
    encoding::{KruxFileEncoding, KruxFilePieceEndPosition},
    errors::invalid_input,
    inputs::{KruxCopyMoveInput, KruxFileInput, KruxRestoreInput, KruxWriteInput},
    paths::{file_name, require_absolute},
};
use crate::{limits::DIALECT_LIST_ENTRIES_MAX, native::without_nulls, prepared_call::OutcomeWithBytes};

const READ_BYTES_DEFAULT: u64 = 1_048_576;

pub(super) fn translate(call: &Arc<KruxCall>, input: &KruxFileInput, options: CallOptions) -> KruxPreparedCall {
    let refuse_parents = CallOptions { missing_parents: MissingParentPolicy::Refuse, ..options.clone() };
    let absolute = |path| require_absolute("path", path).map(str::to_owned);
    Ok(match input {
        KruxFileInput::Read(input) => {
            let (first, max) = (input.offset.unwrap_or(0), input.limit.unwrap_or(READ_BYTES_DEFAULT));
            let bytes = Some(format!("{first}-{}", first.saturating_add(max.max(1) - 1)));
            let arguments = ReadArgs { path: absolute(&input.path)?, bytes, ..ReadArgs::default() };
            let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..options };
            let encoding = input.encoding;
            call.prepare(arguments, options, move |_, read| render_read(first, max, encoding, &read))
        }
        KruxFileInput::Write(input) if input.create_parents => translate_write(call, input, options)?,
        KruxFileInput::Write(input) => translate_write(call, input, refuse_parents)?,
        KruxFileInput::Append(input) => {
            let (path, content) = (absolute(&input.path)?, input.content.clone());
            let arguments = AppendArgs { path, content, ..AppendArgs::default() };
            call.prepare(arguments, refuse_parents, |call, OutcomeWithBytes { outcome: append, .. }| {
                Ok(json!({ "path": call.dialect.paths.absolute_path(&append.path), "new_size": append.size }))
            })
        }
        KruxFileInput::List(input) => {
            let (path, all) = (Some(absolute(&input.path)?), Some(input.include_hidden));
            let listing_style = ListingPageSizeAndDetail::DetailedEntries(DIALECT_LIST_ENTRIES_MAX);
            let (arguments, input) = (ListArgs { path, all, ..ListArgs::default() }, input.clone());
            call.prepare(arguments, CallOptions { listing_style, ..options }, move |call, list| {
                Ok(render_listing(call, &input.sort_by, &list.outcome))
            })
        }
        KruxFileInput::Stat(input) => {
            let options = CallOptions { before_after: BeforeAfterContentInclusion::Include, ..options };
            let arguments = StatArgs { path: absolute(&input.path)? };
            call.prepare(arguments, options, |_, stat| Ok(render_stat(&stat.outcome)))
        }
        KruxFileInput::Delete(input) => {
            let arguments = RemoveArgs { path: absolute(&input.path)?, ..RemoveArgs::default() };
            call.prepare(arguments, refuse_parents, |call, OutcomeWithBytes { outcome: removed, .. }| {
                Ok(json!({
                    "deleted_path": call.dialect.paths.absolute_path(&removed.path),
                    "trash_path": trash_handle(&removed.trash.unwrap_or_default(), &removed.path.to_wire()),
                    "recoverable_until": removed.recoverable_until,
                }))
            })
        }
        KruxFileInput::Restore(input) => translate_restore(call, input, refuse_parents)?,
        KruxFileInput::Copy(input) => {
            let (from, to) = source_and_destination(call, input)?;
            let arguments = CopyArgs { from, to, overwrite: input.overwrite, files_only: true, ..CopyArgs::default() };
            call.prepare(arguments, refuse_parents, |call, copy| render_copy(call, &copy.outcome))
        }
        KruxFileInput::Move(input) => {
            let (from, to) = source_and_destination(call, input)?;
            let arguments = MoveArgs { from, to, overwrite: input.overwrite, files_only: true, ..MoveArgs::default() };
            call.prepare(arguments, refuse_parents, |call, OutcomeWithBytes { outcome: moved, .. }| {
                Ok(json!({
                    "source": call.dialect.paths.absolute_path(&moved.from),
                    "destination": call.dialect.paths.absolute_path(&moved.path),
                    "size": moved.moved.map_or(0, |tree| tree.bytes),
                }))
            })
        }
    })
}

fn translate_write(call: &Arc<KruxCall>, input: &KruxWriteInput, options: CallOptions) -> KruxPreparedCall {
    let path = require_absolute("path", &input.path)?.to_owned();
    let (content, encoding) = match input.encoding {
        KruxFileEncoding::Utf8 => (input.content.clone(), "utf-8"),
        KruxFileEncoding::Ascii | KruxFileEncoding::Latin1 | KruxFileEncoding::Utf16 | KruxFileEncoding::Binary => {
            (STANDARD.encode(input.encoding.encode(&input.content)?), "base64")
        }
    };
    let encoding = Some(encoding.to_owned());
    let arguments = WriteArgs { path, content, encoding, replace_without_base: true, ..WriteArgs::default() };
    Ok(call.prepare(arguments, options, |call, OutcomeWithBytes { outcome: write, .. }| {
        let path = call.dialect.paths.absolute_path(&write.path);
        Ok(json!({ "path": path, "size": write.size, "checksum": write.version.version }))
    }))
}

fn translate_restore(call: &Arc<KruxCall>, input: &KruxRestoreInput, options: CallOptions) -> KruxPreparedCall {
    let trash = match (&input.trash_path, &input.original_path) {
        (Some(trash), None) => id_from_trash_handle(trash).to_owned(),
        (None, Some(original)) => require_absolute("original_path", original)?.to_owned(),
        (Some(_), Some(_)) => return Err(invalid_input("original_path", "excludes trash_path")),
        (None, None) => return Err(invalid_input("trash_path", "or original_path is required")),
    };
    let to = input.destination.as_ref().map(|to| require_absolute("destination", to).map(str::to_owned)).transpose()?;
    let arguments = RestoreFromTrashArgs { trash, to, trash_existing: input.overwrite };
    Ok(call.prepare(arguments, options, |call, OutcomeWithBytes { outcome: restored, .. }| {
        let paths = &call.dialect.paths;
        let replaced = restored.replaced.as_ref();
        Ok(without_nulls(json!({
            "restored_path": paths.absolute_path(&restored.path),
            "trash_path": trash_handle(&restored.trash, &restored.from.to_wire()),
            "original_path": paths.absolute_path(&restored.from),
            "size": restored.bytes,
            "checksum": restored.version,
            "replaced_trash_path": replaced.map(|trash| trash_handle(trash, &restored.path.to_wire())),
        })))
    }))
}

fn source_and_destination(call: &KruxCall, input: &KruxCopyMoveInput) -> Result<(String, String), Error> {
    let from = require_absolute("source", &input.source)?;
    let to = require_absolute("destination", &input.destination)?;
    let mapper = &call.dialect.paths;
    if mapper.parse(from).is_some_and(|from| mapper.parse(to) == Some(from)) {
        return Err(invalid_input("destination", "is the source itself"));
    }
    Ok((from.to_owned(), to.to_owned()))
}

fn render_copy(call: &KruxCall, copy: &CopyOutcome) -> Result<Value, Error> {
    let CopyOutcome::File(copied) = copy else {
        return Err(Error::new(ErrorKind::Io, "internal error: a directory was copied"));
    };
    Ok(json!({
        "source": call.dialect.paths.absolute_path(&copied.from),
        "destination": call.dialect.paths.absolute_path(&copied.path),
        "size": copied.size,
        "checksum": copied.version.version,
    }))
}

/// The range of a read is the offset of its first byte and its maximum number of bytes.
fn render_read(
    first: u64,
    max: u64,
    encoding: KruxFileEncoding,
    read: &OutcomeWithBytes<ReadOutcome>,
) -> Result<Value, Error> {
    let (bytes, outcome) = (read.bytes_before(), &read.outcome);
    let bytes = usize::try_from(max).ok().and_then(|max| bytes.get(..max)).unwrap_or(bytes);
    let size = outcome.size;
    let end = if first.saturating_add(bytes.len() as u64) < size {
        KruxFilePieceEndPosition::MidFile
    } else {
        KruxFilePieceEndPosition::EndOfFile
    };
    let decoded = encoding.decode(bytes, end)?;
    let modified = match &outcome.part {
        ReadPartFields::RawBytes(part) => Some(part.modified),
        ReadPartFields::Lines(_) | ReadPartFields::Bytes(_) => None,
    };
    Ok(json!({
        "content": decoded.text,
        "size": size,
        "modified": modified,
        "checksum": outcome.version.version,
        "truncated": first.saturating_add(decoded.bytes_consumed as u64) < size,
    }))
}

fn render_listing(call: &KruxCall, order: &str, list: &ListOutcome) -> Value {
    let mut entries: Vec<&ListedEntryRow> = list.entries.iter().collect();
    // The engine sorts entries by name. The sort is stable, so entries with equal keys stay in the order of their
    // names.
    match order.trim_start_matches('-') {
        "size" => entries.sort_by_key(|entry| entry.size.unwrap_or_default()),
        "modified" => entries.sort_by_key(|entry| entry.modified.map(|modified| modified.unix_ms)),
        _ => {}
    }
    if order.starts_with('-') {
        entries.reverse();
    }
    let path = call.dialect.paths.absolute_path(&list.path);
    let entries: Vec<Value> = entries.into_iter().map(render_entry).collect();
    let truncated = list.completeness.is_truncated().then_some(true);
    without_nulls(json!({ "entries": entries, "total": entries.len(), "path": path, "truncated": truncated }))
}

fn render_entry(entry: &ListedEntryRow) -> Value {
    json!({
        "name": file_name(&entry.path.to_wire()),
        "type": entry_type_name(entry.kind),
        "size": entry.size.unwrap_or_default(),
        "modified": entry.modified,
    })
}

pub(super) fn entry_type_name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Link => "symlink",
        FileKind::File | FileKind::Directory | FileKind::Special => file_kind_name(kind),
    }
}

fn render_stat(stat: &StatOutcome) -> Value {
    let mode = u32::from_str_radix(&stat.mode, 8).unwrap_or_default();
    json!({
        "exists": true,
        "type": entry_type_name(stat.kind),
        "size": if stat.kind == FileKind::Directory { 0 } else { stat.size },
        "modified": stat.modified,
        "created": stat.created,
        "permissions": permissions(mode),
        "owner": stat.owner,
    })
}

fn permissions(mode: u32) -> String {
    (0..9).rev().map(|bit| if mode & (1 << bit) == 0 { '-' } else { ['x', 'w', 'r'][bit % 3] }).collect()
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
