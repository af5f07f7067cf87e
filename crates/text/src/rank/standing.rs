//! How much a file counts for what it is, by its path alone: what people write by hand and ship counts whole; tests,
//! examples, what was brought from elsewhere and what programs write counts less.

/// What kind of file a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Written here, and part of the thing itself.
    Own,
    /// Says what is elsewhere: declarations beside a program.
    Declared,
    /// A test, an example, a measurement.
    Test,
    /// Brought from elsewhere.
    Vendored,
    /// Written by a program, or squeezed by one.
    Generated,
    /// Written by a program, and only says what is elsewhere.
    GeneratedDeclared,
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
const VENDORED_DIRECTORIES: &[&str] = &[
    "vendor",
    "vendored",
    "_vendor",
    "node_modules",
    "third_party",
    "third-party",
    "external",
    "site-packages",
];
const GENERATED_DIRECTORIES: &[&str] =
    &["dist", "build", "generated", "__generated__", "gen", "coverage", "target"];
const GENERATED_ENDINGS: &[&str] = &[
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

/// Where names are declared that have their bodies elsewhere, if anywhere.
const DECLARED_ENDINGS: &[&str] = &[".d.ts", ".d.mts", ".d.cts", ".pyi"];

impl Standing {
    /// The standing of a file with this path.
    pub fn of(path: &str) -> Self {
        let path = path.to_ascii_lowercase();
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let has = |wanted: &[&str]| directories.split('/').any(|directory| wanted.contains(&directory));
        let stem = name.split('.').next().unwrap_or(name);
        let declares = DECLARED_ENDINGS.iter().any(|ending| name.ends_with(ending));
        if has(GENERATED_DIRECTORIES) && declares {
            Self::GeneratedDeclared
        } else if has(GENERATED_DIRECTORIES) || GENERATED_ENDINGS.iter().any(|ending| name.ends_with(ending))
        {
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
            Self::Declared
        } else {
            Self::Own
        }
    }

    /// What a hit in such a file counts, in percent.
    pub(super) fn percent(self) -> u32 {
        match self {
            Self::Own => 100,
            Self::Declared => 70,
            Self::Test | Self::Vendored => 30,
            Self::Generated => 20,
            Self::GeneratedDeclared => 14,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_what_a_file_is() {
        for (path, expected) in [
            ("src/a.rs", Standing::Own),
            ("src/latest.rs", Standing::Own),
            ("tests/it/a.rs", Standing::Test),
            ("src/a_test.go", Standing::Test),
            ("a/b.spec.ts", Standing::Test),
            ("test_a.py", Standing::Test),
            ("node_modules/a/index.js", Standing::Vendored),
            ("dist/a.js", Standing::Generated),
            ("a.min.js", Standing::Generated),
            ("Cargo.lock", Standing::Generated),
            ("types/a.d.ts", Standing::Declared),
            ("dist/a.d.ts", Standing::GeneratedDeclared),
        ] {
            assert_eq!(Standing::of(path), expected, "{path}");
        }
    }
}
