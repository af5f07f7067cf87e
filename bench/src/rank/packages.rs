//! The packages of the ranking benchmark: dependencies and test tools of this project, and a few packages in other
//! languages.

use crate::needs::SystemPackageInstallConsent;
use std::{
    env, fmt, fs,
    path::{Path, PathBuf},
};

use super::fetch;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RankBenchPackagePurpose {
    /// Ranking rules were derived from the package.
    Tuning,
    /// The package is only measured, and no ranking rule was derived from it.
    MeasurementOnly,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RankBenchPackageRegistryKind {
    Cargo,
    Pypi,
    Npm,
    /// An npm package that is downloaded for the ranking benchmark, in the given version.
    NpmDownload(&'static str),
    Debian,
}

#[derive(Debug)]
pub(super) struct RankBenchSourcePackage {
    pub(super) name: &'static str,
    pub(super) purpose: RankBenchPackagePurpose,
    pub(super) directory: PathBuf,
    language: &'static str,
}

/// A source file of a package.
#[derive(Debug)]
pub(super) struct BenchPackageSourceFile {
    pub(super) path: String,
    pub(super) text: String,
}

/// The packages of the ranking benchmark: source, name, languages, and purpose. Late-ranking names of the packages
/// regex-automata, starlette, click and commander were once printed, but no ranking rule was derived from them.
const PACKAGES: &[(RankBenchPackageRegistryKind, &str, &str, RankBenchPackagePurpose)] = &[
    (RankBenchPackageRegistryKind::Cargo, "tokio", "Rust", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Cargo, "ring", "C and Rust", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Pypi, "pydantic", "Python", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "undici", "JavaScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Cargo, "blake3", "C and Rust", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Pypi, "anyio", "Python", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Pypi, "setuptools", "Python", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "ws", "JavaScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "zod", "TypeScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "postcss", "JavaScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "hono", "TypeScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Debian, "golang-github-gin-gonic-gin-dev", "Go", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Debian, "golang-github-sirupsen-logrus-dev", "Go", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Debian, "golang-github-burntsushi-toml-dev", "Go", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Debian, "golang-github-gorilla-mux-dev", "Go", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "ajv", "TypeScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "jose", "JavaScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "chokidar", "JavaScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "eventsource-parser", "TypeScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "pino", "JavaScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::Npm, "yoga-layout", "TypeScript", RankBenchPackagePurpose::Tuning),
    (RankBenchPackageRegistryKind::NpmDownload("8.5.2"), "@capacitor/android", "Java", RankBenchPackagePurpose::Tuning),
    (
        RankBenchPackageRegistryKind::NpmDownload("8.1.3"),
        "cordova-plugin-file",
        "Java and JavaScript",
        RankBenchPackagePurpose::Tuning,
    ),
    (
        RankBenchPackageRegistryKind::NpmDownload("16.0.0"),
        "react-native-webview",
        "Java and TypeScript",
        RankBenchPackagePurpose::Tuning,
    ),
    (RankBenchPackageRegistryKind::Cargo, "regex-automata", "Rust", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Cargo, "clap_builder", "Rust", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Cargo, "rusqlite", "Rust", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Pypi, "starlette", "Python", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Pypi, "click", "Python", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Pypi, "jsonschema", "Python", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Pypi, "uvicorn", "Python", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Pypi, "cryptography", "Python", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Npm, "commander", "JavaScript", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Npm, "es-toolkit", "TypeScript", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Npm, "eventsource", "TypeScript", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Npm, "fast-uri", "JavaScript", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Npm, "yaml", "JavaScript", RankBenchPackagePurpose::MeasurementOnly),
    (RankBenchPackageRegistryKind::Npm, "ink", "JavaScript", RankBenchPackagePurpose::MeasurementOnly),
    (
        RankBenchPackageRegistryKind::Debian,
        "golang-github-spf13-cobra-dev",
        "Go",
        RankBenchPackagePurpose::MeasurementOnly,
    ),
    (RankBenchPackageRegistryKind::Debian, "golang-go.uber-zap-dev", "Go", RankBenchPackagePurpose::MeasurementOnly),
    (
        RankBenchPackageRegistryKind::Debian,
        "golang-github-prometheus-client-golang-dev",
        "Go",
        RankBenchPackagePurpose::MeasurementOnly,
    ),
    (
        RankBenchPackageRegistryKind::Debian,
        "golang-github-go-chi-chi-dev",
        "Go",
        RankBenchPackagePurpose::MeasurementOnly,
    ),
    (
        RankBenchPackageRegistryKind::NpmDownload("15.1.0"),
        "cordova-android",
        "Java",
        RankBenchPackagePurpose::MeasurementOnly,
    ),
    (
        RankBenchPackageRegistryKind::NpmDownload("15.15.5"),
        "react-native-svg",
        "Java",
        RankBenchPackagePurpose::MeasurementOnly,
    ),
];
/// Source files with more bytes than this are skipped.
const SOURCE_BYTES_MAX: u64 = 4 << 20;

/// Finds the directory of every package of the benchmark, and downloads missing packages.
pub(super) fn load_packages() -> Result<Vec<RankBenchSourcePackage>, String> {
    let python = crate::needs::require_python(SystemPackageInstallConsent::AskPerson)?;
    let scripts = crate::needs::require_inspector(SystemPackageInstallConsent::AskPerson)?.join("node_modules");
    let environment = python.ancestors().nth(2).unwrap_or(&python).join("lib");
    let sites = directory_entries(&environment)?.into_iter().map(|python| python.join("site-packages"));
    let sites: Vec<PathBuf> = sites.collect();
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo"))).ok_or("no home directory")?;
    let crates = directory_entries(&home.join("registry").join("src"))?;
    let mut found = Vec::new();
    for (origin, name, language, purpose) in PACKAGES {
        let directory = match origin {
            RankBenchPackageRegistryKind::Cargo => newest_crate(&crates, name),
            RankBenchPackageRegistryKind::Pypi => {
                sites.iter().map(|site| site.join(name)).find(|directory| directory.is_dir())
            }
            RankBenchPackageRegistryKind::Npm => Some(scripts.join(name)).filter(|directory| directory.is_dir()),
            RankBenchPackageRegistryKind::NpmDownload(version) => Some(fetch::fetch_npm_package(name, version)?),
            RankBenchPackageRegistryKind::Debian => Some(fetch::fetch_debian_package(name)?),
        };
        let directory = directory.ok_or_else(|| format!("{name} is not on this machine"))?;
        found.push(RankBenchSourcePackage { name, purpose: *purpose, directory, language });
    }
    Ok(found)
}

/// The directory of the last version of a crate, in the order of directory names.
fn newest_crate(registries: &[PathBuf], name: &str) -> Option<PathBuf> {
    let entries = registries.iter().filter_map(|registry| directory_entries(registry).ok()).flatten();
    let versions = entries.filter(|entry| {
        let entry = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let version = entry.strip_prefix(name).and_then(|rest| rest.strip_prefix('-'));
        version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_digit()))
    });
    versions.max()
}

