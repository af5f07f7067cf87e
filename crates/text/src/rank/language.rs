//! The language of a file, by its name alone, and the syntax of comments and imports in that language.

/// A family of languages with the same syntax of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// Python.
    Python,
    /// JavaScript and TypeScript.
    JavaScript,
    /// TypeScript declaration files.
    TypeScriptDeclarations,
    /// Go.
    Go,
    /// C and C++.
    C,
    /// Headers of C and C++, where most functions are only declared.
    CHeader,
    /// Java, Kotlin, Scala.
    Java,
    /// C#.
    CSharp,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Shell scripts.
    Shell,
    /// SQL.
    Sql,
    /// Markdown and other text with headings.
    Markdown,
    /// Files with keys and values: TOML, YAML, JSON, INI.
    Config,
    /// Any other language.
    Other,
}

const LANGUAGE_BY_EXTENSION: &[(Language, &[&str])] = &[
    (Language::Rust, &["rs"]),
    (Language::Python, &["py", "pyi", "pyx"]),
    (Language::JavaScript, &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"]),
    (Language::Go, &["go"]),
    (Language::C, &["c", "cc", "cpp", "cxx", "m", "mm", "cu", "inl"]),
    (Language::CHeader, &["h", "hh", "hpp", "hxx"]),
    (Language::Java, &["java", "kt", "kts", "scala", "groovy"]),
    (Language::CSharp, &["cs"]),
    (Language::Ruby, &["rb", "rake", "gemspec"]),
    (Language::Php, &["php", "phtml"]),
    (Language::Shell, &["sh", "bash", "zsh", "ksh", "fish"]),
    (Language::Sql, &["sql"]),
    (Language::Markdown, &["md", "mdx", "markdown", "rst", "adoc"]),
    (Language::Config, &["toml", "yaml", "yml", "json", "jsonc", "ini", "cfg", "conf", "properties", "env", "lock"]),
];

const DECLARATION_EXTENSIONS: &[&str] = &[".d.ts", ".d.mts", ".d.cts"];

impl Language {
    /// The language of a file with this path.
    pub fn from_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        if DECLARATION_EXTENSIONS.iter().any(|ending| name.ends_with(ending)) {
            return Self::TypeScriptDeclarations;
        }
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        let known = LANGUAGE_BY_EXTENSION.iter().find(|(_, endings)| endings.contains(&ending.as_str()));
        known.map_or(Self::Other, |(language, _)| *language)
    }

    /// Whether a line starts with a comment.
    pub(super) fn is_comment(self, line: &str) -> bool {
        let line = line.trim_start();
        let starts = |marks: &[&str]| marks.iter().any(|mark| line.starts_with(mark));
        match self {
            Self::Rust
            | Self::JavaScript
            | Self::TypeScriptDeclarations
            | Self::Go
            | Self::C
            | Self::CHeader
            | Self::Java
            | Self::CSharp => {
                let has_code = |(_, rest): (&str, &str)| !rest.trim().is_empty();
                let opens = starts(&["/*"]) && !line.split_once("*/").is_some_and(has_code);
                opens || starts(&["//", "* ", "*/"]) || line == "*"
            }
            Self::Php => starts(&["//", "/*", "* ", "*/", "#"]),
            Self::Python | Self::Ruby | Self::Shell | Self::Config => starts(&["#"]),
            Self::Sql => starts(&["--", "/*"]),
            Self::Markdown => false,
            Self::Other => starts(&["//", "/*", "#", "--", ";;", "%"]),
        }
    }

    /// Whether a line is an import.
    pub(super) fn is_import(self, line: &str) -> bool {
        let line = line.trim_start();
        let starts = |marks: &[&str]| marks.iter().any(|mark| line.starts_with(mark));
        match self {
            Self::Rust => {
                let open = line.strip_prefix("pub").map_or(line, |rest| {
                    rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, rest)| rest)
                });
                open.trim_start().starts_with("use ") || starts(&["extern crate "])
            }
            Self::Python => starts(&["import "]) || (starts(&["from "]) && line.contains(" import")),
            Self::JavaScript | Self::TypeScriptDeclarations => {
                starts(&["import ", "import{", "export * ", "export {", "export type {", "} from "])
                    || (line.contains("require(") && !line.contains("= function"))
            }
            Self::Go => starts(&["import "]) || (line.starts_with('"') && line.ends_with('"')),
            Self::C | Self::CHeader => {
                line.strip_prefix('#').is_some_and(|rest| rest.trim_start().starts_with("include"))
            }
            Self::Java => starts(&["import ", "package "]),
            Self::CSharp => starts(&["using "]) && line.ends_with(';') && !line.contains('('),
            Self::Ruby => starts(&["require ", "require_relative ", "load "]),
            Self::Php => starts(&["use ", "require", "include"]),
            Self::Shell => starts(&["source ", ". "]),
            Self::Sql | Self::Markdown | Self::Config => false,
            Self::Other => starts(&["import ", "use ", "require", "include", "from ", "open "]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detects_the_language_by_file_name() {
        for (path, expected) in [
            ("src/a.rs", Language::Rust),
            ("a.test.TSX", Language::JavaScript),
            ("Makefile", Language::Other),
            ("d.py/readme", Language::Other),
            ("x.h", Language::CHeader),
            ("x.d.ts", Language::TypeScriptDeclarations),
            ("Cargo.toml", Language::Config),
        ] {
            assert_eq!(Language::from_path(path), expected, "{path}");
        }
    }

    #[test]
    fn recognises_imports_and_comments() {
        for (language, line, import, comment) in [
            (Language::Rust, "pub(crate) use a::B;", true, false),
            (Language::Rust, "    /// use a::B", false, true),
            (Language::Rust, "user(a);", false, false),
            (Language::Python, "from a import b", true, false),
            (Language::Python, "from_a = 1", false, false),
            (Language::JavaScript, "const a = require('b');", true, false),
            (Language::JavaScript, " * import a", false, true),
            (Language::C, "#  include <a.h>", true, false),
            (Language::C, "#define A 1", false, false),
            (Language::Markdown, "# import a", false, false),
        ] {
            assert_eq!(language.is_import(line), import, "{line}");
            assert_eq!(language.is_comment(line), comment, "{line}");
        }
    }
}
