//! Recognises definitions by the shape of the line, if no keyword stands directly before the name.

use std::ops::Range;

use super::definition::SymbolRole;
use crate::is_listed;

#[derive(Clone, Copy)]
pub(super) struct HitLineSplitAroundName<'a> {
    line: &'a str,
    name: &'a str,
    pub(super) before: &'a str,
    after: &'a str,
}

impl<'a> HitLineSplitAroundName<'a> {
    pub(super) fn new(line: &'a str, name: &Range<usize>) -> Self {
        let line = line.trim_end();
        let end = name.end.min(line.len());
        let start = name.start.min(end);
        Self { line, name: &line[start..end], before: &line[..start], after: &line[end..] }
    }

    fn indentation(&self) -> usize {
        self.line.len() - self.line.trim_start().len()
    }

    fn next(&self) -> &'a str {
        self.after.trim_start()
    }

    fn starts_upper(&self) -> bool {
        self.name.starts_with(|first: char| first.is_uppercase())
    }

    fn has_only_words_before(&self, list: &str) -> bool {
        self.before.split_whitespace().all(|word| is_listed(list, word))
    }

    /// Whether the text before the name consists only of type parts, such as names, pointers and generics.
    fn has_type_before(&self) -> bool {
        let is_type_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_ \t*&:<>[],~@?.".contains(&byte);
        self.before.bytes().all(is_type_byte)
            && !self.before.split_whitespace().any(|word| is_listed(USAGE_KEYWORDS, word))
            && !self.before.trim_end().ends_with([',', '.'])
    }

    /// Most macros have names without lower-case letters.
    fn is_upper_case(&self) -> bool {
        self.name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    }

    fn without_first_word(&self, first: &str) -> Self {
        let before = self.before.trim_start();
        let before = before.strip_prefix(first).map_or(self.before, str::trim_start);
        Self { before, ..*self }
    }

    /// Returns the text after the argument list of the name, if the list ends in the line.
    fn after_arguments(&self) -> Option<&'a str> {
        let open = self.after.find('(')?;
        let mut depth = 0usize;
        for (at, byte) in self.after.bytes().enumerate().skip(open) {
            match byte {
                b'(' => depth += 1,
                b')' if depth == 1 => return Some(self.after[at + 1..].trim_start()),
                b')' => depth -= 1,
                _ => {}
            }
        }
        None
    }
}

/// A name after one of the keywords, such as `return`, is used and not defined.
const USAGE_KEYWORDS: &str = "return new else throw case goto delete await yield in not and or extern assert do";

fn definition_if(holds: bool) -> SymbolRole {
    if holds { SymbolRole::Definition } else { SymbolRole::Usage }
}

fn likely_definition_if(holds: bool) -> SymbolRole {
    if holds { SymbolRole::LikelyDefinition } else { SymbolRole::Usage }
}

pub(super) fn rust_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let open = symbol.before.trim_start();
    let public = open.starts_with("pub");
    if symbol.indentation() == 0 || !(open.is_empty() || (public && !open.contains(['=', ':', '{']))) {
        return SymbolRole::Usage;
    }
    let next = symbol.next();
    if let Some(kind) = next.strip_prefix(':').filter(|rest| !rest.starts_with(':')) {
        let kind = kind.trim_start();
        let typed = kind.starts_with(|first: char| first.is_uppercase() || "&[(*".contains(first))
            || is_listed(PRIMITIVES, kind.trim_end_matches(','));
        return likely_definition_if(symbol.line.ends_with(',') && (public || typed));
    }
    let ends = next.is_empty() || next == "," || next.starts_with(", //");
    let carries = next.starts_with(['(', '{', '=']) && !next.starts_with("=>") && symbol.line.ends_with([',', '{']);
    likely_definition_if(symbol.starts_upper() && (ends || carries))
}

const PRIMITIVES: &str = "u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize bool char str f32 f64";

