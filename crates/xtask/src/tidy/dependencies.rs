//! Checks the dependencies between crates, and that certain external libraries are used only by certain crates.

use toml::{Table, Value};

use super::{RepositoryFile, TidyFinding, is_project_path};

/// Each crate of the workspace is listed with the crates it may use.
const CRATE_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("stead-path", &[]),
    ("stead-schema-stub", &[]),
    ("stead-text", &[]),
    ("stead-journal", &[]),
    ("stead-engine", &["stead-path", "stead-text", "stead-journal", "stead-schema-stub"]),
    ("stead-disk", &["stead-path"]),
    ("stead-local", &["stead-path", "stead-engine", "stead-journal", "stead-disk"]),
    ("stead-protocols", &["stead-path", "stead-text", "stead-engine"]),
    (
        "stead",
        &["stead-path", "stead-text", "stead-journal", "stead-engine", "stead-disk", "stead-local", "stead-protocols"],
    ),
    (
        "testkit",
        &[
            "stead-path",
            "stead-text",
            "stead-journal",
            "stead-engine",
            "stead-disk",
            "stead-local",
            "stead-protocols",
            "stead",
        ],
    ),
    (
        "xtask",
        &[
            "stead-path",
            "stead-text",
            "stead-journal",
            "stead-engine",
            "stead-disk",
            "stead-local",
            "stead-protocols",
            "stead",
            "testkit",
        ],
    ),
    ("stead-bench", &["stead-text", "xtask"]),
];

/// The tests of every crate may depend on the crate `testkit`.
const TEST_CRATE: &str = "testkit";

/// Each external library is listed with the crates that may use it.
const RESTRICTED_DEPENDENCIES: &[(&str, &[&str])] = &[
    ("rustix", &["stead-disk", "testkit"]),
    ("nix", &["stead-disk", "testkit"]),
    ("landlock", &["stead-disk"]),
    ("getrandom", &["stead-disk", "stead-protocols"]),
    ("rusqlite", &["stead-local", "testkit"]),
    ("ed25519-dalek", &["stead-journal"]),
    ("rmcp", &["stead-protocols"]),
    ("tracing", &["stead-protocols", "stead"]),
    ("tokio-rustls", &["stead-protocols"]),
    ("rustls", &["testkit"]),
    ("tokio", &["stead-protocols", "stead", "testkit"]),
    ("clap", &["stead"]),
    ("tempfile", &["testkit", "stead-bench"]),
];

/// The crates whose own `clippy.toml` may allow methods that the workspace forbids.
const CRATES_WITH_LIFTED_LINTS: &[&str] = &["disk", "testkit", "xtask"];
/// The workspaces of the project and of the benchmarks must have the same lints.
const WORKSPACE_MANIFESTS: [&str; 2] = ["Cargo.toml", "bench/Cargo.toml"];
const FUNCTION_LINES_SETTING: &str = "too-many-lines-threshold = 70";

#[derive(Clone, Copy, PartialEq, Eq)]
enum CargoDependencyKind {
    Normal,
    TestOnly,
}

pub(super) fn check_crate_dependencies(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, name, table) in crate_manifests(files, &mut findings) {
        let Some((_, allowed)) = CRATE_DEPENDENCIES.iter().find(|(from, _)| *from == name) else {
            findings.push(TidyFinding::new(file, 0, format!("crate '{name}' is not in the dependency table")));
            continue;
        };
        for (used, how) in manifest_dependencies(&table) {
            let ours = CRATE_DEPENDENCIES.iter().any(|(from, _)| *from == used);
            let fine = allowed.contains(&used.as_str())
                || (how == CargoDependencyKind::TestOnly && (used == TEST_CRATE || used == name));
            if ours && !fine {
                findings.push(TidyFinding::new(file, 0, format!("'{name}' may not use '{used}'")));
            }
        }
    }
    findings
}

pub(super) fn check_restricted_dependencies(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, name, table) in crate_manifests(files, &mut Vec::new()) {
        for (used, how) in manifest_dependencies(&table) {
            let restricted = RESTRICTED_DEPENDENCIES.iter().find(|(dependency, _)| *dependency == used);
            if let (CargoDependencyKind::Normal, Some((_, owners))) = (how, restricted)
                && !owners.contains(&name.as_str())
            {
                findings.push(TidyFinding::new(file, 0, format!("'{used}' may only be used by {}", owners.join(", "))));
            }
        }
    }
    findings
}

/// Every crate must inherit the workspace lints, and only some crates may change the Clippy settings.
pub(super) fn check_lint_settings(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, name, table) in crate_manifests(files, &mut Vec::new()) {
        let inherited = table.get("lints").and_then(|lints| lints.get("workspace")).and_then(Value::as_bool);
        if inherited != Some(true) {
            findings.push(TidyFinding::new(file, 0, format!("'{name}' does not inherit the workspace lints")));
        }
    }
    let lint_tables = WORKSPACE_MANIFESTS.map(|path| {
        let table = files.iter().find(|file| file.path == path)?.text.parse::<Table>().ok()?;
        table.get("workspace")?.get("lints").cloned()
    });
    if lint_tables[0] != lint_tables[1]
        && let Some(file) = files.iter().find(|file| file.path == WORKSPACE_MANIFESTS[1])
    {
        findings.push(TidyFinding::new(file, 0, format!("the lints must equal those of {}", WORKSPACE_MANIFESTS[0])));
    }
    for file in files.iter().filter(|file| file.path.ends_with("clippy.toml")) {
        if !file.text.lines().any(|line| line.trim() == FUNCTION_LINES_SETTING) {
            findings.push(TidyFinding::new(file, 0, format!("must keep `{FUNCTION_LINES_SETTING}`")));
        }
        let owner = file.path.strip_prefix("crates/").and_then(|path| path.split('/').next());
        if let Some(owner) = owner.filter(|owner| !CRATES_WITH_LIFTED_LINTS.contains(owner)) {
            findings.push(TidyFinding::new(file, 0, format!("'{owner}' may not lift the workspace lints")));
        }
    }
    findings
}

