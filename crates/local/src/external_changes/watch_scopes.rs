//! Determines which paths and directories the clients' watches cover.

use std::collections::{HashMap, HashSet};

use stead_engine::{GlobPatternSet, Watch, WatchDepth};
use stead_path::RelPath;

/// A `.git` directory is watched only if the path of a watch is the `.git` directory or is below it.
const GIT_DIRECTORY: &[u8] = b".git";

#[derive(Default)]
pub(crate) struct CombinedWatchScopes {
    by_path: HashMap<RelPath, Vec<WatchScope>>,
    /// The directories above the paths of all clients' watches.
    parents: HashSet<RelPath>,
}

struct WatchScope {
    depth: WatchDepth,
    globs: Option<GlobPatternSet>,
}

impl CombinedWatchScopes {
    pub(crate) fn new<'a>(watches: impl IntoIterator<Item = &'a Watch>) -> Self {
        let mut scopes = Self::default();
        for watch in watches {
            // The pattern was checked when it was stored. If it cannot be parsed now, the watch covers all names.
            let globs = watch.glob.as_deref().and_then(|glob| GlobPatternSet::from_name_patterns([glob]).ok());
            scopes.by_path.entry(watch.path.clone()).or_default().push(WatchScope { depth: watch.depth, globs });
            scopes.parents.extend(watch.path.ancestors());
        }
        scopes
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &RelPath> {
        self.by_path.keys()
    }

    pub(crate) fn covers(&self, path: &RelPath) -> bool {
        let at = |scope_path: &RelPath| {
            let Some(scopes) = self.by_path.get(scope_path) else { return false };
            let Some(below) = path.strip_prefix(scope_path) else { return false };
            scopes.iter().any(|scope| scope.covers(&below))
        };
        at(path) || path.ancestors().any(|scope_path| at(&scope_path))
    }

    /// A path is relevant if a client's watch covers the path, or if a watched path is below it.
    pub(crate) fn is_relevant(&self, path: &RelPath) -> bool {
        self.parents.contains(path) || self.covers(path)
    }

    pub(crate) fn must_watch(&self, directory: &RelPath) -> bool {
        let deep = |scope_path: &RelPath| {
            let reaches = |scopes: &Vec<WatchScope>| scopes.iter().any(|scope| scope.depth == WatchDepth::Deep);
            self.by_path.get(scope_path).is_some_and(reaches)
                && directory.strip_prefix(scope_path).is_some_and(|b| !is_git_internal(&b))
        };
        self.parents.contains(directory)
            || self.by_path.contains_key(directory)
            || directory.ancestors().any(|scope_path| deep(&scope_path))
    }
}

impl WatchScope {
    fn covers(&self, below: &RelPath) -> bool {
        if below.is_root() {
            return true;
        }
        let reached = match self.depth {
            WatchDepth::Shallow => below.depth() == 1,
            WatchDepth::Deep => !below.parent().is_some_and(|parent| is_git_internal(&parent)),
        };
        reached && self.globs.as_ref().is_none_or(|globs| globs.matches(below))
    }
}

fn is_git_internal(below: &RelPath) -> bool {
    below.components().any(|name| name == GIT_DIRECTORY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rel_path(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    fn watch(path: &str, depth: WatchDepth, glob: Option<&str>) -> Watch {
        Watch {
            id: "w".into(),
            owner: "user:a".into(),
            session: "s".into(),
            path: rel_path(path),
            depth,
            event_kinds: Vec::new(),
            glob: glob.map(str::to_owned),
            started_at_entry: 1,
        }
    }

    #[test]
    fn covered_paths_and_directories_to_watch() {
        let scopes = CombinedWatchScopes::new([
            &watch("a/b", WatchDepth::Shallow, None),
            &watch("d", WatchDepth::Deep, Some("*.log")),
            &watch("d/.git", WatchDepth::Shallow, None),
        ]);
        for (path, covered) in [
            ("a/b", true),
            ("a/b/c", true),
            ("a/b/c/e", false),
            ("a", false),
            ("a/x", false),
            ("d/x.log", true),
            ("d/e/x.log", true),
            ("d/e/x.txt", false),
            ("d/.git/HEAD", true),
            ("d/.git/logs/x.log", false),
        ] {
            assert_eq!(scopes.covers(&rel_path(path)), covered, "{path}");
        }
        for (path, needed) in [
            (".", true),
            ("a", true),
            ("a/b", true),
            ("a/b/c", false),
            ("x", false),
            ("d/e/f", true),
            ("d/.git", true),
            ("d/.git/logs", false),
        ] {
            assert_eq!(scopes.must_watch(&rel_path(path)), needed, "{path}");
        }
        assert!(scopes.is_relevant(&rel_path("a")) && !scopes.is_relevant(&rel_path("a/x")));
    }
}
