//! Weight of a file by its path alone: shipped, hand-written source counts fully; tests, examples, vendored and
//! generated files count less.

/// The category of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileCategory {
    /// Hand-written source.
    Source,
    /// Declarations of code that is elsewhere.
    Declarations,
    /// A test, an example or a benchmark.
    Test,
    /// Copied from another project.
    Vendored,
    /// Generated or minified.
    Generated,
    /// Generated declarations.
    GeneratedDeclarations,
}

const TEST_DIRECTORIES: &[&str] = &[
    "test",
    "tests",
    "testing",
    "__tests__",
    "testdata",
    "spec",
    "specs",
    "example",
    "examples",
    "bench",
    "benches",
    "benchmark",
    "benchmarks",
    "fixtures",
    "fixture",
    "mock",
    "mocks",
    "legacy",
    "e2e",
    "fuzz",
];
const VENDORED_DIRECTORIES: &[&str] =
    &["vendor", "vendored", "_vendor", "node_modules", "third_party", "third-party", "external", "site-packages"];
const GENERATED_DIRECTORIES: &[&str] = &["dist", "build", "generated", "__generated__", "gen", "coverage", "target"];
const GENERATED_SUFFIXES: &[&str] = &[
    ".min.js",
    ".min.css",
    ".map",
    ".lock",
    ".pb.go",
    "_pb2.py",
    "_pb2_grpc.py",
    ".g.dart",
    ".designer.cs",
    "-lock.json",
    ".snap",
    ".svg",
    ".bundle.js",
];

/// Suffixes of files that declare names whose bodies are elsewhere.
const DECLARATION_SUFFIXES: &[&str] = &[".d.ts", ".d.mts", ".d.cts", ".pyi"];

impl FileCategory {
    /// The category of a file with this path.
    pub fn from_path(path: &str) -> Self {
        let path = path.to_ascii_lowercase();
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let has = |names: &[&str]| directories.split('/').any(|directory| names.contains(&directory));
        let stem = name.split('.').next().unwrap_or(name);
        let declares = DECLARATION_SUFFIXES.iter().any(|ending| name.ends_with(ending));
        if has(GENERATED_DIRECTORIES) && declares {
            Self::GeneratedDeclarations
        } else if has(GENERATED_DIRECTORIES) || GENERATED_SUFFIXES.iter().any(|ending| name.ends_with(ending)) {
            Self::Generated
        } else if has(VENDORED_DIRECTORIES) {
            Self::Vendored
        } else if has(TEST_DIRECTORIES)
            || matches!(stem, "test" | "tests" | "conftest")
            || stem.starts_with("test_")
            || ["_test", "_tests", "_spec", "-test"].iter().any(|ending| stem.ends_with(ending))
            || name.contains(".test.")
            || name.contains(".spec.")
        {
            Self::Test
        } else if declares {
            Self::Declarations
        } else {
            Self::Source
        }
    }

    /// The factor for hits in such a file, in percent.
    pub(super) fn score_percent(self) -> u32 {
        match self {
            Self::Source => 100,
            Self::Declarations => 70,
            Self::Test | Self::Vendored => 30,
            Self::Generated => 20,
            Self::GeneratedDeclarations => 14,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classifies_files_by_path() {
        for (path, expected) in [
            ("src/a.rs", FileCategory::Source),
            ("src/latest.rs", FileCategory::Source),
            ("tests/it/a.rs", FileCategory::Test),
            ("src/a_test.go", FileCategory::Test),
            ("a/b.spec.ts", FileCategory::Test),
            ("test_a.py", FileCategory::Test),
            ("node_modules/a/index.js", FileCategory::Vendored),
            ("dist/a.js", FileCategory::Generated),
            ("a.min.js", FileCategory::Generated),
            ("Cargo.lock", FileCategory::Generated),
            ("types/a.d.ts", FileCategory::Declarations),
            ("dist/a.d.ts", FileCategory::GeneratedDeclarations),
        ] {
            assert_eq!(FileCategory::from_path(path), expected, "{path}");
        }
    }
}
