//! Names of things in the trash, for dialects whose documents show a path there. A handle looks like a path, but no place
//! of the machine is ever named: behind it stands an id of our own trash.

/// What a handle starts with.
const TRASH: &str = "/trash/";

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
    fn a_handle_names_an_id_and_no_place() {
        assert_eq!(handle("t01", "a/b.txt"), "/trash/t01/b.txt");
        assert_eq!(trash_id("/trash/t01/b.txt"), "t01");
        assert_eq!(trash_id("/trash/t01"), "t01");
        assert_eq!(trash_id("/elsewhere/x.tar.gz"), "/elsewhere/x.tar.gz");
    }
}
