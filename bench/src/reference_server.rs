//! The reference server: the file server of the MCP project, from npm.
//!
//! It is installed in `tools/npm` in the target directory, without running install scripts.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// The npm package of the reference server and its version.
const REFERENCE_PACKAGE: (&str, &str) = ("@modelcontextprotocol/server-filesystem", "2026.8.31");

pub(crate) struct BenchReferenceServerPackage {
    /// The JavaScript file that Node runs to start the reference server.
    pub(crate) script: PathBuf,
    pub(crate) version: String,
}

/// Installs the reference server if needed.
pub(crate) fn install_reference() -> Result<BenchReferenceServerPackage, String> {
    let script = install_package(REFERENCE_PACKAGE)?.join("dist").join("index.js");
    let (name, version) = REFERENCE_PACKAGE;
    Ok(BenchReferenceServerPackage { script, version: format!("{name}@{version}") })
}

/// Installs an npm package if needed. Returns its directory.
pub(crate) fn install_package((name, version): (&str, &str)) -> Result<PathBuf, String> {
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
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]).arg(&home).arg(&wanted);
        crate::run_program(&mut npm).map_err(|failure| format!("{wanted} cannot be installed: {failure}"))?;
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