pub(super) fn python_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let next = symbol.next();
    let assigned = (next.starts_with('=') && !next.starts_with("==") && symbol.after.starts_with(' '))
        || (next.starts_with(':') && !next.starts_with(":=") && !symbol.line.ends_with(','));
    match symbol.before.trim_start() {
        "" if symbol.indentation() == 0 => definition_if(assigned),
        "" => likely_definition_if(assigned && (symbol.indentation() == 4 || !next.starts_with(": "))),
        "self." => likely_definition_if(assigned),
        _ => SymbolRole::Usage,
    }
}

const MEMBER_MODIFIERS: &str = "\
    export default public private protected readonly abstract override static async get set * declare #";

pub(super) fn javascript_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    const CONTROL: &str = "if for while switch catch function return with";
    let next = symbol.next();
    let declared = symbol.before.split_whitespace().last().is_some_and(|word| matches!(word, "const" | "let" | "var"));
    let value = next.strip_prefix(['=', ':']).map(str::trim_start).unwrap_or_default();
    let callable = ["function", "async ", "async(", "class ", "class{"].iter().any(|start| value.starts_with(start))
        || (value.contains("=>") && value.starts_with(|first: char| first == '(' || first.is_alphanumeric()));
    // Bundlers write an export as a function that returns the name.
    let returns_name = value.trim_end_matches([',', ';']).trim_end().ends_with(&format!("=> {}", symbol.name));
    if declared || is_further_declarator(symbol) {
        let is_certain = symbol.indentation() == 0 || callable;
        return if is_certain { SymbolRole::Definition } else { SymbolRole::LikelyDefinition };
    }
    let before = symbol.before.trim_start();
    let is_path_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$()[]'\"/-".contains(&byte);
    if before.ends_with('.') && before.bytes().all(is_path_byte) {
        let assigned = next.starts_with('=') && !next.starts_with("==") && !next.starts_with("=>");
        return if assigned && matches!(before, "exports." | "module.exports.") {
            export_role(symbol.name, value)
        } else if assigned && callable {
            SymbolRole::Definition
        } else {
            likely_definition_if(assigned && symbol.before.contains("this."))
        };
    }
    if !symbol.has_only_words_before(MEMBER_MODIFIERS) || is_listed(CONTROL, symbol.name) {
        return SymbolRole::Usage;
    }
    if next.starts_with(['(', '<']) {
        let rest = symbol.after_arguments().unwrap_or_default();
        // A colon after the arguments starts a return type, which only a declaration can have.
        return definition_if(rest.starts_with(['{', ':']));
    }
    if callable {
        return definition_if(!returns_name);
    }
    let member = next.starts_with(':') || next.starts_with("?:");
    likely_definition_if(
        member && (symbol.line.ends_with(';') || value == "{")
            || next.starts_with(".prototype =")
            || (symbol.starts_upper() && next.starts_with('=') && symbol.line.ends_with(',')),
    )
}

/// Whether the name is a further declarator of a statement, like `b` in `const a = 1, b = 2`. The line may start with
/// the closing bracket of the previous declarator, as in `}, b = 2`.
fn is_further_declarator(symbol: &HitLineSplitAroundName<'_>) -> bool {
    let open = symbol.before.trim_start();
    let first = open.split_whitespace().next().unwrap_or_default();
    let depth = open.bytes().fold(0i32, |depth, byte| match byte {
        b'(' | b'[' | b'{' => depth + 1,
        b')' | b']' | b'}' => depth - 1,
        _ => depth,
    });
    let level = match first {
        "const" | "let" | "var" => 0,
        "}," | "]," | ")," => -1,
        _ => return false,
    };
    depth == level && open.trim_end().ends_with(',') && symbol.next().starts_with("= ")
}

/// A JavaScript export such as `exports.parse = lib.parse`, whose value ends in the exported name, is a likely
/// definition of that name. An export of `void 0` or of another export is a usage of the name.
fn export_role(name: &str, value: &str) -> SymbolRole {
    let value = value.trim_end_matches(';').trim_end();
    if value == "void 0" || value.starts_with("exports.") {
        return SymbolRole::Usage;
    }
    let path = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte));
    if path && value.rsplit('.').next() == Some(name) { SymbolRole::LikelyDefinition } else { SymbolRole::Definition }
}

