//! Reads byte ranges of a file. A requested byte range is returned as a whole, even if it is longer than a page, so
//! that programs can transfer large files. A byte range is returned as text if it is UTF-8, otherwise as base64. The
//! server holds only the requested byte range in memory, not the whole file.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use stead_path::RelPath;

use super::{ReadArgs, ReadBytesFields, ReadFormat, ReadOutcome, ReadPartFields, ReadRangeBounds, ReturnedRange};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{OperationPlanningResult, PlanResult},
    outcome::Completeness,
    tree::{BytesToRead, FileBytesWithVersion},
};

/// The number of file bytes whose base64 encoding fills a page.
const BASE64_PAGE_BYTES: u64 = (limits::OUTCOME_PAGE_CHARS / 4 * 3) as u64;

struct FileByteSlice {
    offset: u64,
    requested_length: u64,
    next_length: u64,
    limit: &'static str,
}

pub(super) fn read_exact_range(
    context: &CallContext<'_>,
    args: &ReadArgs,
    path: &RelPath,
    range: ReadRangeBounds,
    format: ReadFormat,
) -> PlanResult<ReadArgs> {
    let length = range.length().min(limits::READ_BYTES_MAX);
    let mut file = context.read(path, BytesToRead::Range { offset: range.first, length })?;
    context.remember(path, file.version, None);
    let (offset, total) = (range.first, file.stat.size);
    // For an empty file, byte 0 is accepted as the start of a range.
    if offset >= total.max(1) {
        return Err(Error::new(
            ErrorKind::BadRequest,
            format!("{path} has {total} bytes; byte {offset} is past its end"),
        )
        .with_next_step(NextStep::repeat_with_such("bytes", format!("within 0-{}", total.saturating_sub(1))))
        .with_total(total));
    }
    let requested_length = range.length().min(total - offset);
    let next_length = requested_length.min(limits::READ_BYTES_MAX);
    // A shorter range is cut only if its end is inside a character.
    let limit = if requested_length > next_length { "READ_BYTES_MAX" } else { "whole characters" };
    let bytes = std::mem::take(&mut file.bytes);
    let end = if offset + (bytes.len() as u64) < total { ReadEofStatus::BeforeEof } else { ReadEofStatus::AtEof };
    let content = EncodedReadContent::new(bytes, end, format, path)?;
    Ok(slice_outcome(
        context,
        args,
        path,
        &file,
        FileByteSlice { offset, requested_length, next_length, limit },
        content,
    ))
}

pub(super) fn read_first_page(context: &CallContext<'_>, args: &ReadArgs, path: &RelPath) -> PlanResult<ReadArgs> {
    let file = context.read(path, BytesToRead::Range { offset: 0, length: BASE64_PAGE_BYTES })?;
    Ok(first_page_of_file(context, args, path, file))
}

pub(super) fn first_page_of_file(
    context: &CallContext<'_>,
    args: &ReadArgs,
    path: &RelPath,
    file: FileBytesWithVersion,
) -> OperationPlanningResult<ReadOutcome> {
    let page_length = file.bytes.len().min(usize::try_from(BASE64_PAGE_BYTES).unwrap_or(usize::MAX));
    let content = EncodedReadContent::base64(&file.bytes[..page_length]);
    let (requested_length, next_length) = (file.stat.size, BASE64_PAGE_BYTES);
    let slice = FileByteSlice { offset: 0, requested_length, next_length, limit: "OUTCOME_PAGE_CHARS" };
    slice_outcome(context, args, path, &file, slice, content)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadEofStatus {
    BeforeEof,
    AtEof,
}

/// Decodes a byte range as UTF-8; a character cut by the range's end is left to the next `read`.
fn decode_complete_text(bytes: Vec<u8>, end: ReadEofStatus) -> Result<String, Vec<u8>> {
    String::from_utf8(bytes).or_else(|error| {
        let (whole, cut) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
        let mut bytes = error.into_bytes();
        if end == ReadEofStatus::AtEof || !cut || whole == 0 {
            return Err(bytes);
        }
        bytes.truncate(whole);
        String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
    })
}

const BASE64: &str = "base64";

struct EncodedReadContent {
    content: String,
    /// The number of file bytes that the encoded content represents.
    length: u64,
    encoding: &'static str,
}

impl EncodedReadContent {
    fn new(bytes: Vec<u8>, end: ReadEofStatus, format: ReadFormat, path: &RelPath) -> Result<Self, Error> {
        if format == ReadFormat::Base64 {
            return Ok(Self::base64(&bytes));
        }
        match decode_complete_text(bytes, end) {
            Ok(content) if format == ReadFormat::Text || !content.as_bytes().contains(&0) => {
                Ok(Self { length: content.len() as u64, content, encoding: "utf-8" })
            }
            Ok(content) => Ok(Self::base64(content.as_bytes())),
            Err(_) if format == ReadFormat::Text => {
                Err(Error::new(ErrorKind::NotText, format!("these bytes of {path} are not UTF-8 text")).with_next_step(
                    NextStep::repeat_without("as").or("choose a range that starts and ends between characters"),
                ))
            }
            Err(bytes) => Ok(Self::base64(&bytes)),
        }
    }

    fn base64(bytes: &[u8]) -> Self {
        Self { content: STANDARD.encode(bytes), length: bytes.len() as u64, encoding: BASE64 }
    }
}

fn slice_outcome(
    context: &CallContext<'_>,
    args: &ReadArgs,
    path: &RelPath,
    file: &FileBytesWithVersion,
    slice: FileByteSlice,
    encoded: EncodedReadContent,
) -> OperationPlanningResult<ReadOutcome> {
    let EncodedReadContent { content, length, encoding } = encoded;
    let total = file.stat.size;
    let end = slice.offset + length;
    let until = end.saturating_add(slice.next_length).min(total);
    let next =
        (end < until).then(|| ReadArgs { bytes: Some(format!("{end}-{}", until - 1)), ..args.with_other_part(path) });
    let (completeness, following) = match next {
        Some(next) if length < slice.requested_length => (Completeness::continued_by(next, slice.limit), None),
        next => (Completeness::Complete, next),
    };
    let part = ReadPartFields::Bytes(ReadBytesFields {
        encoding,
        binary: encoding == BASE64 && args.format.is_none(),
        bytes: ReturnedRange { from: slice.offset, to: end.saturating_sub(1).max(slice.offset), total },
        completeness,
        following,
    });
    let outcome = ReadOutcome::new(context, path, file, content, part);
    OperationPlanningResult::Read { outcome, bytes: length }
}
