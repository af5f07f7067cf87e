//! Handles of trashed files, for dialects whose documents show a path there. A handle looks like a path but holds only
//! a trash id, so it reveals no path of the machine.

const TRASH_HANDLE_PREFIX: &str = "/trash/";

pub(super) fn trash_handle(id: &str, path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    format!("{TRASH_HANDLE_PREFIX}{id}/{name}")
}

/// The trash id of a handle. Other text is returned unchanged and will not be found.
pub(super) fn id_from_trash_handle(handle: &str) -> &str {
    let id = handle.strip_prefix(TRASH_HANDLE_PREFIX).and_then(|rest| rest.split('/').next());
    id.unwrap_or(handle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_yields_id_not_path() {
        assert_eq!(trash_handle("t01", "a/b.txt"), "/trash/t01/b.txt");
        assert_eq!(id_from_trash_handle("/trash/t01/b.txt"), "t01");
        assert_eq!(id_from_trash_handle("/trash/t01"), "t01");
        assert_eq!(id_from_trash_handle("/elsewhere/x.tar.gz"), "/elsewhere/x.tar.gz");
    }
}
