//! One ignore file, as git reads it: the last matching pattern wins, `!` negates, a trailing slash matches
//! directories only, any other slash anchors the pattern at the directory of the file. Pure: works on bytes.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::limits;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreVerdict {
    NoMatch,
    Ignored,
    /// Included by a negated pattern, whatever earlier patterns say.
    Included,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnorePathKind {
    Directory,
    Other,
}

#[derive(Debug)]
pub(super) struct IgnoreFile {
    globs: GlobSet,
    /// The effect of each pattern, in file order.
    patterns: Vec<IgnorePattern>,
}

#[derive(Debug, Clone, Copy)]
struct IgnorePattern {
    verdict: IgnoreVerdict,
    scope: IgnorePatternScope,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IgnorePatternScope {
    AnyEntry,
    DirectoriesOnly,
}

impl IgnoreFile {
    /// Parses the patterns; `None` if there are none. Invalid lines are skipped, as in git.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (mut set, mut patterns) = (GlobSetBuilder::new(), Vec::new());
        let bytes = bytes.strip_prefix(UTF8_BYTE_ORDER_MARK).unwrap_or(bytes);
        for line in bytes.split(|byte| *byte == b'\n').take(limits::IGNORE_PATTERNS_MAX) {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            if let Some((glob, pattern)) = parse_pattern(line) {
                set.add(glob);
                patterns.push(pattern);
            }
        }
        if patterns.is_empty() { None } else { Some(Self { globs: set.build().ok()?, patterns }) }
    }

    /// The verdict for a path relative to the directory of the file.
    pub(super) fn evaluate(&self, below: &[u8], kind: IgnorePathKind) -> IgnoreVerdict {
        let candidate = Candidate::new(Path::new(OsStr::from_bytes(below)));
        let fitting = self.globs.matches_candidate(&candidate);
        let applies = |pattern: &&IgnorePattern| {
            pattern.scope == IgnorePatternScope::AnyEntry || kind == IgnorePathKind::Directory
        };
        let pattern = fitting.iter().rev().filter_map(|index| self.patterns.get(*index)).find(applies);
        pattern.map_or(IgnoreVerdict::NoMatch, |pattern| pattern.verdict)
    }
}

/// Parses one line as a glob for paths relative to the directory of the file.
fn parse_pattern(line: &str) -> Option<(Glob, IgnorePattern)> {
    if line.starts_with('#') {
        return None;
    }
    let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
    let (verdict, line) = match line.strip_prefix('!') {
        Some(rest) => (IgnoreVerdict::Included, rest),
        None => (IgnoreVerdict::Ignored, line),
    };
    // Only the first character needs an escape.
    let line = if line.starts_with("\\!") || line.starts_with("\\#") { &line[1..] } else { line };
    let (about, line) = match line.strip_suffix('/') {
        Some(rest) => (IgnorePatternScope::DirectoriesOnly, rest.strip_suffix('\\').unwrap_or(rest)),
        None => (IgnorePatternScope::AnyEntry, line),
    };
    let tied = line.contains('/');
    let line = line.strip_prefix('/').unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let mut glob = if tied || line == "**" { line.to_owned() } else { format!("**/{line}") };
    if glob.ends_with("/**") {
        // Everything inside, but not the directory itself.
        glob.push_str("/*");
    }
    let glob = GlobBuilder::new(&glob)
        .literal_separator(true)
        .backslash_escape(true)
        .allow_unclosed_class(true)
        .build()
        .ok()?;
    Some((glob, IgnorePattern { verdict, scope: about }))
}

/// Some editors write a byte order mark.
const UTF8_BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_for(patterns: &str, path: &str) -> IgnoreVerdict {
        let kind = if path.ends_with('/') { IgnorePathKind::Directory } else { IgnorePathKind::Other };
        let path = path.strip_suffix('/').unwrap_or(path);
        IgnoreFile::parse(patterns.as_bytes())
            .map_or(IgnoreVerdict::NoMatch, |read| read.evaluate(path.as_bytes(), kind))
    }

    #[test]
    fn names_match_at_any_depth_slashes_anchor() {
        for (patterns, path, expected) in [
            ("*.o", "a.o", IgnoreVerdict::Ignored),
            ("*.o", "d/e/a.o", IgnoreVerdict::Ignored),
            ("/*.o", "d/a.o", IgnoreVerdict::NoMatch),
            ("/*.o", "a.o", IgnoreVerdict::Ignored),
            ("d/*.o", "d/a.o", IgnoreVerdict::Ignored),
            ("d/*.o", "x/d/a.o", IgnoreVerdict::NoMatch),
            ("d/*.o", "d/e/a.o", IgnoreVerdict::NoMatch),
            ("**/d/*.o", "x/d/a.o", IgnoreVerdict::Ignored),
            ("d/**", "d/", IgnoreVerdict::NoMatch),
            ("d/**", "d/x", IgnoreVerdict::Ignored),
            ("a/**/z", "a/z", IgnoreVerdict::Ignored),
            ("a/**/z", "a/b/c/z", IgnoreVerdict::Ignored),
        ] {
            assert_eq!(verdict_for(patterns, path), expected, "{patterns} {path}");
        }
    }

    #[test]
    fn trailing_slash_matches_directories_only() {
        assert_eq!(verdict_for("build/", "build/"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("build/", "x/build/"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("build/", "build"), IgnoreVerdict::NoMatch);
        assert_eq!(verdict_for("/build/", "x/build/"), IgnoreVerdict::NoMatch);
    }

    #[test]
    fn last_pattern_wins_and_negation_reincludes() {
        assert_eq!(verdict_for("*.log\n!keep.log\n", "keep.log"), IgnoreVerdict::Included);
        assert_eq!(verdict_for("!keep.log\n*.log\n", "keep.log"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("*\n!*/\n", "d/"), IgnoreVerdict::Included);
        assert_eq!(verdict_for("*\n!*/\n", "d"), IgnoreVerdict::Ignored);
    }

    #[test]
    fn invalid_pattern_lines_are_skipped() {
        assert!(IgnoreFile::parse(b"# a comment\n\n   \n!\n/\n").is_none());
        assert_eq!(verdict_for("\\#a\n\\!b\n", "#a"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("\\#a\n\\!b\n", "!b"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("a  \r\n", "a"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("a\\ \n", "a "), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("\u{feff}a\n", "a"), IgnoreVerdict::Ignored);
        let mixed = IgnoreFile::parse(b"\xff\xfe\na\n").unwrap();
        assert_eq!(mixed.evaluate(b"a", IgnorePathKind::Other), IgnoreVerdict::Ignored);
    }
}
