//! Paths as the document writes them: absolute below the workspace, and trash handles.

use stead_path::PathSyntax;

pub(super) use super::super::trash_handle::{id_from_trash_handle, trash_handle};

/// The absolute path without `.` and `..`.
pub(super) fn absolute_path(workspace: &str, given: &str) -> String {
    let whole = if given.starts_with('/') { given.to_owned() } else { format!("{workspace}/{given}") };
    let mut names: Vec<&str> = Vec::new();
    for name in whole.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

/// Whether a path leads out of the workspace, ignoring links.
pub(super) fn is_outside_workspace(workspace: &str, syntax: &PathSyntax, given: &str) -> bool {
    stead_path::parse_path(given, &[workspace.to_owned()], syntax).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_absolute() {
        for (given, expected) in
            [("a/./b", "/srv/ws/a/b"), ("../x", "/srv/x"), ("../", "/srv"), ("/etc//x", "/etc/x"), (".", "/srv/ws")]
        {
            assert_eq!(absolute_path("/srv/ws", given), expected, "{given}");
        }
    }
}
