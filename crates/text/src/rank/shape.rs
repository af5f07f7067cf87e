//! Definitions without a keyword right before the name: the shape of the line decides. One function per language
//! family; each says what it can be sure of and what is merely likely.

use std::ops::Range;

use super::definition::Role;

/// A name in its line.
pub(super) struct Place<'a> {
    line: &'a str,
    name: &'a str,
    /// What stands before the name.
    pub(super) before: &'a str,
    /// What stands behind it.
    after: &'a str,
}

impl<'a> Place<'a> {
    pub(super) fn new(line: &'a str, name: &Range<usize>) -> Self {
        let line = line.trim_end();
        let end = name.end.min(line.len());
        let start = name.start.min(end);
        Self { line, name: &line[start..end], before: &line[..start], after: &line[end..] }
    }

    fn indent(&self) -> usize {
        self.line.len() - self.line.trim_start().len()
    }

    fn next(&self) -> &'a str {
        self.after.trim_start()
    }

    fn starts_upper(&self) -> bool {
        self.name.starts_with(|first: char| first.is_uppercase())
    }

    /// Whether only these words stand before the name.
    fn only(&self, words: &[&str]) -> bool {
        self.before.split_whitespace().all(|word| words.contains(&word))
    }

    /// Whether what stands before are only words of a type: names, pointers, generics, attributes.
    fn typed(&self) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_ \t*&:<>[],~@?".contains(&byte);
        let words = self.before.split_whitespace();
        self.before.bytes().all(plain)
            && !words.into_iter().any(|word| NO_TYPES.contains(&word))
            && !self.before.trim_end().ends_with(',')
    }

    /// What stands behind the parenthesis that opens right behind the name, if it is closed in this line.
    fn behind_arguments(&self) -> Option<&'a str> {
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

/// Words before a name that say it is used.
const NO_TYPES: &[&str] = &[
    "return", "new", "else", "throw", "case", "goto", "delete", "await", "yield", "in", "not", "and", "or",
    "extern",
];

/// `Definition` if it holds, `Usage` if not.
fn sure(holds: bool) -> Role {
    if holds { Role::Definition } else { Role::Usage }
}

fn likely(holds: bool) -> Role {
    if holds { Role::Likely } else { Role::Usage }
}

/// Variants and fields.
pub(super) fn rust(place: &Place<'_>) -> Role {
    let open = place.before.trim_start();
    let public = open.starts_with("pub");
    if place.indent() == 0 || !(open.is_empty() || (public && !open.contains(['=', ':', '{']))) {
        return Role::Usage;
    }
    let next = place.next();
    if let Some(kind) = next.strip_prefix(':').filter(|rest| !rest.starts_with(':')) {
        let kind = kind.trim_start();
        let typed = kind.starts_with(|first: char| first.is_uppercase() || "&[(*".contains(first))
            || PRIMITIVES.iter().any(|name| kind.trim_end_matches(',') == *name);
        return likely(place.line.ends_with(',') && (public || typed));
    }
    let ends = next.is_empty() || next == "," || next.starts_with(", //");
    let carries =
        next.starts_with(['(', '{', '=']) && !next.starts_with("=>") && place.line.ends_with([',', '{']);
    likely(place.starts_upper() && (ends || carries))
}

const PRIMITIVES: &[&str] = &[
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "bool", "char",
    "str", "f32", "f64",
];

/// Variables of a module, attributes.
pub(super) fn python(place: &Place<'_>) -> Role {
    let next = place.next();
    let assigned = (next.starts_with('=') && !next.starts_with("==") && place.after.starts_with(' '))
        || (next.starts_with(':') && !next.starts_with(":=") && !place.line.ends_with(','));
    match place.before.trim_start() {
        "" if place.indent() == 0 => sure(assigned),
        "" => likely(assigned && (place.indent() == 4 || !next.starts_with(": "))),
        "self." => likely(assigned),
        _ => Role::Usage,
    }
}

/// Words that may stand before a member of a class.
const SCRIPT_WORDS: &[&str] = &[
    "export",
    "default",
    "public",
    "private",
    "protected",
    "readonly",
    "abstract",
    "override",
    "static",
    "async",
    "get",
    "set",
    "*",
    "declare",
    "#",
];

/// Methods, functions that are values, members.
pub(super) fn script(place: &Place<'_>) -> Role {
    const CONTROL: &[&str] = &["if", "for", "while", "switch", "catch", "function", "return", "with"];
    let next = place.next();
    let declared =
        place.before.split_whitespace().last().is_some_and(|word| matches!(word, "const" | "let" | "var"));
    let value = next.strip_prefix(['=', ':']).map(str::trim_start).unwrap_or_default();
    let callable = ["function", "async ", "async(", "class ", "class{"]
        .iter()
        .any(|start| value.starts_with(start))
        || (value.contains("=>") && value.starts_with(|first: char| first == '(' || first.is_alphanumeric()));
    if declared {
        return if place.indent() == 0 || callable { Role::Definition } else { Role::Usage };
    }
    let property = place.before.ends_with('.')
        && place
            .before
            .trim_start()
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte));
    if property {
        let assigned = next.starts_with('=') && !next.starts_with("==") && !next.starts_with("=>");
        let exported =
            place.before.trim_start() == "exports." || place.before.trim_start() == "module.exports.";
        return if assigned && (callable || exported) {
            Role::Definition
        } else {
            likely(assigned && place.before.contains("this."))
        };
    }
    if !place.only(SCRIPT_WORDS) || CONTROL.contains(&place.name) {
        return Role::Usage;
    }
    if next.starts_with(['(', '<']) {
        let behind = place.behind_arguments().unwrap_or_default();
        // What a call answers is never named with a colon: that is a declaration.
        return sure(behind.starts_with('{') || behind.starts_with(':'));
    }
    if callable {
        return Role::Definition;
    }
    let member = next.starts_with(':') || next.starts_with("?:");
    likely(
        member && place.line.ends_with(';')
            || (place.starts_upper() && next.starts_with('=') && place.line.ends_with(',')),
    )
}

