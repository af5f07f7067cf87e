//! Replies that only the newest version of the original code has: pages of a file, and edits with a diff. A page is a
//! range of bytes or of numbered lines. The header of a page contains the position of the page and the call that reads
//! the next page. The reply to an edit shows the diff to the user, not to the model.

use stead_engine::ops::ReadOutcome;
use stead_text::unified::{CONTEXT_LINES, DiffLabels, unified_diff};

use super::{
    super::{DialectOptionValuesByName, DialectSettingError},
    WeaverToolResult,
    errors::BINARY_FILE_MESSAGE,
    inputs::{WeaverReadFileInput, WeaverToolCall},
    replace_invalid_bytes,
};
use crate::{
    limits::{WEAVER_DIFF_BYTES_MAX, WEAVER_DIFF_LINES_MAX, WEAVER_DIFF_PREVIEW_BYTES_MAX},
    prepared_call::OutcomeWithBytes,
};

/// The maximum size of a page in bytes, unless the setting `read_bytes_max` changes it.
const PAGE_BYTES_DEFAULT: u64 = 65_536;
const BINARY_SAMPLE_BYTES: usize = 512;
/// The ratio of examined bytes to control characters below which a file counts as binary.
const CONTROL_CHAR_RATIO: usize = 10;

const NO_CHANGE_NOTE: &str = "(no content change)";
const TRUNCATED_NOTE: &str = "[diff preview truncated; call read_file for the full edited contents]";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeaverPageUnit {
    Bytes,
    Lines,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct WeaverPagingSettings {
    pub(super) unit: WeaverPageUnit,
    bytes_max: u64,
}

impl WeaverPagingSettings {
    pub(super) fn from_settings(settings: &DialectOptionValuesByName) -> Result<Self, DialectSettingError> {
        let unit = if settings.is_set_to("read_mode", "lines", "bytes") {
            WeaverPageUnit::Lines
        } else {
            WeaverPageUnit::Bytes
        };
        let bytes_max = match settings.get("read_bytes_max") {
            None => PAGE_BYTES_DEFAULT,
            Some(text) => {
                text.parse().ok().filter(|bytes| *bytes > 0).ok_or_else(|| DialectSettingError::InvalidValue {
                    key: "read_bytes_max".to_owned(),
                    value: text.to_owned(),
                    expected: "a positive number of bytes".to_owned(),
                })?
            }
        };
        Ok(Self { unit, bytes_max })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WeaverReadWindow {
    Bytes { offset: u64, length: u64 },
    Lines { start: u64, max_lines: Option<u64> },
}

impl WeaverReadWindow {
    pub(super) fn from_input(input: &WeaverReadFileInput, paging: WeaverPagingSettings) -> Self {
        match paging.unit {
            WeaverPageUnit::Bytes => WeaverReadWindow::Bytes {
                offset: input.offset.unwrap_or(0),
                length: input.length.unwrap_or(paging.bytes_max).min(paging.bytes_max),
            },
            WeaverPageUnit::Lines => {
                WeaverReadWindow::Lines { start: input.start_line.unwrap_or(1), max_lines: input.max_lines }
            }
        }
    }

    /// A read of lines has no byte range, because the engine must read the whole file to find the lines.
    pub(super) fn byte_range(self) -> Option<String> {
        match self {
            WeaverReadWindow::Bytes { offset, length } => {
                Some(format!("{offset}-{}", offset.saturating_add(length.saturating_sub(1))))
            }
            WeaverReadWindow::Lines { .. } => None,
        }
    }
}

pub(super) fn render_page(call: &WeaverToolCall, read: &OutcomeWithBytes<ReadOutcome>) -> WeaverToolResult {
    let (name, bytes) = (header_name(call.path()), read.bytes_before());
    match call.window() {
        Some(WeaverReadWindow::Lines { .. }) if looks_binary(bytes) => {
            WeaverToolResult::error(BINARY_FILE_MESSAGE.to_owned())
        }
        Some(WeaverReadWindow::Lines { start, max_lines }) => {
            WeaverToolResult::visible(render_line_page(name, call.dialect.paging, start, max_lines, bytes))
        }
        Some(WeaverReadWindow::Bytes { offset, .. }) => {
            WeaverToolResult::visible(render_byte_page(name, offset, read.outcome.size, bytes))
        }
        None => WeaverToolResult::visible(replace_invalid_bytes(bytes)),
    }
}

fn header_name(path: &str) -> &str {
    match path.trim_end_matches('/').rsplit('/').next().unwrap_or_default() {
        "" if path.is_empty() => ".",
        "" => "/",
        name => name,
    }
}

fn render_byte_page(name: &str, offset: u64, total: u64, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "[END OF FILE - no content at this offset]".to_owned();
    }
    let end = offset + bytes.len() as u64;
    let note = if end < total {
        format!("[TRUNCATED - file has more content. Call read_file again with offset={end} to continue.]")
    } else {
        "[END OF FILE - no further content.]".to_owned()
    };
    let header = format!("[file: {name} | total: {total} bytes | read: bytes {offset}-{}]", end - 1);
    format!("{header}\n{note}\n\n{}", replace_invalid_bytes(bytes))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WeaverLinePageEndReason {
    EndOfFile,
    LineLimit,
    ByteLimit,
    MidLine,
}

fn render_line_page(
    name: &str,
    paging: WeaverPagingSettings,
    start: u64,
    max_lines: Option<u64>,
    bytes: &[u8],
) -> String {
    let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').skip(skipped);
    let (mut output, mut count, mut file_bytes) = (Vec::new(), 0_u64, 0_u64);
    let end = loop {
        if max_lines == Some(count) {
            break if lines.next().is_some() {
                WeaverLinePageEndReason::LineLimit
            } else {
                WeaverLinePageEndReason::EndOfFile
            };
        }
        let Some(line) = lines.next() else { break WeaverLinePageEndReason::EndOfFile };
        let prefix = format!("{}|", start + count);
        let remaining = paging.bytes_max.saturating_sub((output.len() + prefix.len()) as u64);
        if remaining == 0 {
            break WeaverLinePageEndReason::ByteLimit;
        }
        let taken = line.len().min(usize::try_from(remaining).unwrap_or(usize::MAX));
        output.extend_from_slice(prefix.as_bytes());
        output.extend_from_slice(&line[..taken]);
        file_bytes += taken as u64;
        count += 1;
        if taken < line.len() {
            break WeaverLinePageEndReason::MidLine;
        }
    };
    if count == 0 {
        return format!("[END OF FILE - no content at or after start_line={start}]");
    }
    let (next, last) = (start + count, start + count - 1);
    let again = match max_lines {
        Some(max_lines) => {
            format!("Call read_file again with start_line={next} and max_lines={max_lines} to continue")
        }
        None => format!("Call read_file again with start_line={next} to continue"),
    };
    let note = match end {
        WeaverLinePageEndReason::EndOfFile => "[END OF FILE - no further content.]".to_owned(),
        WeaverLinePageEndReason::LineLimit => format!("[PARTIAL - more content remains. {again}.]"),
        WeaverLinePageEndReason::ByteLimit => {
            format!("[TRUNCATED - byte budget reached. {again} at the next line.]")
        }
        WeaverLinePageEndReason::MidLine => format!(
            "[TRUNCATED - line {last} exceeded the {} byte read budget and was cut mid-line.]",
            paging.bytes_max
        ),
    };
    let header = format!(
        "[file: {name} | read: lines {start}-{last} (1-indexed) | file_bytes: {file_bytes} | output_bytes: {}]",
        output.len()
    );
    format!("{header}\n{note}\n\n{}", replace_invalid_bytes(&output))
}

fn looks_binary(bytes: &[u8]) -> bool {
    let sample = &bytes[..bytes.len().min(BINARY_SAMPLE_BYTES)];
    if sample.contains(&0) {
        return true;
    }
    // The end of the sample may split a character, so an incomplete character at the end is not an error.
    let is_text = match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none() && sample.len() == BINARY_SAMPLE_BYTES,
    };
    let is_control = |byte: &&u8| **byte < 0x20 && !matches!(**byte, b'\n' | b'\r' | b'\t' | 0x0c | 0x08);
    !is_text || sample.iter().filter(is_control).count() * CONTROL_CHAR_RATIO > sample.len()
}

pub(super) fn edit_result(path: &str, (before, after): (Option<&[u8]>, Option<&[u8]>)) -> WeaverToolResult {
    let [before, after] = [before, after].map(|bytes| replace_invalid_bytes(bytes.unwrap_or_default()));
    let summary = format!("File edited: {path}");
    let large = |text: &str| text.len() > WEAVER_DIFF_BYTES_MAX || text.lines().count() > WEAVER_DIFF_LINES_MAX;
    if large(&before) || large(&after) {
        return WeaverToolResult::silent(format!(
            "{summary}\n[diff preview skipped: file too large for inline preview]"
        ));
    }
    if before == after {
        let for_llm = format!("{summary}\n{NO_CHANGE_NOTE}");
        return WeaverToolResult {
            for_user: fenced_diff(&summary, NO_CHANGE_NOTE),
            ..WeaverToolResult::visible(for_llm)
        };
    }
    let label = match path.trim_start_matches('/') {
        "" => "file",
        label => label,
    };
    let labels = DiffLabels { old: &format!("a/{label}"), new: &format!("b/{label}") };
    let diff = unified_diff(&before, &after, labels, CONTEXT_LINES, usize::MAX).text;
    if diff.len() <= WEAVER_DIFF_PREVIEW_BYTES_MAX {
        return WeaverToolResult {
            for_user: fenced_diff(&summary, diff.trim_end_matches('\n')),
            ..WeaverToolResult::visible(summary)
        };
    }
    let preview = &diff[..diff.floor_char_boundary(WEAVER_DIFF_PREVIEW_BYTES_MAX)];
    let for_user = format!("{}\n{TRUNCATED_NOTE}", fenced_diff(&summary, preview));
    WeaverToolResult { for_user, ..WeaverToolResult::visible(format!("{summary}\n{TRUNCATED_NOTE}")) }
}

fn fenced_diff(summary: &str, diff: &str) -> String {
    format!("{summary}\n```diff\n{diff}\n```")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paging_options(unit: WeaverPageUnit, bytes_max: u64) -> WeaverPagingSettings {
        WeaverPagingSettings { unit, bytes_max }
    }

    #[test]
    fn numbers_lines_within_byte_limit() {
        let line_page = |max_lines, bytes_max, bytes: &[u8]| {
            render_line_page("f", paging_options(WeaverPageUnit::Lines, bytes_max), 1, max_lines, bytes)
        };
        let page = line_page(None, 10, b"1234567\nsecond line\n");
        assert!(page.contains("file_bytes: 8 | output_bytes: 10") && page.contains("start_line=2 "), "{page}");
        let page = line_page(None, 6, b"abcdefgh\n");
        assert!(page.contains("line 1 exceeded the 6 byte read budget") && page.ends_with("1|abcd"), "{page}");
        assert!(line_page(Some(1), 99, b"a\nb\n").contains("start_line=2 and max_lines=1"));
        assert!(line_page(Some(2), 99, b"a\nb\n").contains("END OF FILE"));
        assert_eq!(
            render_line_page("f", paging_options(WeaverPageUnit::Lines, 9), 9, None, b"a"),
            "[END OF FILE - no content at or after start_line=9]"
        );
    }

    #[test]
    fn detects_binary_content() {
        assert!(looks_binary(b"a\0") && looks_binary(b"\xff\xfe") && looks_binary(b"\x01\x02abc"));
        assert!(!looks_binary(b"") && !looks_binary("äöü\r\n\t".as_bytes()));
    }

    fn edit_result_for(before: &str, after: &str) -> WeaverToolResult {
        edit_result("/d/e.txt", (Some(before.as_bytes()), Some(after.as_bytes())))
    }

    #[test]
    fn edit_result_shows_diff_to_user() {
        let short = edit_result_for("a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(short.for_llm, "File edited: /d/e.txt");
        for part in ["```diff\n--- a/d/e.txt\n+++ b/d/e.txt\n@@ -1,3 +1,3 @@\n", "-b\n+B\n", " c\n```"] {
            assert!(short.for_user.contains(part), "{}", short.for_user);
        }
        assert!(edit_result_for("a", "a").for_llm.ends_with(NO_CHANGE_NOTE));
        let skipped = edit_result_for(&"x".repeat(WEAVER_DIFF_BYTES_MAX + 1), "y");
        assert!(skipped.for_user.is_empty() && skipped.for_llm.contains("skipped"));
        let cut = edit_result_for(&"ä\n".repeat(1500), &"öö\n".repeat(1900));
        assert!(cut.for_llm.ends_with(TRUNCATED_NOTE) && cut.for_user.ends_with(TRUNCATED_NOTE));
    }
}
