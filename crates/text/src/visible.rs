//! Makes text safe to display.
//!
//! Deceptive characters make a text look different from its content: control, reordering and invisible characters.
//! Escaped text is only for display: it must not be parsed, compared or written to a file.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Escapes invisible and misleading characters in the form `\u{202e}`; newlines and tabs stay as they are.
pub fn escape_deceptive(text: &str) -> Cow<'_, str> {
    escape(text, |c| c != '\n' && c != '\t' && is_deceptive(c))
}

/// Escapes like [`escape_deceptive`], but also escapes newlines and tabs, for text that must stay on one line.
pub fn escape_deceptive_line(text: &str) -> Cow<'_, str> {
    escape(text, is_deceptive)
}

/// Whether the character is a control character, reorders text, or is invisible.
pub fn is_deceptive(c: char) -> bool {
    c.is_control() || is_reordering(c) || is_invisible(c)
}

/// The controls of the bidirectional algorithm change the order of neighbouring text.
fn is_reordering(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Invisible characters are default-ignorable code points, filler characters, and the line and paragraph separators.
fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{00ad}'
            | '\u{034f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2028}'..='\u{2029}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn escape(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&is_escaped) else { return Cow::Borrowed(text) };
    let (clean, rest) = text.split_at(first);
    let mut escaped = String::with_capacity(text.len() + 16);
    escaped.push_str(clean);
    for c in rest.chars() {
        if is_escaped(c) {
            // Writing to a `String` cannot fail.
            write!(escaped, "\\u{{{:x}}}", u32::from(c)).unwrap_or_default();
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(escape_deceptive("a\tb\nçé漢字 😀"), Cow::Borrowed(_)));
    }

    #[test]
    fn deceptive_characters_are_escaped() {
        assert_eq!(escape_deceptive("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(escape_deceptive("\x1b[31m\u{7f}\u{85}\r\n"), "\\u{1b}[31m\\u{7f}\\u{85}\\u{d}\n");
        assert_eq!(escape_deceptive("\u{feff}x\u{200b}y\u{e0041}"), "\\u{feff}x\\u{200b}y\\u{e0041}");
        assert_eq!(escape_deceptive_line("a\nb\tc"), "a\\u{a}b\\u{9}c");
    }
}
