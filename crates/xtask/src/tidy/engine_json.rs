//! Checks that JSON values are no interface inside the engine: only the modules of stored encodings hold them.

use super::{RepositoryFile, TidyFinding, leftovers::rust_files};

const ENGINE_SOURCES: &str = "crates/engine/src/";
const STORED_ENCODINGS: &[&str] = &["approval/preview.rs", "recorded_arguments.rs"];
const JSON_VALUES: &[&str] = &["serde_json::{", "serde_json::Value", "serde_json::Map", "serde_json::json", "json!("];

pub(super) fn find_json_values_in_engine(files: &[RepositoryFile]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (file, source) in rust_files(files) {
        let Some(name) = file.path.strip_prefix(ENGINE_SOURCES) else { continue };
        if STORED_ENCODINGS.contains(&name) {
            continue;
        }
        let code = source.code.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            if let Some(value) = JSON_VALUES.iter().find(|value| line.contains(**value)) {
                let problem = format!("`{value}` makes JSON an interface inside the engine; use a type");
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
    fn only_stored_encodings_hold_json_values() {
        let code = "use serde_json::{Map, Value};\nfn f() { json!({}); }\n// json!({})\nserde_json::from_str(text)\n";
        let lines = |path: &str| -> Vec<usize> {
            let file = RepositoryFile::new(path, code);
            find_json_values_in_engine(&[file]).into_iter().map(|finding| finding.line).collect()
        };
        assert_eq!(lines("crates/engine/src/ops/read.rs"), [1, 2]);
        assert!(lines("crates/engine/src/recorded_arguments.rs").is_empty());
        assert!(lines("crates/protocols/src/native.rs").is_empty());
    }
}
