//! Glob patterns over checked paths. `*` and `?` stay within one name, `**` crosses any number of them, classes and
//! braces are as in every shell. Pure: patterns are compared with paths, never with a disk.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use path::RelPath;

use crate::failure::{Failure, Kind};

/// Patterns of which one is enough.
#[derive(Debug, Clone, Default)]
pub struct Globs {
    matching: GlobSet,
    /// Directories below which everything matches, so that nobody needs to look there.
    whole: GlobSet,
    count: usize,
}

impl Globs {
    /// Patterns over paths.
    pub fn new<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let (mut matching, mut whole) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let mut count = 0;
        for pattern in patterns {
            count += 1;
            matching.add(glob(pattern)?);
            if let Some(directory) = pattern.strip_suffix("/**") {
                whole.add(glob(directory)?);
            }
        }
        Ok(Self { matching: built(&matching)?, whole: built(&whole)?, count })
    }

    /// Patterns of which those without a slash mean a name at any depth; a slash at the start means the top.
    pub fn by_name<'a>(patterns: impl IntoIterator<Item = &'a str>) -> Result<Self, Failure> {
        let anywhere = |pattern: &str| match pattern.strip_prefix('/') {
            Some(top) => top.to_owned(),
            None if pattern.contains('/') => pattern.to_owned(),
            None => format!("**/{pattern}"),
        };
        let patterns: Vec<String> = patterns.into_iter().map(anywhere).collect();
        Self::new(patterns.iter().map(String::as_str))
    }

    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether a path matches.
    pub fn matches(&self, path: &RelPath) -> bool {
        self.match_bytes(path.as_bytes())
    }

    /// Whether everything below a directory matches.
    pub fn match_below(&self, directory: &RelPath) -> bool {
        self.match_bytes_below(directory.as_bytes())
    }

    /// Whether a path matches, given as its bytes.
    pub(crate) fn match_bytes(&self, path: &[u8]) -> bool {
        self.count > 0 && self.matching.is_match(seen(path))
    }

    /// Whether everything below a directory matches, given as its bytes.
    pub(crate) fn match_bytes_below(&self, directory: &[u8]) -> bool {
        self.count > 0 && self.whole.is_match(seen(directory))
    }

    /// Whether a place is hidden by these patterns: it, the directory whose whole content is meant, or something above.
    pub(crate) fn hide(&self, path: &RelPath) -> bool {
        let hidden = |path: &RelPath| self.matches(path) || self.match_below(path);
        self.count > 0 && (hidden(path) || path.ancestors().any(|above| !above.is_root() && hidden(&above)))
    }
}

/// The bytes of a path, as the matcher reads them.
fn seen(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

fn glob(pattern: &str) -> Result<globset::Glob, Failure> {
    GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build().map_err(|error| {
        Failure::new(Kind::BadRequest, format!("the pattern cannot be read: {}", error.kind()))
            .hint("patterns know *, **, ?, [ab], [!ab] and {a,b}")
    })
}

fn built(builder: &GlobSetBuilder) -> Result<GlobSet, Failure> {
    builder.build().map_err(|error| {
        Failure::new(Kind::BadRequest, format!("the patterns cannot be used: {error}"))
            .hint("use fewer or shorter patterns")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
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
            assert_eq!(Globs::new([pattern]).unwrap().matches(&at(path)), expected, "{pattern} {path}");
        }
        assert!(Globs::new(["a["]).is_err());
        assert!(Globs::by_name(["*.ts"]).unwrap().matches(&at("src/deep/a.ts")));
        let top = Globs::by_name(["/*.ts"]).unwrap();
        assert!(top.matches(&at("a.ts")) && !top.matches(&at("src/a.ts")));
    }

    #[test]
    fn what_is_hidden_hides_what_is_below_and_the_directory_whose_content_is_meant() {
        let hidden = Globs::new([".git/**", "**/.env*", "**/secrets/**"]).unwrap();
        for path in [".git", ".git/config", ".git/a/b", ".env", "d/.env.local", "k/secrets", "k/secrets/a/b"]
        {
            assert!(hidden.hide(&at(path)), "{path}");
        }
        for path in ["a", ".gitignore", "d/env", "secret"] {
            assert!(!hidden.hide(&at(path)), "{path}");
        }
        assert!(!Globs::default().hide(&at("a")));
    }
}
