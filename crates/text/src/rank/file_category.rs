//! Determines the category of a file by its path alone. Search hits in hand-written source get the full score, and hits
//! in other files get a lower score.

use crate::is_listed;

/// The category of a file, by which its search hits are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SearchRankFileCategory {
    Source,
    /// The file only declares names that are defined in other files.
    Declarations,
    /// The file is a test, an example or a benchmark.
    Test,
    /// The file is copied from another project.
    Vendored,
    /// The file is generated or minified.
    Generated,
    /// The file is generated and declares names that are defined in other files.
    GeneratedDeclarations,
}

const TEST_DIRECTORIES: &str = "\
    test tests testing __tests__ testdata spec specs example examples bench benches benchmark benchmarks fixtures \
    fixture mock mocks legacy e2e fuzz";
const VENDORED_DIRECTORIES: &str = "\
    vendor vendored _vendor node_modules third_party third-party external site-packages";
const GENERATED_DIRECTORIES: &str = "dist build generated __generated__ gen coverage target";
const GENERATED_SUFFIXES: &str = "\
    .min.js .min.css .map .lock .pb.go _pb2.py _pb2_grpc.py .g.dart .designer.cs -lock.json .snap .svg .bundle.js";

const DECLARATION_SUFFIXES: &str = ".d.ts .d.mts .d.cts .pyi";

impl SearchRankFileCategory {
    /// Returns the category of the file at `path`.
    pub fn from_path(path: &str) -> Self {
        let path = path.to_ascii_lowercase();
        let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let is_below = |names: &str| directories.split('/').any(|directory| is_listed(names, directory));
        let ends_with = |suffixes: &str| suffixes.split_ascii_whitespace().any(|suffix| name.ends_with(suffix));
        let stem = name.split('.').next().unwrap_or(name);
        let declares = ends_with(DECLARATION_SUFFIXES);
        if is_below(GENERATED_DIRECTORIES) && declares {
            Self::GeneratedDeclarations
        } else if is_below(GENERATED_DIRECTORIES) || ends_with(GENERATED_SUFFIXES) {
            Self::Generated
        } else if is_below(VENDORED_DIRECTORIES) {
            Self::Vendored
        } else if is_below(TEST_DIRECTORIES)
            || matches!(stem, "test" | "tests" | "conftest")
            || stem.starts_with("test_")
            || ["_test", "_tests", "_spec", "-test"].iter().any(|suffix| stem.ends_with(suffix))
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
            ("src/a.rs", SearchRankFileCategory::Source),
            ("src/latest.rs", SearchRankFileCategory::Source),
            ("tests/it/a.rs", SearchRankFileCategory::Test),
            ("src/a_test.go", SearchRankFileCategory::Test),
            ("a/b.spec.ts", SearchRankFileCategory::Test),
            ("test_a.py", SearchRankFileCategory::Test),
            ("node_modules/a/index.js", SearchRankFileCategory::Vendored),
            ("dist/a.js", SearchRankFileCategory::Generated),
            ("a.min.js", SearchRankFileCategory::Generated),
            ("Cargo.lock", SearchRankFileCategory::Generated),
            ("types/a.d.ts", SearchRankFileCategory::Declarations),
            ("dist/a.d.ts", SearchRankFileCategory::GeneratedDeclarations),
        ] {
            assert_eq!(SearchRankFileCategory::from_path(path), expected, "{path}");
        }
    }
}
