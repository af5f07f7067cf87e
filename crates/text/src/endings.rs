//! Adoption of line endings from another text. Owns the rule: only a text with LF endings is converted; other endings
//! were chosen on purpose and stay.

use std::borrow::Cow;

use crate::lines;

/// `text` with CRLF endings, if `model` has only CRLF and `text` has only LF; otherwise unchanged.
#[must_use]
pub fn adopt_line_endings<'t>(text: &'t str, model: &str) -> Cow<'t, str> {
    let (text_endings, model_endings) = (lines::count_endings(text.as_bytes()), lines::count_endings(model.as_bytes()));
    let plain = text_endings.lf > 0 && text_endings.crlf == 0 && text_endings.cr == 0;
    let is_crlf = model_endings.crlf > 0 && model_endings.lf == 0 && model_endings.cr == 0;
    if plain && is_crlf { Cow::Owned(text.replace('\n', "\r\n")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adopts_only_uniform_line_endings() {
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
            assert_eq!(adopt_line_endings(text, model), expected, "{text:?} {model:?}");
        }
    }
}