/// In a TypeScript declaration file, every name with arguments is a definition, because the file contains no calls.
pub(super) fn typescript_declaration_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let declared = symbol.before.split_whitespace().last().is_some_and(|word| matches!(word, "const" | "let" | "var"));
    let arguments = symbol.next().starts_with(['(', '<']) && symbol.has_only_words_before(MEMBER_MODIFIERS);
    if declared || arguments { SymbolRole::Definition } else { javascript_role(symbol) }
}

pub(super) fn go_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let open = symbol.before.trim_start();
    if open.starts_with("func (") && open.ends_with(") ") && symbol.after.starts_with(['(', '[']) {
        return SymbolRole::Definition;
    }
    if !open.is_empty() || symbol.indentation() != 1 {
        return SymbolRole::Usage;
    }
    let next = symbol.next();
    if ["struct", "interface", "func("].iter().any(|kind| next.starts_with(kind)) {
        return SymbolRole::Definition;
    }
    if next.starts_with('(') {
        return likely_definition_if(symbol.starts_upper() && is_go_declaration(symbol));
    }
    // In Go, no statement starts with two words, so the line is a declaration.
    let pair = symbol.after.starts_with([' ', '\t'])
        && next.starts_with(|first: char| first.is_alphabetic() || "*[_".contains(first));
    let member = symbol.starts_upper() && (next.is_empty() || !next.starts_with(['.', ',', ':', ')']));
    likely_definition_if(pair || member || (next.starts_with("= ") && symbol.after.starts_with(' ')))
}

const GO_TYPES: &str = "... * [] map[ func( chan interface{ string int uint float complex rune bool byte error any";

/// A Go interface method differs from a call by a return type, typed arguments or no arguments.
fn is_go_declaration(symbol: &HitLineSplitAroundName<'_>) -> bool {
    let Some(rest) = symbol.after_arguments() else { return !symbol.line.ends_with(['{', '(']) };
    let end = symbol.after.len() - rest.len();
    let arguments = symbol.after[..end].trim().trim_start_matches('(').trim_end_matches(')');
    let is_type = |argument: &str| {
        let argument = argument.trim();
        let named = argument.contains(' ') && !argument.contains(['"', '+', '&']);
        let upper = argument.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase));
        named || upper || GO_TYPES.split_ascii_whitespace().any(|start| argument.starts_with(start))
    };
    match rest.chars().next() {
        None => arguments.is_empty() || arguments.split(',').any(is_type),
        Some(first) => first.is_alphabetic() || "*[(".contains(first) || rest.starts_with("//"),
    }
}

pub(super) fn c_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let comment = symbol.before.find("*/").map_or("", |end| symbol.before[..end + 2].trim_start());
    let symbol = &if comment.starts_with("/*") { symbol.without_first_word(comment) } else { *symbol };
    let symbol = &symbol.without_first_word("extern \"C\"");
    let open = symbol.before.trim_start();
    let next = symbol.next();
    let last = open.split_whitespace().last().unwrap_or_default();
    if open.starts_with('#') {
        return definition_if(open.trim_start_matches('#').trim() == "define");
    }
    if matches!(last, "struct" | "class" | "enum" | "union") {
        let begins = next.is_empty() || next.starts_with('{') || next.starts_with("final");
        return definition_if(begins || (next.starts_with(':') && !next.starts_with("::")));
    }
    if next.starts_with(';') && (open.starts_with("typedef ") || open.trim_end() == "}") {
        return SymbolRole::Definition;
    }
    if last == "using" {
        return definition_if(next.starts_with('='));
    }
    if open.starts_with("namespace ") && open.ends_with("::") {
        return SymbolRole::Definition;
    }
    let outermost = symbol.indentation() == 0;
    if next.starts_with('(') {
        let body = !symbol.line.ends_with(';') && !symbol.line.ends_with('\\');
        if open.is_empty() && !outermost {
            return constructor_role(symbol);
        }
        if open.is_empty() {
            return likely_definition_if(body && !symbol.is_upper_case());
        }
        return definition_if(body && symbol.has_type_before() && (outermost || symbol.line.ends_with(['{', '}'])));
    }
    if outermost && !open.is_empty() && symbol.has_type_before() && !open.starts_with("extern ") {
        return definition_if(next.starts_with(['=', '[', ';']) && !next.starts_with("=="));
    }
    let ends = next.is_empty() || next.starts_with([',']) || next.starts_with("/*") || next.starts_with("//");
    likely_definition_if(
        !outermost && open.is_empty() && (ends || (next.starts_with("= ") && symbol.line.ends_with(','))),
    )
}