/// Parses the `Cargo.toml` of every crate, and reports a malformed file in `findings`.
fn crate_manifests<'a>(
    files: &'a [RepositoryFile],
    findings: &mut Vec<TidyFinding>,
) -> Vec<(&'a RepositoryFile, String, Table)> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| is_project_path(&file.path) && file.path.ends_with("/Cargo.toml")) {
        match file.text.parse::<Table>() {
            Ok(table) => {
                let name = table.get("package").and_then(|package| package.get("name")).and_then(Value::as_str);
                found.push((file, name.unwrap_or_default().to_owned(), table));
            }
            Err(error) => findings.push(TidyFinding::new(file, 0, error.to_string())),
        }
    }
    found
}

/// Returns the dependencies of a crate, including dependencies for only one platform.
fn manifest_dependencies(manifest: &Table) -> Vec<(String, CargoDependencyKind)> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let tables = platforms.into_iter().flat_map(Table::values).filter_map(Value::as_table).chain([manifest]);
    let mut found = Vec::new();
    for table in tables {
        for (section, how) in [
            ("dependencies", CargoDependencyKind::Normal),
            ("build-dependencies", CargoDependencyKind::Normal),
            ("dev-dependencies", CargoDependencyKind::TestOnly),
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

    fn sample_manifest(name: &str, rest: &str) -> Vec<RepositoryFile> {
        vec![RepositoryFile::new(format!("crates/{name}/Cargo.toml"), format!("[package]\nname = \"{name}\"\n{rest}"))]
    }

    #[test]
    fn upward_dependency_is_found() {
        for bad in [
            "[dependencies]\nstead-local.workspace = true",
            "[dev-dependencies]\nstead-local.workspace = true",
            "[dependencies]\nx = { package = \"stead-local\", path = \"../local\" }",
            "[target.'cfg(unix)'.dependencies]\nstead-local.workspace = true",
            "[dependencies]\ntestkit.workspace = true",
        ] {
            assert_eq!(check_crate_dependencies(&sample_manifest("stead-engine", bad)).len(), 1, "{bad}");
        }
        let good =
            "[dependencies]\nstead-text.workspace = true\nserde = \"1\"\n[dev-dependencies]\ntestkit.workspace = true";
        assert_eq!(check_crate_dependencies(&sample_manifest("stead-engine", good)), []);
    }

    #[test]
    fn unknown_crate_and_malformed_manifest_are_found() {
        assert_eq!(check_crate_dependencies(&sample_manifest("newcomer", "")).len(), 1);
        assert_eq!(check_crate_dependencies(&[RepositoryFile::new("crates/x/Cargo.toml", "[package")]).len(), 1);
    }

    #[test]
    fn misplaced_restricted_dependency_is_found() {
        assert_eq!(
            check_restricted_dependencies(&sample_manifest("stead-engine", "[dependencies]\nrustix.workspace = true"))
                .len(),
            1
        );
        assert_eq!(
            check_restricted_dependencies(&sample_manifest(
                "stead-engine",
                "[dev-dependencies]\nrustix.workspace = true"
            )),
            []
        );
        assert_eq!(
            check_restricted_dependencies(&sample_manifest("stead-disk", "[dependencies]\nrustix.workspace = true")),
            []
        );
    }

    #[test]
    fn missing_or_lifted_lints_are_found() {
        assert_eq!(check_lint_settings(&sample_manifest("stead-engine", "")).len(), 1);
        assert_eq!(check_lint_settings(&sample_manifest("stead-engine", "[lints]\nworkspace = true")), []);
        assert_eq!(
            check_lint_settings(&[RepositoryFile::new("crates/engine/clippy.toml", FUNCTION_LINES_SETTING)]).len(),
            1
        );
        assert_eq!(check_lint_settings(&[RepositoryFile::new("crates/disk/clippy.toml", "")]).len(), 1);
        let with_lint = |path: &str, lint: &str| {
            let text = format!("[lints]\nworkspace = true\n[workspace.lints.clippy]\n{lint} = \"warn\"");
            RepositoryFile::new(path, text)
        };
        let [project, bench] = WORKSPACE_MANIFESTS;
        assert_eq!(check_lint_settings(&[with_lint(project, "todo"), with_lint(bench, "panic")]).len(), 1);
        assert_eq!(check_lint_settings(&[with_lint(project, "todo"), with_lint(bench, "todo")]), []);
        assert_eq!(check_lint_settings(&[RepositoryFile::new("crates/disk/clippy.toml", FUNCTION_LINES_SETTING)]), []);
    }
}
