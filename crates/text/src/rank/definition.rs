//! Classification of a line for a name, by the text before and after it. The rules work on the bytes of one line,
//! without parser or index. They prefer "usage" in doubt: a missed definition is still found, only later.

use std::ops::Range;

use super::{Language, line_shape};

/// The role of a line for a name, the most relevant first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolRole {
    /// Defines it.
    Definition,
    /// Looks like a definition but may be something else: a member, a key, a heading.
    LikelyDefinition,
    /// Uses or mentions it.
    Usage,
    /// Imports it.
    Import,
}

/// Keywords directly before the name they define.
fn definition_keywords(language: Language) -> &'static [&'static str] {
    match language {
        Language::Rust => &["fn", "struct", "enum", "trait", "union", "type", "mod", "const", "static", "macro_rules!"],
        Language::Python => &["def", "class"],
        Language::JavaScript | Language::TypeScriptDeclarations => {
            &["function", "function*", "class", "interface", "enum", "namespace", "module", "type"]
        }
        Language::Go => &["func", "type", "var", "const"],
        Language::C | Language::CHeader => &["#define", "namespace", "concept"],
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

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The name that a hit ends in, extended to whole words; `None` if the hit has no word.
pub(super) fn name_at(line: &str, hit: &Range<usize>) -> Option<Range<usize>> {
    let bytes = line.as_bytes();
    let end = hit.end.min(bytes.len());
    let last = (hit.start..end).rev().find(|&at| is_word_byte(bytes[at]))?;
    let start = (0..=last).rev().take_while(|&at| is_word_byte(bytes[at])).last()?;
    let after = (last..bytes.len()).find(|&at| !is_word_byte(bytes[at])).unwrap_or(bytes.len());
    Some(start..after)
}

pub(super) fn is_whole_name(hit: &Range<usize>, name: &Range<usize>) -> bool {
    hit.start <= name.start && name.end <= hit.end
}

/// The hit, or a later one of the same text that is a whole name where this one is a part: `Parse` in `func (p
/// *Parser) Parse()`.
pub(super) fn prefer_whole_name(line: &str, hit: &Range<usize>) -> Range<usize> {
    let whole = |hit: &Range<usize>| name_at(line, hit).is_none_or(|name| is_whole_name(hit, &name));
    let text = line.get(hit.clone()).unwrap_or_default();
    if text.is_empty() || whole(hit) {
        return hit.clone();
    }
    let again = line[hit.end..].match_indices(text).map(|(at, _)| hit.end + at..hit.end + at + text.len());
    again.into_iter().find(whole).unwrap_or_else(|| hit.clone())
}

/// The role of a line for the name that a hit in it ends in.
pub fn role_of_hit(language: Language, line: &str, hit: &Range<usize>) -> SymbolRole {
    let hit = &prefer_whole_name(line, hit);
    let Some(name) = name_at(line, hit) else { return SymbolRole::Usage };
    if language.is_import(line) {
        return SymbolRole::Import;
    }
    if language.is_comment(line) {
        return SymbolRole::Usage;
    }
    // The name may occur twice, and the second occurrence be the definition: `typedef struct a a;`.
    let word = &line[name.clone()];
    let again = line[name.end..].find(word).map(|at| name.end + at).filter(|&at| {
        let bytes = line.as_bytes();
        !is_word_byte(bytes[at - 1]) && bytes.get(at + word.len()).is_none_or(|&byte| !is_word_byte(byte))
    });
    let first = role_of_name(language, line, &name);
    again.map_or(first, |at| first.min(role_of_name(language, line, &(at..at + word.len()))))
}

fn role_of_name(language: Language, line: &str, name: &Range<usize>) -> SymbolRole {
    let symbol = line_shape::NameInLine::new(line, name);
    if follows_definition_keyword(language, &symbol) {
        return SymbolRole::Definition;
    }
    match language {
        Language::Rust => line_shape::rust_role(&symbol),
        Language::Python => line_shape::python_role(&symbol),
        Language::JavaScript => line_shape::javascript_role(&symbol),
        Language::TypeScriptDeclarations => line_shape::typescript_declaration_role(&symbol),
        Language::Go => line_shape::go_role(&symbol),
        Language::C => line_shape::c_role(&symbol),
        Language::CHeader => line_shape::c_header_role(&symbol),
        Language::Java | Language::CSharp => line_shape::java_role(&symbol),
        Language::Ruby => line_shape::ruby_role(&symbol),
        Language::Php => line_shape::php_role(&symbol),
        Language::Shell => line_shape::shell_role(&symbol),
        Language::Markdown => line_shape::markdown_heading_role(&symbol),
        Language::Config => line_shape::config_key_role(&symbol),
        Language::Sql | Language::Other => SymbolRole::Usage,
    }
}

fn follows_definition_keyword(language: Language, symbol: &line_shape::NameInLine<'_>) -> bool {
    let before = symbol.before;
    let known = |token: &str| definition_keywords(language).contains(&token);
    if language == Language::Sql {
        let lower = before.to_ascii_lowercase();
        let token = lower.trim_end_matches(['"', '`', '[']).split_whitespace().last();
        return lower.trim_start().starts_with("create ") && token.is_some_and(known);
    }
    // Skips markers of class methods, generators and pointers to static data.
    let before = match language {
        Language::Ruby => before.strip_suffix("self.").unwrap_or(before),
        Language::JavaScript | Language::TypeScriptDeclarations => {
            before.strip_suffix('*').map_or(before, str::trim_end)
        }
        Language::Php => before.strip_suffix('&').unwrap_or(before),
        Language::Rust => before.strip_suffix("mut ").filter(|rest| rest.ends_with("static ")).unwrap_or(before),
        Language::Python
        | Language::Go
        | Language::C
        | Language::CHeader
        | Language::Java
        | Language::CSharp
        | Language::Shell
        | Language::Sql
        | Language::Markdown
        | Language::Config
        | Language::Other => before,
    };
    let spaced = before.ends_with([' ', '\t']) || before.len() < symbol.before.len();
    if !spaced || !before.split_whitespace().last().is_some_and(known) {
        return false;
    }
    // `def a.b` in Ruby, `fn a` inside a string: after an open quote nothing is defined.
    before.matches('"').count().is_multiple_of(2)
}

#[cfg(test)]
mod tests;
