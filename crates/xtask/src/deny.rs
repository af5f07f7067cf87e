//! `cargo xtask deny` checks licences, duplicate versions and sources of dependencies by the rules in `deny.toml`.
//!
//! If cargo-deny is not installed, the command applies the same rules to the output of `cargo metadata`. Security
//! advisories are not checked, because they need a database from the network.

mod licence;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use serde_json::Value;
use toml::Table;

/// The platform whose dependencies are checked, as in `deny.toml`.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("unexpected argument '{unknown}'"));
    }
    if crate::is_installed("cargo", &["deny", "--version"]) {
        println!("deny: checked by cargo-deny (licences, bans, sources)");
        let mut command = Command::new("cargo");
        command.args(["deny", "--offline", "check", "licenses", "bans", "sources"]);
        return crate::run_program(&mut command);
    }
    let rules = CargoDenyRules::load()?;
    let packages = dependency_packages()?;
    let findings = rules.findings(&packages);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        return Err(format!("{} findings", findings.len()));
    }
    println!("deny: cargo-deny is not installed; {} packages checked against deny.toml by xtask", packages.len());
    Ok(())
}

#[derive(Debug, Clone)]
struct DependencyPackage {
    name: String,
    version: String,
    licence: Option<String>,
    /// The registry or repository of the package; `None` for crates of the workspace.
    source: Option<String>,
}

/// The rules of `deny.toml` that are checked if cargo-deny is not installed: allowed licences and duplicate versions.
#[derive(Debug)]
struct CargoDenyRules {
    licences: BTreeSet<String>,
    /// Packages that may exist in a second version, as `name@version`.
    allowed_duplicates: BTreeSet<String>,
}

impl CargoDenyRules {
    fn load() -> Result<Self, String> {
        let path = crate::repository_root().join("deny.toml");
        let text = fs::read_to_string(&path).map_err(|error| format!("deny.toml: {error}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let list = |section: &str, key: &str| {
            let values = table.get(section).and_then(|section| section.get(key)).and_then(toml::Value::as_array);
            values.ok_or_else(|| format!("deny.toml: no list '{key}' in [{section}]"))
        };
        let licences = list("licenses", "allow")?.iter().filter_map(toml::Value::as_str).map(str::to_owned);
        let doubled = list("bans", "skip")?.iter().filter_map(|skip| skip.get("crate")?.as_str()).map(str::to_owned);
        Ok(Self { licences: licences.collect(), allowed_duplicates: doubled.collect() })
    }

    fn findings(&self, packages: &[DependencyPackage]) -> Vec<String> {
        let mut findings = Vec::new();
        for package in packages {
            findings.extend(self.licence_finding(package));
            findings.extend(source_finding(package));
        }
        findings.extend(self.duplicate_findings(packages));
        findings
    }

    fn licence_finding(&self, package: &DependencyPackage) -> Option<String> {
        let named = format!("{} {}", package.name, package.version);
        let Some(expression) = &package.licence else {
            return Some(format!("{named}: names no licence"));
        };
        match licence::is_allowed(expression, &self.licences) {
            Ok(true) => None,
            Ok(false) => Some(format!("{named}: licence {expression} is not allowed")),
            Err(problem) => Some(format!("{named}: licence {expression}: {problem}")),
        }
    }

    /// Reports packages in several versions without an exception in `deny.toml`, and exceptions that are not needed.
    fn duplicate_findings(&self, packages: &[DependencyPackage]) -> Vec<String> {
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in packages {
            versions.entry(&package.name).or_default().insert(&package.version);
        }
        let excepted = |name: &str, version: &str| self.allowed_duplicates.contains(&format!("{name}@{version}"));
        let mut findings = Vec::new();
        for (name, versions) in &versions {
            if versions.iter().filter(|version| !excepted(name, version)).count() > 1 {
                let shown: Vec<&str> = versions.iter().copied().collect();
                findings.push(format!("{name}: several versions: {}", shown.join(", ")));
            }
        }
        for exception in &self.allowed_duplicates {
            let (name, version) = exception.split_once('@').unwrap_or((exception, ""));
            let needed = versions.get(name).is_some_and(|found| found.len() > 1 && found.contains(version));
            if !needed {
                findings.push(format!("deny.toml: the exception {exception} is not needed"));
            }
        }
        findings
    }
}

/// Reports a package that is neither from the workspace nor from crates.io.
fn source_finding(package: &DependencyPackage) -> Option<String> {
    let source = package.source.as_ref()?;
    let known = source.starts_with("registry+") && source.ends_with("/crates.io-index");
    (!known).then(|| format!("{} {}: from an unknown source", package.name, package.version))
}

/// All dependencies on [`PLATFORM`], including those of tests and xtask.
fn dependency_packages() -> Result<Vec<DependencyPackage>, String> {
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM])
        .current_dir(crate::repository_root())
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let graph: Value = serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let text = |package: &Value, key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
    let listed = graph.get("packages").and_then(Value::as_array).ok_or("cargo metadata: no packages")?;
    listed
        .iter()
        .map(|package| {
            Ok(DependencyPackage {
                name: text(package, "name").ok_or("cargo metadata: a package without a name")?,
                version: text(package, "version").ok_or("cargo metadata: a package without a version")?,
                licence: text(package, "license"),
                source: text(package, "source"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_rules() -> CargoDenyRules {
        CargoDenyRules::parse("[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{ crate = \"a@1.0.0\" }]").unwrap()
    }

    fn sample_package(name: &str, version: &str) -> DependencyPackage {
        let source = Some("registry+somewhere/crates.io-index".to_owned());
        DependencyPackage {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: Some("MIT".to_owned()),
            source,
        }
    }

    #[test]
    fn allowed_graph_has_no_findings() {
        let ours = DependencyPackage { source: None, ..sample_package("ours", "0.1.0") };
        assert_eq!(
            sample_rules().findings(&[sample_package("a", "1.0.0"), sample_package("a", "2.0.0"), ours]),
            [""; 0]
        );
    }

    #[test]
    fn rule_violations_are_found() {
        let doubled = [sample_package("a", "1.0.0"), sample_package("a", "2.0.0")];
        for bad in [
            DependencyPackage { licence: None, ..sample_package("b", "1.0.0") },
            DependencyPackage { licence: Some("GPL-3.0-only".to_owned()), ..sample_package("b", "1.0.0") },
            DependencyPackage { licence: Some("MIT AND".to_owned()), ..sample_package("b", "1.0.0") },
            DependencyPackage { source: Some("git+somewhere".to_owned()), ..sample_package("b", "1.0.0") },
            sample_package("a", "3.0.0"),
        ] {
            let packages: Vec<DependencyPackage> = doubled.iter().cloned().chain([bad.clone()]).collect();
            assert_eq!(sample_rules().findings(&packages).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn unneeded_exception_is_found() {
        assert_eq!(sample_rules().findings(&[sample_package("a", "1.0.0")]).len(), 1);
    }

    #[test]
    fn project_deny_rules_are_parsed() {
        let rules = CargoDenyRules::load().unwrap();
        assert!(rules.licences.contains("MIT") && !rules.licences.contains("MPL-2.0"));
    }
}