/// A function in a header without a body is only a likely definition, because it is probably defined in another file.
pub(super) fn c_header_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let role = c_role(symbol);
    let has_body = symbol.line.ends_with(['{', '}']) || symbol.before.split_whitespace().any(|word| word == "inline");
    let function = symbol.next().starts_with('(') && !symbol.before.trim_start().starts_with('#');
    if role == SymbolRole::Definition && function && !has_body { SymbolRole::LikelyDefinition } else { role }
}

/// A C++ constructor has a capitalised name, arguments, and a body or an initialiser list.
fn constructor_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    if !symbol.starts_upper() || symbol.is_upper_case() {
        return SymbolRole::Usage;
    }
    match symbol.after_arguments() {
        Some(rest) if rest.starts_with(['{', ':']) => SymbolRole::Definition,
        Some("") => SymbolRole::LikelyDefinition,
        Some(_) | None => SymbolRole::Usage,
    }
}

pub(super) fn java_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    const MODIFIERS: &str = "\
        public private protected internal static final abstract virtual override readonly const sealed async \
        synchronized native val var open";
    let next = symbol.next();
    let first = symbol.before.split_whitespace().next().unwrap_or_default();
    if is_listed(MODIFIERS, first) && symbol.has_type_before() {
        return definition_if(next.is_empty() || next.starts_with(['(', '=', ';', '{', ':', '<']));
    }
    if symbol.before.trim().is_empty() {
        let constant = symbol.starts_upper() && (next.starts_with([',', ';']) || next.is_empty());
        return likely_definition_if(
            constant || (symbol.starts_upper() && next.starts_with('(') && symbol.line.ends_with([',', '{', ';'])),
        );
    }
    if !symbol.has_type_before() {
        return SymbolRole::Usage;
    }
    if next.starts_with('(') {
        // A type precedes the name, so the line is not a call.
        return definition_if(symbol.line.ends_with(['{', '}', ';']));
    }
    likely_definition_if(next.starts_with(['=', ';']) && !next.starts_with("=="))
}

pub(super) fn ruby_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let next = symbol.next();
    let open = symbol.before.trim_start();
    if open.is_empty() {
        return definition_if(symbol.starts_upper() && next.starts_with("= "));
    }
    likely_definition_if(open.starts_with("attr_") && open.ends_with(':'))
}

pub(super) fn php_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let open = symbol.before.trim_start();
    if open.starts_with("define(") {
        return SymbolRole::Definition;
    }
    let next = symbol.next();
    likely_definition_if(open.ends_with('$') && (next.starts_with("= ") || next.starts_with(';')))
}

pub(super) fn shell_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    match symbol.before.trim_start() {
        "" => definition_if(
            symbol.next().starts_with("()") || (symbol.indentation() == 0 && symbol.after.starts_with('=')),
        ),
        "export " | "readonly " | "declare " => definition_if(symbol.after.starts_with('=')),
        _ => SymbolRole::Usage,
    }
}

pub(super) fn markdown_heading_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    likely_definition_if(symbol.line.starts_with('#') || symbol.line.starts_with("= "))
}

pub(super) fn config_key_role(symbol: &HitLineSplitAroundName<'_>) -> SymbolRole {
    let open = symbol.before.trim_start().trim_start_matches(['"', '\'', '-', ' ']);
    let next = symbol.after.trim_start_matches(['"', '\'']).trim_start();
    likely_definition_if(
        (open.is_empty() && next.starts_with([':', '='])) || (open.starts_with('[') && symbol.line.ends_with(']')),
    )
}
