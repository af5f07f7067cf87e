//! Ranges of bytes. What is asked for comes in one answer, whatever the page, so that a program can move large files;
//! text where the bytes are UTF-8, base64 otherwise. Memory holds the range, never the whole file.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use text::visible::visible_line;

use super::{Form, Next, facts, range::Range, twin, with_links};
use crate::{
    failure::{Failure, Kind},
    limits,
    operation::{Planned, Target},
    ops::answer::Facts,
    version::Version,
    view::View,
    workspace::{FileBytes, Node, Want},
};

/// Bytes in a page of base64: four characters carry three bytes.
const BASE64_PAGE_BYTES: u64 = (limits::PAGE_CHARS / 4 * 3) as u64;

/// Whether the server chose how much to send, or the caller did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    /// A page: the rest follows.
    ByServer,
    /// A range, which is a full answer even if the file goes on.
    ByCaller,
}

/// A piece of a file.
struct Piece {
    bytes: Vec<u8>,
    /// Offset of its first byte.
    first: u64,
    /// How many bytes were wanted.
    wanted: u64,
    chosen: Chosen,
    version: Version,
    node: Node,
}

/// Answers the range of bytes a caller asked for.
pub(super) fn exact(view: &View<'_>, target: &Target, range: Range, form: Form) -> Result<Planned, Failure> {
    let asked = range.length();
    let length = asked.min(limits::READ_BYTES_MAX);
    let file = view.read(&target.path, Want::Range { offset: range.first, length })?;
    view.remember(&target.path, file.version, None);
    let total = file.node.size;
    // Byte 0 of an empty file is nothing, not a mistake.
    if range.first >= total.max(1) {
        let path = &target.path;
        return Err(Failure::new(
            Kind::BadRequest,
            format!("{path} has {total} bytes; byte {} is past its end", range.first),
        )
        .hint(format!("call read with path {path}, bytes within 0-{}", total.saturating_sub(1)))
        .fact("total", total));
    }
    let FileBytes { bytes, version, node } = file;
    let wanted = asked.min(total - range.first);
    let piece = Piece { bytes, first: range.first, wanted, chosen: Chosen::ByCaller, version, node };
    match form {
        Form::Base64 => Ok(as_base64(view, target, piece, Form::Base64)),
        Form::Fitting | Form::Text => text_or_base64(view, target, piece, form),
    }
}

/// Answers the first page of a file as base64, because the caller wants that.
pub(super) fn first_page(view: &View<'_>, target: &Target) -> Result<Planned, Failure> {
    let file = view.read(&target.path, Want::Range { offset: 0, length: BASE64_PAGE_BYTES })?;
    Ok(as_base64(view, target, page_of(file), Form::Base64))
}

/// Answers the first page of a file that is not text.
pub(super) fn start_of(view: &View<'_>, target: &Target, mut file: FileBytes) -> Result<Planned, Failure> {
    file.bytes.truncate(usize::try_from(BASE64_PAGE_BYTES).unwrap_or(usize::MAX));
    Ok(as_base64(view, target, page_of(file), Form::Fitting))
}

fn page_of(file: FileBytes) -> Piece {
    let FileBytes { bytes, version, node } = file;
    Piece { bytes, first: 0, wanted: node.size, chosen: Chosen::ByServer, version, node }
}

fn text_or_base64(
    view: &View<'_>,
    target: &Target,
    mut piece: Piece,
    form: Form,
) -> Result<Planned, Failure> {
    let end =
        if piece.first + (piece.bytes.len() as u64) < piece.node.size { End::InFile } else { End::OfFile };
    match text_of(std::mem::take(&mut piece.bytes), end) {
        Ok(content) if form == Form::Text || !content.as_bytes().contains(&0) => {
            let length = content.len() as u64;
            Ok(answered(view, target, &piece, Carried { content, length, carrier: Carrier::Utf8 }, form))
        }
        Ok(content) => {
            piece.bytes = content.into_bytes();
            Ok(as_base64(view, target, piece, form))
        }
        Err(_) if form == Form::Text => {
            let path = &target.path;
            Err(Failure::new(Kind::NotText, format!("these bytes of {path} are not UTF-8 text"))
                .hint("leave as out to get base64, or give a range that starts and ends between characters"))
        }
        Err(bytes) => {
            piece.bytes = bytes;
            Ok(as_base64(view, target, piece, form))
        }
    }
}

