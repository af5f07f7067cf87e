//! The canonical bytes of [`JournalEntryDetails`]: the number of fields, and then for each field that is not empty its
//! tag byte, the length of its value and the value, in the order of the tags.
//!
//! A later version can add a field with a new tag. A decoder rejects unknown tags, as it rejects unknown formats,
//! because a value that it cannot represent would be lost in an export and no longer match the recorded hash.

use super::primitives::{CanonicalReader, CanonicalWriter, JournalEntryDecodeError};
use crate::entry::{JournalEntryDetails, RecordedMove, RecordedRowDigest, RecordedUsage};

const MOVED: u8 = 1;
const UNCHANGED: u8 = 2;
const BUFFERS: u8 = 3;
const APPLIED_BY_EDITOR: u8 = 4;
const CALL: u8 = 5;
const USAGE_BEFORE: u8 = 6;
const ROWS: u8 = 7;

pub(super) fn write_details(out: &mut CanonicalWriter, details: &JournalEntryDetails) {
    // The pattern has no `..`, so the compiler rejects a new field that is not encoded here.
    let JournalEntryDetails { moved, unchanged, buffers, applied_by_editor, call, usage_before, rows } = details;
    let mut fields = Vec::new();
    let mut field = |tag: u8, write: &dyn Fn(&mut CanonicalWriter)| {
        let mut value = CanonicalWriter(Vec::new());
        write(&mut value);
        if !value.0.is_empty() {
            fields.push((tag, value.0));
        }
    };
    field(MOVED, &|out| {
        for RecordedMove { from, to } in moved {
            out.text(from);
            out.text(to);
        }
    });
    field(UNCHANGED, &|out| unchanged.iter().for_each(|version| out.digest(version)));
    field(BUFFERS, &|out| buffers.iter().for_each(|id| out.text(id)));
    field(APPLIED_BY_EDITOR, &|out| applied_by_editor.iter().for_each(|count| out.number(*count)));
    field(CALL, &|out| call.iter().for_each(|digest| out.digest(digest)));
    field(USAGE_BEFORE, &|out| {
        if let Some(RecordedUsage { bytes, files }) = usage_before {
            out.number(*bytes);
            out.number(*files);
        }
    });
    field(ROWS, &|out| {
        for RecordedRowDigest { family, id, sha256 } in rows {
            out.text(family);
            out.text(id);
            out.digest(sha256);
        }
    });
    out.number(fields.len() as u64);
    for (tag, value) in fields {
        out.byte(tag);
        out.number(value.len() as u64);
        out.0.extend_from_slice(&value);
    }
}

pub(super) fn read_details(from: &mut CanonicalReader<'_>) -> Result<JournalEntryDetails, JournalEntryDecodeError> {
    let encoded = from.0;
    let mut details = JournalEntryDetails::default();
    for _ in 0..from.number("details")? {
        let tag = from.byte("details")?;
        let mut value = CanonicalReader(from.length_prefixed("details")?);
        read_field(&mut value, tag, &mut details)?;
        if !value.0.is_empty() {
            return Err(JournalEntryDecodeError::TrailingBytes(value.0.len()));
        }
    }
    let mut again = CanonicalWriter(Vec::new());
    write_details(&mut again, &details);
    // The comparison rejects fields that are empty, out of order or repeated.
    if encoded.get(..encoded.len() - from.0.len()) == Some(&again.0) {
        Ok(details)
    } else {
        Err(JournalEntryDecodeError::NotCanonical("details"))
    }
}

fn read_field(
    value: &mut CanonicalReader<'_>,
    tag: u8,
    details: &mut JournalEntryDetails,
) -> Result<(), JournalEntryDecodeError> {
    match tag {
        MOVED => {
            while !value.0.is_empty() {
                details.moved.push(RecordedMove { from: value.text("moved")?, to: value.text("moved")? });
            }
        }
        UNCHANGED => details.unchanged = Some(value.digest("unchanged")?),
        BUFFERS => {
            while !value.0.is_empty() {
                details.buffers.push(value.text("buffers")?);
            }
        }
        APPLIED_BY_EDITOR => details.applied_by_editor = Some(value.number("applied_by_editor")?),
        CALL => details.call = Some(value.digest("call")?),
        USAGE_BEFORE => {
            let (bytes, files) = (value.number("usage_before")?, value.number("usage_before")?);
            details.usage_before = Some(RecordedUsage { bytes, files });
        }
        ROWS => {
            while !value.0.is_empty() {
                let (family, id) = (value.text("rows")?, value.text("rows")?);
                details.rows.push(RecordedRowDigest { family, id, sha256: value.digest("rows")? });
            }
        }
        tag => return Err(JournalEntryDecodeError::UnknownTag { field: "details", tag }),
    }
    Ok(())
}
