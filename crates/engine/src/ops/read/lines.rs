//! Reads a text file by page; each page consists of whole lines. A line longer than a page is cut, and the next `read`
//! call returns the rest of the line as a byte range.

use stead_path::RelPath;
use stead_text::{
    encoding::{Encoding, decode, encode},
    lines::{LineCounter, byte_range},
};

use super::{ReadArgs, ReadLinesFields, ReadOutcome, ReadPartFields, ReadRangeBounds, ReturnedRange};
use crate::{
    call_context::CallContext,
    errors::{Error, ErrorKind},
    limits,
    next_step::NextStep,
    operation::{OperationPlanningResult, PlanResult},
    ops::text_pages::{TextPageEnd, first_page},
    outcome::Completeness,
    tree::FileBytesWithVersion,
};

pub(super) fn read_lines_page(
    context: &CallContext<'_>,
    args: &ReadArgs,
    path: &RelPath,
    mut file: FileBytesWithVersion,
    encoding: Encoding,
    range: Option<ReadRangeBounds>,
) -> PlanResult<ReadArgs> {
    let decoded = decode_text(std::mem::take(&mut file.bytes), encoding).ok_or_else(|| {
        Error::new(ErrorKind::NotText, format!("{path} is not valid {}", encoding.name()))
            .with_next_step(NextStep::call(ReadArgs::as_base64(path), "get the bytes"))
    })?;
    let body = decoded.strip_prefix(BYTE_ORDER_MARK).filter(|_| encoding == Encoding::Utf8Bom).unwrap_or(&decoded);
    let mut counter = LineCounter::default();
    counter.feed(body.as_bytes());
    let total = counter.lines();
    let (first, last) = clamp_range(range, total, path)?;
    let span = byte_range(body.as_bytes(), first..=last).unwrap_or(0..0);
    let page = first_page(&body[span.clone()], limits::OUTCOME_PAGE_CHARS);
    let (from, to) = if page.lines == 0 { (0, 0) } else { (first, first + page.lines - 1) };
    let other_part = args.with_other_part(path);
    let next = match page.end {
        TextPageEnd::Complete => None,
        TextPageEnd::AtLine => Some(ReadArgs { lines: Some(range_after(to, range)), ..other_part }),
        TextPageEnd::InsideLine => {
            let bytes = Some(rest_of_line(body, span.start + page.text.len(), encoding, file.stat.size));
            // Byte ranges of encodings other than UTF-8 are returned as base64, so a request for text would fail.
            let is_utf8 = matches!(encoding, Encoding::Utf8 | Encoding::Utf8Bom);
            Some(ReadArgs { bytes, format: other_part.format.filter(|_| is_utf8), ..other_part })
        }
    };
    let completeness =
        next.map_or(Completeness::Complete, |next| Completeness::continued_by(next, "OUTCOME_PAGE_CHARS"));
    let part = ReadPartFields::Lines(ReadLinesFields {
        encoding: encoding.name(),
        ending: counter.endings().uniform_ending().name(),
        bom: !encoding.byte_order_mark().is_empty(),
        lines: ReturnedRange { from: from as u64, to: to as u64, total: total as u64 },
        ends_without_newline: span.end == body.len()
            && !completeness.is_truncated()
            && total > counter.endings().total(),
        completeness,
    });
    let outcome = ReadOutcome::new(context, path, &file, page.text.to_owned(), part);
    Ok(OperationPlanningResult::Read { outcome, bytes: page.text.len() as u64 })
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
        .with_next_step(NextStep::repeat_with_such("lines", format!("within 1-{}", total.max(1))))
        .with_total(total as u64));
    }
    let last = range.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
    Ok((first, last.min(total)))
}

/// Returns the requested line range without the lines up to `shown`, such as `21-40`.
fn range_after(shown: usize, range: Option<ReadRangeBounds>) -> String {
    let last = range.and_then(|range| range.last).map(|last| last.to_string());
    format!("{}-{}", shown + 1, last.unwrap_or_default())
}

/// Returns the byte range of the rest of a truncated line; `cut` is the byte position of the cut in the decoded text.
fn rest_of_line(body: &str, cut: usize, encoding: Encoding, size: u64) -> String {
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
    format!("{offset}-{last}")
}