/// Where a range ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The file goes on.
    InFile,
    /// With the file.
    OfFile,
}

/// The bytes as UTF-8 text. A character that the end of the range cuts in two is left for the next call.
fn text_of(bytes: Vec<u8>, end: End) -> Result<String, Vec<u8>> {
    String::from_utf8(bytes).or_else(|error| {
        let (whole, cut) = (error.utf8_error().valid_up_to(), error.utf8_error().error_len().is_none());
        let mut bytes = error.into_bytes();
        if end == End::OfFile || !cut || whole == 0 {
            return Err(bytes);
        }
        bytes.truncate(whole);
        String::from_utf8(bytes).map_err(std::string::FromUtf8Error::into_bytes)
    })
}

/// How bytes travel in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Utf8,
    Base64,
}

impl Carrier {
    fn name(self) -> &'static str {
        match self {
            Carrier::Utf8 => "utf-8",
            Carrier::Base64 => "base64",
        }
    }
}

/// The content of an answer and the bytes it stands for.
struct Carried {
    content: String,
    length: u64,
    carrier: Carrier,
}

fn as_base64(view: &View<'_>, target: &Target, piece: Piece, form: Form) -> Planned {
    let length = piece.bytes.len() as u64;
    let carried = Carried { content: STANDARD.encode(&piece.bytes), length, carrier: Carrier::Base64 };
    answered(view, target, &piece, carried, form)
}

fn answered(view: &View<'_>, target: &Target, piece: &Piece, carried: Carried, form: Form) -> Planned {
    let Carried { content, length, carrier } = carried;
    let total = piece.node.size;
    let end = piece.first + length;
    let last = end.saturating_sub(1).max(piece.first);
    let truncated = length < piece.wanted;
    let next = next_of(piece, end, form);
    let rev = view.rev(&target.path, &piece.version);
    let facts_line = format!(
        "[{}: {}, {}, {}]",
        visible_line(&target.path.to_wire()),
        if total == 0 { "empty".to_owned() } else { format!("bytes {}-{last} of {total}", piece.first) },
        rev,
        carrier.name(),
    );
    let more = next.as_ref().map(|next| {
        let word = if truncated { "truncated" } else { "more" };
        format!("… {word}: {}", next.sentence(target))
    });
    let text = if is_longer_than_a_page(&content) {
        twin(
            "the content is in the structured answer, field content, and not repeated here",
            &facts_line,
            more,
        )
    } else {
        twin(&content, &facts_line, more)
    };
    let range = Facts::new().with("from", piece.first).with("to", last).with("total", total).object();
    let binary = carrier == Carrier::Base64 && form == Form::Fitting;
    let answer = facts(target, &piece.version, rev, &piece.node, content)
        .with("encoding", carrier.name())
        .maybe("binary", binary.then_some(true))
        .with("bytes", range)
        .with("truncated", truncated)
        .maybe("next", next.map(|next| next.object(target)));
    Planned::Read { answer: with_links(answer, &piece.node).verbatim(text), bytes: length }
}

/// The call that goes on at byte `end`, as large as this one was.
fn next_of(piece: &Piece, end: u64, form: Form) -> Option<Next> {
    let step = match piece.chosen {
        Chosen::ByServer => BASE64_PAGE_BYTES,
        Chosen::ByCaller => piece.wanted.min(limits::READ_BYTES_MAX),
    };
    let until = end.saturating_add(step).min(piece.node.size);
    (end < until).then(|| Next { argument: "bytes", range: format!("{end}-{}", until - 1), form })
}

fn is_longer_than_a_page(content: &str) -> bool {
    content.len() > limits::PAGE_CHARS && content.chars().nth(limits::PAGE_CHARS).is_some()
}
