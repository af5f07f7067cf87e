//! The public packages that are asked: those that building and testing this project brings along anyway, and a few in
//! languages that it does not.

use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
};

use super::fetch;

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
    /// A package of npm that nothing else here needs, of this version.
    Fetched(&'static str),
    /// A package of Debian.
    Debian,
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

/// A package whose late names were read to make rules is a tuned one. Those of regex-automata, starlette, click and
/// commander were once printed; no rule came of them.
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
    (Origin::Npm, "postcss", "JavaScript", Purpose::Tuned),
    (Origin::Npm, "hono", "TypeScript", Purpose::Tuned),
    (Origin::Debian, "golang-github-gin-gonic-gin-dev", "Go", Purpose::Tuned),
    (Origin::Debian, "golang-github-sirupsen-logrus-dev", "Go", Purpose::Tuned),
    (Origin::Debian, "golang-github-burntsushi-toml-dev", "Go", Purpose::Tuned),
    (Origin::Debian, "golang-github-gorilla-mux-dev", "Go", Purpose::Tuned),
    (Origin::Npm, "ajv", "TypeScript", Purpose::Tuned),
    (Origin::Npm, "jose", "JavaScript", Purpose::Tuned),
    (Origin::Npm, "chokidar", "JavaScript", Purpose::Tuned),
    (Origin::Npm, "eventsource-parser", "TypeScript", Purpose::Tuned),
    (Origin::Npm, "pino", "JavaScript", Purpose::Tuned),
    (Origin::Npm, "yoga-layout", "TypeScript", Purpose::Tuned),
    (Origin::Fetched("8.5.2"), "@capacitor/android", "Java", Purpose::Tuned),
    (Origin::Fetched("8.1.3"), "cordova-plugin-file", "Java and JavaScript", Purpose::Tuned),
    (Origin::Fetched("16.0.0"), "react-native-webview", "Java and TypeScript", Purpose::Tuned),
    (Origin::Cargo, "regex-automata", "Rust", Purpose::Measured),
    (Origin::Cargo, "clap_builder", "Rust", Purpose::Measured),
    (Origin::Cargo, "rusqlite", "Rust", Purpose::Measured),
    (Origin::Pypi, "starlette", "Python", Purpose::Measured),
    (Origin::Pypi, "click", "Python", Purpose::Measured),
    (Origin::Pypi, "jsonschema", "Python", Purpose::Measured),
    (Origin::Pypi, "uvicorn", "Python", Purpose::Measured),
    (Origin::Pypi, "cryptography", "Python", Purpose::Measured),
    (Origin::Npm, "commander", "JavaScript", Purpose::Measured),
    (Origin::Npm, "es-toolkit", "TypeScript", Purpose::Measured),
    (Origin::Npm, "eventsource", "TypeScript", Purpose::Measured),
    (Origin::Npm, "fast-uri", "JavaScript", Purpose::Measured),
    (Origin::Npm, "yaml", "JavaScript", Purpose::Measured),
    (Origin::Npm, "ink", "JavaScript", Purpose::Measured),
    (Origin::Debian, "golang-github-spf13-cobra-dev", "Go", Purpose::Measured),
    (Origin::Debian, "golang-go.uber-zap-dev", "Go", Purpose::Measured),
    (Origin::Debian, "golang-github-prometheus-client-golang-dev", "Go", Purpose::Measured),
    (Origin::Debian, "golang-github-go-chi-chi-dev", "Go", Purpose::Measured),
    (Origin::Fetched("15.1.0"), "cordova-android", "Java", Purpose::Measured),
    (Origin::Fetched("15.15.5"), "react-native-svg", "Java", Purpose::Measured),
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
            Origin::Fetched(version) => Some(fetch::npm(name, version)?),
            Origin::Debian => Some(fetch::debian(name)?),
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
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "{name} ({}, {})", self.language, self.purpose)
    }
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tuned => "tuned on",
            Self::Measured => "measured",
        })
    }
}
