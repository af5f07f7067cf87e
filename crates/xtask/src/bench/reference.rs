//! The server everything is held against: the reference file server of the protocol's makers, from npm.
//!
//! Owns `tools/npm` in the target directory. Promises to say what it installs and to run none of its install scripts.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// What is measured, by name and version.
const PACKAGE: (&str, &str) = ("@modelcontextprotocol/server-filesystem", "2026.8.31");

/// The reference server, installed.
pub(super) struct Reference {
    /// What node runs.
    pub(super) script: PathBuf,
    /// Name and version.
    pub(super) version: String,
}

/// Installs the reference server unless it is there.
pub(super) fn install() -> Result<Reference, String> {
    let script = package(PACKAGE)?.join("dist").join("index.js");
    let (name, version) = PACKAGE;
    Ok(Reference { script, version: format!("{name}@{version}") })
}

/// Installs a published server unless it is there; where it is.
pub(super) fn package((name, version): (&str, &str)) -> Result<PathBuf, String> {
    for program in ["node", "npm"] {
        if !crate::is_installed(program, &["--version"]) {
            return Err(format!("{program} is missing; install Node.js, which runs {name}"));
        }
    }
    let home = crate::needs::target_directory().join("tools").join("npm");
    let package = home.join("node_modules").join(name);
    let wanted = format!("{name}@{version}");
    if installed_version(&package).as_deref() == Some(version) {
        println!("bench: {wanted} is there");
    } else {
        println!("bench: installing {wanted} from npm into {}", home.display());
        fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
            .arg(&home)
            .arg(&wanted);
        crate::succeed(&mut npm).map_err(|failure| format!("{wanted} cannot be had: {failure}"))?;
        if installed_version(&package).as_deref() != Some(version) {
            return Err(format!("{wanted} was installed but cannot be found"));
        }
    }
    Ok(package)
}

fn installed_version(package: &Path) -> Option<String> {
    let manifest = fs::read(package.join("package.json")).ok()?;
    let manifest: Value = serde_json::from_slice(&manifest).ok()?;
    manifest["version"].as_str().map(str::to_owned)
}
