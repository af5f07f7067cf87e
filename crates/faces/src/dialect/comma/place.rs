//! Places as the document spells them: absolute ones beneath the workspace, and handles of what lies in the trash.

use path::Reading;

/// What a handle of a trashed thing starts with. It looks like a path, as the origin's does, but no place of the machine
/// is ever named: behind it stands an id of our own trash.
const TRASH: &str = "/trash/";

/// The absolute spelling of a place, cleaned of dots.
pub(super) fn absolute(workspace: &str, given: &str) -> String {
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

/// Whether a spelling leads out of the workspace, links aside.
pub(super) fn is_outside(workspace: &str, reading: &Reading, given: &str) -> bool {
    path::parse(given, &[workspace.to_owned()], reading).is_err()
}

/// The handle of a trashed thing.
pub(super) fn handle(id: &str, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{TRASH}{id}/{name}")
}

/// The id behind a handle. What is no handle is passed on, and is found nowhere.
pub(super) fn trash_id(handle: &str) -> &str {
    let id = handle.strip_prefix(TRASH).and_then(|rest| rest.split('/').next());
    id.unwrap_or(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_spelled_in_full() {
        for (given, expected) in [
            ("a/./b", "/srv/ws/a/b"),
            ("../x", "/srv/x"),
            ("../", "/srv"),
            ("/etc//x", "/etc/x"),
            (".", "/srv/ws"),
        ] {
            assert_eq!(absolute("/srv/ws", given), expected, "{given}");
        }
    }

    #[test]
    fn a_handle_names_an_id_and_no_place() {
        assert_eq!(handle("t01", "a/b.txt"), "/trash/t01/b.txt");
        assert_eq!(trash_id("/trash/t01/b.txt"), "t01");
        assert_eq!(trash_id("/trash/t01"), "t01");
        assert_eq!(trash_id("/elsewhere/x.tar.gz"), "/elsewhere/x.tar.gz");
    }
}
