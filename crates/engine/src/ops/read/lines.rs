//! Reads a text file by page; each page consists of whole lines. A line longer than a page is cut, and the next `read`
//! call returns the rest of the line as a byte range.

use stead_path::RelPath;
use stead_text::{
    encoding::{Encoding, decode, encode},
    lines::{LineCounter, byte_range},
    visible::escape_deceptive_line,
};

use super::{ReadContinuation, ReadFormat, ReadRangeBounds, read_outcome_fields, render_text, with_link_count};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    operation::{OperationPlanningResult, ResolvedTarget},
    ops::outcome_builder::{OutcomeBuilder, TextPageEnd, first_page},
    workspace::FileBytesWithVersion,
};

pub(super) fn read_lines_page(
    context: &CallContext<'_>,
    target: &ResolvedTarget,
    file: FileBytesWithVersion,
    encoding: Encoding,
    range: Option<ReadRangeBounds>,
    format: ReadFormat,
) -> Result<OperationPlanningResult, Error> {
    let FileBytesWithVersion { bytes, version, stat } = file;
    let decoded = decode_text(bytes, encoding).ok_or_else(|| {
        Error::new(ErrorKind::NotText, format!("{} is not valid {}", target.path, encoding.name()))
            .with_next_step("call read with as \"base64\" to get the bytes")
    })?;
    let body = decoded.strip_prefix(BYTE_ORDER_MARK).filter(|_| encoding == Encoding::Utf8Bom).unwrap_or(&decoded);
    let mut counter = LineCounter::default();
    counter.feed(body.as_bytes());
    let total = counter.lines();
    let (first, last) = clamp_range(range, total, &target.path)?;
    let span = byte_range(body.as_bytes(), first..=last).unwrap_or(0..0);
    let page = first_page(&body[span.clone()], limits::OUTCOME_PAGE_CHARS);
    let (from, to) = if page.lines == 0 { (0, 0) } else { (first, first + page.lines - 1) };
    let next = match page.end {
        TextPageEnd::Complete => None,
        TextPageEnd::AtLine => Some(lines_continuation(to + 1, range, format)),
        TextPageEnd::InsideLine => {
            Some(bytes_continuation(body, span.start + page.text.len(), encoding, stat.size, format))
        }
    };
    let ending = counter.endings().uniform_ending().name();
    let bom = !encoding.byte_order_mark().is_empty();
    let ends_without_newline =
        span.end == body.len() && page.end == TextPageEnd::Complete && total > counter.endings().total();
    let rev = context.revision_name(&target.path, &version);
    let facts_line = format!(
        "[{}: {}, {}, {} bytes, {}{}, {ending}{}]",
        escape_deceptive_line(&target.path.to_wire()),
        if total == 0 { "empty".to_owned() } else { format!("lines {from}-{to} of {total}") },
        rev,
        stat.size,
        encoding.name(),
        if bom { " with byte-order mark" } else { "" },
        if ends_without_newline { ", no newline at the end" } else { "" },
    );
    let more = next.as_ref().map(|next| format!("… truncated: {}", next.render(context, target)));
    let text = render_text(page.text, &facts_line, more);
    let outcome = read_outcome_fields(target, &version, rev, &stat, page.text.to_owned())
        .with_field("encoding", encoding.name())
        .with_field("ending", ending)
        .with_some("bom", bom.then_some(true))
        .with_field(
            "lines",
            OutcomeBuilder::new().with_field("from", from).with_field("to", to).with_field("total", total).into_json(),
        )
        .with_field("truncated", next.is_some())
        .with_some("next", next.map(|next| next.to_json(target)));
    let bytes = page.text.len() as u64;
    Ok(OperationPlanningResult::Read { outcome: with_link_count(outcome, &stat).build_verbatim(text), bytes })
}

const BYTE_ORDER_MARK: char = '\u{feff}';

/// Decodes the bytes of a text file; decoded UTF-8 keeps its byte order mark.
fn decode_text(bytes: Vec<u8>, encoding: Encoding) -> Option<String> {
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => String::from_utf8(bytes).ok(),
        Encoding::Utf16Le | Encoding::Utf16LeBom | Encoding::Utf16Be | Encoding::Utf16BeBom | Encoding::Legacy(_) => {
            decode(&bytes, encoding).ok().map(std::borrow::Cow::into_owned)
        }
    }
}

fn clamp_range(range: Option<ReadRangeBounds>, total: usize, path: &RelPath) -> Result<(usize, usize), Error> {
    let Some(range) = range else { return Ok((1, total)) };
    let first = usize::try_from(range.first).unwrap_or(usize::MAX);
    // For an empty file, line 1 is accepted as the start of a range.
    if first > total.max(1) {
        return Err(Error::new(
            ErrorKind::BadRequest,
            format!("{path} has {total} lines; line {} is past its end", range.first),
        )
        .with_next_step(format!("call read with path {path}, lines within 1-{}", total.max(1)))
        .with_detail("total", total));
    }
    let last = range.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
    Ok((first, last.min(total)))
}

fn lines_continuation(first: usize, range: Option<ReadRangeBounds>, format: ReadFormat) -> ReadContinuation {
    let range = match range.and_then(|range| range.last) {
        Some(last) => format!("{first}-{last}"),
        None => format!("{first}-"),
    };
    ReadContinuation { argument: "lines", range, format }
}

/// Builds the `read` call for the rest of a cut line; `cut` is a byte position in the decoded text.
fn bytes_continuation(body: &str, cut: usize, encoding: Encoding, size: u64, format: ReadFormat) -> ReadContinuation {
    let offset = match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => (encoding.byte_order_mark().len() + cut) as u64,
        Encoding::Utf16Le
        | Encoding::Utf16LeBom
        | Encoding::Utf16Be
        | Encoding::Utf16BeBom
        // The text was decoded from these bytes, so encoding the text gives the same number of bytes.
        | Encoding::Legacy(_) => encode(&body[..cut], encoding).map_or(0, |bytes| bytes.len() as u64),
    };
    let last = (offset + limits::OUTCOME_PAGE_CHARS as u64).min(size).saturating_sub(1);
    // Byte ranges of encodings other than UTF-8 are returned as base64, so a request for text would fail.
    let format = if matches!(encoding, Encoding::Utf8 | Encoding::Utf8Bom) { format } else { ReadFormat::Auto };
    ReadContinuation { argument: "bytes", range: format!("{offset}-{last}"), format }
}
