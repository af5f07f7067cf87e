//! Who may use whom. The table here is the design's; an edge that is not in it is a design change.

use toml::{Table, Value};

use super::{File, Finding};

/// Crates of the workspace and the crates each of them may use.
const EDGES: &[(&str, &[&str])] = &[
    ("path", &[]),
    ("text", &[]),
    ("journal", &[]),
    ("engine", &["path", "text", "journal"]),
    ("disk", &["path"]),
    ("local", &["path", "engine", "journal", "disk"]),
    ("faces", &["path", "text", "engine"]),
    ("stead", &["path", "text", "journal", "engine", "disk", "local", "faces"]),
    ("testkit", &["path", "text", "journal", "engine", "disk", "local", "faces", "stead"]),
    ("xtask", &["path", "text", "journal", "engine", "disk", "local", "faces", "stead", "testkit"]),
];

/// What only tests may use, and every crate's tests may.
const FOR_TESTS: &str = "testkit";

/// Dependencies that stay in the crate that hides them.
const KEPT: &[(&str, &[&str])] = &[
    ("rustix", &["disk", "testkit"]),
    ("nix", &["disk", "testkit"]),
    ("landlock", &["disk"]),
    ("getrandom", &["disk", "faces"]),
    ("rusqlite", &["local", "testkit"]),
    ("ed25519-dalek", &["journal"]),
    ("rmcp", &["faces"]),
    ("tracing", &["faces", "stead"]),
    ("tokio-rustls", &["faces"]),
    ("rustls", &["testkit"]),
    ("tokio", &["faces", "stead", "testkit"]),
    ("clap", &["stead"]),
    ("tempfile", &["testkit", "xtask"]),
];

/// Crates whose own `clippy.toml` lifts bans.
const LIFTED: &[&str] = &["disk", "testkit", "xtask"];
/// What every `clippy.toml` must keep.
const FUNCTION_LINES: &str = "too-many-lines-threshold = 70";

/// How a manifest uses another crate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Shipped,
    Tests,
}

/// Edges between our own crates.
pub(super) fn crate_edges(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, name, table) in manifests(files, &mut findings) {
        let Some((_, allowed)) = EDGES.iter().find(|(from, _)| *from == name) else {
            findings.push(Finding::new(file, 0, format!("crate '{name}' is not in the table of edges")));
            continue;
        };
        for (used, how) in dependencies(&table) {
            let ours = EDGES.iter().any(|(from, _)| *from == used);
            let fine = allowed.contains(&used.as_str())
                || (how == Use::Tests && (used == FOR_TESTS || used == name));
            if ours && !fine {
                findings.push(Finding::new(file, 0, format!("'{name}' may not use '{used}'")));
            }
        }
    }
    findings
}

/// Edges to crates of others that one of ours hides.
pub(super) fn kept_dependencies(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, name, table) in manifests(files, &mut Vec::new()) {
        for (used, how) in dependencies(&table) {
            let kept = KEPT.iter().find(|(dependency, _)| *dependency == used);
            if let (Use::Shipped, Some((_, keepers))) = (how, kept)
                && !keepers.contains(&name.as_str())
            {
                findings.push(Finding::new(
                    file,
                    0,
                    format!("'{used}' is kept inside {}", keepers.join(", ")),
                ));
            }
        }
    }
    findings
}

/// Every crate takes the workspace's lints, and lifts bans only where the design says so.
pub(super) fn lint_settings(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (file, name, table) in manifests(files, &mut Vec::new()) {
        let taken = table.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool);
        if taken != Some(true) {
            findings.push(Finding::new(file, 0, format!("'{name}' does not take the workspace's lints")));
        }
    }
    for file in files.iter().filter(|file| file.path.ends_with("clippy.toml")) {
        if !file.text.lines().any(|line| line.trim() == FUNCTION_LINES) {
            findings.push(Finding::new(file, 0, format!("must keep `{FUNCTION_LINES}`")));
        }
        let owner = file.path.strip_prefix("crates/").and_then(|path| path.split('/').next());
        if let Some(owner) = owner.filter(|owner| !LIFTED.contains(owner)) {
            findings.push(Finding::new(file, 0, format!("'{owner}' may not lift the workspace's bans")));
        }
    }
    findings
}

