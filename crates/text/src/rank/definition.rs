//! Classifies whether a line defines, uses or imports a name, from the text of one line. If the role of a line is in
//! doubt, the line counts as a usage.

use std::ops::Range;

use super::{ProgrammingLanguage, line_shape};
use crate::is_listed;

/// The role of a line for a name: whether the line defines, uses or imports the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SymbolRole {
    Definition,
    /// The line looks like a definition of the searched name, but may be a class member, a key or a heading.
    LikelyDefinition,
    Usage,
    Import,
}

fn definition_keywords(language: ProgrammingLanguage) -> &'static str {
    match language {
        ProgrammingLanguage::Rust => "fn struct enum trait union type mod const static macro_rules!",
        ProgrammingLanguage::Python => "def class",
        ProgrammingLanguage::JavaScript | ProgrammingLanguage::TypeScriptDeclarations => {
            "function function* class interface enum namespace module type"
        }
        ProgrammingLanguage::Go => "func type var const",
        ProgrammingLanguage::C | ProgrammingLanguage::CHeader => "#define namespace concept",
        ProgrammingLanguage::Java | ProgrammingLanguage::CSharp => {
            "class interface enum record @interface namespace struct delegate object trait fun def"
        }
        ProgrammingLanguage::Ruby => "def class module",
        ProgrammingLanguage::Php => "function class interface trait enum const namespace",
        ProgrammingLanguage::Shell => "function alias",
        ProgrammingLanguage::Sql => {
            "table view function procedure index trigger type exists schema database domain sequence"
        }
        ProgrammingLanguage::Markdown | ProgrammingLanguage::Config => "",
        ProgrammingLanguage::Other => {
            "fn func function fun def class struct enum interface trait type module sub proc defun defn (defun (defn \
             (define protocol let val"
        }
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Returns the last word that a search hit touches, even if the hit covers only a part of the word.
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

/// Replaces a hit within a longer name by the next whole name in the line that has the same text. For example, a hit
/// for `Parse` in `func (p *Parser) Parse()` becomes the second `Parse`.
pub(super) fn prefer_whole_name(line: &str, hit: &Range<usize>) -> Range<usize> {
    let whole = |hit: &Range<usize>| name_at(line, hit).is_none_or(|name| is_whole_name(hit, &name));
    let text = line.get(hit.clone()).unwrap_or_default();
    if text.is_empty() || whole(hit) {
        return hit.clone();
    }
    let again = line[hit.end..].match_indices(text).map(|(at, _)| hit.end + at..hit.end + at + text.len());
    again.into_iter().find(whole).unwrap_or_else(|| hit.clone())
}

pub(super) fn role_of_hit(language: ProgrammingLanguage, line: &str, hit: &Range<usize>) -> SymbolRole {
    let hit = &prefer_whole_name(line, hit);
    let Some(name) = name_at(line, hit) else { return SymbolRole::Usage };
    if language.is_import(line) {
        return SymbolRole::Import;
    }
    if language.is_comment(line) {
        return SymbolRole::Usage;
    }
    // If the name occurs twice, the second occurrence may be the definition, as in `typedef struct a a;`.
    let word = &line[name.clone()];
    let again = line[name.end..].find(word).map(|at| name.end + at).filter(|&at| {
        let bytes = line.as_bytes();
        !is_word_byte(bytes[at - 1]) && bytes.get(at + word.len()).is_none_or(|&byte| !is_word_byte(byte))
    });
    let first = role_of_name(language, line, &name);
    again.map_or(first, |at| first.min(role_of_name(language, line, &(at..at + word.len()))))
}

fn role_of_name(language: ProgrammingLanguage, line: &str, name: &Range<usize>) -> SymbolRole {
    let symbol = line_shape::HitLineSplitAroundName::new(line, name);
    if follows_definition_keyword(language, &symbol) {
        return SymbolRole::Definition;
    }
    match language {
        ProgrammingLanguage::Rust => line_shape::rust_role(&symbol),
        ProgrammingLanguage::Python => line_shape::python_role(&symbol),
        ProgrammingLanguage::JavaScript => line_shape::javascript_role(&symbol),
        ProgrammingLanguage::TypeScriptDeclarations => line_shape::typescript_declaration_role(&symbol),
        ProgrammingLanguage::Go => line_shape::go_role(&symbol),
        ProgrammingLanguage::C => line_shape::c_role(&symbol),
        ProgrammingLanguage::CHeader => line_shape::c_header_role(&symbol),
        ProgrammingLanguage::Java | ProgrammingLanguage::CSharp => line_shape::java_role(&symbol),
        ProgrammingLanguage::Ruby => line_shape::ruby_role(&symbol),
        ProgrammingLanguage::Php => line_shape::php_role(&symbol),
        ProgrammingLanguage::Shell => line_shape::shell_role(&symbol),
        ProgrammingLanguage::Markdown => line_shape::markdown_heading_role(&symbol),
        ProgrammingLanguage::Config => line_shape::config_key_role(&symbol),
        ProgrammingLanguage::Sql | ProgrammingLanguage::Other => SymbolRole::Usage,
    }
}

fn follows_definition_keyword(language: ProgrammingLanguage, symbol: &line_shape::HitLineSplitAroundName<'_>) -> bool {
    let before = symbol.before;
    let is_keyword = |token: &str| is_listed(definition_keywords(language), token);
    if language == ProgrammingLanguage::Sql {
        let lower = before.to_ascii_lowercase();
        let token = lower.trim_end_matches(['"', '`', '[']).split_whitespace().last();
        return lower.trim_start().starts_with("create ") && token.is_some_and(is_keyword);
    }
    // Some languages have a marker between the keyword and the name, for a class method, a generator or a reference.
    let before = if language == ProgrammingLanguage::Ruby {
        before.strip_suffix("self.").unwrap_or(before)
    } else if matches!(language, ProgrammingLanguage::JavaScript | ProgrammingLanguage::TypeScriptDeclarations) {
        before.strip_suffix('*').map_or(before, str::trim_end)
    } else if language == ProgrammingLanguage::Php {
        before.strip_suffix('&').unwrap_or(before)
    } else if language == ProgrammingLanguage::Rust {
        before.strip_suffix("mut ").filter(|rest| rest.ends_with("static ")).unwrap_or(before)
    } else {
        before
    };
    let spaced = before.ends_with([' ', '\t']) || before.len() < symbol.before.len();
    if !spaced || !before.split_whitespace().last().is_some_and(is_keyword) {
        return false;
    }
    // An odd number of quotation marks before the name means that the name is inside a string.
    before.matches('"').count().is_multiple_of(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[(&str, &str, &str, SymbolRole)] = &[
        ("a.rs", "pub(crate) const fn parse<T>(x: T) {", "parse", SymbolRole::Definition),
        ("a.rs", "macro_rules! vec_of {", "vec_of", SymbolRole::Definition),
        ("a.rs", "static mut COUNT: u8 = 0;", "COUNT", SymbolRole::Definition),
        ("a.rs", "    Fine(String),", "Fine", SymbolRole::LikelyDefinition),
        ("a.rs", "    pub(crate) path: RelPath,", "path", SymbolRole::LikelyDefinition),
        ("a.rs", "    path: path.clone(),", "path", SymbolRole::Usage),
        ("a.rs", "    let x = parse(y);", "parse", SymbolRole::Usage),
        ("a.rs", "use a::{parse, b};", "parse", SymbolRole::Import),
        ("a.rs", "/// fn parse() is", "parse", SymbolRole::Usage),
        ("a.rs", "    x: *const Foo,", "Foo", SymbolRole::Usage),
        ("a.py", "async def parse(self):", "parse", SymbolRole::Definition),
        ("a.py", "class Parser(Base):", "Parser", SymbolRole::Definition),
        ("a.py", "LIMIT = 3", "LIMIT", SymbolRole::Definition),
        ("a.py", "        self.limit = 3", "limit", SymbolRole::LikelyDefinition),
        ("a.py", "    call(limit=3)", "limit", SymbolRole::Usage),
        ("a.py", "if limit == 3:", "limit", SymbolRole::Usage),
        ("a.ts", "export async function* parse<T>(a: T) {", "parse", SymbolRole::Definition),
        ("a.ts", "export const parse = (a: string) => a;", "parse", SymbolRole::Definition),
        ("a.ts", "  private async parse(a: string): Promise<void> {", "parse", SymbolRole::Definition),
        ("a.js", "  parse(a, function () {", "parse", SymbolRole::Usage),
        ("a.js", "exports.parse = parse;", "parse", SymbolRole::LikelyDefinition),
        ("a.js", "exports.parse = void 0;", "parse", SymbolRole::Usage),
        ("a.js", "exports.LIMIT = 3;", "LIMIT", SymbolRole::Definition),
        ("a.js", "  parse: () => parse,", "parse", SymbolRole::Usage),
        ("a.js", "  parse: () => run(parse),", "parse", SymbolRole::Definition),
        ("a.js", "const LF = 10, CR = 13, SPACE = 32;", "SPACE", SymbolRole::Definition),
        ("a.js", "}, parse = (text) => {", "parse", SymbolRole::Definition),
        ("a.js", "  run({ a: 1 }, parse = 3)", "parse", SymbolRole::Usage),
        ("a.js", "  const options = {", "options", SymbolRole::LikelyDefinition),
        ("a.js", "  headers: {", "headers", SymbolRole::LikelyDefinition),
        ("a.js", "require('./a').parse = function () {", "parse", SymbolRole::Definition),
        ("a.js", "Parser.prototype.parse = function (a) {", "parse", SymbolRole::Definition),
        ("a.js", "  if (parse(a)) {", "parse", SymbolRole::Usage),
        ("a.d.ts", "    parse(a: string): void;", "parse", SymbolRole::Definition),
        ("a.d.ts", "    parse (", "parse", SymbolRole::Definition),
        ("a.ts", "    parse(", "parse", SymbolRole::Usage),
        ("a.go", "func (p *Parser) Parse(s string) error {", "Parse", SymbolRole::Definition),
        ("a.go", "type Parser struct {", "Parser", SymbolRole::Definition),
        ("a.go", "\tLimit = 3", "Limit", SymbolRole::LikelyDefinition),
        ("a.go", "\tlimit int", "limit", SymbolRole::LikelyDefinition),
        ("a.go", "\tServe(path string)", "Serve", SymbolRole::LikelyDefinition),
        ("a.go", "\tServe() error", "Serve", SymbolRole::LikelyDefinition),
        ("a.go", "\tServe(string, ...any)", "Serve", SymbolRole::LikelyDefinition),
        ("a.go", "\tServe(path, 3)", "Serve", SymbolRole::Usage),
        ("a.go", "\treturn p.Parse(s)", "Parse", SymbolRole::Usage),
        ("a.c", "static int parse(const char *s)", "parse", SymbolRole::Definition),
        ("a.c", "int parse(const char *s);", "parse", SymbolRole::Usage),
        ("a.c", "#define LIMIT 3", "LIMIT", SymbolRole::Definition),
        ("a.c", "#if LIMIT > 3", "LIMIT", SymbolRole::Usage),
        ("a.h", "typedef struct node node;", "node", SymbolRole::Definition),
        ("a.h", "int parse(const char *s,", "parse", SymbolRole::LikelyDefinition),
        ("a.h", "static inline int parse(const char *s)", "parse", SymbolRole::Definition),
        ("a.h", "struct node *next;", "node", SymbolRole::Usage),
        ("a.cpp", "void Parser::parse(int a) {", "parse", SymbolRole::Definition),
        ("a.cpp", "/* static */ int Parser::parse(int a) {", "parse", SymbolRole::Definition),
        ("a.cpp", "extern \"C\" void parse(", "parse", SymbolRole::Definition),
        ("a.cpp", "  Parser(int a) : a(a) {}", "Parser", SymbolRole::Definition),
        ("a.cpp", "  Parser(a);", "Parser", SymbolRole::Usage),
        ("a.cpp", "namespace outer::inner {", "inner", SymbolRole::Definition),
        ("a.java", "    public static List<String> parse(String s) {", "parse", SymbolRole::Definition),
        ("a.java", "        return parse(s);", "parse", SymbolRole::Usage),
        ("a.java", "    void parse(String s) throws Broken;", "parse", SymbolRole::Definition),
        ("a.java", "    protected Uri.Builder parse() {", "parse", SymbolRole::Definition),
        ("a.java", "        parser.parse(s);", "parse", SymbolRole::Usage),
        ("a.java", "    String name = null;", "name", SymbolRole::LikelyDefinition),
        ("a.cs", "    public int Limit { get; set; }", "Limit", SymbolRole::Definition),
        ("a.rb", "  def self.parse(s)", "parse", SymbolRole::Definition),
        ("a.php", "    public function parse($s)", "parse", SymbolRole::Definition),
        ("a.sh", "parse() {", "parse", SymbolRole::Definition),
        ("a.sql", "CREATE TABLE IF NOT EXISTS users (", "users", SymbolRole::Definition),
        ("a.sql", "SELECT * FROM users", "users", SymbolRole::Usage),
        ("a.md", "## Parser", "Parser", SymbolRole::LikelyDefinition),
        ("a.toml", "limit = 3", "limit", SymbolRole::LikelyDefinition),
        ("a.yaml", "  - limit: 3", "limit", SymbolRole::LikelyDefinition),
    ];

    #[test]
    fn lines_get_the_expected_role() {
        for (path, line, name, expected) in LINES {
            let at = line.find(name).unwrap();
            assert_eq!(
                role_of_hit(ProgrammingLanguage::from_path(path), line, &(at..at + name.len())),
                *expected,
                "{path}: {line}"
            );
        }
    }

    #[test]
    fn the_name_is_the_last_word_of_a_hit() {
        let line = "pub fn parse_all(x)";
        assert_eq!(name_at(line, &(4..12)), Some(7..16));
        assert_eq!(name_at(line, &(16..17)), None);
        assert_eq!(role_of_hit(ProgrammingLanguage::Rust, line, &(4..16)), SymbolRole::Definition);
    }

    #[test]
    fn arbitrary_lines_do_not_panic() {
        let odd = ["", "é", "(((", "fn", "fn é", "a\u{301}::", "} ;", "def ", "#", "\"", "x=é("];
        for (path, ..) in LINES {
            for line in odd {
                for start in 0..=line.len() {
                    for end in start..=line.len() {
                        if line.is_char_boundary(start) && line.is_char_boundary(end) {
                            role_of_hit(ProgrammingLanguage::from_path(path), line, &(start..end));
                        }
                    }
                }
            }
        }
    }
}