fn directory_entries(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let explain = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory).map_err(explain)? {
        entries.push(entry.map_err(explain)?.path());
    }
    entries.sort();
    Ok(entries)
}

impl RankBenchSourcePackage {
    pub(super) fn source_texts(&self) -> Result<Vec<BenchPackageSourceFile>, String> {
        read_source_texts(&self.directory)
    }
}

/// Reads all text files below a directory, without hidden files.
pub(super) fn read_source_texts(top: &Path) -> Result<Vec<BenchPackageSourceFile>, String> {
    let mut sources = Vec::new();
    let mut waiting = vec![top.to_owned()];
    while let Some(path) = waiting.pop() {
        let kind = fs::symlink_metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path != top && (hidden || kind.is_symlink()) {
            continue;
        }
        if kind.is_dir() {
            waiting.extend(directory_entries(&path)?);
        } else if kind.len() <= SOURCE_BYTES_MAX
            && let Ok(text) = fs::read_to_string(&path)
            && !text.contains('\0')
        {
            let path = path.strip_prefix(top).unwrap_or(&path).to_string_lossy().into_owned();
            sources.push(BenchPackageSourceFile { path, text });
        }
    }
    Ok(sources)
}

impl fmt::Display for RankBenchSourcePackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.directory.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "{name} ({}, {})", self.language, self.purpose)
    }
}

impl fmt::Display for RankBenchPackagePurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tuning => "tuned on",
            Self::MeasurementOnly => "measured",
        })
    }
}