/// The manifests of our crates. One that cannot be read is a finding.
fn manifests<'a>(files: &'a [File], findings: &mut Vec<Finding>) -> Vec<(&'a File, String, Table)> {
    let mut found = Vec::new();
    // The fuzz targets are built by another toolchain and are no member of the workspace.
    for file in
        files.iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with("/Cargo.toml"))
    {
        match file.text.parse::<Table>() {
            Ok(table) => {
                let name =
                    table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
                found.push((file, name.unwrap_or_default().to_owned(), table));
            }
            Err(error) => findings.push(Finding::new(file, 0, error.to_string())),
        }
    }
    found
}

/// Every dependency of a manifest by the package it means, platform tables included.
fn dependencies(manifest: &Table) -> Vec<(String, Use)> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let tables = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table).chain([manifest]);
    let mut found = Vec::new();
    for table in tables {
        for (section, how) in [
            ("dependencies", Use::Shipped),
            ("build-dependencies", Use::Shipped),
            ("dev-dependencies", Use::Tests),
        ] {
            let listed = table.get(section).and_then(Value::as_table).into_iter().flatten();
            found.extend(listed.map(|(name, value)| {
                let package = value.get("package").and_then(Value::as_str);
                (package.unwrap_or(name).to_owned(), how)
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str, rest: &str) -> Vec<File> {
        vec![File::new(format!("crates/{name}/Cargo.toml"), format!("[package]\nname = \"{name}\"\n{rest}"))]
    }

    #[test]
    fn an_edge_upwards_is_found() {
        for bad in [
            "[dependencies]\nlocal.workspace = true",
            "[dev-dependencies]\nlocal.workspace = true",
            "[dependencies]\nx = { package = \"local\", path = \"../local\" }",
            "[target.'cfg(unix)'.dependencies]\nlocal.workspace = true",
            "[dependencies]\ntestkit.workspace = true",
        ] {
            assert_eq!(crate_edges(&manifest("engine", bad)).len(), 1, "{bad}");
        }
        let good = "[dependencies]\ntext.workspace = true\nserde = \"1\"\n[dev-dependencies]\ntestkit.workspace = true";
        assert_eq!(crate_edges(&manifest("engine", good)), []);
    }

    #[test]
    fn an_unknown_crate_and_a_broken_manifest_are_found() {
        assert_eq!(crate_edges(&manifest("newcomer", "")).len(), 1);
        assert_eq!(crate_edges(&[File::new("crates/x/Cargo.toml", "[package")]).len(), 1);
    }

    #[test]
    fn a_kept_dependency_elsewhere_is_found() {
        assert_eq!(
            kept_dependencies(&manifest("engine", "[dependencies]\nrustix.workspace = true")).len(),
            1
        );
        assert_eq!(kept_dependencies(&manifest("engine", "[dev-dependencies]\nrustix.workspace = true")), []);
        assert_eq!(kept_dependencies(&manifest("disk", "[dependencies]\nrustix.workspace = true")), []);
    }

    #[test]
    fn lints_left_out_or_lifted_are_found() {
        assert_eq!(lint_settings(&manifest("engine", "")).len(), 1);
        assert_eq!(lint_settings(&manifest("engine", "[lints]\nworkspace = true")), []);
        assert_eq!(lint_settings(&[File::new("crates/engine/clippy.toml", FUNCTION_LINES)]).len(), 1);
        assert_eq!(lint_settings(&[File::new("crates/disk/clippy.toml", "")]).len(), 1);
        assert_eq!(lint_settings(&[File::new("crates/disk/clippy.toml", FUNCTION_LINES)]), []);
    }
}
