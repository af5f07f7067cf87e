//! What the settings keep from callers: forbidden places, and which places may be read and written. All of it only
//! narrows what a caller was granted.

use engine::{Access, Caller, Globs};
use path::RelPath;

use crate::dialect::{DialectError, SettingError, Settings};

/// What is forbidden when nothing is said.
const FORBIDDEN: &[&str] = &[
    ".git/**",
    "**/.env*",
    "**/*.pem",
    "**/*.key",
    "**/id_rsa*",
    "**/secrets/**",
    "**/.npmrc",
    "**/.yarnrc",
    "**/*.crt",
];

/// Whether places may be used for something unless a list says otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Allowed {
    /// All of them.
    Everywhere,
    /// What is below these.
    Below(Vec<RelPath>),
}

/// The narrowing that the settings ask for.
pub(super) struct Narrowing {
    hidden: Globs,
    fixed: Globs,
    read: Allowed,
    write: Allowed,
}

impl Narrowing {
    pub(super) fn read(settings: &Settings) -> Result<Self, DialectError> {
        let forbidden = match settings.get("forbidden_globs") {
            None | Some("default") => FORBIDDEN.to_vec(),
            Some("none") => Vec::new(),
            Some(list) => split(list).collect(),
        };
        let denied = settings.get("read_deny").into_iter().flat_map(split);
        let hidden = Globs::new(forbidden.into_iter().chain(denied))
            .map_err(|failure| misfit("forbidden_globs", settings, &failure.detail))?;
        let fixed = Globs::new(settings.get("write_deny").into_iter().flat_map(split))
            .map_err(|failure| misfit("write_deny", settings, &failure.detail))?;
        let (read, write) = (allowed(settings, "read_allow")?, allowed(settings, "write_allow")?);
        Ok(Self { hidden, fixed, read, write })
    }

    pub(super) fn narrow(&self, caller: &mut Caller) {
        let grants = &mut caller.grants;
        if grants.hidden.is_empty() {
            grants.hidden = self.hidden.clone();
        }
        if grants.fixed.is_empty() {
            grants.fixed = self.fixed.clone();
        }
        if let Allowed::Below(places) = &self.read {
            grants.readable = within(&grants.readable, places);
        }
        if let Allowed::Below(places) = &self.write {
            grants.writable = within(&grants.writable, places);
            if grants.writable.is_empty() {
                grants.access = Access::ReadOnly;
            }
        }
    }
}

fn split(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|one| !one.is_empty())
}

fn misfit(key: &str, settings: &Settings, expected: &str) -> DialectError {
    let value = settings.get(key).unwrap_or_default().to_owned();
    SettingError::Value { key: key.to_owned(), value, expected: expected.to_owned() }.into()
}

fn allowed(settings: &Settings, key: &str) -> Result<Allowed, DialectError> {
    match settings.get(key) {
        None | Some("all") => Ok(Allowed::Everywhere),
        Some("none") => Ok(Allowed::Below(Vec::new())),
        Some(list) => {
            let places = split(list).map(RelPath::from_wire).collect::<Result<_, _>>();
            places.map(Allowed::Below).map_err(|error| misfit(key, settings, &error.to_string()))
        }
    }
}

/// What both lists have in common.
fn within(granted: &[RelPath], places: &[RelPath]) -> Vec<RelPath> {
    let common = |granted: &RelPath, place: &RelPath| {
        if place.is_within(granted) {
            Some(place.clone())
        } else {
            granted.is_within(place).then(|| granted.clone())
        }
    };
    granted.iter().flat_map(|granted| places.iter().filter_map(move |place| common(granted, place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(wires: &[&str]) -> Vec<RelPath> {
        wires.iter().map(|wire| RelPath::from_wire(wire).unwrap()).collect()
    }

    #[test]
    fn settings_only_narrow() {
        for (granted, places, expected) in [
            (&["."][..], &["src"][..], &["src"][..]),
            (&["src/a", "doc"], &["src"], &["src/a"]),
            (&["src"], &["doc"], &[]),
        ] {
            assert_eq!(within(&paths(granted), &paths(places)), paths(expected));
        }
    }
}
