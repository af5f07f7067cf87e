//! The rules of `.ignore`, `.gitignore` and `.git/info/exclude` files that make a walk omit paths. `.ignore` files have
//! precedence over `.gitignore` files, which have precedence over `.git/info/exclude`. Among ignore files of one kind,
//! the file closest to the path has precedence. Ignore files of git apply only inside their repository, and ignore
//! files that the caller may not read are skipped.
//!
//! The matcher of the crate `ignore` (0.4.34) gives the same results but is not used. With the crate `ignore`, `find`
//! was 13 % and `search` 7 % slower in 50,000 files with 1,041 ignore files.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path, sync::Arc};

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use stead_path::{FileName, RelPath};

use crate::{call_context::CallContext, limits, plan::FileKind, tree::DirectoryEntry};

#[derive(Debug, Default)]
pub(crate) struct IgnoreRules {
    parent: Option<Arc<IgnoreRules>>,
    /// The length in bytes of the path of the ignore file's directory, with a trailing slash.
    prefix_bytes: usize,
    ignore_file: Option<ParsedIgnoreFile>,
    git_ignore_file: Option<ParsedIgnoreFile>,
    git_exclude_file: Option<ParsedIgnoreFile>,
    is_repository_root: bool,
}

const IGNORE: &[u8] = b".ignore";
const GIT_IGNORE: &[u8] = b".gitignore";
const GIT_DIRECTORY: &[u8] = b".git";
const GIT_EXCLUDE: [&[u8]; 2] = [b"info", b"exclude"];

impl IgnoreRules {
    pub(super) fn for_start_directory(context: &CallContext<'_>, start: &RelPath) -> Arc<Self> {
        let mut rules = Arc::new(Self::default());
        let mut above: Vec<RelPath> = start.ancestors().filter(|above| above != start).collect();
        above.sort_by_key(RelPath::depth);
        let names: Vec<FileName> =
            [GIT_DIRECTORY, GIT_IGNORE, IGNORE].into_iter().filter_map(|name| FileName::new(name).ok()).collect();
        for directory in above {
            let Ok(stats) = context.stat_names(&directory, &names) else { continue };
            let existing = names
                .iter()
                .zip(stats)
                .filter_map(|(name, stat)| Some(DirectoryEntry { name: name.clone(), kind: stat.ok()??.kind }));
            let existing: Vec<_> = existing.collect();
            rules = rules.enter_directory(&|path| read_ignore_file(context, path), &directory, &existing);
        }
        rules
    }

    /// Adds the ignore rules of a directory; `listed` has the directory's entries in byte order.
    pub(crate) fn enter_directory(
        self: Arc<Self>,
        read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
        directory: &RelPath,
        listed: &[DirectoryEntry],
    ) -> Arc<Self> {
        let kind_of = |name: &[u8]| {
            let found = listed.binary_search_by(|listed| listed.name.as_bytes().cmp(name));
            found.ok().map(|at| listed[at].kind)
        };
        let file = |name: &[u8]| {
            (kind_of(name) == Some(FileKind::File)).then(|| parse_ignore_file(read, directory, &[name]))?
        };
        let repository = kind_of(GIT_DIRECTORY);
        let (ignore_file, git_ignore_file) = (file(IGNORE), file(GIT_IGNORE));
        let git_exclude_file = (repository == Some(FileKind::Directory))
            .then(|| parse_ignore_file(read, directory, &[GIT_DIRECTORY, GIT_EXCLUDE[0], GIT_EXCLUDE[1]]))
            .flatten();
        if ignore_file.is_none() && git_ignore_file.is_none() && git_exclude_file.is_none() && repository.is_none() {
            return self;
        }
        let prefix_bytes = if directory.is_root() { 0 } else { directory.as_bytes().len() + 1 };
        Arc::new(Self {
            parent: Some(self),
            prefix_bytes,
            ignore_file,
            git_ignore_file,
            git_exclude_file,
            is_repository_root: repository.is_some(),
        })
    }

    pub(super) fn evaluate(&self, path: &RelPath, kind: IgnorePathKind) -> IgnoreVerdict {
        let (mut ignore, mut git, mut exclude) =
            (IgnoreVerdict::NoMatch, IgnoreVerdict::NoMatch, IgnoreVerdict::NoMatch);
        let mut outside_repository = false;
        let mut next = Some(self);
        while let Some(rules) = next {
            let below = path.as_bytes().get(rules.prefix_bytes..).unwrap_or_default();
            let update = |verdict: &mut IgnoreVerdict, patterns: &Option<ParsedIgnoreFile>| {
                if *verdict == IgnoreVerdict::NoMatch
                    && let Some(patterns) = patterns
                {
                    *verdict = patterns.evaluate(below, kind);
                }
            };
            update(&mut ignore, &rules.ignore_file);
            if ignore != IgnoreVerdict::NoMatch {
                return ignore;
            }
            if !outside_repository {
                update(&mut git, &rules.git_ignore_file);
                update(&mut exclude, &rules.git_exclude_file);
            }
            outside_repository |= rules.is_repository_root;
            next = rules.parent.as_deref();
        }
        if git == IgnoreVerdict::NoMatch { exclude } else { git }
    }
}

