//! Which lines of a text a read returns. A line keeps its terminator, so that slices put together are the file.

use super::sorry::Sorry;

/// The lines from `line`, counted from 1, at most `limit` of them. Line 0 is taken for line 1. The place behind the last
/// terminator is a line too, an empty one; beyond it is an error.
pub(crate) fn slice(text: &str, line: Option<u32>, limit: Option<u32>) -> Result<&str, Sorry> {
    let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
    let start = behind(text, skipped).ok_or_else(|| beyond(text))?;
    let rest = &text[start..];
    let end = limit.and_then(|limit| behind(rest, limit as usize)).unwrap_or(rest.len());
    Ok(&rest[..end])
}

/// Where the text goes on behind this many terminators; nothing when it has fewer.
fn behind(text: &str, count: usize) -> Option<usize> {
    if count == 0 {
        return Some(0);
    }
    memchr::memchr_iter(b'\n', text.as_bytes()).nth(count - 1).map(|at| at + 1)
}

/// Says where the text ends: its last row, counted from 1, and the bytes in it.
fn beyond(text: &str) -> Sorry {
    let rows = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    let column = text.len() - memchr::memrchr(b'\n', text.as_bytes()).map_or(0, |at| at + 1);
    Sorry::params(format!("Attempting to read beyond the end of the file, line {rows}:{column}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn slices_put_together_are_the_text(text in "[ab\\n\\r]{0,40}", step in 1_u32..5) {
            let mut whole = String::new();
            let mut line = 1;
            while let Ok(piece) = slice(&text, Some(line), Some(step)) {
                whole.push_str(piece);
                line += step;
            }
            prop_assert_eq!(whole, text);
        }
    }
}
