//! Reads byte ranges of a file. A requested byte range is returned as a whole, even if it is longer than a page, so
//! that programs can transfer large files. A byte range is returned as text if it is UTF-8, otherwise as base64. The
//! server holds only the requested byte range in memory, not the whole file.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use stead_text::visible::escape_deceptive_line;

use super::{ReadContinuation, ReadFormat, ReadRangeBounds, read_outcome_fields, render_text, with_link_count};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    operation::{OperationPlanningResult, ResolvedTarget},
    ops::outcome_builder::OutcomeBuilder,
    version::Version,
    workspace::{BytesToRead, FileBytesWithVersion, FileStat},
};

/// The number of file bytes whose base64 encoding fills a page.
const BASE64_PAGE_BYTES: u64 = (limits::OUTCOME_PAGE_CHARS / 4 * 3) as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadRangeChosenBy {
    Server,
    /// The caller requested the byte range, so the outcome is complete even if the file continues.
    Caller,
}

struct FileSlice {
    bytes: Vec<u8>,
    offset: u64,
    requested_length: u64,
    chosen_by: ReadRangeChosenBy,
    version: Version,
    stat: FileStat,
}

pub(super) fn read_exact_range(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    range: ReadRangeBounds,
    format: ReadFormat,
) -> Result<OperationPlanningResult, Error> {
    let requested = range.length();
    let length = requested.min(limits::READ_BYTES_MAX);
    let file = context.read(&target.path, BytesToRead::Range { offset: range.first, length })?;
    context.remember(&target.path, file.version, None);
    let total = file.stat.size;
    // For an empty file, byte 0 is accepted as the start of a range.
    if range.first >= total.max(1) {
        let path = &target.path;
        return Err(Error::new(
            ErrorKind::BadRequest,
            format!("{path} has {total} bytes; byte {} is past its end", range.first),
        )
        .with_next_step(format!("call read with path {path}, bytes within 0-{}", total.saturating_sub(1)))
        .with_detail("total", total));
    }
    let FileBytesWithVersion { bytes, version, stat } = file;
    let requested_length = requested.min(total - range.first);
    let chosen_by = ReadRangeChosenBy::Caller;
    let slice = FileSlice { bytes, offset: range.first, requested_length, chosen_by, version, stat };
    match format {
        ReadFormat::Base64 => Ok(base64_outcome(context, target, slice, ReadFormat::Base64)),
        ReadFormat::Auto | ReadFormat::Text => slice_outcome(context, target, slice, format),
    }
}

pub(super) fn read_first_page(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
) -> Result<OperationPlanningResult, Error> {
    let file = context.read(&target.path, BytesToRead::Range { offset: 0, length: BASE64_PAGE_BYTES })?;
    Ok(base64_outcome(context, target, first_slice(file), ReadFormat::Base64))
}

pub(super) fn first_page_of_file(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    mut file: FileBytesWithVersion,
) -> Result<OperationPlanningResult, Error> {
    file.bytes.truncate(usize::try_from(BASE64_PAGE_BYTES).unwrap_or(usize::MAX));
    Ok(base64_outcome(context, target, first_slice(file), ReadFormat::Auto))
}

fn first_slice(file: FileBytesWithVersion) -> FileSlice {
    let FileBytesWithVersion { bytes, version, stat } = file;
    FileSlice { bytes, offset: 0, requested_length: stat.size, chosen_by: ReadRangeChosenBy::Server, version, stat }
}

