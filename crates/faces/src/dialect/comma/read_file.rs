//! `read_file`: a slice of a text by lines, cut at a number of bytes, with the sha256 of the whole file; or the bytes of
//! what is no text, when that was asked for.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use engine::Answer;
use serde_json::Value;

use super::{
    Scene, difference,
    envelope::{Envelope, Fields, Sorry},
};

/// Bytes of content when nothing is said.
const BYTES_DEFAULT: u64 = 262_144;
/// How far a file is looked into for a NUL.
const BINARY_LOOK_BYTES: usize = 8192;

pub(super) fn reply(scene: &Scene<'_>, answer: &Answer) -> Envelope {
    let path = scene.spot();
    let bytes = difference::held(answer).and_then(|held| held.before.as_deref()).unwrap_or_default();
    let sha256 = answer.json.get("version").and_then(Value::as_str).unwrap_or_default();
    let size = bytes.len();
    if is_binary(bytes) {
        let data = Fields::new();
        let about = |data: Fields| {
            data.with("encoding", "base64")
                .with("binary", true)
                .with("sizeBytes", size)
                .with("sha256", sha256)
                .with("startLine", 0)
                .with("endLine", 0)
                .with("lineCount", 0)
                .with("truncated", false)
        };
        if scene.asked.is_set("allowBinary") {
            let data = about(data.with("contentBase64", STANDARD.encode(bytes)));
            return Envelope::done(format!("Read {path} — binary, {size} bytes, sha256={sha256}"), data);
        }
        let message = format!("File is binary: {path}. Pass allowBinary:true to receive base64 content.");
        return Sorry::new("binary_file", message)
            .at(path)
            .next(
                "This file is binary. Decide whether you actually need its raw bytes; if so, call read_file again with \
                 allowBinary: true. Most edits should use a text-aware tool instead.",
            )
            .beside(about(data))
            .into();
    }
    let text = String::from_utf8_lossy(bytes);
    let has_bom = text.starts_with('\u{feff}');
    let plain = difference::plain_text(&text);
    let lines: Vec<&str> = plain.split('\n').collect();
    let slice = Slice::of(&lines, scene.asked.number("startLine"), scene.asked.number("endLine"));
    let limit = scene.asked.number("maxBytes").unwrap_or(BYTES_DEFAULT);
    let content = cut(&slice.text, usize::try_from(limit).unwrap_or(usize::MAX));
    let truncated = content.len() < slice.text.len();
    let mark = if truncated { " (truncated)" } else { "" };
    let (first, last, count) = (slice.first, slice.last, lines.len());
    let mut output =
        format!("Read {path} — lines {first}-{last} of {count}, {size} bytes, sha256={sha256}{mark}");
    if !content.is_empty() {
        output.push_str("\n\n");
        output.push_str(content);
    }
    let data = Fields::new()
        .with("content", content)
        .with("encoding", "utf8")
        .with("startLine", first)
        .with("endLine", last)
        .with("lineCount", count)
        .with("sizeBytes", size)
        .with("sha256", sha256)
        .with("truncated", truncated)
        .with("binary", false)
        .with("newlineStyle", newline_style(&text))
        .with("hasBom", has_bom);
    Envelope::done(output, data)
}

/// Whether the origin takes a file for binary.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(BINARY_LOOK_BYTES)].contains(&0)
}

/// Lines of a text, from 1, both ends included.
struct Slice {
    first: u64,
    last: u64,
    text: String,
}

impl Slice {
    fn of(lines: &[&str], start: Option<u64>, end: Option<u64>) -> Self {
        let count = lines.len() as u64;
        let first = start.unwrap_or(1);
        if first > count {
            return Self { first, last: first, text: String::new() };
        }
        let last = end.unwrap_or(count).clamp(first, count);
        let index = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
        Self { first, last, text: lines[index(first - 1)..index(last)].join("\n") }
    }
}

/// The start of a text, ending at a character.
fn cut(text: &str, limit_bytes: usize) -> &str {
    let mut end = text.len().min(limit_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn newline_style(text: &str) -> &'static str {
    let crlf = text.matches("\r\n").count();
    let lf = text.matches('\n').count() - crlf;
    match (crlf, lf) {
        (0, 0) => "none",
        (0, _) => "lf",
        (_, 0) => "crlf",
        (_, _) => "mixed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_clamped_and_echo_what_lies_beyond() {
        let lines = ["one", "two", "three", ""];
        for (start, end, expected) in [
            (None, None, (1, 4, "one\ntwo\nthree\n")),
            (Some(2), Some(2), (2, 2, "two")),
            (Some(3), Some(1), (3, 3, "three")),
            (Some(2), Some(99), (2, 4, "two\nthree\n")),
            (Some(9), Some(12), (9, 9, "")),
        ] {
            let slice = Slice::of(&lines, start, end);
            assert_eq!((slice.first, slice.last, slice.text.as_str()), expected);
        }
    }

    #[test]
    fn a_cut_keeps_characters_whole() {
        assert_eq!(cut("héé", 3), "hé");
        assert_eq!(cut("héé", 4), "hé");
        assert_eq!(cut("héé", 99), "héé");
        assert_eq!(cut("é", 1), "");
    }

    #[test]
    fn the_style_is_told_from_all_endings() {
        for (text, style) in
            [("a", "none"), ("a\r", "none"), ("a\n", "lf"), ("a\r\n", "crlf"), ("a\nb\r\n", "mixed")]
        {
            assert_eq!(newline_style(text), style, "{text:?}");
        }
    }
}
