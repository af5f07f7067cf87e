//! Places as the document spells them: absolute, beneath the workspace.

use engine::Failure;
use path::{Absolute, Backslash, Dots, Empty, Ending, Reading, RelPath};

use super::asked::misfit;

/// How paths are read. A backslash is an escape, so that every name can be spelled.
pub(super) fn reading() -> Reading {
    Reading {
        home: RelPath::root(),
        dots: Dots::Fold,
        absolute: Absolute::BelowRoot,
        backslash: Backslash::Escape,
        ending: Ending::Ignored,
        empty: Empty::Refuse,
    }
}

/// The workspace's own spelling.
pub(super) struct Spots {
    pub(super) workspace: String,
}

impl Spots {
    pub(super) fn new(workspace: &str) -> Self {
        Self { workspace: workspace.to_owned() }
    }

    /// The absolute spelling of a place that the engine names.
    pub(super) fn absolute(&self, place: &str) -> String {
        match (self.workspace.trim_end_matches('/'), place) {
            ("", ".") => "/".to_owned(),
            (root, ".") => root.to_owned(),
            (root, place) => format!("{root}/{place}"),
        }
    }

    /// The place that a spelling means, if it is one beneath the workspace, links aside.
    pub(super) fn meant(&self, given: &str) -> Option<RelPath> {
        let roots = [self.workspace.clone()];
        path::parse(given, &roots, &reading()).ok().map(|spelling| spelling.path)
    }

    /// The directory above a place; the workspace above everything that is not beneath it.
    pub(super) fn parent(&self, given: &str) -> String {
        let parent = self.meant(given).and_then(|path| path.parent());
        parent.map_or_else(|| self.workspace.clone(), |parent| self.absolute(&parent.to_string()))
    }
}

/// Refuses a spelling that is not absolute: what it is relative to would be a guess.
pub(super) fn whole<'a>(field: &str, given: &'a str) -> Result<&'a str, Failure> {
    if given.starts_with('/') {
        return Ok(given);
    }
    Err(misfit(field, "must be an absolute path"))
}

/// The last name of a path.
pub(super) fn name(given: &str) -> &str {
    given.trim_end_matches('/').rsplit('/').next().unwrap_or(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spelled_in_full() {
        let spots = Spots::new("/srv/ws");
        assert_eq!(spots.absolute("."), "/srv/ws");
        assert_eq!(spots.absolute("a/b"), "/srv/ws/a/b");
        assert_eq!(Spots::new("/").absolute("a"), "/a");
        assert_eq!(spots.parent("/srv/ws/a/b"), "/srv/ws/a");
        assert_eq!(spots.parent("/srv/ws/a"), "/srv/ws");
        assert_eq!(spots.parent("/etc/passwd"), "/srv/ws");
        assert_eq!(name("/srv/ws/a/b/"), "b");
    }
}
