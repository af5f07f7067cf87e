//! Rust text taken apart: code, comments, and the names that are defined.
//!
//! Owns a small lexer that knows comments, strings and characters and nothing else. Promises that line numbers stay:
//! what is taken out is replaced by blanks. Never tries to understand Rust beyond that.

/// One Rust file, taken apart.
#[derive(Debug)]
pub(super) struct Source {
    /// The text with comments and the insides of strings blanked.
    pub(super) code: String,
    /// The text with everything but comments blanked.
    pub(super) comments: String,
}

/// What precedes a name that is being defined.
const DEFINING_WORDS: &[&str] = &["fn", "struct", "enum", "trait", "type", "mod", "const", "static", "union"];

impl Source {
    pub(super) fn new(text: &str) -> Self {
        let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
        let mut rest = text;
        while !rest.is_empty() {
            let (kind, length) = next_piece(rest, code.chars().next_back());
            let (piece, after) = rest.split_at(length);
            match kind {
                Piece::Code => {
                    code.push_str(piece);
                    comments.push_str(&blanked(piece));
                }
                Piece::Literal => {
                    code.push_str(&blanked(piece));
                    comments.push_str(&blanked(piece));
                }
                Piece::Comment => {
                    code.push_str(&blanked(piece));
                    comments.push_str(piece);
                }
            }
            rest = after;
        }
        Self { code, comments }
    }

    /// Every name that a definition introduces, with its line.
    pub(super) fn definitions(&self) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        for (index, line) in self.code.lines().enumerate() {
            let mut previous = "";
            for word in words(line) {
                if DEFINING_WORDS.contains(&previous) && !DEFINING_WORDS.contains(&word) {
                    found.push((index + 1, word));
                }
                previous = word;
            }
        }
        found
    }

    /// Whether a documentation comment opens a fence.
    pub(super) fn has_doc_example(&self) -> bool {
        self.comments.lines().map(str::trim_start).any(|line| {
            let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            text.is_some_and(|text| text.trim_start().starts_with("```"))
        })
    }
}

/// The identifiers of a piece of code, in order.
pub(super) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

enum Piece {
    Code,
    Literal,
    Comment,
}

/// What stands at the start of `rest`, and how many bytes of it.
fn next_piece(rest: &str, previous: Option<char>) -> (Piece, usize) {
    if rest.starts_with("//") {
        return (Piece::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Piece::Comment, block_comment_length(rest));
    }
    let after_word = previous.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if let Some(length) = raw_string_length(rest).filter(|_| !after_word) {
        return (Piece::Literal, length);
    }
    if rest.starts_with('"') {
        return (Piece::Literal, quoted_length(rest, '"'));
    }
    if let Some(length) = character_length(rest) {
        return (Piece::Literal, length);
    }
    (Piece::Code, rest.chars().next().map_or(rest.len(), char::len_utf8))
}

/// Block comments nest.
fn block_comment_length(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = rest[at..].find(['/', '*']) {
        at += found;
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth = depth.saturating_sub(1);
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#` and the byte and C forms of them.
fn raw_string_length(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let open = prefix.len() + hashes;
    rest[open..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let inside = open + 1;
    Some(rest[inside..].find(&close).map_or(rest.len(), |found| inside + found + close.len()))
}

/// A quoted literal, its escapes passed over.
fn quoted_length(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// A character literal; nothing for a lifetime.
fn character_length(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some(quoted_length(rest, '\''));
    }
    inside[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

/// The same lines with nothing on them.
fn blanked(piece: &str) -> String {
    piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_told_from_code() {
        let source = Source::new(
            "let a = \"in \\\" text\"; // why\n/* one /* two */ still */ let b = r#\"raw \" text\"#;\nlet c = '\"'; let d: &'x str;\n",
        );
        assert!(
            !source.code.contains("text") && !source.code.contains("why") && !source.code.contains("still")
        );
        assert!(source.code.contains("let b") && source.code.contains("&'x str"));
        assert!(source.comments.contains("why") && source.comments.contains("still"));
        assert!(!source.comments.contains("let"));
        assert_eq!(source.code.lines().count(), 3);
    }

    #[test]
    fn a_word_that_ends_in_r_opens_no_raw_string() {
        let source = Source::new("for\"x\" y");
        assert!(source.code.contains("for") && source.code.contains('y'));
    }

    #[test]
    fn definitions_are_found_with_their_lines() {
        let source = Source::new("mod a;\npub(crate) const fn b() {}\nstruct C<'a>(&'a str); // struct D\n");
        assert_eq!(source.definitions(), [(1, "a"), (2, "b"), (3, "C")]);
    }

    #[test]
    fn a_fence_in_documentation_is_an_example() {
        assert!(Source::new("/// ```\n/// a();\n/// ```\nfn a() {}").has_doc_example());
        assert!(!Source::new("// ```\nfn a() {}").has_doc_example());
    }
}
