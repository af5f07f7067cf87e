//! How a place is spelled in a sentence: absolute, cleaned as text. Only for showing: no rule is judged on it.

/// A place as a caller gave it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spot<'a> {
    pub(super) workspace: &'a str,
    pub(super) given: &'a str,
}

impl Spot<'_> {
    /// The absolute spelling.
    pub(super) fn absolute(&self) -> String {
        cleaned(self.workspace, self.given)
    }

    /// The spelling below the workspace; `.` for the workspace itself.
    pub(super) fn relative(&self) -> String {
        let whole = self.absolute();
        let below = whole.strip_prefix(self.workspace).map(|rest| rest.trim_start_matches('/'));
        match below {
            Some("") => ".".to_owned(),
            Some(below) => below.to_owned(),
            None => whole,
        }
    }

    /// The last name as it is shown in a header.
    pub(super) fn name(&self) -> String {
        let name = self.given.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        match (name, self.given) {
            ("", "") => ".".to_owned(),
            ("", _) => "/".to_owned(),
            (name, _) => name.to_owned(),
        }
    }
}

/// A path joined to a place and cleaned as text: no empty names, no `.`, and `..` takes the name before it away.
pub(super) fn cleaned(from: &str, path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { from };
    for name in start.split('/').chain(path.split('/')) {
        match name {
            "" | "." => {}
            ".." => drop(kept.pop()),
            name => kept.push(name),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_cleaned_as_text() {
        for (path, absolute, relative) in [
            ("a", "/srv/ws/a", "a"),
            ("./x/../a/", "/srv/ws/a", "a"),
            ("", "/srv/ws", "."),
            ("../ws/a", "/srv/ws/a", "a"),
            ("../../../..", "/", "/"),
            ("/etc//hosts", "/etc/hosts", "/etc/hosts"),
        ] {
            let spot = Spot { workspace: "/srv/ws", given: path };
            assert_eq!((spot.absolute().as_str(), spot.relative().as_str()), (absolute, relative), "{path}");
        }
    }
}
