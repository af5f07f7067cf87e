//! Which places the watches are about. Pure: built from the watches, asked about paths.

use std::collections::{HashMap, HashSet};

use engine::{Depth, Globs, Watch};
use path::RelPath;

/// Where version control keeps its own books: watched when named, never entered from above.
const BOOKS: &[u8] = b".git";

/// What the watches of everybody come to.
#[derive(Default)]
pub(crate) struct Scopes {
    by_place: HashMap<RelPath, Vec<Scope>>,
    /// Every directory above a watched place.
    above: HashSet<RelPath>,
}

struct Scope {
    depth: Depth,
    globs: Option<Globs>,
}

impl Scopes {
    pub(crate) fn new<'a>(watches: impl IntoIterator<Item = &'a Watch>) -> Self {
        let mut scopes = Self::default();
        for watch in watches {
            // A pattern was read once before it was kept; one that cannot be read now hides nothing.
            let globs = watch.glob.as_deref().and_then(|glob| Globs::by_name([glob]).ok());
            scopes.by_place.entry(watch.path.clone()).or_default().push(Scope { depth: watch.depth, globs });
            scopes.above.extend(watch.path.ancestors());
        }
        scopes
    }

    /// Every watched place.
    pub(crate) fn places(&self) -> impl Iterator<Item = &RelPath> {
        self.by_place.keys()
    }

    /// Whether somebody wants to hear of this place.
    pub(crate) fn covers(&self, path: &RelPath) -> bool {
        let at = |place: &RelPath| {
            let Some(scopes) = self.by_place.get(place) else { return false };
            let Some(below) = path.below(place) else { return false };
            scopes.iter().any(|scope| scope.covers(&below))
        };
        at(path) || path.ancestors().any(|place| at(&place))
    }

    /// Whether the coming and going of this place matters: somebody wants to hear of it or of something below.
    pub(crate) fn matters(&self, path: &RelPath) -> bool {
        self.above.contains(path) || self.covers(path)
    }

    /// Whether changes in this directory must be heard.
    pub(crate) fn needs(&self, directory: &RelPath) -> bool {
        let deep = |place: &RelPath| {
            let reaches = |scopes: &Vec<Scope>| scopes.iter().any(|scope| scope.depth == Depth::Deep);
            self.by_place.get(place).is_some_and(reaches)
                && directory.below(place).is_some_and(|b| !is_books(&b))
        };
        self.above.contains(directory)
            || self.by_place.contains_key(directory)
            || directory.ancestors().any(|place| deep(&place))
    }
}

impl Scope {
    fn covers(&self, below: &RelPath) -> bool {
        if below.is_root() {
            return true;
        }
        let reached = match self.depth {
            Depth::Shallow => below.depth() == 1,
            Depth::Deep => !below.parent().is_some_and(|parent| is_books(&parent)),
        };
        reached && self.globs.as_ref().is_none_or(|globs| globs.matches(below))
    }
}

/// Whether a path leads into the books of version control.
fn is_books(below: &RelPath) -> bool {
    below.components().any(|name| name == BOOKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(wire: &str) -> RelPath {
        RelPath::from_wire(wire).unwrap()
    }

    fn watch(path: &str, depth: Depth, glob: Option<&str>) -> Watch {
        Watch {
            id: "w".into(),
            owner: "user:a".into(),
            session: "s".into(),
            path: at(path),
            depth,
            happenings: Vec::new(),
            glob: glob.map(str::to_owned),
            started: 1,
        }
    }

    #[test]
    fn what_is_heard_and_what_must_be_watched_for_it() {
        let scopes = Scopes::new([
            &watch("a/b", Depth::Shallow, None),
            &watch("d", Depth::Deep, Some("*.log")),
            &watch("d/.git", Depth::Shallow, None),
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
            assert_eq!(scopes.covers(&at(path)), covered, "{path}");
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
            assert_eq!(scopes.needs(&at(path)), needed, "{path}");
        }
        assert!(scopes.matters(&at("a")) && !scopes.matters(&at("a/x")));
    }
}