fn slice_outcome(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    mut slice: FileSlice,
    format: ReadFormat,
) -> Result<OperationPlanningResult, Error> {
    let end = if slice.offset + (slice.bytes.len() as u64) < slice.stat.size {
        ReadEofStatus::BeforeEof
    } else {
        ReadEofStatus::AtEof
    };
    match decode_complete_text(std::mem::take(&mut slice.bytes), end) {
        Ok(content) if format == ReadFormat::Text || !content.as_bytes().contains(&0) => {
            let length = content.len() as u64;
            let payload = EncodedReadContent { content, length, encoding: PayloadEncoding::Utf8 };
            Ok(payload_outcome(context, target, &slice, payload, format))
        }
        Ok(content) => {
            slice.bytes = content.into_bytes();
            Ok(base64_outcome(context, target, slice, format))
        }
        Err(_) if format == ReadFormat::Text => {
            let path = &target.path;
            Err(Error::new(ErrorKind::NotText, format!("these bytes of {path} are not UTF-8 text"))
                .with_next_step("omit as to get base64, or pass a range that starts and ends between characters"))
        }
        Err(bytes) => {
            slice.bytes = bytes;
            Ok(base64_outcome(context, target, slice, format))
        }
    }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PayloadEncoding {
    Utf8,
    Base64,
}

impl PayloadEncoding {
    fn as_str(self) -> &'static str {
        match self {
            PayloadEncoding::Utf8 => "utf-8",
            PayloadEncoding::Base64 => "base64",
        }
    }
}

struct EncodedReadContent {
    content: String,
    length: u64,
    encoding: PayloadEncoding,
}

fn base64_outcome(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    slice: FileSlice,
    format: ReadFormat,
) -> OperationPlanningResult {
    let length = slice.bytes.len() as u64;
    let payload =
        EncodedReadContent { content: STANDARD.encode(&slice.bytes), length, encoding: PayloadEncoding::Base64 };
    payload_outcome(context, target, &slice, payload, format)
}

fn payload_outcome(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    slice: &FileSlice,
    payload: EncodedReadContent,
    format: ReadFormat,
) -> OperationPlanningResult {
    let EncodedReadContent { content, length, encoding } = payload;
    let total = slice.stat.size;
    let end = slice.offset + length;
    let last = end.saturating_sub(1).max(slice.offset);
    let truncated = length < slice.requested_length;
    let next = continuation(slice, end, format);
    let rev = context.revision_name(&target.path, &slice.version);
    let facts_line = format!(
        "[{}: {}, {}, {}]",
        escape_deceptive_line(&target.path.to_wire()),
        if total == 0 { "empty".to_owned() } else { format!("bytes {}-{last} of {total}", slice.offset) },
        rev,
        encoding.as_str(),
    );
    let more = next.as_ref().map(|next| {
        let word = if truncated { "truncated" } else { "more" };
        format!("… {word}: {}", next.render(context, target))
    });
    let text = if exceeds_page(&content) {
        render_text("the content is long: it is only in the field content of the structured outcome", &facts_line, more)
    } else {
        render_text(&content, &facts_line, more)
    };
    let range = OutcomeBuilder::new()
        .with_field("from", slice.offset)
        .with_field("to", last)
        .with_field("total", total)
        .into_json();
    let binary = encoding == PayloadEncoding::Base64 && format == ReadFormat::Auto;
    let outcome = read_outcome_fields(target, &slice.version, rev, &slice.stat, content)
        .with_field("encoding", encoding.as_str())
        .with_some("binary", binary.then_some(true))
        .with_field("bytes", range)
        .with_field("truncated", truncated)
        .with_some("next", next.map(|next| next.to_json(target)));
    OperationPlanningResult::Read { outcome: with_link_count(outcome, &slice.stat).build_verbatim(text), bytes: length }
}

fn continuation(slice: &FileSlice, end: u64, format: ReadFormat) -> Option<ReadContinuation> {
    let step = match slice.chosen_by {
        ReadRangeChosenBy::Server => BASE64_PAGE_BYTES,
        ReadRangeChosenBy::Caller => slice.requested_length.min(limits::READ_BYTES_MAX),
    };
    let until = end.saturating_add(step).min(slice.stat.size);
    (end < until).then(|| ReadContinuation { argument: "bytes", range: format!("{end}-{}", until - 1), format })
}

fn exceeds_page(content: &str) -> bool {
    content.len() > limits::OUTCOME_PAGE_CHARS && content.chars().nth(limits::OUTCOME_PAGE_CHARS).is_some()
}
