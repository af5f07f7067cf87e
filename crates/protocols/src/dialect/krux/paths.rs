//! Converts between the absolute paths of the krux dialect and paths in the workspace.

use stead_engine::Error;
use stead_path::{DotDotRule, PathBackslashRule, PathSyntax, RelPath, TrailingSlashRule};

use super::errors::invalid_input;

/// Backslash escapes make it possible to write every file name in the `krux` dialect.
pub(super) fn path_syntax() -> PathSyntax {
    PathSyntax {
        dot_dot: DotDotRule::Fold,
        backslash: PathBackslashRule::Escape,
        trailing_slash: TrailingSlashRule::Ignored,
        ..PathSyntax::default()
    }
}

pub(super) struct KruxPathMapper {
    pub(super) workspace_root: String,
}

impl KruxPathMapper {
    pub(super) fn new(workspace: &str) -> Self {
        Self { workspace_root: workspace.to_owned() }
    }

    pub(super) fn absolute_path(&self, path: &RelPath) -> String {
        self.absolute_text(&path.to_wire())
    }

    pub(super) fn absolute_text(&self, path: &str) -> String {
        match (self.workspace_root.trim_end_matches('/'), path) {
            ("", ".") => "/".to_owned(),
            (root, ".") => root.to_owned(),
            (root, path) => format!("{root}/{path}"),
        }
    }

    /// An absolute path is converted without resolving symbolic links; a path outside the workspace gives `None`.
    pub(super) fn parse(&self, given: &str) -> Option<RelPath> {
        let roots = [self.workspace_root.clone()];
        stead_path::parse_path(given, &roots, &path_syntax()).ok().map(|parsed| parsed.path)
    }

    /// The parent of the workspace root, or of a path outside the workspace, is the workspace root.
    pub(super) fn parent_path(&self, given: &str) -> String {
        let parent = self.parse(given).and_then(|path| path.parent());
        parent.map_or_else(|| self.workspace_root.clone(), |parent| self.absolute_path(&parent))
    }
}

/// The dialect's document does not say which directory relative paths start from, so relative paths are rejected.
pub(super) fn require_absolute<'a>(field: &str, given: &'a str) -> Result<&'a str, Error> {
    if given.starts_with('/') {
        return Ok(given);
    }
    Err(invalid_input(field, "must be an absolute path"))
}

pub(super) fn file_name(given: &str) -> &str {
    given.trim_end_matches('/').rsplit('/').next().unwrap_or(given)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_workspace_paths_to_absolute_paths() {
        let paths = KruxPathMapper::new("/srv/ws");
        assert_eq!(paths.absolute_text("."), "/srv/ws");
        assert_eq!(paths.absolute_text("a/b"), "/srv/ws/a/b");
        assert_eq!(KruxPathMapper::new("/").absolute_text("a"), "/a");
        assert_eq!(paths.parent_path("/srv/ws/a/b"), "/srv/ws/a");
        assert_eq!(paths.parent_path("/srv/ws/a"), "/srv/ws");
        assert_eq!(paths.parent_path("/etc/passwd"), "/srv/ws");
        assert_eq!(file_name("/srv/ws/a/b/"), "b");
    }
}
