//! Selects the lines that a read returns. Lines keep their terminators, so that consecutive slices rebuild the file.

use super::errors::AcpError;

/// Up to `limit` lines from `line` on, counted from 1; 0 means 1. The empty text after the last terminator counts as a
/// line; anything beyond it is an error.
pub(crate) fn select_lines(text: &str, line: Option<u32>, limit: Option<u32>) -> Result<&str, AcpError> {
    let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
    let start = offset_after_lines(text, skipped).ok_or_else(|| past_end_error(text))?;
    let rest = &text[start..];
    let end = limit.and_then(|limit| offset_after_lines(rest, limit as usize)).unwrap_or(rest.len());
    Ok(&rest[..end])
}

/// The offset after this many terminators; `None` if the text has fewer.
fn offset_after_lines(text: &str, count: usize) -> Option<usize> {
    if count == 0 {
        return Some(0);
    }
    memchr::memchr_iter(b'\n', text.as_bytes()).nth(count - 1).map(|index| index + 1)
}

/// The error for a line past the end, with the last row, counted from 1, and its length in bytes.
fn past_end_error(text: &str) -> AcpError {
    let rows = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    let column = text.len() - memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |index| index + 1);
    AcpError::invalid_params(format!("Attempting to read beyond the end of the file, line {rows}:{column}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn consecutive_slices_rebuild_the_text(text in "[ab\\n\\r]{0,40}", step in 1_u32..5) {
            let mut whole = String::new();
            let mut line = 1;
            while let Ok(piece) = select_lines(&text, Some(line), Some(step)) {
                whole.push_str(piece);
                line += step;
            }
            prop_assert_eq!(whole, text);
        }
    }
}
