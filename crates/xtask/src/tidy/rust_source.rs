//! Splits Rust source into code and comments, and finds the types it defines.
//!
//! Blanks replace all removed text, so that line numbers stay the same.

#[derive(Debug)]
pub(super) struct RustCodeAndComments {
    /// The source text with blanks in place of comments and the contents of strings.
    pub(super) code: String,
    /// The source text with blanks in place of everything but comments.
    pub(super) comments: String,
}

const DEFINING_WORDS: &[&str] = &["fn", "struct", "enum", "trait", "type", "mod", "const", "static", "union"];
const TYPE_KEYWORDS: &[&str] = &["struct", "enum", "trait", "type"];
/// The keywords that tell to which kind of item or statement a block in braces belongs.
const ITEM_KEYWORDS: &[&str] = &["fn", "struct", "enum", "trait", "impl", "mod", "union", "match", "let"];
/// A `type` item in an `impl` or `trait` block is an associated type.
const ASSOCIATED_TYPE_OWNERS: &[&str] = &["impl", "trait"];

impl RustCodeAndComments {
    pub(super) fn new(text: &str) -> Self {
        let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
        let mut rest = text;
        while !rest.is_empty() {
            let (kind, length) = next_piece(rest, code.chars().next_back());
            let (piece, after) = rest.split_at(length);
            match kind {
                RustTokenKind::Code => {
                    code.push_str(piece);
                    comments.push_str(&blank_out(piece));
                }
                RustTokenKind::Literal => {
                    code.push_str(&blank_out(piece));
                    comments.push_str(&blank_out(piece));
                }
                RustTokenKind::Comment => {
                    code.push_str(&blank_out(piece));
                    comments.push_str(piece);
                }
            }
            rest = after;
        }
        Self { code, comments }
    }

    pub(super) fn definitions(&self) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        for (index, line) in self.code.lines().enumerate() {
            let mut previous = "";
            for word in identifiers(line) {
                if DEFINING_WORDS.contains(&previous) && !DEFINING_WORDS.contains(&word) {
                    found.push((index + 1, word));
                }
                previous = word;
            }
        }
        found
    }

    /// Returns the types that the source defines, without associated types.
    pub(super) fn type_definitions(&self) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        // The item keyword of each open block, and that of the statement before the next brace.
        let mut blocks: Vec<&str> = Vec::new();
        let mut statement = "";
        let mut previous = "";
        for (index, line) in self.code.lines().enumerate() {
            for word in line.split_inclusive(|c: char| !is_identifier_char(c)) {
                let name = word.trim_end_matches(|c: char| !is_identifier_char(c));
                if !name.is_empty() {
                    let in_owner = blocks.last().is_some_and(|block| ASSOCIATED_TYPE_OWNERS.contains(block));
                    let is_type = TYPE_KEYWORDS.contains(&previous) && !(previous == "type" && in_owner);
                    if is_type && name.starts_with(char::is_uppercase) {
                        found.push((index + 1, name));
                    }
                    if statement.is_empty() && ITEM_KEYWORDS.contains(&name) {
                        statement = name;
                    }
                    previous = name;
                }
                match word.chars().next_back() {
                    Some('{') => blocks.push(std::mem::take(&mut statement)),
                    Some('}') => {
                        blocks.pop();
                        statement = "";
                    }
                    Some(';') => statement = "",
                    _ => {}
                }
            }
        }
        found
    }

    pub(super) fn has_doc_example(&self) -> bool {
        self.comments.lines().map(str::trim_start).any(|line| {
            let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
            text.is_some_and(|text| text.trim_start().starts_with("```"))
        })
    }
}

pub(super) fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !is_identifier_char(c)).filter(|word| !word.is_empty())
}

fn is_identifier_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

enum RustTokenKind {
    Code,
    Literal,
    Comment,
}

fn next_piece(rest: &str, previous: Option<char>) -> (RustTokenKind, usize) {
    if rest.starts_with("//") {
        return (RustTokenKind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (RustTokenKind::Comment, block_comment_length(rest));
    }
    let after_word = previous.is_some_and(is_identifier_char);
    if let Some(length) = raw_string_length(rest).filter(|_| !after_word) {
        return (RustTokenKind::Literal, length);
    }
    if rest.starts_with('"') {
        return (RustTokenKind::Literal, quoted_length(rest, '"'));
    }
    if let Some(length) = character_length(rest) {
        return (RustTokenKind::Literal, length);
    }
    (RustTokenKind::Code, rest.chars().next().map_or(rest.len(), char::len_utf8))
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

/// Returns the length of a raw string literal, such as `r"…"`, `br"…"` or `r#"…"#`.
fn raw_string_length(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r"].into_iter().find(|prefix| rest.starts_with(prefix))?;
    let hashes = rest[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let open = prefix.len() + hashes;
    rest[open..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let inside = open + 1;
    Some(rest[inside..].find(&close).map_or(rest.len(), |found| inside + found + close.len()))
}

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

/// Returns the length of a character literal, or `None` for a lifetime such as `'a`.
fn character_length(rest: &str) -> Option<usize> {
    let inside = rest.strip_prefix('\'')?;
    let first = inside.chars().next()?;
    if first == '\\' {
        return Some(quoted_length(rest, '\''));
    }
    inside[first.len_utf8()..].starts_with('\'').then(|| first.len_utf8() + 2)
}

fn blank_out(piece: &str) -> String {
    piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_separated_from_code() {
        let source = RustCodeAndComments::new(
            "let a = \"in \\\" text\"; // why\n/* one /* two */ still */ let b = r#\"raw \" text\"#;\nlet c = '\"'; let d: &'x str;\n",
        );
        assert!(!source.code.contains("text") && !source.code.contains("why") && !source.code.contains("still"));
        assert!(source.code.contains("let b") && source.code.contains("&'x str"));
        assert!(source.comments.contains("why") && source.comments.contains("still"));
        assert!(!source.comments.contains("let"));
        assert_eq!(source.code.lines().count(), 3);
    }

    #[test]
    fn identifier_ending_in_r_starts_no_raw_string() {
        let source = RustCodeAndComments::new("for\"x\" y");
        assert!(source.code.contains("for") && source.code.contains('y'));
    }

    #[test]
    fn definitions_are_found_with_their_lines() {
        let source =
            RustCodeAndComments::new("mod a;\npub(crate) const fn b() {}\nstruct C<'a>(&'a str); // struct D\n");
        assert_eq!(source.definitions(), [(1, "a"), (2, "b"), (3, "C")]);
    }

    #[test]
    fn type_definitions_are_found_with_their_lines() {
        let source = RustCodeAndComments::new(
            "mod a { type A = u8; }\npub(crate) fn b(x: impl B) { type Local = u8; }\nstruct C<'a>(&'a str); // struct D\n\
             impl<T> Iterator for C<T>\nwhere T: Copy {\n type Item = T;\n fn f() { struct E; } type Other = u8; }\nenum F {}",
        );
        assert_eq!(source.type_definitions(), [(1, "A"), (2, "Local"), (3, "C"), (7, "E"), (8, "F")]);
    }

    #[test]
    fn doc_comment_fence_is_an_example() {
        assert!(RustCodeAndComments::new("/// ```\n/// a();\n/// ```\nfn a() {}").has_doc_example());
        assert!(!RustCodeAndComments::new("// ```\nfn a() {}").has_doc_example());
    }
}