fn parse_ignore_file(
    read: &dyn Fn(&RelPath) -> Option<Vec<u8>>,
    directory: &RelPath,
    names: &[&[u8]],
) -> Option<ParsedIgnoreFile> {
    let mut path = directory.clone();
    for name in names {
        path = path.join(&FileName::new(name).ok()?).ok()?;
    }
    ParsedIgnoreFile::parse(&read(&path)?)
}

pub(super) fn read_ignore_file(context: &CallContext<'_>, path: &RelPath) -> Option<Vec<u8>> {
    if !context.may_read(path) {
        return None;
    }
    context.workspace().read_without_version(path, limits::IGNORE_FILE_BYTES_MAX).ok()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreVerdict {
    NoMatch,
    Ignored,
    Included,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnorePathKind {
    Directory,
    Other,
}

#[derive(Debug)]
pub(super) struct ParsedIgnoreFile {
    globs: GlobSet,
    /// The patterns of the ignore file, at the same indexes as in `globs`.
    patterns: Vec<IgnorePattern>,
}

#[derive(Debug, Clone, Copy)]
struct IgnorePattern {
    verdict: IgnoreVerdict,
    scope: IgnorePatternEntryKinds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IgnorePatternEntryKinds {
    AnyEntry,
    DirectoriesOnly,
}

impl ParsedIgnoreFile {
    /// Parses an ignore file and skips its invalid lines, as git does.
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

    /// Evaluates a path, which `below` gives relative to the directory of the ignore file.
    pub(super) fn evaluate(&self, below: &[u8], kind: IgnorePathKind) -> IgnoreVerdict {
        let candidate = Candidate::new(Path::new(OsStr::from_bytes(below)));
        let matching = self.globs.matches_candidate(&candidate);
        let applies = |pattern: &&IgnorePattern| {
            pattern.scope == IgnorePatternEntryKinds::AnyEntry || kind == IgnorePathKind::Directory
        };
        let pattern = matching.iter().rev().filter_map(|index| self.patterns.get(*index)).find(applies);
        pattern.map_or(IgnoreVerdict::NoMatch, |pattern| pattern.verdict)
    }
}

fn parse_pattern(line: &str) -> Option<(Glob, IgnorePattern)> {
    if line.starts_with('#') {
        return None;
    }
    let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
    let (verdict, line) = match line.strip_prefix('!') {
        Some(rest) => (IgnoreVerdict::Included, rest),
        None => (IgnoreVerdict::Ignored, line),
    };
    // A backslash escapes `!` and `#` at the start of a line.
    let line = if line.starts_with("\\!") || line.starts_with("\\#") { &line[1..] } else { line };
    let (scope, line) = match line.strip_suffix('/') {
        Some(rest) => (IgnorePatternEntryKinds::DirectoriesOnly, rest.strip_suffix('\\').unwrap_or(rest)),
        None => (IgnorePatternEntryKinds::AnyEntry, line),
    };
    let anchored = line.contains('/');
    let line = line.strip_prefix('/').unwrap_or(line);
    if line.is_empty() {
        return None;
    }
    let mut glob = if anchored || line == "**" { line.to_owned() } else { format!("**/{line}") };
    if glob.ends_with("/**") {
        // The pattern matches everything inside the directory, but not the directory itself.
        glob.push_str("/*");
    }
    let glob = GlobBuilder::new(&glob)
        .literal_separator(true)
        .backslash_escape(true)
        .allow_unclosed_class(true)
        .build()
        .ok()?;
    Some((glob, IgnorePattern { verdict, scope }))
}

const UTF8_BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict_for(patterns: &str, path: &str) -> IgnoreVerdict {
        let kind = if path.ends_with('/') { IgnorePathKind::Directory } else { IgnorePathKind::Other };
        let path = path.strip_suffix('/').unwrap_or(path);
        ParsedIgnoreFile::parse(patterns.as_bytes())
            .map_or(IgnoreVerdict::NoMatch, |file| file.evaluate(path.as_bytes(), kind))
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
        assert!(ParsedIgnoreFile::parse(b"# a comment\n\n   \n!\n/\n").is_none());
        assert_eq!(verdict_for("\\#a\n\\!b\n", "#a"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("\\#a\n\\!b\n", "!b"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("a  \r\n", "a"), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("a\\ \n", "a "), IgnoreVerdict::Ignored);
        assert_eq!(verdict_for("\u{feff}a\n", "a"), IgnoreVerdict::Ignored);
        let mixed = ParsedIgnoreFile::parse(b"\xff\xfe\na\n").unwrap();
        assert_eq!(mixed.evaluate(b"a", IgnorePathKind::Other), IgnoreVerdict::Ignored);
    }
}
