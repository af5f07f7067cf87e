//! Paths as the sentences show them: absolute and lexically cleaned. Only for display; no check uses them.

#[derive(Debug, Clone, Copy)]
pub(super) struct WeaverPathArgument<'a> {
    pub(super) workspace_root: &'a str,
    pub(super) as_given: &'a str,
}

impl WeaverPathArgument<'_> {
    pub(super) fn absolute_path(&self) -> String {
        clean_path(self.workspace_root, self.as_given)
    }

    /// The path relative to the workspace; `.` for the workspace itself.
    pub(super) fn relative_path(&self) -> String {
        let absolute = self.absolute_path();
        let relative = absolute.strip_prefix(self.workspace_root).map(|rest| rest.trim_start_matches('/'));
        match relative {
            Some("") => ".".to_owned(),
            Some(relative) => relative.to_owned(),
            None => absolute,
        }
    }

    /// The last name, for headers.
    pub(super) fn display_name(&self) -> String {
        let name = self.as_given.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        match (name, self.as_given) {
            ("", "") => ".".to_owned(),
            ("", _) => "/".to_owned(),
            (name, _) => name.to_owned(),
        }
    }
}

/// Joins a path to a directory and cleans it lexically: no empty names, no `.`, and `..` removes the name before it.
pub(super) fn clean_path(from: &str, path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { from };
    for name in start.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    format!("/{}", names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleans_paths_lexically() {
        for (path, absolute, relative) in [
            ("a", "/srv/ws/a", "a"),
            ("./x/../a/", "/srv/ws/a", "a"),
            ("", "/srv/ws", "."),
            ("../ws/a", "/srv/ws/a", "a"),
            ("../../../..", "/", "/"),
            ("/etc//hosts", "/etc/hosts", "/etc/hosts"),
        ] {
            let argument = WeaverPathArgument { workspace_root: "/srv/ws", as_given: path };
            assert_eq!(
                (argument.absolute_path().as_str(), argument.relative_path().as_str()),
                (absolute, relative),
                "{path}"
            );
        }
    }
}
