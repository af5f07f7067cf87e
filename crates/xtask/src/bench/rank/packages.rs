//! The public packages that are asked: those that building and testing this project brings along anyway.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
};

/// What a package is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Rules were made by looking at it.
    Tuned,
    /// Only its figures were looked at.
    Measured,
}

/// Where a package comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Cargo,
    Pypi,
    Npm,
}

/// A package on this machine.
#[derive(Debug)]
pub(super) struct Package {
    pub(super) name: &'static str,
    pub(super) purpose: Purpose,
    pub(super) directory: PathBuf,
    language: &'static str,
}

/// A text of a package.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: String,
    pub(super) text: String,
}

const PACKAGES: &[(Origin, &str, &str, Purpose)] = &[
    (Origin::Cargo, "tokio", "Rust", Purpose::Tuned),
    (Origin::Cargo, "ring", "C and Rust", Purpose::Tuned),
    (Origin::Pypi, "pydantic", "Python", Purpose::Tuned),
    (Origin::Npm, "undici", "JavaScript", Purpose::Tuned),
    (Origin::Cargo, "blake3", "C and Rust", Purpose::Tuned),
    (Origin::Pypi, "anyio", "Python", Purpose::Tuned),
    (Origin::Pypi, "setuptools", "Python", Purpose::Tuned),
    (Origin::Npm, "ws", "JavaScript", Purpose::Tuned),
    (Origin::Npm, "zod", "TypeScript", Purpose::Tuned),
    (Origin::Cargo, "regex-automata", "Rust", Purpose::Measured),
    (Origin::Cargo, "clap_builder", "Rust", Purpose::Measured),
    (Origin::Cargo, "rusqlite", "Rust", Purpose::Measured),
    (Origin::Pypi, "starlette", "Python", Purpose::Measured),
    (Origin::Pypi, "click", "Python", Purpose::Measured),
    (Origin::Pypi, "jsonschema", "Python", Purpose::Measured),
    (Origin::Npm, "commander", "JavaScript", Purpose::Measured),
    (Origin::Npm, "postcss", "JavaScript", Purpose::Measured),
    (Origin::Npm, "hono", "TypeScript", Purpose::Measured),
];
/// Larger files are left out, as are those that are no text.
const BYTES_MAX: u64 = 4 << 20;

/// Every package, fetched if need be.
pub(super) fn all() -> Result<Vec<Package>, String> {
    let python = crate::needs::python()?;
    let scripts = crate::needs::inspector()?.join("node_modules");
    let environment = python.ancestors().nth(2).unwrap_or(&python).join("lib");
    let sites = below(&environment)?.into_iter().map(|python| python.join("site-packages"));
    let sites: Vec<PathBuf> = sites.collect();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))).ok_or("there is no home")?;
    let crates = below(&home.join("registry").join("src"))?;
    let mut found = Vec::new();
    for (origin, name, language, purpose) in PACKAGES {
        let directory = match origin {
            Origin::Cargo => newest(&crates, name),
            Origin::Pypi => sites.iter().map(|site| site.join(name)).find(|directory| directory.is_dir()),
            Origin::Npm => Some(scripts.join(name)).filter(|directory| directory.is_dir()),
        };
        let directory = directory.ok_or_else(|| format!("{name} is not on this machine"))?;
        found.push(Package { name, purpose: *purpose, directory, language });
    }
    Ok(found)
}

/// The last version, by name, of a crate.
fn newest(registries: &[PathBuf], name: &str) -> Option<PathBuf> {
    let entries = registries.iter().filter_map(|registry| below(registry).ok()).flatten();
    let versions = entries.filter(|entry| {
        let entry = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let version = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    });
    versions.max()
}

/// What is in a directory, in order.
fn below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let explain = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(explain)? {
        entries.push(entry.map_err(explain)?.path());
    }
    entries.sort();
    Ok(entries)
}

impl Package {
    pub(super) fn sources(&self) -> Result<Vec<Source>, String> {
        sources(&self.directory)
    }
}

/// Every text below a directory, hidden ones left out.
pub(super) fn sources(top: &Path) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let kind = fs::symlink_metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path != top && (hidden || kind.is_symlink()) {
            continue;
        }
        if kind.is_dir() {
            waiting.extend(below(&path)?);
        } else if kind.len() <= BYTES_MAX
            && let Ok(text) = fs::read_to_string(&path)
            && !text.contains('\0')
        {
            let path = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let purpose = match self.purpose {
            Purpose::Tuned => "tuned on",
            Purpose::Measured => "measured",
        };
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "{name} ({}, {purpose})", self.language)
    }
}
