//! Undoes typing slips in a quote: pasted line numbers and literal escapes.
//!
//! A corrected quote is only a candidate; a search in the text decides whether it is right.

use crate::lines;

/// Removes pasted line numbers from a quote, once with and once without the space after each number. No corrected quote
/// is returned if a line of the quote has no number.
pub(super) fn strip_line_numbers(old: &str, new: &str) -> Vec<(String, String)> {
    let strip_both = |strip_space| {
        let stripped_new = || strip_numbers_from_all_lines(new, strip_space).unwrap_or_else(|| new.to_owned());
        strip_numbers_from_all_lines(old, strip_space).map(|stripped_old| (stripped_old, stripped_new()))
    };
    let keep_space: StripSpaceFn = |content| content;
    let strip_space: StripSpaceFn = |content| content.strip_prefix(' ').unwrap_or(content);
    [keep_space, strip_space].into_iter().filter_map(strip_both).collect()
}

/// Strips what separates a line number from the content of its line.
type StripSpaceFn = fn(&str) -> &str;

fn strip_numbers_from_all_lines(text: &str, strip_space: StripSpaceFn) -> Option<String> {
    let mut last: Option<u64> = None;
    let mut stripped = String::with_capacity(text.len());
    for line in lines::iter(text) {
        let (number, rest) = strip_line_number(line, strip_space)?;
        if last.is_some_and(|last| number != last + 1) {
            return None;
        }
        last = Some(number);
        stripped.push_str(rest);
    }
    last.map(|_| stripped)
}

/// Splits off a line number with one of the forms ` 12\t`, `12→`, `12|`, `12:` or `12#VR:`.
fn strip_line_number(line: &str, strip_space: StripSpaceFn) -> Option<(u64, &str)> {
    let line = line.trim_start_matches(' ');
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = line.get(..digits).filter(|digits| !digits.is_empty())?.parse().ok()?;
    let rest = &line[digits..];
    let rest = rest.strip_prefix(' ').filter(|rest| rest.starts_with('|')).unwrap_or(rest);
    let content = rest.strip_prefix(['\t', '→', '|', ':']).or_else(|| {
        let (hash, content) = rest.strip_prefix('#')?.split_once(':')?;
        (hash.len() <= 4 && hash.chars().all(|c| c.is_ascii_alphanumeric())).then_some(content)
    });
    // Some programs display an empty line as its number, without a separator.
    let content = content.or_else(|| lines::split_terminator(rest).0.is_empty().then_some(rest))?;
    Some((number, strip_space(content)))
}

/// Decodes `\n` in a quote with one line, and `\t` at the start of a line. The result is `None` if the quote has no
/// literal escape to decode.
pub(super) fn decode_escapes(old: &str, new: &str) -> Option<(String, String)> {
    let one_line = !old.contains(['\n', '\r']);
    let decode = |text: &str| -> String {
        let text = if one_line { text.replace("\\r\\n", "\n").replace("\\n", "\n") } else { text.to_owned() };
        lines::iter(&text).map(decode_leading_tabs).collect()
    };
    let decoded = decode(old);
    (decoded != old).then(|| (decoded, decode(new)))
}

pub(crate) fn decode_leading_tabs(line: &str) -> String {
    let mut rest = line;
    let mut indent = String::new();
    loop {
        if let Some(next) = rest.strip_prefix("\\t") {
            indent.push('\t');
            rest = next;
        } else if let Some(next) = rest.strip_prefix([' ', '\t']) {
            indent.push_str(&rest[..1]);
            rest = next;
        } else {
            return indent + rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_numbers_present_on_every_line() {
        for (text, stripped) in [
            ("12\tfoo\n13\tbar\n", "foo\nbar\n"),
            ("     9\tfoo\n    10\tbar", "foo\nbar"),
            ("1→a\n2→\n3→b", "a\n\nb"),
            ("7: x\n8:   y\n", " x\n   y\n"),
            ("12#VR:foo\n13#K9:bar\n", "foo\nbar\n"),
            ("4 | a\n5 |\n", " a\n\n"),
        ] {
            assert_eq!(
                strip_line_numbers(text, "new").first(),
                Some(&(stripped.to_owned(), "new".to_owned())),
                "{text:?}"
            );
        }
        assert_eq!(strip_line_numbers("7: x\n8: y\n", "7: z\n")[1], ("x\ny\n".to_owned(), "z\n".to_owned()));
    }

    #[test]
    fn keeps_numbers_that_may_be_text() {
        for text in ["foo\n13\tbar", "12 foo", "3\ta\n3\tb\n", "", "1.5\tx", "key: 1\n"] {
            assert!(strip_line_numbers(text, "").is_empty(), "{text:?}");
        }
    }

    #[test]
    fn decodes_escapes_a_model_wrote_by_mistake() {
        let pair = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
        assert_eq!(decode_escapes("a\\nb", "c\\nd"), pair("a\nb", "c\nd"));
        assert_eq!(decode_escapes("\\t\\ta\n\\tb", "\\tc"), pair("\t\ta\n\tb", "\tc"));
        assert_eq!(decode_escapes("x\\ty", "z"), None);
        assert_eq!(decode_escapes("print(\"a\\n\")\nb", ""), None);
    }
}
