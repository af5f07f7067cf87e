//! The tool `read_file` returns a range of lines and the sha256 of the whole file. The number of bytes that a read
//! returns is limited. The bytes of a binary file are returned only if the call requests them.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;
use stead_engine::ops::{ReadArgs, ReadOutcome};

use super::{
    super::DialectToolCall,
    CommaPreparedCall, CommaToolCall,
    envelope::{CommaReplyEnvelope, normalize_text},
    errors,
    inputs::CommaReadFileInput,
};
use crate::{native::without_nulls, prepared_call::OutcomeWithBytes};

/// The number of bytes at the start of a file that are searched for a NUL byte, which marks a binary file.
const BINARY_SAMPLE_BYTES: usize = 8192;

pub(super) fn read_call(call: &Arc<CommaToolCall>, input: &Arc<CommaReadFileInput>) -> CommaPreparedCall {
    let (arguments, input) = (ReadArgs { path: input.path.clone(), ..ReadArgs::default() }, input.clone());
    call.prepare(arguments, call.options.clone(), move |_, read| read_reply(&input, &read))
}

fn read_reply(input: &CommaReadFileInput, read: &OutcomeWithBytes<ReadOutcome>) -> CommaReplyEnvelope {
    let path = input.path.as_str();
    let bytes = read.bytes_before();
    let (sha256, size) = (read.outcome.version.version.to_string(), bytes.len());
    // The original uses the same rule to decide whether a file is binary.
    if bytes[..size.min(BINARY_SAMPLE_BYTES)].contains(&0) {
        let data = json!({
            "contentBase64": input.allow_binary.then(|| STANDARD.encode(bytes)),
            "encoding": "base64",
            "binary": true,
            "sizeBytes": size,
            "sha256": sha256,
            "startLine": 0,
            "endLine": 0,
            "lineCount": 0,
            "truncated": false,
        });
        if input.allow_binary {
            return CommaReplyEnvelope::success(format!("Read {path} — binary, {size} bytes, sha256={sha256}"), data);
        }
        return errors::binary_file_error(path).with_data(without_nulls(data)).into();
    }
    let text = String::from_utf8_lossy(bytes);
    let has_bom = text.starts_with('\u{feff}');
    let normalized = normalize_text(&text);
    let lines: Vec<&str> = normalized.split('\n').collect();
    let slice = SelectedLines::from_range(&lines, input.start_line, input.end_line);
    let limit = usize::try_from(input.max_bytes).unwrap_or(usize::MAX);
    let content = &slice.text[..slice.text.floor_char_boundary(limit)];
    let truncated = content.len() < slice.text.len();
    let mark = if truncated { " (truncated)" } else { "" };
    let (first, last, count) = (slice.first_line, slice.last_line, lines.len());
    let mut output = format!("Read {path} — lines {first}-{last} of {count}, {size} bytes, sha256={sha256}{mark}");
    if !content.is_empty() {
        output.push_str("\n\n");
        output.push_str(content);
    }
    let data = json!({
        "content": content,
        "encoding": "utf8",
        "startLine": first,
        "endLine": last,
        "lineCount": count,
        "sizeBytes": size,
        "sha256": sha256,
        "truncated": truncated,
        "binary": false,
        "newlineStyle": newline_style(&text),
        "hasBom": has_bom,
    });
    CommaReplyEnvelope::success(output, data)
}

/// The range of selected lines is inclusive, and lines are counted from 1.
struct SelectedLines {
    first_line: u64,
    last_line: u64,
    text: String,
}

impl SelectedLines {
    fn from_range(lines: &[&str], start: Option<u64>, end: Option<u64>) -> Self {
        let count = lines.len() as u64;
        let first_line = start.unwrap_or(1);
        if first_line > count {
            return Self { first_line, last_line: first_line, text: String::new() };
        }
        let last = end.unwrap_or(count).clamp(first_line, count);
        let index = |line: u64| usize::try_from(line).unwrap_or(usize::MAX);
        Self { first_line, last_line: last, text: lines[index(first_line - 1)..index(last)].join("\n") }
    }
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
    fn line_range_is_clamped_and_a_start_beyond_the_end_is_repeated() {
        let lines = ["one", "two", "three", ""];
        for (start, end, expected) in [
            (None, None, (1, 4, "one\ntwo\nthree\n")),
            (Some(2), Some(2), (2, 2, "two")),
            (Some(3), Some(1), (3, 3, "three")),
            (Some(2), Some(99), (2, 4, "two\nthree\n")),
            (Some(9), Some(12), (9, 9, "")),
        ] {
            let slice = SelectedLines::from_range(&lines, start, end);
            assert_eq!((slice.first_line, slice.last_line, slice.text.as_str()), expected);
        }
    }

    #[test]
    fn newline_style_considers_all_endings() {
        for (text, style) in [("a", "none"), ("a\r", "none"), ("a\n", "lf"), ("a\r\n", "crlf"), ("a\nb\r\n", "mixed")] {
            assert_eq!(newline_style(text), style, "{text:?}");
        }
    }
}
