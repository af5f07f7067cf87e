//! Definitions without a keyword right before the name: the shape of the line decides. One function per language
//! family; each says what it can be sure of and what is merely likely.

use std::ops::Range;

use super::definition::Role;

/// A name in its line.
#[derive(Clone, Copy)]
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
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_ \t*&:<>[],~@?.".contains(&byte);
        let words = self.before.split_whitespace();
        self.before.bytes().all(plain)
            && !words.into_iter().any(|word| NO_TYPES.contains(&word))
            && !self.before.trim_end().ends_with([',', '.'])
    }

    /// Whether the name is written like those of macros.
    fn all_upper(&self) -> bool {
        self.name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    }

    /// The same place without what stands first in the line.
    fn without(&self, first: &str) -> Self {
        let before = self.before.trim_start();
        let before = before.strip_prefix(first).map_or(self.before, str::trim_start);
        Self { before, ..*self }
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
    "extern", "assert", "do",
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
    // Bundlers write what a module gives away as a function that answers it.
    let itself = value.trim_end_matches([',', ';']).trim_end().ends_with(&format!("=> {}", place.name));
    if declared || declared_too(place) {
        return if place.indent() == 0 || callable { Role::Definition } else { Role::Likely };
    }
    let property = place.before.ends_with('.')
        && place
            .before
            .trim_start()
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.$()[]'\"/-".contains(&byte));
    if property {
        let assigned = next.starts_with('=') && !next.starts_with("==") && !next.starts_with("=>");
        let exported =
            place.before.trim_start() == "exports." || place.before.trim_start() == "module.exports.";
        return if assigned && exported {
            given_away(place.name, value)
        } else if assigned && callable {
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
        return if itself { Role::Usage } else { Role::Definition };
    }
    let member = next.starts_with(':') || next.starts_with("?:");
    likely(
        member && (place.line.ends_with(';') || value == "{")
            || next.starts_with(".prototype =")
            || (place.starts_upper() && next.starts_with('=') && place.line.ends_with(',')),
    )
}

/// Whether a name is declared behind others: `const a = 1, b = 2`, or where the one before ends in its line.
fn declared_too(place: &Place<'_>) -> bool {
    let open = place.before.trim_start();
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
    depth == level && open.trim_end().ends_with(',') && place.next().starts_with("= ")
}

/// What `exports.name = value` is to the name: what it is given away from is elsewhere, what it is given is here.
fn given_away(name: &str, value: &str) -> Role {
    let value = value.trim_end_matches(';').trim_end();
    if value == "void 0" || value.starts_with("exports.") {
        return Role::Usage;
    }
    let path = value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte));
    if path && value.rsplit('.').next() == Some(name) { Role::Likely } else { Role::Definition }
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
    if next.starts_with('(') {
        return likely(place.starts_upper() && go_declares(place));
    }
    // No statement begins with two words.
    let pair = place.after.starts_with([' ', '\t'])
        && next.starts_with(|first: char| first.is_alphabetic() || "*[_".contains(first));
    let member = place.starts_upper() && (next.is_empty() || !next.starts_with(['.', ',', ':', ')']));
    likely(pair || member || (next.starts_with("= ") && place.after.starts_with(' ')))
}

/// How arguments begin that are types.
const GO_TYPES: &[&str] = &[
    "...",
    "*",
    "[]",
    "map[",
    "func(",
    "chan",
    "interface{",
    "string",
    "int",
    "uint",
    "float",
    "complex",
    "rune",
    "bool",
    "byte",
    "error",
    "any",
];

/// Whether a method of an interface is named, and not called: it answers a type, or its arguments have one.
fn go_declares(place: &Place<'_>) -> bool {
    let Some(behind) = place.behind_arguments() else { return !place.line.ends_with(['{', '(']) };
    let within = place.after.len() - behind.len();
    let arguments = place.after[..within].trim().trim_start_matches('(').trim_end_matches(')');
    let is_type = |argument: &str| {
        let argument = argument.trim();
        let named = argument.contains(' ') && !argument.contains(['"', '+', '&']);
        let upper = argument.rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase));
        named || upper || GO_TYPES.iter().any(|start| argument.starts_with(start))
    };
    match behind.chars().next() {
        None => arguments.is_empty() || arguments.split(',').any(is_type),
        Some(first) => first.is_alphabetic() || "*[(".contains(first) || behind.starts_with("//"),
    }
}

/// Functions, types, variables at the outermost level; members and values of an enumeration.
pub(super) fn c(place: &Place<'_>) -> Role {
    let remark = place.before.find("*/").map_or("", |end| place.before[..end + 2].trim_start());
    let place = &if remark.starts_with("/*") { place.without(remark) } else { *place };
    let place = &place.without("extern \"C\"");
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
    if open.starts_with("namespace ") && open.ends_with("::") {
        return Role::Definition;
    }
    let outermost = place.indent() == 0;
    if next.starts_with('(') {
        let body = !place.line.ends_with(';') && !place.line.ends_with('\\');
        if open.is_empty() && !outermost {
            return constructor(place);
        }
        if open.is_empty() {
            return likely(body && !place.all_upper());
        }
        return sure(body && place.typed() && (outermost || place.line.ends_with(['{', '}'])));
    }
    if outermost && !open.is_empty() && place.typed() && !open.starts_with("extern ") {
        return sure(next.starts_with(['=', '[', ';']) && !next.starts_with("=="));
    }
    let ends = next.is_empty() || next.starts_with([',']) || next.starts_with("/*") || next.starts_with("//");
    likely(!outermost && open.is_empty() && (ends || (next.starts_with("= ") && place.line.ends_with(','))))
}

/// The same in a header: a function without a body in its line has it elsewhere, unless it says otherwise.
pub(super) fn header(place: &Place<'_>) -> Role {
    let role = c(place);
    let here =
        place.line.ends_with(['{', '}']) || place.before.split_whitespace().any(|word| word == "inline");
    let function = place.next().starts_with('(') && !place.before.trim_start().starts_with('#');
    if role == Role::Definition && function && !here { Role::Likely } else { role }
}

/// A method that is called like its class, and has a body or a list of what it sets.
fn constructor(place: &Place<'_>) -> Role {
    if !place.starts_upper() || place.all_upper() {
        return Role::Usage;
    }
    match place.behind_arguments() {
        Some(behind) if behind.starts_with(['{', ':']) => Role::Definition,
        Some("") => Role::Likely,
        Some(_) | None => Role::Usage,
    }
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
    if !place.typed() {
        return Role::Usage;
    }
    if next.starts_with('(') {
        // A call has no type before it.
        return sure(place.line.ends_with(['{', '}', ';']));
    }
    likely(next.starts_with(['=', ';']) && !next.starts_with("=="))
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
