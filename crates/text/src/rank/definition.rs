//! Whether a line defines a name, by what stands before and after it. Byte-level rules for one line: no parser, no
//! index. Rules err towards "it is used here": a definition that is missed is still found, only later.

use std::ops::Range;

use super::{Language, shape};

/// What a line is to a name, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Defines it.
    Definition,
    /// Has the shape of a definition and of other things: a member, a key, a heading.
    Likely,
    /// Uses or mentions it.
    Usage,
    /// Brings it in from elsewhere.
    Import,
}

/// Words that stand right before a name they define.
fn keywords(language: Language) -> &'static [&'static str] {
    match language {
        Language::Rust => {
            &["fn", "struct", "enum", "trait", "union", "type", "mod", "const", "static", "macro_rules!"]
        }
        Language::Python => &["def", "class"],
        Language::Script | Language::Declarations => {
            &["function", "function*", "class", "interface", "enum", "namespace", "module", "type"]
        }
        Language::Go => &["func", "type", "var", "const"],
        Language::C | Language::Header => &["#define", "namespace", "concept"],
        Language::Java | Language::CSharp => &[
            "class",
            "interface",
            "enum",
            "record",
            "@interface",
            "namespace",
            "struct",
            "delegate",
            "object",
            "trait",
            "fun",
            "def",
        ],
        Language::Ruby => &["def", "class", "module"],
        Language::Php => &["function", "class", "interface", "trait", "enum", "const", "namespace"],
        Language::Shell => &["function", "alias"],
        Language::Sql => &[
            "table",
            "view",
            "function",
            "procedure",
            "index",
            "trigger",
            "type",
            "exists",
            "schema",
            "database",
            "domain",
            "sequence",
        ],
        Language::Markdown | Language::Config => &[],
        Language::Other => &[
            "fn",
            "func",
            "function",
            "fun",
            "def",
            "class",
            "struct",
            "enum",
            "interface",
            "trait",
            "type",
            "module",
            "sub",
            "proc",
            "defun",
            "defn",
            "(defun",
            "(defn",
            "(define",
            "protocol",
            "let",
            "val",
        ],
    }
}

/// Whether a byte can be part of a name.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The name that a hit ends in, widened to whole words; nothing when the hit holds no word.
pub(super) fn name_at(line: &str, hit: &Range<usize>) -> Option<Range<usize>> {
    let bytes = line.as_bytes();
    let end = hit.end.min(bytes.len());
    let last = (hit.start..end).rev().find(|&at| is_word(bytes[at]))?;
    let start = (0..=last).rev().take_while(|&at| is_word(bytes[at])).last()?;
    let after = (last..bytes.len()).find(|&at| !is_word(bytes[at])).unwrap_or(bytes.len());
    Some(start..after)
}

/// Whether a hit covers the name that it ends in.
pub(super) fn is_whole(hit: &Range<usize>, name: &Range<usize>) -> bool {
    hit.start <= name.start && name.end <= hit.end
}

/// The hit itself, or a later one of the same text that is a whole name where this one is a part: `Parse` in
/// `func (p *Parser) Parse()`.
pub(super) fn settled(line: &str, hit: &Range<usize>) -> Range<usize> {
    let whole = |hit: &Range<usize>| name_at(line, hit).is_none_or(|name| is_whole(hit, &name));
    let text = line.get(hit.clone()).unwrap_or_default();
    if text.is_empty() || whole(hit) {
        return hit.clone();
    }
    let again = line[hit.end..].match_indices(text).map(|(at, _)| hit.end + at..hit.end + at + text.len());
    again.into_iter().find(whole).unwrap_or_else(|| hit.clone())
}

/// What a line is to the name that a hit in it ends in.
pub fn role(language: Language, line: &str, hit: &Range<usize>) -> Role {
    let hit = &settled(line, hit);
    let Some(name) = name_at(line, hit) else { return Role::Usage };
    if language.is_import(line) {
        return Role::Import;
    }
    if language.is_comment(line) {
        return Role::Usage;
    }
    // The same name may stand twice, and be defined by the second: `typedef struct a a;`.
    let word = &line[name.clone()];
    let again = line[name.end..].find(word).map(|at| name.end + at).filter(|&at| {
        let bytes = line.as_bytes();
        !is_word(bytes[at - 1]) && bytes.get(at + word.len()).is_none_or(|&byte| !is_word(byte))
    });
    let first = role_of(language, line, &name);
    again.map_or(first, |at| first.min(role_of(language, line, &(at..at + word.len()))))
}

fn role_of(language: Language, line: &str, name: &Range<usize>) -> Role {
    let place = shape::Place::new(line, name);
    if follows_keyword(language, &place) {
        return Role::Definition;
    }
    match language {
        Language::Rust => shape::rust(&place),
        Language::Python => shape::python(&place),
        Language::Script => shape::script(&place),
        Language::Declarations => shape::declarations(&place),
        Language::Go => shape::go(&place),
        Language::C => shape::c(&place),
        Language::Header => shape::header(&place),
        Language::Java | Language::CSharp => shape::java(&place),
        Language::Ruby => shape::ruby(&place),
        Language::Php => shape::php(&place),
        Language::Shell => shape::shell(&place),
        Language::Markdown => shape::heading(&place),
        Language::Config => shape::key(&place),
        Language::Sql | Language::Other => Role::Usage,
    }
}

fn follows_keyword(language: Language, place: &shape::Place<'_>) -> bool {
    let before = place.before;
    let known = |token: &str| keywords(language).contains(&token);
    if language == Language::Sql {
        let lower = before.to_ascii_lowercase();
        let token = lower.trim_end_matches(['"', '`', '[']).split_whitespace().last();
        return lower.trim_start().starts_with("create ") && token.is_some_and(known);
    }
    // A method of the class itself, a generator, a pointer to what is static.
    let before = match language {
        Language::Ruby => before.strip_suffix("self.").unwrap_or(before),
        Language::Script | Language::Declarations => before.strip_suffix('*').map_or(before, str::trim_end),
        Language::Php => before.strip_suffix('&').unwrap_or(before),
        Language::Rust => {
            before.strip_suffix("mut ").filter(|rest| rest.ends_with("static ")).unwrap_or(before)
        }
        Language::Python
        | Language::Go
        | Language::C
        | Language::Header
        | Language::Java
        | Language::CSharp
        | Language::Shell
        | Language::Sql
        | Language::Markdown
        | Language::Config
        | Language::Other => before,
    };
    let spaced = before.ends_with([' ', '\t']) || before.len() < place.before.len();
    if !spaced || !before.split_whitespace().last().is_some_and(known) {
        return false;
    }
    // `def a.b` in Ruby, `fn a` inside a text: a quote that is still open means that nothing is defined.
    before.matches('"').count().is_multiple_of(2)
}

#[cfg(test)]
mod tests;
