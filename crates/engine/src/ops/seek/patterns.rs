//! One file of ignore patterns, as git reads it: the last pattern that fits decides, `!` takes back, a slash at the end
//! means directories, a slash elsewhere ties a pattern to the directory of the file. Pure: it is given bytes.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

use globset::{Candidate, Glob, GlobBuilder, GlobSet, GlobSetBuilder};

use crate::limits;

/// What patterns say about a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing.
    Silent,
    /// It is left out.
    Left,
    /// It is taken in, whatever was said further up.
    Taken,
}

/// What kind of place is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Directory,
    Other,
}

/// The patterns of one file.
#[derive(Debug)]
pub(super) struct Patterns {
    set: GlobSet,
    /// What each pattern of the set says, in the order of the file.
    says: Vec<Says>,
}

/// What one pattern says.
#[derive(Debug, Clone, Copy)]
struct Says {
    verdict: Verdict,
    about: About,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Anything,
    Directories,
}

impl Patterns {
    /// The patterns in these bytes; nothing when there are none. A line that cannot be read is passed over, as git does.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (mut set, mut says) = (GlobSetBuilder::new(), Vec::new());
        let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
        for line in bytes.split(|byte| *byte == b'\n').take(limits::IGNORE_PATTERNS_MAX) {
            let Ok(line) = std::str::from_utf8(line) else { continue };
            if let Some((glob, said)) = pattern(line) {
                set.add(glob);
                says.push(said);
            }
        }
        if says.is_empty() { None } else { Some(Self { set: set.build().ok()?, says }) }
    }

    /// What they say about a path, given from the directory of the file.
    pub(super) fn judge(&self, below: &[u8], place: Place) -> Verdict {
        let candidate = Candidate::new(Path::new(OsStr::from_bytes(below)));
        let fitting = self.set.matches_candidate(&candidate);
        let applies = |says: &&Says| says.about == About::Anything || place == Place::Directory;
        let said = fitting.iter().rev().filter_map(|index| self.says.get(*index)).find(applies);
        said.map_or(Verdict::Silent, |said| said.verdict)
    }
}

/// One line as a glob over paths from the directory of the file.
fn pattern(line: &str) -> Option<(Glob, Says)> {
    if line.starts_with('#') {
        return None;
    }
    let line = if line.ends_with("\\ ") { line } else { line.trim_end() };
    let (verdict, line) = match line.strip_prefix('!') {
        Some(rest) => (Verdict::Taken, rest),
        None => (Verdict::Left, line),
    };
    // Only the first character can be one that would mean something else.
    let line = if line.starts_with("\\!") || line.starts_with("\\#") { &line[1..] } else { line };
    let (about, line) = match line.strip_suffix('/') {
        Some(rest) => (About::Directories, rest.strip_suffix('\\').unwrap_or(rest)),
        None => (About::Anything, line),
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
    Some((glob, Says { verdict, about }))
}

/// A byte order mark that some editors put in front.
const MARK: &[u8] = b"\xef\xbb\xbf";

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(patterns: &str, path: &str) -> Verdict {
        let place = if path.ends_with('/') { Place::Directory } else { Place::Other };
        let path = path.strip_suffix('/').unwrap_or(path);
        Patterns::read(patterns.as_bytes()).map_or(Verdict::Silent, |read| read.judge(path.as_bytes(), place))
    }

    #[test]
    fn a_name_fits_at_any_depth_and_a_slash_ties_it() {
        for (patterns, path, expected) in [
            ("*.o", "a.o", Verdict::Left),
            ("*.o", "d/e/a.o", Verdict::Left),
            ("/*.o", "d/a.o", Verdict::Silent),
            ("/*.o", "a.o", Verdict::Left),
            ("d/*.o", "d/a.o", Verdict::Left),
            ("d/*.o", "x/d/a.o", Verdict::Silent),
            ("d/*.o", "d/e/a.o", Verdict::Silent),
            ("**/d/*.o", "x/d/a.o", Verdict::Left),
            ("d/**", "d/", Verdict::Silent),
            ("d/**", "d/x", Verdict::Left),
            ("a/**/z", "a/z", Verdict::Left),
            ("a/**/z", "a/b/c/z", Verdict::Left),
        ] {
            assert_eq!(judged(patterns, path), expected, "{patterns} {path}");
        }
    }

    #[test]
    fn a_slash_at_the_end_means_directories() {
        assert_eq!(judged("build/", "build/"), Verdict::Left);
        assert_eq!(judged("build/", "x/build/"), Verdict::Left);
        assert_eq!(judged("build/", "build"), Verdict::Silent);
        assert_eq!(judged("/build/", "x/build/"), Verdict::Silent);
    }

    #[test]
    fn the_last_word_counts_and_can_be_taken_back() {
        assert_eq!(judged("*.log\n!keep.log\n", "keep.log"), Verdict::Taken);
        assert_eq!(judged("!keep.log\n*.log\n", "keep.log"), Verdict::Left);
        assert_eq!(judged("*\n!*/\n", "d/"), Verdict::Taken);
        assert_eq!(judged("*\n!*/\n", "d"), Verdict::Left);
    }

    #[test]
    fn what_is_no_pattern_is_passed_over() {
        assert!(Patterns::read(b"# a comment\n\n   \n!\n/\n").is_none());
        assert_eq!(judged("\\#a\n\\!b\n", "#a"), Verdict::Left);
        assert_eq!(judged("\\#a\n\\!b\n", "!b"), Verdict::Left);
        assert_eq!(judged("a  \r\n", "a"), Verdict::Left);
        assert_eq!(judged("a\\ \n", "a "), Verdict::Left);
        assert_eq!(judged("\u{feff}a\n", "a"), Verdict::Left);
        let mixed = Patterns::read(b"\xff\xfe\na\n").unwrap();
        assert_eq!(mixed.judge(b"a", Place::Other), Verdict::Left);
    }
}
