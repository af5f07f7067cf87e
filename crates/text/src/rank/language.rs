//! Determines the language of a file by its name alone, and recognises comments and imports in that language.

/// A family of programming languages with the same syntax of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgrammingLanguage {
    Rust,
    Python,
    /// JavaScript or TypeScript.
    JavaScript,
    TypeScriptDeclarations,
    Go,
    /// C or C++.
    C,
    /// In a header of C or C++, most functions are only declared.
    CHeader,
    /// Java, Kotlin, Scala or Groovy.
    Java,
    CSharp,
    Ruby,
    Php,
    Shell,
    Sql,
    /// Markdown or another text with headings.
    Markdown,
    /// A configuration file with keys and values, such as TOML, YAML, JSON or INI.
    Config,
    Other,
}

const LANGUAGE_BY_EXTENSION: &[(ProgrammingLanguage, &[&str])] = &[
    (ProgrammingLanguage::Rust, &["rs"]),
    (ProgrammingLanguage::Python, &["py", "pyi", "pyx"]),
    (ProgrammingLanguage::JavaScript, &["js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "vue", "svelte"]),
    (ProgrammingLanguage::Go, &["go"]),
    (ProgrammingLanguage::C, &["c", "cc", "cpp", "cxx", "m", "mm", "cu", "inl"]),
    (ProgrammingLanguage::CHeader, &["h", "hh", "hpp", "hxx"]),
    (ProgrammingLanguage::Java, &["java", "kt", "kts", "scala", "groovy"]),
    (ProgrammingLanguage::CSharp, &["cs"]),
    (ProgrammingLanguage::Ruby, &["rb", "rake", "gemspec"]),
    (ProgrammingLanguage::Php, &["php", "phtml"]),
    (ProgrammingLanguage::Shell, &["sh", "bash", "zsh", "ksh", "fish"]),
    (ProgrammingLanguage::Sql, &["sql"]),
    (ProgrammingLanguage::Markdown, &["md", "mdx", "markdown", "rst", "adoc"]),
    (
        ProgrammingLanguage::Config,
        &["toml", "yaml", "yml", "json", "jsonc", "ini", "cfg", "conf", "properties", "env", "lock"],
    ),
];

const DECLARATION_EXTENSIONS: &[&str] = &[".d.ts", ".d.mts", ".d.cts"];

impl ProgrammingLanguage {
    pub(super) fn from_path(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        if DECLARATION_EXTENSIONS.iter().any(|ending| name.ends_with(ending)) {
            return Self::TypeScriptDeclarations;
        }
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase();
        let known = LANGUAGE_BY_EXTENSION.iter().find(|(_, endings)| endings.contains(&ending.as_str()));
        known.map_or(Self::Other, |(language, _)| *language)
    }

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
            ("src/a.rs", ProgrammingLanguage::Rust),
            ("a.test.TSX", ProgrammingLanguage::JavaScript),
            ("Makefile", ProgrammingLanguage::Other),
            ("d.py/readme", ProgrammingLanguage::Other),
            ("x.h", ProgrammingLanguage::CHeader),
            ("x.d.ts", ProgrammingLanguage::TypeScriptDeclarations),
            ("Cargo.toml", ProgrammingLanguage::Config),
        ] {
            assert_eq!(ProgrammingLanguage::from_path(path), expected, "{path}");
        }
    }

    #[test]
    fn recognises_imports_and_comments() {
        for (language, line, import, comment) in [
            (ProgrammingLanguage::Rust, "pub(crate) use a::B;", true, false),
            (ProgrammingLanguage::Rust, "    /// use a::B", false, true),
            (ProgrammingLanguage::Rust, "user(a);", false, false),
            (ProgrammingLanguage::Python, "from a import b", true, false),
            (ProgrammingLanguage::Python, "from_a = 1", false, false),
            (ProgrammingLanguage::JavaScript, "const a = require('b');", true, false),
            (ProgrammingLanguage::JavaScript, " * import a", false, true),
            (ProgrammingLanguage::C, "#  include <a.h>", true, false),
            (ProgrammingLanguage::C, "#define A 1", false, false),
            (ProgrammingLanguage::Markdown, "# import a", false, false),
        ] {
            assert_eq!(language.is_import(line), import, "{line}");
            assert_eq!(language.is_comment(line), comment, "{line}");
        }
    }
}
