//! Slips of typing that a quote shows: pasted line numbers, escapes written out.
//!
//! Owns how each is recognised and undone. Promises a candidate only; whether it is found in the text decides. Never
//! touches a quote in which the slip is not on every line that could show it.

use crate::lines;

/// Quote and new text with line numbers taken off, in the ways they can be meant; empty if there are none.
pub(super) fn unnumbered(old: &str, new: &str) -> Vec<(String, String)> {
    let Some(bare) = strip_all(old, Spacing::Kept) else { return Vec::new() };
    let bare_new = |spacing| strip_all(new, spacing).unwrap_or_else(|| new.to_owned());
    let mut ways = vec![(bare, bare_new(Spacing::Kept))];
    if let Some(closer) = strip_all(old, Spacing::OneTaken) {
        ways.push((closer, bare_new(Spacing::OneTaken)));
    }
    ways
}

/// What happens to a space behind the mark that ends a line number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// It belongs to the line.
    Kept,
    /// It belongs to the number.
    OneTaken,
}

/// Takes the number off every line, if every line has one and they count up.
fn strip_all(text: &str, spacing: Spacing) -> Option<String> {
    let mut last: Option<u64> = None;
    let mut bare = String::with_capacity(text.len());
    for line in lines::iter(text) {
        let (number, rest) = strip(line, spacing)?;
        if last.is_some_and(|last| number != last + 1) {
            return None;
        }
        last = Some(number);
        bare.push_str(rest);
    }
    last.map(|_| bare)
}

/// A line without the number in front: `  12\t`, `12→`, `12|`, `12:`, `12#VR:`.
fn strip(line: &str, spacing: Spacing) -> Option<(u64, &str)> {
    let line = line.trim_start_matches(' ');
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = line.get(..digits).filter(|digits| !digits.is_empty())?.parse().ok()?;
    let rest = &line[digits..];
    let rest = rest.strip_prefix(' ').filter(|rest| rest.starts_with('|')).unwrap_or(rest);
    let marked = rest.strip_prefix(['\t', '→', '|', ':']).or_else(|| {
        let (hash, behind) = rest.strip_prefix('#')?.split_once(':')?;
        (hash.len() <= 4 && hash.chars().all(|c| c.is_ascii_alphanumeric())).then_some(behind)
    });
    // An empty line shows as its number alone.
    let marked = marked.or_else(|| lines::split_terminator(rest).0.is_empty().then_some(rest))?;
    match spacing {
        Spacing::Kept => Some((number, marked)),
        Spacing::OneTaken => Some((number, marked.strip_prefix(' ').unwrap_or(marked))),
    }
}

/// Quote and new text with `\n` read as a newline in a quote of one line, and `\t` in front of a line as a tab.
pub(super) fn unescaped(old: &str, new: &str) -> Option<(String, String)> {
    let one_line = !old.contains(['\n', '\r']);
    let read = |text: &str| -> String {
        let text = if one_line { text.replace("\\r\\n", "\n").replace("\\n", "\n") } else { text.to_owned() };
        lines::iter(&text).map(leading_tabs).collect()
    };
    let bare = read(old);
    (bare != old).then(|| (bare, read(new)))
}

fn leading_tabs(line: &str) -> String {
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
    fn numbers_on_every_line_come_off() {
        for (text, kept) in [
            ("12\tfoo\n13\tbar\n", "foo\nbar\n"),
            ("     9\tfoo\n    10\tbar", "foo\nbar"),
            ("1→a\n2→\n3→b", "a\n\nb"),
            ("7: x\n8:   y\n", " x\n   y\n"),
            ("12#VR:foo\n13#K9:bar\n", "foo\nbar\n"),
            ("4 | a\n5 |\n", " a\n\n"),
        ] {
            assert_eq!(
                unnumbered(text, "new").first(),
                Some(&(kept.to_owned(), "new".to_owned())),
                "{text:?}"
            );
        }
        assert_eq!(unnumbered("7: x\n8: y\n", "7: z\n")[1], ("x\ny\n".to_owned(), "z\n".to_owned()));
    }

    #[test]
    fn what_may_be_text_stays() {
        for text in ["foo\n13\tbar", "12 foo", "3\ta\n3\tb\n", "", "1.5\tx", "key: 1\n"] {
            assert!(unnumbered(text, "").is_empty(), "{text:?}");
        }
    }

    #[test]
    fn escapes_are_read_where_a_model_slips() {
        let read = |old, new| unescaped(old, new);
        let pair = |old: &str, new: &str| Some((old.to_owned(), new.to_owned()));
        assert_eq!(read("a\\nb", "c\\nd"), pair("a\nb", "c\nd"));
        assert_eq!(read("\\t\\ta\n\\tb", "\\tc"), pair("\t\ta\n\tb", "\tc"));
        assert_eq!(read("x\\ty", "z"), None);
        assert_eq!(read("print(\"a\\n\")\nb", ""), None);
    }
}
