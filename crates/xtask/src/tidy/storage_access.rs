//! Checks that operations read the workspace only through the reader that logs the sources of bytes.

use super::{RepositoryFile, TidyFinding, leftovers::rust_files};

const ENGINE_SOURCES: &str = "crates/engine/src/";
/// The files of the engine that may access the storage without the log: the rules about rows, those
/// that write, and the reader itself.
const UNLOGGED_ACCESS_FILES: &[&str] = &[
    "approval/gate.rs",
    "caller.rs",
    "engine.rs",
    "pipeline.rs",
    "rows.rs",
    "rules.rs",
    "tree.rs",
    "workspace.rs",
    "workspace_reader.rs",
];
const RULES_DIRECTORY: &str = "rules/";
const UNLOGGED_ACCESS: &[&str] = &["dyn Workspace", "dyn Tree", "engine.workspace()"];

pub(super) fn find_unlogged_storage_access(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, source) in rust_files(files) {
        let Some(name) = file.path.strip_prefix(ENGINE_SOURCES) else { continue };
        if UNLOGGED_ACCESS_FILES.contains(&name) || name.starts_with(RULES_DIRECTORY) {
            continue;
        }
        for (index, line) in source.code.lines().enumerate() {
            if let Some(access) = UNLOGGED_ACCESS.iter().find(|access| line.contains(**access)) {
                let problem = format!("`{access}` bypasses the log of byte sources; use a `WorkspaceReader`");
                findings.push(TidyFinding::new(file, index + 1, problem));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_must_use_the_reader() {
        let code = "fn f(workspace: &dyn Workspace) {}\nfn g() { self.engine.workspace().head(); }\n// dyn Workspace\n";
        let lines = |path: &str| -> Vec<usize> {
            let file = RepositoryFile::new(path, code);
            find_unlogged_storage_access(&[file]).into_iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("crates/engine/src/ops/read.rs"), [1, 2]);
        assert!(lines("crates/engine/src/pipeline.rs").is_empty());
        assert!(lines("crates/local/src/commit.rs").is_empty());
    }
}
