//! Line endings taken over from another text. Owns the rule of when that is done: a text that has endings of its own but
//! LF is left alone, because somebody chose them.

use std::borrow::Cow;

use crate::lines;

/// A text with the line endings of another one: CRLF where that has nothing else, and this has nothing but LF.
#[must_use]
pub fn alike<'t>(text: &'t str, model: &str) -> Cow<'t, str> {
    let (own, wanted) = (lines::endings(text.as_bytes()), lines::endings(model.as_bytes()));
    let plain = own.lf > 0 && own.crlf == 0 && own.cr == 0;
    let windows = wanted.crlf > 0 && wanted.lf == 0 && wanted.cr == 0;
    if plain && windows { Cow::Owned(text.replace('\n', "\r\n")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_text_takes_over_and_only_from_a_clear_model() {
        for (text, model, expected) in [
            ("a\nb\n", "x\r\ny\r\n", "a\r\nb\r\n"),
            ("a\nb", "x\r\n", "a\r\nb"),
            ("a\r\nb\n", "x\r\ny\r\n", "a\r\nb\n"),
            ("a\rb\n", "x\r\n", "a\rb\n"),
            ("a\nb\n", "x\r\ny\n", "a\nb\n"),
            ("a\nb\n", "x\ny\n", "a\nb\n"),
            ("a\nb\n", "", "a\nb\n"),
            ("a", "x\r\n", "a"),
        ] {
            assert_eq!(alike(text, model), expected, "{text:?} {model:?}");
        }
    }
}
