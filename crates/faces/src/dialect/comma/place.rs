//! Places as the document spells them: absolute ones beneath the workspace, and handles of what lies in the trash.

use path::Reading;

pub(super) use super::super::handle::{handle, trash_id};

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
}
