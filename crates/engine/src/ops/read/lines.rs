//! The page of a text that one answer carries: whole lines, except that a line longer than a page is cut inside and
//! goes on by bytes.

use path::RelPath;
use text::{
    encoding::{Encoding, decode, encode},
    lines::{Counter, byte_range},
    visible::visible_line,
};

use super::{Form, Next, facts, range::Range, twin, with_links};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Planned, Target},
    ops::answer::{Cut, Facts, page},
    view::View,
    workspace::FileBytes,
};

/// Answers a page of a text file, from its first line or from the range asked for.
pub(super) fn page_of(
    view: &View<'_>,
    target: &Target,
    file: FileBytes,
    encoding: Encoding,
    range: Option<Range>,
    form: Form,
) -> Result<Planned, Failure> {
    let FileBytes { bytes, version, node } = file;
    let decoded = text_of(bytes, encoding).ok_or_else(|| {
        Failure::new(Kind::NotText, format!("{} is not valid {}", target.path, encoding.name()))
    })?;
    let body = decoded.strip_prefix(MARK).filter(|_| encoding == Encoding::Utf8Bom).unwrap_or(&decoded);
    let mut counter = Counter::default();
    counter.feed(body.as_bytes());
    let total = counter.lines();
    let (first, last) = clamp(range, total, &target.path)?;
    let span = byte_range(body.as_bytes(), first..=last).unwrap_or(0..0);
    let shown = page(&body[span.clone()], limits::PAGE_CHARS);
    let (from, to) = if shown.lines == 0 { (0, 0) } else { (first, first + shown.lines - 1) };
    let next = match shown.cut {
        Cut::Whole => None,
        Cut::Line => Some(next_lines(to + 1, range, form)),
        Cut::Inside => Some(next_bytes(body, span.start + shown.text.len(), encoding, node.size, form)),
    };
    let ending = counter.endings().ending().name();
    let bom = !encoding.mark().is_empty();
    let open_end = span.end == body.len() && shown.cut == Cut::Whole && total > counter.endings().total();
    let rev = view.rev(&target.path, &version);
    let facts_line = format!(
        "[{}: {}, {}, {} bytes, {}{}, {ending}{}]",
        visible_line(&target.path.to_wire()),
        if total == 0 { "empty".to_owned() } else { format!("lines {from}-{to} of {total}") },
        rev,
        node.size,
        encoding.name(),
        if bom { " with byte-order mark" } else { "" },
        if open_end { ", no newline at the end" } else { "" },
    );
    let more = next.as_ref().map(|next| format!("… truncated: {}", next.sentence(target)));
    let text = twin(shown.text, &facts_line, more);
    let answer = facts(target, &version, rev, &node, shown.text.to_owned())
        .with("encoding", encoding.name())
        .with("ending", ending)
        .maybe("bom", bom.then_some(true))
        .with("lines", Facts::new().with("from", from).with("to", to).with("total", total).object())
        .with("truncated", next.is_some())
        .maybe("next", next.map(|next| next.object(target)));
    let bytes = shown.text.len() as u64;
    Ok(Planned::Read { answer: with_links(answer, &node).verbatim(text), bytes })
}

/// How the byte-order mark of UTF-8 reads as a character.
const MARK: char = '\u{feff}';

/// The text of these bytes, without a copy when they are UTF-8. A mark of UTF-8 stays in front.
fn text_of(bytes: Vec<u8>, encoding: Encoding) -> Option<String> {
    match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => String::from_utf8(bytes).ok(),
        Encoding::Utf16Le
        | Encoding::Utf16LeBom
        | Encoding::Utf16Be
        | Encoding::Utf16BeBom
        | Encoding::Legacy(_) => decode(&bytes, encoding).ok().map(std::borrow::Cow::into_owned),
    }
}

/// The lines wanted, cut to those that exist.
fn clamp(range: Option<Range>, total: usize, path: &RelPath) -> Result<(usize, usize), Failure> {
    let Some(range) = range else { return Ok((1, total)) };
    let first = usize::try_from(range.first).unwrap_or(usize::MAX);
    // Line 1 of an empty file is nothing, not a mistake.
    if first > total.max(1) {
        return Err(Failure::new(
            Kind::BadRequest,
            format!("{path} has {total} lines; line {} is past its end", range.first),
        )
        .hint(format!("call read with path {path}, lines within 1-{}", total.max(1)))
        .fact("total", total));
    }
    let last = range.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
    Ok((first, last.min(total)))
}

fn next_lines(first: usize, range: Option<Range>, form: Form) -> Next {
    let range = match range.and_then(|range| range.last) {
        Some(last) => format!("{first}-{last}"),
        None => format!("{first}-"),
    };
    Next { argument: "lines", range, form }
}

/// Goes on inside a line: `cut` is where, in the decoded text.
fn next_bytes(body: &str, cut: usize, encoding: Encoding, size: u64, form: Form) -> Next {
    let offset = match encoding {
        Encoding::Utf8 | Encoding::Utf8Bom => (encoding.mark().len() + cut) as u64,
        Encoding::Utf16Le
        | Encoding::Utf16LeBom
        | Encoding::Utf16Be
        | Encoding::Utf16BeBom
        // What was decoded a moment ago encodes to as many bytes as it came from.
        | Encoding::Legacy(_) => encode(&body[..cut], encoding).map_or(0, |bytes| bytes.len() as u64),
    };
    let last = (offset + limits::PAGE_CHARS as u64).min(size).saturating_sub(1);
    // A range of bytes in another encoding comes as base64; asking for text would be refused.
    let form = if matches!(encoding, Encoding::Utf8 | Encoding::Utf8Bom) { form } else { Form::Fitting };
    Next { argument: "bytes", range: format!("{offset}-{last}"), form }
}
