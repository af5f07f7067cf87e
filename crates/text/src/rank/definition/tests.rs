//! Lines of many languages and what they are to a name, as a table.

use super::*;

/// Path, line, name, what the line is to it.
const LINES: &[(&str, &str, &str, Role)] = &[
    ("a.rs", "pub(crate) const fn parse<T>(x: T) {", "parse", Role::Definition),
    ("a.rs", "macro_rules! vec_of {", "vec_of", Role::Definition),
    ("a.rs", "static mut COUNT: u8 = 0;", "COUNT", Role::Definition),
    ("a.rs", "    Fine(String),", "Fine", Role::Likely),
    ("a.rs", "    pub(crate) path: RelPath,", "path", Role::Likely),
    ("a.rs", "    path: path.clone(),", "path", Role::Usage),
    ("a.rs", "    let x = parse(y);", "parse", Role::Usage),
    ("a.rs", "use a::{parse, b};", "parse", Role::Import),
    ("a.rs", "/// fn parse() is", "parse", Role::Usage),
    ("a.rs", "    x: *const Foo,", "Foo", Role::Usage),
    ("a.py", "async def parse(self):", "parse", Role::Definition),
    ("a.py", "class Parser(Base):", "Parser", Role::Definition),
    ("a.py", "LIMIT = 3", "LIMIT", Role::Definition),
    ("a.py", "        self.limit = 3", "limit", Role::Likely),
    ("a.py", "    call(limit=3)", "limit", Role::Usage),
    ("a.py", "if limit == 3:", "limit", Role::Usage),
    ("a.ts", "export async function* parse<T>(a: T) {", "parse", Role::Definition),
    ("a.ts", "export const parse = (a: string) => a;", "parse", Role::Definition),
    ("a.ts", "  private async parse(a: string): Promise<void> {", "parse", Role::Definition),
    ("a.js", "  parse(a, function () {", "parse", Role::Usage),
    ("a.js", "exports.parse = parse;", "parse", Role::Likely),
    ("a.js", "exports.parse = void 0;", "parse", Role::Usage),
    ("a.js", "exports.LIMIT = 3;", "LIMIT", Role::Definition),
    ("a.js", "  parse: () => parse,", "parse", Role::Usage),
    ("a.js", "  parse: () => run(parse),", "parse", Role::Definition),
    ("a.js", "const LF = 10, CR = 13, SPACE = 32;", "SPACE", Role::Definition),
    ("a.js", "}, parse = (text) => {", "parse", Role::Definition),
    ("a.js", "  run({ a: 1 }, parse = 3)", "parse", Role::Usage),
    ("a.js", "  const options = {", "options", Role::Likely),
    ("a.js", "  headers: {", "headers", Role::Likely),
    ("a.js", "require('./a').parse = function () {", "parse", Role::Definition),
    ("a.js", "Parser.prototype.parse = function (a) {", "parse", Role::Definition),
    ("a.js", "  if (parse(a)) {", "parse", Role::Usage),
    ("a.d.ts", "    parse(a: string): void;", "parse", Role::Definition),
    ("a.d.ts", "    parse (", "parse", Role::Definition),
    ("a.ts", "    parse(", "parse", Role::Usage),
    ("a.go", "func (p *Parser) Parse(s string) error {", "Parse", Role::Definition),
    ("a.go", "type Parser struct {", "Parser", Role::Definition),
    ("a.go", "\tLimit = 3", "Limit", Role::Likely),
    ("a.go", "\tlimit int", "limit", Role::Likely),
    ("a.go", "\tServe(path string)", "Serve", Role::Likely),
    ("a.go", "\tServe() error", "Serve", Role::Likely),
    ("a.go", "\tServe(string, ...any)", "Serve", Role::Likely),
    ("a.go", "\tServe(path, 3)", "Serve", Role::Usage),
    ("a.go", "\treturn p.Parse(s)", "Parse", Role::Usage),
    ("a.c", "static int parse(const char *s)", "parse", Role::Definition),
    ("a.c", "int parse(const char *s);", "parse", Role::Usage),
    ("a.c", "#define LIMIT 3", "LIMIT", Role::Definition),
    ("a.c", "#if LIMIT > 3", "LIMIT", Role::Usage),
    ("a.h", "typedef struct node node;", "node", Role::Definition),
    ("a.h", "int parse(const char *s,", "parse", Role::Likely),
    ("a.h", "static inline int parse(const char *s)", "parse", Role::Definition),
    ("a.h", "struct node *next;", "node", Role::Usage),
    ("a.cpp", "void Parser::parse(int a) {", "parse", Role::Definition),
    ("a.cpp", "/* static */ int Parser::parse(int a) {", "parse", Role::Definition),
    ("a.cpp", "extern \"C\" void parse(", "parse", Role::Definition),
    ("a.cpp", "  Parser(int a) : a(a) {}", "Parser", Role::Definition),
    ("a.cpp", "  Parser(a);", "Parser", Role::Usage),
    ("a.cpp", "namespace outer::inner {", "inner", Role::Definition),
    ("a.java", "    public static List<String> parse(String s) {", "parse", Role::Definition),
    ("a.java", "        return parse(s);", "parse", Role::Usage),
    ("a.java", "    void parse(String s) throws Broken;", "parse", Role::Definition),
    ("a.java", "    protected Uri.Builder parse() {", "parse", Role::Definition),
    ("a.java", "        parser.parse(s);", "parse", Role::Usage),
    ("a.java", "    String name = null;", "name", Role::Likely),
    ("a.cs", "    public int Limit { get; set; }", "Limit", Role::Definition),
    ("a.rb", "  def self.parse(s)", "parse", Role::Definition),
    ("a.php", "    public function parse($s)", "parse", Role::Definition),
    ("a.sh", "parse() {", "parse", Role::Definition),
    ("a.sql", "CREATE TABLE IF NOT EXISTS users (", "users", Role::Definition),
    ("a.sql", "SELECT * FROM users", "users", Role::Usage),
    ("a.md", "## Parser", "Parser", Role::Likely),
    ("a.toml", "limit = 3", "limit", Role::Likely),
    ("a.yaml", "  - limit: 3", "limit", Role::Likely),
];

#[test]
fn lines_are_what_they_are_to_a_name() {
    for (path, line, name, expected) in LINES {
        let at = line.find(name).unwrap();
        assert_eq!(role(Language::of(path), line, &(at..at + name.len())), *expected, "{path}: {line}");
    }
}

#[test]
fn the_name_is_the_last_word_of_a_hit() {
    let line = "pub fn parse_all(x)";
    assert_eq!(name_at(line, &(4..12)), Some(7..16));
    assert_eq!(name_at(line, &(16..17)), None);
    assert_eq!(role(Language::Rust, line, &(4..16)), Role::Definition);
}

#[test]
fn nothing_that_is_written_breaks_a_rule() {
    let odd = ["", "é", "(((", "fn", "fn é", "a\u{301}::", "} ;", "def ", "#", "\"", "x=é("];
    for (path, ..) in LINES {
        for line in odd {
            for start in 0..=line.len() {
                for end in start..=line.len() {
                    if line.is_char_boundary(start) && line.is_char_boundary(end) {
                        role(Language::of(path), line, &(start..end));
                    }
                }
            }
        }
    }
}
