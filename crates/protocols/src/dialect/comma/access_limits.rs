//! Access limits from the settings: forbidden paths, and the paths that may be read and written. The access limits
//! restrict the grants of a caller, and never extend the grants.

use stead_engine::{Caller, CallerAccessMode, GlobPatternSet};
use stead_path::RelPath;

use crate::dialect::{DialectOptionValuesByName, DialectSettingError, DialectSetupError};

const DEFAULT_FORBIDDEN_PATHS: &[&str] = &[
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

pub(super) struct CommaAccessLimits {
    hidden_globs: GlobPatternSet,
    read_only_globs: GlobPatternSet,
    /// The paths that may be read; `None` allows all paths.
    readable: Option<Vec<RelPath>>,
    writable: Option<Vec<RelPath>>,
}

impl CommaAccessLimits {
    pub(super) fn from_settings(settings: &DialectOptionValuesByName) -> Result<Self, DialectSetupError> {
        let forbidden = match settings.get("forbidden_globs") {
            None | Some("default") => DEFAULT_FORBIDDEN_PATHS.to_vec(),
            Some("none") => Vec::new(),
            Some(list) => split_list(list).collect(),
        };
        let list = |key| settings.get(key).into_iter().flat_map(split_list).collect::<Vec<_>>();
        let parse = |key, globs: Vec<&str>| {
            GlobPatternSet::new(globs).map_err(|error| invalid_list(key, "globs", settings, &error.message))
        };
        // The forbidden globs are first parsed alone, so that an error names the setting `forbidden_globs`.
        parse("forbidden_globs", forbidden.clone())?;
        let hidden_globs = parse("read_deny", [forbidden, list("read_deny")].concat())?;
        let read_only_globs = parse("write_deny", list("write_deny"))?;
        let (readable, writable) =
            (parse_allowed_paths(settings, "read_allow")?, parse_allowed_paths(settings, "write_allow")?);
        Ok(Self { hidden_globs, read_only_globs, readable, writable })
    }

    pub(super) fn restrict(&self, caller: &mut Caller) {
        let grants = &mut caller.grants;
        if grants.hidden.is_empty() {
            grants.hidden = self.hidden_globs.clone();
        }
        if grants.read_only.is_empty() {
            grants.read_only = self.read_only_globs.clone();
        }
        if let Some(paths) = &self.readable {
            grants.readable = intersect_paths(&grants.readable, paths);
        }
        if let Some(paths) = &self.writable {
            grants.writable = intersect_paths(&grants.writable, paths);
            if grants.writable.is_empty() {
                grants.access = CallerAccessMode::ReadOnly;
            }
        }
    }
}

fn split_list(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|item| !item.is_empty())
}

fn invalid_list(key: &str, items: &str, settings: &DialectOptionValuesByName, reason: &str) -> DialectSetupError {
    let value = settings.get(key).unwrap_or_default().to_owned();
    let expected = format!("a comma-separated list of {items} ({reason})");
    DialectSettingError::InvalidValue { key: key.to_owned(), value, expected }.into()
}

fn parse_allowed_paths(
    settings: &DialectOptionValuesByName,
    key: &str,
) -> Result<Option<Vec<RelPath>>, DialectSetupError> {
    match settings.get(key) {
        None | Some("all") => Ok(None),
        Some("none") => Ok(Some(Vec::new())),
        Some(list) => {
            let paths = split_list(list).map(RelPath::from_wire).collect::<Result<_, _>>();
            paths.map(Some).map_err(|error| invalid_list(key, "paths", settings, &error.to_string()))
        }
    }
}

/// A path in a list of allowed paths also allows everything below it.
fn intersect_paths(granted: &[RelPath], allowed: &[RelPath]) -> Vec<RelPath> {
    let common = |granted: &RelPath, path: &RelPath| {
        if path.is_within(granted) { Some(path.clone()) } else { granted.is_within(path).then(|| granted.clone()) }
    };
    granted.iter().flat_map(|granted| allowed.iter().filter_map(move |path| common(granted, path))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_paths(wires: &[&str]) -> Vec<RelPath> {
        wires.iter().map(|wire| RelPath::from_wire(wire).unwrap()).collect()
    }

    #[test]
    fn settings_never_widen_access() {
        for (granted, allowed, expected) in [
            (&["."][..], &["src"][..], &["src"][..]),
            (&["src/a", "doc"], &["src"], &["src/a"]),
            (&["src"], &["doc"], &[]),
        ] {
            assert_eq!(intersect_paths(&parse_paths(granted), &parse_paths(allowed)), parse_paths(expected));
        }
    }
}
