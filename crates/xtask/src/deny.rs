//! What may be built upon: licences, doubled versions, sources. The rules are in `deny.toml`, the form is cargo-deny's.
//!
//! Runs cargo-deny where it is installed; otherwise reads `cargo metadata` and keeps the same rules itself, and says
//! so. Advisories are left out, because they need a database from the network.

mod licence;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    process::Command,
};

use serde_json::Value;
use toml::Table;

/// The platform whose dependencies are looked at; `deny.toml` names it too.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Checks the dependencies.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    if let Some(unknown) = arguments.first() {
        return Err(format!("takes no arguments, not even '{unknown}'"));
    }
    if crate::is_installed("cargo", &["deny", "--version"]) {
        println!("deny: checked by cargo-deny (licences, bans, sources)");
        let mut command = Command::new("cargo");
        command.args(["deny", "--offline", "check", "licenses", "bans", "sources"]);
        return crate::succeed(&mut command);
    }
    let rules = Rules::read()?;
    let packages = packages()?;
    let findings = rules.findings(&packages);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        return Err(format!("{} findings", findings.len()));
    }
    println!(
        "deny: cargo-deny is not installed; {} packages checked against deny.toml by xtask",
        packages.len()
    );
    Ok(())
}

/// One package of the graph.
#[derive(Debug, Clone)]
struct Package {
    name: String,
    version: String,
    licence: Option<String>,
    /// Nothing for our own crates.
    source: Option<String>,
}

/// What `deny.toml` says, as far as we keep it ourselves.
#[derive(Debug)]
struct Rules {
    licences: BTreeSet<String>,
    /// Versions that may stand beside another one, as `name@version`.
    doubled: BTreeSet<String>,
}

impl Rules {
    fn read() -> Result<Self, String> {
        let path = crate::root().join("deny.toml");
        let text = fs::read_to_string(&path).map_err(|error| format!("deny.toml: {error}"))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let table: Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let list = |section: &str, key: &str| {
            let values =
                table.get(section).and_then(|section| section.get(key)).and_then(toml::Value::as_array);
            values.ok_or_else(|| format!("deny.toml: no list '{key}' in [{section}]"))
        };
        let licences = list("licenses", "allow")?.iter().filter_map(toml::Value::as_str).map(str::to_owned);
        let doubled =
            list("bans", "skip")?.iter().filter_map(|skip| skip.get("crate")?.as_str()).map(str::to_owned);
        Ok(Self { licences: licences.collect(), doubled: doubled.collect() })
    }

    fn findings(&self, packages: &[Package]) -> Vec<String> {
        let mut findings = Vec::new();
        for package in packages {
            findings.extend(self.licence_finding(package));
            findings.extend(source_finding(package));
        }
        findings.extend(self.doubled_findings(packages));
        findings
    }

    fn licence_finding(&self, package: &Package) -> Option<String> {
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

    /// A package in two versions, unless all but one of them are excepted; and exceptions that except nothing.
    fn doubled_findings(&self, packages: &[Package]) -> Vec<String> {
        let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for package in packages {
            versions.entry(&package.name).or_default().insert(&package.version);
        }
        let excepted = |name: &str, version: &str| self.doubled.contains(&format!("{name}@{version}"));
        let mut findings = Vec::new();
        for (name, versions) in &versions {
            if versions.iter().filter(|version| !excepted(name, version)).count() > 1 {
                let shown: Vec<&str> = versions.iter().copied().collect();
                findings.push(format!("{name}: several versions: {}", shown.join(", ")));
            }
        }
        for exception in &self.doubled {
            let (name, version) = exception.split_once('@').unwrap_or((exception, ""));
            let needed = versions.get(name).is_some_and(|found| found.len() > 1 && found.contains(version));
            if !needed {
                findings.push(format!("deny.toml: the exception {exception} is not needed"));
            }
        }
        findings
    }
}

/// Ours, or from the public index: nothing else.
fn source_finding(package: &Package) -> Option<String> {
    let source = package.source.as_ref()?;
    let known = source.starts_with("registry+") && source.ends_with("/crates.io-index");
    (!known).then(|| format!("{} {}: from an unknown source", package.name, package.version))
}

/// The dependency graph of this platform, tests and chores included.
fn packages() -> Result<Vec<Package>, String> {
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", PLATFORM])
        .current_dir(crate::root())
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    let graph: Value =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))?;
    let text = |package: &Value, key: &str| package.get(key).and_then(Value::as_str).map(str::to_owned);
    let listed = graph.get("packages").and_then(Value::as_array).ok_or("cargo metadata: no packages")?;
    listed
        .iter()
        .map(|package| {
            Ok(Package {
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

    fn rules() -> Rules {
        Rules::parse("[licenses]\nallow = [\"MIT\"]\n[bans]\nskip = [{ crate = \"a@1.0.0\" }]").unwrap()
    }

    fn package(name: &str, version: &str) -> Package {
        let source = Some("registry+somewhere/crates.io-index".to_owned());
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            licence: Some("MIT".to_owned()),
            source,
        }
    }

    #[test]
    fn a_graph_within_the_rules_has_no_findings() {
        let ours = Package { source: None, ..package("ours", "0.1.0") };
        assert_eq!(rules().findings(&[package("a", "1.0.0"), package("a", "2.0.0"), ours]), [""; 0]);
    }

    #[test]
    fn what_breaks_the_rules_is_found() {
        let doubled = [package("a", "1.0.0"), package("a", "2.0.0")];
        for bad in [
            Package { licence: None, ..package("b", "1.0.0") },
            Package { licence: Some("GPL-3.0-only".to_owned()), ..package("b", "1.0.0") },
            Package { licence: Some("MIT AND".to_owned()), ..package("b", "1.0.0") },
            Package { source: Some("git+somewhere".to_owned()), ..package("b", "1.0.0") },
            package("a", "3.0.0"),
        ] {
            let packages: Vec<Package> = doubled.iter().cloned().chain([bad.clone()]).collect();
            assert_eq!(rules().findings(&packages).len(), 1, "{bad:?}");
        }
    }

    #[test]
    fn an_exception_without_need_is_found() {
        assert_eq!(rules().findings(&[package("a", "1.0.0")]).len(), 1);
    }

    #[test]
    fn the_rules_of_the_project_can_be_read() {
        let rules = Rules::read().unwrap();
        assert!(rules.licences.contains("MIT") && !rules.licences.contains("MPL-2.0"));
    }
}
