//! Glob patterns for validated paths, which are matched as text without reading the disk. `*` and `?` match within one
//! name, `**` matches any number of names, and character classes and braces work as in a shell.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use stead_path::RelPath;

use crate::errors::{Error, ErrorKind};

/// A set of glob patterns, which a path matches if it matches any of the patterns.
#[derive(Debug, Clone, Default)]
pub struct GlobPatternSet {
    matching: GlobSet,
    /// Patterns of directories that are matched with all their content: `src` for the glob pattern `src/**`.
    whole_directories: GlobSet,
    count: usize,
}

impl GlobPatternSet {
    /// Compiles glob patterns that must match a whole path.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let (mut matching, mut whole) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let mut count = 0;
        for pattern in patterns {
            count += 1;
            matching.add(parse_glob(pattern)?);
            if let Some(directory) = pattern.strip_suffix("/**") {
                whole.add(parse_glob(directory)?);
            }
        }
        Ok(Self { matching: build_glob_set(&matching)?, whole_directories: build_glob_set(&whole)?, count })
    }

    /// Compiles glob patterns as ignore files use them. A glob pattern without a slash matches names at any depth; a
    /// leading slash anchors the pattern at the top directory.
    pub fn from_name_patterns<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let anywhere = |pattern: &str| match pattern.strip_prefix('/') {
            Some(top) => top.to_owned(),
            None if pattern.contains('/') => pattern.to_owned(),
            None => format!("**/{pattern}"),
        };
        let patterns: Vec<String> = patterns.into_iter().map(anywhere).collect();
        Self::new(patterns.iter().map(String::as_str))
    }

    /// Whether the set of glob patterns is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a path matches one of the glob patterns.
    pub fn matches(&self, path: &RelPath) -> bool {
        self.matches_bytes(path.as_bytes())
    }

    /// Whether everything below a directory matches one of the glob patterns.
    pub fn matches_all_below(&self, directory: &RelPath) -> bool {
        self.matches_all_below_bytes(directory.as_bytes())
    }

    pub(crate) fn matches_bytes(&self, path: &[u8]) -> bool {
        self.count > 0 && self.matching.is_match(bytes_as_path(path))
    }

    pub(crate) fn matches_all_below_bytes(&self, directory: &[u8]) -> bool {
        self.count > 0 && self.whole_directories.is_match(bytes_as_path(directory))
    }

    /// Whether a glob pattern matches the path or a parent directory; the pattern `src/**` also covers `src` itself.
    pub(crate) fn covers(&self, path: &RelPath) -> bool {
        let covered = |path: &RelPath| self.matches(path) || self.matches_all_below(path);
        self.count > 0 && (covered(path) || path.ancestors().any(|above| !above.is_root() && covered(&above)))
    }
}

fn bytes_as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

fn parse_glob(pattern: &str) -> Result<globset::Glob, Error> {
    GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build().map_err(|error| {
        Error::new(ErrorKind::BadRequest, format!("pattern '{pattern}' is invalid: {}", error.kind()))
            .with_next_step("patterns support *, **, ?, [ab], [!ab] and {a,b}")
    })
}

fn build_glob_set(builder: &GlobSetBuilder) -> Result<GlobSet, Error> {
    builder.build().map_err(|error| {
        Error::new(ErrorKind::BadRequest, format!("the patterns cannot be used together: {error}"))
            .with_next_step("use fewer or shorter patterns")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rel_path(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    #[test]
    fn globs_follow_shell_rules() {
        for (pattern, path, expected) in [
            ("*.ts", "a.ts", true),
            ("*.ts", "src/a.ts", false),
            ("*.ts", ".hid.ts", true),
            ("**/*.ts", "a.ts", true),
            ("**/*.ts", "src/deep/a.ts", true),
            ("src/**", "src/a/b", true),
            ("src/**", "src", false),
            ("src/[ab].ts", "src/a.ts", true),
            ("src/[!ab].ts", "src/a.ts", false),
            ("src/{a,deep/b}.ts", "src/deep/b.ts", true),
            ("src/?.ts", "src/ab.ts", false),
            ("**", "a/b/c", true),
        ] {
            assert_eq!(GlobPatternSet::new([pattern]).unwrap().matches(&rel_path(path)), expected, "{pattern} {path}");
        }
        assert!(GlobPatternSet::new(["a["]).is_err());
        assert!(GlobPatternSet::from_name_patterns(["*.ts"]).unwrap().matches(&rel_path("src/deep/a.ts")));
        let top = GlobPatternSet::from_name_patterns(["/*.ts"]).unwrap();
        assert!(top.matches(&rel_path("a.ts")) && !top.matches(&rel_path("src/a.ts")));
    }

    #[test]
    fn glob_covers_the_directory_and_everything_below_it() {
        let hidden = GlobPatternSet::new([".git/**", "**/.env*", "**/secrets/**"]).unwrap();
        for path in [".git", ".git/config", ".git/a/b", ".env", "d/.env.local", "k/secrets", "k/secrets/a/b"] {
            assert!(hidden.covers(&rel_path(path)), "{path}");
        }
        for path in ["a", ".gitignore", "d/env", "secret"] {
            assert!(!hidden.covers(&rel_path(path)), "{path}");
        }
        assert!(!GlobPatternSet::default().covers(&rel_path("a")));
    }
}