/// The same where nothing is ever called: a name with arguments is declared.
pub(super) fn declarations(place: &Place<'_>) -> Role {
    let declared =
        place.before.split_whitespace().last().is_some_and(|word| matches!(word, "const" | "let" | "var"));
    let arguments = place.next().starts_with(['(', '<']) && place.only(SCRIPT_WORDS);
    if declared || arguments { Role::Definition } else { script(place) }
}

/// Methods, and names in groups.
pub(super) fn go(place: &Place<'_>) -> Role {
    let open = place.before.trim_start();
    if open.starts_with("func (") && open.ends_with(") ") && place.after.starts_with(['(', '[']) {
        return Role::Definition;
    }
    if !open.is_empty() || place.indent() != 1 {
        return Role::Usage;
    }
    let next = place.next();
    if ["struct", "interface", "func("].iter().any(|kind| next.starts_with(kind)) {
        return Role::Definition;
    }
    let member = place.starts_upper()
        && (next.is_empty() || next.starts_with('(') || !next.starts_with(['.', ',', ':', ')']));
    likely(member || (next.starts_with("= ") && place.after.starts_with(' ')))
}

/// Functions, types, variables at the outermost level; members and values of an enumeration.
pub(super) fn c(place: &Place<'_>) -> Role {
    let open = place.before.trim_start();
    let next = place.next();
    let last = open.split_whitespace().last().unwrap_or_default();
    if open.starts_with('#') {
        return sure(open.trim_start_matches('#').trim() == "define");
    }
    if matches!(last, "struct" | "class" | "enum" | "union") {
        let begins = next.is_empty() || next.starts_with('{') || next.starts_with("final");
        return sure(begins || (next.starts_with(':') && !next.starts_with("::")));
    }
    if next.starts_with(';') && (open.starts_with("typedef ") || open.trim_end() == "}") {
        return Role::Definition;
    }
    if last == "using" {
        return sure(next.starts_with('='));
    }
    let outermost = place.indent() == 0;
    if next.starts_with('(') {
        let body = !place.line.ends_with(';') && !place.line.ends_with('\\');
        if open.is_empty() {
            return likely(
                outermost
                    && body
                    && !place.name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'),
            );
        }
        return sure(body && place.typed() && (outermost || place.line.ends_with(['{', '}'])));
    }
    if outermost && !open.is_empty() && place.typed() && !open.starts_with("extern ") {
        return sure(next.starts_with(['=', '[', ';']) && !next.starts_with("=="));
    }
    let ends = next.is_empty() || next.starts_with([',']) || next.starts_with("/*") || next.starts_with("//");
    likely(!outermost && open.is_empty() && (ends || (next.starts_with("= ") && place.line.ends_with(','))))
}

/// Methods and fields.
pub(super) fn java(place: &Place<'_>) -> Role {
    const MODIFIERS: &[&str] = &[
        "public",
        "private",
        "protected",
        "internal",
        "static",
        "final",
        "abstract",
        "virtual",
        "override",
        "readonly",
        "const",
        "sealed",
        "async",
        "synchronized",
        "native",
        "val",
        "var",
        "open",
    ];
    let next = place.next();
    let first = place.before.split_whitespace().next().unwrap_or_default();
    if MODIFIERS.contains(&first) && place.typed() {
        return sure(next.is_empty() || next.starts_with(['(', '=', ';', '{', ':', '<']));
    }
    if place.before.trim().is_empty() {
        let constant = place.starts_upper() && (next.starts_with([',', ';']) || next.is_empty());
        return likely(
            constant
                || (place.starts_upper() && next.starts_with('(') && place.line.ends_with([',', '{', ';'])),
        );
    }
    if next.starts_with('(') && place.typed() {
        return if place.line.ends_with('{') { Role::Definition } else { likely(place.line.ends_with(';')) };
    }
    Role::Usage
}

/// Constants and attributes.
pub(super) fn ruby(place: &Place<'_>) -> Role {
    let next = place.next();
    let open = place.before.trim_start();
    if open.is_empty() {
        return sure(place.starts_upper() && next.starts_with("= "));
    }
    likely(open.starts_with("attr_") && open.ends_with(':'))
}

/// Constants by call, variables.
pub(super) fn php(place: &Place<'_>) -> Role {
    let open = place.before.trim_start();
    if open.starts_with("define(") {
        return Role::Definition;
    }
    let next = place.next();
    likely(open.ends_with('$') && (next.starts_with("= ") || next.starts_with(';')))
}

/// Functions and variables.
pub(super) fn shell(place: &Place<'_>) -> Role {
    match place.before.trim_start() {
        "" => sure(place.next().starts_with("()") || (place.indent() == 0 && place.after.starts_with('='))),
        "export " | "readonly " | "declare " => sure(place.after.starts_with('=')),
        _ => Role::Usage,
    }
}

/// Headings.
pub(super) fn heading(place: &Place<'_>) -> Role {
    likely(place.line.starts_with('#') || place.line.starts_with("= "))
}

/// Keys and sections.
pub(super) fn key(place: &Place<'_>) -> Role {
    let open = place.before.trim_start().trim_start_matches(['"', '\'', '-', ' ']);
    let next = place.after.trim_start_matches(['"', '\'']).trim_start();
    likely(
        (open.is_empty() && next.starts_with([':', '=']))
            || (open.starts_with('[') && place.line.ends_with(']')),
    )
}
