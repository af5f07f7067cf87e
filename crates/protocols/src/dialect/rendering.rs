//! Helpers for the replies of several dialects: lexically cleaned paths, and handles of trashed files. Replies show
//! lexically cleaned paths to the client; no access check uses lexically cleaned paths.

const TRASH_HANDLE_PREFIX: &str = "/trash/";

/// Removes empty names and `.` from a path; each `..` also removes the name before it. A relative path is first
/// appended to the path `directory`.
pub(super) fn clean_path(directory: &str, path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { directory };
    for name in start.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// The handle of a trashed file looks like a path. A trash handle contains only the trash id and the file name, so it
/// reveals no path of the machine.
pub(super) fn trash_handle(id: &str, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{TRASH_HANDLE_PREFIX}{id}/{name}")
}

/// A text that is not a trash handle is used unchanged as a trash id, which no trash entry has.
pub(super) fn id_from_trash_handle(handle: &str) -> &str {
    let id = handle.strip_prefix(TRASH_HANDLE_PREFIX).and_then(|rest| rest.split('/').next());
    id.unwrap_or(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleans_paths_lexically() {
        for (path, expected) in [
            ("a/./b", "/srv/ws/a/b"),
            ("../x", "/srv/x"),
            ("../", "/srv"),
            ("../../../..", "/"),
            ("/etc//x", "/etc/x"),
            (".", "/srv/ws"),
            ("", "/srv/ws"),
        ] {
            assert_eq!(clean_path("/srv/ws", path), expected, "{path}");
        }
    }

    #[test]
    fn handle_yields_id_not_path() {
        assert_eq!(trash_handle("t01", "a/b.txt"), "/trash/t01/b.txt");
        assert_eq!(id_from_trash_handle("/trash/t01/b.txt"), "t01");
        assert_eq!(id_from_trash_handle("/trash/t01"), "t01");
        assert_eq!(id_from_trash_handle("/elsewhere/x.tar.gz"), "/elsewhere/x.tar.gz");
    }
}
