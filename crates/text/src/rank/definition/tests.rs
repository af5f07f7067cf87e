//! Lines of many languages and their roles for a name, as a table.

use super::*;

/// Path, line, name, role.
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
        assert_eq!(role_of_hit(Language::from_path(path), line, &(at..at + name.len())), *expected, "{path}: {line}");
    }
}

#[test]
fn the_name_is_the_last_word_of_a_hit() {
    let line = "pub fn parse_all(x)";
    assert_eq!(name_at(line, &(4..12)), Some(7..16));
    assert_eq!(name_at(line, &(16..17)), None);
    assert_eq!(role_of_hit(Language::Rust, line, &(4..16)), SymbolRole::Definition);
}

#[test]
fn arbitrary_lines_do_not_panic() {
    let odd = ["", "é", "(((", "fn", "fn é", "a\u{301}::", "} ;", "def ", "#", "\"", "x=é("];
    for (path, ..) in LINES {
        for line in odd {
            for start in 0..=line.len() {
                for end in start..=line.len() {
                    if line.is_char_boundary(start) && line.is_char_boundary(end) {
                        role_of_hit(Language::from_path(path), line, &(start..end));
                    }
                }
            }
        }
    }
}
